// From where the irises stand to where on the screen somebody looks: a quadratic fit to nine known places.
//
//   place = Σ wₖ tₖ,   t = 1, x, y, x², xy, y², lid, turn, nod
//
// with x, y the irises' place between the corners of the eyes, and the rest as in `features`. The weights are those of least
// squares with a small price on their size (ridge), on terms of mean 0 and deviation 1: what hardly changed while it was calibrated
// (a head that was held still) gets hardly any weight. The error that people are told is that of places which the fit has not seen:
// each of the nine is left out once.

import type { Place } from "../gaze";

/** Landmarks as the camera's frame posts them [px]: right eye's corners, lids and iris, left eye's, forehead, chin, nose, temples. */
export type Landmarks = [number, number][];

export interface Look {
  features: number[];
  place: Place;
}

const PRICE = 0.02; // of weights, per sample

/** Where irises stand, how open the lids are, how the head is turned: lengths in widths of an eye, or in distances of the eyes. */
export function features(landmarks: Landmarks): number[] {
  const [a, b, aTop, aLow, aIris, c, d, cTop, cLow, cIris, , , nose, temple, otherTemple] = landmarks;
  const across: [number, number] = [d[0] - a[0], d[1] - a[1]];
  const apart = Math.hypot(...across);
  const u: [number, number] = [across[0] / apart, across[1] / apart];
  const along = (p: number[], q: number[]) => (p[0] - q[0]) * u[0] + (p[1] - q[1]) * u[1];
  const down = (p: number[], q: number[]) => (p[1] - q[1]) * u[0] - (p[0] - q[0]) * u[1];
  const middle = (p: number[], q: number[]) => [0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1])];
  const eyes = [
    { middle: middle(a, b), width: along(b, a), iris: aIris, top: aTop, low: aLow },
    { middle: middle(c, d), width: along(d, c), iris: cIris, top: cTop, low: cLow },
  ];
  const mean = (value: (eye: (typeof eyes)[number]) => number) => 0.5 * (value(eyes[0]) + value(eyes[1]));
  const between = middle(eyes[0].middle, eyes[1].middle);
  return [
    mean((eye) => along(eye.iris, eye.middle) / eye.width),
    mean((eye) => down(eye.iris, eye.middle) / eye.width),
    mean((eye) => down(eye.low, eye.top) / eye.width),
    along(nose, middle(temple, otherTemple)) / apart,
    down(nose, between) / apart,
  ];
}

function terms([x, y, lid, turn, nod]: number[]): number[] {
  return [x, y, x * x, x * y, y * y, lid, turn, nod];
}

/** Solves A w = b for a symmetric, positive A (Gauss). */
function solve(a: number[][], b: number[]): number[] {
  const n = b.length, rows = a.map((row, i) => [...row, b[i]]);
  for (let k = 0; k < n; k++) {
    for (let i = k + 1; i < n; i++) {
      const factor = rows[i][k] / rows[k][k];
      for (let j = k; j <= n; j++) rows[i][j] -= factor * rows[k][j];
    }
  }
  const w = new Array<number>(n).fill(0);
  for (let k = n - 1; k >= 0; k--) {
    let rest = rows[k][n];
    for (let j = k + 1; j < n; j++) rest -= rows[k][j] * w[j];
    w[k] = rest / rows[k][k];
  }
  return w;
}

export type Fit = (features: number[]) => Place;

export function fit(looks: Look[]): Fit {
  const all = looks.map((look) => terms(look.features)), n = all.length;
  const mean = all[0].map((_, k) => all.reduce((sum, row) => sum + row[k], 0) / n);
  const scale = mean.map((m, k) => Math.sqrt(all.reduce((sum, row) => sum + (row[k] - m) ** 2, 0) / n) || 1);
  const standard = (row: number[]) => row.map((value, k) => (value - mean[k]) / scale[k]);
  const rows = all.map(standard);
  const square = mean.map((_, i) => mean.map((_, j) => rows.reduce((sum, row) => sum + row[i] * row[j], 0) + (i === j ? PRICE * n : 0)));
  const axis = (value: (place: Place) => number) => {
    const middle = looks.reduce((sum, look) => sum + value(look.place), 0) / n;
    const right = mean.map((_, i) => rows.reduce((sum, row, s) => sum + row[i] * (value(looks[s].place) - middle), 0));
    const weights = solve(square, right);
    return (row: number[]) => weights.reduce((sum, w, k) => sum + w * row[k], middle);
  };
  const x = axis((place) => place.x), y = axis((place) => place.y);
  return (seen) => {
    const row = standard(terms(seen));
    return { x: x(row), y: y(row) };
  };
}

/** Mean distance of places that the fit has not seen, in heights of the view. */
export function unseenError(looks: Look[], aspect: number): number {
  const places = [...new Map(looks.map(({ place }) => [`${place.x},${place.y}`, place])).values()];
  let sum = 0, count = 0;
  for (const left of places) {
    const rest = fit(looks.filter(({ place }) => place.x !== left.x || place.y !== left.y));
    for (const look of looks.filter(({ place }) => place.x === left.x && place.y === left.y)) {
      const found = rest(look.features);
      sum += Math.hypot(aspect * (found.x - left.x), found.y - left.y);
      count += 1;
    }
  }
  return sum / count;
}
