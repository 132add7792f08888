// An instrument: its working end as the scene describes it, bar by bar, or a ball or rounded rod on a slender shaft.

import { BufferAttribute, CapsuleGeometry, Group, LatheGeometry, Mesh, Quaternion, Vector2, Vector3 } from "three";
import type { BufferGeometry, ShaderMaterial } from "three";
import { isElectric, roundEnd, soaks } from "../instruments";
import type { Does } from "../instruments";
import { PRESSED } from "../protocol";
import type { Instrument, Part, ToolState } from "../protocol";
import type { Shade } from "./light";

const SHAFT_LENGTH = 0.34; // [m]; a laparoscopic instrument's
const THICKEST_SHAFT = 0.0025; // [m]; radius of a 5 mm instrument
const WITHDRAWN = 0.22; // [m] along the shaft, out of the picture
const WITHDRAW_TIME = 0.22; // [s]
const GRIP_TIME = 0.06; // [s] in which jaws follow the hand
/** From this radius on a bar is the shaft, and not the working end [m]. */
const SHAFT_FROM = 0.0018;

export interface Steel {
  polished: ShaderMaterial;
  marked: ShaderMaterial;
  insulated: ShaderMaterial;
  gauze: ShaderMaterial;
}

/** How far a jaw stands open [rad]. */
export function jawAngle(swing: number, grip: number): number {
  return swing * (1 - Math.min(1, Math.max(0, grip)));
}

export class InstrumentModel {
  readonly mesh = new Group();
  private readonly jaws: { pivot: Group; swing: number }[] = [];
  private readonly bars: { from: Vector3; to: Vector3; radius: number }[];
  private readonly position = new Vector3();
  private readonly orientation = new Quaternion();
  private active = false;
  private acting = false;
  private grip = 0;
  private shownGrip = 0;
  private withdrawn = 1;

  constructor(readonly info: Instrument, private readonly steel: Steel) {
    if (info.parts.length === 0) this.addProbe(steel);
    else for (const part of info.parts) this.addPart(part, steel);
    this.bars = barsOf(info);
    this.mesh.visible = false;
  }

  update(tool: ToolState): void {
    this.active = tool.active;
    this.grip = tool.grip;
    this.acting = tool.active && tool.grip >= PRESSED;
    // Out of the body it keeps its last pose and slides away along it, instead of jumping home.
    if (!tool.active) return;
    this.position.fromArray(tool.position);
    this.orientation.fromArray(tool.orientation);
  }

  /** True while it moves by itself, in or out, or its jaws. */
  advance(seconds: number): boolean {
    const goal = this.active ? 0 : 1;
    const step = seconds / WITHDRAW_TIME;
    const before = this.withdrawn;
    this.withdrawn += Math.max(-4 * step, Math.min(step, goal - this.withdrawn));
    this.mesh.visible = this.withdrawn < 1;
    this.mesh.quaternion.copy(this.orientation);
    this.mesh.position.copy(this.position).addScaledVector(this.shaft(), WITHDRAWN * this.withdrawn ** 2);
    return this.moveJaws(seconds) || before !== this.withdrawn;
  }

  /** Where current flows from its tip now; null when none does. */
  spark(): Vector3 | null {
    return this.acting && this.mesh.visible && isElectric(this.info) ? this.mesh.position : null;
  }

  shades(): Shade[] {
    if (!this.mesh.visible) return [];
    const place = (point: Vector3) => point.clone().applyQuaternion(this.orientation).add(this.mesh.position);
    return this.bars.map(({ from, to, radius }, i) => {
      const ball = i === 0 && this.info.parts.length === 0 ? roundEnd(this.info).radius : radius;
      return { tip: place(from), radius: ball, end: place(to), shaftRadius: radius };
    });
  }

  dispose(): void {
    this.mesh.traverse((object) => {
      if (object instanceof Mesh) (object.geometry as BufferGeometry).dispose();
    });
    for (const material of Object.values(this.steel) as ShaderMaterial[]) material.dispose();
  }

  /** Only the shaft has marks. */
  private addProbe(steel: Steel): void {
    const { head, shaft } = probeProfiles(this.info, probeShaft(this.info));
    const end = soaks(this.info) ? steel.gauze : steel.polished;
    this.mesh.add(bare(new Mesh(placed(turned(head)), end)), bare(new Mesh(placed(turned(shaft)), steel.marked)));
  }

