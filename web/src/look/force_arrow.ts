// The force that the hand feels, as an arrow at the tip.

import { ConeGeometry, CylinderGeometry, Group, Mesh, MeshBasicMaterial, Quaternion, Vector3 } from "three";

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

export class ForceArrow {
  readonly group = new Group();
  readonly end = new Vector3();
  scale = SCALES[0]; // [m/N]
  private readonly rod: Mesh;
  private readonly head: Mesh;
  private peak = 0;

  constructor() {
    const material = new MeshBasicMaterial({ color: "#ffd166", transparent: true, opacity: 0.92, depthTest: false, toneMapped: false });
    this.rod = new Mesh(new CylinderGeometry(RADIUS, RADIUS, 1, 12).translate(0, 0.5, 0), material);
    this.head = new Mesh(new ConeGeometry(2.6 * RADIUS, HEAD, 16).translate(0, 0.5 * HEAD, 0), material);
    this.group.add(this.rod, this.head);
    this.group.renderOrder = 10;
    this.group.visible = false;
  }

  update(tip: Vector3, force: Vector3, faintest = FAINTEST): void {
    const newtons = force.length();
    this.group.visible = newtons >= faintest;
    if (!this.group.visible) return;
    this.peak = Math.max(this.peak, newtons);
    this.scale = arrowScale(this.peak);
    const length = Math.max(newtons * this.scale, HEAD);
    const direction = force.clone().divideScalar(newtons);
    this.group.position.copy(tip);
    this.group.quaternion.copy(new Quaternion().setFromUnitVectors(new Vector3(0, 1, 0), direction));
    this.rod.scale.y = Math.max(length - HEAD, 1e-6);
    this.head.position.y = length - HEAD;
    this.end.copy(tip).addScaledVector(direction, length);
  }

  forget(): void {
    this.peak = 0;
    this.group.visible = false;
  }
}
