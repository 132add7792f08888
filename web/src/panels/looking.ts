// Where the eye is: presets of the camera, back to the first view, and the whole screen.

import type { Orbit } from "../orbit";
import { h, icon } from "./dom";

const PRESETS: [string, number, number][] = [["From above", 0, 0], ["From the left", -Math.PI / 2, 1.1], ["From the right", Math.PI / 2, 1.1]];

export class LookingPanel {
  private readonly menu: HTMLDetailsElement;

  /** Goes in front of the last of the header's chips. */
  constructor(header: HTMLElement, orbit: Orbit) {
    const button = (word: string, run: () => void) => h("button", { type: "button", on: { click: () => this.choose(run) } }, word);
    const full = button("Whole screen", () => void toggleFull());
    full.hidden = !document.fullscreenEnabled;
    const list = h("div", { class: "looking-list" }, button("First view", () => orbit.reset()),
      ...PRESETS.map(([word, azimuth, polar]) => button(word, () => orbit.lookFrom(azimuth, polar))), full);
    this.menu = h("details", { class: "menu looking" }, h("summary", { class: "round", "aria-label": "View", title: "View" }, icon("grow")), list);
    const chips = header.querySelector(".chips") ?? header;
    chips.insertBefore(this.menu, chips.lastElementChild);
    document.addEventListener("fullscreenchange", () => (full.textContent = document.fullscreenElement === null ? "Whole screen" : "Back to the window"));
    document.addEventListener("pointerdown", (event) => {
      if (event.target instanceof Node && !this.menu.contains(event.target)) this.menu.open = false;
    });
  }

  private choose(run: () => void): void {
    this.menu.open = false;
    run();
  }
}

async function toggleFull(): Promise<void> {
  if (document.fullscreenElement === null) await document.documentElement.requestFullscreen();
  else await document.exitFullscreen();
}
