// What went wrong, and what to do about it: at the top of the picture until it is over.

import type { Line } from "../connection";
import type { Hand, Problem, SessionState } from "../protocol";
import { h, icon } from "./dom";

const PROBLEM_STAYS = 9000; // [ms]

export interface BannerEvents {
  restart(): void;
  retry(): void;
  /** Of the instruments: ask for them, take them, give them to a viewer, or keep them. */
  hand(action: Hand["action"], client?: number): void;
}

interface Action {
  label: string;
  run: () => void;
}

interface Content {
  title: string;
  text: string;
  kind: "error" | "warning" | "calm" | "note";
  /** Folded under the title, one line each. */
  lines?: string[];
  action?: Action;
  /** Beside the first. */
  second?: Action;
}

/** One place per kind of trouble; the gravest is on top. */
type Place = "drawing" | "line" | "session" | "hand" | "notice" | "problem" | "notes";
const ORDER: Place[] = ["drawing", "line", "session", "hand", "notice", "problem", "notes"];

export class Banners {
  private readonly shown = new Map<Place, Content>();
  private problemTimer: ReturnType<typeof setTimeout> | undefined;
  /** A notice that was read. */
  private dismissed = "";
  /** Notes that were read. */
  private read = "";
  private countdown: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly root: HTMLElement, private readonly events: BannerEvents) {}

  setLine(line: Line): void {
    clearInterval(this.countdown);
    if (line.state === "refused") {
      this.show("line", { kind: "error", title: "This page is out of date.", text: `${line.message} Reload it to get the server's own.`,
        action: { label: "Reload", run: () => location.reload() } });
    } else if (line.state === "lost") {
      this.showLost(line.retryAt);
      this.countdown = setInterval(() => this.showLost(line.retryAt), 500);
    } else if (line.state === "connecting" && line.attempt > 0) {
      this.show("line", { kind: "warning", title: "Connection lost.", text: "Reconnecting…" });
    } else {
      this.clear("line");
    }
  }

  setState(state: SessionState): void {
    if (state.state === "crashed") {
      this.show("session", { kind: "error", title: "The session stopped.", text: state.message,
        action: { label: "Restart", run: () => this.events.restart() } });
    } else if (state.state === "stalled") {
      this.show("session", { kind: "warning", title: "The session does not answer.", text: state.message,
        action: { label: "Restart", run: () => this.events.restart() } });
    } else if (state.state === "ended") {
      this.show("session", { kind: "warning", title: "The session has ended.", text: `${state.message} Choose a scenario to start another.`.trim() });
    } else {
      this.clear("session");
    }
    this.setNotes(state.notes);
    if (state.notice === "" || state.notice === this.dismissed) this.clear("notice");
    else this.show("notice", { kind: "warning", title: state.notice, text: "",
      action: { label: "Dismiss", run: () => { this.dismissed = state.notice; this.clear("notice"); } } });
  }

  /** What was guessed or mended of the user's own mesh: nothing is wrong, so it is folded. */
  private setNotes(notes: string[]): void {
    const key = notes.join("\n");
    if (notes.length === 0 || key === this.read) this.clear("notes");
    else if (this.shown.get("notes")?.lines?.join("\n") !== key) {
      this.show("notes", { kind: "note", title: notes.length === 1 ? "A note about your mesh" : `${notes.length} notes about your mesh`, text: "", lines: notes,
        action: { label: "Dismiss", run: () => { this.read = key; this.clear("notes"); } } });
    }
  }

  /** Who holds the instruments, where there is more than one viewer. */
  setHand({ viewers, holder, asking }: SessionState, me: number | null, trainer: boolean): void {
    const asked = me !== null && asking.includes(me);
    if (viewers < 2 || me === null) this.clear("hand");
    else if (holder !== me) {
      const ask = { label: "Ask for them", run: () => this.events.hand("ask") };
      const take = { label: "Take over", run: () => this.events.hand("take") };
      this.show("hand", { kind: "calm", title: "You are watching.",
        text: asked ? "You have asked for the instruments." : "Another viewer holds the instruments.",
        action: asked ? undefined : ask, second: trainer ? take : undefined });
    } else if (asking.length > 0) {
      this.show("hand", { kind: "calm", title: "A viewer asks for the instruments.", text: "",
        action: { label: "Hand over", run: () => this.events.hand("give", asking[0]) }, second: { label: "Keep", run: () => this.events.hand("keep") } });
    } else this.clear("hand");
  }

  setProblem(problem: Problem): void {
    clearTimeout(this.problemTimer);
    this.show("problem", { kind: "warning", title: capital(problem.message), text: problem.hint,
      action: { label: "Dismiss", run: () => this.clear("problem") } });
    this.problemTimer = setTimeout(() => this.clear("problem"), PROBLEM_STAYS);
  }

  /** The picture cannot be drawn, or a message could not be read. */
  setDrawing(title: string, text: string): void {
    this.show("drawing", { kind: "error", title, text, action: { label: "Reload", run: () => location.reload() } });
  }

  private showLost(retryAt: number): void {
    const seconds = Math.max(0, Math.ceil((retryAt - performance.now()) / 1000));
    this.show("line", { kind: "warning", title: "Connection lost.", text: `Reconnecting in ${seconds} s…`,
      action: { label: "Now", run: () => this.events.retry() } });
  }

  private show(place: Place, content: Content): void {
    this.shown.set(place, content);
    this.render();
  }

  private clear(place: Place): void {
    if (this.shown.delete(place)) this.render();
  }

  private render(): void {
    const banners = ORDER.flatMap((place) => {
      const content = this.shown.get(place);
      return content === undefined ? [] : [banner(place, content)];
    });
    this.root.replaceChildren(...banners);
  }
}

/** A sentence that begins with a word begins with a capital; a file or an address keeps its name. */
export function capital(text: string): string {
  return /^[a-z]+[ ,:]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

function banner(place: Place, { kind, title, text, action, second, lines }: Content): HTMLElement {
  const buttons = [action, second].flatMap((one) =>
    one === undefined ? [] : [h("button", { type: "button", on: { click: () => one.run() } }, one.label)]);
  const words = lines === undefined ? [h("strong", {}, title), " ", text]
    : [h("details", {}, h("summary", {}, title), h("ul", {}, ...lines.map((line) => h("li", {}, line))))];
  return h("div", { class: `banner ${kind}`, "data-place": place },
    icon(kind === "calm" ? "eye" : kind === "note" ? "note" : "warn"), h("div", { class: "banner-text" }, ...words), ...buttons);
}
