// Generated from src/viscera/server/messages.py by `python -m viscera.server.typescript`. Do not edit.

/** Raised whenever a message changes its meaning. */
export const PROTOCOL = 2;

/** Largest message a browser may send [bytes]. */
export const MAX_CLIENT_MESSAGE = 4096;

/** Slowest motion that `Control` `speed` takes; 1 is real time, the fastest. */
export const MIN_SPEED = 0.05;

export type Vec3 = [number, number, number];

export type Quat = [number, number, number, number];

/** First message of a browser; the server answers `Welcome` or `Problem` and closes. */
export interface Hello {
  type: "hello";
  protocol: number;
}

/** The hand moved. `sequence` grows with each message; `Frame.applied` echoes the newest one that took effect. */
export interface Tool {
  type: "tool";
  tool: number;
  position: Vec3;
  orientation: Quat;
  grip: number;
  active: boolean;
  sequence: number;
}

export interface SetParameter {
  type: "set_parameter";
  name: string;
  value: number;
}

/** All rows of a table anew. */
export interface SetTable {
  type: "set_table";
  name: string;
  rows: number[][];
}

/** `step` advances one frame while paused; `value` is the speed factor for `speed`, the seed for `reset`. */
export interface Control {
  type: "control";
  action: "pause" | "resume" | "step" | "reset" | "speed";
  value?: number | null;
}

/** End this session and start the named scenario for everyone who watches. */
export interface Choose {
  type: "choose";
  scenario: string;
  seed?: number;
}

/** A crashed session resumes from its log. */
export interface Restart {
  type: "restart";
}

/** Frame `number` is drawn. The server keeps at most two frames in flight per browser; the rest are skipped. */
export interface FrameAck {
  type: "frame_ack";
  number: number;
}

export interface Ping {
  type: "ping";
  client_time: number;
}

export interface ScenarioInfo {
  name: string;
  title: string;
  summary: string;
}

/**
 * `triangles` is little-endian uint32, three per triangle. Vertices are the frame array called `array`. `rest` is
 * little-endian float32, three per vertex: the surface at rest, on which colour and bumps are painted; may be
 * empty, then the first frame is taken. `uv` is little-endian float32, two per corner, three corners per triangle:
 * where it lies in the surface's textures; empty when it has none.
 */
export interface SurfaceInfo {
  name: string;
  material: string;
  triangles: Uint8Array;
  array: string;
  vertex_count: number;
  rest: Uint8Array;
  uv: Uint8Array;
}

/**
 * A picture of RGBA bytes on a surface, row 0 at v = 0; it begins all zero and changes by `Tiles`. `burn`: red is
 * the temperature, green how far it is coagulated, blue how far charred, alpha the water left. `film`: red is the
 * thickness, green the fraction of blood, blue that of bile, alpha how far it has clotted. `ink`: colour times
 * alpha, and how much of the skin it covers; black is a marker's violet. docs/page.md has the scales.
 */
export interface TextureInfo {
  name: string;
  surface: string;
  role: "burn" | "film" | "ink";
  width: number;
  height: number;
}

/**
 * Particles drawn as one fluid: the frame array of its name. `shade` says what the arrays' shades mean. A `clip` is
 * drawn per two points: where it sits, and straight above; none where the two are the same.
 */
export interface ParticlesInfo {
  name: string;
  look: "water" | "saline" | "blood" | "barium" | "clip";
  radius: number;
  shade: string;
}

/** A number that people watch; `digits` after the point. */
export interface MeasureInfo {
  name: string;
  label: string;
  unit: string;
  help: string;
  digits: number;
}

/** What a drill asks of a measure: at least, or at most, so much. Reached when all goals are met at once. */
export interface GoalInfo {
  measure: string;
  least: number | null;
  most: number | null;
}

/** A colour is the number 65536 · red + 256 · green + blue, each 0 to 255 (sRGB). */
export interface ColumnInfo {
  name: string;
  label: string;
  unit: string;
  kind: "number" | "colour";
  minimum: number;
  maximum: number;
  help: string;
}

/**
 * Numbers that a user may edit; `rows` as the world began. `row_names` are one per row or none at all; `fixed`
 * names the cells, row and column, that nobody may edit.
 */
export interface TableInfo {
  name: string;
  label: string;
  help: string;
  columns: ColumnInfo[];
  rows: number[][];
  row_names: string[];
  fixed: [number, number][];
}

/**
 * A round bar between two points of the instrument's frame [m]. A jaw turns about the frame's y axis through
 * `start` by `swing` · (1 − grip) [rad].
 */
export interface PartInfo {
  start: Vec3;
  end: Vec3;
  radius: number;
  swing: number;
}

/** `label` is for people, `action` says what pressing does (empty: nothing); `parts` are how its end looks. */
export interface InstrumentInfo {
  name: string;
  shape: "sphere" | "capsule";
  radius: number;
  length: number;
  home: Vec3;
  label: string;
  action: string;
  parts: PartInfo[];
}

/**
 * `choices` are what 0, 1, 2, … are called where the number stands for one of a few things. `group` is the heading
 * that it is shown under: headings come in the order of their first parameter, `Advanced` last and folded.
 */
