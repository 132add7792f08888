// Clips and pins: from an array's numbers to what is drawn.

import { Quaternion, Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { makeLight } from "../src/look/light";
import { SceneMarkers, markerPoses } from "../src/look/markers";
import { makeSteelMaterial } from "../src/look/steel_material";
import type { ExactArray, Markers } from "../src/protocol";

/** Its z axis to +x. */
const TILTED = new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), new Vector3(1, 0, 0)).toArray();

function values(name: string, rows: number[][]): ExactArray {
  const data = new Uint8Array(new Float32Array(rows.flat()).buffer);
  return { name, count: rows.length, components: 8, kind: "f4", data };
}

describe("markers", () => {
  const clips: Markers = { name: "clips", look: "clip", size: 0.0025, capacity: 2 };
  const pins: Markers = { name: "pins", look: "pin", size: 0.006, capacity: 2 };
  const markers = () => {
    const light = makeLight();
    const made = new SceneMarkers(makeSteelMaterial(light, "polished"), light);
    made.setScene([clips, pins]);
    return made;
  };

  it("are where an array says that there is one", () => {
    const poses = markerPoses(new Float32Array([0.01, 0, 0.02, ...TILTED, 1, 0.03, 0, 0, 0, 0, 0, 1, 0]));
    expect(poses.length).toBe(1);
    expect(poses[0].place.distanceTo(new Vector3(0.01, 0, 0.02))).toBeLessThan(1e-6);
    expect(new Vector3(0, 0, 1).applyQuaternion(poses[0].turn).distanceTo(new Vector3(1, 0, 0))).toBeLessThan(1e-6);
  });

  it("stand with z on the tissue, clips a little above it, pins in it", () => {
    const made = markers();
    made.update([values("clips", [[0.01, 0, 0.02, ...TILTED, 1]]), values("pins", [[0, 0, 0.03, 0, 0, 0, 1, 1]])]);
    const [clip, pin] = made.group.children.map((kind) => kind.children[0]);
    expect(clip.position.x).toBeGreaterThan(0.01);
    expect(clip.position.y).toBeCloseTo(0, 9);
    expect(clip.scale.x).toBeCloseTo(0.0025, 9);
    expect(pin.position.toArray()).toEqual([0, 0, Math.fround(0.03)]);
  });

  it("come and go, and are gone with their scene", () => {
    const made = markers();
    made.update([values("clips", [[0, 0, 0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0, 1, 1]])]);
    expect(made.count()).toBe(2);
    made.update([values("clips", [[0, 0, 0, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0, 1, 1]])]);
    expect(made.count()).toBe(1);
    expect(made.group.children[0].children[0].position.x).toBe(1);
    made.setScene([]);
    expect(made.count()).toBe(0);
  });
});
