// The life of a drill as the world has it: a start, the clock, the ways to end it, and the result, which stays.

import type { Drill, DrillState, Goal, Level, Measure, Row, Scene, Score, Standing } from "../protocol";
import { h, icon, setText } from "./dom";
import { clock, signed } from "./format";
import { goalText, met, told } from "./measures";

/** How sure one is: on the button, said afterwards, and as a share. */
const CERTAINTIES: [string, string, number][] = [["a guess", "you guessed", 0.5], ["fairly sure", "you were fairly sure", 0.75], ["sure", "you were sure", 1]];

const TITLES: Record<DrillState["outcome"], string> = {
  "": "", met: "Done", failed: "Failed", given_up: "Given up", found: "Found", missed: "Missed",
};

export interface DrillEvents {
  send(message: Omit<Drill, "type">): void;
  /** Somebody wants to say who they are. */
  who(): void;
}

export class DrillPanel {
  private readonly bar = h("div", { class: "drill-bar" });
  private readonly card = h("section", { class: "drill-result", "aria-live": "polite", hidden: true });
  private readonly time = h("output", { class: "drill-time" }, clock(0));
  /** What is about to be lost: a measure that is near the limit of its goal. */
  private readonly warning = h("span", { class: "drill-warning", role: "status" }, "");
  private scene: Pick<Scene, "levels" | "measures" | "hides" | "seed"> = { levels: [], measures: [], hides: false, seed: 0 };
  private state: DrillState | null = null;
  private score: Score | null = null;
  private standing: Standing | null = null;
  private training = false;
  private readonly who: HTMLButtonElement;
  private level = 0;
  private shown = "";
  private closed = false;
  private values: Record<string, number> = {};

  constructor(private readonly root: HTMLElement, private readonly events: DrillEvents) {
    this.who = h("button", { type: "button", class: "trainee", title: "Whose trials are kept", on: { click: () => this.events.who() } }, "Who are you?");
    root.append(this.bar, this.card);
    root.hidden = true;
    document.addEventListener("keydown", ({ key }) => {
      if (key === "Escape") this.bar.querySelector("details")?.removeAttribute("open");
    }, true);
  }

  setScene(scene: Scene, again: boolean): void {
    this.scene = scene;
    this.root.hidden = scene.levels.length === 0;
    if (!again) this.level = Math.min(this.level, Math.max(0, scene.levels.length - 1));
    this.shown = "";
  }

  setState(state: DrillState | null, values: Record<string, number> = {}): void {
    this.state = state;
    this.values = values;
    if (state === null) return;
    setText(this.time, clock(state.time));
    if (state.phase === "running") setText(this.warning, warningOf(this.scene.levels.at(state.level), this.scene.measures, values));
    const key = JSON.stringify([state.phase, state.outcome, state.level, state.phase === "ended" ? state.time : 0, this.scene.seed]);
    if (key === this.shown) return;
    this.shown = key;
    if (state.phase !== "waiting") this.level = state.level;
    this.closed = false;
    this.render(state);
    this.card.scrollTop = 0; // not where the one before was left
  }

  /** Whether trials are kept here. */
  setWelcome(training: boolean): void {
    this.training = training;
    this.shown = "";
  }

  /** Whose trials are kept; empty: nobody's. */
  setWho(trainee: string): void {
    setText(this.who, trainee === "" ? "Who are you?" : trainee);
    if (this.standing !== null && this.standing.trainee !== trainee) this.standing = null;
  }

  setStanding(standing: Standing): void {
    this.standing = standing;
    if (this.state?.phase === "ended") this.render(this.state);
  }

  private send(message: Omit<Drill, "type">): void {
    if (message.action === "start") this.standing = null;
    this.events.send(message);
  }

  /** Of the trial that ended last. */
  setScore(score: Score): void {
    this.score = score;
    if (this.state?.phase === "ended") this.render(this.state);
  }

  /** Starts the same trial again, or the one with this seed. */
  start(seed: number = this.scene.seed): void {
    this.send({ action: "start", level: this.level, seed });
  }

  private render(state: DrillState): void {
    this.root.dataset.phase = state.phase;
    this.root.dataset.outcome = state.outcome;
    this.card.hidden = state.phase !== "ended" || this.closed;
    if (state.phase === "running") this.bar.replaceChildren(...this.running());
    else this.bar.replaceChildren(...this.waiting(state.phase === "ended"));
    if (state.phase === "ended") this.card.replaceChildren(...this.result(state));
  }

