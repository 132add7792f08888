// Live parameters under their headings: a slider and a number for a quantity, buttons for a choice, with what it does.

import type { Parameter } from "../protocol";
import { card, h, icon } from "./dom";
import { Folds } from "./folds";
import { plain, sliderStep } from "./format";

const SEND_EVERY = 60; // [ms] while a slider moves
const OWN_VALUE_HOLDS = 600; // [ms] that frames may still carry the value before ours
const ADVANCED = "Advanced"; // view/settings.py has the same word
const OPEN_AT_FIRST = 2; // headings

export type SendParameter = (name: string, value: number) => void;

interface Field {
  readonly info: Parameter;
  readonly element: HTMLElement;
  show(value: number, now: number): void;
}

export interface Group {
  /** Empty for what stands under no heading. */
  title: string;
  parameters: Parameter[];
  open: boolean;
}

/** Headings in the order of their first parameter, `Advanced` last; only the first ones are open. */
export function groups(parameters: Parameter[]): Group[] {
  const titles = [...new Set(parameters.map(({ group }) => group))];
  const place = (title: string) => (title === "" ? -1 : title === ADVANCED ? titles.length : titles.indexOf(title));
  titles.sort((one, other) => place(one) - place(other));
  const headings = titles.filter((title) => title !== "");
  return titles.map((title) => ({
    title, parameters: parameters.filter(({ group }) => group === title),
    open: title !== ADVANCED && headings.indexOf(title) < OPEN_AT_FIRST,
  }));
}

export class ParametersPanel {
  readonly element: HTMLElement;
  private readonly rows = h("div", { class: "parameters" });
  private fields: Field[] = [];

  constructor(private readonly send: SendParameter) {
    this.element = card("Settings", true, null, this.rows);
  }

  setScene(scenario: string, parameters: Parameter[]): void {
    this.fields = [];
    const folds = new Folds(`viscera.settings.${scenario}`);
    const parts = groups(parameters).flatMap((group) => this.section(group, folds));
    const none = h("p", { class: "note" }, "This scenario has nothing to set.");
    this.rows.replaceChildren(...(parts.length > 0 ? parts : [none]));
  }

  setValues(values: Record<string, number>, now: number): void {
    for (const field of this.fields) {
      if (field.info.name in values) field.show(values[field.info.name], now);
    }
  }

  private section({ title, parameters, open }: Group, folds: Folds): HTMLElement[] {
    const fields = parameters.map((info) =>
      info.choices.length > 0 ? new ChoiceField(info, this.send) : new ParameterField(info, this.send));
    this.fields.push(...fields);
    const elements = fields.map((field) => field.element);
    if (title === "") return elements;
    const section = h("details", { class: "settings-group", open: folds.get(title, open) },
      h("summary", {}, h("h3", {}, title), icon("chevron")), h("div", { class: "parameters" }, ...elements));
    section.addEventListener("toggle", () => {
      // It comes once for a section that is made open, too.
      if (section.open !== folds.get(title, open)) folds.set(title, section.open);
    });
    return [section];
  }
}

/** One of a few things: a row of buttons, the chosen one pressed. */
class ChoiceField implements Field {
  readonly element: HTMLElement;
  private readonly buttons: HTMLButtonElement[];
  private changedAt = -Infinity;

  constructor(readonly info: Parameter, private readonly send: SendParameter) {
    const { name, label, help, choices } = info;
    const id = `parameter-${name}`;
    this.buttons = choices.map((choice, value) => h("button", { type: "button", on: { click: () => this.set(value) } }, choice));
    this.element = h("div", { class: "parameter choice", title: help },
      h("span", { class: "name", id }, label),
      h("div", { class: "choices", role: "group", "aria-labelledby": id, "aria-describedby": `${id}-help` }, ...this.buttons),
      h("p", { id: `${id}-help`, class: "note" }, help));
    this.display(info.default);
  }

  show(value: number, now: number): void {
    if (now - this.changedAt >= OWN_VALUE_HOLDS) this.display(value);
  }

  private set(value: number): void {
    this.changedAt = performance.now();
    this.display(value);
    this.send(this.info.name, value);
  }

  private display(value: number): void {
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === Math.round(value))));
  }
}

class ParameterField implements Field {
  readonly element: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly number: HTMLInputElement;
  private readonly back: HTMLButtonElement;
  private changedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly info: Parameter, private readonly send: SendParameter) {
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
