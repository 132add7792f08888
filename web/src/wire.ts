// Bytes to messages and back; positions are unpacked into arrays that the caller keeps.

import { decode, encode } from "@msgpack/msgpack";
import type { ArrayData, ArrayTiles, ClientMessage, ExactArray, ServerMessage, Surface } from "./protocol";

const SERVER_TYPES: ReadonlySet<string> = new Set([
  "welcome", "scene", "frame", "tiles", "topology", "session_state", "problem", "pong",
]);

export class WireError extends Error {}

export function encodeMessage(message: ClientMessage): Uint8Array<ArrayBuffer> {
  return encode(message);
}

export function decodeMessage(data: ArrayBuffer): ServerMessage {
  let value: unknown;
  try {
    value = decode(data);
  } catch (error) {
    throw new WireError(`The server sent bytes that are not MessagePack: ${String(error)}`);
  }
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  if (typeof type !== "string" || !SERVER_TYPES.has(type)) {
    throw new WireError(`The server sent a message of unknown type ${JSON.stringify(type)}.`);
  }
  return value as ServerMessage;
}

// Typed arrays need aligned bytes; inside a MessagePack message nothing is aligned.
function aligned(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.byteOffset % size === 0 ? bytes : bytes.slice();
}

export function trianglesOf(surface: Surface): Uint32Array {
  if (surface.triangles.byteLength % 12 !== 0) {
    throw new WireError(`Surface ${surface.name} has ${surface.triangles.byteLength} triangle bytes; 12 make a triangle.`);
  }
  const bytes = aligned(surface.triangles, 4);
  const triangles = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4).slice();
  for (const index of triangles) {
    if (index >= surface.vertex_count) {
      throw new WireError(`Surface ${surface.name} names vertex ${index}; it has ${surface.vertex_count}.`);
    }
  }
  return triangles;
}

/** The surface at rest, three numbers per vertex [m]; null when the server did not send it. */
export function restOf(surface: Surface): Float32Array | null {
  if (surface.rest === null) return null;
  if (surface.rest.byteLength !== surface.vertex_count * 12) {
    throw new WireError(`Surface ${surface.name} has ${surface.rest.byteLength} bytes at rest for ${surface.vertex_count} vertices.`);
  }
  const bytes = aligned(surface.rest, 4);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4).slice();
}

/** Where each triangle's corners lie in the textures, two numbers per corner; null when the surface has none. */
export function uvOf(surface: Surface): Float32Array | null {
  if (surface.uv === null) return null;
  if (surface.uv.byteLength !== surface.triangles.byteLength * 2) {
    throw new WireError(`Surface ${surface.name} has ${surface.uv.byteLength} bytes of texture places for ${surface.triangles.byteLength / 12} triangles.`);
  }
  const bytes = aligned(surface.uv, 4);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4).slice();
}

/** The numbers of an array that travels with every bit, `components` each row; not a copy where the bytes lie well. */
export function floatsOf(array: ExactArray, components: number): Float32Array {
  if (array.kind !== "f4" || array.components !== components || array.data.byteLength !== 4 * components * array.count) {
    throw new WireError(`Array ${array.name} has ${array.data.byteLength} bytes for ${array.count} rows of ${components} numbers.`);
  }
  const bytes = aligned(array.data, 4);
  return new Float32Array(bytes.buffer, bytes.byteOffset, array.count * components);
}

/** Column and row of each tile, in tiles. */
export function placesOf(tiles: ArrayTiles, side: number): Uint16Array {
  const count = tiles.places.byteLength / 4;
  if (!Number.isInteger(count) || tiles.data.byteLength !== count * side * side * 4) {
    throw new WireError(`Picture ${tiles.name} has ${tiles.data.byteLength} bytes for ${count} tiles of ${side} by ${side}.`);
  }
  const bytes = aligned(tiles.places, 2);
  return new Uint16Array(bytes.buffer, bytes.byteOffset, count * 2);
}

/** Fills `out` (three per point, metres) from 16-bit steps of the box. */
export function dequantise(array: ArrayData, out: Float32Array): void {
  if (array.data.byteLength !== array.count * 6 || out.length !== array.count * 3) {
    throw new WireError(
      `Array ${array.name} has ${array.data.byteLength} bytes for ${array.count} points, ${out.length / 3} expected.`,
    );
  }
  const bytes = aligned(array.data, 2);
  const steps = new Uint16Array(bytes.buffer, bytes.byteOffset, array.count * 3);
  const [low, high] = array.box;
  const sx = (high[0] - low[0]) / 65535;
  const sy = (high[1] - low[1]) / 65535;
  const sz = (high[2] - low[2]) / 65535;
  const [ox, oy, oz] = low;
  for (let i = 0; i < steps.length; i += 3) {
    out[i] = ox + sx * steps[i];
    out[i + 1] = oy + sy * steps[i + 1];
    out[i + 2] = oz + sz * steps[i + 2];
  }
}
