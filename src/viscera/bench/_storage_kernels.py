"""One step of the same springs over three ways to store a lattice, for bench/tissue_storage.py.

    v⁺ = v + push·Σ F_ij,   p⁺ = p + Δt·v⁺,   push = Δt·k_ref/m

Tiles are those of tissue/layout.py. A table holds, for every mass and direction, the place of the neighbour. Bricks are
cubes of E³ places with a table of the 27 bricks around each. Only the way to a neighbour differs: the spring itself
and its order are one source. Each storage has a plain kernel and a native one, like the lattice.

On cpu the native table gathers with the vector unit, and the native brick first copies itself and a layer around it to
the stack; both keep 26 stiffnesses per mass there, since fetching the lower neighbour's would cost more than it saves.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.native import fill, on_cpu, on_cuda
from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

EMPTY_BRICK = 0
"""Brick that stands for all that do not exist."""

_TILE = wp.constant(TILE)


@wp.struct
class Store:
    """A lattice in any of the three storages."""

    places: int
    spacing: float
    dt: float
    edge: int
    """E, of bricks."""
    near: wp.array(dtype=wp.int32)
    """Tiles: nine rows each. Table: 26 places per mass, direction by direction. Bricks: 27 bricks each."""
    group: wp.array(dtype=wp.int32)
    """Tiles: the first place of each."""
    stiffness: wp.array(dtype=wp.float16)
    """Over the reference: 13 rows by direction, at the lower mass; 26 rows (up, down) for native table and brick."""
    push: wp.array(dtype=wp.float32)
    """Δt·k_ref/m; 0 for anchors and empty places."""


@wp.func
def _spring(offset: wp.vec3, stretch: wp.vec3, stiffness: float):
    rest2 = wp.dot(offset, offset)
    rest = wp.sqrt(rest2)
    gain = 2.0 * wp.dot(offset, stretch) + wp.dot(stretch, stretch)
    length = wp.sqrt(rest2 + gain)
    return (stiffness * gain / (length * (length + rest))) * (offset + stretch)


@wp.func
def _at(field: wp.array(dtype=wp.float32), places: int, i: int):
    return wp.vec3(field[i], field[places + i], field[2 * places + i])


@wp.func
def _direction(d: int):
    """Of the 27 places around a mass, 14 … 26 look up in memory."""
    c = d + 14
    return wp.vec3i(c % 3 - 1, c // 3 % 3 - 1, c // 9 - 1)


@wp.func
def _pull(
    store: Store, p: wp.array(dtype=wp.float32), own: wp.vec3, d: int, i: int, above: int, below: int, total: wp.vec3
):
    """`total` with the two springs of direction d added."""
    s = _direction(d)
    offset = wp.vec3(float(s[0]), float(s[1]), float(s[2])) * store.spacing
    n = store.places
    up = _spring(offset, _at(p, n, above) - own, float(store.stiffness[d * n + i]))
    down = _spring(-offset, _at(p, n, below) - own, float(store.stiffness[d * n + below]))
    return total + up + down


@wp.func
def _finish(
    store: Store, i: int, own: wp.vec3, force: wp.vec3, v: wp.array(dtype=wp.float32), p_out: wp.array(dtype=wp.float32)
):
    n = store.places
    speed = _at(v, n, i) + store.push[i] * force
    for c in range(3):
        v[c * n + i] = speed[c]
        p_out[c * n + i] = own[c] + store.dt * speed[c]


@wp.kernel
def plain_tiles(
    first: int, store: Store, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = store.group[tile] + lane
    own = _at(p, store.places, i)
    force = wp.vec3()
    for d in range(13):
        s = _direction(d)
        r = 3 * (s[2] + 1) + s[1] + 1
        above = store.near[9 * tile + r] + lane + s[0]
        below = store.near[9 * tile + 8 - r] + lane - s[0]
        force = _pull(store, p, own, d, i, above, below, force)
    _finish(store, i, own, force, v, p_out)


@wp.kernel
def plain_table(
    first: int, store: Store, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    i = first + wp.tid()
    own = _at(p, store.places, i)
    force = wp.vec3()
    for d in range(13):
        above = store.near[2 * d * store.places + i]
        below = store.near[(2 * d + 1) * store.places + i]
        force = _pull(store, p, own, d, i, above, below, force)
    _finish(store, i, own, force, v, p_out)


@wp.func
def _in_brick(store: Store, brick: int, x: int, y: int, z: int):
    """Place at local position (x, y, z) of a brick, up to one step outside of it."""
    e = store.edge
    near = 9 * ((z + e) // e) + 3 * ((y + e) // e) + (x + e) // e
    local = (((z + e) % e) * e + (y + e) % e) * e + (x + e) % e
    return store.near[27 * brick + near] * e * e * e + local


@wp.kernel
def plain_bricks(
    first: int, store: Store, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    e = store.edge
    i = e * e * e + first + wp.tid()
    brick = i // (e * e * e)
    x = i % e
    y = i // e % e
    z = i // (e * e) % e
    own = _at(p, store.places, i)
    force = wp.vec3()
    for d in range(13):
        s = _direction(d)
        above = _in_brick(store, brick, x + s[0], y + s[1], z + s[2])
        below = _in_brick(store, brick, x - s[0], y - s[1], z - s[2])
        force = _pull(store, p, own, d, i, above, below, force)
    _finish(store, i, own, force, v, p_out)


_BODY = """
V fx = FILL(0.0f), fy = FILL(0.0f), fz = FILL(0.0f);
#pragma unroll
for (int d = 0; d < 13; ++d) {
    const int cx = (d + 14) % 3 - 1, cy = (d + 14) / 3 % 3 - 1, cz = (d + 14) / 9 - 1;
    const int steps2 = cx * cx + cy * cy + cz * cz;
    const float rest = h * (steps2 == 1 ? 1.0f : (steps2 == 2 ? 1.41421356f : 1.73205081f));
    const float rest2 = h * h * steps2;
    #pragma unroll
    for (int side = 1; side >= -1; side -= 2) {
        const float dx = side * h * cx, dy = side * h * cy, dz = side * h * cz;
        $neighbour
        const V gain = ex * PLUS(ex, 2.0f * dx, cx) + ey * PLUS(ey, 2.0f * dy, cy) + ez * PLUS(ez, 2.0f * dz, cz);
        const V pull = over_length(k * gain, gain + rest2, rest);
        fx += pull * PLUS(ex, dx, cx); fy += pull * PLUS(ey, dy, cy); fz += pull * PLUS(ez, dz, cz);
    }
}
float* qx = v.data; float* qy = qx + n; float* qz = qy + n;
const V push = LOAD(store.push.data + i);
const V vx = LOAD(qx + i) + push * fx, vy = LOAD(qy + i) + push * fy, vz = LOAD(qz + i) + push * fz;
STORE(qx + i, vx); STORE(qy + i, vy); STORE(qz + i, vz);
float* ux = p_out.data;
STORE(ux + i, ox + store.dt * vx);
STORE(ux + n + i, oy + store.dt * vy);
STORE(ux + 2 * n + i, oz + store.dt * vz);
"""

_HEAD = """
#define PLUS(e, r, c) ((c) != 0 ? (e) + (r) : (e))
const int n = store.places;
const float h = store.spacing;
const float* px = p.data; const float* py = px + n; const float* pz = py + n;
"""

_OWN = "const V ox = LOAD(px + i), oy = LOAD(py + i), oz = LOAD(pz + i);"

_CONTIGUOUS = """
const V k = LOAD_HALF(stiff + d * n + (side > 0 ? i : j));
const V ex = LOAD(px + j) - ox, ey = LOAD(py + j) - oy, ez = LOAD(pz + j) - oz;
"""

_TILE_NEIGHBOUR = (
    """
