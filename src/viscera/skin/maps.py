"""Texel maps from deformed vertices: positions, tangents, metric and area, gathered without atomics.

Within a triangle the atlas is affine, so ∂x/∂texel is constant there; a texel takes the mean over the pieces of
triangles in it, weighted by their share. Differs from the source, which differentiates a map of positions (Kvick
§3.8.3): that breaks down beside seams, where a neighbouring texel is somewhere else.

What a triangle gives to its texels stands in one row of `ROW` floats: u, v, metric, area. On cpu a piece is then one
vector multiply-add (`texel_maps_cpu`, in C); the plain kernel does the same number by number.

Texels whose triangles lie exactly where they lay the last time are left as they are. Places of a surface are multiples
of some micrometres (tissue/surface.py), so that tissue at rest does lie exactly where it lay.
"""

from __future__ import annotations

import warp as wp

from viscera.native import on_cpu

wp.set_module_options({"enable_backward": False})

ROW = wp.constant(16)
"""Floats per triangle: u at 0, v at 3, u·u, u·v and v·v at 6, |u × v| at 9, and at `FRESH` whether a corner moved since
the last time; a vector register."""
FRESH = wp.constant(10)


@wp.struct
class Texels:
    """Where texels are on the surface; never changes."""

    texels: wp.array(dtype=wp.int32)
    pieces: wp.array(dtype=wp.int32)
    piece_face: wp.array(dtype=wp.int32)
    piece_weight: wp.array(dtype=wp.float32)
    share: wp.array(dtype=wp.float32)
    """One over the sum of each covered texel's weights."""
    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    triangles: wp.array(dtype=wp.vec3i)
    chunks: wp.array(dtype=wp.int32)
    """Where the triangles of each chunk of texels begin, and the end of the last."""
    chunk_face: wp.array(dtype=wp.int32)


@wp.kernel
def mark_moved(
    first: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    # out
    known_out: wp.array(dtype=wp.vec3),
    moved_out: wp.array(dtype=wp.float32),
):
    """1 for each vertex that is not where it was the last time."""
    vertex = first + wp.tid()
    x = vertices[vertex]
    before = known_out[vertex]
    moved_out[vertex] = wp.where(x[0] == before[0] and x[1] == before[1] and x[2] == before[2], 0.0, 1.0)
    known_out[vertex] = x


@wp.kernel
def face_rows(
    first: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    to_edges: wp.array(dtype=wp.vec4),
    moved: wp.array(dtype=wp.float32),
    # out
    rows_out: wp.array(dtype=wp.float32),
):
    """∂x/∂column and ∂x/∂row of each triangle [m per texel], and what follows from them."""
    i = first + wp.tid()
    corner = triangles[i]
    origin = vertices[corner[0]]
    e = vertices[corner[1]] - origin
    f = vertices[corner[2]] - origin
    m = to_edges[i]
    u = m[0] * e + m[2] * f
    v = m[1] * e + m[3] * f
    row = i * ROW
    for c in range(3):
        rows_out[row + c] = u[c]
        rows_out[row + 3 + c] = v[c]
    rows_out[row + FRESH] = moved[corner[0]] + moved[corner[1]] + moved[corner[2]]
    rows_out[row + 6] = wp.dot(u, u)
    rows_out[row + 7] = wp.dot(u, v)
    rows_out[row + 8] = wp.dot(v, v)
    rows_out[row + 9] = wp.length(wp.cross(u, v))


@wp.func
def _three(rows: wp.array(dtype=wp.float32), place: int):
    return wp.vec3(rows[place], rows[place + 1], rows[place + 2])


