import { Points } from "three";
import { describe, expect, it } from "vitest";
import { FluidSurface } from "../src/look/fluid";
import { FluidResolution } from "../src/look/fluid_resolution";
import { makeLight } from "../src/look/light";

function after(resolution: FluidResolution, interval: number, pictures: number): number {
  for (let i = 0; i < pictures; i++) resolution.note(interval);
  return resolution.share();
}

describe("resolution of a liquid", () => {
  it("falls while pictures are late, and ends at a quarter", () => {
    const resolution = new FluidResolution(false, false);
    const start = resolution.share();
    expect(after(resolution, 60, 9)).toBe(start);
    expect(after(resolution, 60, 1)).toBeLessThan(start);
    expect(after(resolution, 60, 500)).toBe(0.25);
  });

  it("is not moved by single late pictures", () => {
    const resolution = new FluidResolution(true, false);
    const start = resolution.share();
    for (let i = 0; i < 50; i++) {
      after(resolution, 60, 5);
      after(resolution, 25, 1);
    }
    expect(resolution.share()).toBe(start);
  });

  it("rises when there is time, but not again and again", () => {
    const resolution = new FluidResolution(true, false);
    const start = resolution.share();
    expect(after(resolution, 10, 200)).toBeGreaterThan(start);
    for (let i = 0; i < 10; i++) {
      after(resolution, 60, 10);
      after(resolution, 10, 200);
    }
    const settled = resolution.share();
    expect(after(resolution, 10, 1000)).toBe(settled);
  });

  it("stays where it is when it is fixed", () => {
    const resolution = new FluidResolution(false, true);
    expect(after(resolution, 500, 100)).toBe(0.5);
  });
});

describe("particles of a liquid", () => {
  // What is drawn is in the surface's own scene; a test looks at it through the object that three makes.
  const pointsOf = (fluid: FluidSurface) => {
    const found = Object.values(fluid).find((value): value is Points => value instanceof Points);
    if (found === undefined) throw new Error("no points");
    return found.geometry;
  };

  it("come and go, and the buffers grow once for many", () => {
    const fluid = new FluidSurface("water", makeLight(), true);
    fluid.setParticles(new Float32Array([1, 2, 3, 4, 5, 6]), 2);
    const first = pointsOf(fluid).attributes.position;
    expect([...first.array.slice(0, 6)]).toEqual([1, 2, 3, 4, 5, 6]);
    expect([...pointsOf(fluid).attributes.share.array.slice(0, 2)]).toEqual([1, 1]);
    fluid.setParticles(new Float32Array(600), 200);
    expect(pointsOf(fluid).attributes.position).toBe(first);
    fluid.setParticles(new Float32Array(3000), 1000, new Float32Array(1000).fill(0.25));
    expect(pointsOf(fluid).attributes.position.count).toBeGreaterThanOrEqual(1000);
    expect(pointsOf(fluid).attributes.share.array[999]).toBe(0.25);
    fluid.setParticles(new Float32Array(0), 0);
    expect(fluid.count).toBe(0);
    expect(pointsOf(fluid).drawRange.count).toBe(0);
  });

  it("do not change the number of pixels while there are none", () => {
    const fluid = new FluidSurface("blood", makeLight(), true);
    for (let i = 0; i < 100; i++) expect(fluid.note(500)).toBe(false);
    fluid.setParticles(new Float32Array(3), 1);
    const changes = Array.from({ length: 100 }, () => fluid.note(500)).filter(Boolean);
    expect(changes.length).toBe(1);
    expect(fluid.pixelShare()).toBe(0.25);
  });
});
