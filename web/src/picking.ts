// Where a ray from the eye meets a triangle mesh first (Möller and Trumbore, J. Graphics Tools 2(1), 1997).

import { Vector3 } from "three";
import type { Ray } from "three";

export interface PickMesh {
  positions: Float32Array;
  normals: Float32Array;
  triangles: Uint32Array;
  /** How many of these numbers, from the first on, are of the outside; the rest are faces of cuts. All where it is not said. */
  outside?: number;
}

export interface Hit {
  /** Along the ray [m]. */
  distance: number;
  point: Vector3;
  /** Smooth, unit length, towards the outside. */
  normal: Vector3;
}

interface Nearest {
  distance: number;
  triangle: number;
  u: number;
  v: number;
}

/** Triangles seen from behind do not count: nobody points at the inside of an organ from outside. With `outsideOnly` those of cuts do not either. */
export function pick(ray: Ray, mesh: PickMesh, outsideOnly = false): Hit | null {
  const nearest = nearestTriangle(ray, mesh.positions, outsideOnly ? mesh.triangles.subarray(0, mesh.outside) : mesh.triangles);
  if (nearest === null) return null;
  const { distance, triangle, u, v } = nearest;
  const corner = [0, 1, 2].map((k) => mesh.triangles[triangle + k] * 3);
  const weight = [1 - u - v, u, v];
  const normal = new Vector3();
  corner.forEach((c, k) => {
    normal.x += weight[k] * mesh.normals[c];
    normal.y += weight[k] * mesh.normals[c + 1];
    normal.z += weight[k] * mesh.normals[c + 2];
  });
  return { distance, point: ray.at(distance, new Vector3()), normal: normal.normalize() };
}

function nearestTriangle(ray: Ray, p: Float32Array, triangles: Uint32Array): Nearest | null {
  const { x: ox, y: oy, z: oz } = ray.origin;
  const { x: dx, y: dy, z: dz } = ray.direction;
  let best: Nearest | null = null;
  let bestDistance = Infinity;
  for (let t = 0; t < triangles.length; t += 3) {
    const a = triangles[t] * 3, b = triangles[t + 1] * 3, c = triangles[t + 2] * 3;
    const ux = p[b] - p[a], uy = p[b + 1] - p[a + 1], uz = p[b + 2] - p[a + 2];
    const vx = p[c] - p[a], vy = p[c + 1] - p[a + 1], vz = p[c + 2] - p[a + 2];
    const hx = dy * vz - dz * vy, hy = dz * vx - dx * vz, hz = dx * vy - dy * vx;
    const det = ux * hx + uy * hy + uz * hz;
    if (det <= 0) continue;
    const sx = ox - p[a], sy = oy - p[a + 1], sz = oz - p[a + 2];
    const u = sx * hx + sy * hy + sz * hz;
    if (u < 0 || u > det) continue;
    const qx = sy * uz - sz * uy, qy = sz * ux - sx * uz, qz = sx * uy - sy * ux;
    const v = dx * qx + dy * qy + dz * qz;
    if (v < 0 || u + v > det) continue;
    const distance = (vx * qx + vy * qy + vz * qz) / det;
    if (distance <= 0 || distance >= bestDistance) continue;
    bestDistance = distance;
    best = { distance, triangle: t, u: u / det, v: v / det };
  }
  return best;
}

/** The first place where a ray meets one of these. */
export function nearest(ray: Ray, meshes: PickMesh[], outsideOnly: boolean): Hit | null {
  let best: Hit | null = null;
  for (const mesh of meshes) {
    const hit = pick(ray, mesh, outsideOnly);
    if (hit !== null && (best === null || hit.distance < best.distance)) best = hit;
  }
  return best;
}

/** As it is now, whatever becomes of it. */
export function copied(mesh: PickMesh): PickMesh {
  return { ...mesh, positions: mesh.positions.slice(), normals: mesh.normals.slice() };
}
