// Smooth normals and hollowness of a moving mesh, each frame, without allocating.

/**
 * Area-weighted vertex normals, and how far each vertex lies below the mean of its neighbours in units of their
 * distance (0 flat, towards 1 in a pit, below 0 on a ridge): a cheap stand-in for ambient occlusion.
 */
export class NormalField {
  readonly normals: Float32Array;
  readonly hollows: Float32Array;
  private readonly sums: Float32Array;
  private readonly counts: Float32Array;

  constructor(private readonly triangles: Uint32Array, vertexCount: number) {
    this.normals = new Float32Array(vertexCount * 3);
    this.hollows = new Float32Array(vertexCount);
    this.sums = new Float32Array(vertexCount * 3);
    this.counts = new Float32Array(vertexCount);
    for (const vertex of triangles) this.counts[vertex] += 2;
  }

  update(positions: Float32Array): void {
    this.normals.fill(0);
    this.sums.fill(0);
    this.addTriangles(positions);
    this.finish(positions);
  }

  private addTriangles(p: Float32Array): void {
    const { triangles, normals, sums } = this;
    for (let t = 0; t < triangles.length; t += 3) {
      const a = triangles[t] * 3;
      const b = triangles[t + 1] * 3;
      const c = triangles[t + 2] * 3;
      const ax = p[a], ay = p[a + 1], az = p[a + 2];
      const bx = p[b], by = p[b + 1], bz = p[b + 2];
      const cx = p[c], cy = p[c + 1], cz = p[c + 2];
      const ux = bx - ax, uy = by - ay, uz = bz - az;
      const vx = cx - ax, vy = cy - ay, vz = cz - az;
      const nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, nz = ux * vy - uy * vx;
      normals[a] += nx; normals[a + 1] += ny; normals[a + 2] += nz;
      normals[b] += nx; normals[b + 1] += ny; normals[b + 2] += nz;
      normals[c] += nx; normals[c + 1] += ny; normals[c + 2] += nz;
      sums[a] += bx + cx; sums[a + 1] += by + cy; sums[a + 2] += bz + cz;
      sums[b] += ax + cx; sums[b + 1] += ay + cy; sums[b + 2] += az + cz;
      sums[c] += ax + bx; sums[c + 1] += ay + by; sums[c + 2] += az + bz;
    }
  }

  private finish(p: Float32Array): void {
    const { normals, sums, counts, hollows } = this;
    for (let v = 0, i = 0; v < hollows.length; v++, i += 3) {
      const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]);
      if (length === 0) continue;
      const nx = (normals[i] /= length);
      const ny = (normals[i + 1] /= length);
      const nz = (normals[i + 2] /= length);
      const dx = sums[i] / counts[v] - p[i];
      const dy = sums[i + 1] / counts[v] - p[i + 1];
      const dz = sums[i + 2] / counts[v] - p[i + 2];
      // The mean triangle at this vertex has area length / (2 · triangles), so this is about one edge.
      const edge = Math.sqrt(length / (0.5 * counts[v])) + 1e-12;
      hollows[v] = (dx * nx + dy * ny + dz * nz) / edge;
    }
  }
}
