// One organ on the screen: the triangles stay, the vertices come with every frame.

import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Mesh } from "three";
import type { ShaderMaterial } from "three";
import { NormalField } from "../normals";
import type { PickMesh } from "../picking";
import type { ArrayData, SurfaceInfo } from "../protocol";
import { dequantise, restOf, trianglesOf } from "../wire";

export class TissueSurface {
  readonly mesh: Mesh<BufferGeometry, ShaderMaterial>;
  /** As drawn [m]. */
  readonly positions: Float32Array;
  readonly triangles: Uint32Array;
  private readonly field: NormalField;
  private readonly rest: BufferAttribute;
  private readonly restNormal: BufferAttribute;
  private painted = false;

  constructor(readonly info: SurfaceInfo, material: ShaderMaterial) {
    this.triangles = trianglesOf(info);
    this.positions = new Float32Array(info.vertex_count * 3);
    this.field = new NormalField(this.triangles, info.vertex_count);
    this.rest = new BufferAttribute(new Float32Array(info.vertex_count * 3), 3);
    this.restNormal = new BufferAttribute(new Float32Array(info.vertex_count * 3), 3);
    const geometry = new BufferGeometry();
    geometry.setIndex(new BufferAttribute(this.triangles, 1));
    geometry.setAttribute("position", new BufferAttribute(this.positions, 3).setUsage(DynamicDrawUsage));
    geometry.setAttribute("normal", new BufferAttribute(this.field.normals, 3).setUsage(DynamicDrawUsage));
    geometry.setAttribute("hollow", new BufferAttribute(this.field.hollows, 1).setUsage(DynamicDrawUsage));
    geometry.setAttribute("rest", this.rest);
    geometry.setAttribute("restNormal", this.restNormal);
    this.mesh = new Mesh(geometry, material);
    this.mesh.frustumCulled = false; // its bounds change with every frame
    this.mesh.visible = false;
    const rest = restOf(info);
    if (rest !== null) {
      this.positions.set(rest);
      this.paintHere();
    }
  }

  update(array: ArrayData): void {
    dequantise(array, this.positions);
    this.field.update(this.positions);
    const { attributes } = this.mesh.geometry;
    for (const name of ["position", "normal", "hollow"]) attributes[name].needsUpdate = true;
    this.mesh.visible = true;
    if (!this.painted) this.paintHere();
  }

  /** Colour and bumps are painted on the tissue as it is now: at rest, so that they look the same on every screen. */
  private paintHere(): void {
    this.painted = true;
    this.field.update(this.positions);
    this.rest.copyArray(this.positions).needsUpdate = true;
    this.restNormal.copyArray(this.field.normals).needsUpdate = true;
  }

  pickMesh(): PickMesh {
    return { positions: this.positions, normals: this.field.normals, triangles: this.triangles };
  }

  dispose(): void {
    this.mesh.geometry.dispose();
    this.mesh.material.dispose();
  }
}
