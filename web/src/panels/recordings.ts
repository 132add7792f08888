// What was recorded: a list to choose from, and, while one is watched, its time.

import type { Shown } from "../handle";
import type { Seek, SessionState, Watched } from "../protocol";
import { h, icon, setText } from "./dom";
import { clock } from "./format";
import type { Who } from "./who";

/** As /api/recordings tells it. */
export interface Summary {
  name: string;
  scenario: string;
  /** Of the scenario, as people call it. */
  title: string;
  seed: number;
  created: string;
  seconds: number;
  complete: boolean;
  trials: { outcome: string; passed: boolean; level: string; time: number; summary: string }[];
  /** Whose trials are in it, where this page may know. */
  trainees: string[];
}

export interface RecordingEvents {
  watch(recording: string, at: number): void;
  seek(message: Omit<Seek, "type">): void;
  /** Back to a live world. */
  live(): void;
  speed(value: number): void;
  /** Make a film of it. */
  film(recording: string): void;
}

/** As /api/film tells it. */
interface FilmState {
  state: "none" | "making" | "ready" | "failed";
  done: number;
  message: string;
}

/** Where the picture comes from. */
function sourceOf({ stored, done }: Watched): string {
  return stored ? `stored picture, ${Math.round(100 * done)} % computed` : "computed again";
}

/** How the trials in it went, one line each. */
export function trialsOf({ trials }: Summary): HTMLElement[] {
  return trials.map(({ outcome, passed, level, time, summary }) => h("span", { class: `recorded-trial ${passed ? "met" : "lost"}` },
    icon(passed ? "check" : "close"), h("b", {}, `${outcome.replace("_", " ")} after ${time.toFixed(1)} s`), ` ${level}${summary === "" ? "" : ` · ${summary}`}`));
}

