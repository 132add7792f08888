// A vertex lies at one place in space but at several in a texture, where charts meet. For drawing it is split: one copy per
// place. What is computed on the mesh (normals, hollows) stays on the whole vertices, so that no seam shows in the light.

export interface Corners {
  /** Vertex of the mesh that each drawn vertex is a copy of. */
  source: Uint32Array;
  /** Two per drawn vertex. */
  uv: Float32Array;
  /** Of drawn vertices. */
  triangles: Uint32Array;
}

/** `uv` has two numbers per corner, in the order of `triangles`. Copies of a vertex with the same place are one. */
export function splitCorners(triangles: Uint32Array, uv: Float32Array, vertexCount: number): Corners {
  const first = new Int32Array(vertexCount).fill(-1); // newest copy of a vertex
  const next: number[] = []; // the copy before it
  const source: number[] = [];
  const places: number[] = [];
  const out = new Uint32Array(triangles.length);
  for (let corner = 0; corner < triangles.length; corner++) {
    const vertex = triangles[corner];
    const u = uv[2 * corner];
    const v = uv[2 * corner + 1];
    let copy = first[vertex];
    while (copy >= 0 && (places[2 * copy] !== u || places[2 * copy + 1] !== v)) copy = next[copy];
    if (copy < 0) {
      copy = source.length;
      next.push(first[vertex]);
      first[vertex] = copy;
      source.push(vertex);
      places.push(u, v);
    }
    out[corner] = copy;
  }
  return { source: Uint32Array.from(source), uv: Float32Array.from(places), triangles: out };
}

/** `from` per vertex of the mesh to `out` per drawn vertex, `size` numbers each. */
export function gather(from: Float32Array, source: Uint32Array, size: number, out: Float32Array): void {
  for (let i = 0, to = 0; i < source.length; i++) {
    for (let k = 0, at = source[i] * size; k < size; k++) out[to++] = from[at++];
  }
}
