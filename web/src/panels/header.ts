// Name, choice of scenario, clock, detail, device, viewers, state of the line.

import type { Line } from "../connection";
import type { Frame, SceneDescription, SessionState, Welcome } from "../protocol";
import { DetailChip } from "./detail";
import { h, icon, setText } from "./dom";
import { clock, factor } from "./format";
import type { Who } from "./who";

export interface HeaderEvents {
  /** Starts a scenario anew; without a detail, with the one that was asked for before. */
  choose(scenario: string, detail?: string): void;
  help(): void;
  recordings(): void;
  who(): void;
}

const LINE_WORDS: Record<Line["state"], string> = {
  connecting: "connecting", open: "live", lost: "reconnecting", refused: "refused",
};

const RESTS: Partial<Record<SessionState["state"], string>> = { paused: "paused", stalled: "no answer" };

export class Header {
  private readonly scenario = h("span", { class: "scenario-name" }, "No scenario yet");
  private readonly list = h("div", { class: "scenario-list" });
  private readonly menu: HTMLDetailsElement;
  private readonly time = h("span", { class: "clock-time" }, clock(0));
  private readonly pace = h("span", { class: "clock-pace" }, "");
  private readonly device = h("span", {}, "–");
  private readonly viewers = h("span", {}, "–");
  private readonly viewersChip: HTMLElement;
  private readonly line = h("span", {}, "connecting");
  private readonly lineChip: HTMLElement;
  private readonly deviceChip: HTMLElement;
  private readonly who: HTMLButtonElement;
  private readonly detail = new DetailChip((detail) => this.events.choose(this.current, detail));
  private welcome: Welcome | null = null;
  private current = "";
  private speed = 1;
  private lineState: Line["state"] = "connecting";
  private watches = false;
  /** What stands in place of the pace while there is none. */
  private rests = "";

  constructor(root: HTMLElement, private readonly events: HeaderEvents) {
    const summary = h("summary", { class: "scenario-button", "aria-label": "Choose a scenario" }, this.scenario, icon("chevron"));
    this.menu = h("details", { class: "menu" }, summary, this.list);
    this.deviceChip = h("span", { class: "chip device-chip" }, icon("chip"), this.device);
    this.viewersChip = h("span", { class: "chip viewers-chip" }, icon("eye"), this.viewers);
    this.lineChip = h("span", { class: "chip line", role: "status", "data-line": "connecting" }, h("i", { class: "dot" }), this.line);
    const help = h("button", { class: "round", type: "button", "aria-label": "Help and keys", title: "Help and keys (?)",
      on: { click: () => events.help() } }, icon("help"));
    const recordings = h("button", { class: "round", type: "button", "aria-label": "Recordings", title: "Recordings",
      on: { click: () => events.recordings() } }, icon("film"));
    this.who = h("button", { class: "round", type: "button", "aria-label": "Who are you?", title: "Who are you?", hidden: true,
      on: { click: () => events.who() } }, icon("person"));
    const mark = h("img", { src: "./icon.svg", alt: "", width: 26, height: 26 });
    root.append(
      h("div", { class: "brand" }, mark, h("h1", {}, "viscera")),
      this.menu,
      h("div", { class: "clock", title: "Simulated time, and how fast it runs against real time" }, this.time, this.pace),
      h("div", { class: "chips" }, this.detail.element, this.deviceChip, this.viewersChip, this.lineChip, this.who, recordings, help),
    );
    document.addEventListener("pointerdown", (event) => {
      if (event.target instanceof Node && !this.menu.contains(event.target)) this.closeMenu();
    });
  }

  closeMenu(): void {
    this.menu.open = false;
  }

  setWelcome(welcome: Welcome): void {
    this.welcome = welcome;
    this.fillList();
  }

  /** Who looks at it, where that matters. */
  setWho({ trainee, trainer }: Who, asks: boolean): void {
    this.who.hidden = !asks;
    this.who.classList.toggle("known", trainee !== "" || trainer);
    this.who.title = [trainee, trainer ? "trainer" : ""].filter(Boolean).join(", ") || "Who are you?";
  }

  setScene(description: SceneDescription): void {
    const { scene, device } = description;
    this.detail.setScene(description);
    this.current = scene.scenario;
    setText(this.scenario, scene.title);
    setText(this.device, device);
    this.deviceChip.title = `The world runs on ${device}; viscera ${this.welcome?.version ?? ""}`;
    document.title = `${scene.title} · viscera`;
    this.fillList();
  }

  setFrame(frame: Frame): void {
    setText(this.time, clock(frame.time));
    // Blood, heat and water slow down before tissue does; then both are told.
    const lags = frame.beside_factor < 0.93 * frame.real_time_factor;
    const pace = lags ? `×${frame.real_time_factor.toFixed(2)}, fluids ×${frame.beside_factor.toFixed(2)}` : factor(frame.real_time_factor);
    setText(this.pace, this.rests || pace);
    // Slow motion that was asked for is not a machine that cannot keep up.
    this.pace.classList.toggle("slow", this.rests === "" && (lags || frame.real_time_factor < 0.9 * this.speed));
  }

  setState(state: SessionState): void {
    this.speed = state.speed;
    setText(this.viewers, String(state.viewers));
    this.viewersChip.title = state.viewers === 1 ? "You alone watch this session" : `${state.viewers} browsers watch this session`;
    this.watches = state.watched !== null;
    this.tellLine();
    this.rests = RESTS[state.state] ?? "";
    if (this.rests !== "") setText(this.pace, this.rests);
  }

  setLine(line: Line): void {
    this.lineState = line.state;
    this.tellLine();
    this.lineChip.dataset.line = line.state;
  }

  /** What comes over the line: a world, or what was recorded of one. */
  private tellLine(): void {
    setText(this.line, this.lineState === "open" && this.watches ? "recording" : LINE_WORDS[this.lineState]);
  }

  private fillList(): void {
    const scenarios = this.welcome?.scenarios ?? [];
    const cards = scenarios.map((info) =>
      h("button", { class: "scenario-card", type: "button", "aria-current": info.name === this.current ? "true" : undefined,
        on: { click: () => this.pick(info.name) } },
        h("strong", {}, info.title), h("span", {}, info.summary)),
    );
    this.list.replaceChildren(...cards, h("p", { class: "note" }, "Choosing starts it anew for everyone who watches."));
  }

  private pick(name: string): void {
    this.closeMenu();
    this.events.choose(name);
  }
}
