// Generated from src/viscera/server/messages.py by `python -m viscera.server.typescript`. Do not edit.

export const PRESSED = 0.5;

export const PROTOCOL = 9;

export const FRAME = 0.016;

/** Largest message a browser may send [bytes]. */
export const MAX_CLIENT_MESSAGE = 4096;

/** Slowest motion that `Control` `speed` takes; 1 is real time, the fastest of a live world. */
export const MIN_SPEED = 0.05;

/** Fastest at which a recording is shown, if the machine can. */
export const MAX_SPEED = 16.0;

export type Quaternion = [number, number, number, number];

export type Vector3 = [number, number, number];

/** First message of a browser; the server answers `Welcome` or `Problem` and closes. */
export interface Hello {
  type: "hello";
  protocol: number;
}

/** The hand moves. */
export interface ToolInput {
  tool: number;
  position: Vector3;
  orientation?: Quaternion;
  grip?: number;
  active?: boolean;
  /** The hand tells every tick where it is, as a haptic device does: the tool is where the hand is, without lag. */
  direct?: boolean;
}

/** The hand moved. `sequence` grows with each message; `Frame.applied` echoes the newest one that took effect. */
export interface Tool {
  type: "tool";
  sequence: number;
  input: ToolInput;
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

/** The drill is started (`seed`: another trial than the one shown), given up, or what is hidden is found. */
export interface Drill {
  type: "drill";
  action: "start" | "give_up" | "found";
  level?: number;
  seed?: number | null;
  /** Of `found`: how sure the hand is, 0 to 1. */
  certainty?: number;
}

/**
 * Who holds the instruments: a viewer asks for them; the holder gives them to `client` or keeps them; a trainer
 * takes them.
 */
export interface Hand {
  type: "hand";
  action: "ask" | "give" | "keep" | "take";
  client?: number;
}

/** Somebody has entered or left by /training/enter: the ticket that was answered there, or empty for nobody. */
export interface Enter {
  type: "enter";
  ticket: string;
}

/** End this session and show a recording to everyone who watches, from this second on. */
export interface Watch {
  type: "watch";
  /** Name of its file. */
  recording: string;
  at?: number;
}

/** Of a recording that is watched: jump to this second; or `again`: go on from what is shown, as a new run. */
export interface Seek {
  type: "seek";
  at?: number;
  again?: boolean;
}

/** Make a film of a recording; how far it is, /api/film says. */
export interface Film {
  type: "film";
  recording: string;
}

/** End this session and start the named scenario for everyone who watches. */
export interface Choose {
  type: "choose";
  scenario: string;
  seed?: number;
  /** A number or `auto`; empty for what was asked for before. */
  detail?: string;
}

/** A session that crashed or is stalled resumes from its log. */
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

/** `client` is this browser's number in `Frame.applied`. */
export interface Welcome {
  type: "welcome";
  protocol: number;
  version: string;
  client: number;
  device: string;
  scenarios: ScenarioInfo[];
  /** Whether this browser has shown the trainer's token. */
  trainer: boolean;
  /** Whether there is a trainer's token here. */
  trainers: boolean;
  /** Whose trials are kept of what this browser does; empty: nobody's. */
  trainee: string;
  /** Whether trials are kept here, of trainees who say who they are. */
  training: boolean;
  /** Whether this browser may see everybody's trials. */
  cohort: boolean;
}

export interface Camera {
  position: Vector3;
  target: Vector3;
  up: Vector3;
  /** Vertical [degrees]. */
  field_of_view: number;
  /**
   * Where the scope whose view this is goes through the body wall [m]; None for a view that is free. How its lens
   * looks relative to its shaft is the setting `lens`.
   */
  trocar: Vector3 | null;
}

/** A triangle mesh whose vertices move. Its vertices are the snapshot array called `array`. */
export interface Surface {
  name: string;
  /** How it looks, one of `LOOKS`. */
  material: string;
  /** Vertex indices, shape (triangles, 3), counter-clockwise seen from outside. */
  triangles: Uint8Array;
  array: string;
  vertex_count: number;
  /** Its vertices at rest [m], shape (vertices, 3): what colour and bumps are painted on. */
  rest: Uint8Array | null;
  /** Where each triangle's corners lie in the surface's textures, 0 to 1, shape (triangles, 3, 2). */
  uv: Uint8Array | null;
  /**
   * 0 for a surface whose triangles stay. Otherwise they change while the world runs (cuts): at most so many, with at
   * most `vertex_count` vertices. The present ones are the arrays `NAME/triangles`, `NAME/rest` and `NAME/uv`, which
   * come anew whenever `Frame.versions[NAME]` grows.
   */
  triangle_capacity: number;
  /**
   * Whether it is what lies around everything, as the walls of a cavity: the first view need not hold all of it, and
   * there is no cloth.
   */
  backdrop: boolean;
}

/**
 * Pushes tissue away with the instrument's own parts, shaft and all (`Instrument.parts`); with a ball, or a round
 * rod along the shaft, where it has none. Water feels a ball.
 */
export interface Pushes {
  /** Of the end that meets tissue first [m]. */
  radius: number;
  /** Of a rod's axis [m]; 0 for a ball. */
  length: number;
  /** Where the ball's middle, or the rod's axis, begins above the tip [m]. */
  offset: number;
  /** Coulomb's, against tissue. Steel on wet tissue: about 0.02 to 0.2. */
  friction: number;
  /**
   * Whether tissue feels the closed meshes of the instrument's `solid` instead of its round parts: flat jaws, edges.
   * It takes longer.
   */
  solid: boolean;
  kind: "pushes";
}

/** Current flows from the active parts of the instrument's `solid` into tissue. */
export interface Heats {
  /** That the generator is set to [W]. */
  power: number;
  /** Tissue nearer than this is heated [m]. */
  reach: number;
  /** Whether current goes from part to part, and heats what is within reach of all of them. */
  bipolar: boolean;
  kind: "heats";
}

/** Takes fluid away at the tip. Several that work at once share one pump: they take turns, frame by frame. */
export interface Sucks {
  /** [m] */
  reach: number;
  /** [m³/s] */
  rate: number;
  kind: "sucks";
}

/**
 * Its end is gauze: whatever fluid that touches is taken up, with the handle pressed or not, until it is full. One
 * that is taken out of the body comes back with a fresh one.
 */
export interface Soaks {
  /**
   * [m³]; estimated. A swab of 10 cm × 10 cm, many layers thick, is full with some 60 mL (Bose, Regan and
   * Paterson-Brown, BJOG 113, 2006); what is held on a stick is a small part of one.
   */
  holds: number;
  kind: "soaks";
}

/** A jet out of the tip, along the shaft. Several that work at once take turns, frame by frame. */
export interface Rinses {
  /** [m/s]; tuned: a jet that reaches and does not bounce. */
  speed: number;
  /** [m³/s]; about a syringe's. Twice as much is a flood that a film has no room for. */
  rate: number;
  /**
   * From the tip back to the outlet [m]: such tubes have holes along their end, free while the tip is pressed into
   * tissue.
   */
  outlet: number;
  kind: "rinses";
}

/**
 * Closes vessels near the tip with a clip that stays. Where tissue can have clips (`systems.clamping`), it presses
 * the wall together and slips when it is pulled too hard.
 */
export interface Clips {
  /** [m] */
  reach: number;
  /** Share of the thickness of what it is put on that is left, once it is closed. */
  closes: number;
  /** Force at which it slips [N]. Titanium clips on arteries come off at some 2 to 6; estimated. */
  hold: number;
  kind: "clips";
}

/** Sticks a pin into tissue at the tip, one for each press of the handle. */
export interface Marks {
  /** Farther from the surface than this it sticks nowhere [m]. */
  reach: number;
  kind: "marks";
}

/**
 * Cuts tissue with the axes of some of the instrument's parts, its edges; these parts push only while they do not
 * cut.
 */
export interface Cuts {
  /** Numbers of the parts whose axes are edges. */
  parts: number[];
  /**
   * Share of the tissue's toughness that it takes. Pressed straight in, a blade takes all of it; drawn along its edge
   * ξ times as fast as it goes in, 1/(1 + ξ²) (Atkins, Xu and Jeronimidis, J. Mater. Sci. 39, 2004). A hand draws its
   * blade about three times as fast; that it does is not simulated.
   */
  need: number;
  /** Whether it cuts only while its jaws close: scissors. */
  closing: boolean;
  kind: "cuts";
}

/**
 * Holds what is between its jaws while they are closed. Pulled along them it holds 2·friction·grip, and pulled
 * across them 2·grip; beyond that tissue slips out.
 */
export interface Grasps {
  /** Numbers of the two parts that are its jaws. */
  parts: [number, number];
  /** Of a jaw [m]. */
  width: number;
  /** Force that each jaw closes with [N], at most. */
  grip: number;
  /**
   * Coulomb's, between its teeth and tissue. Chosen so that it holds 4 N: what surgeons pull bowel with is 2.5 N at
   * the mean and 5 N at most (de Visser, Heijnsdijk, Herder and Pistecky, Surg. Endosc. 16, 2002).
   */
  friction: number;
  kind: "grasps";
}

/**
 * Turns a curved needle with thread about the instrument's tip, in the plane of its x and z axes, while the handle
 * is pressed; let go with its point out of the tissue again, the needle is drawn through.
 */
export interface Sews {
  /** Of the needle's circle [m]. */
  radius: number;
  /** Force to go through the surface [N]. Tapered needles in skin take 0.1 to 1; estimated. */
  pierce: number;
  /** Of the needle, per hole that it is in [N]; estimated. */
  friction: number;
  kind: "sews";
}

/** Draws the thread of a stitch together while the handle is pressed, and ties it when that is let go. */
export interface Ties {
  /** Farther from a stitch than this it ties nothing [m]. */
  reach: number;
  /** How hard it draws, at most [N]. */
  pull: number;
  kind: "ties";
}

/** Puts a staple across what lies below the tip, along the instrument's x axis, one for each press of the handle. */
export interface Staples {
  /** Between its legs as it goes in [m]. */
  width: number;
  /** The same once it is bent [m]. */
  closed: number;
  /** Force at which it slips [N]; estimated. */
  hold: number;
  kind: "staples";
}

/** Draws gas and the smoke in it away at the tip; as much fresh gas flows in. */
export interface Evacuates {
  /** [m³/s]; 18 L/min. Evacuators for laparoscopy are set to some 5 to 20. */
  rate: number;
  kind: "evacuates";
}

/**
 * One rigid piece of an instrument: a round bar between two points of its frame [m]. A jaw turns about the frame's
 * y axis through `start` by `swing` [rad] when the handle is open (grip 0), and not at all when it is closed.
 */
export interface Part {
  start: Vector3;
  end: Vector3;
  radius: number;
  swing: number;
}

/** A tool in a hand, its tip at the origin, its shaft along +z. */
export interface Instrument {
  name: string;
  /** What it does. */
  effects: (Pushes | Heats | Sucks | Soaks | Rinses | Clips | Marks | Cuts | Grasps | Sews | Ties | Staples | Evacuates)[];
  /** Where it waits, outside the body [m]. */
  home: Vector3;
  /** Where its shaft goes through the body wall [m]: it turns about this point. None: a free hand holds it. */
  trocar: Vector3 | null;
  /** From the tip to the handle [m]; counts where there is a trocar. A laparoscopic instrument has about this. */
  length: number;
  /** The middle of what acts, in its own frame [m]: where a pointer puts it on what it points at. */
  acts_at: Vector3;
  /** For people; the name where there is none. */
  label: string;
  /** Its picture in the page. */
  icon: "tool" | "probe" | "hook" | "forceps" | "suction" | "water" | "clip" | "scissors" | "pin" | "scalpel" | "needle" | "knot";
  /** What pressing the handle or pedal does: `coagulate`, `rinse`. Empty when it does nothing but move. */
  action: string;
  /** How its working end looks; a ball or rod as it pushes where there are none. */
  parts: Part[];
}

/** A number that a user may change while the world runs. */
export interface Parameter {
  /** What `--set` and Python call it; one of a kind in a world. */
  name: string;
  /** What the page calls it. */
  label: string;
  /** As people say it: kPa, mm, Hz. The scenario converts to SI at the border. */
  unit: string;
  /** In that unit, as `maximum` and `default`; less is refused. */
  minimum: number;
  /** More is refused. */
  maximum: number;
  /** As the world begins. */
  default: number;
  /** One sentence: what it does. */
  help: string;
  /** What 0, 1, 2, … are called, where the number stands for one of a few things; empty where it is a quantity. */
  choices: string[];
  /** Under which heading the page shows it; headings come in the order of their first parameter, `ADVANCED` last. */
  group: string;
}

/**
 * A picture on a surface that changes: the snapshot array of its name, uint8, shape (height, width, 4), row 0 at
 * v = 0. `role` says what the four numbers mean: `burn` as `heat.stages` packs it, `film` as `blood.picture` does;
 * `ink` is what is drawn or laid on the skin: its colour (sRGB, times alpha) and how much it covers; black is a skin
 * marker's violet.
 */
export interface Texture {
  name: string;
  surface: string;
  role: "burn" | "film" | "ink";
  width: number;
  height: number;
  /** Of a film's fluid besides blood, its blue channel: of red, green and blue light [1/m]. */
  absorption: Vector3;
  /** What a thick layer of that fluid scatters back, linear RGB. */
  body: Vector3;
}

/**
 * Blood on the cloth under everything or on the instruments: the snapshot array of its name, uint8, shape (height,
 * width, 4). Red is 255 √(thickness/`thickest`), of gauze how full it is; green how much of it is blood; blue and
 * alpha are free. Sides are multiples of 32.
 *
 * On cloth, rows go along y and columns along x from `corner`, `cell` apart. On instruments, `height` has as many rows
 * for each, in their order, `cell` apart along its axis from the tip; columns go once around it, from its x axis.
 */
export interface Stains {
  name: string;
  on: "cloth" | "tools";
  width: number;
  height: number;
  /** [m] */
  cell: number;
  /** [m] */
  thickest: number;
  /** Of the cloth [m]. */
  corner: Vector3;
  /** Up to here along its axis each instrument is gauze [m]; −1 for one that is not. */
  gauze: number[];
}

/**
 * Particles that are drawn as one fluid: the snapshot array of its name, float32, shape (capacity, 4): position [m]
 * and a shade from 0 to 1. How many there are now stands in `Frame.counts`.
 */
export interface Particles {
  name: string;
  fluid: "water" | "saline" | "blood" | "barium";
  /** Of the ball that each one is drawn as [m]. */
  radius: number;
  capacity: number;
  /**
   * What the shade means: nothing; how much of a particle is `fluid`, the rest being water; how fast it is; how small
   * it is, drawn as balls from red to blue; how much liquid it holds, over `volume`.
   */
  shade: "" | "share" | "speed" | "size" | "volume";
  /** Speed of shade 1 [m/s]. */
  fastest: number;
  /**
   * Liquid that one stands for, those of shade 1 where shades are volumes [m³]; 0 is that of balls drawn at 0.8 of
   * their spacing.
   */
  volume: number;
  /** Whether each is drawn stretched along its velocity: the array `NAME/velocity`, shape (capacity, 3) [m/s]. */
  stretched: boolean;
}

/**
 * Small rigid things that lie on or in tissue: the snapshot array of its name, float32, shape (capacity, 8):
 * position [m], orientation (x, y, z, w; its z axis stands on the tissue), and 1 where there is one, 0 where not.
 */
export interface Markers {
  name: string;
  /** A target is where something was hidden: a ball that is seen through tissue. */
  look: "clip" | "pin" | "target";
  /** Half its length [m]. */
  size: number;
  capacity: number;
}

/**
 * Round threads: the snapshot array of its name, float32, shape (capacity, 4): points [m] one after the other, and
 * 1 where the thread goes on to the next point, 0 at its last. How many points there are stands in `Frame.counts`.
 */
export interface Threads {
  name: string;
  look: "suture" | "wire";
  /** [m] */
  radius: number;
  capacity: number;
}

/**
 * Masses as balls and springs as lines, instead of a surface or beside it: the snapshot array of its name, float32,
 * shape (capacity, 4): places [m] and a shade from 0 to 1, drawn from blue to red; none while it is not shown
 * (`Frame.counts`). The array `NAME/cut` has the numbers of the springs that are cut, shape (springs, 1).
 */
export interface LatticeView {
  name: string;
  /** Of the same organ. */
  surface: string;
  /** The two masses of each, shape (springs, 2). */
  springs: Uint8Array;
  /** Of the balls [m]. */
  radius: number;
  capacity: number;
  /** Which says what is shown: 0 the surface, 1 the lattice instead, 2 the lattice beside it. */
  parameter: string;
}

/**
 * What fills space: smoke, blood in saline. The snapshot array of its name, uint8, shape (depth · height, width,
 * 4): layers along z, rows along y. Red is the density, 255 at `densest`; green how much of it is blood; blue and
 * alpha are free. Width, and depth times height, are multiples of 32.
 */
export interface Volume {
  name: string;
  look: "smoke" | "saline";
  width: number;
  height: number;
  depth: number;
  /** Two corners of the box that it fills [m]. */
  box: [Vector3, Vector3];
  /** Share of light that one metre of the densest takes away, as an exponent [1/m]. */
  densest: number;
}

/** What dragging across a picture changes: two parameters, one per way of the hand. */
export interface Drag {
  /** For people: what is moved. */
  label: string;
  /** Parameter that grows to the right. */
  across: string;
  /** Parameter that grows upwards. */
  up: string;
  /** By how much it changes along the whole side of the picture, in the parameter's unit. */
  span: number;
}

/**
 * A second picture beside the view, as an X-ray: the snapshot array of its name, uint8, shape (height, width, 4):
 * sRGB and alpha, row 0 at the bottom. Sides are multiples of 32.
 */
export interface Picture {
  name: string;
  title: string;
  width: number;
  height: number;
  help: string;
  /**
   * The first by the left button, the second by the right one or with Shift, the third by the middle one or with
   * Alt.
   */
  drags: Drag[];
  /** Parameter that is 1 while a pedal beside the picture is held, else 0; empty where there is none. */
  pedal: string;
  /**
   * Table whose one row says where somebody clicked: x and y from 0 to 1 from the lower left, and a number that
   * differs from the last one's; empty where clicks mean nothing.
   */
  marks: string;
}

/**
 * Marks over the view, in screen space: the snapshot array of its name, float32, shape (capacity, 4): x and y from
 * 0 to 1 with the origin at the top left, radius over the view's height, strength from 0 to 1. How many there are
 * stands in `Frame.counts`.
 */
export interface Overlay {
  name: string;
  /** A veil is fog on the lens: a soft disc that hides what is behind it. */
  look: "ring" | "dot" | "veil";
  capacity: number;
  /** For people; empty where it needs none. */
  label: string;
}

/** A number about how it goes, which people watch: charred area, blood lost. */
export interface Measure {
  /** What goals, `--json` and Python call it; one of a kind in a world. */
  name: string;
  /** What people call it: `Blood lost`. */
  label: string;
  /** As people say it: mm², mL; empty where it has none. The system converts from SI. */
  unit: string;
  /** One sentence: what it counts. */
  help: string;
  /** After the point. */
  digits: number;
  /** Whether it is 1 for yes and 0 for no; people are told these words. */
  yes_no: boolean;
  /** Whether it never falls: then a goal that it has overstepped cannot be met any more. */
  grows: boolean;
}

/** Of a `Table`. A colour is the number 65536 · red + 256 · green + blue, each 0 to 255 (sRGB). */
export interface Column {
  name: string;
  label: string;
  unit: string;
  kind: "number" | "colour";
  minimum: number;
  maximum: number;
  help: string;
}

/** Numbers in rows that a user may edit while the world runs: the stages of a burn. The number of rows stays. */
export interface Table {
  name: string;
  label: string;
  help: string;
  columns: Column[];
  /** As the world begins; the present ones are in `Snapshot.tables`. */
  rows: number[][];
  /** What people call the rows, one each; empty where they have no names. */
  row_names: string[];
  /** Row and column of the cells that the page does not let a user edit, because another value is refused. */
  fixed: [number, number][];
  /**
   * Who fills it: a user in a panel, or the page with where the viewer looks (world/systems/adaptive_water.py) or
   * where somebody clicked in a picture (`Picture.marks`).
   */
  source: "user" | "gaze" | "picture";
}

/** What a drill asks of a measure: at least, or at most, so much. */
export interface Goal {
  /** Name of a `Measure` of one of the world's systems, or `time` [s]. */
  measure: string;
  /** In the measure's unit, as `most`; None: no lower limit. */
  least: number | null;
  /** None: no upper limit. Of a measure that only grows, more than this fails the drill. */
  most: number | null;
}

/** A drill as hard as this: its goals, and the parameters that make it so. */
export interface Level {
  name: string;
  goals: Goal[];
  /** Values of parameters, by name; all others stay as they are. */
  settings: Record<string, number>;
}

export interface Scene {
  scenario: string;
  title: string;
  summary: string;
  /** What to do, for someone who never saw it; one line per step. */
  instructions: string;
  seed: number;
  /** A box that holds all there is to see [m]. */
  bounds: [Vector3, Vector3];
  camera: Camera;
  /** Length of a force's arrow [m/N]; fixed, so that lengths can be compared. */
  force_scale: number;
  /** Times the scenario's stated numbers of masses, texels and particles. */
  detail: number;
  /** Of all organs. */
  masses: number;
  surfaces: Surface[];
  instruments: Instrument[];
  parameters: Parameter[];
  textures: Texture[];
  stains: Stains[];
  particles: Particles[];
  markers: Markers[];
  threads: Threads[];
  lattices: LatticeView[];
  volumes: Volume[];
  pictures: Picture[];
  overlays: Overlay[];
  measures: Measure[];
  tables: Table[];
  /** Of the drill; none where there is no drill. */
  levels: Level[];
  /** Whether the drill hides something that a hand can say it has found. */
  hides: boolean;
}

/** What stays; sent when a session starts or a browser joins, before any of its frames. */
export interface SceneDescription {
  type: "scene";
  /** Grows with each session; frames of another session are ignored. */
  session: number;
  /** What it runs on; `Welcome.device` is empty while the first session is still starting. */
  device: string;
  scene: Scene;
  /** What was asked for, a number or `auto`; `Scene.detail` is what it is. */
  detail: string;
}

/**
 * An array of `points` or `particles`. `data` is little-endian uint16, three per point:
 * value = box[0] + (box[1] - box[0]) * q / 65535 per axis. `shades` is one byte per point, 255 for a shade of 1; empty
 * for points.
 */
export interface ArrayData {
  name: string;
  count: number;
  box: [Vector3, Vector3];
  data: Uint8Array;
  shades: Uint8Array;
}

/**
 * An array with every bit. `data` is little-endian float32 (`f4`), int32 (`i4`) or bytes (`u1`), `components` per
 * row.
 */
export interface ExactArray {
  name: string;
  count: number;
  components: number;
  data: Uint8Array;
  kind: "f4" | "i4" | "u1";
}

/**
 * Tiles of a picture of bytes that changed (textures, volumes, pictures). `places` is little-endian uint16, column
 * and row of each tile, in tiles; `data` holds the tiles one after the other, row by row: of each texel the first
 * `channels` of RGBA, the others being 0.
 */
export interface ArrayTiles {
  name: string;
  places: Uint8Array;
  data: Uint8Array;
  channels: number;
}

/**
 * What changed in the pictures since this browser last got tiles; belongs to the frame before it. Tiles are square,
 * `side` texels wide.
 */
export interface Tiles {
  type: "tiles";
  session: number;
  side: number;
  arrays: ArrayTiles[];
}

/**
 * The triangles of a surface have changed: `triangles`, `rest` and `uv` anew, as the arrays of `Surface` say. Comes
 * before the frame whose `versions` has this version.
 */
export interface Topology {
  type: "topology";
  session: number;
  surface: string;
  version: number;
  arrays: ExactArray[];
}

/**
 * A tool as the world has it. `force` and `torque` are what a hand at the tip feels [N], [N·m] about the tip;
 * `handle_force` and `handle_torque` what a hand at the handle does, by the lever of the trocar. Without one both are
 * the same.
 */
export interface ToolState {
  tool: number;
  position: Vector3;
  orientation: Quaternion;
  grip: number;
  active: boolean;
  force: Vector3;
  torque: Vector3;
  handle_force: Vector3;
  handle_torque: Vector3;
}

/** How far a drill is. Once it has ended, nothing here changes until it is started again. */
export interface DrillState {
  phase: "waiting" | "running" | "ended";
  /** How it ended; empty before. `failed`: a goal cannot be met any more. */
  outcome: "" | "met" | "failed" | "given_up" | "found" | "missed";
  level: number;
  /** Since the start, or from there to the end [s]. */
  time: number;
  /** Measures whose goals cannot be met any more. */
  failed: string[];
  /** All measures as it ended, in their units; empty before. */
  result: Record<string, number>;
  /** How sure the hand was that said "here it is", 0 to 1. */
  certainty: number | null;
  /** How far that was from what is hidden [m]. */
  off: number | null;
}

/** Wall time of the last ticks, one by one [ms]. */
export interface TickTimes {
  p50: number;
  p99: number;
  p99_9: number;
  worst: number;
  /** Share of them that took longer than 2 ms. */
  late: number;
}

/** A haptic device and the tool it drives, as people should see it. */
export interface HapticState {
  tool: number;
  /** Its name. */
  device: string;
  /** False while the device is away. */
  present: boolean;
  /** What the hand was last made to feel, after every limit [N]. */
  force: Vector3;
  /**
   * Why it is what it is. `late`: the force fades because the world does not keep up. All others but `running`: there
   * is none.
   */
  mode: "running" | "absent" | "stalled" | "broken" | "jumped" | "catching_up" | "late";
  /** Share of the world's force that is let through, 0 to 1. */
  gain: number;
}

/**
 * The world after `tick` ticks, all but its arrays. A session adds what it knows; on its own a world leaves that at
 * its defaults.
 */
export interface Frame {
  tick: number;
  /** Simulated [s]. */
  time: number;
  tools: ToolState[];
  parameters: Record<string, number>;
  /** Of arrays that are not full: how many of their rows are there. */
  counts: Record<string, number>;
  /** Of surfaces whose triangles change: grows with each change. */
  versions: Record<string, number>;
  measures: Record<string, number>;
  /** None where there is no drill. */
  drill: DrillState | null;
  tables: Record<string, number[][]>;
  /** Mean wall time of each part of a frame [ms]. All but `tissue` runs beside the ticks. */
  stages: Record<string, number>;
  ticks: TickTimes;
  /** Simulated seconds per second of wall clock, over the last half second or so: of tissue and tools. */
  real_time_factor: number;
  /** The same of all else (heat, blood, fluids), which slows down when it cannot keep up. */
  beside_factor: number;
  /** (browser, newest sequence number of its tool inputs that took effect) */
  applied: [number, number][];
  haptics: HapticState[];
}

/** The newest snapshot. Arrays whose role is `values` come as `values`. */
export interface FrameMessage {
  type: "frame";
  number: number;
  session: number;
  state: Frame;
  arrays: ArrayData[];
  values: ExactArray[];
}

/** One number of a score. */
export interface Row {
  name: string;
  label: string;
  unit: string;
  value: number;
  digits: number;
  /** `less`, `more`, or empty where neither is better. */
  better: string;
  /** What it is compared with, and whose number that is. */
  note: string;
  /** What is good enough, where a goal or the literature says so. */
  limit: number | null;
}

/** Of one trial. */
export interface Score {
  scenario: string;
  seed: number;
  level: string;
  outcome: string;
  passed: boolean;
  /** [s] */
  time: number;
  rows: Row[];
  /** What to do better. */
  advice: string;
}

/** The trial that ended last, scored. A browser that joins later gets it too. */
export interface TrialScore {
  type: "score";
  session: number;
  score: Score;
}

/** Where a trainee stands in one measure. */
export interface Place {
  /** As `Row.name` of the score. */
  name: string;
  /** Of their own trials, the newest last. */
  values: number[];
  /** Of all trials that anybody passed; None while there are too few. */
  quartiles: Vector3 | null;
  /** What practice leads to; None while it cannot be said. */
  plateau: number | null;
  /** What is good enough; None where nothing says so. */
  limit: number | null;
  /** The trial after which LC-CUSUM calls them proficient in it; None: not yet, or no limit. */
  proficient_at: number | null;
}

/** Where the trainee stands after the trial that ended last, in this scenario and level. */
export interface Standing {
  type: "standing";
  session: number;
  trainee: string;
  trials: number;
  /** Of their own trials, the newest last [s]. */
  times: number[];
  passed: boolean[];
  /** Of the time of all trials that anybody passed [s]; None while there are too few. */
  quartiles: Vector3 | null;
  /** The trial after which LC-CUSUM calls them proficient; None: not yet. */
  proficient_at: number | null;
  /** The same of every measure. */
  places: Place[];
}

/** A recording that is shown. */
export interface Watched {
  /** Name of its file. */
  recording: string;
  /** How long it is. */
  seconds: number;
  /** Moments worth jumping to [s], with what happened there. */
  marks: [number, string][];
  /** Whether the picture is a stored one, while the world is computed up to there. */
  stored: boolean;
  /** How far that computation is, 0 to 1. */
  done: number;
}

/** A source of gaze outside the page, of the machine that runs the session. */
export interface GazeSource {
  name: string;
  /** What its places are shares of: the page's picture, or the whole screen. */
  surface: "view" | "screen";
  /** False where it could not be opened: the pointer of whoever holds the instruments counts. */
  counts: boolean;
  /** Why nothing is seen; empty while all is well. */
  problem: string;
}

/**
 * `message` explains `starting` (what is being compiled) and `crashed` (why, and what to do). A session that has
 * said nothing for seconds is `stalled`: it may go on by itself, and may be restarted.
 */
export interface SessionState {
  type: "session_state";
  state: "starting" | "running" | "paused" | "stalled" | "crashed" | "ended";
  message: string;
  /** Of starting, 0 to 1. */
  progress: number;
  speed: number;
  viewers: number;
  /** What a person should know though the session goes on (recording stopped: disk full); empty when all is well. */
  notice: string;
  /** What was guessed or mended of the user's own mesh, a sentence each; nothing is wrong. */
  notes: string[];
  /** The browser that holds the instruments; all others watch. */
  holder: number;
  /** Browsers that ask for them, who asked first in front. */
  asking: number[];
  /** What is shown is this recording; None: it is live. */
  watched: Watched | null;
  /** Whose gaze counts; None: that of the page whose viewer holds the instruments. */
  gaze: GazeSource | null;
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

/** What `/api/snapshot` answers: the newest state with every bit, for tests and measurements. */
export interface ExactSnapshot {
  session: number;
  state: Frame;
  arrays: ExactArray[];
}

export type ClientMessage = Hello | Film | Tool | SetParameter | SetTable | Control | Drill | Hand | Enter | Watch | Seek | Choose | Restart | FrameAck | Ping;

export type ServerMessage = Welcome | SceneDescription | FrameMessage | Tiles | Topology | TrialScore | Standing | SessionState | Problem | Pong;
