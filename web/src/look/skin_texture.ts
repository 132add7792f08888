// A picture on a surface that the server changes tile by tile. Only what changed goes to the graphics card.

import { Box2, DataTexture, LinearFilter, RGBAFormat, UnsignedByteType, Vector2 } from "three";
import type { WebGLRenderer } from "three";
import type { ArrayTiles } from "../protocol";
import { TiledImage } from "./tiled_image";

/** What it must know; a texture of a surface knows more. */
interface Picture {
  name: string;
  width: number;
  height: number;
}

export class SkinTexture<Info extends Picture = Picture> {
  /** What materials read. */
  readonly texture: DataTexture;
  /** The same on this side, row 0 at v = 0. */
  readonly image: TiledImage;
  /** Shares the texels and is never drawn with: three.js copies from here by rectangles. */
  private readonly source: DataTexture;

  constructor(readonly info: Info) {
    this.image = new TiledImage(info.name, info.width, info.height);
    this.texture = this.made();
    this.texture.needsUpdate = true;
    this.source = this.made();
  }

  get texels(): Uint8Array {
    return this.image.texels;
  }

  put(tiles: ArrayTiles, side: number): void {
    this.image.put(tiles, side);
  }

  /** True when something was uploaded. */
  upload(renderer: WebGLRenderer): boolean {
    const changed = this.image.takeChanged();
    for (const { x, y, width, height } of changed) {
      const region = new Box2(new Vector2(x, y), new Vector2(x + width, y + height));
      renderer.copyTextureToTexture(this.source, this.texture, region, region.min);
    }
    return changed.length > 0;
  }

  clear(): void {
    this.image.clear();
  }

  dispose(): void {
    this.texture.dispose();
  }

  private made(): DataTexture {
    const texture = new DataTexture(this.image.texels, this.info.width, this.info.height, RGBAFormat, UnsignedByteType);
    texture.magFilter = texture.minFilter = LinearFilter;
    return texture;
  }
}
