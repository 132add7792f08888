import { describe, expect, it } from "vitest";

import { goalText, met } from "../src/panels/measures";

describe("goals", () => {
  it("are met at their bound and not beyond", () => {
    const least = { measure: "line_done", least: 90, most: null };
    const most = { measure: "charred", least: null, most: 0.5 };
    expect([met(least, 89.9), met(least, 90), met(most, 0.5), met(most, 0.6)]).toEqual([false, true, true, false]);
    expect(met(least, NaN)).toBe(false);
    expect(met(most, NaN)).toBe(false);
  });

  it("are said in words", () => {
    expect(goalText({ measure: "a", least: 90, most: null }, "%")).toBe("at least 90 %");
    expect(goalText({ measure: "a", least: 1, most: 2.5 }, "mL")).toBe("at least 1, at most 2.5 mL");
    expect(goalText({ measure: "a", least: null, most: 3 }, "")).toBe("at most 3");
    expect(goalText({ measure: "a", least: null, most: 0 }, "mm²")).toBe("none");
  });
});
