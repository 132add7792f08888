// Surfaces that change, volumes, threads, tiles and marks: from messages to what is drawn.

import { Ray, Vector3 } from "three";
import type { LineSegments } from "three";
import { describe, expect, it } from "vitest";
import { makeLight } from "../src/look/light";
import { besidePictures } from "../src/layout";
import { TissueSurface } from "../src/look/surface";
import { makeSteelMaterial } from "../src/look/steel_material";
import { SceneLattices } from "../src/look/lattice";
import { SceneThreads, Tubes, runsOf, smoothed } from "../src/look/threads";
import { TiledImage } from "../src/look/tiled_image";
import { SceneVolumes } from "../src/look/volumes";
import { marksOf } from "../src/panels/marks";
import { dragged, handsHelp } from "../src/panels/picture_hands";
import { pick } from "../src/picking";
import type { ArrayData, ArrayTiles, ExactArray, Parameter, Surface, Topology, Volume } from "../src/protocol";
import { WireError } from "../src/wire";

function floats(name: string, rows: number[][]): ExactArray {
  const data = new Uint8Array(new Float32Array(rows.flat()).buffer);
  return { name, count: rows.length, components: rows.length > 0 ? rows[0].length : 0, kind: "f4", data };
}

describe("a surface that is cut", () => {
  const SQUARE = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]];
  const surface: Surface = {
    name: "sheet", material: "tissue", array: "sheet", vertex_count: 6, backdrop: false, triangle_capacity: 4,
    triangles: new Uint8Array(new Int32Array([0, 1, 2, 0, 2, 3]).buffer), rest: new Uint8Array(new Float32Array(SQUARE.flat()).buffer), uv: null,
  };
  const topology = (version: number, rest: number[][], triangles: number[][]): Topology => ({
    type: "topology", session: 1, surface: "sheet", version,
    arrays: [
      { name: "sheet/triangles", count: triangles.length, components: 3, kind: "i4", data: new Uint8Array(new Int32Array(triangles.flat()).buffer) },
      floats("sheet/rest", rest),
      { ...floats("sheet/uv", triangles.map(() => [0, 0, 1, 0, 1, 1])), components: 6 },
    ],
  });
  const frame = (points: number[][]): ArrayData => ({
    name: "sheet", count: points.length, box: [[0, 0, 0], [2, 2, 2]], shades: new Uint8Array(0),
    data: new Uint8Array(Uint16Array.from(points.flat(), (value) => Math.round((value / 2) * 65535)).buffer),
  });
  const made = () => new TissueSurface(surface, makeSteelMaterial(makeLight(), "polished"));
  // The second triangle has corners of its own, 1 m above the first.
  const APART = [...SQUARE, [0, 0, 1], [1, 1, 1]];
  const CUT = [[0, 1, 2], [4, 5, 3]];

  it("takes other triangles with the frame that has them, not before", () => {
    const sheet = made();
    sheet.expect(topology(1, SQUARE, [[0, 1, 2], [0, 2, 3]]));
    sheet.update(frame(SQUARE), 1);
    const first = sheet.mesh.geometry;
    sheet.expect(topology(2, APART, CUT));
    sheet.update(frame(SQUARE), 1);
    expect(sheet.mesh.geometry).toBe(first);
    sheet.update(frame(APART), 2);
    expect(sheet.mesh.geometry).not.toBe(first);
    expect(sheet.positions.length).toBe(18);
    expect([...sheet.triangles]).toEqual(CUT.flat());
    expect([...sheet.mesh.geometry.attributes.uv.array.slice(0, 6)]).toEqual([0, 0, 1, 0, 1, 1]);
  });

  it("is picked on its new triangles", () => {
    const sheet = made();
    sheet.expect(topology(5, APART, [[0, 1, 2]]));
    sheet.update(frame(APART), 5);
    const down = (x: number, y: number) => pick(new Ray(new Vector3(x, y, 3), new Vector3(0, 0, -1)), sheet.pickMesh());
    expect(down(0.8, 0.2)?.normal.z).toBeCloseTo(1, 5);
    expect(down(0.2, 0.8)).toBeNull();
  });

  it("leaves out a frame whose triangles did not come, and forgets with a new line", () => {
    const sheet = made();
    sheet.update(frame(APART), 7);
    expect(sheet.mesh.visible).toBe(false);
    sheet.expect(topology(7, APART, CUT));
    sheet.update(frame(APART), 7);
    expect(sheet.mesh.visible).toBe(true);
    sheet.forget();
    sheet.update(frame(SQUARE), 1);
    expect(sheet.positions.length).toBe(18);
  });

  it("refuses triangles that are none, and those of a surface that stays", () => {
    const sheet = made();
    expect(() => sheet.expect(topology(2, SQUARE, CUT))).toThrow(/vertex 4/);
    expect(() => sheet.expect({ ...topology(2, APART, CUT), arrays: [] })).toThrow(/sheet\/triangles/);
    const still = new TissueSurface({ ...surface, vertex_count: 4, backdrop: false, triangle_capacity: 0 }, makeSteelMaterial(makeLight(), "polished"));
    expect(() => still.expect(topology(2, SQUARE, [[0, 1, 2]]))).toThrow(WireError);
  });
});

