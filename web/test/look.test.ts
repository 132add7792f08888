import { Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { probeProfiles } from "../src/look/instrument";
import { makeLight, standOn } from "../src/look/light";
import { Spark } from "../src/look/spark";
import { makeSteelMaterial } from "../src/look/steel_material";

describe("a probe", () => {
  const ball = (offset = 0, length = 0) => ({ effects: [{ kind: "pushes" as const, radius: 0.05, length, offset, friction: 0.1, solid: false }] });

  it("has its marks on the shaft alone, which begins above the ball", () => {
    const { head, shaft } = probeProfiles(ball(), 0.0025);
    const top = Math.max(...head.map(({ y }) => y));
    expect(head[0].y).toBeCloseTo(-0.05, 9);
    expect(Math.max(...head.map(({ x }) => x))).toBeCloseTo(0.05, 9);
    expect(Math.min(...shaft.map(({ y }) => y))).toBe(top);
    expect(shaft[0].equals(head[head.length - 1])).toBe(true); // no gap between them
  });

  it("has its round end where the effect says, as long as it says", () => {
    const { head } = probeProfiles(ball(0.02, 0.1), 0.0025);
    expect(head[0].y).toBeCloseTo(0.02 - 0.05, 9);
    expect(head.filter(({ x }) => Math.abs(x - 0.05) < 1e-9).map(({ y }) => Number(y.toFixed(6)))).toEqual([0.02, 0.12]);
  });
});

describe("the ground", () => {
  it("is told to every material at once, and earth is not red", () => {
    const light = makeLight();
    const steel = makeSteelMaterial(light, "polished");
    standOn(light, "earth");
    const { x, y, z } = steel.uniforms.uGround.value as Vector3;
    expect(Math.max(x, y, z) / Math.min(x, y, z)).toBeLessThan(1.5);
    standOn(light, "flesh");
    expect((steel.uniforms.uGround.value as Vector3).x).toBeGreaterThan(3 * (steel.uniforms.uGround.value as Vector3).y);
  });
});

describe("the arc", () => {
  const after = (pictures: number) => {
    const spark = new Spark();
    const light = Array.from({ length: pictures }, () => spark.update(new Vector3(0.1, 0, 0)));
    return { spark, light };
  };

  it("looks the same after as many pictures, and is gone with the current", () => {
    expect(after(40).light).toEqual(after(40).light);
    const { spark } = after(3);
    expect(spark.sprite.visible).toBe(true);
    expect(spark.update(null)).toBe(0);
    expect(spark.sprite.visible).toBe(false);
  });
});