  private waiting(ended: boolean): Node[] {
    const levels = this.scene.levels.map(({ name }, number) => {
      const choice = h("button", { type: "button", "aria-pressed": String(number === this.level),
        on: { click: () => this.choose(number) } }, name);
      return choice;
    });
    const start = h("button", { type: "button", class: "go", title: "The world begins anew, and the clock starts", on: { click: () => this.start() } },
      icon("play"), ended ? "Start again" : "Start");
    return [...(this.training && (!ended || this.closed) ? [this.who] : []), ...(levels.length > 1 ? [h("div", { class: "choices", role: "group", "aria-label": "Level" }, ...levels)] : []), start,
      ...(ended && this.closed ? [h("button", { type: "button", on: { click: () => this.open() } }, "Result")] : [])];
  }

  private running(): Node[] {
    const note = h("p", { class: "note", role: "status" }, "");
    const found = CERTAINTIES.map(([words, , certainty]) =>
      h("button", { type: "button", on: { click: () => this.send({ action: "found", certainty }) } }, words));
    const tell = () => {
      const marked = this.pins() > 0;
      setText(note, marked ? "The last pin counts. How sure are you?" : "No pin is stuck yet: take the marking pin and click where it is.");
      for (const one of found) one.disabled = !marked;
    };
    const declare = h("details", { class: "declare", on: { toggle: tell } }, h("summary", { class: "go" }, "Here it is…"),
      h("div", { class: "declare-list" }, note, ...found));
    return [this.time, h("span", { class: "drill-level" }, this.scene.levels.at(this.level)?.name ?? ""), this.warning,
      ...(this.scene.hides ? [declare] : []), h("button", { type: "button", on: { click: () => this.send({ action: "give_up" }) } }, "Give up")];
  }

  /** That are stuck so far. */
  private pins(): number {
    return "pins" in this.values ? this.values.pins : 0;
  }

  private result(state: DrillState): Node[] {
    const level = this.scene.levels.at(state.level);
    const rows = (level?.goals ?? []).map((goal) => goalRow(goal, this.scene.measures, state));
    const next = this.scene.seed + 1;
    const score = this.score !== null && Math.abs(this.score.time - state.time) < 1e-9 && this.score.seed === this.scene.seed ? this.score : null;
    return [
      h("header", {}, icon(good(state) ? "check" : "warn"), h("h2", {}, `${TITLES[state.outcome]} after ${clock(state.time)}`),
        h("span", { class: "note" }, `${level?.name ?? ""}, seed ${this.scene.seed}`)),
      ...(score !== null && state.outcome === "given_up" ? [] : [h("p", {}, sentence(state, level, this.scene.measures))]), // its advice says the same
      h("table", { class: "goal-table" }, h("tbody", {}, ...rows)),
      ...(score === null ? [] : scored(score, level, this.standing)),
      ...(this.standing === null ? [] : placed(this.standing)),
      h("footer", {},
        h("button", { type: "button", class: "go", on: { click: () => this.start(next) } }, "Next trial"),
        h("button", { type: "button", on: { click: () => this.start() } }, "Same again"),
        h("button", { type: "button", on: { click: () => this.close() } }, "Close")),
    ];
  }

  private choose(level: number): void {
    this.level = level;
    if (this.state !== null) this.render(this.state);
  }

  private close(): void {
    this.closed = true;
    if (this.state !== null) this.render(this.state);
  }

  private open(): void {
    this.closed = false;
    if (this.state !== null) this.render(this.state);
  }
}

export function good({ outcome }: DrillState): boolean {
  return outcome === "met" || outcome === "found";
}

/** What happened, for whoever did it. */
export function sentence(state: DrillState, level: Level | undefined, measures: Measure[]): string {
  const label = (name: string) => measures.find((info) => info.name === name)?.label.toLowerCase() ?? name;
  if (state.off !== null) {
    const sure = CERTAINTIES.find(([, , share]) => share === state.certainty)?.[1] ?? `you were ${((state.certainty ?? 0) * 100).toFixed(0)} % sure`;
    return `The pin stands ${(state.off * 1000).toFixed(1)} mm beside the middle of what was hidden, seen along the pin; ${sure}.`;
  }
  if (state.outcome === "met") return "All goals were met at once.";
  if (state.outcome === "failed") return `Beyond the limit, which nothing mends: ${state.failed.map(label).join(", ")}. You may go on to practise; this trial is over.`;
  const open = (level?.goals ?? []).filter((goal) => !met(goal, state.result[goal.measure])).map(({ measure }) => label(measure));
  return open.length === 0 ? "" : `Not reached: ${open.join(", ")}.`;
}

/** How near to its limit a measure that never falls may come before it is told. */
const NEAR = 0.75;

