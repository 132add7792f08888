// A block of noise that tiles in all directions: rgb is its gradient (for bumps), a its value (for colour).
//
// Baked once, because a texture fetch is much cheaper than noise arithmetic where WebGL runs in software, and because
// its mipmaps take the bumps away before they turn into glitter in the distance.

import {
  Data3DTexture, LinearFilter, LinearMipmapLinearFilter, LinearMipmapNearestFilter, RGBAFormat, RepeatWrapping,
} from "three";
import { seeded } from "./random";

const SIDE = 64;
/** Cells of the coarsest octave in one tile; a tile of size s has features of s / 8. */
const CELLS = 8;

export function makeNoiseTexture(plain: boolean): Data3DTexture {
  const value = sumOctaves();
  const texture = new Data3DTexture(pack(value), SIDE, SIDE, SIDE);
  texture.format = RGBAFormat;
  texture.wrapS = texture.wrapT = texture.wrapR = RepeatWrapping;
  texture.magFilter = LinearFilter;
  texture.minFilter = plain ? LinearMipmapNearestFilter : LinearMipmapLinearFilter;
  texture.generateMipmaps = true;
  texture.needsUpdate = true;
  return texture;
}

function sumOctaves(): Float32Array {
  const value = new Float32Array(SIDE ** 3);
  addOctave(value, CELLS, 1.0, 11);
  addOctave(value, CELLS * 2, 0.45, 23);
  return value;
}

function addOctave(value: Float32Array, cells: number, weight: number, seed: number): void {
  const random = seeded(seed);
  const corners = Float32Array.from({ length: cells ** 3 }, () => random() * 2 - 1);
  const low = new Int32Array(SIDE);
  const high = new Int32Array(SIDE);
  const share = new Float32Array(SIDE);
  for (let i = 0; i < SIDE; i++) {
    const x = (i * cells) / SIDE;
    low[i] = Math.floor(x);
    high[i] = (low[i] + 1) % cells;
    const f = x - low[i];
    share[i] = f * f * f * (f * (f * 6 - 15) + 10);
  }
  let out = 0;
  for (let z = 0; z < SIDE; z++) {
    for (let y = 0; y < SIDE; y++) {
      const row00 = (low[z] * cells + low[y]) * cells;
      const row01 = (low[z] * cells + high[y]) * cells;
      const row10 = (high[z] * cells + low[y]) * cells;
      const row11 = (high[z] * cells + high[y]) * cells;
      const fy = share[y];
      const fz = share[z];
      for (let x = 0; x < SIDE; x++) {
        const l = low[x], h = high[x], fx = share[x];
        const a = corners[row00 + l] + fx * (corners[row00 + h] - corners[row00 + l]);
        const b = corners[row01 + l] + fx * (corners[row01 + h] - corners[row01 + l]);
        const c = corners[row10 + l] + fx * (corners[row10 + h] - corners[row10 + l]);
        const d = corners[row11 + l] + fx * (corners[row11 + h] - corners[row11 + l]);
        const near = a + fy * (b - a);
        value[out++] += weight * (near + fz * (c + fy * (d - c) - near));
      }
    }
  }
}

function pack(value: Float32Array): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(SIDE ** 3 * 4);
  const mask = SIDE - 1;
  const at = (x: number, y: number, z: number) => value[((z & mask) * SIDE + (y & mask)) * SIDE + (x & mask)];
  const byte = (v: number) => Math.max(0, Math.min(255, Math.round(127.5 + 127.5 * v)));
  const slope = 1.6; // central differences here stay within ±0.6, so this fills the bytes
  let out = 0;
  for (let z = 0; z < SIDE; z++) {
    for (let y = 0; y < SIDE; y++) {
      for (let x = 0; x < SIDE; x++) {
        data[out++] = byte(slope * (at(x + 1, y, z) - at(x - 1, y, z)));
        data[out++] = byte(slope * (at(x, y + 1, z) - at(x, y - 1, z)));
        data[out++] = byte(slope * (at(x, y, z + 1) - at(x, y, z - 1)));
        data[out++] = byte(0.8 * at(x, y, z));
      }
    }
  }
  return data;
}
