import { describe, expect, it } from "vitest";
import { matches, type Summary } from "../src/panels/recordings";

const one: Summary = {
  name: "barium-1.h5", scenario: "barium", title: "Barium enema", seed: 3, created: "2026-01-14T10:15:30Z", seconds: 60, complete: true,
  trials: [{ outcome: "given_up", passed: false, level: "Expert", time: 12, summary: "" }], trainees: ["Ada L."],
};

describe("a recording in the list", () => {
  it("is found by all that the list says of it", () => {
    for (const words of ["", "enema", "ada", "given up", "expert ADA", "2026"]) expect(matches(one, words)).toBe(true);
  });

  it("is left out where one word is not there", () => {
    for (const words of ["grace", "ada grace", "found"]) expect(matches(one, words)).toBe(false);
  });
});