const int r = 3 * (cz + 1) + cy + 1;
const int j = (side > 0 ? rows[r] + cx : rows[8 - r] - cx) + lane;
"""
    + _CONTIGUOUS
)

_CPU = """
const Half* stiff = (const Half*)store.stiffness.data;
const auto over_length = [](V top, V length2, float rest) {
    FUSED
    const V length = ROOT(length2);
    return top / (length2 + length * rest);
};
$code
"""

_CUDA = """
const Half* stiff = store.stiffness.data;
const auto over_length = [](float top, float length2, float rest) {
    float inverse, share;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(length2));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(length2 * inverse + rest));
    return top * inverse * share;
};
$code
"""


def _code(neighbour: str) -> str:
    return fill(_BODY, neighbour=neighbour)


_CPU_TILE = (
    _HEAD
    + "const int lane = 0; const int i = store.group.data[index]; const int* rows = store.near.data + 9 * index;\n"
    + _OWN
    + _code(_TILE_NEIGHBOUR)
)

_CPU_TABLE = (
    _HEAD
    + """
const int i = 16 * index;
#if defined(__AVX512F__)
#define GATHER(a, j) (V)__builtin_ia32_gathersiv16sf(FILL(0.0f), (a), (j), (unsigned short)0xffff, 4)
#else
#define GATHER(a, j) ({ V all; for (int c = 0; c < 16; ++c) all[c] = (a)[(j)[c]]; all; })
#endif
"""
    + _OWN
    + _code(
        """
const I j = LOAD_INT(store.near.data + (2 * d + (side < 0)) * n + i);
const V k = LOAD_HALF(stiff + (2 * d + (side < 0)) * n + i);
const V ex = GATHER(px, j) - ox, ey = GATHER(py, j) - oy, ez = GATHER(pz, j) - oz;
"""
    )
)

_CPU_BRICK = (
    _HEAD
    + """
