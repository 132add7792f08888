import { describe, expect, it } from "vitest";
import { holding } from "../src/panels/guide";
import { hasTissue, hintLines } from "../src/panels/overlay";
import { groups } from "../src/panels/parameters";
import type { ParameterInfo, SurfaceInfo } from "../src/protocol";

const parameter = (name: string, group: string): ParameterInfo =>
  ({ name, label: name, unit: "", minimum: 0, maximum: 1, default: 0, help: "", choices: [], group });

describe("settings", () => {
  it("stand under headings in the order of their first one, Advanced last", () => {
    const made = groups([parameter("mixing", "Advanced"), parameter("pressure", "Patient"), parameter("gauze", "Dressing"),
      parameter("rate", "Patient"), parameter("power", "Generator")]);
    expect(made.map(({ title }) => title)).toEqual(["Patient", "Dressing", "Generator", "Advanced"]);
    expect(made[0].parameters.map(({ name }) => name)).toEqual(["pressure", "rate"]);
    expect(made.map(({ open }) => open)).toEqual([true, true, false, false]);
  });

  it("without a heading come first", () => {
    const made = groups([parameter("flow", "Water"), parameter("free", "")]);
    expect(made.map(({ title }) => title)).toEqual(["", "Water"]);
  });

  it("that are all advanced are still folded", () => {
    expect(groups([parameter("drag", "Advanced")])[0].open).toBe(false);
  });
});

describe("the first hint", () => {
  const surface = (material: string) => ({ material }) as SurfaceInfo;

  it("speaks of tissue only where there is some", () => {
    expect(hasTissue({ surfaces: [surface("steel"), surface("liver")] })).toBe(true);
    expect(hasTissue({ surfaces: [surface("earth")] })).toBe(false);
    expect(hintLines("picture", "hold to press", false)[0]).toBe("Move over the picture.");
  });

  it("says what the button does", () => {
    expect(hintLines("tissue", holding([{ action: "coagulate" }]), false)[1]).toContain("pedal or handle");
    expect(hintLines("tissue", holding([{ action: "" }]), true)[0]).toBe("Touch the tissue; hold to press.");
  });
});
