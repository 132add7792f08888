// The three-dimensional picture: camera, light, organs, instruments. Draws only when something changed.

import {
  Box3, Color, NoToneMapping, PerspectiveCamera, Scene, ShaderMaterial, Vector2, Vector3, WebGLRenderer,
} from "three";
import { Drape } from "./look/drape";
import { FAINTEST, FAINTEST_AT_WORK, ForceArrows } from "./look/force_arrow";
import { InstrumentModel } from "./look/instrument";
import type { Steel } from "./look/instrument";
import { aimLight, castShades, makeLight, setSpark } from "./look/light";
import { SceneMarkers } from "./look/markers";
import { makeNoiseTexture } from "./look/noise_texture";
import { SceneParticles } from "./look/particles";
import { Resolution } from "./look/resolution";
import { Skins } from "./look/skins";
import { Spark } from "./look/spark";
import { SceneStains } from "./look/stains";
import { makeSteelMaterial } from "./look/steel_material";
import type { Finish } from "./look/steel_material";
import { TissueSurface } from "./look/surface";
import { SceneLattices } from "./look/lattice";
import { SceneThreads } from "./look/threads";
import { makeTissueMaterial } from "./look/tissue_material";
import type { TissueTextures } from "./look/tissue_material";
import { makeVesselTexture } from "./look/vessel_texture";
import { SceneVolumes } from "./look/volumes";
import { Orbit } from "./orbit";
import type { PickMesh } from "./picking";
import { WireError } from "./wire";
import type { ArrayTiles, Camera, FrameMessage, Scene as ShownScene, Surface, Topology } from "./protocol";

/** The part of the window that panels leave free, CSS pixels. */
export interface FreeArea {
  left: number;
  top: number;
  width: number;
  height: number;
}

const NARROWEST = 1.15; // width over height for which the scene's field of view is meant
const BLANCHING_FORCE = 0.35; // [N] at which pressed tissue is palest; tuned for appearance

export class View {
  readonly camera = new PerspectiveCamera(40, 1, 0.004, 6);
  readonly orbit = new Orbit();
  readonly arrows = new ForceArrows();
  readonly software: boolean;
  surfaces: TissueSurface[] = [];
  instruments: InstrumentModel[] = [];
  framesDrawn = 0;
  readonly skins = new Skins();
  readonly particles: SceneParticles;
  /** Instruments, their light and shadow, and the arrows; a test looks at the tissue without them. */
  private instrumentsShown = true;
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  /** Drawn last, over everything. */
  private readonly over = new Scene();
  private readonly light = makeLight();
  private readonly drape: Drape;
  readonly stains = new SceneStains();
  private readonly polished = makeSteelMaterial(this.light, "polished");
  readonly markers = new SceneMarkers(this.polished, this.light);
  readonly threads = new SceneThreads(this.polished, this.light);
  readonly lattices = new SceneLattices(this.light);
  readonly volumes: SceneVolumes;
  private readonly spark = new Spark();
  private readonly textures: TissueTextures;
  private readonly resolution: Resolution;
  private readonly theatreLamp = new Vector3(0, 0, 1);
  private corners: Vector3[] = [];
  private free: FreeArea = { left: 0, top: 0, width: 1, height: 1 };
  private width = 1;
  private height = 1;
  private dirty = true;
  private drewLast = false;

  /** Throws when the browser has no WebGL 2. `detail` "full" or "plain" overrides what the machine seems able to do. */
  constructor(readonly canvas: HTMLCanvasElement, detail: string | null) {
    this.software = detail === null ? drawsInSoftware() : detail === "plain";
    const context = canvas.getContext("webgl2", { antialias: !this.software, powerPreference: "high-performance" });
    if (context === null) throw new Error("no WebGL 2");
    this.renderer = new WebGLRenderer({ canvas, context });
    this.renderer.toneMapping = NoToneMapping;
    this.resolution = new Resolution(this.software, detail !== null);
    this.scene.background = new Color("#020304");
    this.textures = { noise: makeNoiseTexture(this.software), vessels: makeVesselTexture(this.software) };
    this.drape = new Drape(this.light, this.stains.cloth, this.software);
    this.drape.mesh.visible = false;
    this.particles = new SceneParticles(this.light, this.software, detail !== null);
    this.volumes = new SceneVolumes(this.light, this.software);
    this.scene.add(this.drape.mesh, this.particles.drops.points, this.particles.balls.points, this.markers.group, this.threads.group, this.lattices.group);
    this.over.add(this.arrows.group, this.spark.sprite);
  }

