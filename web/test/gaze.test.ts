import { PerspectiveCamera, Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { GazeSender, gazeRow, onScreen, screenCorners } from "../src/gaze";
import type { GazeSource, Table } from "../src/protocol";
import { sourceText } from "../src/webcam/panel";

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

  it("of a tracker outside the page is told its corners, when they change and once a second", () => {
    const sent: number[][][] = [];
    const handlers: Record<string, (event: unknown) => void> = {};
    const canvas = {
      addEventListener: (name: string, handle: (event: unknown) => void) => (handlers[name] = handle),
      getBoundingClientRect: () => ({ left: 0, top: 0, width: 100, height: 100 }),
    } as unknown as HTMLCanvasElement;
    const eye = camera();
    const sender = new GazeSender(eye, () => new Vector3(), (_name, rows) => sent.push(rows));
    sender.listen(canvas);
    sender.setScene([table]);
    const source: GazeSource = { name: "a tracker", surface: "view", counts: true, problem: "" };
    sender.setSource(source);
    handlers.pointermove({ clientX: 50, clientY: 50 }); // does not count
    for (let now = 0; now < 1900; now += 10) sender.turn(now);
    expect(sent).toHaveLength(2);
    expect(sent[0].map((row) => row.slice(0, 2).map((place) => Math.round(1e6 * place) / 1e6))).toEqual([[0, 0], [1, 1]]);
    expect(sent[0][0].slice(3, 14)).toEqual(sent[0][1].slice(3, 14)); // one camera
    eye.position.x += 0.1;
    sender.turn(1900);
    expect(sent).toHaveLength(3);
    sender.setSource({ ...source, counts: false }); // could not be opened: the pointer counts
    sender.turn(2000);
    expect(sent[3]).toHaveLength(1);
  });

  it("of a whole screen finds the window on it", () => {
    const view = { outerWidth: 1010, innerWidth: 1000, outerHeight: 900, innerHeight: 800, screenX: 95, screenY: 20, screen: { width: 2000, height: 1000 } };
    const on = onScreen(view as unknown as Window);
    expect([on.left, on.top]).toEqual([100, 115]);
    expect(onScreen({ ...view, mozInnerScreenX: 103, mozInnerScreenY: 111 } as unknown as Window).top).toBe(111);
    const [first, last] = screenCorners({ left: 0, top: 85, width: 500, height: 400 }, on);
    expect([first.x, first.y, last.x, last.y]).toEqual([-0.2, -0.5, 3.8, 2]);
  });

  it("says whose it is, and what is wrong with it", () => {
    expect(sourceText(null)).toBe("");
    const one: GazeSource = { name: "Tobii eye tracker", surface: "screen", counts: true, problem: "" };
    expect(sourceText(one)).toContain("Tobii eye tracker. It counts for all viewers");
    expect(sourceText({ ...one, counts: false, problem: "no Tobii tracker was found." })).toMatch(/could not be used.*no Tobii tracker was found/);
  });
});
