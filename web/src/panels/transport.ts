// Pause, step, slow motion, reset with a seed.

import type { Control, SessionState } from "../protocol";
import { h, icon, setText } from "./dom";

const SPEEDS = [1, 0.5, 0.25, 0.1];
const LARGEST_SEED = 2 ** 31 - 1;

export type SendControl = (action: Control["action"], value?: number) => void;

export class Transport {
  private readonly pauseButton: HTMLButtonElement;
  private readonly pauseWord = h("span", {}, "Pause");
  private readonly stepButton: HTMLButtonElement;
  private readonly speeds: HTMLButtonElement[];
  private readonly seed: HTMLInputElement;
  private paused = false;

  constructor(root: HTMLElement, private readonly send: SendControl) {
    this.pauseButton = button("Pause (P)", () => this.togglePause(), icon("pause"), this.pauseWord);
    this.stepButton = button("One frame (.)", () => this.step(), icon("step"), h("span", {}, "Step"));
    this.stepButton.classList.add("step");
    this.speeds = SPEEDS.map((speed) => {
      const choice = button(`Speed ${speed} times real time`, () => this.send("speed", speed), `${speed}×`);
      choice.setAttribute("aria-pressed", String(speed === 1));
      return choice;
    });
    this.seed = h("input", { type: "number", id: "seed", min: 0, max: LARGEST_SEED, step: 1, value: 0,
      on: { change: () => this.setSeed(this.seedValue()), keydown: (event) => this.typed(event) } });
    root.append(
      h("div", { class: "group" }, this.pauseButton, this.stepButton),
      h("div", { class: "group segmented", role: "group", "aria-label": "Speed" }, ...this.speeds),
      h("div", { class: "group" },
        h("label", { for: "seed", title: "The same seed gives the same world; Enter starts it" }, "Seed"), this.seed,
        button("Start this scenario again with the seed (R); settings and clock go on", () => this.reset(), icon("reset"), h("span", {}, "Reset"))),
    );
  }

  setSeed(seed: number): void {
    this.seed.value = String(seed);
  }

  seedValue(): number {
    const value = Math.round(Number(this.seed.value));
    return Number.isFinite(value) ? Math.min(LARGEST_SEED, Math.max(0, value)) : 0;
  }

  setState(state: SessionState): void {
    this.paused = state.state === "paused";
    setText(this.pauseWord, this.paused ? "Resume" : "Pause");
    this.pauseButton.title = this.paused ? "Resume (P)" : "Pause (P)";
    this.pauseButton.replaceChild(icon(this.paused ? "play" : "pause"), this.pauseButton.children[0]);
    this.pauseButton.classList.toggle("primary", this.paused);
    this.stepButton.disabled = !this.paused;
    SPEEDS.forEach((speed, i) => this.speeds[i].setAttribute("aria-pressed", String(Math.abs(speed - state.speed) < 1e-6)));
  }

  togglePause(): void {
    this.send(this.paused ? "resume" : "pause");
  }

  step(): void {
    if (this.paused) this.send("step");
  }

  reset(): void {
    const seed = this.seedValue();
    this.setSeed(seed);
    this.send("reset", seed);
  }

  private typed(event: Event): void {
    if (!(event instanceof KeyboardEvent) || event.key !== "Enter") return;
    event.preventDefault();
    this.reset();
  }
}

function button(title: string, click: () => void, ...children: (Node | string)[]): HTMLButtonElement {
  return h("button", { type: "button", title, on: { click } }, ...children);
}