  setScene(scene: ShownScene): void {
    for (const part of [...this.surfaces, ...this.instruments]) {
      this.scene.remove(part.mesh);
      part.dispose();
    }
    this.skins.setScene(scene);
    this.stains.setScene(scene.stains);
    this.particles.setScene(scene.particles);
    this.markers.setScene(scene.markers);
    this.threads.setScene(scene.threads);
    this.lattices.setScene(scene.lattices);
    this.volumes.setScene(scene.volumes);
    this.surfaces = scene.surfaces.map((info) => new TissueSurface(info, this.material(info)));
    this.instruments = scene.instruments.map((info, number) => new InstrumentModel(info, this.steel(number, scene)));
    this.scene.add(...[...this.surfaces, ...this.instruments].map((part) => part.mesh));
    this.drape.mesh.visible = false;
    this.corners = [];
    this.arrows.begin(scene.force_scale);
    this.orbit.set(scene.camera);
    this.hangTheatreLamp(scene.camera);
    this.resize();
  }

  applyFrame({ state: frame, arrays, values }: FrameMessage): void {
    for (const surface of this.surfaces) {
      const array = arrays.find((candidate) => candidate.name === surface.info.array);
      if (array !== undefined) surface.update(array, frame.versions[surface.info.name]);
    }
    if (this.corners.length === 0) this.layDrape();
    this.particles.update(arrays);
    this.markers.update(values);
    this.threads.update(values);
    this.lattices.update(values);
    for (const surface of this.surfaces) surface.mesh.material.visible = !this.lattices.hides(surface.info.name, frame.parameters);
    if (this.orbit.look(frame.parameters.lens)) this.orbit.place(this.camera);
    this.skins.setTables(frame.tables);
    for (const tool of frame.tools) this.instruments[tool.tool]?.update(tool);
    const tools = this.instrumentsShown ? frame.tools : [];
    this.arrows.update(tools, (tool) => ((this.instruments[tool]?.info.action ?? "") !== "" ? FAINTEST_AT_WORK : FAINTEST));
    const strongest = Math.max(0, ...tools.map(({ active, force }) => (active ? Math.hypot(...force) : 0)));
    const press = Math.min(1, strongest / BLANCHING_FORCE);
    for (const surface of this.surfaces) {
      if ("uPress" in surface.mesh.material.uniforms) surface.mesh.material.uniforms.uPress.value = press;
    }
    this.dirty = true;
  }

  /** The server tells everything anew, but only what is not zero. */
  clear(): void {
    this.skins.clear();
    this.stains.clear();
    this.volumes.clear();
    for (const surface of this.surfaces) surface.forget();
  }

  /** False when they are of nothing that is drawn here. */
  putTiles(tiles: ArrayTiles, side: number): boolean {
    this.dirty = true;
    return this.skins.put(tiles, side) || this.stains.put(tiles, side) || this.volumes.put(tiles, side);
  }

  /** Triangles of a frame to come. */
  putTopology(topology: Topology): void {
    const surface = this.surfaces.find(({ info }) => info.name === topology.surface);
    if (surface === undefined) throw new WireError(`The server sent triangles of ${topology.surface}, which the scene does not have.`);
    surface.expect(topology);
  }

  /** False colours by temperature instead of tissue. */
  showHeat(shown: boolean): void {
    this.skins.showHeat(shown);
    this.dirty = true;
  }

  /** Whether an electric instrument works. */
  sparks(): boolean {
    return this.instruments.some((instrument) => instrument.spark() !== null);
  }

  pickMeshes(): PickMesh[] {
    return this.surfaces.filter((surface) => surface.mesh.visible).map((surface) => surface.pickMesh());
  }

  showInstruments(shown: boolean): void {
    this.instrumentsShown = shown;
    this.dirty = true;
  }

  setFreeArea(area: FreeArea): void {
    this.free = area;
    this.resize();
  }

