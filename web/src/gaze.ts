// Where the viewer looks, for worlds that ask: the pointer stands for the eye, or a webcam sees it (webcam/). Sent as the one row of a table whose source is
// `gaze`, twenty times a second while there is a place, and once when it is lost.

import { Vector3 } from "three";
import type { PerspectiveCamera } from "three";
import type { Table } from "./protocol";

const INTERVAL = 50; // [ms]

export type SendRows = (name: string, rows: number[][]) => void;

/** A place in the window, 0 to 1 from the top left. */
export interface Place {
  x: number;
  y: number;
}

/**
 * A row of gaze. The camera may be drawn off the window's middle, beside panels; what is sent is where the place lies in the
 * view of the same camera in the middle, so that the world needs to know nothing of panels.
 */
export function gazeRow(camera: PerspectiveCamera, target: Vector3, place: Place, valid: boolean): number[] {
  camera.updateMatrixWorld();
  const ray = new Vector3(2 * place.x - 1, 1 - 2 * place.y, 0.5).applyMatrix4(camera.projectionMatrixInverse);
  const tangent = Math.tan((camera.fov * Math.PI) / 360);
  const x = 0.5 + (0.5 * ray.x) / (-ray.z * tangent * camera.aspect);
  const y = 0.5 - (0.5 * ray.y) / (-ray.z * tangent);
  const { position, up } = camera;
  return [
    x, y, valid ? 1 : 0, ...position.toArray(), ...target.toArray(), ...up.toArray(), camera.fov, camera.aspect, place.x, place.y,
  ];
}

export class GazeSender {
  private table: string | null = null;
  private place: Place | null = null;
  private eyes = false;
  private lost = true;
  private sentAt = -Infinity;

  constructor(
    private readonly camera: PerspectiveCamera, private readonly target: () => Vector3, private readonly send: SendRows,
  ) {}

  listen(canvas: HTMLCanvasElement): void {
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

  setScene(tables: Table[]): void {
    this.table = tables.find((table) => table.source === "gaze")?.name ?? null;
    this.lost = true;
  }

  /** Once per picture; `now` [ms]. */
  turn(now: number): void {
    if (this.table === null || now - this.sentAt < INTERVAL) return;
    if (this.place === null && this.lost) return;
    this.sentAt = now;
    this.lost = this.place === null;
    this.send(this.table, [gazeRow(this.camera, this.target(), this.place ?? { x: 0.5, y: 0.5 }, !this.lost)]);
  }
}
