// Round threads through points: sutures and wires. The tube is smooth between the points, and ends round.

import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Group, Mesh, Vector3 } from "three";
import type { ShaderMaterial } from "three";
import type { ExactArray, Threads } from "../protocol";
import { floatsOf } from "../wire";
import type { LightUniforms } from "./light";
import { makePlasticMaterial } from "./plastic_material";

const SIDES = 10;
const PIECES = 4; // of a thread between two points
const CAP = 3; // rings of a round end

/** As coated absorbable sutures are dyed, so that they are found on tissue; sRGB, tuned for appearance. */
const SUTURE_COLOUR = "#6a45b0";
const SUTURE_SHINE = 0.35; // braided: less than glass

/** Numbers per point: its place, and whether the thread goes on. */
const NUMBERS = 4;

/** The threads of an array, each as its points, three numbers each. A single point is a thread without length and left out. */
export function runsOf(numbers: Float32Array): Vector3[][] {
  const runs: Vector3[][] = [];
  let run: Vector3[] = [];
  for (let i = 0; i + NUMBERS <= numbers.length; i += NUMBERS) {
    run.push(new Vector3().fromArray(numbers, i));
    if (numbers[i + 3] !== 0 && i + 2 * NUMBERS <= numbers.length) continue;
    if (run.length > 1) runs.push(run);
    run = [];
  }
  return runs;
}

/** Places along a smooth way through the points (Catmull and Rom, chords of equal worth), the points among them. */
export function smoothed(points: Vector3[]): Vector3[] {
  const last = points.length - 1;
  const way: Vector3[] = [];
  for (let i = 0; i < last; i++) {
    const [a, b, c, d] = [points[Math.max(i - 1, 0)], points[i], points[i + 1], points[Math.min(i + 2, last)]];
    for (let k = 0; k < PIECES; k++) way.push(between(a, b, c, d, k / PIECES));
  }
  way.push(points[last].clone());
  return way;
}

function between(a: Vector3, b: Vector3, c: Vector3, d: Vector3, t: number): Vector3 {
  const weight = [-0.5 * t + t * t - 0.5 * t ** 3, 1 - 2.5 * t * t + 1.5 * t ** 3, 0.5 * t + 2 * t * t - 1.5 * t ** 3, -0.5 * t * t + 0.5 * t ** 3];
  return [a, b, c, d].reduce((sum, point, i) => sum.addScaledVector(point, weight[i]), new Vector3());
}

/** Rings of vertices along ways, joined by triangles. */
export class Tubes {
  readonly geometry = new BufferGeometry();
  private positions = new Float32Array(0);
  private normals = new Float32Array(0);
  private triangles = new Uint32Array(0);
  private vertices = 0;
  private corners = 0;

  constructor(private readonly radius: number) {}

  set(ways: Vector3[][]): void {
    const rings = ways.reduce((sum, way) => sum + way.length + 2 * CAP, 0);
    if (rings * SIDES * 3 > this.positions.length) this.makeRoom(Math.ceil(1.5 * rings));
    this.vertices = this.corners = 0;
    for (const way of ways) this.add(way);
    this.geometry.setDrawRange(0, this.corners);
    for (const name of ["position", "normal"]) if (name in this.geometry.attributes) this.geometry.attributes[name].needsUpdate = true;
    if (this.geometry.index !== null) this.geometry.index.needsUpdate = true;
  }

  private makeRoom(rings: number): void {
    this.geometry.dispose();
    this.positions = new Float32Array(rings * SIDES * 3);
    this.normals = new Float32Array(rings * SIDES * 3);
    this.triangles = new Uint32Array(rings * SIDES * 6);
    this.geometry.setAttribute("position", new BufferAttribute(this.positions, 3).setUsage(DynamicDrawUsage));
    this.geometry.setAttribute("normal", new BufferAttribute(this.normals, 3).setUsage(DynamicDrawUsage));
    this.geometry.setIndex(new BufferAttribute(this.triangles, 1).setUsage(DynamicDrawUsage));
  }

