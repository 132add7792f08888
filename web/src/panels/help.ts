// All controls on one page.

import { h, icon } from "./dom";

const SECTIONS: [string, [string, string][]][] = [
  ["Mouse", [
    ["Move", "The tip lies on the surface under the cursor"],
    ["Left button", "Press, with an instrument that does nothing else. Otherwise the pedal or handle: the tip touches the surface and works while you hold it"],
    ["Wheel", "Along the shaft: away from you is deeper; while pressing, how deep a press goes"],
    ["Right button, or Shift or Alt with the left", "Look around"],
    ["Shift or Alt with the wheel", "Nearer, farther"],
    ["Off the picture", "The instrument withdraws"],
  ]],
  ["Keys, everywhere but in a field", [
    ["← → ↑ ↓", "Move the tip; with a slider in focus, its value"],
    ["Space", "Press while held; with a button in focus, its click"],
    ["F", "Pedal or handle while held, as the left button"],
    ["Page Down, W", "Deeper along the shaft"],
    ["Page Up, S", "Back along the shaft"],
    ["Q E", "Turn the instrument about its shaft"],
    ["D", "Keep the depth: the tip goes straight across the view, beside and under tissue; D again: it follows surfaces"],
    ["Shift with ← → ↑ ↓", "Look around"],
    ["+ −", "Nearer, farther"],
    ["Home", "View as at the start"],
    ["1 – 9", "Choose an instrument"],
    ["Tab", "The other hand: this instrument stays where it is, the one left last moves"],
    ["Esc", "Withdraw the instruments"],
  ]],
  ["Session", [
    ["P", "Pause and resume"],
    [".", "One frame, while paused"],
    ["R", "Reset with the seed shown; settings and clock go on"],
    ["T", "Tissue or temperature, where there are burns"],
    ["?", "This page"],
  ]],
  ["Touch and gamepad", [
    ["One finger", "The tip; hold to press or to use the instrument"],
    ["Two fingers", "Turn, pinch to zoom"],
    ["Deeper, Back, Turn, below the picture", "Along and about the shaft, with another finger"],
    ["Left stick", "Move the tip"],
    ["Right trigger; A", "Pedal or handle; press"],
    ["Right stick", "Look around; along the shaft"],
  ]],
];

export class HelpDialog {
  private readonly dialog: HTMLDialogElement;

  constructor() {
    const sections = SECTIONS.map(([title, rows]) =>
      h("section", {}, h("h3", {}, title),
        h("dl", { class: "keys" }, ...rows.flatMap(([key, does]) => [h("dt", {}, key), h("dd", {}, does)]))));
    const close = h("button", { type: "button", class: "round", "aria-label": "Close", on: { click: () => this.dialog.close() } }, icon("close"));
    this.dialog = h("dialog", { class: "help", "aria-labelledby": "help-title" },
      h("header", {}, h("h2", { id: "help-title" }, "Controls"), close),
      h("div", { class: "help-sections" }, ...sections),
      h("p", { class: "note" },
        "The arrow at the tip and the chart show the force that the hand would feel. The instrument is drawn where the simulation has it."));
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
  }

  toggle(): void {
    if (this.dialog.open) this.dialog.close();
    else this.dialog.showModal();
  }
}
