// What this scenario is and what to do in it, for someone who never saw it.

import { touchScreen } from "../hand/touch_buttons";
import type { Instrument, Scene } from "../protocol";
import { card, h } from "./dom";

type Row = [string, string];

/** What holding the main button does, by what the scene's instruments do. */
export function holding(instruments: Pick<Instrument, "action">[]): string {
  const does = instruments.filter(({ action }) => action !== "").length;
  if (does === 0) return "hold to press";
  return does === instruments.length ? "hold to use the instrument (its pedal or handle)" : "hold to press, or to use the instrument (its pedal or handle)";
}

const HANDS: Row[] = [
  ["Move", "the tip follows over the surface"],
  ["Left button", ""],
  ["Wheel", "away from you: deeper; towards you: shallower"],
  ["Right button", "drag to look around"],
];
const FINGERS: Row[] = [
  ["One finger", ""],
  ["Two fingers", "turn and zoom the view"],
  ["Deeper, Back", "buttons below the picture, with another finger: they stand for the wheel"],
  ["Turn ↺ ↻", "the same about the shaft: they stand for keys Q and E"],
];
/** For whoever reads steps that speak of mouse and keys. */
const FINGER_WORDS = "On a touch screen a finger is the pointer, and holding it is the left button. Keys 1 to 9 are the instruments below the picture.";

export class Guide {
  readonly card: HTMLDetailsElement;
  private readonly summary = h("p", {}, "");
  private readonly steps = h("ol", { class: "steps" });
  private readonly title: HTMLElement;
  private readonly main = h("dd", {}, "hold to press");

  constructor(root: HTMLElement, open: boolean, help: () => void) {
    const hands = touchScreen() ? FINGERS : HANDS;
    const keys = h("dl", { class: "keys" },
      ...hands.flatMap(([key, does]) => [h("dt", {}, key), does === "" ? this.main : h("dd", {}, does)]));
    const more = h("button", { type: "button", class: "link", on: { click: () => help() } }, "All controls and keys");
    this.card = card("Waiting for a scenario", open, h("span", { class: "aside" }, "What to do"), this.summary, this.steps,
      touchScreen() ? h("p", { class: "note" }, FINGER_WORDS) : null, h("h3", {}, "Your hand"), keys, h("div", { class: "foot" }, more));
    this.title = this.card.querySelector("h2") ?? this.card;
    root.append(this.card);
  }

  setScene(scene: Scene): void {
    this.title.textContent = scene.title;
    this.summary.textContent = scene.summary;
    this.main.textContent = holding(scene.instruments);
    const lines = scene.instructions.split("\n").map((line) => line.replace(/^\s*(\d+[.)]|[-•*])\s*/, "").trim());
    this.steps.replaceChildren(...lines.filter((line) => line !== "").map((line) => h("li", {}, line)));
  }
}