@wp.kernel
def texel_maps(
    first: int,
    # in
    skin: Texels,
    rows: wp.array(dtype=wp.float32),
    vertices: wp.array(dtype=wp.vec3),
    # out
    tangent_u_out: wp.array(dtype=wp.vec3),
    tangent_v_out: wp.array(dtype=wp.vec3),
    metric_out: wp.array(dtype=wp.vec3),
    area_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.vec3),
):
    i = first + wp.tid()
    fresh = float(0.0)
    for k in range(skin.pieces[i], skin.pieces[i + 1]):
        fresh += rows[skin.piece_face[k] * ROW + FRESH]
    if fresh == 0.0:
        return
    u = wp.vec3(0.0, 0.0, 0.0)
    v = wp.vec3(0.0, 0.0, 0.0)
    metric = wp.vec3(0.0, 0.0, 0.0)
    area = float(0.0)
    for k in range(skin.pieces[i], skin.pieces[i + 1]):
        row = skin.piece_face[k] * ROW
        weight = skin.piece_weight[k]
        u += weight * _three(rows, row)
        v += weight * _three(rows, row + 3)
        metric += weight * _three(rows, row + 6)
        area += weight * rows[row + 9]
    texel = skin.texels[i]
    share = skin.share[i]
    tangent_u_out[texel] = share * u
    tangent_v_out[texel] = share * v
    metric_out[texel] = share * metric
    area_out[texel] = area
    corner = skin.triangles[skin.face[texel]]
    b = skin.barycentric[texel]
    origin = vertices[corner[0]]
    position_out[texel] = origin + b[0] * (vertices[corner[1]] - origin) + b[1] * (vertices[corner[2]] - origin)


CHUNK = 64
"""Texels per thread on cpu, where Warp copies a kernel's arguments for every thread: these are close to a kilobyte,
which takes longer than a texel."""
_CHUNK = wp.constant(CHUNK)

_TEXELS = on_cpu("""
bool fresh = false;
for (int k = skin.chunks.data[chunk]; k < skin.chunks.data[chunk + 1] && !fresh; ++k)
    fresh = rows.data[16L * skin.chunk_face.data[k] + 10] != 0.0f;
if (!fresh) return;
for (int i = begin; i < last; ++i) {
    const int* face = skin.piece_face.data;
    const float* weight = skin.piece_weight.data;
    int k = skin.pieces.data[i];
    const int end = skin.pieces.data[i + 1];
    V sum = weight[k] * LOAD(rows.data + 16L * face[k]);
    for (++k; k < end; ++k) sum += weight[k] * LOAD(rows.data + 16L * face[k]);
    if (sum[10] == 0.0f) continue;  // none of its triangles moved
    const V mean = sum * skin.share.data[i];
    const Place t = skin.texels.data[i];
    float* u = (float*)(tangent_u.data + t);
    float* v = (float*)(tangent_v.data + t);
    float* m = (float*)(metric.data + t);
    u[0] = mean[0]; u[1] = mean[1]; u[2] = mean[2];
    v[0] = mean[3]; v[1] = mean[4]; v[2] = mean[5];
    m[0] = mean[6]; m[1] = mean[7]; m[2] = mean[8];
    area.data[t] = sum[9];
    const int* corner = (const int*)(skin.triangles.data + skin.face.data[t]);
    const float* b = (const float*)(skin.barycentric.data + t);
    const float* p = (const float*)vertices.data;
    float* x = (float*)(position.data + t);
    for (int c = 0; c < 3; ++c) {
        const float origin = p[3L * corner[0] + c];
        x[c] = origin + b[0] * (p[3L * corner[1] + c] - origin) + b[1] * (p[3L * corner[2] + c] - origin);
    }
}
""")


@wp.func_native(_TEXELS)
def _texels(
    chunk: int,
    begin: int,
    last: int,
    skin: Texels,
    rows: wp.array(dtype=wp.float32),
    vertices: wp.array(dtype=wp.vec3),
    tangent_u: wp.array(dtype=wp.vec3),
    tangent_v: wp.array(dtype=wp.vec3),
    metric: wp.array(dtype=wp.vec3),
    area: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.vec3),
): ...


@wp.kernel
def texel_maps_cpu(
    first: int,
    # in
    skin: Texels,
    rows: wp.array(dtype=wp.float32),
    vertices: wp.array(dtype=wp.vec3),
    # out
    tangent_u_out: wp.array(dtype=wp.vec3),
    tangent_v_out: wp.array(dtype=wp.vec3),
    metric_out: wp.array(dtype=wp.vec3),
    area_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.vec3),
):
    """A thread takes `CHUNK` texels."""
    chunk = first + wp.tid()
    begin = chunk * _CHUNK
    end = wp.min(begin + _CHUNK, skin.texels.shape[0])
    _texels(
        chunk, begin, end, skin, rows, vertices, tangent_u_out, tangent_v_out, metric_out, area_out, position_out
    )  # fmt: skip
