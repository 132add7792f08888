// The lattice itself: masses as balls, springs as lines, from blue to red by what the server says of each mass.

import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Group, LineSegments, ShaderMaterial } from "three";
import type { ExactArray, LatticeView } from "../protocol";
import { floatsOf } from "../wire";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL } from "./light";
import type { LightUniforms } from "./light";
import { SizeBalls } from "./size_balls";

/** Numbers per mass: its place, and its shade. */
const NUMBERS = 4;
/** What is shown, as the parameter of a lattice says it. */
const INSTEAD = 1;

class Lattice {
  readonly group = new Group();
  readonly balls: SizeBalls;
  private readonly geometry = new BufferGeometry();
  private readonly lines: LineSegments<BufferGeometry, ShaderMaterial>;
  private readonly springs: Int32Array;
  private positions = new Float32Array(0);
  private shares = new Float32Array(0);

  constructor(readonly info: LatticeView, light: LightUniforms) {
    this.balls = new SizeBalls(light);
    this.balls.setRadius(info.radius);
    this.springs = new Int32Array(info.springs.slice().buffer);
    const corners = this.springs.length;
    this.geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * corners), 3).setUsage(DynamicDrawUsage));
    this.geometry.setAttribute("share", new BufferAttribute(new Float32Array(corners), 1).setUsage(DynamicDrawUsage));
    this.lines = new LineSegments(this.geometry, new ShaderMaterial({
      name: "springs", vertexShader: VERTEX, fragmentShader: FRAGMENT, uniforms: { ...light },
    }));
    this.lines.frustumCulled = false; // its bounds change with every frame
    this.group.add(this.lines, this.balls.points);
  }

  update(masses: Float32Array, cut: Float32Array): void {
    const count = masses.length / NUMBERS;
    this.group.visible = count > 0;
    if (count === 0) {
      this.balls.set(this.positions, 0, this.shares);
      return;
    }
    if (this.shares.length < count) {
      this.positions = new Float32Array(3 * count);
      this.shares = new Float32Array(count);
    }
    for (let i = 0; i < count; i++) {
      for (let axis = 0; axis < 3; axis++) this.positions[3 * i + axis] = masses[NUMBERS * i + axis];
      this.shares[i] = 1 - masses[NUMBERS * i + 3]; // balls are red where their share is 0
    }
    this.balls.set(this.positions, count, this.shares);
    this.drawSprings(cut);
  }

  dispose(): void {
    this.geometry.dispose();
    this.lines.material.dispose();
  }

  private drawSprings(cut: Float32Array): void {
    const place = this.geometry.attributes.position as BufferAttribute;
    const share = this.geometry.attributes.share as BufferAttribute;
    const at = place.array as Float32Array;
    this.springs.forEach((mass, corner) => {
      at.set(this.positions.subarray(3 * mass, 3 * mass + 3), 3 * corner);
      (share.array as Float32Array)[corner] = this.shares[mass];
    });
    // A spring that is cut has no length.
    for (const spring of cut) at.copyWithin(6 * spring + 3, 6 * spring, 6 * spring + 3);
    place.needsUpdate = share.needsUpdate = true;
  }
}

export class SceneLattices {
  readonly group = new Group();
  private lattices: Lattice[] = [];

  constructor(private readonly light: LightUniforms) {}

  setScene(infos: LatticeView[]): void {
    for (const lattice of this.lattices) lattice.dispose();
    this.group.clear();
    this.lattices = infos.map((info) => new Lattice(info, this.light));
    for (const lattice of this.lattices) this.group.add(lattice.group);
  }

  update(values: ExactArray[]): void {
    const found = (name: string, numbers: number) => {
      const array = values.find((candidate) => candidate.name === name);
      return array === undefined ? new Float32Array(0) : floatsOf(array, numbers);
    };
    for (const lattice of this.lattices) lattice.update(found(lattice.info.name, NUMBERS), found(`${lattice.info.name}/cut`, 1));
  }

  /** Whether a lattice is drawn instead of this surface. */
  hides(surface: string, parameters: Record<string, number>): boolean {
    return this.lattices.some(({ info, balls }) => info.surface === surface && balls.count > 0 && parameters[info.parameter] === INSTEAD);
  }

  /** How many masses are drawn. */
  count(): number {
    return this.lattices.reduce((sum, { balls }) => sum + balls.count, 0);
  }
}

const VERTEX = /* glsl */ `
attribute float share;
varying vec3 vPlace;
varying float vShare;

void main() {
  vec4 place = modelViewMatrix * vec4(position, 1.0);
  vPlace = place.xyz;
  vShare = share;
  gl_Position = projectionMatrix * place;
}
`;

const FRAGMENT = /* glsl */ `
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
varying vec3 vPlace;
varying float vShare;

const vec3 HIGH = vec3(0.75, 0.10, 0.06);
const vec3 LOW = vec3(0.10, 0.28, 0.80);

void main() {
  vec3 toLamp = uLamp - vPlace;
  gl_FragColor = vec4(toScreen(mix(HIGH, LOW, vShare) * (0.6 * uLampPower / dot(toLamp, toLamp))), 1.0);
}
`;
