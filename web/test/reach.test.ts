import { PerspectiveCamera, Ray, Vector3 } from "three";
import { describe, expect, it } from "vitest";
import {
  CLEARANCE, advanced, depthOf, pointAtDepth, shaftDirection, shaftOrientation, touchingTip, trocarOf, viewRay,
} from "../src/hand/reach";
import { NormalField } from "../src/normals";
import { pick } from "../src/picking";

const WIDTH = 1280;
const HEIGHT = 720;
const UP = new Vector3(0, 0, 1);

function camera(): PerspectiveCamera {
  const eye = new PerspectiveCamera(40, WIDTH / HEIGHT, 0.01, 5);
  eye.up.copy(UP);
  eye.position.set(0.02, -0.13, 0.14);
  eye.lookAt(0, 0, 0.016);
  eye.updateMatrixWorld();
  return eye;
}

function toScreen(point: Vector3, eye: PerspectiveCamera): { x: number; y: number } {
  const clip = point.clone().project(eye);
  return { x: (0.5 + 0.5 * clip.x) * WIDTH, y: (0.5 - 0.5 * clip.y) * HEIGHT };
}

/** A square of side 0.1 m at height z, facing up. */
function plate(z: number) {
  const positions = new Float32Array([-0.05, -0.05, z, 0.05, -0.05, z, 0.05, 0.05, z, -0.05, 0.05, z]);
  const triangles = new Uint32Array([0, 1, 2, 0, 2, 3]);
  const field = new NormalField(triangles, 4);
  field.update(positions);
  return { positions, normals: field.normals, triangles };
}

describe("from screen to world", () => {
  it("the ray through a point's picture passes through the point", () => {
    const eye = camera();
    const point = new Vector3(0.013, -0.021, 0.032);
    const at = toScreen(point, eye);
    expect(viewRay(at, WIDTH, HEIGHT, eye).distanceToPoint(point)).toBeLessThan(1e-6);
  });

  it("also when panels shift the picture", () => {
    const eye = camera();
    eye.setViewOffset(WIDTH, HEIGHT, 120, -40, WIDTH, HEIGHT);
    const point = new Vector3(-0.03, 0.01, 0.02);
    expect(viewRay(toScreen(point, eye), WIDTH, HEIGHT, eye).distanceToPoint(point)).toBeLessThan(1e-6);
  });

  it("moving the cursor at one depth moves the tip in the camera's plane", () => {
    const eye = camera();
    const depth = depthOf(new Vector3(0, 0, 0.032), eye);
    const cursors = [{ x: 100, y: 80 }, { x: 640, y: 360 }, { x: 1200, y: 700 }];
    for (const cursor of cursors) {
      const tip = pointAtDepth(viewRay(cursor, WIDTH, HEIGHT, eye), eye, depth);
      expect(depthOf(tip, eye)).toBeCloseTo(depth, 9);
      expect(toScreen(tip, eye).x).toBeCloseTo(cursor.x, 3);
      expect(toScreen(tip, eye).y).toBeCloseTo(cursor.y, 3);
    }
  });
});

describe("picking", () => {
  it("finds the surface under the cursor, and the nearer of two", () => {
    const eye = camera();
    const at = toScreen(new Vector3(0.01, 0.005, 0.032), eye);
    const ray = viewRay(at, WIDTH, HEIGHT, eye);
    const hit = pick(ray, plate(0.032));
    const below = pick(ray, plate(0.01));
    expect(hit?.point.distanceTo(new Vector3(0.01, 0.005, 0.032))).toBeLessThan(1e-6);
    expect(hit?.normal.z).toBeCloseTo(1);
    expect(below?.distance).toBeGreaterThan(hit?.distance ?? Infinity);
  });

  it("finds nothing beside the surface, behind the eye, or from behind", () => {
    const down = new Vector3(0, 0, -1);
    expect(pick(new Ray(new Vector3(0.2, 0, 1), down), plate(0))).toBeNull();
    expect(pick(new Ray(new Vector3(0, 0, -1), down), plate(0))).toBeNull();
    expect(pick(new Ray(new Vector3(0, 0, -1), new Vector3(0, 0, 1)), plate(0))).toBeNull();
  });
});

describe("the tip", () => {
  it("rests on the surface with only the clearance between", () => {
    const hit = { distance: 1, point: new Vector3(0.01, 0, 0.032), normal: UP.clone() };
    expect(touchingTip(hit, 0.006).z).toBeCloseTo(0.032 + 0.006 + CLEARANCE, 9);
  });

  it("goes along the shaft, into the body for a positive advance", () => {
    const trocar = new Vector3(0.08, 0, 0.25);
    const tip = new Vector3(0, 0, 0.04);
    const deeper = advanced(tip, trocar, 0.01);
    expect(deeper.distanceTo(tip)).toBeCloseTo(0.01, 9);
    expect(deeper.distanceTo(trocar)).toBeCloseTo(tip.distanceTo(trocar) + 0.01, 9);
    expect(deeper.z).toBeLessThan(tip.z);
  });

  it("turns the instrument's z to the trocar, by a unit quaternion, from any place", () => {
    const trocar = new Vector3(0.03, 0.01, 0.25);
    for (const tip of [new Vector3(0, 0, 0), new Vector3(0.03, 0.01, 0), new Vector3(-0.05, 0.04, 0.03)]) {
      const turn = shaftOrientation(tip, trocar, UP);
      expect(turn.length()).toBeCloseTo(1, 9);
      expect(new Vector3(0, 0, 1).applyQuaternion(turn).dot(shaftDirection(tip, trocar))).toBeCloseTo(1, 9);
    }
  });

  it("has its trocar above, to the right of the eye", () => {
    const info = { position: [0, -0.2, 0.2], target: [0, 0, 0], up: [0, 0, 1], field_of_view: 40, trocar: null } as const;
    const trocar = trocarOf({ ...info, position: [...info.position], target: [...info.target], up: [...info.up] });
    expect(trocar.z).toBeGreaterThan(0.1);
    expect(trocar.x).toBeGreaterThan(0.05);
  });
});
