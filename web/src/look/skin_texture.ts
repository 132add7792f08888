// A picture on a surface that the server changes tile by tile. Only what changed goes to the graphics card.

import { Box2, DataTexture, LinearFilter, RGBAFormat, UnsignedByteType, Vector2 } from "three";
import type { WebGLRenderer } from "three";
import type { Texture, ArrayTiles } from "../protocol";
import { WireError, placesOf } from "../wire";

export class SkinTexture {
  /** What materials read. */
  readonly texture: DataTexture;
  /** The same on this side, RGBA, row 0 at v = 0. */
  readonly texels: Uint8Array<ArrayBuffer>;
  /** Shares the texels and is never drawn with: three.js copies from here by rectangles. */
  private readonly source: DataTexture;
  private changed: Box2[] = [];

  constructor(readonly info: Texture) {
    this.texels = new Uint8Array(info.width * info.height * 4);
    this.texture = this.made();
    this.texture.needsUpdate = true;
    this.source = this.made();
  }

  /** Square tiles, `side` texels wide. */
  put(tiles: ArrayTiles, side: number): void {
    const { width, height } = this.info;
    const places = placesOf(tiles, side);
    const row = side * 4;
    for (let i = 0; i < places.length; i += 2) {
      const x = places[i] * side;
      const y = places[i + 1] * side;
      if (x + side > width || y + side > height) {
        throw new WireError(`Texture ${tiles.name} is ${width} by ${height}; a tile at ${x}, ${y} lies outside.`);
      }
      const from = (i / 2) * side * row;
      for (let k = 0; k < side; k++) {
        this.texels.set(tiles.data.subarray(from + k * row, from + (k + 1) * row), ((y + k) * width + x) * 4);
      }
      this.note(x, y, side);
    }
  }

  /** True when something was uploaded. */
  upload(renderer: WebGLRenderer): boolean {
    if (this.changed.length === 0) return false;
    for (const region of this.changed) renderer.copyTextureToTexture(this.source, this.texture, region, region.min);
    this.changed = [];
    return true;
  }

  clear(): void {
    this.texels.fill(0);
    this.changed = [new Box2(new Vector2(0, 0), new Vector2(this.info.width, this.info.height))];
  }

  dispose(): void {
    this.texture.dispose();
  }

  // Tiles come row by row; neighbours become one upload.
  private note(x: number, y: number, side: number): void {
    const last = this.changed.at(-1);
    if (last?.min.y === y && last.max.y === y + side && last.max.x === x) last.max.x = x + side;
    else this.changed.push(new Box2(new Vector2(x, y), new Vector2(x + side, y + side)));
  }

  private made(): DataTexture {
    const texture = new DataTexture(this.texels, this.info.width, this.info.height, RGBAFormat, UnsignedByteType);
    texture.magFilter = texture.minFilter = LinearFilter;
    return texture;
  }
}
