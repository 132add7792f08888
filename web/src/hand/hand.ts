// The hand: whatever moves the cursor or presses (mouse, keys, touch, gamepad) ends here and becomes tool messages.
//
// Hovering, what acts of the instrument lies on the surface under the cursor and only touches it. Pressing goes along the
// surface's normal there, so that the force over the depth is what the tissue is made of. Pressing or pushing along the
// shaft keeps the surface as it was at that moment as the reference, because the dent that the tip makes must not draw the
// tip deeper into itself. Instruments that do something (coagulate, rinse) do it while the handle is closed, and touch the
// surface lightly meanwhile, right under the cursor; pressing them harder is a matter of its own.
//
// A grasper that is closed when another instrument is chosen stays where it is, clamped. Chosen again it is taken up there,
// still closed, and follows the cursor's movement from there; letting go of the button then opens it.
//
// A hand that keeps its depth goes across the view in a plane through its tip, whatever surfaces lie under the cursor: so an
// instrument works beside, behind and under tissue, and what it holds is not dragged up and down over edges.
//
// There are two hands: `swap` leaves the instrument where it is, open or closed, and moves the other one. One that was left
// open glides to the cursor when it is taken up.

import { Vector3 } from "three";
import type { Camera, Quaternion } from "three";
import { effectOf, roundEnd } from "../instruments";
import { copied, nearest } from "../picking";
import type { PickMesh } from "../picking";
import { PRESSED } from "../protocol";
import type { Instrument, Scene, Tool, ToolState } from "../protocol";
import { advanced, CLEARANCE, clampedTo, depthOf, onRay, pointAtDepth, pointAtHeight, shaftOrientation, spinOf, tipFor, topOf, touchingTip, trocarOf, viewRay } from "./reach";
import { Level } from "./level";
import type { ScreenPoint } from "./reach";

const PRESS_DEPTH = 0.008; // [m] that pressing advances at first
const DEEPEST_PRESS = 0.03; // [m]
const TOUCH_DEPTH = 0.001; // [m] below the hovering tip, while the handle is closed
const REACH = { out: -0.08, in: 0.03 }; // [m] along the shaft without pressing
const LEAST_FELT = 0.002; // [N]
const LEAST_DEPTH = 0.001; // [m]; less says nothing about stiffness
const PRESS_SPEED = 0.045; // [m/s]
const RELEASE_SPEED = 0.12; // [m/s]
const SMALLEST_MOVE = 1e-5; // [m]; less is not worth a message
const GLIDE_TIME = 0.12; // [s] in which an instrument that is taken up comes to the cursor
const SHORTEST_INTERVAL = 1000 / 120; // [ms] between messages

/** What the hand needs of the picture. */
export interface HandView {
  readonly camera: Camera;
  size(): { width: number; height: number };
  pickMeshes(): PickMesh[];
}

export interface HandEvents {
  /** False when it could not be sent; `eventTime` is set when a movement of the hand caused it [ms]. */
  send(tool: Tool, eventTime: number | null): boolean;
}

export class Hand {
  tool = 0;
  cursor: ScreenPoint | null = null;
  pressed = false;
  /** The handle is closed or the pedal is down, of an instrument that does something then. */
  acting = false;
  pressDepth = PRESS_DEPTH;
  /** Along the shaft, positive into the body [m]. */
  reach = 0;
  /** How far pressing has advanced by now [m]. */
  pushed = 0;
  tip: Vector3 | null = null;
  /** What the tool in the hand feels now [N]. */
  felt = 0;
  /** Of the instrument about its shaft [rad]; 0 where its x axis is level. */
  spin = 0;
  /** Where a tip that just touches would be, and the surface's normal there; null beside every surface. */
  private contact: { tip: Vector3; normal: Vector3 } | null = null;
  private grip = 0;
  private sequence = 0;
  private depth = 0.2;
  private held: PickMesh[] | null = null;
  private freeLine = new Vector3(0, 0, 1);
  private uprightLine = new Vector3(0, 0, 1);
  private bounds: Scene["bounds"] = [[-1, -1, -1], [1, 1, 1]];
  private up = new Vector3(0, 0, 1);
  private instruments: Instrument[] = [];
  private sent: { tip: Vector3; spin: number; grip: number; active: boolean } | null = null;
  private sentAt = -Infinity;
  /** Instruments that stay in the body, as they were left: clamped graspers, and what the other hand holds. */
  private readonly clamped = new Map<number, { tip: Vector3; spin: number; grip: number }>();
  /** Where a clamped one was taken up again, until it is placed; and how far from the cursor's tip that is. */
  private takenUpAt: Vector3 | null = null;
  private aside: Vector3 | null = null;
  /** Where the tip goes across the view; null while it follows surfaces. */
  private level: Level | null = null;
  private eventTime: number | null = null;
  /** Until the first frame of a scene. */
  private comes = true;

