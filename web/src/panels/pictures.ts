// Second pictures, as an X-ray: beside the view with as much room, or an inset in it that folds to its title and grows on demand.

import { TiledImage } from "../look/tiled_image";
import type { ArrayTiles, Parameter, Picture } from "../protocol";
import { h, icon } from "./dom";
import { Folds } from "./folds";
import { handsHelp, PEDAL_KEY, PictureHands } from "./picture_hands";
import type { PictureEvents } from "./picture_hands";

const BESIDE = "beside"; // among the folds

export class PicturesPanel {
  private insets: Inset[] = [];
  private folds = new Folds("viscera.pictures");

  /** `arranged` is called when the view gets more or less room. */
  constructor(private readonly root: HTMLElement, private readonly events: PictureEvents, private readonly arranged: () => void) {
    window.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLInputElement && event.target.type !== "range";
      if (event.key.toLowerCase() === PEDAL_KEY && !event.ctrlKey && !event.metaKey && !event.altKey && !typing) this.setPedal(true);
    });
    window.addEventListener("keyup", ({ key }) => {
      if (key.toLowerCase() === PEDAL_KEY) this.setPedal(false);
    });
    window.addEventListener("blur", () => this.setPedal(false));
  }

  setScene(scenario: string, pictures: Picture[], parameters: Parameter[]): void {
    this.folds = new Folds(`viscera.pictures.${scenario}`);
    this.insets = pictures.map((info) => new Inset(info, parameters, this.folds, this.events, {
      grow: (grown) => this.grow(grown), arrange: () => this.arrange(!this.beside()), folded: this.arranged,
    }));
    this.root.replaceChildren(...this.insets.map(({ element }) => element));
    this.root.hidden = pictures.length === 0;
    this.arrange(this.folds.get(BESIDE, pictures.some(({ drags }) => drags.length > 0)));
  }

  /** Whether pictures stand beside the view now, and take room from it. */
  beside(): boolean {
    return this.root.classList.contains(BESIDE) && this.insets.some(({ open }) => open);
  }

  setValues(values: Record<string, number>, now: number): void {
    for (const { hands } of this.insets) hands.setValues(values, now);
  }

  private setPedal(down: boolean): void {
    for (const { hands } of this.insets) hands.setPedal(down);
  }

  private arrange(beside: boolean): void {
    this.folds.set(BESIDE, beside);
    this.root.classList.toggle(BESIDE, beside);
    for (const inset of this.insets) inset.setBeside(beside);
    this.arranged();
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

interface InsetEvents {
  grow(inset: Inset): void;
  arrange(): void;
  folded(): void;
}

class Inset {
  readonly element: HTMLElement;
  readonly image: TiledImage;
  readonly hands: PictureHands;
  grown = false;
  private readonly canvas: HTMLCanvasElement;
  private readonly fold: HTMLButtonElement;
  private readonly size: HTMLButtonElement;
  private readonly side: HTMLButtonElement;
  private folded: boolean;

  constructor(
    readonly info: Picture, parameters: Parameter[], private readonly folds: Folds, hands: PictureEvents, private readonly events: InsetEvents,
  ) {
    const { name, title, width, height } = info;
    const help = `${info.help} ${handsHelp(info)}`.trim();
    this.image = new TiledImage(name, width, height);
    this.canvas = h("canvas", { width, height, role: "img", "aria-label": help === "" ? title : `${title}. ${help}`, title: help });
    this.hands = new PictureHands(info, this.canvas, parameters, hands);
    if (info.marks === "") this.canvas.addEventListener("dblclick", () => this.setGrown(!this.grown));
    this.fold = h("button", { type: "button", class: "fold", on: { click: () => this.setFolded(!this.folded) } }, h("h2", {}, title), icon("chevron"));
    this.size = h("button", { type: "button", class: "size", on: { click: () => this.setGrown(!this.grown) } }, icon("grow"));
    this.side = h("button", { type: "button", class: "size", on: { click: () => events.arrange() } }, icon("beside"));
    const save = `Save ${title} as a PNG file`;
    const saving = h("button", { type: "button", class: "size save", title: save, "aria-label": save, on: { click: () => this.save() } }, icon("save"));
    const caption = h("figcaption", {}, this.fold, this.hands.pedal, saving, this.side, this.size);
    this.element = h("figure", { class: "picture" }, caption, this.canvas);
    this.element.style.setProperty("--picture-width", `${width}px`);
    this.element.style.setProperty("--picture-ratio", String(width / height));
    this.folded = !folds.get(name, true);
    this.setFolded(this.folded);
    this.setGrown(false);
  }

  get open(): boolean {
    return !this.folded;
  }

  setBeside(beside: boolean): void {
    this.side.replaceChildren(icon(beside ? "inset" : "beside"));
    this.side.title = beside ? `${this.info.title} in the view` : `${this.info.title} and view side by side`;
    this.side.setAttribute("aria-label", this.side.title);
  }

  setGrown(grown: boolean): void {
    this.grown = grown;
    if (grown) {
      this.events.grow(this);
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

  /** What is shown now, pixel by pixel. */
  private save(): void {
    this.canvas.toBlob((blob) => {
      if (blob === null) return;
      const address = URL.createObjectURL(blob);
      h("a", { href: address, download: `${this.info.name}.png` }).click();
      window.setTimeout(() => URL.revokeObjectURL(address), 1000);
    }, "image/png");
  }

  private setFolded(folded: boolean): void {
    this.folded = folded;
    this.folds.set(this.info.name, !folded);
    this.element.classList.toggle("folded", folded);
    this.fold.setAttribute("aria-expanded", String(!folded));
    if (folded && this.grown) this.setGrown(false);
    this.events.folded();
  }
}
