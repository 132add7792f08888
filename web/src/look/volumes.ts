// What fills space, drawn over the finished scene: smoke, blood in saline. Rays are followed with fewer pixels than the
// picture has, and laid over it in full size. Boxes that lie behind others are drawn first.

import {
  BackSide, BoxGeometry, ClampToEdgeWrapping, Data3DTexture, DepthTexture, GLSL3, HalfFloatType, LinearFilter, Matrix4, Mesh,
  NoBlending, RGFormat, Scene, ShaderMaterial, UnsignedByteType, UnsignedIntType, Vector2, Vector3, WebGLRenderTarget,
} from "three";
import type { IUniform, PerspectiveCamera, WebGLRenderer } from "three";
import type { ArrayTiles, Volume } from "../protocol";
import type { LightUniforms } from "./light";
import { glsl } from "./scales";
import { ScreenPass, screenMaterial, setUniforms } from "./screen_pass";
import { TiledImage } from "./tiled_image";
import { VOLUME_COMPOSITE, VOLUME_MARCH, VOLUME_VERTEX } from "./volume_shaders";

/** Texels of the rays per pixel of the picture, along each side. */
const SHARE = 0.5;
/** Along a ray; those of the jitter hide that they are few. */
const STEPS = { full: 48, plain: 20 };
/** How far the picture's tent reaches, in texels of the rays. */
const REACH = { full: 2, plain: 1 };
const FARTHEST = 60; // [m]; depths beyond do not fit half floats

interface Body {
  /** Share of the densest that is lost, red, green, blue. */
  extinction: [number, number, number];
  /** Share of that which is scattered and not swallowed. */
  albedo: [number, number, number];
}

/** Tuned for appearance. Diathermy smoke is finer than light is long and scatters blue best; blood lets red through. */
const SMOKE: Body = { extinction: [0.90, 0.95, 1.0], albedo: [0.66, 0.72, 0.80] };
const SALINE: Body = { extinction: [0.10, 0.06, 0.05], albedo: [0.05, 0.07, 0.08] };
const BLOOD: Body = { extinction: [0.16, 1.0, 1.0], albedo: [0.50, 0.020, 0.018] };
const MEDIA: Record<Volume["look"], Body> = { smoke: SMOKE, saline: SALINE };

/** One volume: its texels, and the box in which rays are followed. */
export class VolumeBody {
  readonly image: TiledImage;
  readonly mesh: Mesh<BoxGeometry, ShaderMaterial>;
  readonly texture: Data3DTexture;
  /** What of it is not empty, 0 to 1 along each side; low beyond high when all is. */
  readonly low = new Vector3(1, 1, 1);
  readonly high = new Vector3(0, 0, 0);
  private readonly densities: Uint8Array<ArrayBuffer>;
  private readonly toBox: IUniform<Matrix4> = { value: new Matrix4() };

  constructor(readonly info: Volume, light: LightUniforms, projection: IUniform<Matrix4>, plain: boolean) {
    const { width, height, depth, name, box, look, densest } = info;
    this.image = new TiledImage(name, width, depth * height);
    this.densities = new Uint8Array(2 * width * height * depth);
    this.texture = new Data3DTexture(this.densities, width, height, depth);
    this.texture.format = RGFormat;
    this.texture.type = UnsignedByteType;
    this.texture.minFilter = this.texture.magFilter = LinearFilter;
    this.texture.wrapS = this.texture.wrapT = this.texture.wrapR = ClampToEdgeWrapping;
    this.texture.needsUpdate = true;
    const medium = MEDIA[look];
    const material = new ShaderMaterial({
      name: `volume ${look}`, glslVersion: GLSL3, vertexShader: VOLUME_VERTEX, fragmentShader: VOLUME_MARCH,
      side: BackSide, blending: NoBlending, depthTest: false, depthWrite: false,
      defines: { STEPS: plain ? STEPS.plain : STEPS.full, FARTHEST: glsl(FARTHEST) },
      uniforms: {
        ...light, uProjection: projection, uToBox: this.toBox, tDensity: { value: this.texture }, tSceneDepth: { value: null },
        uSize: { value: new Vector2() }, uPixels: { value: new Vector2() }, uLow: { value: this.low }, uHigh: { value: this.high },
        uDensest: { value: densest },
        uExtinction: { value: new Vector3(...medium.extinction) }, uAlbedo: { value: new Vector3(...medium.albedo) },
        uDyeExtinction: { value: new Vector3(...BLOOD.extinction) }, uDyeAlbedo: { value: new Vector3(...BLOOD.albedo) },
      },
    });
    this.mesh = new Mesh(new BoxGeometry(1, 1, 1).translate(0.5, 0.5, 0.5), material);
    this.mesh.frustumCulled = false;
    const [low, high] = [new Vector3(...box[0]).min(new Vector3(...box[1])), new Vector3(...box[0]).max(new Vector3(...box[1]))];
    this.mesh.position.copy(low);
    this.mesh.scale.copy(high.sub(low));
    this.mesh.updateMatrixWorld();
  }

