// An organ's surface. Most keep their triangles; those of a surface that is cut come anew, in a message before the frame
// that has them, and take effect with that frame.

import { Mesh } from "three";
import type { BufferGeometry, ShaderMaterial } from "three";
import type { PickMesh } from "../picking";
import type { ArrayData, Surface, Topology } from "../protocol";
import { WireError, trianglesIn, trianglesOf } from "../wire";
import type { Triangles } from "../wire";
import { SurfaceShape } from "./surface_shape";

export class TissueSurface {
  readonly mesh: Mesh<BufferGeometry, ShaderMaterial>;
  /** Of the triangles that are drawn; a surface whose triangles stay has none. */
  version: number | undefined = undefined;
  private shape: SurfaceShape;
  private readonly waiting = new Map<number, Triangles>();

  constructor(readonly info: Surface, material: ShaderMaterial) {
    this.shape = new SurfaceShape(trianglesOf(info));
    this.mesh = new Mesh(this.shape.geometry, material);
    this.mesh.frustumCulled = false; // its bounds change with every frame
    this.mesh.visible = false;
  }

  /** As drawn [m]. */
  get positions(): Float32Array {
    return this.shape.positions;
  }

  get triangles(): Uint32Array {
    return this.shape.mesh.triangles;
  }

  /** Triangles of a frame to come. */
  expect(topology: Topology): void {
    if (this.info.triangle_capacity === 0) throw new WireError(`The triangles of surface ${this.info.name} stay, yet the server sent others.`);
    this.waiting.set(topology.version, trianglesIn(topology, this.info));
  }

  /** `version` is that of the frame's triangles. A frame whose triangles did not come is left out. */
  update(array: ArrayData, version: number | undefined): void {
    if (version !== this.version && !this.change(version)) return;
    this.shape.update(array);
    this.mesh.visible = true;
  }

  pickMesh(): PickMesh {
    return this.shape.pickMesh();
  }

  /** The server tells all triangles anew. */
  forget(): void {
    this.version = undefined;
    this.waiting.clear();
  }

  dispose(): void {
    this.shape.dispose();
    this.mesh.material.dispose();
  }

  private change(version: number | undefined): boolean {
    const triangles = version === undefined ? undefined : this.waiting.get(version);
    if (triangles === undefined) return false;
    this.shape.dispose();
    this.shape = new SurfaceShape(triangles);
    this.mesh.geometry = this.shape.geometry;
    this.version = version;
    // Of versions in between no frame will come.
    this.waiting.clear();
    return true;
  }
}
