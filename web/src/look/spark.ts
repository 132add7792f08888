// The arc at the tip of an electric instrument: a small blue-white light that flickers.

import { AdditiveBlending, DataTexture, Sprite, SpriteMaterial } from "three";
import type { Vector3 } from "three";

const SIDE = 64;
const SIZE = 0.016; // [m]
/** Light on a white surface 1 cm away, before tone mapping; tuned for appearance. */
const POWER = 1.4;

export class Spark {
  readonly sprite: Sprite;
  private phase = 0;

  constructor() {
    const material = new SpriteMaterial({
      map: glowTexture(), color: "#cfe2ff", blending: AdditiveBlending, depthTest: false, depthWrite: false, toneMapped: false,
    });
    this.sprite = new Sprite(material);
    this.sprite.renderOrder = 8;
    this.sprite.visible = false;
  }

  /** Once per picture; the light that it gives now. */
  update(tip: Vector3 | null): number {
    this.sprite.visible = tip !== null;
    if (tip === null) return 0;
    this.phase += 1;
    const flicker = 0.72 + 0.28 * Math.sin(2.3 * this.phase) * Math.sin(0.71 * this.phase + 1);
    this.sprite.position.copy(tip);
    this.sprite.scale.setScalar(SIZE * (0.8 + 0.4 * flicker));
    return POWER * flicker;
  }
}

function glowTexture(): DataTexture {
  const data = new Uint8Array(SIDE * SIDE * 4);
  for (let i = 0; i < SIDE * SIDE; i++) {
    const x = ((i % SIDE) + 0.5) / SIDE - 0.5;
    const y = (Math.floor(i / SIDE) + 0.5) / SIDE - 0.5;
    const r = Math.hypot(x, y) * 2;
    const light = Math.max(0, 1 - r) ** 2 * 0.35 + Math.exp(-((r / 0.12) ** 2));
    data.fill(Math.min(255, Math.round(255 * light)), 4 * i, 4 * i + 4);
  }
  const texture = new DataTexture(data, SIDE, SIDE);
  texture.needsUpdate = true;
  return texture;
}
