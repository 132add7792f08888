// A scope through a trocar: its lens looks along its shaft, or aside of it. The formula is in world/systems/scope.py.

import { Vector3 } from "three";

export interface Scope {
  trocar: Vector3;
  angle: number; // of the lens, relative to the shaft [rad]
}

/** The setting `lens` as an angle [rad]; null where the view is free. */
export function lensAngle(setting: number | undefined): number | null {
  return [null, 0, Math.PI / 6][setting ?? 0] ?? null;
}

/** Brings the eye to where such a scope can be: as far from what it looks at, and on the side where it was. */
export function throughScope(eye: Vector3, target: Vector3, { trocar, angle }: Scope): void {
  const shaft = trocar.clone().sub(target);
  const away = shaft.length();
  const offset = eye.clone().sub(target);
  const distance = offset.length();
  if (away < 1e-6 || distance >= away) return;
  shaft.divideScalar(away);
  const across = offset.addScaledVector(shaft, -offset.dot(shaft));
  // Straight in line with the shaft, any side will do.
  if (across.lengthSq() < 1e-12) across.set(shaft.y, shaft.z, shaft.x).addScaledVector(shaft, -(shaft.x * shaft.y + shaft.y * shaft.z + shaft.z * shaft.x));
  const aside = angle - Math.asin((distance * Math.sin(angle)) / away);
  eye.copy(target).addScaledVector(shaft, distance * Math.cos(aside)).addScaledVector(across.normalize(), distance * Math.sin(aside));
}
