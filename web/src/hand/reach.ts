// From a point on the screen to a tip in the world: the geometry of the hand, nothing else.
//
// What acts of an instrument lies on what the cursor points at; beside every surface it hovers as high as the highest of them, so
// that neither it nor its shaft goes through one. The direction of the shaft is given by the trocar it passes through.

import { Box3, Matrix4, Quaternion, Ray, Vector2, Vector3 } from "three";
import type { Camera } from "three";
import type { Hit } from "../picking";
import type { Camera as SceneCamera, Scene } from "../protocol";

/** A hovering tip keeps this far off the surface, so that only pressing dents it [m]. */
export const CLEARANCE = 0.0003;

export interface ScreenPoint {
  x: number;
  y: number;
}

/** The ray through a point of the view, CSS pixels from its upper left corner. */
export function viewRay(point: ScreenPoint, width: number, height: number, camera: Camera): Ray {
  const clip = new Vector2((point.x / width) * 2 - 1, 1 - (point.y / height) * 2);
  const origin = new Vector3().setFromMatrixPosition(camera.matrixWorld);
  const direction = new Vector3(clip.x, clip.y, 0.5).unproject(camera).sub(origin).normalize();
  return new Ray(origin, direction);
}

export function viewAxis(camera: Camera): Vector3 {
  return new Vector3(0, 0, -1).transformDirection(camera.matrixWorld);
}

/** How far a point lies along the view axis [m]. */
export function depthOf(point: Vector3, camera: Camera): number {
  return point.clone().sub(new Vector3().setFromMatrixPosition(camera.matrixWorld)).dot(viewAxis(camera));
}

/** Where the ray crosses the camera's plane at `depth` along the view axis. */
export function pointAtDepth(ray: Ray, camera: Camera, depth: number): Vector3 {
  const along = ray.direction.dot(viewAxis(camera));
  return ray.at(depth / along, new Vector3());
}

const LEAST_SLOPE = 0.1; // a ray more level than this meets a height far away, if at all

/** Where the ray, looking down, is at this height along `up`; null where it is not, or only far away, or there is no height. */
export function pointAtHeight(ray: Ray, up: Vector3, height: number): Vector3 | null {
  const down = -ray.direction.dot(up);
  const distance = (ray.origin.dot(up) - height) / down;
  return down < LEAST_SLOPE || distance <= 0 || !Number.isFinite(distance) ? null : ray.at(distance, new Vector3());
}

/** How high the highest point of these meshes is along `up`; −Infinity without any. */
export function topOf(meshes: { positions: Float32Array }[], up: Vector3): number {
  let top = -Infinity;
  for (const { positions: p } of meshes) {
    for (let i = 0; i < p.length; i += 3) top = Math.max(top, p[i] * up.x + p[i + 1] * up.y + p[i + 2] * up.z);
  }
  return top;
}

/** A ball of this radius that rests on the surface where the cursor points. */
export function touchingTip(hit: Hit, radius: number): Vector3 {
  return hit.point.clone().addScaledVector(hit.normal, radius + CLEARANCE);
}

const STEEPEST = 0.3; // cosine between ray and normal; a more grazing ray would go far for little depth

/** Where the ray is `depth` below the surface that it met there [m]; still under the cursor. */
export function onRay(ray: Ray, { point, normal }: Hit, depth: number): Vector3 {
  return point.clone().addScaledVector(ray.direction, depth / Math.max(STEEPEST, -ray.direction.dot(normal)));
}

/** The nearest point of a scene's box. */
export function clampedTo(bounds: Scene["bounds"], point: Vector3): Vector3 {
  return new Box3(new Vector3(...bounds[0]), new Vector3(...bounds[1])).clampPoint(point, new Vector3());
}

/**
 * The line of a shaft that a free hand holds: to a point above what the camera looks at, towards the camera's right hand, so that
 * the shaft does not hide what its tip does. `aside` is how far, over the camera's distance.
 */
export function trocarOf(camera: SceneCamera, aside = 0.4): Vector3 {
  const target = new Vector3(...camera.target);
  const up = new Vector3(...camera.up).normalize();
  const towards = new Vector3(...camera.position).sub(target);
  const right = up.clone().cross(towards).normalize();
  const distance = towards.length();
  return target.addScaledVector(up, 1.15 * distance).addScaledVector(right, aside * distance);
}

/** Unit vector from the tip towards the hand. */
export function shaftDirection(tip: Vector3, trocar: Vector3): Vector3 {
  const direction = trocar.clone().sub(tip);
  return direction.lengthSq() < 1e-12 ? new Vector3(0, 0, 1) : direction.normalize();
}

/** Positive `advance` goes into the body, along the shaft. */
export function advanced(tip: Vector3, trocar: Vector3, advance: number): Vector3 {
  return tip.clone().addScaledVector(shaftDirection(tip, trocar), -advance);
}

/** Turns the instrument's own +z to the shaft: its x axis level, but for the `spin` that the hand gives it about the shaft [rad]. */
export function shaftOrientation(tip: Vector3, trocar: Vector3, up: Vector3, spin = 0): Quaternion {
  const z = shaftDirection(tip, trocar);
  const reference = Math.abs(z.dot(up)) > 0.99 ? new Vector3(up.y, up.z, up.x) : up;
  const x = reference.clone().cross(z).normalize();
  const y = z.clone().cross(x);
  const level = new Quaternion().setFromRotationMatrix(new Matrix4().makeBasis(x, y, z));
  return level.multiply(new Quaternion().setFromAxisAngle(new Vector3(0, 0, 1), spin));
}

/** The spin with which `shaftOrientation` gives this turn [rad]. */
export function spinOf(turn: readonly [number, number, number, number], tip: Vector3, trocar: Vector3, up: Vector3): number {
  const { z, w } = shaftOrientation(tip, trocar, up).invert().multiply(new Quaternion(...turn));
  return 2 * Math.atan2(z, w);
}

const ROUNDS = 5; // each leaves some 3 % of the error of the one before: how far what acts is aside, over how far the trocar is

/** Where the tip must be so that `actsAt`, in the instrument's own frame, is at `place`. */
export function tipFor(place: Vector3, actsAt: Vector3, trocar: Vector3, up: Vector3, spin: number): Vector3 {
  const tip = place.clone();
  if (actsAt.lengthSq() === 0) return tip;
  for (let i = 0; i < ROUNDS; i++) {
    const aside = actsAt.clone().applyQuaternion(shaftOrientation(tip, trocar, up, spin));
    tip.subVectors(place, aside);
  }
  return tip;
}
