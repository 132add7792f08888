// Live parameters: a slider and a number for each, with its unit, its range and what it does.

import type { ParameterInfo } from "../protocol";
import { card, h, icon } from "./dom";
import { plain, sliderStep } from "./format";

const SEND_EVERY = 60; // [ms] while a slider moves
const OWN_VALUE_HOLDS = 600; // [ms] that frames may still carry the value before ours

export type SendParameter = (name: string, value: number) => void;

export class ParametersPanel {
  readonly element: HTMLElement;
  private readonly rows = h("div", { class: "parameters" });
  private fields: ParameterField[] = [];

  constructor(private readonly send: SendParameter) {
    this.element = card("Settings", true, null, this.rows);
  }

  setScene(parameters: ParameterInfo[]): void {
    this.fields = parameters.map((info) => new ParameterField(info, this.send));
    const none = h("p", { class: "note" }, "This scenario has nothing to set.");
    this.rows.replaceChildren(...(this.fields.length > 0 ? this.fields.map((field) => field.element) : [none]));
  }

  setValues(values: Record<string, number>, now: number): void {
    for (const field of this.fields) {
      if (field.info.name in values) field.show(values[field.info.name], now);
    }
  }
}

class ParameterField {
  readonly element: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly number: HTMLInputElement;
  private readonly back: HTMLButtonElement;
  private changedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly info: ParameterInfo, private readonly send: SendParameter) {
    const { name, label, unit, minimum, maximum, help } = info;
    const id = `parameter-${name}`;
    const step = sliderStep(minimum, maximum);
    const range = { min: minimum, max: maximum, step };
    this.slider = h("input", { type: "range", id, ...range, "aria-describedby": `${id}-help`, on: { input: () => this.slide() } });
    // Any value in the range may be typed; only the slider goes in steps.
    this.number = h("input", { type: "number", ...range, step: "any", "aria-label": `${label} in ${unit}`,
      on: { change: () => this.type() } });
    this.back = h("button", { type: "button", class: "round small", "aria-label": `${label}: back to ${plain(info.default)} ${unit}`,
      title: `Back to ${plain(info.default)} ${unit}`, on: { click: () => this.set(info.default) } }, icon("undo"));
    this.element = h("div", { class: "parameter", title: help },
      h("label", { for: id }, label),
      h("span", { class: "value" }, this.number, h("span", { class: "unit" }, unit), this.back),
      this.slider,
      h("span", { class: "range" }, h("span", {}, plain(minimum)), h("span", {}, plain(maximum))),
      h("p", { id: `${id}-help`, class: "note" }, help));
    this.display(info.default);
  }

  show(value: number, now: number): void {
    const busy = document.activeElement === this.number || now - this.changedAt < OWN_VALUE_HOLDS;
    if (!busy) this.display(value);
  }

  private slide(): void {
    const value = Number(this.slider.value);
    this.changedAt = performance.now();
    this.display(value);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.send(this.info.name, Number(this.slider.value));
    }, SEND_EVERY);
  }

  private type(): void {
    const { minimum, maximum } = this.info;
    const value = Number(this.number.value);
    const allowed = this.number.value !== "" && Number.isFinite(value);
    if (allowed) this.set(Math.min(maximum, Math.max(minimum, value)));
    else this.display(Number(this.slider.value));
  }

  private set(value: number): void {
    this.changedAt = performance.now();
    this.display(value);
    this.send(this.info.name, value);
  }

  private display(value: number): void {
    const { minimum, maximum } = this.info;
    if (Number(this.slider.value) !== value) this.slider.value = String(value);
    const text = plain(value);
    if (this.number.value !== text) this.number.value = text;
    this.slider.style.setProperty("--share", String((value - minimum) / (maximum - minimum)));
    // Server values went through float32; a last digit of difference is still the default.
    const atDefault = Math.abs(value - this.info.default) <= 1e-5 * (maximum - minimum);
    this.back.classList.toggle("hidden", atDefault);
  }
}
