// What this scenario is and what to do in it, for someone who never saw it.

import type { SceneDescription } from "../protocol";
import { card, h } from "./dom";

const HANDS: [string, string][] = [
  ["Move", "the tip follows over the surface"],
  ["Left button", "hold to press, or to use an instrument that does something"],
  ["Wheel", "away from you: deeper; towards you: shallower"],
  ["Right button", "drag to look around"],
];
const FINGERS: [string, string][] = [
  ["One finger", "touch and hold to press, or to use the instrument"],
  ["Two fingers", "turn and zoom the view"],
];

export class Guide {
  readonly card: HTMLDetailsElement;
  private readonly summary = h("p", {}, "");
  private readonly steps = h("ol", { class: "steps" });
  private readonly title: HTMLElement;

  constructor(root: HTMLElement, open: boolean, help: () => void) {
    const hands = matchMedia("(pointer: coarse)").matches ? FINGERS : HANDS;
    const keys = h("dl", { class: "keys" }, ...hands.flatMap(([key, does]) => [h("dt", {}, key), h("dd", {}, does)]));
    const more = h("button", { type: "button", class: "link", on: { click: () => help() } }, "All controls and keys");
    this.card = card("Waiting for a scenario", open, null, this.summary, this.steps, h("h3", {}, "Your hand"), keys, more);
    this.title = this.card.querySelector("h2") ?? this.card;
    root.append(this.card);
  }

  setScene(scene: SceneDescription): void {
    this.title.textContent = scene.title;
    this.summary.textContent = scene.summary;
    const lines = scene.instructions.split("\n").map((line) => line.replace(/^\s*(\d+[.)]|[-•*])\s*/, "").trim());
    this.steps.replaceChildren(...lines.filter((line) => line !== "").map((line) => h("li", {}, line)));
  }
}