  private addPart(part: Part, steel: Steel): void {
    const thick = part.radius >= SHAFT_FROM;
    const material = thick ? (isElectric(this.info) ? steel.insulated : steel.marked) : steel.polished;
    const start = new Vector3(...part.start);
    const pivot = new Group();
    pivot.position.copy(start);
    pivot.add(bare(new Mesh(placed(barGeometry(new Vector3(...part.end).sub(start), part.radius), start), material)));
    this.mesh.add(pivot);
    if (part.swing === 0) return;
    this.jaws.push({ pivot, swing: part.swing });
    pivot.rotation.y = jawAngle(part.swing, 0);
  }

  private moveJaws(seconds: number): boolean {
    if (this.jaws.length === 0 || this.shownGrip === this.grip) return false;
    const step = seconds / GRIP_TIME;
    this.shownGrip += Math.max(-step, Math.min(step, this.grip - this.shownGrip));
    for (const { pivot, swing } of this.jaws) pivot.rotation.y = jawAngle(swing, this.shownGrip);
    return true;
  }

  private shaft(): Vector3 {
    return new Vector3(0, 0, 1).applyQuaternion(this.orientation);
  }
}

function bare(mesh: Mesh): Mesh {
  mesh.frustumCulled = false;
  return mesh;
}

/** Says where each vertex is in the tool's frame, its jaws closed; `start` is the origin of the geometry there. */
function placed(geometry: BufferGeometry, start = new Vector3()): BufferGeometry {
  const place = geometry.getAttribute("position").array.slice() as Float32Array;
  for (let i = 0; i < place.length; i += 3) {
    place[i] += start.x;
    place[i + 1] += start.y;
    place[i + 2] += start.z;
  }
  return geometry.setAttribute("place", new BufferAttribute(place, 3));
}

function probeShaft(info: Does): number {
  return Math.min(THICKEST_SHAFT, 0.55 * roundEnd(info).radius);
}

/** What casts a shadow: the shaft, and the thin working end below it. */
function barsOf(info: Instrument): { from: Vector3; to: Vector3; radius: number }[] {
  const tip = new Vector3();
  const end = new Vector3(0, 0, SHAFT_LENGTH);
  if (info.parts.length === 0) return [{ from: tip, to: end, radius: probeShaft(info) }];
  const shaft = info.parts.find((part) => part.radius >= SHAFT_FROM);
  const thin = Math.max(0.0004, ...info.parts.filter((part) => part.radius < SHAFT_FROM).map((part) => part.radius));
  if (shaft === undefined) return [{ from: tip, to: end, radius: thin }];
  const low = Math.min(shaft.start[2], shaft.end[2]);
  const body = { from: new Vector3(0, 0, low), to: end, radius: shaft.radius };
  return low < 0.001 ? [body] : [{ from: tip, to: new Vector3(0, 0, low), radius: thin }, body];
}

/** A rounded bar from the origin to `along`. */
function barGeometry(along: Vector3, radius: number): BufferGeometry {
  const length = along.length();
  const turn = new Quaternion().setFromUnitVectors(new Vector3(0, 1, 0), along.clone().normalize());
  return new CapsuleGeometry(radius, length, 8, 24).translate(0, length / 2, 0).applyQuaternion(turn);
}

/** Radius and place along the instrument [m]: of its working end, and of the shaft that begins where that ends. */
export function probeProfiles(info: Does, shaft: number): { head: Vector2[]; shaft: Vector2[] } {
  const { radius, length, offset } = roundEnd(info);
  const head: Vector2[] = [];
  const bottom = 20;
  for (let i = 0; i <= bottom; i++) {
    const angle = (Math.PI / 2) * (i / bottom);
    head.push(new Vector2(radius * Math.sin(angle), offset - radius * Math.cos(angle)));
  }
  const neck = 0.72 * shaft;
  const meets = Math.acos(neck / radius);
  for (let i = 0; i <= 20; i++) {
    const angle = meets * (i / 20);
    head.push(new Vector2(radius * Math.cos(angle), offset + length + radius * Math.sin(angle)));
  }
  const top = offset + length + radius;
  const rod = [new Vector2(neck, top + 0.006), new Vector2(shaft, top + 0.011), new Vector2(shaft, top + 0.0115)];
  return { head, shaft: [head[head.length - 1].clone(), ...rod, new Vector2(shaft, SHAFT_LENGTH)] };
}

/** Lathes turn about y; instruments lie along z. */
function turned(profile: Vector2[]): LatheGeometry {
  return new LatheGeometry(profile, 36).rotateX(Math.PI / 2);
}
