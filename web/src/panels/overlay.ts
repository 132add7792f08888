// What floats over the picture: progress while a session starts, the first hint, the number at the force arrow.

import type { Scene, SessionState } from "../protocol";
import { h, setText } from "./dom";
import { holding } from "./guide";

const HINT_KEY = "viscera.hint-seen";
const BELOW_BAR = 8; // [px] between the bar of a drill and the hint

interface ScreenPlace {
  x: number;
  y: number;
}

export class Overlay {
  private readonly message = h("p", {}, "Connecting to the server…");
  private readonly progress = h("progress", { max: 1, "aria-label": "Progress" });
  private readonly starting: HTMLElement;
  private readonly hint: HTMLElement;
  private readonly force = h("output", { class: "force-label hidden", "aria-hidden": "true" });
  private readonly action = h("output", { class: "action-label hidden" });
  private hintWanted: boolean;

  constructor(root: HTMLElement) {
    this.starting = h("div", { class: "starting", role: "status" }, h("h2", {}, "Getting ready"), this.message, this.progress);
    this.hint = h("div", { class: "hint hidden", role: "note" });
    root.append(this.hint, this.force, this.action, this.starting);
    this.hintWanted = !remembered();
  }

  setScene(scene: Scene): void {
    const lines = hintLines(place(scene), holding(scene.instruments), matchMedia("(pointer: coarse)").matches);
    this.hint.replaceChildren(...lines.map((line) => h("p", {}, line)));
  }

  setState(state: SessionState): void {
    this.starting.classList.toggle("hidden", state.state !== "starting");
    if (state.state !== "starting") return;
    setText(this.message, state.message === "" ? "Starting…" : state.message);
    this.progress.value = state.progress;
  }

  setConnecting(): void {
    setText(this.message, "Connecting to the server…");
    this.progress.removeAttribute("value");
  }

  hideStarting(): void {
    this.starting.classList.add("hidden");
  }

  /** Above what is drawn, until this browser's user first moves over it. */
  placeHint(at: ScreenPlace, moved: boolean): void {
    if (moved && this.hintWanted) {
      this.hintWanted = false;
      remember();
    }
    const drill = document.getElementById("drill");
    // Whoever has started a drill is past it, and its result lies there.
    const shown = this.hintWanted && (drill?.dataset.phase ?? "waiting") === "waiting";
    this.hint.classList.toggle("hidden", !shown);
    if (!shown) return;
    // Below the bar of the drill, also where the tissue reaches up to it.
    const bar = drill?.querySelector(".drill-bar")?.getBoundingClientRect().bottom ?? 0;
    const y = Math.max(at.y, bar + this.hint.offsetHeight + BELOW_BAR);
    this.hint.style.transform = `translate(${at.x.toFixed(0)}px, ${y.toFixed(0)}px) translate(-50%, -100%)`;
  }

  /** What the instrument does now, left of the cursor: the force is to its right; nothing when it does nothing. */
  placeAction(at: ScreenPlace | null, does: string): void {
    this.action.classList.toggle("hidden", at === null || does === "");
    if (at === null || does === "") return;
    setText(this.action, does);
    this.action.style.transform = `translate(${(at.x - 16).toFixed(0)}px, ${(at.y + 14).toFixed(0)}px) translate(-100%, 0)`;
  }

  placeForce(at: ScreenPlace | null, newtons: number, digits: number): void {
    this.force.classList.toggle("hidden", at === null);
    if (at === null) return;
    setText(this.force, `${newtons.toFixed(digits)} N`);
    this.force.style.transform = `translate(${(at.x + 12).toFixed(1)}px, ${(at.y - 10).toFixed(1)}px)`;
  }
}

const TISSUES = new Set(["tissue", "liver", "fat", "vessel"]);

/** Whether something that feels is there. */
export function hasTissue({ surfaces }: Pick<Scene, "surfaces">): boolean {
  return surfaces.some(({ material }) => TISSUES.has(material));
}

/** Whether the force is what there is to watch: tissue, and an instrument that does nothing but press. */
export function asksForForce(scene: Pick<Scene, "surfaces" | "instruments">): boolean {
  return hasTissue(scene) && scene.instruments.some(({ action }) => action === "");
}

/** What the hand moves over, as people say it. */
function place(scene: Scene): string {
  return hasTissue(scene) ? "tissue" : "picture";
}

export function hintLines(over: string, hold: string, coarse: boolean): string[] {
  if (coarse) return [`Touch the ${over}; ${hold}.`, "Two fingers turn the view."];
  return [`Move over the ${over}.`, `Left button: ${hold}. The wheel, away from you, goes deeper.`, "Drag with the right button to look around."];
}

// A browser may forbid storage; then the hint comes again, which does no harm.
function remembered(): boolean {
  try {
    return localStorage.getItem(HINT_KEY) !== null;
  } catch {
    return false;
  }
}

function remember(): void {
  try {
    localStorage.setItem(HINT_KEY, "1");
  } catch {
    // As above.
  }
}