describe("pictures by tiles", () => {
  const tiles = (places: number[], value: number): ArrayTiles => ({
    name: "picture", channels: 4, places: new Uint8Array(Uint16Array.from(places).buffer), data: new Uint8Array((places.length / 2) * 64).fill(value),
  });

  it("have 0 in the channels that were not sent", () => {
    const image = new TiledImage("picture", 8, 4);
    image.put(tiles([0, 0], 9), 4);
    image.put({ ...tiles([0, 0], 5), channels: 2, data: new Uint8Array(32).fill(5) }, 4);
    expect([...image.texels.slice(0, 8)]).toEqual([5, 5, 0, 0, 5, 5, 0, 0]);
    expect(() => image.put({ ...tiles([0, 0], 5), channels: 2 }, 4)).toThrow(WireError);
  });

  it("say what changed once, neighbours as one", () => {
    const image = new TiledImage("picture", 12, 8);
    image.put(tiles([0, 1, 1, 1], 9), 4);
    image.put(tiles([2, 0], 3), 4);
    expect(image.takeChanged()).toEqual([{ x: 0, y: 4, width: 8, height: 4 }, { x: 8, y: 0, width: 4, height: 4 }]);
    expect(image.takeChanged()).toEqual([]);
    expect([image.texels[0], image.texels[4 * 8], image.texels[4 * (4 * 12)]]).toEqual([0, 3, 9]);
    image.clear();
    expect(image.takeChanged()).toHaveLength(1);
    expect(image.texels.every((byte) => byte === 0)).toBe(true);
  });
});

describe("a volume", () => {
  const info: Volume = { name: "smoke", look: "smoke", width: 32, height: 4, depth: 8, box: [[0, 0, 0], [1, 0.5, 2]], densest: 100 };

  it("is empty at first, then fills the part of its box that tiles fill", () => {
    const volumes = new SceneVolumes(makeLight(), true);
    volumes.setScene([info]);
    const [body] = volumes.bodies;
    body.upload();
    expect(body.empty).toBe(true);
    const data = new Uint8Array(32 * 32 * 4);
    data.set([200, 50, 0, 0], 4 * ((3 * 4 + 2) * 32 + 16)); // x 16, y 2, z 3
    expect(volumes.put({ name: "smoke", channels: 4, places: new Uint8Array(4), data }, 32)).toBe(true);
    expect(volumes.put({ name: "other", channels: 4, places: new Uint8Array(4), data }, 32)).toBe(false);
    body.upload();
    expect(body.empty).toBe(false);
    expect((body.texture.image.data as Uint8Array)[2 * ((3 * 4 + 2) * 32 + 16) + 1]).toBe(50);
    // Half a texel around it is something, by interpolation.
    expect(body.low.toArray()).toEqual([15.5 / 32, 1.5 / 4, 2.5 / 8]);
    expect(body.high.toArray()).toEqual([17.5 / 32, 3.5 / 4, 4.5 / 8]);
    volumes.clear();
    body.upload();
    expect(body.empty).toBe(true);
  });
});

describe("threads", () => {
  it("go on while they say so; a lone point is none", () => {
    const runs = runsOf(new Float32Array([0, 0, 0, 1, 1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 1, 3, 0, 0, 1]));
    expect(runs.map((run) => run.map(({ x }) => x))).toEqual([[0, 1], [2, 3]]);
  });

  it("are smooth, and go through their points", () => {
    const points = [new Vector3(0, 0, 0), new Vector3(1, 1, 0), new Vector3(2, 0, 0), new Vector3(3, 1, 0)];
    const way = smoothed(points);
    for (const point of points) expect(way.some((place) => place.distanceTo(point) < 1e-9)).toBe(true);
    for (let i = 2; i < way.length; i++) {
      const [one, other] = [way[i - 1].clone().sub(way[i - 2]).normalize(), way[i].clone().sub(way[i - 1]).normalize()];
      expect(one.dot(other)).toBeGreaterThan(0.5); // less than 60°, where the points turn by 90°
    }
  });

  it("are tubes of their radius with normals outwards, also where they turn back", () => {
    const tubes = new Tubes(0.1);
    const way = [new Vector3(0, 0, 0), new Vector3(1, 0, 0), new Vector3(1, 1, 0), new Vector3(0.2, 1, 0.5)];
    tubes.set([way]);
    const { position, normal } = tubes.geometry.attributes;
    const count = tubes.geometry.drawRange.count;
    expect(count).toBeGreaterThan(0);
    for (let i = 0; i < count; i++) {
      const vertex = tubes.geometry.index?.getX(i) ?? 0;
      const place = new Vector3().fromBufferAttribute(position, vertex), outwards = new Vector3().fromBufferAttribute(normal, vertex);
      const from = Math.min(...way.map((point) => place.distanceTo(point)));
      expect(from).toBeCloseTo(0.1, 5);
      expect(outwards.length()).toBeCloseTo(1, 5);
      const middle = way.find((point) => Math.abs(place.distanceTo(point) - 0.1) < 1e-5);
      expect(place.clone().sub(middle ?? place).dot(outwards)).toBeCloseTo(0.1, 5);
    }
  });

  it("come and go with their array", () => {
    const light = makeLight();
    const threads = new SceneThreads(makeSteelMaterial(light, "polished"), light);
    threads.setScene([{ name: "suture", look: "suture", radius: 0.001, capacity: 8 }]);
    threads.update([floats("suture", [[0, 0, 0, 1], [0.01, 0, 0, 1], [0.02, 0, 0, 0]])]);
    expect(threads.count()).toBe(3);
    threads.update([]);
    expect(threads.count()).toBe(0);
    threads.setScene([]);
    expect(threads.group.children).toHaveLength(0);
  });
});