  constructor(private readonly view: HandView, private readonly events: HandEvents) {}

  /** `again`: the same scene on a new line; the hand keeps its instrument. */
  setScene(scene: Scene, again = false): void {
    this.instruments = scene.instruments;
    this.freeLine = trocarOf(scene.camera);
    this.uprightLine = trocarOf(scene.camera, 0);
    this.bounds = scene.bounds;
    this.up = new Vector3(...scene.camera.up).normalize();
    this.depth = depthOf(new Vector3(...scene.camera.target), this.view.camera);
    if (!again) {
      this.tool = this.spin = 0;
      this.clamped.clear();
      this.comes = true;
    }
    this.withdraw();
    this.sent = null;
  }

  moveTo(point: ScreenPoint, eventTime: number): void {
    this.cursor = point;
    this.eventTime ??= eventTime;
    this.place(eventTime);
  }

  /** Out of the body. */
  withdraw(): void {
    this.cursor = null;
    this.pressed = this.acting = false;
    this.grip = this.pushed = this.reach = 0;
    this.letGo();
    this.place(performance.now());
  }

  /** Nothing is known of where it was. */
  private letGo(): void {
    this.held = null;
    this.tip = this.contact = this.takenUpAt = this.aside = this.level = null;
  }

  press(grip: number, eventTime: number): void {
    if (this.cursor === null) return;
    if (!this.pressed) this.eventTime ??= eventTime;
    this.pressed = true;
    if (!this.does()) this.grip = grip;
  }

  /** The main button: closes the handle of an instrument that does something, presses with any other. */
  use(grip: number, eventTime: number): void {
    if (!this.does()) {
      this.press(grip, eventTime);
      return;
    }
    if (this.cursor === null) return;
    if (!this.acting) this.eventTime ??= eventTime;
    this.acting = true;
    this.grip = grip;
  }

  /** Lifts what presses, and opens the handle. */
  release(): void {
    this.pressed = this.acting = false;
    this.grip = 0;
    this.takenUpAt = this.aside = null;
  }

  /** From here on the tip keeps its depth, or follows surfaces again. */
  keepDepth(keeps: boolean, eventTime: number): void {
    if (this.cursor === null || this.tip === null) return;
    this.level = keeps ? this.levelAt(this.tip, this.cursor) : null;
    this.aside = null;
    if (keeps) this.reach = 0;
    this.place(eventTime);
  }

  /** Whether it keeps its depth. */
  keepsDepth(): boolean {
    return this.level !== null;
  }

  /** The plane across the view through a tip as it is without what a press adds; a pedal or handle does not move it. */
  private levelAt(tip: Vector3, cursor: ScreenPoint): Level {
    const { camera } = this.view;
    const { width, height } = this.view.size();
    return new Level(advanced(tip, this.trocar(), this.does() ? 0 : -this.pushed), viewRay(cursor, width, height, camera), camera);
  }

  /** In the hand now. */
  instrument(): Instrument | null {
    return this.instruments.at(this.tool) ?? null;
  }

  /** Along the shaft by `distance`, positive into the body [m]; while pressing it changes how deep a press goes. */
  push(distance: number, eventTime: number): void {
    if (this.cursor === null) return;
    if (this.pressed) this.pressDepth = clamp(this.pressDepth + distance, 0, DEEPEST_PRESS);
    else this.reach = clamp(this.reach + distance, REACH.out, REACH.in);
    this.eventTime ??= eventTime;
  }

  /** About the shaft, counter-clockwise seen from the hand [rad]. */
  turn(angle: number, eventTime: number): void {
    this.spin = (this.spin + angle) % (2 * Math.PI);
    this.eventTime ??= eventTime;
  }

  /** How deep a tip at this place has pressed into the surface as it was, along its normal [m]; null where that says nothing. */
  depthAt(position: readonly [number, number, number]): number | null {
    if (this.contact === null) return null;
    const depth = this.contact.tip.clone().sub(new Vector3(...position)).dot(this.contact.normal);
    return depth >= LEAST_DEPTH ? depth : null;
  }