/** Of goals that are lost for good once their limit is passed: what is nearest to it, in words; empty while all is well. */
export function warningOf(level: Level | undefined, measures: Measure[], values: Record<string, number>): string {
  const near = (level?.goals ?? []).flatMap(({ measure, most }) => {
    const info = measures.find(({ name }) => name === measure);
    const value = measure in values ? values[measure] : 0;
    return info?.grows === true && most !== null && most > 0 && value >= NEAR * most ? [{ info, value, most }] : [];
  }).sort((one, other) => other.value / other.most - one.value / one.most);
  if (near.length === 0) return "";
  const [{ info, value, most }] = near;
  return `${info.label}: ${value.toFixed(info.digits)} of ${most.toFixed(Number.isInteger(most) ? 0 : info.digits)} ${info.unit}`.trim();
}

/** What to do better, and all numbers besides the goals', with one's own best and the middle half of all who passed. */
function scored(score: Score, level: Level | undefined, standing: Standing | null): Node[] {
  const goals = new Set((level?.goals ?? []).map(({ measure }) => measure));
  const rows = score.rows.filter(({ name, value }) => Number.isFinite(value) && !goals.has(name));
  const [world, hands] = [rows.filter(({ name }) => !name.includes(".")), rows.filter(({ name }) => name.includes("."))];
  const table = (some: Row[]) => h("table", { class: "goal-table" }, h("tbody", {}, ...some.map((row) => scoreRow(row, standing))));
  return [
    h("p", { class: "advice" }, score.advice),
    ...(world.length === 0 ? [] : [table(world)]),
    ...(hands.length === 0 ? [] : [h("details", { class: "score" }, h("summary", {}, "Hands and instruments"), table(hands))]),
  ];
}

function scoreRow({ name, label, unit, value, digits, note, limit, better }: Row, standing: Standing | null): HTMLElement {
  const place = standing?.places.find((one) => one.name === name);
  const half = place?.quartiles ?? null;
  const words = [note, half === null ? "" : `middle half ${signed(half[0], digits)} to ${signed(half[2], digits)}`].filter(Boolean).join("; ");
  const bad = limit !== null && ((better === "less" && value > limit) || (better === "more" && value < limit));
  return h("tr", { class: bad ? "lost" : "" }, h("th", {}, label), h("td", {}, `${signed(value, digits)} ${unit}`.trim()), h("td", { class: "note" }, words));
}

/** Among one's own trials, and among the cohort's. */
function placed({ trainee, trials, times, passed, quartiles, proficient_at }: Standing): Node[] {
  const address = `./training/report?trainee=${encodeURIComponent(trainee)}`;
  const words = [`Trial ${trials} of ${trainee}.`, times.length > 1 && times[times.length - 1] <= Math.min(...times) ? "The fastest so far." : "",
    quartiles === null ? "" : `Half of all who passed took ${quartiles[0].toFixed(1)} to ${quartiles[2].toFixed(1)} s.`,
    proficient_at === null ? "" : `Proficient since trial ${proficient_at} (LC-CUSUM).`];
  return [h("p", { class: "standing" }, words.filter(Boolean).join(" ")), timeBars(times, passed),
    h("a", { href: address, target: "_blank", rel: "noopener" }, "Learning curve and report")];
}

/** One bar per trial, as high as it took long. */
function timeBars(times: number[], passed: boolean[]): HTMLElement {
  const most = Math.max(...times, 1e-9);
  const bars = h("div", { class: "time-bars", role: "img", "aria-label": `Times of your trials: ${times.map((time) => time.toFixed(1)).join(", ")} s` },
    ...times.map((time, i) => h("i", { class: passed[i] ? "met" : "lost", style: `height: ${(100 * time / most).toFixed(0)}%`, title: `${time.toFixed(1)} s` })));
  return h("figure", { class: "times" }, h("figcaption", { class: "note" }, times.length === 1 ? "Time of this trial" : `Time of each of your trials, up to ${most.toFixed(1)} s`), bars);
}

function goalRow(goal: Goal, measures: Measure[], { result }: DrillState): HTMLElement {
  const info = measures.find(({ name }) => name === goal.measure) ?? { label: goal.measure, unit: "", digits: 1, yes_no: false };
  const value = goal.measure in result ? result[goal.measure] : NaN;
  const reached = met(goal, value);
  return h("tr", { class: reached ? "met" : "lost" }, h("th", {}, info.label),
    h("td", {}, `${told(info, value)} ${info.unit}`.trim()), h("td", { class: "note" }, goalText(goal, info)),
    h("td", {}, icon(reached ? "check" : "close")));
}
