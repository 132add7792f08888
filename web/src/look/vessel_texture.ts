// Blood vessels under the surface, grown as wandering, branching, thinning lines on a sheet that tiles.
//
// Red: fine vessels in focus just under the surface. Green: deeper, wider ones, blurred by the tissue above them.

import {
  DataTexture, LinearFilter, LinearMipmapLinearFilter, LinearMipmapNearestFilter, RGFormat, RepeatWrapping,
} from "three";
import { seeded } from "./random";

const SIDE = 512;

interface Growth {
  roots: number;
  /** Radius at the root [texels]. */
  radius: number;
  /** Length at the root [texels]. */
  length: number;
  branching: number;
  seed: number;
}

const FINE: Growth = { roots: 15, radius: 1.9, length: 300, branching: 0.034, seed: 5 };
const DEEP: Growth = { roots: 5, radius: 6.5, length: 420, branching: 0.018, seed: 17 };

export function makeVesselTexture(plain: boolean): DataTexture {
  const fine = grow(FINE);
  const deep = blurred(blurred(grow(DEEP), 5), 5);
  const data = new Uint8Array(SIDE * SIDE * 2);
  for (let i = 0; i < SIDE * SIDE; i++) {
    data[2 * i] = Math.min(255, fine[i] * 255);
    data[2 * i + 1] = Math.min(255, deep[i] * 255);
  }
  const texture = new DataTexture(data, SIDE, SIDE, RGFormat);
  texture.wrapS = texture.wrapT = RepeatWrapping;
  texture.magFilter = LinearFilter;
  texture.minFilter = plain ? LinearMipmapNearestFilter : LinearMipmapLinearFilter;
  texture.generateMipmaps = true;
  texture.anisotropy = plain ? 1 : 8;
  texture.needsUpdate = true;
  return texture;
}

function grow(growth: Growth): Float32Array {
  const sheet = new Float32Array(SIDE * SIDE);
  const random = seeded(growth.seed);
  interface Tip { x: number; y: number; angle: number; radius: number; left: number }
  const tips: Tip[] = [];
  for (let i = 0; i < growth.roots; i++) {
    const angle = random() * 2 * Math.PI;
    const root = { x: random() * SIDE, y: random() * SIDE, radius: growth.radius * (0.6 + 0.6 * random()) };
    tips.push({ ...root, angle, left: growth.length }, { ...root, angle: angle + Math.PI, left: growth.length });
  }
  for (let tip = tips.pop(); tip !== undefined; tip = tips.pop()) {
    const life = tip.left;
    let bend = 0;
    for (; tip.left > 0; tip.left -= 1) {
      bend = 0.92 * bend + 0.055 * (random() - 0.5);
      tip.angle += bend;
      tip.x += Math.cos(tip.angle);
      tip.y += Math.sin(tip.angle);
      const radius = tip.radius * (0.35 + 0.65 * (tip.left / life));
      dot(sheet, tip.x, tip.y, radius);
      if (radius > 0.45 && random() < growth.branching) {
        const side = random() < 0.5 ? -1 : 1;
        const angle = tip.angle + side * (0.5 + 0.7 * random());
        tips.push({ x: tip.x, y: tip.y, angle, radius: radius * (0.5 + 0.25 * random()), left: tip.left * 0.55 });
      }
    }
  }
  return sheet;
}

function dot(sheet: Float32Array, x: number, y: number, radius: number): void {
  const reach = Math.ceil(radius + 1);
  for (let j = -reach; j <= reach; j++) {
    for (let i = -reach; i <= reach; i++) {
      const cx = Math.round(x) + i;
      const cy = Math.round(y) + j;
      const ink = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(cx - x, cy - y))) * Math.min(1, 0.35 + 0.4 * radius);
      const at = (cy & (SIDE - 1)) * SIDE + (cx & (SIDE - 1));
      if (ink > sheet[at]) sheet[at] = ink;
    }
  }
}

/** Mean over a square, by running sums, wrapping at the borders. */
function blurred(sheet: Float32Array, radius: number): Float32Array {
  return transposedBlur(transposedBlur(sheet, radius), radius);
}

function transposedBlur(sheet: Float32Array, radius: number): Float32Array {
  const out = new Float32Array(sheet.length);
  const mask = SIDE - 1;
  for (let y = 0; y < SIDE; y++) {
    let sum = 0;
    for (let x = -radius; x <= radius; x++) sum += sheet[y * SIDE + (x & mask)];
    for (let x = 0; x < SIDE; x++) {
      out[x * SIDE + y] = sum / (2 * radius + 1);
      sum += sheet[y * SIDE + ((x + radius + 1) & mask)] - sheet[y * SIDE + ((x - radius) & mask)];
    }
  }
  return out;
}