/** Whether all words are in what the list says of a recording. */
export function matches(one: Summary, words: string): boolean {
  const told = [one.title, one.scenario, ...one.trainees, new Date(one.created).toLocaleString(), ...one.trials.map(({ outcome, level }) => `${outcome.replace("_", " ")} ${level}`)];
  const all = told.join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/** Who leaves a recording does not want it back at the next reload. */
function forgetAddress(): void {
  const address = new URL(location.href);
  for (const name of ["watch", "at"]) address.searchParams.delete(name);
  if (address.href !== location.href) history.replaceState(null, "", address);
}

const SHORTEST = 1; // [s]; there is nothing to watch in a run that was left at once
const MANY = 6; // recordings from which on there is a field to find one

export const SPEEDS = [0.25, 1, 2, 4, 8];

export class RecordingsPanel {
  private readonly list = h("div", { class: "recording-list" });
  private readonly heading = h("h2", { id: "recordings-title" }, "Recordings");
  private readonly find = h("input", { type: "search", class: "find", placeholder: "Find: scenario, trainee, date, found, failed …", "aria-label": "Find recordings", on: { input: () => this.showFound() } });
  private found: Summary[] = [];
  private readonly dialog: HTMLDialogElement;
  private readonly reports = h("nav", { class: "reports" });
  private readonly slider = h("input", { type: "range", min: 0, step: 0.016, "aria-label": "Time in the recording", on: { input: () => this.dragged() } });
  private readonly ticks = h("div", { class: "watch-marks" });
  private readonly time = h("output", { class: "drill-time" }, clock(0));
  private readonly length = h("span", { class: "note watch-source" }, "");
  private readonly speeds = SPEEDS.map((speed) => h("button", { type: "button", on: { click: () => this.events.speed(speed) } }, `${speed}×`));
  private readonly film = h("button", { type: "button", title: "An MP4 of this recording, with its measures", on: { click: () => void this.makeFilm() } }, "Film");
  private watched: Watched | null = null;
  /** The next choice of the list is shown beside this recording. */
  private besides = false;
  private sentAt = 0;
  private heldUntil = 0;

  constructor(private readonly root: HTMLElement, private readonly events: RecordingEvents) {
    const close = h("button", { type: "button", class: "round", "aria-label": "Close", on: { click: () => this.dialog.close() } }, icon("close"));
    this.dialog = h("dialog", { class: "recordings", "aria-labelledby": "recordings-title" },
      h("header", {}, this.heading, close), this.reports, this.find, this.list);
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
    const button = (word: string, title: string, click: () => void) => h("button", { type: "button", title, on: { click } }, word);
    root.append(
      h("div", { class: "watch-row" }, this.time, h("div", { class: "watch-track" }, this.slider, this.ticks), this.length),
      h("div", { class: "watch-row" }, h("div", { class: "choices", role: "group", "aria-label": "Speed of the recording" }, ...this.speeds),
        button("Try again from here", "A new run that begins with this moment", () => events.seek({ again: true })),
        button("Copy link", "To this moment, for whoever can open this page", () => void this.copyLink()),
        button("Beside…", "Another recording beside this one", () => void this.open(true)), this.film,
        button("Leave", "Back to a live world of this scenario", () => events.live())));
    root.hidden = true;
  }

  /** Ways to reports, for whoever may see them. */
  setWho({ trainee, cohort }: Who): void {
    const link = (words: string, address: string) => h("a", { href: `./training/${address}`, target: "_blank", rel: "noopener" }, words);
    this.reports.replaceChildren(
      ...(trainee === "" ? [] : [link("My trials and learning curves", `report?trainee=${encodeURIComponent(trainee)}`)]),
      ...(cohort ? [link("Everybody's trials and learning curves", "cohort"), link("Trainees and exports", "")] : []));
  }

  /** The list, anew; to watch one, or to put it beside the one that is watched. */
  async open(besides = false): Promise<void> {
    this.besides = besides;
    setText(this.heading, besides ? "Which one beside this?" : "Recordings");
    this.find.value = "";
    this.find.hidden = true;
    this.list.replaceChildren(h("p", { class: "note" }, "Looking…"));
    this.dialog.showModal();
    try {
      const answer = await fetch("./api/recordings");
      if (!answer.ok) throw new Error(String(answer.status));
      const watched = this.watched?.recording;
      this.found = ((await answer.json()) as Summary[]).filter(({ name, seconds, trials }) => (seconds >= SHORTEST || trials.length > 0) && !(besides && name === watched));
      this.find.hidden = this.found.length < MANY;
      this.showFound();
    } catch {
      this.list.replaceChildren(h("p", { class: "note" }, "The server does not answer; close this and try again."));
    }
  }

  private showFound(): void {
    const some = this.found.filter((one) => matches(one, this.find.value.trim()));
    const nothing = this.found.length > 0 ? "None is like that." : this.besides ? "There is no other recording." : "Nothing is recorded yet.";
    this.list.replaceChildren(...(some.length === 0 ? [h("p", { class: "note" }, nothing)] : some.map((one) => this.row(one))));
  }

  /** What the address of the page asks for: `?watch=NAME&at=SECONDS`. */
  fromAddress({ watched }: SessionState): void {
    const given = new URLSearchParams(location.search);
    const name = given.get("watch");
    if (name === watched?.recording) this.events.seek({ at: Number(given.get("at") ?? 0) || 0 });
    else if (name !== null) this.events.watch(name, Number(given.get("at") ?? 0) || 0);
  }

  setState(state: SessionState): void {
    const { watched, speed } = state;
    this.root.hidden = watched === null;
    document.body.classList.toggle("watching", watched !== null);
    if (this.watched !== null && this.watched.recording !== watched?.recording) forgetAddress();
    SPEEDS.forEach((one, i) => this.speeds[i].setAttribute("aria-pressed", String(Math.abs(one - speed) < 1e-6)));
    if (watched !== null) setText(this.length, `of ${clock(watched.seconds)}, ${sourceOf(watched)}`);
    if (watched === null || (this.watched?.recording === watched.recording && this.watched.seconds === watched.seconds)) {
      this.watched = watched;
      return;
    }
    this.watched = watched;
    this.slider.max = String(watched.seconds);
    this.ticks.replaceChildren(...watched.marks.map(([at, what]) => h("i", { class: what === "start" ? "begin" : what,
      style: `left: ${((100 * at) / Math.max(watched.seconds, 1e-3)).toFixed(2)}%`, title: `${what.replace("_", " ")} at ${clock(at)}` })));
  }

  /** What is shown, for whoever compares. */
  shown(): Shown | null {
    if (this.watched === null) return null;
    const { recording, seconds, marks, stored } = this.watched;
    return { recording, seconds, begin: marks.find(([, what]) => what === "start")?.[0] ?? 0, stored, source: sourceOf(this.watched), marks };
  }

  setTime(seconds: number): void {
    if (this.watched === null) return;
    setText(this.time, clock(seconds));
    if (performance.now() < this.heldUntil) return;
    this.slider.value = String(seconds);
    this.fill();
  }

  private dragged(): void {
    const now = performance.now();
    this.heldUntil = now + 600;
    this.fill();
    if (now - this.sentAt < 80) return;
    this.sentAt = now;
    this.events.seek({ at: Number(this.slider.value) });
    // The last place of a drag counts, also when it came too soon after the one before.
    setTimeout(() => this.events.seek({ at: Number(this.slider.value) }), 120);
  }

  private fill(): void {
    this.slider.style.setProperty("--share", String(Number(this.slider.value) / Math.max(Number(this.slider.max), 1e-3)));
  }

  private async copyLink(): Promise<void> {
    const address = new URL(location.href);
    address.searchParams.set("watch", this.watched?.recording ?? "");
    address.searchParams.set("at", Number(this.slider.value).toFixed(2));
    history.replaceState(null, "", address);
    await navigator.clipboard.writeText(address.href).catch(() => undefined); // the address bar has it in any case
  }

  /** Asks for the film, says how far it is, and hands it over. */
  private async makeFilm(): Promise<void> {
    const name = this.watched?.recording;
    if (name === undefined) return;
    const address = `./api/film?recording=${encodeURIComponent(name)}`;
    const ask = async () => (await (await fetch(address)).json()) as FilmState;
    let told = await ask();
    if (told.state === "none" || told.state === "failed") this.events.film(name);
    for (let wait = 0; told.state !== "ready" && (wait < 3 || told.state === "making"); wait++) {
      setText(this.film, `Film ${Math.round(100 * told.done)} %`);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      told = await ask();
    }
    setText(this.film, told.state === "ready" ? "Film" : "No film");
    this.film.title = told.state === "failed" ? told.message : "An MP4 of this recording, with its measures";
    if (told.state === "ready") h("a", { href: `${address}&file=1`, download: "" }).click();
  }

  private row(one: Summary): HTMLElement {
    const trials = trialsOf(one);
    return h("button", { type: "button", class: "scenario-card", on: { click: () => this.choose(one) } },
      h("strong", {}, `${one.title}${one.trainees.length === 0 ? "" : ` · ${one.trainees.join(", ")}`} · ${new Date(one.created).toLocaleString()} · ${clock(one.seconds)}`),
      ...trials, h("span", {}, `${one.complete ? "" : "not ended, "}seed ${one.seed}${trials.length === 0 ? " · no trial" : ""}`));
  }

  private choose({ name }: Summary): void {
    this.dialog.close();
    if (!this.besides || this.watched === null) {
      this.events.watch(name, 0);
      return;
    }
    const address = new URL(location.href);
    address.searchParams.set("watch", this.watched.recording);
    address.searchParams.delete("at"); // both begin together
    address.searchParams.set("back", Number(this.slider.value).toFixed(2)); // where one comes back to
    address.searchParams.set("beside", name);
    location.assign(address);
  }
}
