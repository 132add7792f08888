// Second pictures beside the view, as an X-ray: an inset that folds to its title and grows on demand.

import { TiledImage } from "../look/tiled_image";
import type { ArrayTiles, Picture } from "../protocol";
import { h, icon } from "./dom";
import { Folds } from "./folds";

export class PicturesPanel {
  private insets: Inset[] = [];

  constructor(private readonly root: HTMLElement) {}

  setScene(scenario: string, pictures: Picture[]): void {
    const folds = new Folds(`viscera.pictures.${scenario}`);
    this.insets = pictures.map((info) => new Inset(info, folds, (grown) => this.grow(grown)));
    this.root.replaceChildren(...this.insets.map(({ element }) => element));
    this.root.hidden = pictures.length === 0;
  }

  image(name: string): TiledImage | null {
    return this.insets.find(({ info }) => info.name === name)?.image ?? null;
  }

  /** False when it is no second picture's. */
  put(tiles: ArrayTiles, side: number): boolean {
    const inset = this.insets.find(({ info }) => info.name === tiles.name);
    inset?.image.put(tiles, side);
    return inset !== undefined;
  }

  clear(): void {
    for (const { image } of this.insets) image.clear();
  }

  draw(): void {
    for (const inset of this.insets) inset.draw();
  }

  /** Back to their places; true when one had grown. */
  shrink(): boolean {
    const grown = this.insets.filter((inset) => inset.grown);
    for (const inset of grown) inset.setGrown(false);
    return grown.length > 0;
  }

  // One large picture at a time.
  private grow(inset: Inset): void {
    for (const other of this.insets) if (other !== inset) other.setGrown(false);
  }
}

class Inset {
  readonly element: HTMLElement;
  readonly image: TiledImage;
  grown = false;
  private readonly canvas: HTMLCanvasElement;
  private readonly fold: HTMLButtonElement;
  private readonly size: HTMLButtonElement;
  private folded: boolean;

  constructor(readonly info: Picture, private readonly folds: Folds, private readonly grow: (inset: Inset) => void) {
    const { name, title, width, height, help } = info;
    this.image = new TiledImage(name, width, height);
    this.canvas = h("canvas", { width, height, role: "img", "aria-label": help === "" ? title : `${title}. ${help}`, title: help,
      on: { dblclick: () => this.setGrown(!this.grown) } });
    this.fold = h("button", { type: "button", class: "fold", on: { click: () => this.setFolded(!this.folded) } }, h("h2", {}, title), icon("chevron"));
    this.size = h("button", { type: "button", class: "size", on: { click: () => this.setGrown(!this.grown) } }, icon("grow"));
    this.element = h("figure", { class: "picture" }, h("figcaption", {}, this.fold, this.size), this.canvas);
    this.element.style.setProperty("--picture-width", `${width}px`);
    this.element.style.setProperty("--picture-ratio", String(width / height));
    this.folded = !folds.get(name, true);
    this.setFolded(this.folded);
    this.setGrown(false);
  }

  setGrown(grown: boolean): void {
    this.grown = grown;
    if (grown) {
      this.grow(this);
      this.setFolded(false);
    }
    this.element.classList.toggle("grown", grown);
    this.size.replaceChildren(icon(grown ? "shrink" : "grow"));
    this.size.title = grown ? `Make ${this.info.title} small again` : `Enlarge ${this.info.title}`;
    this.size.setAttribute("aria-label", this.size.title);
    this.size.setAttribute("aria-pressed", String(grown));
  }

  /** Only what changed, and only while it is seen. */
  draw(): void {
    const context = this.folded ? null : this.canvas.getContext("2d");
    if (context === null) return;
    const { width, height, texels } = this.image;
    for (const { x, y, width: wide, height: high } of this.image.takeChanged()) {
      const piece = context.createImageData(wide, high);
      // Row 0 is at the bottom.
      for (let row = 0; row < high; row++) {
        const from = 4 * ((y + row) * width + x);
        piece.data.set(texels.subarray(from, from + 4 * wide), 4 * wide * (high - 1 - row));
      }
      context.putImageData(piece, x, height - y - high);
    }
  }

  private setFolded(folded: boolean): void {
    this.folded = folded;
    this.folds.set(this.info.name, !folded);
    this.element.classList.toggle("folded", folded);
    this.fold.setAttribute("aria-expanded", String(!folded));
    if (folded && this.grown) this.setGrown(false);
  }
}
