// A liquid made of particles, drawn over the scene: balls in depth and thickness, smoothed, then shaded per pixel.
//
// `FluidSurface.draw` stands in for `renderer.render(scene, camera)`. The scene is drawn into a picture with depth; the
// liquid is drawn small (a share of the pixels, fewer where the machine is slow) and laid over it in full size.

import {
  AddEquation, BufferAttribute, BufferGeometry, Color, CustomBlending, DepthTexture, DynamicDrawUsage, FloatType, HalfFloatType,
  LinearFilter, Matrix4, NoBlending, OneFactor, Points, RedFormat, RGBAFormat, RGFormat, Scene, ShaderMaterial, UnsignedIntType, Vector2,
  Vector3, WebGLRenderTarget,
} from "three";
import type { IUniform, PerspectiveCamera, Texture, TextureDataType, WebGLRenderer } from "three";
import { BALL_DEPTH, BALL_THICKNESS, BALL_VERTEX, COMPOSITE, NORMAL, SMOOTH } from "./fluid_shaders";
import { FluidResolution } from "./fluid_resolution";
import type { LightUniforms } from "./light";
import { ScreenPass, plainTarget, screenMaterial, setUniforms } from "./screen_pass";
import type { Uniforms } from "./screen_pass";

export type FluidLook = "water" | "barium" | "blood";

interface Body {
  /** [1/m], red, green, blue. */
  absorption: [number, number, number];
  /** [1/m] */
  scattering: number;
  albedo: [number, number, number];
  index: number;
  shininess: number;
  specular: number;
  wrap: number;
}

/** As in `imaging/shading.py`, which says where the numbers come from; highlights are weaker, as the lamp here is brighter. */
const BODIES: Record<FluidLook, Body> = {
  water: { absorption: [3.5, 0.6, 0.1], scattering: 0.4, albedo: [0.75, 0.86, 0.9], index: 1.333, shininess: 300, specular: 30, wrap: 0 },
  barium: { absorption: [0, 0, 0], scattering: 4000, albedo: [0.93, 0.92, 0.89], index: 1.35, shininess: 25, specular: 2, wrap: 0.1 },
  blood: {
    absorption: [350, 23000, 33000], scattering: 700, albedo: [0.17, 0.005, 0.004], index: 1.35, shininess: 220, specular: 22, wrap: 0.1,
  },
};

/** Rounds of the depth filter, along x and along y each. */
const ROUNDS = 2;
/** Standard deviation of the filter, and the step in depth that is another surface, in radii of a particle. */
const SMOOTHING = 1;
const RANGE = 3;
/** Thickness has no edges to keep: half the texels of the depth along each side are enough. */
const THICKNESS_SHARE = 0.5;

export class FluidSurface {
  /** Particles drawn now. */
  count = 0;
  private readonly resolution: FluidResolution;
  private readonly geometry = new BufferGeometry();
  private readonly balls = new Scene();
  private readonly points: Points<BufferGeometry, ShaderMaterial>;
  private readonly screen = new ScreenPass();
  private readonly projection: IUniform<Matrix4> = { value: new Matrix4() };
  private readonly radius: IUniform<number> = { value: 0.001 };
  private readonly fill: IUniform<number> = { value: 1 };
  private readonly texels: IUniform<number> = { value: 1 };
  private readonly smoothing: IUniform<number> = { value: 0.001 };
  private readonly range: IUniform<number> = { value: 0.003 };
  private readonly depthMaterial: ShaderMaterial;
  private readonly thicknessMaterial: ShaderMaterial;
  private readonly smoothMaterial: ShaderMaterial;
  private readonly normalMaterial: ShaderMaterial;
  private readonly compositeMaterial: ShaderMaterial;
  private targets: Targets | null = null;

  /** `fixed` keeps the number of pixels, so that two pictures can be compared. */
  constructor(readonly look: FluidLook, light: LightUniforms, private readonly software: boolean, fixed = false) {
    this.resolution = new FluidResolution(software, fixed);
    const eye = { uProjection: this.projection };
    const ball = { ...eye, uRadius: this.radius, uTexels: this.texels, uSize: { value: new Vector2() } };
    this.depthMaterial = new ShaderMaterial({
      name: "fluid depth", uniforms: ball, vertexShader: BALL_VERTEX, fragmentShader: BALL_DEPTH, blending: NoBlending,
    });
    this.thicknessMaterial = new ShaderMaterial({
      name: "fluid thickness",
      uniforms: { ...ball, uSize: { value: new Vector2() }, uTexels: { value: 1 }, uFill: this.fill, tSceneDepth: { value: null } },
      vertexShader: BALL_VERTEX, fragmentShader: BALL_THICKNESS,
      blending: CustomBlending, blendEquation: AddEquation, blendSrc: OneFactor, blendDst: OneFactor,
      depthTest: false, depthWrite: false, transparent: true,
    });
    this.smoothMaterial = screenMaterial("fluid smoothing", SMOOTH, {
      tDepth: { value: null }, uStep: { value: new Vector2() },
      uTexels: this.texels, uSmoothing: this.smoothing, uRange: this.range,
    });
    const texel = { value: new Vector2() };
    this.normalMaterial = screenMaterial("fluid normals", NORMAL, { ...eye, tDepth: { value: null }, uTexel: texel, uRange: this.range });
    this.compositeMaterial = screenMaterial("fluid", COMPOSITE, {
      ...light, ...eye, ...bodyUniforms(look), uTexel: texel,
      tScene: { value: null }, tSceneDepth: { value: null }, tDepth: { value: null }, tNormal: { value: null }, tThickness: { value: null },
    });
    this.points = new Points(this.geometry, this.depthMaterial);
    this.points.frustumCulled = false; // its bounds change with every frame
    this.balls.add(this.points);
  }

