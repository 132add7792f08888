// A gamepad in the standard layout: left stick moves the tip, right stick turns the view and goes along the shaft,
// the right trigger closes the handle (or presses), A presses.

import type { Orbit } from "../orbit";
import type { Hand } from "./hand";
import type { KeyboardView } from "./keyboard";

const DEAD = 0.15; // sticks rest a little off their middle
const SPEED = 0.06; // [m/s] at full deflection
const PUSH_SPEED = 0.02; // [m/s]
const TURN_SPEED = 1.6; // [rad/s]
const A_BUTTON = 0;
const RIGHT_TRIGGER = 7;

/** 0 in the dead zone, then smoothly to ±1. */
export function deflection(axis: number): number {
  const beyond = Math.abs(axis) - DEAD;
  return beyond <= 0 ? 0 : (Math.sign(axis) * beyond) / (1 - DEAD);
}

export class GamepadHand {
  private pressing = false;

  constructor(private readonly hand: Hand, private readonly orbit: Orbit, private readonly view: KeyboardView) {}

  advance(seconds: number, now: number): void {
    const pad = navigator.getGamepads().find((candidate) => candidate?.mapping === "standard");
    if (pad === null || pad === undefined) return;
    const [x, y, turn, push] = pad.axes.map(deflection);
    if (x !== 0 || y !== 0) {
      const from = this.hand.cursor ?? this.view.centre();
      const step = SPEED * seconds * this.view.pixelsPerMetre();
      this.hand.moveTo({ x: from.x + x * step, y: from.y + y * step }, now);
    }
    if (turn !== 0) this.orbit.turn(turn * TURN_SPEED * seconds, 0);
    if (push !== 0) this.hand.push(-push * PUSH_SPEED * seconds, now);
    const grip = pad.buttons[RIGHT_TRIGGER].value;
    const press = pad.buttons[A_BUTTON].value;
    const using = Math.max(grip, press) > 0.1;
    if (grip > 0.1) this.hand.use(grip, now);
    if (press > 0.1) this.hand.press(press, now);
    if (!using && this.pressing) this.hand.release();
    this.pressing = using;
  }
}
