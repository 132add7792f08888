// Which instrument is in the hand, and what of the tissue is shown. Below the picture, where there is a choice.

import { HEAT_STOPS, heatGradient, heatPlace } from "../look/heat_colours";
import type { Instrument, Scene } from "../protocol";
import { h, icon } from "./dom";

/** Marks of the temperature legend [°C]. */
const MARKS = [37, 60, 100, 150, 200, 300];

/** More instruments than this have narrow buttons, so that they fit between the panels. */
const MANY = 6;

export interface ToolbarEvents {
  choose(tool: number): void;
  heat(shown: boolean): void;
}

/** As people call it. */
export function instrumentLabel({ label, name }: Pick<Instrument, "name" | "label">): string {
  if (label !== "") return label;
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

export class Toolbar {
  private buttons: HTMLButtonElement[] = [];
  private readonly tools = h("div", { class: "group", role: "group", "aria-label": "Instrument in the hand" });
  private readonly heat: HTMLButtonElement;
  private readonly view: HTMLElement;
  private readonly legend: HTMLElement;
  private heatShown = false;
  private hasBurn = false;

  /** `touch` are buttons for fingers, where those are what there is. */
  constructor(private readonly root: HTMLElement, private readonly events: ToolbarEvents, private readonly touch: HTMLElement | null = null) {
    this.heat = h("button", { type: "button", class: "tool", "aria-pressed": "false", title: "Show the temperature (T)",
      on: { click: () => this.toggleHeat() } }, icon("heat"), h("span", {}, "Temperature"), h("kbd", {}, "T"));
    this.view = h("div", { class: "group", role: "group", "aria-label": "View" }, this.heat);
    this.legend = h("div", { class: "legend", role: "img", "aria-label": "Colours of the temperature, 37 to 300 °C" },
      h("i", { class: "legend-bar" }), h("div", { class: "legend-marks" }, ...MARKS.map(mark)));
    root.append(this.legend, this.tools, this.view);
    if (touch !== null) root.append(touch);
    this.legend.style.setProperty("--gradient", heatGradient());
    this.legend.hidden = true;
  }

  /** `again`: the same scene on a new line; what is shown stays. */
  setScene(scene: Scene, chosen: number, again: boolean): void {
    this.buttons = scene.instruments.map((info, tool) => this.button(info, tool));
    this.tools.replaceChildren(...this.buttons);
    this.hasBurn = scene.textures.some((texture) => texture.role === "burn");
    this.tools.hidden = scene.instruments.length < 2;
    this.root.classList.toggle("many", scene.instruments.length > MANY);
    this.view.hidden = !this.hasBurn;
    if (this.touch !== null) this.touch.hidden = scene.instruments.length === 0;
    this.root.hidden = this.tools.hidden && this.view.hidden && (this.touch === null || this.touch.hidden);
    // False colours hide blood; who starts something new sees it as it is.
    this.setHeat(again && this.heatShown && this.hasBurn);
    this.show(chosen);
  }

  show(chosen: number): void {
    this.buttons.forEach((button, tool) => button.setAttribute("aria-pressed", String(tool === chosen)));
  }

  toggleHeat(): void {
    if (this.hasBurn) this.setHeat(!this.heatShown);
  }

  private setHeat(shown: boolean): void {
    this.heatShown = shown;
    this.heat.setAttribute("aria-pressed", String(shown));
    this.legend.hidden = !shown;
    this.events.heat(shown);
  }

  private button(info: Instrument, tool: number): HTMLButtonElement {
    const label = instrumentLabel(info);
    const does = info.action === "" ? "" : `; left button: ${info.action}`;
    return h("button", { type: "button", class: "tool", title: `${label} (${tool + 1})${does}`,
      on: { click: () => this.events.choose(tool) } },
      icon(info.icon), h("span", {}, label), tool < 9 ? h("kbd", {}, String(tool + 1)) : null);
  }
}

function mark(celsius: number): HTMLElement {
  const hottest = celsius === HEAT_STOPS[HEAT_STOPS.length - 1].temperature;
  const element = h("span", {}, hottest ? `${celsius} °C` : String(celsius));
  element.style.left = `${(100 * heatPlace(celsius)).toFixed(1)}%`;
  return element;
}