enum { E = $edge, W = E + 2, ROWS = 16 / E };
typedef float R __attribute__((ext_vector_type(E), aligned(4)));
float own[3][W * W * W + 16];
const int* near = store.near.data + 27 * (index + 1);
for (int z = -1; z <= E; ++z) for (int y = -1; y <= E; ++y) {
    const int* row = near + 9 * ((z + E) / E) + 3 * ((y + E) / E);
    const int at = (((z + E) % E) * E + (y + E) % E) * E;
    const int left = row[0] * E * E * E + at, middle = row[1] * E * E * E + at, right = row[2] * E * E * E + at;
    for (int c = 0; c < 3; ++c) {
        const float* q = px + c * n;
        float* to = own[c] + ((z + 1) * W + y + 1) * W;
        to[0] = q[left + E - 1];
        *(R*)(to + 1) = *(const R*)(q + middle);
        to[E + 1] = q[right];
    }
}
for (int part = 0; part < E * E * E / 16; ++part) {
const int i = (index + 1) * E * E * E + 16 * part;
const int here = ((16 * part / (E * E) + 1) * W + 16 * part / E % E + 1) * W + 1;
#if $edge == 8
#define BRICK(a) __builtin_shufflevector(*(const R*)(a), *(const R*)((a) + W), 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15)
#else
typedef float R2 __attribute__((ext_vector_type(8)));
const auto four = [](const float* a) {
    const R2 low = __builtin_shufflevector(*(const R*)a, *(const R*)(a + W), 0, 1, 2, 3, 4, 5, 6, 7);
    const R2 high = __builtin_shufflevector(*(const R*)(a + 2 * W), *(const R*)(a + 3 * W), 0, 1, 2, 3, 4, 5, 6, 7);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
};
#define BRICK(a) four(a)
#endif
"""
    + _OWN
    + _code(
        """
const int j = here + side * ((cz * W + cy) * W + cx);
const V k = LOAD_HALF(stiff + (2 * d + (side < 0)) * n + i);
const V ex = BRICK(own[0] + j) - ox, ey = BRICK(own[1] + j) - oy, ez = BRICK(own[2] + j) - oz;
"""
    )
    + "}\n"
)

_CUDA_TILE = (
    _HEAD
    + """
const int tile = index / 16, lane = index % 16;
const int i = store.group.data[tile] + lane;
const int* rows = store.near.data + 9 * tile;
"""
    + _OWN
    + _code(_TILE_NEIGHBOUR)
)

_CUDA_TABLE = (
    _HEAD
    + "const int i = index;\n"
    + _OWN
    + _code("const int j = store.near.data[(2 * d + (side < 0)) * n + i];\n" + _CONTIGUOUS)
)

_CUDA_BRICK = (
    _HEAD
    + """
enum { E = $edge };
const int i = E * E * E + index;
const int* near = store.near.data + 27 * (i / (E * E * E));
const int x = i % E, y = i / E % E, z = i / (E * E) % E;
"""
    + _OWN
    + _code(
        """
const int jx = x + side * cx + E, jy = y + side * cy + E, jz = z + side * cz + E;
const int j = near[9 * (jz / E) + 3 * (jy / E) + jx / E] * E * E * E + ((jz % E) * E + jy % E) * E + jx % E;
"""
        + _CONTIGUOUS
    )
)


def _native(cpu: str, cuda: str) -> str:
    return on_cpu(fill(_CPU, code=cpu)) + on_cuda(fill(_CUDA, code=cuda))


def _bricks(edge: int) -> str:
    return _native(fill(_CPU_BRICK, edge=edge), fill(_CUDA_BRICK, edge=edge))


@wp.func_native(_native(_CPU_TILE, _CUDA_TILE))
def _tiles(
    store: Store, index: int, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
): ...  # fmt: skip


@wp.func_native(_native(_CPU_TABLE, _CUDA_TABLE))
def _table(
    store: Store, index: int, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
): ...  # fmt: skip


@wp.func_native(_bricks(4))
def _bricks4(
    store: Store, index: int, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
): ...  # fmt: skip


@wp.func_native(_bricks(8))
def _bricks8(
    store: Store, index: int, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
): ...  # fmt: skip


@wp.kernel
def native_tiles(
    first: int, store: Store, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    _tiles(store, first + wp.tid(), p, v, p_out)


@wp.kernel
def native_table(
    first: int, store: Store, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    _table(store, first + wp.tid(), p, v, p_out)


@wp.kernel
def native_bricks4(
    first: int, store: Store, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    _bricks4(store, first + wp.tid(), p, v, p_out)


@wp.kernel
def native_bricks8(
    first: int, store: Store, p: wp.array(dtype=wp.float32), v: wp.array(dtype=wp.float32),
    p_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    _bricks8(store, first + wp.tid(), p, v, p_out)


KERNELS: dict[str, Any] = {
    "plain tiles": plain_tiles,
    "plain table": plain_table,
    "plain bricks": plain_bricks,
    "native tiles": native_tiles,
    "native table": native_table,
    "native bricks 4": native_bricks4,
    "native bricks 8": native_bricks8,
}
