import { describe, expect, it } from "vitest";
import { STRONG, forceColour, strength, tone } from "../src/feel";
import { warning } from "../src/panels/devices";
import type { HapticState } from "../src/protocol";

describe("force for eyes and ears", () => {
  it("is silent and cold without force, whatever a broken frame says", () => {
    for (const force of [0, -1, Number.NaN]) {
      expect(strength(force)).toBe(0);
      expect(tone(force).loudness).toBe(0);
    }
  });

  it("rises with the force and stops rising at a strong one", () => {
    const pitches = [0.05, 0.2, 0.5, STRONG].map((force) => tone(force).pitch);
    expect(pitches).toEqual([...pitches].sort((a, b) => a - b));
    expect(tone(STRONG)).toEqual(tone(50));
    expect(tone(50).pitch).toBeCloseTo(440);
    expect(tone(50).loudness).toBeLessThan(0.2);
  });

  it("goes from amber to red", () => {
    const hue = (force: number) => Number(/hsl\((\d+)/.exec(forceColour(force))?.[1]);
    expect(hue(0)).toBe(43);
    expect(hue(STRONG)).toBe(3);
    expect(hue(0.3)).toBeLessThan(hue(0.1));
  });
});

describe("what is said about a device", () => {
  const device: HapticState = { tool: 0, device: "Touch", present: true, force: [0, 0, 1], mode: "running", gain: 1 };

  it("is nothing while all is well", () => {
    expect(warning(device)).toBe("");
  });

  it("says why the force fades or is gone", () => {
    expect(warning({ ...device, mode: "late" })).toContain("slower than real time");
    expect(warning({ ...device, mode: "stalled" })).toContain("stands still");
    expect(warning({ ...device, present: false })).toContain("away");
  });
});
