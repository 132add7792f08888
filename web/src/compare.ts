// Two recordings side by side: each in a page of its own, with its force and its measures below the picture, and one bar that moves both.
//
// The address is `?watch=A&beside=B`. Times count from where each run's first drill began, so that what is compared is the
// same second of the same task; without drills, from the beginning.

import { h, icon, setText } from "./panels/dom";
import { clock } from "./panels/format";
import { SPEEDS, trialsOf, type Summary } from "./panels/recordings";
import type { Handle } from "./handle";
import { FRAME } from "./protocol";

const LOOK_EVERY = 200; // [ms]

interface Side {
  frame: HTMLIFrameElement;
  handle: () => Handle | undefined;
  /** Whose run it is and how it went. */
  title: HTMLElement;
  /** What of it is seen now. */
  source: HTMLElement;
}

/** Addresses of the two pages: the second one watches in a room of its own. */
export function sidesOf(address: string): [string, string] {
  const first = new URL(address);
  const other = first.searchParams.get("beside") ?? "";
  first.searchParams.delete("beside");
  first.searchParams.set("compared", "1");
  const second = new URL(first);
  second.searchParams.set("watch", other);
  second.searchParams.set("room", "beside");
  second.searchParams.delete("at");
  return [first.href, second.href];
}

export class Compare {
  private readonly sides: Side[];
  private readonly slider = h("input", { type: "range", min: 0, max: 1, step: FRAME, value: 0, "aria-label": "Time of both runs", on: { input: () => this.dragged() } });
  private readonly time = h("output", { class: "drill-time" }, clock(0));
  private readonly play = h("button", { type: "button", on: { click: () => this.toggle() } }, "Pause both");
  private readonly speeds = SPEEDS.map((speed) => h("button", { type: "button", "aria-pressed": String(speed === 1), on: { click: () => this.setSpeed(speed) } }, `${speed}×`));
  private heldUntil = 0;
  private paused = false;
  /** Whether both were there once: then they play, whatever those who watched before left them at. */
  private begun = false;

  constructor(root: HTMLElement, address: string) {
    this.sides = sidesOf(address).map((src) => {
      const name = new URL(src).searchParams.get("watch") ?? "";
      const frame = h("iframe", { src, title: name });
      return { frame, handle: () => frame.contentWindow?.viscera, title: h("div", { class: "compare-title" }, h("b", {}, name)), source: h("span", { class: "note" }, "") };
    });
    const one = new URL(address);
    one.searchParams.delete("beside");
    one.searchParams.set("at", one.searchParams.get("back") ?? one.searchParams.get("at") ?? "0");
    one.searchParams.delete("back");
    const alone = h("a", { href: one.href, class: "round", "aria-label": "Close", title: "The first recording alone" }, icon("close"));
    root.className = "compare";
    root.replaceChildren(
      h("header", { class: "compare-bar" }, icon("beside"), this.time, this.slider, this.play,
        h("div", { class: "choices", role: "group", "aria-label": "Speed of both" }, ...this.speeds), alone),
      h("div", { class: "compare-sides" }, ...this.sides.map(({ frame, title, source }) =>
        h("figure", { class: "compare-side" }, h("figcaption", {}, title, source), frame))),
    );
    void this.describe();
    setInterval(() => this.look(), LOOK_EVERY);
  }

  /** Whose runs they are, as the list of recordings has it. */
  private async describe(): Promise<void> {
    const answer = await fetch("./api/recordings").catch(() => null);
    const found = answer?.ok === true ? ((await answer.json()) as Summary[]) : [];
    for (const { frame, title } of this.sides) {
      const one = found.find(({ name }) => name === frame.title);
      if (one === undefined) continue;
      const words = [one.title, ...(one.trainees.length === 0 ? [] : [one.trainees.join(", ")]), new Date(one.created).toLocaleString()];
      title.replaceChildren(h("b", {}, words.join(" · ")), ...trialsOf(one));
    }
  }

  /** How far both go [s], from where their drills began. */
  private look(): void {
    const watched = this.sides.map(({ handle }) => handle()?.watched() ?? null);
    const lengths = watched.map((one) => (one === null ? 0 : one.seconds - one.begin));
    this.slider.max = String(Math.max(...lengths, FRAME));
    watched.forEach((one, i) => setText(this.sides[i].source, one === null ? "" : `of ${clock(Math.max(0, one.seconds - one.begin))}, ${one.source}`));
    if (!this.begun && watched.every((one) => one !== null)) {
      this.begun = true;
      for (const { handle } of this.sides) {
        handle()?.speed(1);
        handle()?.pause(false);
      }
    }
    const first = this.sides[0].handle();
    const shown = watched[0];
    if (first?.frame == null || shown === null || performance.now() < this.heldUntil) return;
    this.slider.value = String(first.frame.time - shown.begin);
    this.fill();
    setText(this.time, clock(Math.max(0, Number(this.slider.value))));
  }

  private dragged(): void {
    this.heldUntil = performance.now() + 1000;
    const at = Number(this.slider.value);
    setText(this.time, clock(at));
    this.fill();
    for (const { handle } of this.sides) {
      const one = handle()?.watched() ?? null;
      if (one !== null) handle()?.seek(Math.min(one.seconds, one.begin + at));
    }
  }

  private fill(): void {
    this.slider.style.setProperty("--share", String(Number(this.slider.value) / Number(this.slider.max)));
  }

  private toggle(): void {
    this.paused = !this.paused;
    setText(this.play, this.paused ? "Play both" : "Pause both");
    for (const { handle } of this.sides) handle()?.pause(this.paused);
  }

  private setSpeed(speed: number): void {
    SPEEDS.forEach((one, i) => this.speeds[i].setAttribute("aria-pressed", String(one === speed)));
    for (const { handle } of this.sides) handle()?.speed(speed);
  }
}
