// Two recordings side by side: each in a page of its own, with its force chart, and one bar that moves both.
//
// The address is `?watch=A&beside=B`. Times count from where each run's first drill began, so that what is compared is the
// same second of the same task; without drills, from the beginning.

import { h, icon, setText } from "./panels/dom";
import { clock } from "./panels/format";
import type { Handle } from "./handle";
import { FRAME } from "./protocol";

const LOOK_EVERY = 200; // [ms]

interface Side {
  frame: HTMLIFrameElement;
  handle: () => Handle | undefined;
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
  private readonly play: HTMLButtonElement;
  private heldUntil = 0;
  private paused = false;

  constructor(root: HTMLElement, address: string) {
    this.sides = sidesOf(address).map((src) => {
      const frame = h("iframe", { src, title: new URL(src).searchParams.get("watch") ?? "" });
      return { frame, handle: () => frame.contentWindow?.viscera };
    });
    this.play = h("button", { type: "button", on: { click: () => this.toggle() } }, "Pause both");
    const one = new URL(address);
    one.searchParams.delete("beside");
    const alone = h("a", { href: one.href }, "Close");
    root.className = "compare";
    root.replaceChildren(
      h("header", { class: "compare-bar" }, icon("beside"), this.time, this.slider, this.play, alone),
      h("div", { class: "compare-sides" }, ...this.sides.map(({ frame }) => frame)),
    );
    setInterval(() => this.look(), LOOK_EVERY);
  }

  /** How far both go [s], from where their drills began. */
  private look(): void {
    const watched = this.sides.map(({ handle }) => handle()?.watched() ?? null);
    const lengths = watched.map((one) => (one === null ? 0 : one.seconds - one.begin));
    this.slider.max = String(Math.max(...lengths, FRAME));
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
}