  resize(): void {
    this.width = Math.max(1, this.canvas.clientWidth);
    this.height = Math.max(1, this.canvas.clientHeight);
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2) * this.resolution.share());
    this.renderer.setSize(this.width, this.height, false);
    this.fitCamera();
    this.dirty = true;
  }

  size(): { width: number; height: number } {
    return { width: this.width, height: this.height };
  }

  /** World point to CSS pixels of the canvas. */
  project(point: Vector3): { x: number; y: number } {
    const clip = point.clone().project(this.camera);
    return { x: (0.5 + 0.5 * clip.x) * this.width, y: (0.5 - 0.5 * clip.y) * this.height };
  }

  /** Just above what is drawn, in the middle: room for a hint. */
  hintPlace(): { x: number; y: number } {
    let top = Infinity;
    for (const corner of this.corners) top = Math.min(top, this.project(corner).y);
    if (top === Infinity) top = this.free.top + this.free.height / 2;
    return { x: this.free.left + this.free.width / 2, y: Math.max(top - 14, this.free.top + 96) };
  }

  /** One turn of the animation loop; true when a picture was drawn. */
  draw(interval: number): boolean {
    const seconds = Math.min(interval, 100) / 1000;
    const orbiting = this.orbit.advance(seconds);
    const sliding = this.instruments.map((instrument) => instrument.advance(seconds)).some(Boolean);
    if (!this.instrumentsShown) for (const instrument of this.instruments) instrument.mesh.visible = false;
    const since = this.drewLast ? interval : 0;
    if (this.drewLast && this.resolution.note(interval)) this.resize();
    if (orbiting) this.orbit.place(this.camera);
    this.drewLast = this.dirty || orbiting || sliding;
    if (!this.drewLast) return false;
    this.aim();
    this.skins.upload(this.renderer);
    this.stains.upload(this.renderer);
    this.drawScene(since);
    this.drawOver();
    this.framesDrawn += 1;
    this.dirty = false;
    return true;
  }

  private drawScene(since: number): void {
    const { renderer, camera } = this;
    const target = this.volumes.target(renderer);
    const depth = this.particles.draw(renderer, this.scene, camera, since, target);
    if (target !== null) this.volumes.draw(renderer, camera, depth);
    renderer.setRenderTarget(null);
  }

  private drawOver(): void {
    if (this.arrows.shown.length === 0 && !this.spark.sprite.visible) return;
    this.renderer.autoClear = false;
    this.renderer.render(this.over, this.camera);
    this.renderer.autoClear = true;
  }

  pixelShare(): number {
    return this.resolution.share();
  }

  // Beyond the table as first seen, so that wet tissue mirrors it to the eye.
  private hangTheatreLamp({ position, target, up }: Camera): void {
    const forward = new Vector3(...target).sub(new Vector3(...position)).normalize();
    const upwards = new Vector3(...up).normalize();
    this.theatreLamp.copy(forward).addScaledVector(upwards, -2 * forward.dot(upwards) + 0.55).normalize();
  }

  // What there is to lie on the cloth is known when the first frame is. In a cavity there is none.
  private layDrape(): void {
    const box = new Box3();
    const lying = this.surfaces.filter(({ info }) => !info.backdrop);
    for (const surface of lying) box.union(new Box3().setFromArray(surface.positions));
    if (box.isEmpty()) return;
    this.drape.lay(box, this.camera.up, lying.map((surface) => surface.positions));
    this.drape.mesh.visible = lying.length === this.surfaces.length;
    this.corners = boxCorners(box);
  }

  private steel(number: number, { instruments }: ShownScene): Steel {
    const stains = this.stains.ofTool(number, instruments.length);
    const make = (finish: Finish) => makeSteelMaterial(this.light, finish, stains);
    return { polished: make("polished"), marked: make("marked"), insulated: make("insulated"), gauze: make("gauze") };
  }

  private material({ name, material, uv, triangle_capacity }: Surface): ShaderMaterial {
    if (material === "steel") return makeSteelMaterial(this.light, "polished");
    const cut = triangle_capacity > 0;
    const bare = { ...this.skins.of(name), burn: null, ink: null, film: null };
    const skin = uv !== null || cut ? { ...this.skins.of(name), cut } : bare;
    return makeTissueMaterial(material, this.light, this.textures, this.software, skin);
  }

  // What the scene shows of itself in a whole window, it shows in the free area.
  private fitCamera(): void {
    const { camera, free, width, height } = this;
    const tall = Math.max(1, NARROWEST / (free.width / free.height));
    const half = Math.tan((this.orbit.fieldOfView * Math.PI) / 360) * tall * (height / free.height);
    camera.fov = (Math.atan(half) * 360) / Math.PI;
    camera.aspect = width / height;
    const dx = free.left + free.width / 2 - width / 2;
    const dy = free.top + free.height / 2 - height / 2;
    camera.setViewOffset(width, height, -dx, -dy, width, height);
    camera.updateProjectionMatrix();
    this.orbit.place(camera);
  }

  private aim(): void {
    const { camera, free } = this;
    const buffer = this.renderer.getDrawingBufferSize(new Vector2());
    const ratio = buffer.y / this.height;
    const centre = new Vector2((free.left + free.width / 2) * ratio, buffer.y - (free.top + free.height / 2) * ratio);
    const radius = 0.62 * Math.hypot(free.width, free.height) * ratio;
    aimLight(this.light, camera, this.theatreLamp, this.orbit.distance(), centre, radius);
    castShades(this.light, camera, this.instruments.flatMap((instrument) => instrument.shades()));
    const sparking = this.instruments.map((instrument) => instrument.spark()).find((tip) => tip !== null) ?? null;
    setSpark(this.light, camera, sparking, this.spark.update(sparking));
  }
}

function boxCorners({ min, max }: Box3): Vector3[] {
  const corners: Vector3[] = [];
  for (const x of [min.x, max.x]) {
    for (const y of [min.y, max.y]) for (const z of [min.z, max.z]) corners.push(new Vector3(x, y, z));
  }
  return corners;
}

// Asked on a canvas of its own: smoothing of edges must be chosen before the real one is made, and is dear in software.
function drawsInSoftware(): boolean {
  const context = document.createElement("canvas").getContext("webgl2");
  if (context === null) return true;
  const extension = context.getExtension("WEBGL_debug_renderer_info");
  const name: unknown = context.getParameter(extension?.UNMASKED_RENDERER_WEBGL ?? context.RENDERER);
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return typeof name === "string" && /swiftshader|llvmpipe|software/i.test(name);
}
