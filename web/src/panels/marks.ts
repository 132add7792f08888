// Marks over the picture, in screen space: where somebody looks, what to look at. They catch no pointer.

import type { ExactArray, Overlay } from "../protocol";
import { floatsOf } from "../wire";

const SPACE = "http://www.w3.org/2000/svg";

/** Numbers per mark: x and y from 0 to 1, radius over the height, strength. */
const NUMBERS = 4;

/** The part of the window that the picture is meant for, CSS pixels: 0 to 1 of a mark go across it. */
export interface Field {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Mark {
  x: number;
  y: number;
  radius: number;
  strength: number;
}

/** In CSS pixels of the window. */
export function marksOf(numbers: Float32Array, field: Field): Mark[] {
  const marks: Mark[] = [];
  for (let i = 0; i + NUMBERS <= numbers.length; i += NUMBERS) {
    const [x, y, radius, strength] = numbers.subarray(i, i + NUMBERS);
    if (!(strength > 0) || !Number.isFinite(x + y + radius)) continue;
    marks.push({
      x: field.left + x * field.width, y: field.top + y * field.height, radius: Math.max(radius * field.height, 1.5),
      strength: Math.min(strength, 1),
    });
  }
  return marks;
}

export class MarksLayer {
  private readonly svg = document.createElementNS(SPACE, "svg");
  private kinds: Kind[] = [];
  private field: Field = { left: 0, top: 0, width: 1, height: 1 };

  constructor(root: HTMLElement) {
    this.svg.setAttribute("class", "marks");
    this.svg.setAttribute("aria-hidden", "true");
    root.prepend(this.svg);
  }

  setScene(overlays: Overlay[]): void {
    this.kinds = overlays.map((info) => new Kind(info));
    this.svg.replaceChildren(...this.kinds.map(({ group }) => group));
    this.svg.style.display = overlays.length === 0 ? "none" : "";
  }

  update(values: ExactArray[]): void {
    for (const kind of this.kinds) {
      const array = values.find((candidate) => candidate.name === kind.info.name);
      kind.numbers = array === undefined ? new Float32Array(0) : floatsOf(array, NUMBERS);
      kind.draw(this.field);
    }
  }

  setField(field: Field): void {
    this.field = field;
    for (const kind of this.kinds) kind.draw(field);
  }

  /** As drawn, CSS pixels. */
  marks(): (Mark & { name: string })[] {
    return this.kinds.flatMap((kind) => marksOf(kind.numbers, this.field).map((mark) => ({ ...mark, name: kind.info.name })));
  }
}

/** The marks of one overlay. */
class Kind {
  readonly group = document.createElementNS(SPACE, "g");
  numbers: Float32Array = new Float32Array(0);
  private readonly label = document.createElementNS(SPACE, "text");
  private readonly circles: SVGCircleElement[] = [];

  constructor(readonly info: Overlay) {
    this.group.setAttribute("class", `mark ${info.look}`);
    this.label.textContent = info.label;
    this.group.append(this.label);
  }

  draw(field: Field): void {
    const marks = marksOf(this.numbers, field);
    // A dark one below each, so that it is seen on bright tissue too.
    while (this.circles.length < 2 * marks.length) this.add();
    this.circles.forEach((circle, i) => {
      const mark = marks.at(i >> 1);
      circle.style.display = i >> 1 < marks.length ? "" : "none";
      if (mark === undefined || i >> 1 >= marks.length) return;
      for (const [name, value] of [["cx", mark.x], ["cy", mark.y], ["r", mark.radius]] as const) circle.setAttribute(name, value.toFixed(1));
      circle.style.opacity = mark.strength.toFixed(2);
    });
    this.place(marks, field);
  }

  /** Beside the strongest mark, on the side where there is room. */
  private place(marks: Mark[], field: Field): void {
    const strongest = marks.reduce<Mark | null>((best, mark) => (best === null || mark.strength > best.strength ? mark : best), null);
    this.label.style.display = strongest === null || this.info.label === "" ? "none" : "";
    if (strongest === null) return;
    const { x, y, radius, strength } = strongest;
    const right = x + radius + 8 + 8 * this.info.label.length < field.left + field.width;
    this.label.setAttribute("x", (right ? x + radius + 8 : x - radius - 8).toFixed(1));
    this.label.setAttribute("y", (y + 4).toFixed(1));
    this.label.setAttribute("text-anchor", right ? "start" : "end");
    this.label.style.opacity = strength.toFixed(2);
  }

  private add(): void {
    for (const name of ["under", "over"]) {
      const circle = document.createElementNS(SPACE, "circle");
      circle.setAttribute("class", name);
      this.circles.push(circle);
      this.group.insertBefore(circle, this.label);
    }
  }
}
