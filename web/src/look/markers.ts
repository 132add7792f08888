// What stays on the tissue and is no fluid: the steel clips that close vessels. A U of wire per clip, lying on the tissue.

import { CatmullRomCurve3, CurvePath, Group, LineCurve3, Mesh, Quaternion, SphereGeometry, TubeGeometry, Vector3 } from "three";
import type { BufferGeometry, ShaderMaterial } from "three";
import type { ArrayData, ParticlesInfo } from "../protocol";
import { dequantise } from "../wire";

// In half lengths of a clip.
const GAP = 0.3; // from the middle to each leg
const WIRE = 0.17; // radius
const RAISED = 0.12; // above the tissue

/** Clips are told as particles, two points each; all others are fluids. */
export function isClip({ look }: Pick<ParticlesInfo, "look">): boolean {
  return look === "clip";
}

/** Where clips sit, from pairs of points: the place, and one straight above; equal where there is none. */
export function clipPoses(points: Float32Array): { place: Vector3; up: Vector3 }[] {
  const poses: { place: Vector3; up: Vector3 }[] = [];
  for (let i = 0; i + 6 <= points.length; i += 6) {
    const place = new Vector3().fromArray(points, i);
    const up = new Vector3().fromArray(points, i + 3).sub(place);
    // Shorter is what 16 bits leave of nothing.
    if (up.length() > 1e-3) poses.push({ place, up: up.normalize() });
  }
  return poses;
}

/** Lies across the world's x axis as far as the tissue lets it; z is up. */
export function clipTurn(up: Vector3): Quaternion {
  const across = new Vector3(1, 0, 0).addScaledVector(up, -up.x);
  if (across.length() < 1e-3) across.set(0, 1, 0).addScaledVector(up, -up.y);
  across.normalize();
  const flat = new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), up);
  const now = new Vector3(1, 0, 0).applyQuaternion(flat);
  const angle = Math.atan2(new Vector3().crossVectors(now, across).dot(up), now.dot(across));
  return new Quaternion().setFromAxisAngle(up, angle).multiply(flat);
}

export class Clips {
  readonly group = new Group();
  private infos: ParticlesInfo[] = [];
  private readonly parts: BufferGeometry[] = clipParts();

  constructor(private readonly steel: ShaderMaterial) {}

  setScene(infos: ParticlesInfo[]): void {
    this.infos = infos.filter(isClip);
    this.group.clear();
  }

  update(arrays: ArrayData[]): void {
    let used = 0;
    for (const info of this.infos) {
      const array = arrays.find((candidate) => candidate.name === info.name);
      if (array === undefined) continue;
      const points = new Float32Array(3 * array.count);
      dequantise(array, points);
      for (const { place, up } of clipPoses(points)) {
        const clip = this.group.children.at(used) ?? this.add();
        clip.position.copy(place).addScaledVector(up, RAISED * info.radius);
        clip.quaternion.copy(clipTurn(up));
        clip.scale.setScalar(info.radius);
        used += 1;
      }
    }
    this.group.children.forEach((clip, i) => (clip.visible = i < used));
  }

  private add(): Group {
    const clip = new Group();
    for (const part of this.parts) clip.add(new Mesh(part, this.steel));
    this.group.add(clip);
    return clip;
  }
}

/** Two legs and the bend that joins them, with round ends; half a unit long to each side, z up. */
function clipParts(): BufferGeometry[] {
  const bend = Array.from({ length: 9 }, (_, i) => {
    const angle = Math.PI * (i / 8 - 0.5);
    return new Vector3(1 - GAP + GAP * Math.cos(angle), GAP * Math.sin(angle), 0);
  });
  const way = new CurvePath<Vector3>();
  const ends = [new Vector3(-1, -GAP, 0), new Vector3(-1, GAP, 0)];
  way.add(new LineCurve3(ends[0], bend[0]));
  way.add(new CatmullRomCurve3(bend));
  way.add(new LineCurve3(bend[8], ends[1]));
  const caps = ends.map((end) => new SphereGeometry(WIRE, 12, 8).translate(end.x, end.y, end.z));
  return [new TubeGeometry(way, 48, WIRE, 10, false), ...caps];
}
