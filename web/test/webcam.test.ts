import { describe, expect, it } from "vitest";
import { features, fit, unseenError } from "../src/webcam/calibration";
import type { Landmarks, Look } from "../src/webcam/calibration";

/** A face whose irises follow a place on the screen, turned by `roll` and `size` times as large. */
function face(x: number, y: number, roll = 0, size = 1, noise = 0): Landmarks {
  let state = Math.round(1000 * x + 77 * y) + 1;
  const chance = () => {
    state = (state * 16807) % 2147483647;
    return noise * (state / 2147483647 - 0.5);
  };
  const iris = (middle: number) => [middle - 8 * (x - 0.5), 200 + 5 * (y - 0.5)];
  const plain: number[][] = [
    [230, 200], [280, 200], [255, 190], [255, 208 - 3 * y], iris(255),
    [360, 200], [410, 200], [385, 190], [385, 208 - 3 * y], iris(385),
    [320, 110], [320, 390], [320, 280], [200, 230], [440, 230],
  ];
  const [c, s] = [size * Math.cos(roll), size * Math.sin(roll)];
  return plain.map(([px, py]) => {
    const [dx, dy] = [px + chance() - 320, py + chance() - 240];
    return [320 + c * dx - s * dy, 240 + s * dx + c * dy];
  });
}

const PLACES = [0.1, 0.5, 0.9].flatMap((y) => [0.1, 0.5, 0.9].map((x) => ({ x, y })));

function looks(noise: number): Look[] {
  return PLACES.flatMap((place, k) => [0, 1, 2, 3].map((n) => ({ place, features: features(face(place.x + 1e-4 * n, place.y + 1e-4 * k, 0, 1, noise)) })));
}

describe("gaze by webcam", () => {
  it("has features that neither a tilted head nor its distance changes", () => {
    const plain = features(face(0.3, 0.8)), other = features(face(0.3, 0.8, 0.3, 1.4));
    plain.forEach((value, k) => expect(other[k]).toBeCloseTo(value, 9));
    expect(features(face(0.9, 0.5))[0]).toBeLessThan(features(face(0.1, 0.5))[0]);
  });

  it("finds places between those it was calibrated with", () => {
    const found = fit(looks(0));
    for (const [x, y] of [[0.3, 0.3], [0.7, 0.4], [0.5, 0.8]]) {
      const place = found(features(face(x, y)));
      expect(Math.hypot(place.x - x, place.y - y)).toBeLessThan(0.03);
    }
  });

  it("says how far off it is where it was not calibrated, and more so with a worse camera", () => {
    const sharp = unseenError(looks(0.2), 1.6), blurred = unseenError(looks(2), 1.6);
    expect(sharp).toBeLessThan(0.12);
    expect(blurred).toBeGreaterThan(1.5 * sharp);
  });
});
