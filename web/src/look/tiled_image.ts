// A picture of bytes that the server changes tile by tile: what textures, volumes and second pictures have in common.

import { WireError, placesOf } from "../wire";
import type { ArrayTiles } from "../protocol";

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export class TiledImage {
  /** RGBA, row 0 first. */
  readonly texels: Uint8Array<ArrayBuffer>;
  private changed: Rectangle[] = [];

  constructor(readonly name: string, readonly width: number, readonly height: number) {
    this.texels = new Uint8Array(width * height * 4);
  }

  /** Square tiles, `side` texels wide. */
  put(tiles: ArrayTiles, side: number): void {
    const { width, height } = this;
    const places = placesOf(tiles, side);
    const { channels } = tiles;
    const row = side * channels;
    for (let i = 0; i < places.length; i += 2) {
      const x = places[i] * side;
      const y = places[i + 1] * side;
      if (x + side > width || y + side > height) {
        throw new WireError(`Picture ${tiles.name} is ${width} by ${height}; a tile at ${x}, ${y} lies outside.`);
      }
      const from = (i / 2) * side * row;
      for (let k = 0; k < side; k++) {
        const line = tiles.data.subarray(from + k * row, from + (k + 1) * row);
        const to = ((y + k) * width + x) * 4;
        if (channels === 4) this.texels.set(line, to);
        else this.spread(line, channels, to);
      }
      this.note(x, y, side);
    }
  }

  // Channels that were not sent are 0.
  private spread(line: Uint8Array, channels: number, to: number): void {
    const count = line.length / channels;
    this.texels.fill(0, to, to + 4 * count);
    for (let i = 0, n = 0; i < count; i++) {
      for (let c = 0; c < channels; c++) this.texels[to + 4 * i + c] = line[n++];
    }
  }

  /** What changed since this was last asked. */
  takeChanged(): Rectangle[] {
    const { changed } = this;
    this.changed = [];
    return changed;
  }

  clear(): void {
    this.texels.fill(0);
    this.changed = [{ x: 0, y: 0, width: this.width, height: this.height }];
  }

  // Tiles come row by row; neighbours become one.
  private note(x: number, y: number, side: number): void {
    const last = this.changed.at(-1);
    if (last?.y === y && last.height === side && last.x + last.width === x) last.width += side;
    else this.changed.push({ x, y, width: side, height: side });
  }
}
