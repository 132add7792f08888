// All particles of a scene as one liquid: they mix, and lie before and behind each other, only when drawn together. Drops
// that are too small for that are drawn one by one.

import type { DepthTexture, PerspectiveCamera, Scene, WebGLRenderTarget, WebGLRenderer } from "three";
import type { ArrayData, Particles } from "../protocol";
import { dequantise } from "../wire";
import { Drops, LARGEST_DROP } from "./drops";
import { FluidSurface } from "./fluid";
import type { FluidLook } from "./fluid";
import type { LightUniforms } from "./light";
import { SizeBalls } from "./size_balls";

/** Volume of liquid that one particle stands for, in cubed radii: balls are drawn at 0.8 of their spacing. */
const VOLUME = 1 / 0.8 ** 3;

/** What the liquid is that is not water. Two such liquids in one scene are drawn as the first. */
export function lookOf(infos: Particles[]): FluidLook {
  for (const { fluid } of infos) if (fluid === "blood" || fluid === "barium") return fluid;
  return "water";
}

/** How much of a particle is that liquid, 0 to 1: what the shades say where they speak of it, else all or nothing. */
export function fillShares(info: Particles, shades: Uint8Array, count: number, out: Float32Array): void {
  const clear = info.fluid === "water" || info.fluid === "saline";
  const told = (info.shade === "share" || info.shade === "size") && shades.length >= count;
  for (let i = 0; i < count; i++) out[i] = told ? shades[i] / 255 : clear ? 0 : 1;
}

/** How much liquid each particle holds, over that of a full one. */
export function fillVolumes(info: Particles, shades: Uint8Array, count: number, out: Float32Array): void {
  const told = info.shade === "volume" && shades.length >= count;
  for (let i = 0; i < count; i++) out[i] = told ? shades[i] / 255 : 1;
}

export class SceneParticles {
  readonly drops: Drops;
  readonly balls: SizeBalls;
  private surface: FluidSurface | null = null;
  private readonly liquid = new Gathered();
  private readonly small = new Gathered();
  private readonly sized = new Gathered();

  constructor(private readonly light: LightUniforms, private readonly software: boolean, private readonly fixed: boolean) {
    this.drops = new Drops(light);
    this.balls = new SizeBalls(light);
  }

  setScene(infos: Particles[]): void {
    this.surface?.dispose();
    this.surface = null;
    this.sized.infos = infos.filter((info) => info.shade === "size");
    const plain = infos.filter((info) => info.shade !== "size");
    this.small.infos = plain.filter((info) => info.radius < LARGEST_DROP);
    this.liquid.infos = plain.filter((info) => info.radius >= LARGEST_DROP);
    this.balls.set(new Float32Array(0), 0, new Float32Array(0));
    if (this.sized.infos.length > 0) this.balls.setRadius(this.sized.largest());
    this.drops.set(new Float32Array(0), 0, new Float32Array(0), new Float32Array(0));
    if (this.small.infos.length > 0) this.drops.setRadius(this.small.largest());
    if (this.liquid.infos.length === 0) return;
    this.surface = new FluidSurface(lookOf(this.liquid.infos), this.light, this.software, this.fixed);
    const radius = this.liquid.largest();
    const volume = Math.max(...this.liquid.infos.map((info) => info.volume));
    this.surface.setParticle(radius, volume > 0 ? volume : VOLUME * radius ** 3);
  }

  update(arrays: ArrayData[]): void {
    const { liquid, small, sized } = this;
    const drops = small.gather(arrays), balls = liquid.gather(arrays);
    if (sized.infos.length > 0) this.balls.set(sized.positions, sized.gather(arrays), sized.shares);
    if (small.infos.length > 0) this.drops.set(small.positions, drops, small.shares, small.velocities);
    this.surface?.setParticles(liquid.positions, balls, liquid.shares, liquid.volumes);
  }

  count(): number {
    return this.drops.count + this.balls.count + (this.surface?.count ?? 0);
  }

  /**
   * The scene with the liquid in it, into `target` or onto the canvas; `interval` since the last picture [ms], 0 when there
   * was none just before. Gives the depth of the solids, null where only the canvas has it.
   */
  draw(
    renderer: WebGLRenderer, scene: Scene, camera: PerspectiveCamera, interval: number, target: WebGLRenderTarget | null,
  ): DepthTexture | null {
    if (this.surface === null) {
      renderer.setRenderTarget(target);
      renderer.render(scene, camera);
      return target?.depthTexture ?? null;
    }
    if (interval > 0) this.surface.note(interval);
    return this.surface.draw(renderer, scene, camera, target);
  }
}

/** The particles of several arrays one after the other. */
class Gathered {
  infos: Particles[] = [];
  positions = new Float32Array(0);
  shares = new Float32Array(0);
  volumes = new Float32Array(0);
  /** Zero where none are sent [m/s]. */
  velocities = new Float32Array(0);

  /** [m] */
  largest(): number {
    return Math.max(...this.infos.map((info) => info.radius));
  }

  /** How many there are; `positions`, `shares` and `volumes` may be others afterwards. */
  gather(arrays: ArrayData[]): number {
    const found = this.infos.flatMap((info) => {
      const array = arrays.find((candidate) => candidate.name === info.name);
      return array === undefined ? [] : [{ info, array }];
    });
    const total = found.reduce((sum, { array }) => sum + array.count, 0);
    if (this.shares.length < total) {
      this.positions = new Float32Array(total * 3 * 2);
      this.shares = new Float32Array(total * 2);
      this.volumes = new Float32Array(total * 2);
      this.velocities = new Float32Array(total * 3 * 2);
    }
    let first = 0;
    for (const { info, array } of found) {
      const end = first + array.count;
      dequantise(array, this.positions.subarray(3 * first, 3 * end));
      fillShares(info, array.shades, array.count, this.shares.subarray(first, end));
      fillVolumes(info, array.shades, array.count, this.volumes.subarray(first, end));
      const velocity = info.stretched ? arrays.find(({ name }) => name === `${info.name}/velocity`) : undefined;
      if (velocity?.count === array.count) dequantise(velocity, this.velocities.subarray(3 * first, 3 * end));
      else this.velocities.fill(0, 3 * first, 3 * end);
      first = end;
    }
    return total;
  }
}