  /** Force along the surface's normal over depth, of the tool in the hand [N/m]; null where nothing is pressed. */
  stiffness(tools: readonly ToolState[]): number | null {
    const tool = tools.find((candidate) => candidate.tool === this.tool);
    if (tool?.active !== true) return null;
    const depth = this.depthAt(tool.position);
    return depth === null ? null : Math.hypot(...tool.force) / depth;
  }

  /** The one before goes out of the body, unless it is clamped; the new one takes its place under the cursor. */
  chooseTool(tool: number): void {
    if (tool === this.tool || tool >= this.instruments.length) return;
    const cursor = this.cursor;
    if (this.clamps()) this.leave();
    else this.withdraw();
    this.tool = tool;
    this.sent = null;
    this.sentAt = -Infinity;
    this.cursor = cursor;
    this.takeUp();
  }

  /** The other hand's instrument moves now: the one left last, or the next one. This one stays where it is. */
  swap(): void {
    if (this.instruments.length < 2) return;
    const others = [...this.clamped.keys()].filter((tool) => tool !== this.tool);
    const cursor = this.cursor;
    const next = others.at(-1) ?? (this.tool + 1) % this.instruments.length;
    this.leave();
    this.tool = next;
    this.sent = null;
    this.sentAt = -Infinity;
    this.cursor = cursor;
    this.takeUp();
  }

  /** Those that were left go out of the body too. */
  withdrawLeft(): void {
    for (const [tool, { tip, spin }] of this.clamped) {
      const turn = shaftOrientation(tip, this.trocarOf(tool), this.up, spin);
      const input = { tool, position: tip.toArray(), orientation: turn.toArray(), grip: 0, active: false };
      if (this.events.send({ type: "tool", sequence: this.sequence + 1, input }, null)) this.sequence += 1;
    }
    this.clamped.clear();
  }

  /** Whether the instrument in the hand holds on to what is between its jaws. */
  private clamps(): boolean {
    const instrument = this.instrument();
    return instrument !== null && effectOf(instrument, "grasps") !== null && this.grip >= PRESSED && this.tip !== null;
  }

  /** It stays where it is, clamped. */
  private leave(): void {
    if (this.tip !== null) this.clamped.set(this.tool, { tip: this.tip.clone(), spin: this.spin, grip: this.grip });
    this.pressed = this.acting = false;
    this.grip = this.pushed = this.reach = 0;
    this.letGo();
  }

  /** What the world says of the tools: after a reset none is clamped any more; a page that comes to a world finds what is clamped there. */
  see(tools: readonly Pick<ToolState, "active" | "position" | "orientation" | "grip">[]): void {
    for (const tool of this.clamped.keys()) if (tools.at(tool)?.active !== true) this.clamped.delete(tool);
    if (!this.comes) return;
    this.comes = false;
    tools.forEach(({ active, position, orientation, grip }, tool) => {
      if (!active || grip < PRESSED || tool >= this.instruments.length || effectOf(this.instruments[tool], "grasps") === null) return;
      const tip = new Vector3(...position);
      this.clamped.set(tool, { tip, spin: spinOf(orientation, tip, this.trocarOf(tool), this.up), grip });
    });
    if (this.cursor === null) this.takeUp();
  }

  private takeUp(): void {
    const left = this.clamped.get(this.tool);
    if (left === undefined) return;
    this.clamped.delete(this.tool);
    this.acting = left.grip >= PRESSED;
    this.grip = left.grip;
    this.spin = left.spin;
    this.takenUpAt = left.tip;
  }

  /** Once per turn of the animation loop. */
  advance(seconds: number, now: number): void {
    const goal = this.pressed ? this.pressDepth : this.acting ? TOUCH_DEPTH : 0;
    const speed = goal > this.pushed ? PRESS_SPEED : RELEASE_SPEED;
    this.pushed += clamp(goal - this.pushed, -speed * seconds, speed * seconds);
    if (!this.acting) this.aside?.multiplyScalar(Math.exp(-seconds / GLIDE_TIME));
    this.place(now);
  }

  private has(effect: string): boolean {
    return this.instrument()?.effects.some(({ kind }) => kind === effect) ?? false;
  }

  /** Whether closing the handle does something. */
  private does(): boolean {
    return (this.instrument()?.action ?? "") !== "";
  }

