// A steel probe: a ball or a rounded rod at the tip, a neck, and a slender shaft that leaves the picture.

import { LatheGeometry, Mesh, Quaternion, Vector2, Vector3 } from "three";
import type { ShaderMaterial } from "three";
import type { InstrumentInfo, ToolInfo } from "../protocol";
import type { Shade } from "./light";

const SHAFT_LENGTH = 0.34; // [m]; a laparoscopic instrument's
const THICKEST_SHAFT = 0.0025; // [m]; radius of a 5 mm instrument
const WITHDRAWN = 0.22; // [m] along the shaft, out of the picture
const WITHDRAW_TIME = 0.22; // [s]

export class InstrumentModel {
  readonly mesh: Mesh;
  private readonly shaftRadius: number;
  private readonly position = new Vector3();
  private readonly orientation = new Quaternion();
  private active = false;
  private withdrawn = 1;

  constructor(readonly info: InstrumentInfo, material: ShaderMaterial) {
    this.shaftRadius = Math.min(THICKEST_SHAFT, 0.55 * info.radius);
    this.mesh = new Mesh(probeGeometry(info, this.shaftRadius), material);
    this.mesh.frustumCulled = false;
    this.mesh.visible = false;
  }

  update(tool: ToolInfo): void {
    this.active = tool.active;
    // Out of the body it keeps its last pose and slides away along it, instead of jumping home.
    if (!tool.active) return;
    this.position.fromArray(tool.position);
    this.orientation.fromArray(tool.orientation);
  }

  /** True while it moves by itself, in or out. */
  advance(seconds: number): boolean {
    const goal = this.active ? 0 : 1;
    const step = seconds / WITHDRAW_TIME;
    const before = this.withdrawn;
    this.withdrawn += Math.max(-4 * step, Math.min(step, goal - this.withdrawn));
    this.mesh.visible = this.withdrawn < 1;
    this.mesh.quaternion.copy(this.orientation);
    this.mesh.position.copy(this.position).addScaledVector(this.shaft(), WITHDRAWN * this.withdrawn ** 2);
    return before !== this.withdrawn;
  }

  shade(): Shade | null {
    if (!this.mesh.visible) return null;
    const end = this.mesh.position.clone().addScaledVector(this.shaft(), SHAFT_LENGTH);
    return { tip: this.mesh.position, radius: this.info.radius, end, shaftRadius: this.shaftRadius };
  }

  dispose(): void {
    this.mesh.geometry.dispose();
  }

  private shaft(): Vector3 {
    return new Vector3(0, 0, 1).applyQuaternion(this.orientation);
  }
}

function probeGeometry(info: InstrumentInfo, shaft: number): LatheGeometry {
  const { radius } = info;
  const straight = info.shape === "capsule" ? info.length : 0;
  const profile: Vector2[] = [];
  const bottom = 20;
  for (let i = 0; i <= bottom; i++) {
    const angle = (Math.PI / 2) * (i / bottom);
    profile.push(new Vector2(radius * Math.sin(angle), -radius * Math.cos(angle)));
  }
  const neck = 0.72 * shaft;
  const meets = Math.acos(neck / radius);
  for (let i = 0; i <= 20; i++) {
    const angle = meets * (i / 20);
    profile.push(new Vector2(radius * Math.cos(angle), straight + radius * Math.sin(angle)));
  }
  const top = straight + radius;
  profile.push(new Vector2(neck, top + 0.006), new Vector2(shaft, top + 0.011));
  profile.push(new Vector2(shaft, top + 0.0115), new Vector2(shaft, SHAFT_LENGTH));
  // Lathes turn about y; instruments lie along z.
  return new LatheGeometry(profile, 36).rotateX(Math.PI / 2);
}
