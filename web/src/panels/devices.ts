// Haptic devices: whose hand holds which tool, what force it was made to feel, and why it feels none.

import type { HapticState } from "../protocol";
import { h, setText } from "./dom";

const WHY: Record<HapticState["mode"], string> = {
  running: "",
  late: "The force is fading: the simulation is slower than real time.",
  absent: "The device is away; plug it in again.",
  stalled: "No force: the simulation stands still.",
  broken: "No force: the simulation gave no valid one.",
  jumped: "No force: the tool jumped; it comes back slowly.",
  catching_up: "The force comes back slowly.",
};

/** What is worth a warning about a device, in a sentence; empty when all is well. */
export function warning(info: HapticState): string {
  return WHY[info.present ? info.mode : "absent"];
}

interface Row {
  element: HTMLElement;
  name: HTMLElement;
  force: HTMLElement;
  why: HTMLElement;
}

export class DeviceList {
  readonly element = h("div", { class: "devices", role: "status" });
  private rows: Row[] = [];

  setDevices(devices: HapticState[]): void {
    while (this.rows.length < devices.length) this.add();
    while (this.rows.length > devices.length) this.rows.pop()?.element.remove();
    devices.forEach((info, index) => {
      const row = this.rows[index];
      setText(row.name, `${info.device}, tool ${info.tool + 1}`);
      setText(row.force, `${Math.hypot(...info.force).toFixed(2)} N`);
      setText(row.why, warning(info));
      row.element.dataset.mode = info.present ? info.mode : "absent";
    });
  }

  private add(): void {
    const name = h("span", { class: "name" });
    const force = h("span", { class: "felt" });
    const why = h("div", { class: "why" });
    const element = h("div", { class: "device" }, h("div", { class: "line" }, name, force), why);
    this.rows.push({ element, name, force, why });
    this.element.append(element);
  }
}
