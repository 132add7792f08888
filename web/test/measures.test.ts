import { describe, expect, it } from "vitest";

import { goalText, met, told } from "../src/panels/measures";

describe("goals", () => {
  it("are met at their bound and not beyond", () => {
    const least = { measure: "line_done", least: 90, most: null };
    const most = { measure: "charred", least: null, most: 0.5 };
    expect([met(least, 89.9), met(least, 90), met(most, 0.5), met(most, 0.6)]).toEqual([false, true, true, false]);
    expect(met(least, NaN)).toBe(false);
    expect(met(most, NaN)).toBe(false);
  });

  it("are said in words", () => {
    expect(goalText({ measure: "a", least: 90, most: null }, { unit: "%", yes_no: false })).toBe("at least 90 %");
    expect(goalText({ measure: "a", least: 1, most: 2.5 }, { unit: "mL", yes_no: false })).toBe("at least 1, at most 2.5 mL");
    expect(goalText({ measure: "a", least: null, most: 3 }, { unit: "", yes_no: false })).toBe("at most 3");
    expect(goalText({ measure: "a", least: null, most: 0 }, { unit: "mm²", yes_no: false })).toBe("none");
    expect(goalText({ measure: "a", least: 1, most: null }, { unit: "", yes_no: true })).toBe("yes");
  });

  it("tell numbers with their digits, and what is yes or no in these words", () => {
    expect([NaN, 0.25, 12].map((value) => told({ digits: 1, yes_no: false }, value))).toEqual(["–", "0.3", "12.0"]);
    expect([NaN, 0, 1].map((value) => told({ digits: 0, yes_no: true }, value))).toEqual(["–", "no", "yes"]);
  });
});
