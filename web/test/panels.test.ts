import { describe, expect, it } from "vitest";
import { framed } from "../src/framing";
import { capital } from "../src/panels/banners";
import { holding } from "../src/panels/guide";
import { asksForForce, hasTissue, hintLines } from "../src/panels/overlay";
import { groups } from "../src/panels/parameters";
import { sentence, warningOf } from "../src/panels/drill";
import { remembered } from "../src/panels/who";
import type { Camera, DrillState, Instrument, Parameter, Surface } from "../src/protocol";

const parameter = (name: string, group: string): Parameter =>
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
  const surface = (material: string) => ({ material }) as Surface;

  it("speaks of tissue only where there is some", () => {
    expect(hasTissue({ surfaces: [surface("steel"), surface("liver")] })).toBe(true);
    expect(hasTissue({ surfaces: [surface("earth")] })).toBe(false);
    expect(hintLines("picture", "hold to press", false)[0]).toBe("Move over the picture.");
  });

  it("does not fold the force away where an instrument presses on tissue", () => {
    const tool = (action: string) => ({ action }) as Instrument;
    expect(asksForForce({ surfaces: [surface("liver")], instruments: [tool("cut"), tool("")] })).toBe(true);
    expect(asksForForce({ surfaces: [surface("liver")], instruments: [tool("cut")] })).toBe(false);
    expect(asksForForce({ surfaces: [surface("earth")], instruments: [tool("")] })).toBe(false);
  });

  it("says what the button does", () => {
    expect(hintLines("tissue", holding([{ action: "coagulate" }]), false)[1]).toContain("pedal or handle");
    expect(hintLines("tissue", holding([{ action: "" }]), true)[0]).toBe("Touch the tissue; hold to press.");
  });
});

describe("who used this browser last", () => {
  it("is remembered, and what cannot be read is nobody", () => {
    const kept = (text: string | null) => remembered({ getItem: () => text });
    expect(kept('{"trainee":"Ada","code":"abcd-efgh-jkmn"}')).toEqual({ trainee: "Ada", code: "abcd-efgh-jkmn" });
    expect(kept(null)).toEqual({ trainee: "", code: "" });
    expect(kept("{broken")).toEqual({ trainee: "", code: "" });
  });
});

describe("the warning of a drill", () => {
  const measures = [
    { name: "charred", label: "Charred", unit: "mm²", help: "", digits: 1, yes_no: false, grows: true },
    { name: "time", label: "Time", unit: "s", help: "", digits: 1, yes_no: false, grows: true },
    { name: "mist", label: "Mist", unit: "%", help: "", digits: 0, yes_no: false, grows: false },
  ];
  const level = { name: "Timed", settings: {}, goals: [
    { measure: "charred", least: null, most: 0.5 }, { measure: "time", least: null, most: 60 }, { measure: "mist", least: null, most: 5 }] };

  it("is of what is nearest to a limit that cannot be taken back", () => {
    expect(warningOf(level, measures, { charred: 0.1, time: 20, mist: 90 })).toBe("");
    expect(warningOf(level, measures, { charred: 0.1, time: 50, mist: 90 })).toBe("Time: 50.0 of 60 s");
    expect(warningOf(level, measures, { charred: 0.45, time: 50, mist: 90 })).toBe("Charred: 0.5 of 0.5 mm²");
    expect(warningOf(undefined, measures, { charred: 1 })).toBe("");
  });
});

describe("what is refused", () => {
  it("is told as a sentence, and files keep their names", () => {
    expect(capital("another viewer holds the instruments.")).toBe("Another viewer holds the instruments.");
    expect(capital("palpation-1.h5 is no recording.")).toBe("palpation-1.h5 is no recording.");
  });
});

describe("the sentence of a result", () => {
  const ended = { phase: "ended", outcome: "missed", level: 0, time: 8, failed: [], result: {}, certainty: 0.5, off: 0.0228 } as DrillState;

  it("says how far off and how sure in words that fit each other", () => {
    expect(sentence(ended, undefined, [])).toBe("The pin stands 22.8 mm beside the middle of what was hidden, seen along the pin; you guessed.");
    expect(sentence({ ...ended, certainty: 1 }, undefined, [])).toContain("you were sure.");
    expect(sentence({ ...ended, certainty: 0.6 }, undefined, [])).toContain("you were 60 % sure.");
  });
});

describe("the camera", () => {
  const camera: Camera = { position: [0, -2, 0], target: [0, 0, 0], up: [0, 0, 1], field_of_view: 90, trocar: null };
  const at = (...points: number[]) =>
    ({ name: "ground", rest: new Uint8Array(new Float32Array(points).buffer), vertex_count: points.length / 3 }) as Surface;

  it("stays where all is in sight, or nothing is known", () => {
    expect(framed({ camera, surfaces: [at(0.5, 0, 0.5), at()] })).toBe(camera);
  });

  it("goes back along its line of sight until the point farthest out is in sight", () => {
    // A field of 90° is as high to each side as it is deep; 4 % are left free.
    const [x, y, z] = framed({ camera, surfaces: [at(0, 1, 3, 0.1, 0, 0.1)] }).position;
    expect([x, z]).toEqual([0, 0]);
    expect(3 / (1 - y)).toBeCloseTo(0.96, 6);
  });

  it("does not go back for what lies around everything", () => {
    expect(framed({ camera, surfaces: [{ ...at(0, 1, 3), backdrop: true }] })).toBe(camera);
  });

  it("counts on a free area that is a little wider than high", () => {
    const [, y] = framed({ camera, surfaces: [at(4, 0, 0)] }).position;
    expect(4 / -y).toBeCloseTo(0.96 * 1.15, 6);
  });
});
