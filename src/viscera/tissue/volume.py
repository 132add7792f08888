"""A force per cell that keeps its volume, so that tissue reaches a Poisson's ratio above ¼.

Central springs alone give ν = ¼. Each whole cell of eight masses gets, besides, the energy

    U = ½ κ h³ (V/h³ − 1)²,    V = det(a, b, c)

where a, b, c are the cell's mean edge vectors along x, y and z (one-point quadrature: the springs resist what it does
not see). On a mass at the corner with signs s = (±1, ±1, ±1) the force is

    f = −κ (V/h³ − 1) · ¼ (s_x b×c + s_y c×a + s_z a×b).

With the springs' Lamé constants λ = μ = 0.4·E_s and κ added to λ, a solid of modulus E and ratio ν needs

    E_s = 1.25·E/(1 + ν),    κ = E·ν/((1 + ν)(1 − 2ν)) − E/(2(1 + ν)),

which is zero at ν = ¼. Lengths are taken at p = u + τ·v like those of the springs (kernels.py), so it is damped alike.
"""

from __future__ import annotations

import warp as wp

from viscera.native import fill, on_cpu, on_cuda
from viscera.tissue.kernels import LIVE_BULK, Lattice, load3, store3
from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

_TILE = wp.constant(TILE)

MOST_GROWTH = wp.constant(0.5)
MOST_STRETCH = wp.constant(1.5)
"""Beyond these (of V/h³ − 1, and of the mean squared edge over h²) a cell is torn or crushed: its push no longer grows,
so that a blow cannot pump the lattice up."""


def spring_share_of_young(poisson: float) -> float:
    """E_s/E: Young's modulus that the springs alone must have."""
    return 1.25 / (1.0 + poisson)


def bulk_share_of_young(poisson: float) -> float:
    """κ/E."""
    return poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson)) - 0.5 / (1.0 + poisson)


