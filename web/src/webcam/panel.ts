// Gaze by webcam: asked for by the user, calibrated by nine dots, its error shown. The camera's pictures stay in a frame of
// their own (public/webcam.js); what comes from there are a few landmarks per picture.

import { card, h, setText } from "../panels/dom";
import type { GazeSender, Place } from "../gaze";
import type { GazeSource, Table } from "../protocol";
import { features, fit, unseenError } from "./calibration";
import type { Fit, Landmarks, Look } from "./calibration";

const DOTS: Place[] = [0.1, 0.5, 0.9].flatMap((y) => [0.1, 0.5, 0.9].map((x) => ({ x, y })));
const LEAST_LOOKS = 3; // per dot
const LEAST_TIME = 500; // [ms] per dot
const STILL = 0.08; // nearer than this to the last place, a new one is averaged with it: in shares of the view

interface Posted {
  from?: string;
  landmarks?: Landmarks;
  lost?: boolean;
  failed?: string;
}

/** Whose gaze counts, in words. */
export function sourceText(source: GazeSource | null): string {
  if (source === null) return "";
  const whose = source.counts
    ? `Gaze: ${source.name}. It counts for all viewers, seen through the view of whoever holds the instruments; the pointer does not.`
    : `Gaze: ${source.name} could not be used, so the pointer of whoever holds the instruments counts.`;
  return source.problem === "" ? whose : `${whose} ${source.problem}`;
}

export class WebcamPanel {
  readonly element: HTMLElement;
  private readonly status = h("p", { class: "note", role: "status" });
  private readonly outside = h("p", { class: "note", id: "gaze-source", "aria-live": "polite", hidden: true });
  private readonly preview = h("div", { class: "webcam-preview" });
  private readonly start = h("button", { type: "button", on: { click: () => this.begin() } }, "Use my eyes (webcam)");
  private readonly calibrate = h("button", { type: "button", hidden: true, on: { click: () => this.ask() } }, "Calibrate");
  private readonly stop = h("button", { type: "button", hidden: true, on: { click: () => this.end("") } }, "Stop");
  private readonly dot = h("button", { type: "button", class: "webcam-dot", "aria-label": "Look here, then press", on: { click: () => this.pressed() } });
  private readonly sheet = h("div", { class: "webcam-sheet", hidden: true }, this.dot);
  private frame: HTMLIFrameElement | null = null;
  private looks: Look[] = [];
  private number = 0; // of the dot
  private since: number | null = null; // when it was pressed
  private found: Fit | null = null;
  private last: Place | null = null;
  /** Of places that were not calibrated, in heights of the view; null before. */
  error: number | null = null;

  constructor(private readonly canvas: HTMLCanvasElement, readonly sender: GazeSender) {
    sender.listen(canvas);
    this.element = card("Eyes", true, null, this.outside, this.preview, this.status, h("div", { class: "choices" }, this.start, this.calibrate, this.stop));
    this.element.id = "webcam";
    this.element.hidden = true;
    document.body.append(this.sheet);
    window.addEventListener("message", (event: MessageEvent<Posted>) => {
      const own = this.frame !== null && event.source === this.frame.contentWindow && event.origin === location.origin;
      if (own && event.data.from === "viscera-webcam") this.hear(event.data);
    });
    this.say("The pointer stands for your eye. With a webcam your eyes do; its pictures never leave this page.");
  }

  /** Only worlds that ask for gaze show it. */
  setScene(tables: Table[]): void {
    const asks = tables.some((table) => table.source === "gaze");
    this.sender.setScene(tables);
    this.element.hidden = !asks;
    if (!asks && this.frame !== null) this.end("");
  }

  /** Whose gaze counts, where a tracker outside the page was asked for. */
  setSource(source: GazeSource | null): void {
    this.sender.setSource(source);
    const instead = source?.counts === true;
    setText(this.outside, sourceText(source));
    this.outside.hidden = source === null;
    if (instead && this.frame !== null) this.end("");
    this.status.hidden = instead;
    this.start.hidden = instead || this.frame !== null;
  }

  private begin(): void {
    this.frame = h("iframe", { src: "./webcam.html", allow: "camera", title: "What the camera sees" });
    this.preview.replaceChildren(this.frame);
    this.start.hidden = true;
    this.stop.hidden = false;
    this.say("Waiting for the camera and the landmark model …");
  }

  private end(why: string): void {
    this.preview.replaceChildren();
    this.frame = this.found = this.last = this.error = null;
    this.sheet.hidden = this.calibrate.hidden = this.stop.hidden = true;
    this.start.hidden = false;
    this.sender.useEyes(false);
    this.say(why);
  }

  private hear(message: Posted): void {
    if (message.failed !== undefined) {
      this.end(`No gaze by webcam: ${message.failed}`);
      return;
    }
    if (message.landmarks === undefined) {
      if (this.found !== null) this.sender.setEyes(null);
      else if (this.sheet.hidden) this.say("No face is seen: come nearer, into the light.");
      return;
    }
    const seen = features(message.landmarks);
    if (!this.sheet.hidden) this.take(seen);
    else if (this.found !== null) this.look(this.found(seen));
    else if (this.calibrate.hidden) {
      this.calibrate.hidden = false;
      this.say("Your face is seen. Hold your head still, and calibrate.");
    }
  }

  private ask(): void {
    this.looks = [];
    this.number = 0;
    this.found = null;
    this.sheet.hidden = false;
    this.sender.useEyes(true);
    this.place();
  }

  private place(): void {
    const box = this.canvas.getBoundingClientRect(), { x, y } = DOTS[this.number];
    this.since = null;
    this.dot.dataset.number = String(this.number);
    this.dot.classList.remove("held");
    this.dot.style.left = `${box.left + x * box.width}px`;
    this.dot.style.top = `${box.top + y * box.height}px`;
    this.dot.focus();
    this.say(`Dot ${this.number + 1} of ${DOTS.length}: look at it and press it, or the space bar; keep looking until it moves on.`);
  }

  private pressed(): void {
    if (this.since !== null) return;
    this.since = performance.now();
    this.dot.classList.add("held");
  }

  private take(seen: number[]): void {
    if (this.since === null) return;
    const place = DOTS[this.number];
    this.looks.push({ features: seen, place });
    const here = this.looks.filter((look) => look.place === place).length;
    if (here < LEAST_LOOKS || performance.now() - this.since < LEAST_TIME) return;
    this.number += 1;
    if (this.number < DOTS.length) this.place();
    else this.finish();
  }

  private finish(): void {
    const box = this.canvas.getBoundingClientRect();
    this.sheet.hidden = true;
    this.found = fit(this.looks);
    this.error = unseenError(this.looks, box.width / box.height);
    this.calibrate.textContent = "Calibrate again";
    this.say(`Your eyes are off by ${Math.round(100 * this.error)} % of the picture's height, on average. The gaze disc follows them.`);
  }

  private look(place: Place): void {
    const near = this.last !== null && Math.hypot(place.x - this.last.x, place.y - this.last.y) < STILL;
    this.last = near && this.last !== null ? { x: 0.5 * (place.x + this.last.x), y: 0.5 * (place.y + this.last.y) } : place;
    this.sender.setEyes(this.last);
  }

  private say(text: string): void {
    setText(this.status, text);
  }
}
