// Bytes to messages and back; positions are unpacked into arrays that the caller keeps.

import { decode, encode } from "@msgpack/msgpack";
import type { ArrayData, ArrayTiles, ClientMessage, ExactArray, ServerMessage, Surface, Topology } from "./protocol";

const SERVER_TYPES: ReadonlySet<string> = new Set([
  "welcome", "scene", "frame", "tiles", "topology", "score", "standing", "session_state", "problem", "pong",
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

/** What a surface is made of. */
export interface Triangles {
  /** Three vertices each. */
  triangles: Uint32Array;
  vertexCount: number;
  /** Its vertices at rest, three numbers each [m]; null when nobody said. */
  rest: Float32Array | null;
  /** Where each triangle's corners lie in the textures, two numbers per corner; null when the surface has none. */
  uv: Float32Array | null;
}

/** As the scene has it: for good, or until the first message about them where they change. */
export function trianglesOf(surface: Surface): Triangles {
  const { name, vertex_count, triangle_capacity } = surface;
  if (surface.triangles.byteLength % 12 !== 0) {
    throw new WireError(`Surface ${name} has ${surface.triangles.byteLength} triangle bytes; 12 make a triangle.`);
  }
  const rest = restOf(surface);
  const vertexCount = triangle_capacity > 0 && rest !== null ? rest.length / 3 : vertex_count;
  const triangles = copied(surface.triangles, Uint32Array);
  if (surface.uv !== null && surface.uv.byteLength !== surface.triangles.byteLength * 2) {
    throw new WireError(`Surface ${name} has ${surface.uv.byteLength} bytes of texture places for ${triangles.length / 3} triangles.`);
  }
  return checked(name, { triangles, vertexCount, rest, uv: surface.uv === null ? null : copied(surface.uv, Float32Array) });
}

/** The surface at rest, three numbers per vertex [m]; null when the server did not send it. */
export function restOf({ name, rest, vertex_count, triangle_capacity }: Surface): Float32Array | null {
  if (rest === null) return null;
  const most = vertex_count * 12;
  // A surface that is cut begins with fewer vertices than it has room for.
  if (triangle_capacity > 0 ? rest.byteLength > most || rest.byteLength % 12 !== 0 : rest.byteLength !== most) {
    throw new WireError(`Surface ${name} has ${rest.byteLength} bytes at rest for ${vertex_count} vertices.`);
  }
  return copied(rest, Float32Array);
}

/** As a message has them that replaces them. */
export function trianglesIn({ arrays }: Topology, { name, vertex_count }: Surface): Triangles {
  const part = (what: string) => {
    const found = arrays.find((array) => array.name === `${name}/${what}`);
    if (found === undefined) throw new WireError(`The triangles of surface ${name} came without ${name}/${what}.`);
    return found;
  };
  const triangles = part("triangles");
  if (triangles.kind !== "i4" || triangles.components !== 3 || triangles.data.byteLength !== 12 * triangles.count) {
    throw new WireError(`Surface ${name} has ${triangles.data.byteLength} bytes for ${triangles.count} triangles.`);
  }
  const rest = floatsOf(part("rest"), 3).slice();
  const uv = floatsOf(part("uv"), 6).slice();
  if (rest.length > 3 * vertex_count || (uv.length > 0 && uv.length !== 6 * triangles.count)) {
    throw new WireError(`Surface ${name} has ${rest.length / 3} vertices at rest and texture places of ${uv.length / 6} triangles.`);
  }
  return checked(name, {
    triangles: copied(triangles.data, Uint32Array), vertexCount: rest.length / 3, rest, uv: uv.length > 0 ? uv : null,
  });
}

function checked(name: string, mesh: Triangles): Triangles {
  for (const index of mesh.triangles) {
    if (index >= mesh.vertexCount) throw new WireError(`Surface ${name} names vertex ${index}; it has ${mesh.vertexCount}.`);
  }
  return mesh;
}

function copied<Numbers>(data: Uint8Array, as: new (buffer: ArrayBuffer) => Numbers): Numbers {
  return new as(data.slice().buffer);
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
  if (!Number.isInteger(count) || tiles.data.byteLength !== count * side * side * tiles.channels) {
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
