// A scene's camera, far enough away that all of its surfaces are in the part of the window that the panels leave free.

import { Vector3 } from "three";
import type { Camera, Scene } from "./protocol";
import { restOf } from "./wire";

const NARROWEST = 1.15; // width over height of the free area that a scene's field of view is meant for (view.ts has the same number)
const FILLED = 0.96; // share of the free area that surfaces may take

/** As the scene has it, or farther back along the same line of sight; what surfaces are like at rest counts. */
export function framed({ camera, surfaces }: Pick<Scene, "camera" | "surfaces">): Camera {
  const target = new Vector3(...camera.target);
  const offset = new Vector3(...camera.position).sub(target);
  const distance = offset.length();
  const forward = offset.clone().negate().normalize();
  const right = new Vector3().crossVectors(forward, new Vector3(...camera.up)).normalize();
  if (distance === 0 || right.lengthSq() === 0) return camera;
  const upwards = new Vector3().crossVectors(right, forward);
  const high = FILLED * Math.tan((camera.field_of_view * Math.PI) / 360);
  const point = new Vector3();
  let needed = distance;
  for (const surface of surfaces) {
    if (surface.backdrop) continue;
    const values = restOf(surface) ?? [];
    for (let i = 0; i < values.length; i += 3) {
      point.fromArray(values, i).sub(target);
      const aside = Math.max(Math.abs(point.dot(right)) / NARROWEST, Math.abs(point.dot(upwards)));
      needed = Math.max(needed, aside / high - point.dot(forward));
    }
  }
  return needed === distance ? camera : { ...camera, position: target.addScaledVector(forward, -needed).toArray() };
}
