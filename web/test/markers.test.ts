// Clips: pairs of points to poses, and how a clip lies on tissue.

import { Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { clipPoses, clipTurn } from "../src/look/markers";

describe("clips", () => {
  it("are where the second point is above the first, and nowhere else", () => {
    const poses = clipPoses(new Float32Array([0.01, 0, 0.02, 0.01, 0, 0.025, 0.03, 0, 0, 0.03, 0.000001, 0]));
    expect(poses.length).toBe(1);
    expect(poses[0].place.toArray().map((x) => Number(x.toFixed(6)))).toEqual([0.01, 0, 0.02]);
    expect(poses[0].up.distanceTo(new Vector3(0, 0, 1))).toBeLessThan(1e-6);
  });

  it("lie flat on the tissue and keep their direction while it tilts", () => {
    for (const up of [new Vector3(0, 0, 1), new Vector3(0.3, -0.5, 0.8), new Vector3(1, 0, 0), new Vector3(0, 0, -1)]) {
      up.normalize();
      const turn = clipTurn(up);
      expect(new Vector3(0, 0, 1).applyQuaternion(turn).distanceTo(up)).toBeLessThan(1e-6);
      const along = new Vector3(1, 0, 0).applyQuaternion(turn);
      expect(Math.abs(along.dot(up))).toBeLessThan(1e-6);
      if (Math.abs(up.x) < 0.9) expect(along.x).toBeGreaterThan(0.9);
    }
  });
});
