// How much detail the world has, and the choice of another, which starts it anew.

import type { SceneDescription } from "../protocol";
import { h, setText } from "./dom";

const CHOICES = ["auto", "0.5", "1", "2", "4"];

export class DetailChip {
  readonly element: HTMLElement;
  private readonly used = h("span", { class: "detail-used" }, "");
  private readonly select: HTMLSelectElement;
  private asked = "";

  constructor(private readonly choose: (detail: string) => void) {
    this.select = h("select", { "aria-label": "Detail", on: { change: () => this.chosen() } });
    this.element = h("label", { class: "chip detail-chip" }, "Detail", this.select, this.used);
    this.element.hidden = true;
  }

  setScene({ scene, detail }: SceneDescription): void {
    this.asked = detail || String(scene.detail);
    const offered = CHOICES.includes(this.asked) ? CHOICES : [...CHOICES, this.asked];
    this.select.replaceChildren(...offered.map((choice) => h("option", { value: choice }, choice)));
    this.select.value = this.asked;
    const automatic = this.asked === "auto";
    setText(this.used, automatic ? String(scene.detail) : "");
    this.element.title = describe(scene.detail, scene.masses, automatic);
    this.element.hidden = false;
  }

  private chosen(): void {
    const detail = this.select.value;
    // What is shown is what runs: until the new world is there, that is the old one.
    this.select.value = this.asked;
    this.select.blur();
    this.choose(detail);
  }
}

function describe(detail: number, masses: number, automatic: boolean): string {
  const why = automatic ? "as many as this machine carries in real time" : "as was asked for";
  const count = masses > 0 ? ` ${masses.toLocaleString("en")} masses.` : "";
  return `${detail} times the scenario's masses, texels and particles, ${why}.${count} Choosing starts it anew for everyone who watches.`;
}
