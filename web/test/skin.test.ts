import { describe, expect, it } from "vitest";
import { effectOf, isElectric, roundEnd } from "../src/instruments";
import { at, stagesOf } from "../src/look/burn_stages";
import { gather, splitCorners } from "../src/look/corners";
import { HEAT_STOPS, heatPlace } from "../src/look/heat_colours";
import { jawAngle } from "../src/look/instrument";
import { makeLight } from "../src/look/light";
import { SceneParticles, fillShares, fillVolumes, lookOf } from "../src/look/particles";
import { SkinTexture } from "../src/look/skin_texture";
import { holding } from "../src/panels/guide";
import { colourNumber, colourText, typed } from "../src/panels/tables";
import { instrumentLabel } from "../src/panels/toolbar";
import type { ArrayTiles, Column, Particles, Surface, Vector3 } from "../src/protocol";
import { WireError, trianglesOf } from "../src/wire";

describe("corners", () => {
  // Two triangles of a square; vertices 0 and 2 are shared. Vertex 2 lies at two places of the texture.
  const triangles = new Uint32Array([0, 1, 2, 0, 2, 3]);
  const uv = new Float32Array([0, 0, 1, 0, 1, 1, 0, 0, 0.5, 0.5, 0, 1]);

  it("split a vertex once per place, and no more", () => {
    const corners = splitCorners(triangles, uv, 4);
    expect([...corners.source].sort()).toEqual([0, 1, 2, 2, 3]);
    for (let corner = 0; corner < triangles.length; corner++) {
      const copy = corners.triangles[corner];
      expect(corners.source[copy]).toBe(triangles[corner]);
      expect([...corners.uv.subarray(2 * copy, 2 * copy + 2)]).toEqual([...uv.subarray(2 * corner, 2 * corner + 2)]);
    }
  });

  it("copies of a vertex get the same values", () => {
    const corners = splitCorners(triangles, uv, 4);
    const out = new Float32Array(corners.source.length * 3);
    gather(Float32Array.from({ length: 12 }, (_, i) => i), corners.source, 3, out);
    corners.source.forEach((vertex, i) => expect([...out.subarray(3 * i, 3 * i + 3)]).toEqual([3 * vertex, 3 * vertex + 1, 3 * vertex + 2]));
  });
});

describe("texture places", () => {
  const surface = (count: number, uv: Uint8Array | null): Surface => ({
    name: "liver", material: "liver", triangles: new Uint8Array(12 * count), array: "liver", vertex_count: 3, rest: null, uv,
    triangle_capacity: 0,
    backdrop: false,
  });

  it("are two numbers per corner, and may be missing", () => {
    const bytes = new Uint8Array(new Float32Array([0, 0.25, 0.5, 0.75, 1, 0.125]).buffer);
    expect([...(trianglesOf(surface(1, bytes)).uv ?? [])]).toEqual([0, 0.25, 0.5, 0.75, 1, 0.125]);
    expect(trianglesOf(surface(1, null)).uv).toBeNull();
    expect(() => trianglesOf(surface(2, bytes))).toThrow(WireError);
  });
});

describe("tiles", () => {
  const NONE: Vector3 = [0, 0, 0];
  const info = { name: "burn", surface: "liver", role: "burn" as const, width: 8, height: 8, absorption: NONE, body: NONE };
  const tiles = (places: number[], side: number): ArrayTiles => ({
    name: "burn", channels: 4, places: new Uint8Array(Uint16Array.from(places).buffer),
    data: Uint8Array.from({ length: (places.length / 2) * side * side * 4 }, (_, i) => 1 + Math.floor(i / (side * side * 4))),
  });

  it("go to their column and row and leave the rest", () => {
    const texture = new SkinTexture(info);
    texture.put(tiles([1, 0, 0, 1], 4), 4);
    const red = (x: number, y: number) => texture.texels[4 * (y * 8 + x)];
    expect([red(0, 0), red(4, 0), red(7, 3), red(0, 4), red(3, 7), red(4, 4)]).toEqual([0, 1, 1, 2, 2, 0]);
  });

  it("are refused where there is no place for them", () => {
    const texture = new SkinTexture(info);
    expect(() => texture.put(tiles([2, 0], 4), 4)).toThrow(/outside/);
    expect(() => texture.put({ ...tiles([0, 0], 4), data: new Uint8Array(12) }, 4)).toThrow(WireError);
  });
});

describe("burn stages", () => {
  const column = (name: string, kind: Column["kind"] = "number"): Column =>
    ({ name, label: name, unit: "", kind, minimum: 0, maximum: kind === "colour" ? 0xffffff : 2, help: "" });
  const columns = [column("level"), column("colour", "colour"), column("cover"), column("roughness"), column("wetness")];

  it("mix linearly between rows, in light and not in screen colours", () => {
    const stages = stagesOf(columns, [[0, 0x000000, 0, 0.2, 1], [2, 0xffffff, 1, 0.8, 0]]);
    const middle = at(stages, 1);
    expect(middle.red).toBeCloseTo(0.5, 6);
    expect(middle.cover).toBeCloseTo(0.5, 6);
    expect(middle.roughness).toBeCloseTo(0.5, 6);
    expect(at(stages, 5)).toEqual(stages[1]);
    expect(at(stages, -1)).toEqual(stages[0]);
  });

  it("know screen colours: sRGB 188 is half the light", () => {
    expect(at(stagesOf(columns, [[0, 0xbcbcbc, 1, 1, 1]]), 0).green).toBeCloseTo(0.5, 2);
  });

  it("take what the table does not say from the usual look", () => {
    const stages = stagesOf([column("level"), column("colour", "colour")], [[0, 0x123456], [2, 0]]);
    expect(at(stages, 2).wetness).toBe(0);
    expect(at(stages, 0).wetness).toBe(1);
  });

  it("are the usual ones where no column is called level", () => {
    const stages = stagesOf([column("sublevel"), column("colour", "colour")], [[0, 0xffffff], [2, 0xffffff]]);
    expect(at(stages, 2).red).toBeLessThan(0.02);
  });
});

