// A hand that brings an instrument to places in space through the page alone: the pointer goes across the view, the wheel along the
// shaft, Q and E turn it, D keeps its depth. It sees what the page draws: where instruments and points of the surface are.

import { later } from "./browser.mjs";

const NOTCH = 0.001; // [m] that a notch of the wheel goes along the shaft, in a page drawn at its full size
const NOTCH_PIXELS = 100;
const FOGGED = 20; // [%] of the lens
const TURNED = 0.06; // [rad] that may be left
const OFTEN = 20; // that a pointer leaves the picture, and the hand goes on
const SPIN_SPEED = 1.8; // [rad/s] of Q and E
export const DOWN = [0, 0, -1], ACROSS = [0, 1, 0];

export const sub = (a, b) => a.map((x, k) => x - b[k]);
export const add = (a, b) => a.map((x, k) => x + b[k]);
export const scaled = (a, s) => a.map((x) => x * s);
export const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);
export const length = (a) => Math.sqrt(dot(a, a));
const cross = ([a, b, c], [d, e, f]) => [b * f - c * e, c * d - a * f, a * e - b * d];
const rotated = ([x, y, z, w], v) => {
  const t = scaled(cross([x, y, z], v), 2);
  return add(add(v, scaled(t, w)), cross([x, y, z], t));
};

/** Runs in the page: what an eye sees there of the hand, of places in the tissue at rest, and of a step of 1 mm each way. */
function look([name, restPlaces, goal]) {
  const { viscera } = window;
  const now = viscera.vertices(name);
  window.atRest ??= now.slice();
  window.nearest ??= new Map();
  const rest = window.atRest;
  const seen = restPlaces.map((place) => {
    const [x, y, z] = place, key = place.join();
    if (!window.nearest.has(key)) {
      const near = [];
      for (let k = 0; k + 2 < rest.length; k += 3) {
        const far = Math.hypot(rest[k] - x, rest[k + 1] - y, rest[k + 2] - z);
        if (near.length < 8 || far < near[7][0]) {
          near.push([far, k]);
          near.sort((a, b) => a[0] - b[0]);
          near.length = Math.min(near.length, 8);
        }
      }
      window.nearest.set(key, near.map(([, k]) => k));
    }
    const near = window.nearest.get(key);
    return [0, 1, 2].map((a) => place[a] + near.map((k) => now[k + a] - rest[k + a]).sort((p, q) => p - q)[4]);
  });
  const tool = viscera.tool(), tip = viscera.tip(), state = viscera.tools()[tool], acts = viscera.actingPoints()[tool];
  const at = goal ?? tip ?? state.position;
  const screen = (p) => viscera.project(...p);
  const from = screen(at);
  const steps = [0, 1, 2].map((a) => screen(at.map((x, k) => x + (k === a ? 0.001 : 0)))).map((p) => [(p.x - from.x) / 0.001, (p.y - from.y) / 0.001]);
  return {
    seen, tool, tip, from, steps, time: viscera.frame.time, measures: viscera.measures(), active: state.active,
    acts: tip?.map((x, k) => x + acts[k] - state.position[k]), turn: state.orientation, is: state.position,
    tools: viscera.tools().map(({ active, grip, force }) => ({ active, grip, force: Math.hypot(...force) })),
    depthKept: document.querySelector(".action-label:not(.hidden)")?.textContent.includes("keeps its depth") ?? false,
  };
}

export class SteadyHand {
  /** `skin` names the surface's vertices; `trocars` [m]; `picture` is where the pointer may go, [left, top, right, bottom]. */
  constructor(page, { skin, trocars, picture, scale = 1 }) {
    Object.assign(this, { page, skin, trocars, picture, notch: NOTCH / scale });
    this.mouse = [0.5 * (picture[0] + picture[2]), 0.5 * (picture[1] + picture[3])];
    this.closed = false;
    this.lost = 0;
  }

  look(restPlaces = [], goal = null) {
    return this.page.evaluate(look, [this.skin, restPlaces, goal]);
  }

  async measures() {
    return (await this.look()).measures;
  }

  /** Whether the jaws of an instrument are in the body and closed. */
  async holds(tool) {
    const { tools } = await this.look();
    return tools[tool].active && tools[tool].grip > 0.5;
  }

  /** Where a place of the tissue at rest is now, by the eight nearest points of its drawn surface [m]. */
  async seen(place) {
    return (await this.look([place])).seen[0];
  }

  /** Simulated seconds, however slow the machine is. */
  async simulated(seconds) {
    const time = () => this.page.evaluate(() => window.viscera.frame.time);
    for (const end = (await time()) + seconds; (await time()) < end; ) await later(15);
  }

  async speed(word) {
    await this.page.locator("#transport").getByRole("button", { name: word, exact: true }).click();
    await this.moveMouse(...this.mouse);
  }

