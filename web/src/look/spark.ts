// The arc at the tip of an electric instrument: a small blue-white light that flickers, and a few wisps of smoke above it.
//
// All of it follows from how many pictures were drawn since the current flows, so two pages that draw the same draw alike.

import { AdditiveBlending, Color, DataTexture, Group, LinearFilter, Sprite, SpriteMaterial } from "three";
import type { Camera, Vector3 } from "three";

const SIDE = 32;
/** Across the glow [m]. An arc is a fraction of a millimetre; what must be judged lies beside it. */
const SIZE = 0.0068;
/** Light on a white surface 1 cm away, before tone mapping; tuned for appearance. */
const POWER = 0.32;
const WISPS = 5;
/** Pictures that a wisp lives, how high it rises in them and how wide it becomes [m]; tuned for appearance. */
const LIFE = 70;
const RISE = 0.03;
const WIDEST = 0.010;
const THICKEST = 0.9;

/** A wisp `age` of its life old, 0 to 1: how high it is, how wide [m], and how much it hides. */
export function wisp(age: number): { rise: number; width: number; cover: number } {
  const cover = THICKEST * Math.min(1, age * 6) * (1 - age) ** 1.5;
  return { rise: RISE * age * (1.3 - 0.3 * age), width: WIDEST * (0.18 + 0.82 * age), cover };
}

export class Spark {
  /** The arc and its smoke. */
  readonly sprite = new Group();
  private readonly glow: Sprite;
  private readonly smoke: Sprite[];
  private phase = 0;

  constructor() {
    this.glow = new Sprite(new SpriteMaterial({
      map: glowTexture(), color: "#a9c8ff", blending: AdditiveBlending, depthTest: false, depthWrite: false, toneMapped: false,
    }));
    this.glow.renderOrder = 8;
    const puff = puffTexture();
    this.smoke = Array.from({ length: WISPS }, (_, i) => {
      const material = new SpriteMaterial({
        map: puff, color: new Color("#c4c7cb"), transparent: true, depthTest: false, depthWrite: false, toneMapped: false, opacity: 0,
      });
      const sprite = new Sprite(material);
      sprite.renderOrder = 7;
      sprite.onBeforeRender = (_renderer, _scene, camera) => this.place(sprite, i, camera);
      return sprite;
    });
    this.sprite.add(this.glow, ...this.smoke);
    this.sprite.visible = false;
  }

  /** Once per picture; the light that it gives now. */
  update(tip: Vector3 | null): number {
    this.sprite.visible = tip !== null;
    if (tip === null) {
      this.phase = 0;
      return 0;
    }
    this.phase += 1;
    // Arcs strike and die: two beats that do not fit each other, with gaps.
    const beat = Math.sin(2.3 * this.phase) * Math.sin(0.71 * this.phase + 1);
    const flicker = 0.45 + 0.55 * Math.max(0, 0.4 + 0.6 * beat);
    this.sprite.position.copy(tip);
    this.glow.scale.setScalar(SIZE * (0.75 + 0.35 * flicker));
    this.glow.material.opacity = flicker;
    this.glow.material.rotation = 1.7 * this.phase;
    for (const [i, sprite] of this.smoke.entries()) {
      const age = this.age(i);
      sprite.visible = age >= 0;
      if (age < 0) continue;
      const { width, cover } = wisp(age);
      sprite.scale.set(0.5 * width, 1.4 * width, 1);
      sprite.material.opacity = cover;
      sprite.material.rotation = 0.5 * Math.sin(2.1 * i + 2.5 * age);
    }
    return POWER * flicker;
  }

  // One after the other; −1 before its first.
  private age(index: number): number {
    const pictures = this.phase - (index * LIFE) / WISPS;
    return pictures < 0 ? -1 : (pictures % LIFE) / LIFE;
  }

  // Smoke rises in the scene's own up, which the camera knows; it drifts as it does.
  private place(sprite: Sprite, index: number, camera: Camera): void {
    const age = Math.max(0, this.age(index));
    sprite.position.copy(camera.up).normalize().multiplyScalar(wisp(age).rise);
    const drift = 0.0028 * age * Math.sin(2.4 * index + 3 * age);
    const e = camera.matrixWorld.elements;
    sprite.position.x += drift * e[0];
    sprite.position.y += drift * e[1];
    sprite.position.z += drift * e[2];
    sprite.updateMatrixWorld();
    sprite.modelViewMatrix.multiplyMatrices(camera.matrixWorldInverse, sprite.matrixWorld);
  }
}

/** A small bright core in a faint glow with four uneven rays. */
function glowTexture(): DataTexture {
  return radial((r, angle) => {
    const rays = Math.max(0, 1 - r) ** 3 * (0.10 + 0.16 * Math.max(0, Math.cos(4 * angle + 0.6 * Math.sin(angle))) ** 6);
    return Math.exp(-((r / 0.17) ** 2)) + rays;
  }, true);
}

function puffTexture(): DataTexture {
  return radial((r, angle) => Math.max(0, 1 - r * (1 + 0.18 * Math.sin(3 * angle + 1))) ** 1.2, false);
}

/** White by `value` of the distance from the middle, 1 at the edge; in the colour where it is added, else in alpha. */
function radial(value: (r: number, angle: number) => number, added: boolean): DataTexture {
  const data = new Uint8Array(SIDE * SIDE * 4);
  for (let i = 0; i < SIDE * SIDE; i++) {
    const x = 2 * (((i % SIDE) + 0.5) / SIDE) - 1;
    const y = 2 * ((Math.floor(i / SIDE) + 0.5) / SIDE) - 1;
    const light = Math.min(255, Math.round(255 * value(Math.hypot(x, y), Math.atan2(y, x))));
    data.fill(added ? light : 255, 4 * i, 4 * i + 3);
    data[4 * i + 3] = light;
  }
  const texture = new DataTexture(data, SIDE, SIDE);
  texture.magFilter = texture.minFilter = LinearFilter;
  texture.needsUpdate = true;
  return texture;
}
