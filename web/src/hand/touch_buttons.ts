// Buttons for what one finger on the picture cannot do: along the shaft and about it. Another finger holds them meanwhile.

import { h } from "../panels/dom";
import type { Hand } from "./hand";
import { PUSH_SPEED, SPIN_SPEED } from "./keyboard";

/** Whether fingers are what there is. */
export const touchScreen = (): boolean => matchMedia("(pointer: coarse)").matches;

export class TouchButtons {
  readonly element = h("div", { class: "group", role: "group", "aria-label": "Along and about the shaft" });
  private push = 0;
  private spin = 0;

  constructor(private readonly hand: Pick<Hand, "push" | "turn">) {
    this.element.append(
      this.button("Deeper", (held) => (this.push = held)), this.button("Back", (held) => (this.push = -held)),
      this.button("Turn ↺", (held) => (this.spin = held)), this.button("Turn ↻", (held) => (this.spin = -held)));
  }

  /** Once per turn of the animation loop. */
  advance(seconds: number, now: number): void {
    if (this.push !== 0) this.hand.push(this.push * PUSH_SPEED * seconds, now);
    if (this.spin !== 0) this.hand.turn(this.spin * SPIN_SPEED * seconds, now);
  }

  /** `hold` gets 1 while it is held, 0 once it is not. */
  private button(word: string, hold: (held: number) => void): HTMLButtonElement {
    const made = h("button", { type: "button", class: "tool" }, h("span", {}, word));
    made.addEventListener("pointerdown", (event) => {
      made.setPointerCapture(event.pointerId);
      hold(1);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) made.addEventListener(name, () => hold(0));
    return made;
  }
}
