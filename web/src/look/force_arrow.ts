// The force that each hand feels, as an arrow at its tool's tip.

import { ConeGeometry, CylinderGeometry, Group, Mesh, MeshBasicMaterial, Quaternion, Vector3 } from "three";
import type { ToolState } from "../protocol";

const LONGEST = 0.05; // [m]
/** Arrow lengths per newton that may be chosen [m/N]. */
const SCALES = [0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
/** Below this no arrow [N]. */
export const FAINTEST = 0.01;
/** The same for an instrument that does something: its tip is what one must see, and work is often done at a touch [N]. */
export const FAINTEST_AT_WORK = 0.03;
const RADIUS = 0.0009; // [m]
const HEAD = 0.0065; // [m]

/** The largest scale that keeps the strongest force so far on the screen. */
export function arrowScale(peak: number): number {
  return SCALES.find((scale) => scale * peak <= LONGEST) ?? SCALES[SCALES.length - 1];
}

/** One tool's. */
export class ForceArrow {
  readonly group = new Group();
  readonly end = new Vector3();
  newtons = 0;
  private readonly rod: Mesh;
  private readonly head: Mesh;

  constructor() {
    const material = new MeshBasicMaterial({ color: "#ffd166", transparent: true, opacity: 0.92, depthTest: false, toneMapped: false });
    this.rod = new Mesh(new CylinderGeometry(RADIUS, RADIUS, 1, 12).translate(0, 0.5, 0), material);
    this.head = new Mesh(new ConeGeometry(2.6 * RADIUS, HEAD, 16).translate(0, 0.5 * HEAD, 0), material);
    this.group.add(this.rod, this.head);
    this.group.renderOrder = 10;
  }

  /** `scale` in metres per newton; the force is not nil. */
  update(tip: Vector3, force: Vector3, scale: number): void {
    this.newtons = force.length();
    const length = Math.max(this.newtons * scale, HEAD);
    const direction = force.clone().divideScalar(this.newtons);
    this.group.position.copy(tip);
    this.group.quaternion.copy(new Quaternion().setFromUnitVectors(new Vector3(0, 1, 0), direction));
    this.rod.scale.y = Math.max(length - HEAD, 1e-6);
    this.head.position.y = length - HEAD;
    this.end.copy(tip).addScaledVector(direction, length);
  }
}

/** An arrow for every tool that feels something, made when its tool first does. One scale, so that their lengths compare. */
export class ForceArrows {
  readonly group = new Group();
  scale = SCALES[0]; // [m/N]
  /** Those of the newest frame, in the order of its tools. */
  shown: ForceArrow[] = [];
  private readonly made = new Map<number, ForceArrow>(); // by the tool's number
  private peak = 0;

  /** `faintest`: below which force a tool has no arrow [N]. */
  update(tools: ToolState[], faintest: (tool: number) => number): void {
    const felt = tools.filter(({ tool, active, force }) => active && Math.hypot(...force) >= faintest(tool));
    this.peak = Math.max(this.peak, ...felt.map(({ force }) => Math.hypot(...force)));
    this.scale = arrowScale(this.peak);
    this.shown = felt.map(({ tool, position, force }) => {
      const arrow = this.of(tool);
      arrow.update(new Vector3(...position), new Vector3(...force), this.scale);
      return arrow;
    });
    for (const arrow of this.made.values()) arrow.group.visible = this.shown.includes(arrow);
  }

  forget(): void {
    this.peak = 0;
    this.update([], () => FAINTEST);
  }

  private of(tool: number): ForceArrow {
    const arrow = this.made.get(tool) ?? new ForceArrow();
    this.made.set(tool, arrow);
    this.group.add(arrow.group);
    return arrow;
  }
}
