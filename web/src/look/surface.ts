// An organ's surface: unpacked positions, smooth normals, and the place where each vertex first was.

import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Mesh } from "three";
import type { ShaderMaterial } from "three";
import { NormalField } from "../normals";
import type { PickMesh } from "../picking";
import type { ArrayData, Surface } from "../protocol";
import { dequantise, restOf, trianglesOf, uvOf } from "../wire";
import { gather, splitCorners } from "./corners";
import type { Corners } from "./corners";

/** Numbers per vertex of what the shaders read. */
const SIZES = { position: 3, normal: 3, hollow: 1, rest: 3, restNormal: 3 } as const;
type Attribute = keyof typeof SIZES;

export class TissueSurface {
  readonly mesh: Mesh<BufferGeometry, ShaderMaterial>;
  /** As drawn [m]. */
  readonly positions: Float32Array;
  readonly triangles: Uint32Array;
  private readonly field: NormalField;
  private readonly corners: Corners | null;
  private readonly drawn: Record<Attribute, Float32Array>;
  private painted = false;

  constructor(readonly info: Surface, material: ShaderMaterial) {
    this.triangles = trianglesOf(info);
    this.positions = new Float32Array(info.vertex_count * 3);
    this.field = new NormalField(this.triangles, info.vertex_count);
    const uv = uvOf(info);
    this.corners = uv === null ? null : splitCorners(this.triangles, uv, info.vertex_count);
    const count = this.corners?.source.length ?? info.vertex_count;
    const empty = (name: Attribute) => new Float32Array(count * SIZES[name]);
    this.drawn = {
      position: this.corners === null ? this.positions : empty("position"),
      normal: this.corners === null ? this.field.normals : empty("normal"),
      hollow: this.corners === null ? this.field.hollows : empty("hollow"),
      rest: empty("rest"),
      restNormal: empty("restNormal"),
    };
    this.mesh = new Mesh(this.makeGeometry(), material);
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
    this.draw("position", this.positions);
    this.draw("normal", this.field.normals);
    this.draw("hollow", this.field.hollows);
    this.mesh.visible = true;
    if (!this.painted) this.paintHere();
  }

  pickMesh(): PickMesh {
    return { positions: this.positions, normals: this.field.normals, triangles: this.triangles };
  }

  dispose(): void {
    this.mesh.geometry.dispose();
    this.mesh.material.dispose();
  }

  /** Colour and bumps are painted on the tissue as it is now: at rest, so that they look the same on every screen. */
  private paintHere(): void {
    this.painted = true;
    this.field.update(this.positions);
    this.draw("rest", this.positions);
    this.draw("restNormal", this.field.normals);
  }

  private draw(name: Attribute, values: Float32Array): void {
    const out = this.drawn[name];
    if (this.corners !== null) gather(values, this.corners.source, SIZES[name], out);
    else if (out !== values) out.set(values);
    this.mesh.geometry.attributes[name].needsUpdate = true;
  }

  private makeGeometry(): BufferGeometry {
    const geometry = new BufferGeometry();
    geometry.setIndex(new BufferAttribute(this.corners?.triangles ?? this.triangles, 1));
    for (const name of Object.keys(SIZES) as Attribute[]) {
      const attribute = new BufferAttribute(this.drawn[name], SIZES[name]);
      if (!name.startsWith("rest")) attribute.setUsage(DynamicDrawUsage);
      geometry.setAttribute(name, attribute);
    }
    if (this.corners !== null) geometry.setAttribute("uv", new BufferAttribute(this.corners.uv, 2));
    return geometry;
  }
}
