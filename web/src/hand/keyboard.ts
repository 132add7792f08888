// Keys, for the hand and for the session, everywhere but in a field. A focused button or slider keeps what it needs itself.

import type { Orbit } from "../orbit";
import type { Hand } from "./hand";
import type { ScreenPoint } from "./reach";

const SPEED = 0.045; // [m/s] of the tip over the surface
export const PUSH_SPEED = 0.015; // [m/s] along the shaft
const TURN_SPEED = 1.4; // [rad/s]
export const SPIN_SPEED = 1.8; // [rad/s] of the instrument about its shaft
const ZOOM_SPEED = 1.2; // e-folds per second

export interface SessionKeys {
  pause(): void;
  step(): void;
  reset(): void;
  help(): void;
  /** Tissue or temperature. */
  heat(): void;
  closeAll(): void;
}

export interface KeyboardView {
  /** Pixels that one metre takes where the tip is. */
  pixelsPerMetre(): number;
  centre(): ScreenPoint;
}

const HAND_KEYS = new Set([
  "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "KeyW", "KeyS", "KeyQ", "KeyE", "KeyF", "Space", "Equal",
  "Minus", "NumpadAdd", "NumpadSubtract",
]);

export class Keyboard {
  private readonly held = new Set<string>();
  private shift = false;

  constructor(
    private readonly hand: Hand,
    private readonly orbit: Orbit,
    private readonly view: KeyboardView,
    session: SessionKeys,
    private readonly choose: (tool: number) => void,
    /** The other hand moves its instrument now. */
    private readonly swap: () => void,
  ) {
    window.addEventListener("keydown", (event) => {
      this.shift = event.shiftKey;
      if (event.ctrlKey || event.metaKey || inField(event.target)) return;
      if (sessionKey(event, session)) return;
      if (!ownKey(event)) this.down(event);
    });
    window.addEventListener("keyup", (event) => {
      this.shift = event.shiftKey;
      if (this.held.delete(event.code) && (event.code === "Space" || event.code === "KeyF")) hand.release();
    });
    window.addEventListener("blur", () => {
      this.held.clear();
      hand.release();
    });
  }

  advance(seconds: number, now: number): void {
    if (this.held.size === 0) return;
    const on = (...codes: string[]) => (codes.some((code) => this.held.has(code)) ? 1 : 0);
    const right = on("ArrowRight") - on("ArrowLeft");
    const down = on("ArrowDown") - on("ArrowUp");
    if (this.shift) {
      this.orbit.turn(right * TURN_SPEED * seconds, -down * TURN_SPEED * seconds);
    } else if (right !== 0 || down !== 0) {
      const step = SPEED * seconds * this.view.pixelsPerMetre();
      const from = this.hand.cursor ?? this.view.centre();
      this.hand.moveTo({ x: from.x + right * step, y: from.y + down * step }, now);
    }
    const deeper = on("PageDown", "KeyW") - on("PageUp", "KeyS");
    if (deeper !== 0) this.hand.push(deeper * PUSH_SPEED * seconds, now);
    const spin = on("KeyQ") - on("KeyE");
    if (spin !== 0) this.hand.turn(spin * SPIN_SPEED * seconds, now);
    const nearer = on("Equal", "NumpadAdd") - on("Minus", "NumpadSubtract");
    if (nearer !== 0) this.orbit.zoom(Math.exp(-nearer * ZOOM_SPEED * seconds));
  }

  private down(event: KeyboardEvent): void {
    if (event.code === "Escape") {
      this.hand.withdraw();
      this.hand.withdrawLeft();
    }
    else if (event.code === "Home") this.orbit.reset();
    else if (event.code === "Tab" && this.overPicture(event)) this.swap();
    else if (event.code === "KeyD") this.keepDepth(event);
    else if (/^Digit[1-9]$/.test(event.code)) this.choose(Number(event.code.slice(5)) - 1);
    else if (HAND_KEYS.has(event.code)) this.hold(event);
    else return;
    event.preventDefault();
  }

  /** Whether a hand is at work in the picture; else Tab goes from one control to the next, as everywhere. */
  private overPicture({ target, shiftKey }: KeyboardEvent): boolean {
    const here = target === document.body || target instanceof HTMLCanvasElement;
    return here && !shiftKey && this.hand.cursor !== null;
  }

  private keepDepth({ repeat, timeStamp }: KeyboardEvent): void {
    if (!repeat) this.hand.keepDepth(!this.hand.keepsDepth(), timeStamp);
  }

  private hold(event: KeyboardEvent): void {
    if (event.repeat) return;
    this.held.add(event.code);
    if (event.code !== "Space" && event.code !== "KeyF") return;
    if (this.hand.cursor === null) this.hand.moveTo(this.view.centre(), event.timeStamp);
    if (event.code === "Space") this.hand.press(1, event.timeStamp);
    else this.hand.use(1, event.timeStamp);
  }
}

function sessionKey(event: KeyboardEvent, session: SessionKeys): boolean {
  if (event.altKey) return false;
  if (event.key === "p" || event.key === "P") session.pause();
  else if (event.key === ".") session.step();
  else if (event.key === "r" || event.key === "R") session.reset();
  else if (event.key === "?") session.help();
  else if (event.key === "t" || event.key === "T") session.heat();
  else {
    if (event.key === "Escape") session.closeAll();
    return false;
  }
  event.preventDefault();
  return true;
}

const SLIDER_KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

/** Whether what has the focus needs the key itself: a slider moves, a button or summary is pressed, a dialog is read. */
function ownKey({ code, target }: KeyboardEvent): boolean {
  if (document.querySelector("dialog[open]") !== null) return true;
  if (!(target instanceof Element)) return false;
  if (target instanceof HTMLInputElement && target.type === "range") return SLIDER_KEYS.has(code);
  return code === "Space" && target.closest("button, summary, a, input") !== null;
}

function inField(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "range" && target.type !== "checkbox";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