@wp.func
def store_push(
    a: wp.vec3, b: wp.vec3, c: wp.vec3, h: float, modulus: float,
    slots: int, i: int, push_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    """κ(V/h³ − 1)/4 times b×c, c×a and a×b of a cell with these mean edges."""
    growth = wp.clamp(wp.dot(a, wp.cross(b, c)) / (h * h * h) - 1.0, -MOST_GROWTH, MOST_GROWTH)
    stretch = (wp.dot(a, a) + wp.dot(b, b) + wp.dot(c, c)) / (3.0 * h * h)
    push = 0.25 * modulus * growth / wp.max(stretch / MOST_STRETCH, 1.0)
    bc = push * wp.cross(b, c)
    ca = push * wp.cross(c, a)
    ab = push * wp.cross(a, b)
    for axis in range(3):
        push_out[axis * slots + i] = bc[axis]
        push_out[(3 + axis) * slots + i] = ca[axis]
        push_out[(6 + axis) * slots + i] = ab[axis]


@wp.kernel
def cell_pressure(
    first: int,
    # params
    lattice: Lattice,
    bulk: wp.array(dtype=wp.float16),
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    push_out: wp.array(dtype=wp.float32),
):
    """For the cell whose low corner is this place: κ(V/h³ − 1)/4 times b×c, c×a and a×b, nine floats."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    slots = lattice.slots
    h = lattice.spacing
    a = wp.vec3()
    b = wp.vec3()
    c = wp.vec3()
    for corner in range(8):
        x = corner % 2
        y = corner // 2 % 2
        z = corner // 4
        row = lattice.rows[9 * tile + 4 + y + 3 * z]
        u = load3(position, slots, row + lane + x)
        a += float(2 * x - 1) * 0.25 * u
        b += float(2 * y - 1) * 0.25 * u
        c += float(2 * z - 1) * 0.25 * u
    a += wp.vec3(h, 0.0, 0.0)
    b += wp.vec3(0.0, h, 0.0)
    c += wp.vec3(0.0, 0.0, h)
    store_push(a, b, c, h, live[LIVE_BULK] * float(bulk[i]), slots, i, push_out)


@wp.kernel
def gather_pressure(
    first: int,
    # params
    lattice: Lattice,
    # in
    push: wp.array(dtype=wp.float32),
    # out
    extra_out: wp.array(dtype=wp.float32),
):
    """Sum over the eight cells around a mass."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    slots = lattice.slots
    total = wp.vec3()
    for octant in range(8):
        # The cell on side (x, y, z) = ±1 of the mass has the mass at its corner -(x, y, z).
        x = octant % 2
        y = octant // 2 % 2
        z = octant // 4
        j = lattice.rows[9 * tile + y + 3 * z] + lane + x - 1
        bc = wp.vec3(push[j], push[slots + j], push[2 * slots + j])
        ca = wp.vec3(push[3 * slots + j], push[4 * slots + j], push[5 * slots + j])
        ab = wp.vec3(push[6 * slots + j], push[7 * slots + j], push[8 * slots + j])
        total -= float(1 - 2 * x) * bc + float(1 - 2 * y) * ca + float(1 - 2 * z) * ab
    store3(extra_out, slots, i, total)


_CELL = """
const Place n = lattice.slots;
const Place i = lattice.tile_slot.data[tile] + lane;
const int* rows = lattice.rows.data + 9 * tile;
const float* p = position.data;
const float h = lattice.spacing;
V a[3] = {FILL(h), FILL(0.0f), FILL(0.0f)};
V b[3] = {FILL(0.0f), FILL(h), FILL(0.0f)};
V c[3] = {FILL(0.0f), FILL(0.0f), FILL(h)};
#pragma unroll
for (int corner = 0; corner < 8; ++corner) {
    const int x = corner % 2, y = corner / 2 % 2, z = corner / 4;
    const Place j = rows[4 + y + 3 * z] + lane + x;
    #pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        const V u = 0.25f * LOAD(p + axis * n + j);
        a[axis] += (2.0f * x - 1.0f) * u;
        b[axis] += (2.0f * y - 1.0f) * u;
        c[axis] += (2.0f * z - 1.0f) * u;
    }
}
const V bc[3] = {b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]};
const V ca[3] = {c[1] * a[2] - c[2] * a[1], c[2] * a[0] - c[0] * a[2], c[0] * a[1] - c[1] * a[0]};
const V ab[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
const V volume = (a[0] * bc[0] + a[1] * bc[1] + a[2] * bc[2]) / (h * h * h) - 1.0f;
const V growth = AT_LEAST(AT_MOST(volume, $most_growth), -$most_growth);
V stretch = FILL(0.0f);
#pragma unroll
for (int axis = 0; axis < 3; ++axis) stretch += a[axis] * a[axis] + b[axis] * b[axis] + c[axis] * c[axis];
const V relief = AT_LEAST(stretch / (3.0f * h * h * $most_stretch), 1.0f);
const V push = 0.25f * live.data[6] * LOAD_HALF((const Half*)bulk.data + i) * growth / relief;
float* out = push_out.data + i;
#pragma unroll
for (int axis = 0; axis < 3; ++axis) {
    STORE(out + axis * n, push * bc[axis]);
    STORE(out + (3 + axis) * n, push * ca[axis]);
    STORE(out + (6 + axis) * n, push * ab[axis]);
}
"""

_GATHER = """
const Place n = lattice.slots;
const Place i = lattice.tile_slot.data[tile] + lane;
const int* rows = lattice.rows.data + 9 * tile;
V total[3] = {FILL(0.0f), FILL(0.0f), FILL(0.0f)};
#pragma unroll
for (int octant = 0; octant < 8; ++octant) {
    const int x = octant % 2, y = octant / 2 % 2, z = octant / 4;
    const float* q = push.data + rows[y + 3 * z] + lane + x - 1;
    #pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        const V bc = LOAD(q + axis * n), ca = LOAD(q + (3 + axis) * n), ab = LOAD(q + (6 + axis) * n);
        total[axis] -= (1.0f - 2.0f * x) * bc + (1.0f - 2.0f * y) * ca + (1.0f - 2.0f * z) * ab;
    }
}
float* out = extra_out.data + i;
STORE(out, total[0]); STORE(out + n, total[1]); STORE(out + 2 * n, total[2]);
"""

_CPU_PLACE = """
const int tile = element;
const Place lane = 0;
$body
"""

_CUDA_PLACE = """
const int tile = element / 16;
const int lane = element % 16;
$body
"""


def _source(body: str) -> str:
    """An element is a tile of 16 places on cpu, a place on cuda."""
    return on_cpu(fill(_CPU_PLACE, body=body), fused=False) + on_cuda(fill(_CUDA_PLACE, body=body))


@wp.func_native(_source(fill(_CELL, most_growth=MOST_GROWTH, most_stretch=MOST_STRETCH)))
def press_cells(
    lattice: Lattice,
    element: int,
    bulk: wp.array(dtype=wp.float16),
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    push_out: wp.array(dtype=wp.float32),
): ...


@wp.func_native(_source(_GATHER))
def gather_cells(
    lattice: Lattice, element: int, push: wp.array(dtype=wp.float32), extra_out: wp.array(dtype=wp.float32)
): ...


@wp.kernel
def cell_pressure_native(
    first: int,
    # params
    lattice: Lattice,
    bulk: wp.array(dtype=wp.float16),
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    push_out: wp.array(dtype=wp.float32),
):
    """`cell_pressure` in C: for a tile of 16 places on cpu, for a place on cuda."""
    press_cells(lattice, first + wp.tid(), bulk, live, position, push_out)


@wp.kernel
def gather_pressure_native(
    first: int,
    # params
    lattice: Lattice,
    # in
    push: wp.array(dtype=wp.float32),
    # out
    extra_out: wp.array(dtype=wp.float32),
):
    """`gather_pressure` in the same way."""
    gather_cells(lattice, first + wp.tid(), push, extra_out)