describe("marks over the picture", () => {
  const field = { left: 280, top: 56, width: 600, height: 500 };

  it("go across what the panels leave free, from its upper left corner", () => {
    const [mark] = marksOf(new Float32Array([0.25, 0.5, 0.1, 0.5]), field);
    expect([mark.x, mark.y, mark.strength]).toEqual([430, 306, 0.5]);
    expect(mark.radius).toBeCloseTo(50, 4);
  });

  it("are left out when they have no strength or no place", () => {
    expect(marksOf(new Float32Array([0.5, 0.5, 0.1, 0, NaN, 0.5, 0.1, 1]), field)).toEqual([]);
    expect(marksOf(new Float32Array([0.5, 0.5, 0, 7]), field)[0]).toMatchObject({ radius: 1.5, strength: 1 });
  });
});

describe("a drag across a second picture", () => {
  const drag = { label: "the C-arm", across: "primary", up: "secondary", span: 90 };
  const range = (name: string, minimum: number, maximum: number): Parameter =>
    ({ name, label: name, unit: "°", minimum, maximum, default: 5, help: "", choices: [], group: "" });
  const ranges = [range("primary", -90, 90), range("secondary", -45, 45)];

  it("changes two parameters, in proportion to the way", () => {
    expect(dragged(drag, { primary: 10, secondary: -20 }, ranges, 0.5, -0.1)).toEqual([["primary", 55], ["secondary", -29]]);
  });

  it("begins at the default where no frame has come, and ends at the range", () => {
    expect(dragged(drag, {}, ranges, -2, 0.1)).toEqual([["primary", -90], ["secondary", 14]]);
  });

  it("is explained with the buttons that it needs", () => {
    const picture = { name: "xray", title: "X-ray", width: 32, height: 32, help: "", drags: [drag], pedal: "beam", marks: "" };
    expect(handsHelp(picture)).toBe("Drag: the C-arm. Hold the pedal or B: beam.");
  });
});

describe("the room of the view beside a picture", () => {
  it("is the left half of a wide window and the lower half of an upright one", () => {
    expect(besidePictures({ left: 10, top: 20, width: 600, height: 400 })).toEqual({ left: 10, top: 20, width: 300, height: 400 });
    expect(besidePictures({ left: 0, top: 20, width: 300, height: 400 })).toEqual({ left: 0, top: 220, width: 300, height: 200 });
  });
});

describe("a lattice", () => {
  it("is drawn without the springs that are cut, and hides its surface only when it is shown instead", () => {
    const lattices = new SceneLattices(makeLight());
    const springs = new Uint8Array(new Int32Array([0, 1, 1, 2]).buffer);
    lattices.setScene([{ name: "a.lattice", surface: "a", springs, radius: 0.001, capacity: 3, parameter: "a_view" }]);
    lattices.update([]);
    expect(lattices.count()).toBe(0);
    expect(lattices.hides("a", { a_view: 1 })).toBe(false);
    lattices.update([floats("a.lattice", [[0, 0, 0, 0], [1, 0, 0, 1], [2, 0, 0, 1]]), floats("a.lattice/cut", [[1]])]);
    expect(lattices.count()).toBe(3);
    expect(lattices.hides("a", { a_view: 1 })).toBe(true);
    expect(lattices.hides("a", { a_view: 2 })).toBe(false);
    expect(lattices.hides("b", { a_view: 1 })).toBe(false);
    const lines = lattices.group.children[0].children[0] as LineSegments;
    expect(Array.from(lines.geometry.attributes.position.array)).toEqual([0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0]);
  });
});