  /** How large particles are drawn [m], about 0.6 to 1 of their spacing, and how much liquid each one is [m³]. */
  setParticle(radius: number, volume: number): void {
    this.radius.value = radius;
    this.fill.value = volume / ((4 / 3) * Math.PI * radius ** 3);
    this.smoothing.value = SMOOTHING * radius;
    this.range.value = RANGE * radius;
  }

  /**
   * The first `count` particles at `positions` (x, y, z each [m]). `shares` is how much of each is the liquid of this
   * look, 0 to 1, the rest being water; without them all of it is. `volumes` is how much liquid each one is, over what
   * `setParticle` says; without them 1. All are copied.
   */
  setParticles(
    positions: Float32Array, count: number, shares: Float32Array | null = null, volumes: Float32Array | null = null,
  ): void {
    const room = this.geometry.attributes.position as BufferAttribute | undefined;
    if (room === undefined || room.count < count) this.makeRoom(Math.max(256, Math.ceil(1.5 * count)));
    const place = this.geometry.attributes.position as BufferAttribute;
    const share = this.geometry.attributes.share as BufferAttribute;
    (place.array as Float32Array).set(positions.subarray(0, 3 * count));
    if (shares === null) (share.array as Float32Array).fill(1, 0, count);
    else (share.array as Float32Array).set(shares.subarray(0, count));
    const volume = this.geometry.attributes.volume as BufferAttribute;
    if (volumes === null) (volume.array as Float32Array).fill(1, 0, count);
    else (volume.array as Float32Array).set(volumes.subarray(0, count));
    place.needsUpdate = share.needsUpdate = volume.needsUpdate = true;
    this.geometry.setDrawRange(0, count);
    this.count = count;
  }

  /**
   * The scene with the liquid in it, into `target` or onto the canvas. Without particles it costs nothing more. Gives the
   * depth of the solids, null where only the canvas has it.
   */
  draw(
    renderer: WebGLRenderer, scene: Scene, camera: PerspectiveCamera, target: WebGLRenderTarget | null = null,
  ): DepthTexture | null {
    if (this.count === 0) {
      renderer.setRenderTarget(target);
      renderer.render(scene, camera);
      return target?.depthTexture ?? null;
    }
    const targets = this.fit(renderer, target);
    renderer.setRenderTarget(targets.scene);
    renderer.render(scene, camera);
    const kept = { colour: renderer.getClearColor(new Color()), alpha: renderer.getClearAlpha() };
    renderer.setClearColor(0x000000, 0);
    this.projection.value.copy(camera.projectionMatrix);
    this.drawBalls(renderer, camera, targets);
    const depth = this.smooth(renderer, targets);
    setUniforms(this.normalMaterial, { tDepth: depth });
    this.screen.draw(renderer, this.normalMaterial, targets.normal);
    setUniforms(this.compositeMaterial, {
      tScene: targets.scene.texture, tSceneDepth: targets.scene.depthTexture, tDepth: depth,
      tNormal: targets.normal.texture, tThickness: targets.thickness.texture,
    });
    this.screen.draw(renderer, this.compositeMaterial, target);
    renderer.setClearColor(kept.colour, kept.alpha);
    return targets.scene.depthTexture;
  }

  /** `interval` between two pictures that were both drawn [ms]; true when the liquid is drawn with other pixels now. */
  note(interval: number): boolean {
    return this.count > 0 && this.resolution.note(interval);
  }

  /** Texels of the liquid's depth per pixel of the picture, along each side. */
  pixelShare(): number {
    return this.resolution.share();
  }

  dispose(): void {
    this.targets?.dispose();
    this.geometry.dispose();
    this.screen.dispose();
    const { depthMaterial, thicknessMaterial, smoothMaterial, normalMaterial, compositeMaterial } = this;
    for (const material of [depthMaterial, thicknessMaterial, smoothMaterial, normalMaterial, compositeMaterial]) material.dispose();
  }