describe("temperature legend", () => {
  it("stands where its colours are", () => {
    expect(heatPlace(HEAT_STOPS[0].temperature - 5)).toBe(0);
    expect(heatPlace(1000)).toBe(1);
    HEAT_STOPS.forEach(({ temperature }, i) => expect(heatPlace(temperature)).toBeCloseTo(i / (HEAT_STOPS.length - 1), 9));
  });
});

describe("tables", () => {
  const level: Column = { name: "level", label: "", unit: "", kind: "number", minimum: 0, maximum: 2, help: "" };
  const colour: Column = { ...level, kind: "colour", maximum: 0xffffff };

  it("write and read colours", () => {
    expect(colourText(0x0a0b0c)).toBe("#0a0b0c");
    expect(colourNumber("#0a0b0c")).toBe(0x0a0b0c);
    expect(typed(colour, "#ffffff")).toBe(0xffffff);
  });

  it.each([["1.5", 1.5], ["7", 2], ["-3", 0], ["", null], ["abc", null]])("take %j as %j", (text, value) => {
    expect(typed(level, text)).toBe(value);
  });
});

describe("instruments", () => {
  const named = (name: string, label = "", action = "") => ({ name, label, action });

  it("open their jaws when the handle is open", () => {
    expect(jawAngle(0.4, 0)).toBe(0.4);
    expect(jawAngle(0.4, 1)).toBe(0);
    expect(jawAngle(-0.4, 0.5)).toBe(-0.2);
    expect(jawAngle(0.4, 3)).toBe(0);
  });

  it("are known by what they do, whatever they are called", () => {
    const heats = { kind: "heats" as const, power: 30, reach: 0.0003, bipolar: false };
    const pushes = { kind: "pushes" as const, radius: 0.003, length: 0, offset: 0.001, friction: 0.1, solid: false };
    expect(isElectric({ ...named("spoon"), effects: [pushes, heats] })).toBe(true);
    expect(isElectric({ ...named("hook", "Bipolar hook"), effects: [pushes] })).toBe(false);
    expect(effectOf({ effects: [heats, pushes] }, "pushes")?.offset).toBe(0.001);
    expect(effectOf({ effects: [heats] }, "sucks")).toBeNull();
    expect(roundEnd({ effects: [heats, pushes] }).radius).toBe(0.003);
    expect(instrumentLabel(named("clip_applier"))).toBe("Clip applier");
  });

  it("say what the main button does", () => {
    expect(holding([named("probe")])).toBe("hold to press");
    expect(holding([named("hook", "", "coagulate")])).toMatch(/pedal/);
    expect(holding([named("probe"), named("hook", "", "coagulate")])).toMatch(/press.*pedal/);
  });
});

describe("particles", () => {
  const info = (fluid: Particles["fluid"], shade: Particles["shade"] = ""): Particles =>
    ({ name: fluid, fluid, radius: 0.001, capacity: 8, shade, fastest: 0, volume: 0, stretched: false });

  it("of several liquids look like the one that is not water", () => {
    expect(lookOf([info("saline"), info("blood")])).toBe("blood");
    expect(lookOf([info("water")])).toBe("water");
  });

  it("are all or nothing, or what their shades say", () => {
    const shades = new Uint8Array([0, 51, 255]);
    const shares = (of: Particles) => {
      const out = new Float32Array(3);
      fillShares(of, shades, 3, out);
      return [...out].map((share) => Number(share.toFixed(3)));
    };
    expect(shares(info("blood"))).toEqual([1, 1, 1]);
    expect(shares(info("saline", "speed"))).toEqual([0, 0, 0]);
    expect(shares(info("blood", "share"))).toEqual([0, 0.2, 1]);
  });

  it("hold as much liquid as their shades say, where these are volumes", () => {
    const volumes = (of: Particles, shades: Uint8Array) => {
      const out = new Float32Array(2);
      fillVolumes(of, shades, 2, out);
      return [...out].map((share) => Number(share.toFixed(3)));
    };
    expect(volumes(info("water", "volume"), new Uint8Array([255, 51]))).toEqual([1, 0.2]);
    expect(volumes(info("water", "speed"), new Uint8Array([255, 51]))).toEqual([1, 1]);
    expect(volumes(info("water", "volume"), new Uint8Array(0))).toEqual([1, 1]);
  });

  it("that are small are drops, the others a liquid; both are counted", () => {
    const particles = new SceneParticles(makeLight(), true, true);
    particles.setScene([{ ...info("blood", "share"), name: "drops", radius: 0.0004 }, info("water")]);
    const array = (name: string, count: number) => ({
      name, count, box: [[0, 0, 0], [1, 1, 1]] as [[number, number, number], [number, number, number]],
      data: new Uint8Array(6 * count).fill(255), shades: new Uint8Array(count).fill(255),
    });
    particles.update([array("drops", 3), array("water", 5)]);
    expect(particles.count()).toBe(8);
    expect(particles.drops.count).toBe(3);
    expect(particles.drops.points.visible).toBe(true);
    const { position, share } = particles.drops.points.geometry.attributes;
    expect([...position.array.slice(0, 9)]).toEqual(Array(9).fill(1));
    expect([...share.array.slice(0, 3)]).toEqual([1, 1, 1]);
    particles.update([array("drops", 0)]);
    expect(particles.drops.points.visible).toBe(false);
    particles.setScene([]);
    expect(particles.count()).toBe(0);
  });
});
