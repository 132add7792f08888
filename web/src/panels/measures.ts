// Numbers about how it goes: what a scenario wants watched. Those that a drill has goals for come first, each with its
// goal, whether it is met, and whether it cannot be met any more.

import type { DrillState, Goal, Level, Measure } from "../protocol";
import { card, h, icon, setText } from "./dom";
import { plain } from "./format";

const UPDATE_EVERY = 100; // [ms]
const TIME = "time"; // the clock of a drill

interface Row {
  info: Measure;
  goal: Goal | undefined;
  element: HTMLElement;
  value: HTMLElement;
}

export class MeasuresPanel {
  readonly element: HTMLDetailsElement;
  private readonly list = h("dl", { class: "measures" });
  private rows: Row[] = [];
  private measures: Measure[] = [];
  private levels: Level[] = [];
  private level = 0;
  private shownAt = -Infinity;

  constructor() {
    this.element = card("Measures", true, null, this.list);
    this.element.hidden = true;
  }

  setScene(measures: Measure[], levels: Level[]): void {
    this.measures = measures;
    this.levels = levels;
    this.level = 0;
    this.element.hidden = measures.length === 0;
    this.fill();
  }

  setValues(values: Record<string, number>, drill: DrillState | null, now: number): void {
    if (now - this.shownAt < UPDATE_EVERY) return;
    this.shownAt = now;
    if (drill !== null && drill.level !== this.level) {
      this.level = drill.level;
      this.fill();
    }
    for (const { info, goal, element, value } of this.rows) {
      const given = info.name in values ? values[info.name] : NaN;
      setText(value, told(info, given));
      if (goal === undefined) continue;
      // Before the start nothing is won or lost yet.
      const counts = drill?.phase !== "waiting";
      element.classList.toggle("met", counts && met(goal, given));
      element.classList.toggle("lost", counts && lost(goal, info, given));
    }
  }

  private fill(): void {
    const goals = this.levels.at(this.level)?.goals ?? [];
    const wanted = [...goals.map((goal) => goal.measure), TIME];
    const first = [...new Set(wanted)].flatMap((name) => this.measures.filter((info) => info.name === name));
    const ordered = [...first, ...this.measures.filter((info) => !first.includes(info))];
    this.rows = ordered.map((info) => measureRow(info, goals.find((goal) => goal.measure === info.name)));
    this.list.replaceChildren(...this.rows.map((row) => row.element));
    this.shownAt = -Infinity;
  }
}

export function met(goal: Goal, value: number): boolean {
  return (goal.least === null || value >= goal.least) && (goal.most === null || value <= goal.most);
}

/** Whether it cannot be met any more: the measure never falls. */
export function lost(goal: Goal, { grows }: Pick<Measure, "grows">, value: number): boolean {
  return grows && goal.most !== null && value > goal.most;
}

/** A measure's number as people say it, without its unit. */
export function told({ digits, yes_no: yesNo }: Pick<Measure, "digits" | "yes_no">, value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (yesNo) return value >= 1 ? "yes" : "no";
  return value.toFixed(digits);
}

/** "at least 90 %", "at most 0.5 mL", "none"; "yes" of what is yes or no. */
export function goalText({ least, most }: Goal, { unit, yes_no: yesNo }: Pick<Measure, "unit" | "yes_no">): string {
  if (yesNo) return least === null ? "no" : "yes";
  if (most === 0) return "none";
  const words = [least === null ? "" : `at least ${plain(least)}`, most === null ? "" : `at most ${plain(most)}`].filter(Boolean).join(", ");
  return `${words} ${unit}`.trim();
}

function measureRow(info: Measure, goal: Goal | undefined): Row {
  const value = h("output", {}, "–");
  const wanted = goal === undefined ? null : h("span", { class: "goal" }, `goal: ${goalText(goal, info)}`, icon("check"), icon("close"));
  const element = h("div", { class: goal === undefined ? "measure" : "measure wanted", title: info.help },
    h("dt", {}, info.label, wanted), h("dd", {}, value, h("span", { class: "unit" }, info.unit)), h("p", { class: "note" }, info.help));
  return { info, goal, element, value };
}
