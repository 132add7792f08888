// The triangles of a surface and all that is computed on them: smooth normals, corners split where textures need it, the
// buffers that are drawn. Made once, or anew whenever the triangles change.

import { BufferAttribute, BufferGeometry, DynamicDrawUsage } from "three";
import { NormalField } from "../normals";
import type { PickMesh } from "../picking";
import type { ArrayData } from "../protocol";
import { dequantise } from "../wire";
import type { Triangles } from "../wire";
import { gather, splitCorners } from "./corners";
import type { Corners } from "./corners";

/** Numbers per vertex of what the shaders read. */
const SIZES = { position: 3, normal: 3, hollow: 1, rest: 3, restNormal: 3 } as const;
type Attribute = keyof typeof SIZES;

export class SurfaceShape {
  readonly geometry: BufferGeometry;
  /** As drawn [m]. */
  readonly positions: Float32Array;
  private readonly field: NormalField;
  private readonly corners: Corners | null;
  private readonly drawn: Record<Attribute, Float32Array>;
  private readonly outside: number;
  private painted = false;

  constructor(readonly mesh: Triangles) {
    const { triangles, vertexCount, rest, uv } = mesh;
    this.positions = new Float32Array(vertexCount * 3);
    this.outside = outsideOf(triangles, uv);
    this.field = new NormalField(triangles, vertexCount);
    this.corners = uv === null ? null : splitCorners(triangles, uv, vertexCount);
    const count = this.corners?.source.length ?? vertexCount;
    const empty = (name: Attribute) => new Float32Array(count * SIZES[name]);
    this.drawn = {
      position: this.corners === null ? this.positions : empty("position"),
      normal: this.corners === null ? this.field.normals : empty("normal"),
      hollow: this.corners === null ? this.field.hollows : empty("hollow"),
      rest: empty("rest"),
      restNormal: empty("restNormal"),
    };
    this.geometry = this.makeGeometry();
    if (rest === null) return;
    this.positions.set(rest);
    this.paintHere();
  }

  update(array: ArrayData): void {
    dequantise(array, this.positions);
    this.field.update(this.positions);
    this.draw("position", this.positions);
    this.draw("normal", this.field.normals);
    this.draw("hollow", this.field.hollows);
    if (!this.painted) this.paintHere();
  }

  pickMesh(): PickMesh {
    return { positions: this.positions, normals: this.field.normals, triangles: this.mesh.triangles, outside: this.outside };
  }

  dispose(): void {
    this.geometry.dispose();
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
    this.geometry.attributes[name].needsUpdate = true;
  }

  private makeGeometry(): BufferGeometry {
    const geometry = new BufferGeometry();
    geometry.setIndex(new BufferAttribute(this.corners?.triangles ?? this.mesh.triangles, 1));
    for (const name of Object.keys(SIZES) as Attribute[]) {
      const attribute = new BufferAttribute(this.drawn[name], SIZES[name]);
      if (!name.startsWith("rest")) attribute.setUsage(DynamicDrawUsage);
      geometry.setAttribute(name, attribute);
    }
    if (this.corners !== null) geometry.setAttribute("uv", new BufferAttribute(this.corners.uv, 2));
    return geometry;
  }
}

/** Faces of cuts come last, and their places in the texture are negative. */
function outsideOf(triangles: Uint32Array, uv: Float32Array | null): number {
  if (uv === null) return triangles.length;
  let corners = triangles.length;
  while (corners > 0 && uv[2 * corners - 1] < -0.5) corners -= 3;
  return corners;
}
