// What a hand does in a second picture: dragging changes parameters (a C-arm turns), a click marks a place, and a foot pedal is held.

import type { Drag, Parameter, Picture } from "../protocol";
import { h } from "./dom";

const CLICK_WITHIN = 5; // [px] that a press may move and still be a click
const SEND_EVERY = 50; // [ms] while a drag goes on
const OWN_VALUE_HOLDS = 600; // [ms] that frames may still carry the values before ours
export const PEDAL_KEY = "b";

export interface PictureEvents {
  set(name: string, value: number): void;
  rows(name: string, rows: number[][]): void;
}

/** Parameters after a drag by `dx` to the right and `dy` upwards, both as shares of the picture's side. */
export function dragged(drag: Drag, from: Record<string, number>, ranges: Parameter[], dx: number, dy: number): [string, number][] {
  const moved = (name: string, share: number): [string, number] => {
    const range = ranges.find((one) => one.name === name);
    const value = Math.round(10 * ((name in from ? from[name] : range?.default ?? 0) + share * drag.span)) / 10;
    return [name, range === undefined ? value : Math.min(range.maximum, Math.max(range.minimum, value))];
  };
  return [moved(drag.across, dx), moved(drag.up, dy)];
}

/** One sentence for people: what the buttons do in it. */
export function handsHelp({ drags, marks, pedal }: Picture): string {
  const ways = ["Drag", "Right button or Shift", "Middle button or Alt"];
  const parts = [
    ...drags.slice(0, ways.length).map(({ label }, number) => `${ways[number]}: ${label}.`),
    marks === "" ? "" : "Click: mark what you see.", pedal === "" ? "" : `Hold the pedal or ${PEDAL_KEY.toUpperCase()}: beam.`,
  ];
  return parts.filter((text) => text !== "").join(" ");
}

interface Press {
  readonly x: number;
  readonly y: number;
  readonly from: Record<string, number>;
  readonly drag: Drag | undefined;
  moved: boolean;
}

export class PictureHands {
  /** The foot pedal, null where the picture has none. */
  readonly pedal: HTMLButtonElement | null;
  private values: Record<string, number> = {};
  private own: Record<string, number> = {};
  private changedAt = -Infinity;
  private sentAt = -Infinity;
  private press: Press | null = null;
  private down = false;

  constructor(
    private readonly info: Picture, private readonly canvas: HTMLCanvasElement, private readonly ranges: Parameter[],
    private readonly events: PictureEvents,
  ) {
    this.pedal = info.pedal === "" ? null : this.makePedal();
    if (info.drags.length === 0 && info.marks === "") return;
    canvas.classList.add("handled");
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event, false));
    canvas.addEventListener("pointerup", (event) => this.end(event));
    canvas.addEventListener("pointercancel", () => (this.press = null));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  /** What is in force; a drag begins from there. */
  setValues(values: Record<string, number>, now: number): void {
    this.values = now - this.changedAt < OWN_VALUE_HOLDS ? { ...values, ...this.own } : values;
    this.show();
  }

  setPedal(down: boolean): void {
    if (this.pedal === null || down === this.down) return;
    this.down = down;
    this.set([[this.info.pedal, down ? 1 : 0]]);
    this.show();
  }

  private makePedal(): HTMLButtonElement {
    const up = () => this.setPedal(false);
    const pedal = h("button", { type: "button", class: "pedal", title: `Hold it for a beam (or hold ${PEDAL_KEY.toUpperCase()})`, "aria-pressed": "false" },
      h("span", { class: "lamp" }), "Pedal");
    pedal.addEventListener("pointerdown", (event) => {
      pedal.setPointerCapture(event.pointerId);
      this.setPedal(true);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) pedal.addEventListener(name, up);
    pedal.addEventListener("keydown", ({ code, repeat }) => {
      if ((code === "Space" || code === "Enter") && !repeat) this.setPedal(true);
    });
    pedal.addEventListener("keyup", up);
    return pedal;
  }

  private show(): void {
    const lit = this.down || (this.values[this.info.pedal] ?? 0) > 0.5;
    this.pedal?.setAttribute("aria-pressed", String(lit));
  }

  private begin(event: PointerEvent): void {
    const drag = this.info.drags.at(event.button === 1 || event.altKey ? 2 : event.button === 2 || event.shiftKey ? 1 : 0);
    this.press = { x: event.clientX, y: event.clientY, from: { ...this.values }, drag, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  private move(event: PointerEvent, last: boolean): void {
    const { press } = this;
    if (press === null) return;
    const box = this.canvas.getBoundingClientRect();
    const [dx, dy] = [event.clientX - press.x, press.y - event.clientY];
    press.moved ||= Math.hypot(dx, dy) > CLICK_WITHIN;
    const due = last || event.timeStamp - this.sentAt >= SEND_EVERY;
    if (!press.moved || press.drag === undefined || !due) return;
    this.sentAt = event.timeStamp;
    this.set(dragged(press.drag, press.from, this.ranges, dx / box.width, dy / box.height));
  }

  private end(event: PointerEvent): void {
    this.move(event, true);
    const { press } = this;
    this.press = null;
    if (press === null || press.moved || this.info.marks === "" || event.button !== 0) return;
    const box = this.canvas.getBoundingClientRect();
    const share = (value: number) => Math.min(1, Math.max(0, value));
    const place = [share((event.clientX - box.left) / box.width), share(1 - (event.clientY - box.top) / box.height)];
    this.events.rows(this.info.marks, [[...place, 1 + (Date.now() % 1e8)]]);
  }

  private set(values: [string, number][]): void {
    this.changedAt = performance.now();
    for (const [name, value] of values) {
      this.own[name] = this.values[name] = value;
      this.events.set(name, value);
    }
  }
}
