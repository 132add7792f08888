// The arc at the tip of an electric instrument: a small blue-white light that flickers. Its smoke is a volume of the world.
//
// All of it follows from how many pictures were drawn since the current flows, so two pages that draw the same draw alike.

import { AdditiveBlending, DataTexture, Group, LinearFilter, Sprite, SpriteMaterial } from "three";
import type { Vector3 } from "three";

const SIDE = 32;
/** Across the glow [m]. An arc is a fraction of a millimetre; what must be judged lies beside it. */
const SIZE = 0.0068;
/** Light on a white surface 1 cm away, before tone mapping; tuned for appearance. */
const POWER = 0.32;

export class Spark {
  readonly sprite = new Group();
  private readonly glow: Sprite;
  private phase = 0;

  constructor() {
    this.glow = new Sprite(new SpriteMaterial({
      map: glowTexture(), color: "#a9c8ff", blending: AdditiveBlending, depthTest: false, depthWrite: false, toneMapped: false,
    }));
    this.glow.renderOrder = 8;
    this.sprite.add(this.glow);
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
    return POWER * flicker;
  }
}

/** A small bright core in a faint glow with four uneven rays. */
function glowTexture(): DataTexture {
  return radial((r, angle) => {
    const rays = Math.max(0, 1 - r) ** 3 * (0.10 + 0.16 * Math.max(0, Math.cos(4 * angle + 0.6 * Math.sin(angle))) ** 6);
    return Math.exp(-((r / 0.17) ** 2)) + rays;
  });
}

/** White by `value` of the distance from the middle, 1 at the edge. */
function radial(value: (r: number, angle: number) => number): DataTexture {
  const data = new Uint8Array(SIDE * SIDE * 4);
  for (let i = 0; i < SIDE * SIDE; i++) {
    const x = 2 * (((i % SIDE) + 0.5) / SIDE) - 1;
    const y = 2 * ((Math.floor(i / SIDE) + 0.5) / SIDE) - 1;
    const light = Math.min(255, Math.round(255 * value(Math.hypot(x, y), Math.atan2(y, x))));
    data.fill(light, 4 * i, 4 * i + 3);
    data[4 * i + 3] = light;
  }
  const texture = new DataTexture(data, SIDE, SIDE);
  texture.magFilter = texture.minFilter = LinearFilter;
  texture.needsUpdate = true;
  return texture;
}
