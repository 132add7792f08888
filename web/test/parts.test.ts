import { PerspectiveCamera, Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { deflection } from "../src/hand/gamepad";
import { LatencyMeter } from "../src/latency";
import { Resolution } from "../src/look/resolution";
import { NormalField } from "../src/normals";
import { Orbit } from "../src/orbit";
import { clock, niceCeiling, plain, sliderStep } from "../src/panels/format";
import { Rate } from "../src/rate";
import { lensAngle, throughScope } from "../src/scope";

/** A grid of (n+1)² vertices over the unit square, heights from `height`. */
function sheet(n: number, height: (x: number, y: number) => number) {
  const positions = new Float32Array((n + 1) ** 2 * 3);
  const triangles: number[] = [];
  for (let j = 0; j <= n; j++) {
    for (let i = 0; i <= n; i++) {
      const v = j * (n + 1) + i;
      positions.set([i / n, j / n, height(i / n, j / n)], 3 * v);
      if (i < n && j < n) triangles.push(v, v + 1, v + n + 2, v, v + n + 2, v + n + 1);
    }
  }
  return { positions, triangles: new Uint32Array(triangles), middle: (n / 2) * (n + 1) + n / 2 };
}

describe("normals", () => {
  it("of a tilted plane are its own everywhere", () => {
    const { positions, triangles } = sheet(8, (x, y) => 0.5 * x - 0.25 * y);
    const field = new NormalField(triangles, positions.length / 3);
    field.update(positions);
    const expected = new Vector3(-0.5, 0.25, 1).normalize();
    for (let i = 0; i < field.normals.length; i += 3) {
      expect(field.normals[i]).toBeCloseTo(expected.x, 5);
      expect(field.normals[i + 1]).toBeCloseTo(expected.y, 5);
      expect(field.normals[i + 2]).toBeCloseTo(expected.z, 5);
    }
  });

  it("know a pit from a ridge, at any scale", () => {
    const pit = sheet(8, (x, y) => Math.hypot(x - 0.5, y - 0.5));
    const field = new NormalField(pit.triangles, pit.positions.length / 3);
    field.update(pit.positions);
    const inPit = field.hollows[pit.middle];
    expect(inPit).toBeGreaterThan(0.3);
    field.update(pit.positions.map((value) => value * 0.01));
    expect(field.hollows[pit.middle]).toBeCloseTo(inPit, 4);
    field.update(pit.positions.map((value, i) => (i % 3 === 2 ? -value : value)));
    expect(field.hollows[pit.middle]).toBeCloseTo(-inPit, 4);
  });
});

describe("latency", () => {
  it("counts from the newest movement that a drawn frame holds", () => {
    const meter = new LatencyMeter();
    meter.sent(1, 100);
    meter.sent(2, 110);
    meter.sent(3, 120);
    meter.drawn(0, 125);
    expect(meter.median()).toBeNull();
    meter.drawn(2, 150);
    expect(meter.median()).toBe(40);
    meter.drawn(2, 170);
    expect(meter.count()).toBe(1);
  });

  it("is the median", () => {
    const meter = new LatencyMeter();
    [30, 10, 500, 20, 25].forEach((latency, i) => {
      meter.sent(i, 1000 * i);
      meter.drawn(i, 1000 * i + latency);
    });
    expect(meter.median()).toBe(25);
  });
});

describe("orbit", () => {
  const info = { position: [0.02, -0.14, 0.16], target: [0, 0, 0.016], up: [0, 0, 1], field_of_view: 40, trocar: null };
  const made = () => {
    const orbit = new Orbit();
    orbit.set(info as Parameters<Orbit["set"]>[0]);
    return orbit;
  };
  const placed = (orbit: Orbit) => {
    for (let i = 0; i < 200; i++) orbit.advance(0.016);
    const camera = new PerspectiveCamera();
    orbit.place(camera);
    return camera;
  };

  it("begins where the scene says", () => {
    expect(placed(made()).position.distanceTo(new Vector3(...info.position))).toBeLessThan(1e-9);
  });

  it("turns about the target at a constant distance, and back again", () => {
    const orbit = made();
    orbit.turn(1.1, -0.2);
    const camera = placed(orbit);
    const target = new Vector3(...info.target);
    expect(camera.position.distanceTo(target)).toBeCloseTo(orbit.distance(), 9);
    expect(camera.position.distanceTo(new Vector3(...info.position))).toBeGreaterThan(0.05);
    orbit.reset();
    expect(placed(orbit).position.distanceTo(new Vector3(...info.position))).toBeLessThan(1e-4);
  });

  it("never goes over the top, below 8° above the table, or away", () => {
    const orbit = made();
    orbit.turn(0, -50);
    expect(placed(orbit).position.z).toBeGreaterThan(0.1);
    orbit.turn(0, 50);
    const low = placed(orbit).position.sub(new Vector3(...info.target));
    expect((Math.asin(low.z / low.length()) * 180) / Math.PI).toBeCloseTo(8, 3);
    orbit.zoom(1e6);
    expect(placed(orbit).position.length()).toBeLessThan(1);
  });

  it("looks from as low as the scene does, and no lower", () => {
    const orbit = new Orbit();
    orbit.set({ position: [0, -0.3, 0.01], target: [0, 0, 0], up: [0, 0, 1], field_of_view: 40, trocar: null });
    orbit.turn(0, 50);
    expect(placed(orbit).position.z).toBeCloseTo(0.01, 6);
  });

  it("looks straight down when the scene does", () => {
    const orbit = new Orbit();
    orbit.set({ position: [0, 0, 0.3], target: [0, 0, 0], up: [0, 0, 1], field_of_view: 40, trocar: null });
    expect(placed(orbit).position.toArray().every(Number.isFinite)).toBe(true);
  });
});

describe("scope", () => {
  const target = new Vector3(0, 0.01, 0.02);
  const trocar = new Vector3(0.05, -0.1, 0.25);

  it.each([0, Math.PI / 6])("looks %f rad aside of its shaft, as far away as before, on the side where it was", (angle) => {
    for (const eye of [new Vector3(0.1, -0.02, 0.1), new Vector3(-0.05, 0.09, 0.12)]) {
      const before = eye.clone();
      throughScope(eye, target, { trocar, angle });
      expect(eye.distanceTo(target)).toBeCloseTo(before.distanceTo(target), 9);
      const shaft = eye.clone().sub(trocar);
      expect(shaft.angleTo(target.clone().sub(eye))).toBeCloseTo(angle, 6);
      const aside = (one: Vector3) => one.clone().sub(target).projectOnPlane(trocar.clone().sub(target).normalize());
      if (angle > 0) expect(aside(eye).angleTo(aside(before))).toBeCloseTo(0, 5);
    }
  });

  it("is free where its setting says so, or where there is none", () => {
    expect([lensAngle(undefined), lensAngle(0), lensAngle(1)]).toEqual([null, null, 0]);
    expect(lensAngle(2)).toBeCloseTo(0.5236, 4);
  });
});

describe("resolution", () => {
  it("falls while pictures are slow, and only then", () => {
    const resolution = new Resolution(false, false);
    for (let i = 0; i < 500; i++) resolution.note(16);
    expect(resolution.share()).toBe(1);
    for (let i = 0; i < 500; i++) resolution.note(80);
    expect(resolution.share()).toBe(0.5);
  });

  it("is not changed by one slow picture", () => {
    const resolution = new Resolution(false, false);
    for (let i = 0; i < 100; i++) expect(resolution.note(i % 5 === 0 ? 90 : 20)).toBe(false);
  });
});

describe("small things", () => {
  it("clock", () => {
    expect([0, 9.96, 59.94, 59.96, 75.26].map(clock)).toEqual(["0:00.0", "0:10.0", "0:59.9", "1:00.0", "1:15.3"]);
  });

  it("numbers", () => {
    expect([0, 5, 9.81, 0.15000000596, 1234.5].map(plain)).toEqual(["0", "5", "9.81", "0.15", "1235"]);
    expect([0.2, 0.21, 0.5, 3, 7].map(niceCeiling)).toEqual([0.2, 0.5, 0.5, 5, 10]);
    expect(sliderStep(1, 8)).toBeCloseTo(0.05);
  });

  it("sticks have a dead zone and full travel", () => {
    expect([0, 0.1, -0.15, 1, -1].map(deflection)).toEqual([0, 0, 0, 1, -1]);
  });

  it("rate counts the last second", () => {
    const rate = new Rate();
    for (let t = 0; t < 2000; t += 20) rate.note(t);
    expect(rate.perSecond(1999)).toBe(50);
    expect(rate.perSecond(10_000)).toBe(0);
  });
});