  /** A lens that is fogged is wiped, by the setting; the instrument in the hand goes out meanwhile. */
  async wipe() {
    if ((await this.measures()).fog < FOGGED) return;
    await this.page.evaluate(() => document.querySelectorAll("details.settings-group").forEach((group) => (group.open = true)));
    await this.page.getByRole("group", { name: "Wipe the lens" }).getByRole("button", { pressed: false }).click();
  }

  async moveMouse(x, y) {
    const [left, top, right, bottom] = this.picture;
    this.mouse = [Math.min(Math.max(x, left), right), Math.min(Math.max(y, top), bottom)];
    await this.page.mouse.move(...this.mouse);
  }

  async down() {
    await this.page.mouse.down();
    this.closed = true;
  }

  async up() {
    await this.page.mouse.up();
    this.closed = false;
  }

  /** Takes the instrument of this key, the pointer over a place beside the field; it keeps its depth from there on. */
  async choose(tool, beside) {
    this.chosen = [tool, beside];
    const begun = await this.look();
    if (begun.tool === tool && begun.active && begun.depthKept) return;
    const { from } = await this.look([], beside);
    await this.moveMouse(from.x, from.y);
    await this.page.keyboard.press(String(tool + 1));
    await this.moveMouse(from.x + 1, from.y);
    for (let k = 0; k < 40; k++) {
      const now = await this.look();
      if (now.tool === tool && now.active && now.depthKept) return;
      if (now.tool === tool && now.tip && !now.depthKept) await this.page.keyboard.press("d");
      await later(60);
    }
    throw new Error(`instrument ${tool + 1} does not come`);
  }

  /** One movement of pointer and wheel towards a place for what acts [m], `most` far; how far it was. */
  async step(place, most = Infinity, seen = null) {
    const now = seen ?? (await this.look());
    if (!now.acts) return this.comeBack();
    const error = sub(place, now.acts), far = length(error);
    const way = far > most ? scaled(error, most / far) : error;
    // Across the view a step shows; along the line of sight the wheel brings it.
    const [px, py] = [0, 1].map((side) => now.steps.map((one) => one[side]));
    const sight = cross(px, py);
    const shaft = sub(this.trocars[now.tool], now.tip), back = scaled(shaft, -1 / length(shaft));
    const along = dot(way, sight) / dot(back, sight);
    const wheel = Math.abs(along) > 0.0001 ? this.page.mouse.wheel(0, (-NOTCH_PIXELS * along) / this.notch) : null;
    const across = sub(way, scaled(back, along));
    const [dx, dy] = [dot(px, across), dot(py, across)];
    if (Math.hypot(dx, dy) > 0.2) await this.moveMouse(this.mouse[0] + dx, this.mouse[1] + dy);
    await wheel;
    return far;
  }

  /** A pointer that came over a panel has taken its instrument out: the hand takes it again, beside the field, and is far from its place. */
  async comeBack() {
    if (!this.chosen || ++this.lost > OFTEN) throw new Error("no instrument is in the picture");
    if (this.closed) await this.up();
    await this.choose(...this.chosen);
    return Infinity;
  }

  /** Until what acts would be there, near enough [m]. */
  async reach(place, near = 0.0006, most = 0.02, looks = 14) {
    for (let k = 0; k < looks; k++) {
      if ((await this.step(place, most)) < near) return true;
    }
    return false;
  }

  /** How far the instrument is from its hand [m]. */
  async behind() {
    const { tip, is } = await this.look();
    return length(sub(tip, is));
  }

  /** Until the instrument has come to its hand; false: tissue holds it back [m, s]. */
  async comes(near = 0.001, patience = 0.6) {
    const begin = (await this.look()).time;
    for (;;) {
      const { tip, is, time } = await this.look();
      if (length(sub(tip, is)) < near) return true;
      if (time > begin + patience) return false;
      await later(15);
    }
  }

  /** Turns the instrument about its shaft with Q and E until its x axis looks to this side as far as it can. */
  async turnTo(side) {
    for (let k = 0; k < 40; k++) {
      const { turn } = await this.look();
      const [x, z] = [rotated(turn, [1, 0, 0]), rotated(turn, [0, 0, 1])];
      const wanted = sub(side, scaled(z, dot(side, z)));
      let angle = Math.atan2(dot(cross(x, wanted), z), dot(x, wanted));
      if (side === ACROSS) angle = Math.atan(Math.tan(angle)); // jaws are the same either way
      if (Math.abs(angle) < TURNED) return;
      const key = angle > 0 ? "q" : "e";
      await this.page.keyboard.down(key);
      await later((1000 * 0.7 * Math.abs(angle)) / SPIN_SPEED);
      await this.page.keyboard.up(key);
      await this.simulated(0.05);
    }
    throw new Error("it does not turn");
  }
}