  get empty(): boolean {
    return this.low.x > this.high.x;
  }

  /** [m] from the eye to its middle. */
  distance(camera: PerspectiveCamera): number {
    return new Vector3(0.5, 0.5, 0.5).applyMatrix4(this.mesh.matrixWorld).distanceTo(camera.position);
  }

  aim(camera: PerspectiveCamera): void {
    this.toBox.value.multiplyMatrices(camera.matrixWorldInverse, this.mesh.matrixWorld).invert();
  }

  /** Takes what came since the last picture to the graphics card. */
  upload(): void {
    if (this.image.takeChanged().length === 0) return;
    const { texels } = this.image;
    for (let i = 0, k = 0; k < texels.length; k += 4) {
      this.densities[i++] = texels[k];
      this.densities[i++] = texels[k + 1];
    }
    this.findFilled();
    this.texture.needsUpdate = true;
  }

  dispose(): void {
    this.texture.dispose();
    this.mesh.geometry.dispose();
    this.mesh.material.dispose();
  }

  // Rays need not go through what is empty. Between two texels is something when one of them is not empty.
  private findFilled(): void {
    const { width, height, depth } = this.info;
    const low = [width, height, depth], high = [-1, -1, -1];
    for (let z = 0, i = 0; z < depth; z++) {
      for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++, i += 2) {
          if (this.densities[i] === 0) continue;
          if (x < low[0]) low[0] = x;
          if (x > high[0]) high[0] = x;
          if (y < low[1]) low[1] = y;
          if (y > high[1]) high[1] = y;
          if (z < low[2]) low[2] = z;
          high[2] = z;
        }
      }
    }
    const size = [width, height, depth];
    this.low.fromArray(low.map((first, axis) => Math.max(0, (first - 0.5) / size[axis])));
    this.high.fromArray(high.map((last, axis) => (last < 0 ? -1 : Math.min(1, (last + 1.5) / size[axis]))));
  }
}

export class SceneVolumes {
  bodies: VolumeBody[] = [];
  private targets: Targets | null = null;
  private readonly boxes = new Scene();
  private readonly screen = new ScreenPass();
  private readonly projection: IUniform<Matrix4> = { value: new Matrix4() };
  private readonly composite: ShaderMaterial;

  constructor(private readonly light: LightUniforms, private readonly plain: boolean) {
    this.composite = screenMaterial("volume", VOLUME_COMPOSITE, {
      uProjection: this.projection, tScene: { value: null }, tSceneDepth: { value: null }, tScattered: { value: null },
      tKept: { value: null }, uSmall: { value: new Vector2() },
    });
    this.composite.defines = { REACH: plain ? REACH.plain : REACH.full, FARTHEST: glsl(FARTHEST) };
  }

  setScene(volumes: Volume[]): void {
    for (const body of this.bodies) body.dispose();
    this.bodies = volumes.map((info) => new VolumeBody(info, this.light, this.projection, this.plain));
    this.targets?.dispose();
    this.targets = null;
  }

  image(name: string): TiledImage | null {
    return this.bodies.find(({ info }) => info.name === name)?.image ?? null;
  }

