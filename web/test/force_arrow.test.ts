import { Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { FAINTEST, FAINTEST_AT_WORK, ForceArrows, LONGEST } from "../src/look/force_arrow";
import type { ToolState } from "../src/protocol";

const felt = (tool: number, force: ToolState["force"], position: ToolState["position"] = [0.01 * tool, 0, 0.03]): ToolState =>
  ({ tool, active: true, position, orientation: [0, 0, 0, 1], force, torque: [0, 0, 0], handle_force: force, handle_torque: [0, 0, 0], grip: 0 });
const always = () => FAINTEST;
/** Where the arrows that are drawn begin, x [m]. */
const drawn = (arrows: ForceArrows) => arrows.group.children.filter((arrow) => arrow.visible).map((arrow) => arrow.position.x);

describe("force arrows", () => {
  it("stand at every tip that feels something, along its own force", () => {
    const arrows = new ForceArrows();
    arrows.update([felt(0, [0, 0, 0.4]), felt(1, [0.3, 0, 0])], always);
    expect(drawn(arrows)).toEqual([0, 0.01]);
    const [one, two] = arrows.shown;
    expect(one.newtons).toBeCloseTo(0.4);
    expect(one.end.distanceTo(new Vector3(0, 0, 0.03 + 0.4 * arrows.scale))).toBeLessThan(1e-9);
    expect(two.end.distanceTo(new Vector3(0.01 + 0.3 * arrows.scale, 0, 0.03))).toBeLessThan(1e-9);
    const points = new Vector3(0, 1, 0).applyQuaternion(two.group.quaternion);
    expect(points.distanceTo(new Vector3(1, 0, 0))).toBeLessThan(1e-6);
  });

  it("are as long as the scene says per newton, whatever was felt before, and end in the picture", () => {
    const arrows = new ForceArrows();
    arrows.begin(0.2);
    const length = () => arrows.shown[0].end.z - 0.03;
    arrows.update([felt(0, [0, 0, 0.2])], always);
    expect(length()).toBeCloseTo(0.04);
    arrows.update([felt(0, [0, 0, 4])], always);
    expect(length()).toBeCloseTo(LONGEST);
    arrows.update([felt(0, [0, 0, 0.2])], always);
    expect(length()).toBeCloseTo(0.04);
    arrows.begin(0.1);
    expect(drawn(arrows)).toEqual([]);
    arrows.update([felt(0, [0, 0, 0.2])], always);
    expect(length()).toBeCloseTo(0.02);
  });

  it("go when their tool leaves, feels nothing, or is not in the frame, and come back", () => {
    const arrows = new ForceArrows();
    const both = [felt(0, [0, 0, 0.4]), felt(1, [0, 0, 0.3])];
    arrows.update(both, always);
    arrows.update([both[0], { ...both[1], active: false }], always);
    expect(drawn(arrows)).toEqual([0]);
    arrows.update([{ ...both[0], force: [0, 0, 0] }, both[1]], always);
    expect(drawn(arrows)).toEqual([0.01]);
    arrows.update([{ ...both[0], force: [Number.NaN, 0, 0] }], always);
    expect(drawn(arrows)).toEqual([]);
    arrows.update(both, always);
    expect(drawn(arrows)).toEqual([0, 0.01]);
    expect(arrows.group.children).toHaveLength(2);
    expect(arrows.shown[0].end.toArray().every(Number.isFinite)).toBe(true);
  });

  it("are not drawn over a tip that works at a light touch", () => {
    const arrows = new ForceArrows();
    const atWork = (tool: number) => (tool === 1 ? FAINTEST_AT_WORK : FAINTEST);
    arrows.update([felt(0, [0, 0, 0.02]), felt(1, [0, 0, 0.02])], atWork);
    expect(drawn(arrows)).toEqual([0]);
    arrows.update([felt(0, [0, 0, 0.02]), felt(1, [0, 0, 0.04])], atWork);
    expect(drawn(arrows)).toEqual([0, 0.01]);
  });
});