  private place(now: number): void {
    if (this.cursor === null) {
      if (this.sent?.active === true) this.offer(this.sent.tip, false, now);
      return;
    }
    const inside = this.pressed || this.acting || this.pushed > 0 || this.reach > 0;
    // Let go, the tip rises to the surface as it was, until nothing is felt: over the dent that is there it would keep it.
    const rises = this.held !== null && this.felt > LEAST_FELT;
    if (inside || rises) this.held ??= this.view.pickMeshes().map(copied);
    else this.held = null;
    this.tip = this.pushedTip(this.cursor);
    if (this.takenUpAt !== null) this.aside = this.takenUpAt.clone().sub(this.tip);
    this.takenUpAt = null;
    if (this.aside !== null) this.tip.add(this.aside);
    this.offer(this.tip, true, now);
  }

  private trocar(): Vector3 {
    return this.trocarOf(this.tool);
  }

  private trocarOf(tool: number): Vector3 {
    const instrument = this.instruments.at(tool);
    if (instrument?.trocar) return new Vector3(...instrument.trocar);
    // A blade is held upright: what it cuts below is under what it cuts above. So is a needle: it turns across the surface.
    const upright = instrument?.effects.some(({ kind }) => kind === "cuts" || kind === "sews") ?? false;
    return upright ? this.uprightLine : this.freeLine;
  }

  private pushedTip(cursor: ScreenPoint): Vector3 {
    const { camera } = this.view;
    const { width, height } = this.view.size();
    const ray = viewRay(cursor, width, height, camera);
    if (this.level !== null) {
      this.contact = null;
      const level = clampedTo(this.bounds, this.level.tip(ray, camera));
      return advanced(level, this.trocar(), this.reach + (this.does() ? 0 : this.pushed));
    }
    const meshes = this.held ?? this.view.pickMeshes();
    // Who sews points at a gap to bridge it, not at its bottom.
    const hit = nearest(ray, meshes, this.has("sews") || this.has("ties"));
    const acts = new Vector3(...(this.instrument()?.acts_at ?? [0, 0, 0]));
    const tip = (place: Vector3) => tipFor(place, acts, this.trocar(), this.up, this.spin);
    const ball = lift(this.instrument());
    if (hit === null) {
      this.contact = null;
      const over = pointAtHeight(ray, this.up, topOf(meshes, this.up) + ball + CLEARANCE);
      const free = tip(clampedTo(this.bounds, over ?? pointAtDepth(ray, camera, this.depth)));
      return advanced(free, this.trocar(), this.reach + this.pushed);
    }
    const touching = tip(ball > 0 ? touchingTip(hit, ball) : onRay(ray, hit, -CLEARANCE));
    this.depth = depthOf(touching, camera);
    this.contact = { tip: touching.clone().addScaledVector(hit.normal, -CLEARANCE), normal: hit.normal };
    // A light touch stays under the cursor; all beyond it is a press.
    const light = this.does() ? Math.min(this.pushed, TOUCH_DEPTH) : 0;
    const touched = light > 0 && ball === 0 ? tip(onRay(ray, hit, light - CLEARANCE)) : touching;
    const pressed = touched.addScaledVector(hit.normal, light - this.pushed);
    return advanced(pressed, this.trocar(), this.reach);
  }

  private offer(tip: Vector3, active: boolean, now: number): void {
    const { sent } = this;
    const still = sent !== null && sent.tip.distanceTo(tip) < SMALLEST_MOVE && sent.spin === this.spin;
    const same = still && sent.active === active && sent.grip === this.grip;
    if (same || this.instruments.length === 0) {
      if (same) this.eventTime = null;
      return;
    }
    if (active && now - this.sentAt < SHORTEST_INTERVAL) return;
    const turn: Quaternion = shaftOrientation(tip, this.trocar(), this.up, this.spin);
    const message: Tool = {
      type: "tool", sequence: this.sequence + 1,
      input: { tool: this.tool, position: tip.toArray(), orientation: turn.toArray(), grip: this.grip, active },
    };
    if (!this.events.send(message, this.eventTime)) return;
    this.sequence += 1;
    this.sentAt = now;
    this.eventTime = null;
    this.sent = { tip: tip.clone(), spin: this.spin, grip: this.grip, active };
  }
}

/** From the surface to the tip of an instrument that touches it with its round end [m]; 0 where that ends at the tip. */
function lift(instrument: Instrument | null): number {
  if (instrument === null) return 0;
  const { radius, offset } = roundEnd(instrument);
  return Math.max(0, radius - offset);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
