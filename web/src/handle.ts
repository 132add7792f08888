// What a test or a curious person finds under `window.viscera`.

import { Vector3 } from "three";
import { roundEnd } from "./instruments";
import type { DrillState } from "./protocol";
import type { View } from "./view";

export interface FrameHeader {
  number: number;
  session: number;
  tick: number;
  time: number;
  /** How fast heat, blood and fluids run against the tissue; 1 unless they are late. */
  beside: number;
}

export interface PageStats {
  framesDrawn: number;
  framesReceived: number;
  framesPerSecond: number;
  pixelShare: number;
  software: boolean;
}

/** What is watched. */
export interface Shown {
  recording: string;
  seconds: number;
  /** Where its first drill began [s]; 0 without one. */
  begin: number;
  stored: boolean;
  /** Where the picture comes from, in words. */
  source: string;
  marks: [number, string][];
}

export interface Handle {
  /** This browser's number in the frames; null before the server said it. */
  client: number | null;
  /** The newest frame that is drawn. */
  frame: FrameHeader | null;
  /** Time of the first drawn frame since the page began to load [ms]. */
  firstFrame: number | null;
  /** Settles with the same time once there is one. */
  ready: Promise<number>;
  tip(): number[] | null;
  instruments(): { name: string; radius: number; acts_at: number[] }[];
  /** Number of the instrument in the hand. */
  tool(): number;
  /** The tools as the newest frame has them. */
  tools(): { active: boolean; position: number[]; orientation: number[]; force: number[]; grip: number }[];
  /** Where each tool acts from, as the newest frame has it [m]. */
  actingPoints(): number[][];
  vertices(name: string): Float32Array | null;
  /** Of the surface whose vertices have this name, three vertices each. */
  triangles(name: string): Uint32Array | null;
  /** Of a texture, a volume or a second picture, as the page has them, RGBA. */
  texels(name: string): Uint8Array | null;
  /** How many particles, markers and points of threads are drawn. */
  particles(): number;
  markers(): number;
  threads(): number;
  /** Rings and dots over the picture, CSS pixels. */
  marks(): { name: string; x: number; y: number; radius: number; strength: number }[];
  project(x: number, y: number, z: number): { x: number; y: number };
  /** Without them, a picture shows the tissue alone. */
  showInstruments(shown: boolean): void;
  /** Median from hand to picture [ms]. */
  latency(): number | null;
  parameters(): Record<string, number>;
  measures(): Record<string, number>;
  drill(): DrillState | null;
  tables(): Record<string, number[][]>;
  /** The recording that is shown: how long it is and where its first drill began [s]; null: it is live. */
  watched(): Shown | null;
  /** Jumps in it [s]. */
  seek(at: number): void;
  pause(paused: boolean): void;
  /** Against real time. */
  speed(value: number): void;
  stats(): PageStats;
}

declare global {
  interface Window {
    viscera?: Handle;
  }
}

export function viewPart(view: View): Pick<Handle, "instruments" | "vertices" | "triangles" | "particles" | "markers" | "threads" | "project" | "showInstruments"> {
  return {
    vertices: (name) => view.surfaces.find((surface) => surface.info.array === name)?.positions.slice() ?? null,
    triangles: (name) => view.surfaces.find((surface) => surface.info.array === name)?.triangles.slice() ?? null,
    particles: () => view.particles.count(),
    markers: () => view.markers.count(),
    threads: () => view.threads.count(),
    instruments: () => view.instruments.map(({ info }) => ({ name: info.name, radius: roundEnd(info).radius, acts_at: info.acts_at })),
    showInstruments: (shown) => {
      view.showInstruments(shown);
      document.body.classList.toggle("tissue-alone", !shown);
    },
    project: (x, y, z) => view.project(new Vector3(x, y, z)),
  };
}
