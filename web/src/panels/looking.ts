// Where the eye is: presets of the camera, back to the first view, and the whole screen.

import type { Orbit } from "../orbit";
import { h, icon } from "./dom";

const PRESETS: [string, string, number, number][] = [
  ["Above", "From straight above", 0, 0],
  ["Left", "From the left", -Math.PI / 2, 1.1],
  ["Right", "From the right", Math.PI / 2, 1.1],
];

export class LookingPanel {
  private readonly full = h("button", { type: "button", title: "Whole screen", "aria-label": "Whole screen", on: { click: () => void toggleFull() } }, icon("grow"));

  constructor(root: HTMLElement, orbit: Orbit) {
    const presets = PRESETS.map(([word, title, azimuth, polar]) =>
      h("button", { type: "button", title, on: { click: () => orbit.lookFrom(azimuth, polar) } }, word));
    const home = h("button", { type: "button", title: "The first view (Home)", on: { click: () => orbit.reset() } }, "Front");
    root.append(h("div", { class: "group segmented looking", role: "group", "aria-label": "View" }, home, ...presets), h("div", { class: "group" }, this.full));
    document.addEventListener("fullscreenchange", () => this.full.replaceChildren(icon(document.fullscreenElement === null ? "grow" : "shrink")));
    this.full.hidden = !document.fullscreenEnabled;
  }
}

async function toggleFull(): Promise<void> {
  if (document.fullscreenElement === null) await document.documentElement.requestFullscreen();
  else await document.exitFullscreen();
}