  private add(way: Vector3[]): void {
    const last = way.length - 1;
    const along = way.map((_, i) => way[Math.min(i + 1, last)].clone().sub(way[Math.max(i - 1, 0)]).normalize());
    const across = aside(along[0]);
    const first = this.vertices;
    for (let k = CAP; k > 0; k--) this.ring(way[0], along[0], across, -Math.sin((k / CAP) * (Math.PI / 2)));
    way.forEach((place, i) => {
      // Carried along without twist: what lies along the way is taken out.
      across.addScaledVector(along[i], -across.dot(along[i]));
      if (across.lengthSq() < 1e-8) across.copy(aside(along[i]));
      this.ring(place, along[i], across.normalize(), 0);
    });
    for (let k = 1; k <= CAP; k++) this.ring(way[last], along[last], across, Math.sin((k / CAP) * (Math.PI / 2)));
    for (let ring = first; ring + 2 * SIDES <= this.vertices; ring += SIDES) this.join(ring);
  }

  /** `lean`: sine of the angle at which the ring looks along the way; 0 in the middle, ±1 at the very ends. */
  private ring(place: Vector3, along: Vector3, across: Vector3, lean: number): void {
    const other = along.clone().cross(across);
    const wide = Math.sqrt(Math.max(0, 1 - lean * lean));
    const normal = new Vector3();
    for (let k = 0; k < SIDES; k++) {
      const angle = (2 * Math.PI * k) / SIDES;
      normal.copy(across).multiplyScalar(wide * Math.cos(angle)).addScaledVector(other, wide * Math.sin(angle)).addScaledVector(along, lean);
      normal.toArray(this.normals, 3 * this.vertices);
      normal.multiplyScalar(this.radius).add(place).toArray(this.positions, 3 * this.vertices);
      this.vertices += 1;
    }
  }

  private join(ring: number): void {
    for (let k = 0; k < SIDES; k++) {
      const a = ring + k, b = ring + ((k + 1) % SIDES);
      this.triangles.set([a, b, b + SIDES, a, b + SIDES, a + SIDES], this.corners);
      this.corners += 6;
    }
  }
}

/** Any unit vector across this one. */
function aside(direction: Vector3): Vector3 {
  const other = Math.abs(direction.x) < 0.8 ? new Vector3(1, 0, 0) : new Vector3(0, 1, 0);
  return other.addScaledVector(direction, -other.dot(direction)).normalize();
}

export class SceneThreads {
  readonly group = new Group();
  private readonly looks: Record<Threads["look"], ShaderMaterial>;
  private kinds: { info: Threads; tubes: Tubes }[] = [];
  private points = 0;

  constructor(steel: ShaderMaterial, light: LightUniforms) {
    this.looks = { wire: steel, suture: makePlasticMaterial(light, SUTURE_COLOUR, SUTURE_SHINE) };
  }

  setScene(threads: Threads[]): void {
    for (const { tubes } of this.kinds) tubes.geometry.dispose();
    this.group.clear();
    this.points = 0;
    this.kinds = threads.map((info) => ({ info, tubes: new Tubes(info.radius) }));
    for (const { info, tubes } of this.kinds) {
      const mesh = new Mesh(tubes.geometry, this.looks[info.look]);
      mesh.frustumCulled = false; // its bounds change with every frame
      this.group.add(mesh);
    }
  }

  update(values: ExactArray[]): void {
    this.points = 0;
    for (const { info, tubes } of this.kinds) {
      const array = values.find((candidate) => candidate.name === info.name);
      const runs = array === undefined ? [] : runsOf(floatsOf(array, NUMBERS));
      this.points += runs.reduce((sum, run) => sum + run.length, 0);
      tubes.set(runs.map(smoothed));
    }
  }

  /** How many points threads are drawn through. */
  count(): number {
    return this.points;
  }
}
