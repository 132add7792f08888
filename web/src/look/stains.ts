// Blood on the cloth and on the instruments: pictures that the server changes tile by tile, and how they are looked at.

import { DataTexture, RepeatWrapping, Vector4 } from "three";
import type { IUniform, Texture as Picture, WebGLRenderer } from "three";
import type { ArrayTiles, Stains } from "../protocol";
import { SkinTexture } from "./skin_texture";

/** What a material needs to know about stains on it. */
export interface StainUniforms {
  uStains: IUniform<Picture>;
  /** Of cloth: corner and size [m]. Of an instrument: its first row, rows of it, rows in all, and the length of one [m]. */
  uStainPlace: IUniform<Vector4>;
  /** [m] of a layer that red 1 means; 0 where nothing is stained. */
  uThickest: IUniform<number>;
  [name: string]: IUniform;
}

const NOTHING = new DataTexture(new Uint8Array(4), 1, 1);

function clean(): StainUniforms {
  return { uStains: { value: NOTHING }, uStainPlace: { value: new Vector4(0, 0, 1, 1) }, uThickest: { value: 0 } };
}

/** Where the stains of instrument `number` lie in a picture with the stains of `count`. */
export function rowsOf(stains: Stains, number: number, count: number): Vector4 {
  const rows = stains.height / count;
  return new Vector4(number * rows, rows, stains.height, stains.cell);
}

export class SceneStains {
  /** Of the cloth; the same object for every scene. */
  readonly cloth = clean();
  private pictures: SkinTexture[] = [];
  private infos: Stains[] = [];

  setScene(stains: Stains[]): void {
    for (const picture of this.pictures) picture.dispose();
    this.infos = stains;
    this.pictures = stains.map((info) => new SkinTexture(info));
    Object.assign(this.cloth.uThickest, { value: 0 });
    this.infos.forEach((info, i) => {
      if (info.on !== "cloth") return;
      this.cloth.uStains.value = this.pictures[i].texture;
      this.cloth.uStainPlace.value.set(info.corner[0], info.corner[1], info.width * info.cell, info.height * info.cell);
      this.cloth.uThickest.value = info.thickest;
    });
  }

  /** Of instrument `number` of a scene that has `count`. */
  ofTool(number: number, count: number): StainUniforms {
    const found = clean();
    this.infos.forEach((info, i) => {
      if (info.on !== "tools") return;
      const { texture } = this.pictures[i];
      texture.wrapS = RepeatWrapping;
      found.uStains.value = texture;
      found.uStainPlace.value.copy(rowsOf(info, number, count));
      found.uThickest.value = info.thickest;
    });
    return found;
  }

  clear(): void {
    for (const picture of this.pictures) picture.clear();
  }

  /** False when they are of no stains. */
  put(tiles: ArrayTiles, side: number): boolean {
    const picture = this.pictures.find(({ info }) => info.name === tiles.name);
    picture?.put(tiles, side);
    return picture !== undefined;
  }

  upload(renderer: WebGLRenderer): void {
    for (const picture of this.pictures) picture.upload(renderer);
  }
}

/** After `LIGHT_GLSL`, in a fragment shader. */
export const STAIN_GLSL = /* glsl */ `
uniform sampler2D uStains;
uniform vec4 uStainPlace;
uniform float uThickest;

// [1/m], and light that blood scatters back; as on tissue.
const vec3 STAIN_ABSORBS = vec3(1400.0, 23000.0, 33000.0);
const vec3 STAIN_BODY = vec3(0.120, 0.0035, 0.0030);
const float STAIN_DEPTH = 14000.0; // [1/m] over which that is reached; tuned: a thin layer is red on dark cloth too

// Thickness of blood [m].
float stainOf(vec4 texel) {
  return texel.r * texel.r * uThickest * texel.g;
}

// What is left of the light from below, and what blood adds to a white light.
vec3 stainLets(float thick) {
  return exp(-2.0 * STAIN_ABSORBS * thick);
}

// A thick layer is darker: less of what enters finds its way back.
vec3 stainAdds(float thick) {
  return STAIN_BODY * (1.0 - exp(-STAIN_DEPTH * thick)) * mix(0.85, 0.35, smoothstep(0.00003, 0.0002, thick));
}
`;
