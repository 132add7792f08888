// Numbers about how it goes: what a scenario wants watched.

import type { MeasureInfo } from "../protocol";
import { card, h, setText } from "./dom";

const UPDATE_EVERY = 100; // [ms]

export class MeasuresPanel {
  readonly element: HTMLDetailsElement;
  private readonly list = h("dl", { class: "measures" });
  private rows: { info: MeasureInfo; value: HTMLElement }[] = [];
  private shownAt = -Infinity;

  constructor() {
    this.element = card("Measures", true, null, this.list);
    this.element.hidden = true;
  }

  setScene(measures: MeasureInfo[]): void {
    this.rows = measures.map((info) => ({ info, value: h("output", {}, "–") }));
    this.list.replaceChildren(...this.rows.map(({ info, value }) =>
      h("div", { class: "measure", title: info.help },
        h("dt", {}, info.label), h("dd", {}, value, h("span", { class: "unit" }, info.unit)), h("p", { class: "note" }, info.help))));
    this.element.hidden = measures.length === 0;
    this.shownAt = -Infinity;
  }

  setValues(values: Record<string, number>, now: number): void {
    if (now - this.shownAt < UPDATE_EVERY) return;
    this.shownAt = now;
    for (const { info, value } of this.rows) {
      const given = info.name in values ? values[info.name] : NaN;
      setText(value, Number.isFinite(given) ? given.toFixed(info.digits) : "–");
    }
  }
}