  /** False when it is no volume's. */
  put(tiles: ArrayTiles, side: number): boolean {
    const image = this.image(tiles.name);
    image?.put(tiles, side);
    return image !== null;
  }

  clear(): void {
    for (const { image } of this.bodies) image.clear();
  }

  /** Into what the scene is drawn before `draw`; null where nothing fills space, and the scene goes onto the canvas. */
  target(renderer: WebGLRenderer): WebGLRenderTarget | null {
    for (const body of this.bodies) body.upload();
    if (this.bodies.every((body) => body.empty)) return null;
    const size = renderer.getDrawingBufferSize(new Vector2());
    if (this.targets?.fits(size) !== true) {
      this.targets?.dispose();
      this.targets = new Targets(size, this.plain ? 0 : 4);
    }
    return this.targets.scene;
  }

  /** Onto the canvas: the scene that `target` holds, and what fills space before the solids at `depth`. */
  draw(renderer: WebGLRenderer, camera: PerspectiveCamera, depth: DepthTexture | null): void {
    const { targets } = this;
    if (targets === null) return;
    this.projection.value.copy(camera.projectionMatrix);
    const full = this.bodies.filter((body) => !body.empty).sort((one, other) => other.distance(camera) - one.distance(camera));
    let picture = targets.scene.texture;
    full.forEach((body, number) => {
      this.march(renderer, camera, body, targets, depth);
      const last = number === full.length - 1;
      const into = last ? null : targets.between[number % 2];
      const [scattered, kept] = targets.rays.textures;
      const { width, height } = targets.rays;
      setUniforms(this.composite, {
        tScene: picture, tSceneDepth: depth, tScattered: scattered, tKept: kept, uSmall: new Vector2(width, height),
      });
      this.screen.draw(renderer, this.composite, into);
      if (into !== null) picture = into.texture;
    });
  }

  private march(
    renderer: WebGLRenderer, camera: PerspectiveCamera, body: VolumeBody, targets: Targets, depth: DepthTexture | null,
  ): void {
    const { rays, size } = targets;
    body.aim(camera);
    setUniforms(body.mesh.material, { tSceneDepth: depth, uSize: new Vector2(rays.width, rays.height), uPixels: size });
    this.boxes.clear();
    this.boxes.add(body.mesh);
    renderer.setRenderTarget(rays);
    clearRays(renderer);
    const { autoClear } = renderer;
    renderer.autoClear = false;
    renderer.render(this.boxes, camera);
    renderer.autoClear = autoClear;
  }
}

/** Where no ray goes nothing is scattered and all light comes through. */
function clearRays(renderer: WebGLRenderer): void {
  const context = renderer.getContext() as WebGL2RenderingContext;
  context.clearBufferfv(context.COLOR, 0, [0, 0, 0, FARTHEST]);
  context.clearBufferfv(context.COLOR, 1, [1, 1, 1, 1]);
}

class Targets {
  readonly scene: WebGLRenderTarget;
  /** Pictures with some of several volumes. */
  readonly between: WebGLRenderTarget[];
  readonly rays: WebGLRenderTarget;

  constructor(readonly size: Vector2, samples: number) {
    this.scene = new WebGLRenderTarget(size.x, size.y, {
      samples, depthTexture: new DepthTexture(size.x, size.y, UnsignedIntType), generateMipmaps: false,
    });
    this.between = [0, 1].map(() => new WebGLRenderTarget(size.x, size.y, { depthBuffer: false, generateMipmaps: false }));
    const small = size.clone().multiplyScalar(SHARE).ceil();
    this.rays = new WebGLRenderTarget(small.x, small.y, {
      count: 2, type: HalfFloatType, depthBuffer: false, generateMipmaps: false, minFilter: LinearFilter, magFilter: LinearFilter,
    });
  }

  fits(size: Vector2): boolean {
    return size.equals(this.size);
  }

  dispose(): void {
    this.scene.depthTexture?.dispose();
    for (const target of [this.scene, ...this.between, this.rays]) target.dispose();
  }
}