export interface ParameterInfo {
  name: string;
  label: string;
  unit: string;
  minimum: number;
  maximum: number;
  default: number;
  help: string;
  choices: string[];
  group: string;
}

export interface CameraInfo {
  position: Vec3;
  target: Vec3;
  up: Vec3;
  field_of_view: number;
}

/** `client` is this browser's number in `Frame.applied`. */
export interface Welcome {
  type: "welcome";
  protocol: number;
  version: string;
  client: number;
  device: string;
  scenarios: ScenarioInfo[];
}

/** What stays; sent when a session starts or a browser joins, before any of its frames. */
export interface SceneDescription {
  type: "scene";
  scenario: string;
  title: string;
  summary: string;
  instructions: string;
  seed: number;
  /** Grows with each session; frames of another session are ignored. */
  session: number;
  /** What it runs on; `Welcome.device` is empty while the first session is still starting. */
  device: string;
  bounds: [Vec3, Vec3];
  camera: CameraInfo;
  surfaces: SurfaceInfo[];
  instruments: InstrumentInfo[];
  parameters: ParameterInfo[];
  textures: TextureInfo[];
  particles: ParticlesInfo[];
  measures: MeasureInfo[];
  tables: TableInfo[];
  goals: GoalInfo[];
}

/**
 * `data` is little-endian uint16, three per point: value = box[0] + (box[1] - box[0]) * q / 65535 per axis.
 * `shades` is one byte per point, 255 for a shade of 1; empty for surfaces.
 */
export interface ArrayData {
  name: string;
  count: number;
  box: [Vec3, Vec3];
  data: Uint8Array;
  shades: Uint8Array;
}

/**
 * Tiles of a texture that changed. `places` is little-endian uint16, column and row of each tile, in tiles;
 * `data` holds the tiles one after the other, row by row, RGBA.
 */
export interface TextureTiles {
  name: string;
  places: Uint8Array;
  data: Uint8Array;
}

/**
 * What changed in the textures since this browser was last told; belongs to the frame before it. Tiles are square,
 * `side` texels wide.
 */
export interface Tiles {
  type: "tiles";
  session: number;
  side: number;
  textures: TextureTiles[];
}

/** `force` and `torque` are what the hand feels [N], [N·m] about the tip. */
export interface ToolInfo {
  tool: number;
  active: boolean;
  position: Vec3;
  orientation: Quat;
  force: Vec3;
  torque: Vec3;
  grip: number;
}

/**
 * A haptic device that drives a tool, so that no pointer does. `force` is what the hand was made to feel, after
 * every limit [N].
 */
export interface HapticInfo {
  tool: number;
  device: string;
  /** False while the device is away. */
  present: boolean;
  force: Vec3;
  /** `late`: the force fades because the world does not keep up. All others but `running`: there is none. */
  mode: "running" | "absent" | "stalled" | "broken" | "jumped" | "catching_up" | "late";
  /** Share of the world's force that is let through, 0 to 1. */
  gain: number;
}

/** Mean time of one stage per frame [ms]. */
export interface StageInfo {
  name: string;
  ms: number;
}

/** The newest snapshot. `applied` pairs a browser's number with its newest `Tool.sequence` in this state. */
export interface Frame {
  type: "frame";
  number: number;
  session: number;
  tick: number;
  time: number;
  real_time_factor: number;
  arrays: ArrayData[];
  tools: ToolInfo[];
  parameters: Record<string, number>;
  stages: StageInfo[];
  applied: [number, number][];
  haptics: HapticInfo[];
  measures: Record<string, number>;
  tables: Record<string, number[][]>;
}

/** `message` explains `starting` (what is being compiled) and `crashed` (why, and what to do). */
export interface SessionState {
  type: "session_state";
  state: "starting" | "running" | "paused" | "crashed" | "ended";
  message: string;
  /** Of starting, 0 to 1. */
  progress: number;
  speed: number;
  viewers: number;
  /** What a person should know though the session goes on (recording stopped: disk full); empty when all is well. */
  notice: string;
}

/** Something this browser sent was refused. `hint` says what to do. */
export interface Problem {
  type: "problem";
  code: "protocol" | "malformed" | "too_large" | "flood" | "refused" | "input";
  message: string;
  hint: string;
}

export interface Pong {
  type: "pong";
  client_time: number;
}

/** `data` is little-endian float32 (`f4`) or bytes (`u1`), `components` per point or texel, not quantised. */
export interface ExactArray {
  name: string;
  count: number;
  components: number;
  data: Uint8Array;
  kind: string;
}

/** What `/api/snapshot` answers: the newest state with every bit, for tests and measurements. */
export interface ExactSnapshot {
  session: number;
  tick: number;
  time: number;
  tools: ToolInfo[];
  parameters: Record<string, number>;
  arrays: ExactArray[];
  measures: Record<string, number>;
}

export type ClientMessage = Hello | Tool | SetParameter | SetTable | Control | Choose | Restart | FrameAck | Ping;

export type ServerMessage = Welcome | SceneDescription | Frame | Tiles | SessionState | Problem | Pong;
