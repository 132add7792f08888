import { PerspectiveCamera, Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { GazeSender, gazeRow } from "../src/gaze";
import type { Table } from "../src/protocol";

function camera(): PerspectiveCamera {
  const made = new PerspectiveCamera(40, 1.6, 0.01, 10);
  made.up.set(0, 0, 1);
  made.position.set(0.7, -1.2, 0.9);
  made.lookAt(0.7, 0.2, 0.3);
  made.updateMatrixWorld();
  return made;
}

const table = { name: "gaze", source: "gaze" } as Table;

describe("gaze", () => {
  it("is where the pointer is when the camera fills the window", () => {
    const row = gazeRow(camera(), new Vector3(0.7, 0.2, 0.3), { x: 0.3, y: 0.8 }, true);
    expect(row[0]).toBeCloseTo(0.3, 6);
    expect(row[1]).toBeCloseTo(0.8, 6);
    expect(row.slice(2, 6)).toEqual([1, 0.7, -1.2, 0.9]);
    expect(row).toHaveLength(16);
  });

  it("is on the same ray when panels move the picture aside", () => {
    const shifted = camera();
    shifted.setViewOffset(1600, 1000, -120, 40, 1600, 1000);
    shifted.updateProjectionMatrix();
    const point = new Vector3(0.9, 0.1, 0.25);
    const seen = point.clone().project(shifted), plain = point.clone().project(camera());
    const row = gazeRow(shifted, new Vector3(), { x: 0.5 + 0.5 * seen.x, y: 0.5 - 0.5 * seen.y }, true);
    expect(row[0]).toBeCloseTo(0.5 + 0.5 * plain.x, 5);
    expect(row[1]).toBeCloseTo(0.5 - 0.5 * plain.y, 5);
  });

  it("is sent twenty times a second while it is there, and once when it is lost", () => {
    const sent: number[][] = [];
    const handlers: Record<string, (event: unknown) => void> = {};
    const canvas = {
      addEventListener: (name: string, handle: (event: unknown) => void) => (handlers[name] = handle),
      getBoundingClientRect: () => ({ left: 0, top: 0, width: 100, height: 100 }),
    } as unknown as HTMLCanvasElement;
    const sender = new GazeSender(camera(), () => new Vector3(), (_name, rows) => sent.push(rows[0]));
    sender.listen(canvas);
    sender.setScene([]);
    handlers.pointermove({ clientX: 50, clientY: 50 });
    sender.turn(0);
    expect(sent).toHaveLength(0); // nobody asks for it
    sender.setScene([table]);
    sender.setField({ left: 20, top: 10, width: 60, height: 80 });
    for (let now = 1000; now < 2000; now += 10) sender.turn(now);
    expect(sent).toHaveLength(20);
    handlers.pointermove({ clientX: 80, clientY: 10 });
    sender.turn(2000);
    expect(sent.pop()?.slice(14)).toEqual([1, 0]); // the mark is drawn at the pointer, whatever panels leave free
    handlers.pointerleave({});
    for (let now = 3000; now < 4000; now += 10) sender.turn(now);
    expect(sent).toHaveLength(21);
    expect(sent[20][2]).toBe(0);
  });
});
