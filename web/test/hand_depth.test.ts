import { PerspectiveCamera, Quaternion, Vector3 } from "three";
import { beforeEach, describe, expect, it } from "vitest";
import { Hand } from "../src/hand/hand";
import { NormalField } from "../src/normals";
import type { PickMesh } from "../src/picking";
import type { Scene, Tool } from "../src/protocol";

type Orientation = [number, number, number, number];

const TOP = 0.032;
const RADIUS = 0.006;

const SCENE: Scene = {
  scenario: "palpation", title: "", summary: "", instructions: "", seed: 0, detail: 1, masses: 0,
  bounds: [[-0.1, -0.1, 0], [0.1, 0.1, 0.1]],
  camera: { position: [0, -0.14, 0.16], target: [0, 0, 0.016], up: [0, 0, 1], field_of_view: 40, trocar: null },
  force_scale: 0.1, surfaces: [], stains: [], parameters: [],
  instruments: [{
    name: "probe", effects: [{ kind: "pushes", radius: RADIUS, length: 0, offset: 0, friction: 0.1, solid: false }], home: [0, 0, 0.1],
    trocar: null, length: 0.36, acts_at: [0, 0, 0], label: "", icon: "probe", action: "", parts: [],
  }],
  textures: [], particles: [], markers: [], threads: [], lattices: [], volumes: [], pictures: [], overlays: [],
  measures: [], tables: [], levels: [], hides: false,
};

function plate(z: number): PickMesh {
  const positions = new Float32Array([-0.05, -0.05, z, 0.05, -0.05, z, 0.05, 0.05, z, -0.05, 0.05, z]);
  const triangles = new Uint32Array([0, 1, 2, 0, 2, 3]);
  const field = new NormalField(triangles, 4);
  field.update(positions);
  return { positions, normals: field.normals, triangles };
}

describe("a hand that keeps its depth", () => {
  let sent: { tool: Tool; eventTime: number | null }[];
  let mesh: PickMesh;
  let hand: Hand;
  let now: number;
  let lineIsOpen: boolean;
  let camera: PerspectiveCamera;
  const centre = { x: 400, y: 300 };

  const turns = (count: number, each = 16) => {
    for (let i = 0; i < count; i++) {
      now += each;
      hand.advance(each / 1000, now);
    }
  };
  const last = () => sent[sent.length - 1].tool.input;

  beforeEach(() => {
    camera = new PerspectiveCamera(40, 800 / 600, 0.01, 5);
    camera.up.set(0, 0, 1);
    camera.position.set(...SCENE.camera.position);
    camera.lookAt(...SCENE.camera.target);
    camera.updateMatrixWorld();
    mesh = plate(TOP);
    sent = [];
    now = 1000;
    lineIsOpen = true;
    const view = { camera, size: () => ({ width: 800, height: 600 }), pickMeshes: () => [mesh] };
    hand = new Hand(view, {
      send: (tool, eventTime) => {
        if (lineIsOpen) sent.push({ tool, eventTime });
        return lineIsOpen;
      },
    });
    hand.setScene(SCENE);
  });

  const grasper: Scene["instruments"][number] = {
    ...SCENE.instruments[0], name: "grasper", icon: "forceps", action: "grasp",
    effects: [
      { kind: "pushes", radius: 0.001, length: 0, offset: 0.001, friction: 0.1, solid: false },
      { kind: "grasps", parts: [0, 1], width: 0.005, grip: 4, friction: 0.5 },
    ],
  };
  const ofGrasper = () => sent.filter(({ tool }) => tool.input.tool === 1).map(({ tool }) => tool.input);

  beforeEach(() => {
    hand.setScene({ ...SCENE, instruments: [...SCENE.instruments, grasper] });
    hand.moveTo(centre, now);
    turns(2);
    hand.chooseTool(1);
    turns(3);
    hand.use(1, now);
    turns(10);
    hand.chooseTool(0);
    hand.release();
    turns(10);
  });

  it("keeps its depth when told to, however the surface under the cursor lies", () => {
    hand.chooseTool(1);
    turns(3);
    const [x, , z] = last().position;
    const from = new Vector3(...last().position);
    hand.keepDepth(true, now);
    turns(2);
    expect(new Vector3(...last().position).distanceTo(from)).toBeLessThan(1e-5);
    expect(hand.keepsDepth()).toBe(true);
    mesh.positions.fill(0.09);
    hand.moveTo({ x: centre.x + 40, y: centre.y }, now);
    turns(2);
    const axis = new Vector3(0, 0, -1).transformDirection(camera.matrixWorld);
    expect(Math.abs(new Vector3(...last().position).sub(from).dot(axis))).toBeLessThan(1e-5);
    expect(last().position[0] - x).toBeGreaterThan(0.005);
    hand.push(-0.01, now);
    turns(2);
    expect(last().position[2]).toBeGreaterThan(z + 0.005);
    hand.keepDepth(false, now);
    expect(hand.keepsDepth()).toBe(false);
  });

  it("stays where it is while the view turns, if it keeps its depth", () => {
    hand.chooseTool(1);
    turns(3);
    hand.keepDepth(true, now);
    turns(2);
    const from = new Vector3(...last().position);
    camera.position.set(0.1, -0.1, 0.17);
    camera.lookAt(...SCENE.camera.target);
    camera.updateMatrixWorld();
    turns(2);
    expect(new Vector3(...last().position).distanceTo(from)).toBeLessThan(1e-5);
  });

  it("follows surfaces again once another instrument is chosen", () => {
    hand.chooseTool(1);
    turns(3);
    hand.keepDepth(true, now);
    hand.chooseTool(0);
    turns(3);
    expect(hand.keepsDepth()).toBe(false);
  });

  it("finds what is clamped in the world when the page comes to it, and takes it up there", () => {
    const left = ofGrasper().at(-1);
    if (left === undefined) throw new Error("nothing was left");
    const { position, orientation } = left;
    const clamped = { active: true, position, orientation: orientation ?? [0, 0, 0, 1] as Orientation, grip: 1 };
    hand.setScene({ ...SCENE, instruments: [...SCENE.instruments, grasper] });
    hand.see([{ ...clamped, active: false, grip: 0 }, clamped]);
    hand.moveTo({ x: centre.x + 60, y: centre.y }, now);
    turns(3);
    hand.chooseTool(1);
    turns(3);
    expect(last().grip).toBe(1);
    expect(new Vector3(...last().position).distanceTo(new Vector3(...clamped.position))).toBeLessThan(0.002);
    const turned = new Quaternion(...(last().orientation ?? [0, 0, 0, 1] as Orientation)).angleTo(new Quaternion(...clamped.orientation));
    expect(turned).toBeLessThan(0.02);
  });
});
