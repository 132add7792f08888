// Small rigid things that lie on or in tissue and are no fluid: the clips that close vessels, pins that mark a place.

import { CatmullRomCurve3, MeshBasicMaterial, ConeGeometry, CurvePath, CylinderGeometry, Group, LineCurve3, Mesh, Quaternion, SphereGeometry, TubeGeometry, Vector3 } from "three";
import type { BufferGeometry, Material, ShaderMaterial } from "three";
import type { ExactArray, Markers } from "../protocol";
import { floatsOf } from "../wire";
import type { LightUniforms } from "./light";
import { makePlasticMaterial } from "./plastic_material";

// In half lengths of a marker.
const GAP = 0.3; // from a clip's middle to each leg
const WIRE = 0.17; // radius of a clip
const RAISED = 0.12; // of a clip above the tissue
const NEEDLE = 0.055; // radius of a pin
const HEAD = 0.2; // radius of its glass head

/** Glass, so that it is found between red and brown; sRGB, tuned for appearance. */
const HEAD_COLOUR = "#2f7fd0";

/** What was hidden, seen through the tissue; sRGB, tuned for appearance. */
const TARGET_COLOUR = "#7dff9a";

/** Numbers per marker: position, orientation, whether it is there. */
const NUMBERS = 8;

export interface Pose {
  place: Vector3;
  turn: Quaternion;
}

/** Of the markers of an array that are there. */
export function markerPoses(numbers: Float32Array): Pose[] {
  const poses: Pose[] = [];
  for (let i = 0; i + NUMBERS <= numbers.length; i += NUMBERS) {
    if (numbers[i + 7] === 0) continue;
    poses.push({ place: new Vector3().fromArray(numbers, i), turn: new Quaternion().fromArray(numbers, i + 3).normalize() });
  }
  return poses;
}

interface Piece {
  shape: BufferGeometry;
  material: Material;
}

export class SceneMarkers {
  readonly group = new Group();
  private readonly looks: Record<Markers["look"], Piece[]>;
  private kinds: { info: Markers; group: Group }[] = [];

  constructor(steel: ShaderMaterial, light: LightUniforms) {
    const of = (material: Material) => (shape: BufferGeometry) => ({ shape, material });
    this.looks = {
      clip: clipShapes().map(of(steel)),
      pin: [...needleShapes().map(of(steel)), of(makePlasticMaterial(light, HEAD_COLOUR))(headShape())],
      target: [of(new MeshBasicMaterial({ color: TARGET_COLOUR, transparent: true, opacity: 0.55, depthTest: false, depthWrite: false }))(new SphereGeometry(1, 32, 20))],
    };
  }

  setScene(markers: Markers[]): void {
    this.kinds = markers.map((info) => ({ info, group: new Group() }));
    this.group.clear();
    for (const { group } of this.kinds) this.group.add(group);
  }

  update(values: ExactArray[]): void {
    for (const { info, group } of this.kinds) {
      const array = values.find((candidate) => candidate.name === info.name);
      if (array !== undefined) this.put(info, group, markerPoses(floatsOf(array, NUMBERS)));
    }
  }

  /** How many are drawn. */
  count(): number {
    return this.kinds.reduce((sum, { group }) => sum + group.children.filter((marker) => marker.visible).length, 0);
  }

  private put({ look, size }: Markers, group: Group, poses: Pose[]): void {
    while (group.children.length < poses.length) group.add(made(this.looks[look]));
    group.children.forEach((marker, i) => {
      const pose = poses.at(i);
      marker.visible = pose !== undefined;
      if (pose === undefined) return;
      const up = new Vector3(0, 0, look === "clip" ? RAISED * size : 0).applyQuaternion(pose.turn);
      marker.position.copy(pose.place).add(up);
      marker.quaternion.copy(pose.turn);
      marker.scale.setScalar(size);
    });
  }
}

function made(pieces: Piece[]): Group {
  const marker = new Group();
  for (const { shape, material } of pieces) marker.add(new Mesh(shape, material));
  return marker;
}

/** Two legs and the bend that joins them, with round ends; half a unit long to each side, z up. */
function clipShapes(): BufferGeometry[] {
  const bend = Array.from({ length: 9 }, (_, i) => {
    const angle = Math.PI * (i / 8 - 0.5);
    return new Vector3(1 - GAP + GAP * Math.cos(angle), GAP * Math.sin(angle), 0);
  });
  const way = new CurvePath<Vector3>();
  const ends = [new Vector3(-1, -GAP, 0), new Vector3(-1, GAP, 0)];
  way.add(new LineCurve3(ends[0], bend[0]));
  way.add(new CatmullRomCurve3(bend));
  way.add(new LineCurve3(bend[8], ends[1]));
  const caps = ends.map((end) => new SphereGeometry(WIRE, 12, 8).translate(end.x, end.y, end.z));
  return [new TubeGeometry(way, 48, WIRE, 10, false), ...caps];
}

/** Half in the tissue, half out of it: the point below, z up. */
function needleShapes(): BufferGeometry[] {
  const upright = (shape: BufferGeometry, z: number) => shape.rotateX(Math.PI / 2).translate(0, 0, z);
  return [upright(new CylinderGeometry(NEEDLE, NEEDLE, 1.6, 12), 0.1), upright(new ConeGeometry(NEEDLE, 0.3, 12).rotateX(Math.PI), -0.85)];
}

function headShape(): BufferGeometry {
  return new SphereGeometry(HEAD, 20, 14).translate(0, 0, 1 - HEAD);
}
