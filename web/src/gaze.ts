// Where the viewer looks, for worlds that ask: the pointer stands for the eye, or a webcam sees it (webcam/). Sent as the one row of a table whose source is
// `gaze`, twenty times a second while there is a place, and once when it is lost. Where a tracker outside the page looks, the session asks it; the page
// then only tells what lies behind the tracker's surface, as two rows, for its top left and its bottom right corner.

import { Vector3 } from "three";
import type { PerspectiveCamera } from "three";
import type { Field } from "./panels/marks";
import type { GazeSource, Table } from "./protocol";

const INTERVAL = 50; // [ms]
const TELL_AGAIN = 1000; // [ms] the same corners, in case somebody else holds the instruments now

export type SendRows = (name: string, rows: number[][]) => void;

/** A place in the window, 0 to 1 from the top left. */
export interface Place {
  x: number;
  y: number;
}

/**
 * A row of gaze. The camera may be drawn off the window's middle, beside panels; what is sent is where the place lies in the
 * view of the same camera in the middle, so that the world needs to know nothing of panels. `shown` is where a mark has to be
 * so that it is drawn there: 0 to 1 across the field of marks.
 */
export function gazeRow(camera: PerspectiveCamera, target: Vector3, place: Place, valid: boolean, shown: Place = place): number[] {
  camera.updateMatrixWorld();
  const ray = new Vector3(2 * place.x - 1, 1 - 2 * place.y, 0.5).applyMatrix4(camera.projectionMatrixInverse);
  const tangent = Math.tan((camera.fov * Math.PI) / 360);
  const x = 0.5 + (0.5 * ray.x) / (-ray.z * tangent * camera.aspect);
  const y = 0.5 - (0.5 * ray.y) / (-ray.z * tangent);
  const { position, up } = camera;
  return [
    x, y, valid ? 1 : 0, ...position.toArray(), ...target.toArray(), ...up.toArray(), camera.fov, camera.aspect, shown.x, shown.y,
  ];
}

/** Where a window lies on its screen, in pixels of the page. Firefox says where its content begins; elsewhere the bars are above it. */
export interface OnScreen {
  left: number;
  top: number;
  width: number;
  height: number;
}

export function onScreen(view: Window & { mozInnerScreenX?: number; mozInnerScreenY?: number }): OnScreen {
  const border = Math.max(0, (view.outerWidth - view.innerWidth) / 2);
  return {
    left: view.mozInnerScreenX ?? view.screenX + border,
    top: view.mozInnerScreenY ?? view.screenY + Math.max(0, view.outerHeight - view.innerHeight - border),
    width: view.screen.width,
    height: view.screen.height,
  };
}

/** The screen's corners, as places in a canvas that lies in the window at `box`. */
export function screenCorners(box: { left: number; top: number; width: number; height: number }, on: OnScreen): [Place, Place] {
  const x = (across: number): number => (across - on.left - box.left) / box.width;
  const y = (down: number): number => (down - on.top - box.top) / box.height;
  return [{ x: x(0), y: y(0) }, { x: x(on.width), y: y(on.height) }];
}

export class GazeSender {
  private table: string | null = null;
  private place: Place | null = null;
  private eyes = false;
  private field: Field | null = null;
  private canvas: HTMLCanvasElement | null = null;
  private lost = true;
  private sentAt = -Infinity;
  private outside: GazeSource | null = null;
  private corners = "";
  private toldAt = -Infinity;

  constructor(
    private readonly camera: PerspectiveCamera, private readonly target: () => Vector3, private readonly send: SendRows,
  ) {}

  listen(canvas: HTMLCanvasElement): void {
    this.canvas = canvas;
    canvas.addEventListener("pointermove", (event) => {
      if (this.eyes) return;
      const box = canvas.getBoundingClientRect();
      this.place = { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
    });
    canvas.addEventListener("pointerleave", () => {
      if (!this.eyes) this.place = null;
    });
  }

  /** Whether eyes are seen, and the pointer no longer stands for them. */
  useEyes(on: boolean): void {
    this.eyes = on;
    this.place = null;
  }

  /** Where they look; null while they are lost. */
  setEyes(place: Place | null): void {
    if (this.eyes) this.place = place;
  }

  /** Across which marks are drawn. */
  setField(field: Field): void {
    this.field = field;
  }

  /** Of a tracker outside the page, where it counts; null: the page's own gaze does. */
  setSource(source: GazeSource | null): void {
    this.outside = source?.counts === true ? source : null;
  }

  setScene(tables: Table[]): void {
    this.corners = "";
    this.table = tables.find((table) => table.source === "gaze")?.name ?? null;
    this.lost = true;
  }

  /** Once per picture; `now` [ms]. */
  turn(now: number): void {
    if (this.table === null || now - this.sentAt < INTERVAL) return;
    if (this.outside !== null) {
      this.sentAt = now;
      this.tellCorners(this.table, this.outside, now);
      return;
    }
    if (this.place === null && this.lost) return;
    this.sentAt = now;
    this.lost = this.place === null;
    const place = this.place ?? { x: 0.5, y: 0.5 };
    this.send(this.table, [gazeRow(this.camera, this.target(), place, !this.lost, this.shown(place))]);
  }

  private tellCorners(table: string, source: GazeSource, now: number): void {
    const box = this.canvas?.getBoundingClientRect();
    const whole: [Place, Place] = [{ x: 0, y: 0 }, { x: 1, y: 1 }];
    const corners = source.surface === "screen" && box !== undefined ? screenCorners(box, onScreen(window)) : whole;
    const rows = corners.map((place) => gazeRow(this.camera, this.target(), place, true, this.shown(place)));
    const text = JSON.stringify(rows);
    if (text === this.corners && now - this.toldAt < TELL_AGAIN) return;
    this.corners = text;
    this.toldAt = now;
    this.send(table, rows);
  }

  private shown({ x, y }: Place): Place {
    if (this.field === null || this.canvas === null) return { x, y };
    const box = this.canvas.getBoundingClientRect(), { left, top, width, height } = this.field;
    return { x: (box.left + x * box.width - left) / width, y: (box.top + y * box.height - top) / height };
  }
}
