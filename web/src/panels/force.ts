// What the hand feels: the number now, the strongest of the last ten seconds, and the chart.

import { StripChart } from "../chart";
import { ForceSound, forceColour, strength } from "../feel";
import type { Frame } from "../protocol";
import { DeviceList } from "./devices";
import { card, h, setText } from "./dom";

const REDRAW_EVERY = 50; // [ms]
const SPEAK_EVERY = 2000; // [ms] between new descriptions for a screen reader

export class ForcePanel {
  readonly element: HTMLDetailsElement;
  private readonly now = h("span", { class: "figure" }, "0.00");
  private readonly short = h("output", {}, "0.00 N");
  private readonly peak = h("span", {}, "0.00 N");
  private readonly scale = h("span", {}, "");
  private readonly stiffness = h("span", { class: "depth" }, "–");
  private readonly depth = h("span", { class: "depth" }, "");
  private readonly devices = new DeviceList();
  private readonly sound = new ForceSound();
  private readonly listen: HTMLButtonElement;
  private readonly heard = h("span", { class: "state" }, "off");
  private readonly chart: StripChart;
  private devicesSeen = false;
  private digits = 2;
  private drawnAt = 0;
  private spokenAt = 0;

  constructor() {
    const canvas = h("canvas", { class: "chart", role: "img", "aria-label": "Force over the last ten seconds" });
    this.chart = new StripChart(canvas, "N");
    const reading = h("div", { class: "reading" },
      h("div", {}, this.now, h("span", { class: "unit" }, "N")),
      h("div", { class: "small" }, h("div", {}, "peak, 10 s ", this.peak), h("div", {}, this.scale)));
    const press = h("div", { class: "press", title: "How deep a press goes along the shaft; the wheel changes it while you press" },
      h("span", {}, "Press"), this.depth);
    const stiffness = h("div", { class: "press", title: "Force over depth, while you press: higher where something hard lies below" },
      h("span", {}, "Stiffness"), this.stiffness);
    this.listen = h("button", { class: "listen", type: "button", role: "switch", "aria-checked": "false",
      title: "Hear the force, whose tone rises with it, and the generator", on: { click: () => this.toggleSound() } },
      "Sound", h("i", { class: "track", "aria-hidden": "true" }), this.heard);
    this.element = card("Force in the hand", true, h("span", { class: "aside" }, this.short), reading, canvas, press, stiffness, this.devices.element, this.listen);
    this.element.addEventListener("toggle", () => this.redraw());
    // Nobody listens to a page in the background.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && this.sound.on) this.toggleSound();
    });
  }

  /** Another scenario: `watched` where the force is what there is to watch. */
  begin(watched: boolean): void {
    this.element.open = watched || document.body.classList.contains("compared");
    this.digits = watched ? 3 : 2;
    this.devicesSeen = false;
  }

  /** Depths in metres, shown in millimetres. */
  setHand(pressDepth: number, pushed: number, reach: number): void {
    const mm = (metres: number) => (metres * 1000).toFixed(1);
    const shaft = Math.abs(reach) > 5e-5 ? `, shaft ${reach > 0 ? "+" : "−"}${mm(Math.abs(reach))} mm` : "";
    setText(this.depth, `${mm(pushed)} of ${mm(pressDepth)} mm${shaft}`);
  }

  /** In N/m, shown in newtons per millimetre; null while nothing is pressed. */
  setStiffness(stiffness: number | null): void {
    setText(this.stiffness, stiffness === null ? "–" : `${(stiffness / 1000).toFixed(this.digits + 1)} N/mm`);
  }

  private toggleSound(): void {
    if (this.sound.on) this.sound.switchOff();
    else this.sound.switchOn();
    setText(this.heard, this.sound.on ? "on" : "off");
    this.listen.setAttribute("aria-checked", String(this.sound.on));
  }

  /** A paused world pushes nobody. */
  hush(): void {
    this.sound.setForce(0);
    this.sound.setBuzz(false);
  }

  /** `current`: an electric instrument works. */
  setFrame(frame: Frame, current: boolean, arrowScale: number, now: number): void {
    this.sound.setBuzz(current);
    const force = Math.max(0, ...frame.tools.map((tool) => (tool.active ? Math.hypot(...tool.force) : 0)));
    this.chart.add(frame.time, force);
    this.sound.setForce(force);
    if (now - this.drawnAt < REDRAW_EVERY) return;
    this.drawnAt = now;
    setText(this.now, force.toFixed(this.digits));
    setText(this.short, `${force.toFixed(this.digits)} N`);
    document.body.style.setProperty("--force-colour", forceColour(force));
    document.body.style.setProperty("--force-strength", strength(force).toFixed(2));
    this.devices.setDevices(frame.haptics);
    if (frame.haptics.length > 0 && !this.devicesSeen) {
      // Whoever holds a device should see how it does.
      this.devicesSeen = true;
      this.element.open = true;
    }
    setText(this.peak, `${this.chart.peak().toFixed(this.digits)} N`);
    setText(this.scale, `arrow ${Math.round(arrowScale * 1000)} mm per N`);
    this.chart.draw();
    if (now - this.spokenAt < SPEAK_EVERY) return;
    this.spokenAt = now;
    this.chart.canvas.setAttribute("aria-label",
      `Force over the last ten seconds: now ${force.toFixed(2)} newtons, peak ${this.chart.peak().toFixed(2)} newtons`);
  }

  redraw(): void {
    this.chart.draw();
  }

  forget(): void {
    this.chart.clear();
    this.chart.draw();
  }
}
