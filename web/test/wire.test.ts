import { decode, encode } from "@msgpack/msgpack";
import { describe, expect, it } from "vitest";
import { PROTOCOL } from "../src/protocol";
import type { ArrayData, ExactArray, Surface } from "../src/protocol";
import { WireError, decodeMessage, dequantise, encodeMessage, floatsOf, restOf, trianglesOf } from "../src/wire";

function buffer(bytes: Uint8Array): ArrayBuffer {
  return bytes.slice().buffer;
}

function quantised(points: number[], low: [number, number, number], high: [number, number, number]): Uint8Array {
  const steps = points.map((value, i) => Math.round(((value - low[i % 3]) / (high[i % 3] - low[i % 3])) * 65535));
  return new Uint8Array(new Uint16Array(steps).buffer);
}

const NONE = new Uint8Array(0);

describe("messages", () => {
  it("go out as maps with a type", () => {
    expect(decode(encodeMessage({ type: "hello", protocol: PROTOCOL }))).toEqual({ type: "hello", protocol: PROTOCOL });
  });

  it("come in by their type", () => {
    const message = decodeMessage(buffer(encode({ type: "pong", client_time: 12.5 })));
    expect(message).toEqual({ type: "pong", client_time: 12.5 });
  });

  it.each([[{ type: "surprise" }], [{ no: "type" }], [42], [null]])("refuse %j", (value) => {
    expect(() => decodeMessage(buffer(encode(value)))).toThrow(WireError);
  });

  it("refuse bytes that are not MessagePack", () => {
    expect(() => decodeMessage(new Uint8Array([0xc1, 0xff]).buffer)).toThrow(WireError);
  });
});

describe("dequantise", () => {
  const low: [number, number, number] = [-0.048, -0.05, 0];
  const high: [number, number, number] = [0.048, 0.07, 0.033];
  const points = [-0.048, -0.05, 0, 0.048, 0.07, 0.033, 0.0123, -0.0031, 0.0207];

  it("gives back every coordinate within half a step of its axis", () => {
    const out = new Float32Array(9);
    dequantise({ name: "tissue", count: 3, box: [low, high], data: quantised(points, low, high), shades: NONE }, out);
    points.forEach((value, i) => {
      const halfStep = (high[i % 3] - low[i % 3]) / 65535 / 2;
      // float32 has 24 bits: its own rounding of 0.07 m is some 4e-9 m.
      expect(Math.abs(out[i] - value)).toBeLessThanOrEqual(halfStep + 1e-8);
    });
  });

  it("reads bytes that start at an odd place in the message", () => {
    const data = quantised(points, low, high);
    const shifted = new Uint8Array(data.length + 1);
    shifted.set(data, 1);
    const array = (bytes: Uint8Array): ArrayData => ({ name: "tissue", count: 3, box: [low, high], data: bytes, shades: NONE });
    const expected = new Float32Array(9);
    const out = new Float32Array(9);
    dequantise(array(data), expected);
    dequantise(array(shifted.subarray(1)), out);
    expect(out).toEqual(expected);
  });

  it("gives a flat box its one value", () => {
    const out = new Float32Array(3);
    dequantise({ name: "a", count: 1, box: [[1, 2, 3], [1, 2, 3]], data: new Uint8Array(6), shades: NONE }, out);
    expect([...out]).toEqual([1, 2, 3]);
  });

  it("refuses bytes that do not fit the count", () => {
    const array: ArrayData = { name: "tissue", count: 3, box: [low, high], data: new Uint8Array(17), shades: NONE };
    expect(() => dequantise(array, new Float32Array(9))).toThrow(/tissue.*17 bytes/);
  });
});

describe("triangles", () => {
  const info = (triangles: Uint8Array): Surface => ({
    name: "block", material: "tissue", triangles, array: "tissue", vertex_count: 4, rest: null, uv: null, triangle_capacity: 0, backdrop: false,
  });

  it("are little-endian uint32", () => {
    expect([...trianglesOf(info(new Uint8Array([0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0]))).triangles]).toEqual([0, 1, 3]);
  });

  it("refuse a vertex that is not there", () => {
    expect(() => trianglesOf(info(new Uint8Array([0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0])))).toThrow(/vertex 4/);
  });

  it("refuse half a triangle", () => {
    expect(() => trianglesOf(info(new Uint8Array(8)))).toThrow(WireError);
  });
});

describe("arrays with every bit", () => {
  const array = (numbers: number[], components: number): ExactArray => {
    const bytes = new Uint8Array(4 * numbers.length + 1);
    bytes.set(new Uint8Array(new Float32Array(numbers).buffer), 1);
    return { name: "clips", count: numbers.length / components, components, kind: "f4", data: bytes.subarray(1) };
  };

  it("are read from any offset", () => {
    expect([...floatsOf(array([0.5, 1, -2, 4], 2), 2)]).toEqual([0.5, 1, -2, 4]);
  });

  it("are refused when their rows are of another length", () => {
    expect(() => floatsOf(array([0.5, 1, -2, 4], 2), 4)).toThrow(/clips/);
    expect(() => floatsOf({ ...array([1, 2], 2), kind: "i4" }, 2)).toThrow(WireError);
  });
});

describe("restOf", () => {
  const surface = (rest: Uint8Array | null): Surface => ({
    name: "block", material: "tissue", triangles: new Uint8Array(0), array: "tissue", vertex_count: 2, rest, uv: null, triangle_capacity: 0, backdrop: false,
  });

  it("reads three numbers per vertex, from any offset", () => {
    const bytes = new Uint8Array(25);
    bytes.set(new Uint8Array(new Float32Array([1, 2, 3, 4, 5, 6]).buffer), 1);
    expect(Array.from(restOf(surface(bytes.subarray(1))) ?? [])).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("is nothing when nothing was sent, and refuses the wrong length", () => {
    expect(restOf(surface(null))).toBeNull();
    expect(() => restOf(surface(new Uint8Array(12)))).toThrow(WireError);
  });
});
