// A camera that turns about a point, with the scene's own idea of up.

import { PerspectiveCamera, Vector3 } from "three";
import type { Camera } from "./protocol";
import { lensAngle, throughScope } from "./scope";

const LOWEST = 0.06; // rad from straight above
const HIGHEST = Math.PI / 2 - (8 * Math.PI) / 180; // 8° above the table, which lies below the point looked at
const NEAREST = 0.35; // of the scene's own distance
const FARTHEST = 2.6;
const SETTLE = 0.07; // time constant of the camera's motion [s]

interface Pose {
  azimuth: number;
  polar: number;
  distance: number;
}

export class Orbit {
  private up = new Vector3(0, 0, 1);
  private east = new Vector3(1, 0, 0);
  private north = new Vector3(0, 1, 0);
  private home: Pose = { azimuth: 0, polar: 1, distance: 0.3 };
  private goal: Pose = { ...this.home };
  private pose: Pose = { ...this.home };
  private highest = HIGHEST;
  private trocar: Vector3 | null = null;
  private angle: number | null = null;
  readonly target = new Vector3();
  fieldOfView = 40; // vertical [degrees]

  set(info: Camera): void {
    this.target.fromArray(info.target);
    this.up.fromArray(info.up).normalize();
    const offset = new Vector3().fromArray(info.position).sub(this.target);
    const level = offset.clone().addScaledVector(this.up, -offset.dot(this.up));
    // Straight above, any east will do.
    if (level.lengthSq() < 1e-12) level.set(1, 0, 0).addScaledVector(this.up, -this.up.x);
    if (level.lengthSq() < 1e-12) level.set(0, 1, 0);
    this.east.copy(level).normalize();
    this.north.crossVectors(this.up, this.east);
    const distance = Math.max(offset.length(), 1e-3);
    this.home = { azimuth: 0, polar: Math.acos(clamp(offset.dot(this.up) / distance, -1, 1)), distance };
    // A scene that looks from lower down may.
    this.highest = Math.max(HIGHEST, this.home.polar);
    this.goal = { ...this.home, polar: Math.max(this.home.polar, LOWEST) };
    this.pose = { ...this.goal };
    this.fieldOfView = info.field_of_view;
    this.trocar = info.trocar === null ? null : new Vector3(...info.trocar);
  }

  turn(azimuth: number, polar: number): void {
    this.goal.azimuth += azimuth;
    this.goal.polar = clamp(this.goal.polar + polar, LOWEST, this.highest);
  }

  /** `factor` below 1 comes nearer. */
  zoom(factor: number): void {
    const { distance } = this.home;
    this.goal.distance = clamp(this.goal.distance * factor, NEAREST * distance, FARTHEST * distance);
  }

  reset(): void {
    const turns = Math.round((this.goal.azimuth - this.home.azimuth) / (2 * Math.PI));
    this.goal = { ...this.home, azimuth: this.home.azimuth + turns * 2 * Math.PI };
  }

  /** Looks from a side, turned about the point from the first view, and from so high: 0 is straight above [rad]. */
  lookFrom(azimuth: number, polar: number): void {
    const turns = Math.round((this.goal.azimuth - this.home.azimuth - azimuth) / (2 * Math.PI));
    this.goal = { azimuth: this.home.azimuth + azimuth + turns * 2 * Math.PI, polar: clamp(polar, LOWEST, this.highest), distance: this.home.distance };
  }

  /** Moves towards the goal; true while something changed. */
  advance(seconds: number): boolean {
    const share = 1 - Math.exp(-seconds / SETTLE);
    let moved = false;
    for (const key of ["azimuth", "polar", "distance"] as const) {
      const gap = this.goal[key] - this.pose[key];
      if (gap === 0) continue;
      moved = true;
      this.pose[key] = Math.abs(gap) < 1e-5 ? this.goal[key] : this.pose[key] + share * gap;
    }
    return moved;
  }

  /** How the scope's lens looks, as its setting says; true when that is new. */
  look(setting: number | undefined): boolean {
    const before = this.angle;
    this.angle = lensAngle(setting);
    return this.trocar !== null && this.angle !== before;
  }

  distance(): number {
    return this.pose.distance;
  }

  place(camera: PerspectiveCamera): void {
    const { azimuth, polar, distance } = this.pose;
    const level = Math.sin(polar) * distance;
    camera.position
      .copy(this.target)
      .addScaledVector(this.east, Math.cos(azimuth) * level)
      .addScaledVector(this.north, Math.sin(azimuth) * level)
      .addScaledVector(this.up, Math.cos(polar) * distance);
    if (this.trocar !== null && this.angle !== null) throughScope(camera.position, this.target, { trocar: this.trocar, angle: this.angle });
    camera.up.copy(this.up);
    camera.lookAt(this.target);
    camera.updateMatrixWorld();
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