  private makeRoom(capacity: number): void {
    // Buffers cannot grow: the old ones are given back with the geometry's attributes.
    this.geometry.dispose();
    this.geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * capacity), 3).setUsage(DynamicDrawUsage));
    for (const name of ["share", "volume"]) {
      this.geometry.setAttribute(name, new BufferAttribute(new Float32Array(capacity), 1).setUsage(DynamicDrawUsage));
    }
  }

  private fit(renderer: WebGLRenderer, target: WebGLRenderTarget | null): Targets {
    const size = target === null ? renderer.getDrawingBufferSize(new Vector2()) : new Vector2(target.width, target.height);
    const share = this.resolution.share();
    if (this.targets?.fits(size, share) !== true) {
      this.targets?.dispose();
      const depthType = renderer.extensions.has("EXT_color_buffer_float") ? FloatType : HalfFloatType;
      this.targets = new Targets(size.clone(), share, depthType, this.software ? 0 : 4);
      const { width, height } = this.targets.balls;
      (this.normalMaterial.uniforms.uTexel.value as Vector2).set(1 / width, 1 / height);
    }
    return this.targets;
  }

  private drawBalls(renderer: WebGLRenderer, camera: PerspectiveCamera, targets: Targets): void {
    const texels = 0.5 * camera.projectionMatrix.elements[5];
    this.texels.value = texels * targets.balls.height;
    setUniforms(this.thicknessMaterial, { uTexels: texels * targets.thickness.height, tSceneDepth: targets.scene.depthTexture });
    for (const [material, into] of [[this.depthMaterial, targets.balls], [this.thicknessMaterial, targets.thickness]] as const) {
      (material.uniforms.uSize.value as Vector2).set(into.width, into.height);
      this.points.material = material;
      renderer.setRenderTarget(into);
      renderer.render(this.balls, camera);
    }
  }

  private smooth(renderer: WebGLRenderer, targets: Targets): Texture {
    let source = targets.balls.texture;
    const { width, height } = targets.balls;
    for (let round = 0; round < ROUNDS; round++) {
      for (const [index, step] of [new Vector2(1 / width, 0), new Vector2(0, 1 / height)].entries()) {
        setUniforms(this.smoothMaterial, { tDepth: source, uStep: step });
        this.screen.draw(renderer, this.smoothMaterial, targets.smooth[index]);
        source = targets.smooth[index].texture;
      }
    }
    return source;
  }
}

/** What is drawn into before the picture: the scene with depth, and the liquid's parts. */
class Targets {
  readonly scene: WebGLRenderTarget;
  readonly balls: WebGLRenderTarget;
  readonly smooth: [WebGLRenderTarget, WebGLRenderTarget];
  readonly normal: WebGLRenderTarget;
  readonly thickness: WebGLRenderTarget;

  constructor(private readonly size: Vector2, private readonly share: number, depthType: TextureDataType, samples: number) {
    this.scene = new WebGLRenderTarget(size.x, size.y, {
      samples, depthTexture: new DepthTexture(size.x, size.y, UnsignedIntType), generateMipmaps: false,
    });
    const small = size.clone().multiplyScalar(share).ceil();
    const smaller = size.clone().multiplyScalar(share * THICKNESS_SHARE).ceil();
    this.balls = plainTarget(small, RedFormat, depthType, true);
    this.smooth = [plainTarget(small, RedFormat, depthType, false), plainTarget(small, RedFormat, depthType, false)];
    this.normal = plainTarget(small, RGBAFormat, HalfFloatType, false);
    this.thickness = plainTarget(smaller, RGFormat, HalfFloatType, false);
    for (const { texture } of [this.normal, this.thickness]) texture.minFilter = texture.magFilter = LinearFilter;
  }

  fits(size: Vector2, share: number): boolean {
    return size.equals(this.size) && share === this.share;
  }

  dispose(): void {
    this.scene.depthTexture?.dispose();
    for (const target of [this.scene, this.balls, ...this.smooth, this.normal, this.thickness]) target.dispose();
  }
}

function bodyUniforms(look: FluidLook): Uniforms {
  const { water } = BODIES;
  const dye = BODIES[look];
  return {
    uAbsorption: { value: new Vector3(...water.absorption) },
    uScattering: { value: water.scattering },
    uDyeAbsorption: { value: new Vector3(...dye.absorption) },
    uDyeScattering: { value: dye.scattering },
    uAlbedo: { value: new Vector3(...dye.albedo) },
    uIndex: { value: dye.index },
    uShininess: { value: dye.shininess },
    uSpecular: { value: dye.specular },
    uWrap: { value: dye.wrap },
  };
}
