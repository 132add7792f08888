import { PerspectiveCamera, Quaternion, Vector3 } from "three";
import { beforeEach, describe, expect, it } from "vitest";
import { Hand } from "../src/hand/hand";
import { NormalField } from "../src/normals";
import type { PickMesh } from "../src/picking";
import type { Scene, Tool } from "../src/protocol";

const TOP = 0.032;
const RADIUS = 0.006;
const TROCAR: [number, number, number] = [0.06, -0.01, 0.2];

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

describe("hand", () => {
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

  it("hovers on the surface under the cursor without denting it", () => {
    hand.moveTo(centre, now);
    expect(sent[0].tool).toMatchObject({ type: "tool", sequence: 1, input: { tool: 0, active: true, grip: 0 } });
    expect(last().position[2] - RADIUS).toBeGreaterThan(TOP);
    expect(last().position[2] - RADIUS).toBeLessThan(TOP + 0.0005);
  });

  it("presses along the surface's normal, and knows how deep", () => {
    hand.moveTo(centre, now);
    const [x, y, z] = last().position;
    expect(hand.depthAt([x, y, z])).toBeNull();
    hand.press(1, now);
    turns(40);
    const pressed = last().position;
    expect(pressed[0]).toBeCloseTo(x, 9);
    expect(pressed[1]).toBeCloseTo(y, 9);
    // Hovering it kept 0.3 mm off.
    expect(hand.depthAt(pressed)).toBeCloseTo(hand.pressDepth - 0.0003, 9);
    expect(TOP + RADIUS - pressed[2]).toBeCloseTo(hand.pressDepth - 0.0003, 6);
  });

  it("stays in the scene's box where there is no surface", () => {
    for (const [x, y] of [[-4000, 300], [9000, -9000], [400, -20000]]) {
      now += 20;
      hand.moveTo({ x, y }, now);
      last().position.forEach((value, axis) => {
        expect(value).toBeGreaterThanOrEqual(SCENE.bounds[0][axis] - 1e-9);
        expect(value).toBeLessThanOrEqual(SCENE.bounds[1][axis] + 1e-9);
      });
    }
  });

  it("presses in smoothly by the press depth and lifts again", () => {
    hand.moveTo(centre, now);
    const [x, y, z] = last().position;
    hand.press(1, now);
    turns(1);
    expect(hand.pushed).toBeLessThan(0.002);
    turns(40);
    const [px, py, pz] = last().position;
    expect(last().grip).toBe(1);
    expect(Math.hypot(px - x, py - y, pz - z)).toBeCloseTo(hand.pressDepth, 6);
    expect(pz).toBeLessThan(z - 0.004);
    hand.release();
    turns(40);
    expect(last().position[2]).toBeCloseTo(z, 6);
    expect(last().grip).toBe(0);
  });

  it("is not drawn deeper by its own dent", () => {
    hand.moveTo(centre, now);
    hand.press(1, now);
    turns(40);
    const pressed = last().position[2];
    mesh = plate(TOP - 0.01);
    turns(40);
    expect(last().position[2]).toBeCloseTo(pressed, 6);
    hand.release();
    turns(40);
    // Lifted, it follows the surface as it is.
    expect(last().position[2]).toBeLessThan(pressed);
  });

  it("wheel goes along the shaft; while pressing it sets the depth of a press", () => {
    hand.moveTo(centre, now);
    const z = last().position[2];
    hand.push(-0.01, now);
    turns(1);
    expect(last().position[2]).toBeGreaterThan(z + 0.005);
    hand.push(0.01, now);
    hand.press(1, now);
    hand.push(0.004, now);
    turns(60);
    expect(hand.pressDepth).toBeCloseTo(0.012);
    expect(hand.pushed).toBeCloseTo(0.012);
    hand.push(1, now);
    expect(hand.pressDepth).toBeLessThanOrEqual(0.03);
  });

  it("hovers over the top of the tissue where there is no surface under the cursor", () => {
    hand.moveTo(centre, now);
    now += 20;
    hand.moveTo({ x: 120, y: 300 }, now);
    expect(last().active).toBe(true);
    expect(last().position[0]).toBeLessThan(-0.05); // beside the plate
    expect(last().position[2] - RADIUS).toBeGreaterThan(TOP);
    expect(last().position[2] - RADIUS).toBeLessThan(TOP + 0.0005);
  });

  it("keeps its depth where it looks past everything, and without a surface", () => {
    mesh = { positions: new Float32Array(), normals: new Float32Array(), triangles: new Uint32Array() };
    hand.moveTo(centre, now);
    expect(last().position.every(Number.isFinite)).toBe(true);
    // What the camera looks at is on its way through the middle of the picture.
    last().position.forEach((value, axis) => expect(value).toBeCloseTo(SCENE.camera.target[axis], 6));
  });

  it("withdraws once, with the last place it had", () => {
    hand.moveTo(centre, now);
    turns(3);
    const before = sent.length;
    hand.withdraw();
    turns(5);
    expect(sent.length).toBe(before + 1);
    expect(last().active).toBe(false);
  });

  it("sends at most 120 messages a second, however fast the mouse is", () => {
    for (let i = 0; i < 1000; i++) {
      now += 1;
      hand.moveTo({ x: 300 + (i % 200), y: 300 }, now);
    }
    expect(sent.length).toBeGreaterThan(80);
    expect(sent.length).toBeLessThanOrEqual(121);
  });

  it("says nothing while nothing moves", () => {
    hand.moveTo(centre, now);
    turns(2);
    const before = sent.length;
    turns(50);
    expect(sent.length).toBe(before);
  });

  it("numbers grow by one, also over a lost line", () => {
    hand.moveTo(centre, now);
    lineIsOpen = false;
    now += 20;
    hand.moveTo({ x: 420, y: 300 }, now);
    lineIsOpen = true;
    now += 20;
    hand.moveTo({ x: 440, y: 300 }, now);
    expect(sent.map(({ tool }) => tool.sequence)).toEqual([1, 2]);
  });

  it("keeps the time of the first movement that a message carries", () => {
    hand.moveTo(centre, now);
    hand.moveTo({ x: 410, y: 300 }, now + 2);
    hand.moveTo({ x: 420, y: 300 }, now + 4);
    hand.moveTo({ x: 430, y: 300 }, now + 10);
    expect(sent.map(({ eventTime }) => eventTime)).toEqual([now, now + 2]);
  });

  describe("with two hands", () => {
    const of = (tool: number) => sent.filter(({ tool: one }) => one.input.tool === tool).map(({ tool: one }) => one.input);

    beforeEach(() => {
      hand.setScene({ ...SCENE, instruments: [...SCENE.instruments, { ...SCENE.instruments[0], name: "other" }] });
      hand.moveTo(centre, now);
      turns(2);
      hand.swap();
      hand.moveTo({ x: centre.x + 60, y: centre.y }, now);
      turns(5);
    });

    it("leaves the one where it was and moves the other", () => {
      expect(of(0).at(-1)?.active).toBe(true);
      expect(last()).toMatchObject({ tool: 1, active: true });
      const before = of(0).length;
      hand.moveTo({ x: centre.x - 60, y: centre.y }, now);
      turns(5);
      expect(of(0).length).toBe(before);
    });

    it("takes the first up where it was left, from where it glides to the cursor", () => {
      const left = of(0).at(-1)?.position ?? [0, 0, 0];
      hand.swap();
      turns(1);
      expect(last().tool).toBe(0);
      expect(new Vector3(...last().position).distanceTo(new Vector3(...left))).toBeLessThan(0.004);
      turns(60);
      expect(last().position[0] - left[0]).toBeGreaterThan(0.008);
      expect(of(1).at(-1)?.active).toBe(true);
    });

    it("takes both out of the body", () => {
      hand.withdraw();
      hand.withdrawLeft();
      expect([of(0).at(-1)?.active, of(1).at(-1)?.active]).toEqual([false, false]);
    });
  });

  describe("with a grasper", () => {
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

    it("leaves it clamped in the body when the other one is chosen", () => {
      const left = ofGrasper().at(-1);
      expect(left?.active).toBe(true);
      expect(left?.grip).toBe(1);
      expect(last().tool).toBe(0);
      expect(last().active).toBe(true);
    });

    it("takes it up where it was left, still closed, and opens it with the next click", () => {
      const left = ofGrasper().at(-1);
      hand.moveTo({ x: centre.x + 60, y: centre.y }, now);
      turns(3);
      hand.chooseTool(1);
      turns(3);
      const taken = ofGrasper().at(-1);
      expect(taken?.grip).toBe(1);
      expect(new Vector3(...(taken?.position ?? [])).distanceTo(new Vector3(...(left?.position ?? [])))).toBeLessThan(0.002);
      hand.moveTo({ x: centre.x + 90, y: centre.y }, now);
      turns(3);
      expect((last().position[0]) - (left?.position[0] ?? 0)).toBeGreaterThan(0.003);
      expect(last().grip).toBe(1);
      hand.use(1, now);
      turns(2);
      hand.release();
      turns(2);
      expect(last().grip).toBe(0);
    });

    it("forgets it with the next scene", () => {
      hand.setScene({ ...SCENE, instruments: [...SCENE.instruments, grasper] });
      hand.moveTo(centre, now);
      hand.chooseTool(1);
      turns(3);
      expect(last().grip).toBe(0);
    });
  });

  describe("with an instrument that does something", () => {
    const hook: Scene["instruments"][number] = {
      name: "hook", home: [0, 0, 0.1], trocar: TROCAR, length: 0.36, acts_at: [0.002, 0, 0], label: "Hook", icon: "hook", action: "coagulate",
      effects: [{ kind: "pushes", radius: 0.002, length: 0, offset: 0.002, friction: 0.1, solid: false }, { kind: "heats", power: 30, reach: 0.0003, bipolar: false }],
      parts: [{ start: [0, 0, 0], end: [0, 0, 0.1], radius: 0.0005, swing: 0 }],
    };

    beforeEach(() => {
      hand.setScene({ ...SCENE, instruments: [...SCENE.instruments, hook] });
      hand.moveTo(centre, now);
      turns(2);
      hand.chooseTool(1);
      turns(3);
    });

    it("takes it in the hand where the other one was, which withdraws", () => {
      expect(last().tool).toBe(1);
      expect(last().active).toBe(true);
      const before = sent.filter(({ tool }) => tool.input.tool === 0).at(-1);
      expect(before?.tool.input.active).toBe(false);
    });

    it("has its tip, not the middle of a ball, on the surface", () => {
      expect(last().position[2]).toBeLessThan(TOP + 0.0005);
    });

    const turn = () => new Quaternion().fromArray(last().orientation ?? []);
    /** Where the middle of the foot is seen, CSS pixels. */
    const acting = () => {
      const place = new Vector3(0.002, 0, 0).applyQuaternion(turn()).add(new Vector3(...last().position));
      const clip = place.project(camera);
      return { x: (0.5 + 0.5 * clip.x) * 800, y: (0.5 - 0.5 * clip.y) * 600 };
    };

    it("has what acts under the cursor, hovering, at work, and turned about its shaft", () => {
      for (const step of [() => undefined, () => hand.use(1, now), () => hand.turn(1.2, now)]) {
        step();
        turns(40);
        expect(Math.hypot(acting().x - centre.x, acting().y - centre.y)).toBeLessThan(0.05);
      }
    });

    it("goes through its trocar, its foot level until the hand turns it", () => {
      const shaft = () => new Vector3(0, 0, 1).applyQuaternion(turn());
      const foot = () => new Vector3(1, 0, 0).applyQuaternion(turn());
      const line = () => new Vector3(...TROCAR).sub(new Vector3(...last().position)).normalize();
      expect(shaft().distanceTo(line())).toBeLessThan(1e-9);
      expect(foot().z).toBeCloseTo(0, 9);
      const level = foot();
      hand.turn(0.5, now);
      turns(3);
      expect(shaft().distanceTo(line())).toBeLessThan(1e-9);
      // The tip moves a little, so that what acts stays where it is, and the shaft with it.
      expect(foot().dot(level)).toBeCloseTo(Math.cos(0.5), 2);
    });

    it("closes the handle with the main button, and only touches", () => {
      hand.use(1, now);
      turns(40);
      expect(last().grip).toBe(1);
      expect(hand.pushed).toBeLessThan(0.0015);
      hand.release();
      turns(40);
      expect(last().grip).toBe(0);
      expect(hand.pushed).toBe(0);
    });

    it("can be pressed without closing it", () => {
      hand.press(1, now);
      turns(40);
      expect(last().grip).toBe(0);
      expect(hand.pushed).toBeGreaterThan(0.005);
    });
  });
});
