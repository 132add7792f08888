// Where the time of a frame goes, and how long the hand waits for the picture.

import { FRAME, type Frame } from "../protocol";
import { card, h, setText } from "./dom";

const FRAME_TIME = 1000 * FRAME; // [ms] of simulated time
const UPDATE_EVERY = 500; // [ms]
const TICKING = "tissue"; // the stage that ticks are made of; all others run beside them

export interface PageTimes {
  framesPerSecond: number;
  latency: number | null;
  roundTrip: number | null;
  pixelShare: number;
}

export class TimingsPanel {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly page = h("tbody");
  private readonly latency = h("output", {}, "–");
  private shownAt = -Infinity;

  constructor(open: boolean) {
    const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Stage"), h("th", { scope: "col" }, "ms a frame"), h("th", { class: "bar-head" }, h("span", { class: "unseen" }, "share of 16 ms"))));
    const aside = h("span", { class: "aside", title: "Median from a movement of the hand to the picture that shows it" },
      "hand to picture ", this.latency);
    this.element = card("Timing", open, aside,
      h("table", { class: "timings" }, head, this.body, this.page));
  }

  setFrame(frame: Frame, times: PageTimes, now: number): void {
    if (now - this.shownAt < UPDATE_EVERY) return;
    this.shownAt = now;
    setText(this.latency, times.latency === null ? "–" : `${times.latency.toFixed(0)} ms`);
    const stages = Object.entries(frame.stages);
    const beside = stages.filter(([name]) => name !== TICKING);
    const total = beside.reduce((sum, [, ms]) => sum + ms, 0);
    const ticking = stages.filter(([name]) => name === TICKING);
    const all = beside.length > 0 ? [["all beside the ticks", total] as [string, number]] : [];
    this.body.replaceChildren(...[...ticking, ...beside, ...all].map(([name, ms]) => {
      const bar = h("i", { class: "bar" });
      bar.style.setProperty("--share", String(Math.min(1, ms / FRAME_TIME)));
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, ms.toFixed(2)), h("td", { class: "bar-cell" }, bar));
    }));
    const { p50, p99, p99_9, worst, late } = frame.ticks;
    const rows: [string, string][] = [
      ["a tick: median, 99 %, 99.9 %, worst", `${[p50, p99, p99_9, worst].map((ms) => ms.toFixed(2)).join(", ")} ms`],
      ["ticks over 2 ms", `${(100 * late).toFixed(2)} %`],
      ["tissue and tools, of real time", `${frame.real_time_factor.toFixed(2)}×`],
      ["all else, of real time", `${frame.beside_factor.toFixed(2)}×`],
      ["picture", `${times.framesPerSecond.toFixed(0)} /s at ${Math.round(times.pixelShare * 100)} %`],
      ["line, there and back", times.roundTrip === null ? "–" : `${times.roundTrip.toFixed(1)} ms`],
    ];
    this.page.replaceChildren(...rows.map(([name, value]) =>
      h("tr", {}, h("th", { scope: "row" }, name), h("td", { colspan: 2 }, value))));
  }
}
