// Numbers about how it goes: what a scenario wants watched. Those that a drill has goals for come first, each with its
// goal and whether it is met; when all are met at once, the drill is done.

import type { Goal, Measure } from "../protocol";
import { card, h, icon, setText } from "./dom";
import { clock, plain } from "./format";

const UPDATE_EVERY = 100; // [ms]
const TIME = "time"; // the measure that the server stops when all goals are met

interface Row {
  info: Measure;
  goal: Goal | undefined;
  element: HTMLElement;
  value: HTMLElement;
}

export interface Result {
  title: string;
  text: string;
}

export class MeasuresPanel {
  readonly element: HTMLDetailsElement;
  private readonly list = h("dl", { class: "measures" });
  private rows: Row[] = [];
  private shownAt = -Infinity;
  private stoppedAt = NaN;
  private done = false;

  constructor(private readonly result: (result: Result | null) => void) {
    this.element = card("Measures", true, null, this.list);
    this.element.hidden = true;
  }

  setScene(measures: Measure[], goals: Goal[]): void {
    const wanted = [...new Set([...goals.map((goal) => goal.measure), TIME])];
    const first = wanted.flatMap((name) => measures.filter((info) => info.name === name));
    const ordered = [...first, ...measures.filter((info) => !first.includes(info))];
    this.rows = ordered.map((info) => measureRow(info, goals.find((goal) => goal.measure === info.name)));
    this.list.replaceChildren(...this.rows.map((row) => row.element));
    this.element.hidden = measures.length === 0;
    this.shownAt = -Infinity;
    this.begin();
  }

  setValues(values: Record<string, number>, now: number): void {
    if (now - this.shownAt < UPDATE_EVERY) return;
    this.shownAt = now;
    for (const { info, goal, element, value } of this.rows) {
      const given = info.name in values ? values[info.name] : NaN;
      setText(value, Number.isFinite(given) ? given.toFixed(info.digits) : "–");
      if (goal !== undefined) element.classList.toggle("met", met(goal, given));
    }
    this.judge(values);
  }

  /** The server's clock says when a drill is done: it stops then, and only a reset sets it back. */
  private judge(values: Record<string, number>): void {
    const time = TIME in values ? values[TIME] : NaN;
    const goals = this.rows.filter((row) => row.goal !== undefined);
    if (goals.length === 0 || !Number.isFinite(time)) return;
    if (time < this.stoppedAt || (this.done && time > this.stoppedAt)) this.begin();
    const all = goals.every((row) => row.goal !== undefined && met(row.goal, values[row.info.name]));
    if (!this.done && all && time === this.stoppedAt && time > 0) {
      this.done = true;
      this.result({
        title: `Done in ${clock(time)}.`,
        text: goals.map(({ info }) => `${info.label} ${values[info.name].toFixed(info.digits)} ${info.unit}`.trim()).join(", "),
      });
    }
    this.stoppedAt = time;
  }

  private begin(): void {
    this.stoppedAt = NaN;
    if (this.done) this.result(null);
    this.done = false;
  }
}

export function met(goal: Goal, value: number): boolean {
  return (goal.least === null || value >= goal.least) && (goal.most === null || value <= goal.most);
}

/** "at least 90", "at most 0.5", "none". */
export function goalText({ least, most }: Goal): string {
  if (most === 0) return "none";
  return [least === null ? "" : `at least ${plain(least)}`, most === null ? "" : `at most ${plain(most)}`].filter(Boolean).join(", ");
}

function measureRow(info: Measure, goal: Goal | undefined): Row {
  const value = h("output", {}, "–");
  const wanted = goal === undefined ? null : h("span", { class: "goal" }, `goal: ${goalText(goal)}`, icon("check"));
  const element = h("div", { class: goal === undefined ? "measure" : "measure wanted", title: info.help },
    h("dt", {}, info.label, wanted), h("dd", {}, value, h("span", { class: "unit" }, info.unit)), h("p", { class: "note" }, info.help));
  return { info, goal, element, value };
}
