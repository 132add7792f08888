// The force that each hand feels, as an arrow at its tool's tip.

import { ConeGeometry, CylinderGeometry, Group, Mesh, MeshBasicMaterial, Quaternion, Vector3 } from "three";
import type { ToolState } from "../protocol";

/** A longer one would end outside the picture, its number with it [m]. */
export const LONGEST = 0.12;
/** Below this no arrow [N]. */
export const FAINTEST = 0.01;
/** The same for an instrument that does something: its tip is what one must see, and work is often done at a touch [N]. */
export const FAINTEST_AT_WORK = 0.03;
const RADIUS = 0.0009; // [m]
const HEAD = 0.0065; // [m]

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
    const length = Math.min(Math.max(this.newtons * scale, HEAD), LONGEST);
    const direction = force.clone().divideScalar(this.newtons);
    this.group.position.copy(tip);
    this.group.quaternion.copy(new Quaternion().setFromUnitVectors(new Vector3(0, 1, 0), direction));
    this.rod.scale.y = Math.max(length - HEAD, 1e-6);
    this.head.position.y = length - HEAD;
    this.end.copy(tip).addScaledVector(direction, length);
  }
}

/** An arrow for every tool that feels something, made when its tool first does. The scene says how long; so lengths compare. */
export class ForceArrows {
  readonly group = new Group();
  scale = 0.1; // [m/N]
  /** Those of the newest frame, in the order of its tools. */
  shown: ForceArrow[] = [];
  private readonly made = new Map<number, ForceArrow>(); // by the tool's number

  /** `faintest`: below which force a tool has no arrow [N]. */
  update(tools: ToolState[], faintest: (tool: number) => number): void {
    const felt = tools.filter(({ tool, active, force }) => active && Math.hypot(...force) >= faintest(tool));
    this.shown = felt.map(({ tool, position, force }) => {
      const arrow = this.of(tool);
      arrow.update(new Vector3(...position), new Vector3(...force), this.scale);
      return arrow;
    });
    for (const arrow of this.made.values()) arrow.group.visible = this.shown.includes(arrow);
  }

  /** Another scene, with its own length per newton [m/N]. */
  begin(scale: number): void {
    this.scale = scale;
    this.update([], () => FAINTEST);
  }

  private of(tool: number): ForceArrow {
    const arrow = this.made.get(tool) ?? new ForceArrow();
    this.made.set(tool, arrow);
    this.group.add(arrow.group);
    return arrow;
  }
}
