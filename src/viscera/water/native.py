"""The two loops over neighbours that cost most, in C for cpu: 16 neighbours at once.

The same sums as `density.sum_density` and `forces.sum_forces`, up to the last bits. An index into a `wp.array` goes
through byte strides and never becomes a vector load; here each number lies in an array of its own (`Fluid.axes`). A row
of three cells is one range, cut into blocks of 16; loads may pass its end, which `LANES` allows, and what is beyond the
end or the radius gets weight 0. No images: periodic boxes take the plain kernels.

A thread takes `GROUP` particles in sorted order, and the blocks around a cell are listed once for all particles in it;
density notes which of them hold neighbours, and the loops after it go through those alone (`neighbors.blocks`).
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.native import fill, on_cpu
from viscera.neighbors.blocks import BLOCKS, CELL, CLOSE_BLOCKS, HITS, OPEN_BLOCKS, note_hit, open_hits
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.smoothing import Smoothing
from viscera.water.state import Live

wp.set_module_options({"enable_backward": False})

GROUP = 32
"""Particles per thread."""
_GROUP = wp.constant(GROUP)

OPEN_HITS = open_hits("hits.data[s]")
"""Through the blocks that density has noted; through all where it is not summed."""

_GROUPS = """
const float radius2 = smoothing.radius2, per = smoothing.per_radius, nearest = 1.0e-6f * smoothing.radius;
const int last = first + $group < grid.cell_start.data[grid.lost] ? first + $group : grid.cell_start.data[grid.lost];
$cell
$blocks
for (int s = first; s < last; ++s) {
    const float hx = x.data[s], hy = y.data[s], hz = z.data[s];
    $skip
    const int cx = CELL((hx - grid.lower[0]) * grid.cells_per_length, grid.cells_x);
    const int cy = CELL((hy - grid.lower[1]) * grid.cells_per_length, grid.cells_y);
    const int cz = CELL((hz - grid.lower[2]) * grid.cells_per_length, grid.cells_z);
    $start
    $open
            const V dx = hx - LOAD(x.data + t), dy = hy - LOAD(y.data + t), dz = hz - LOAD(z.data + t);
            const V r2 = $square;
            const M inside = (r2 < radius2) & (PLACES(t) < end);
            $body
    $close
    $end
}
"""
"""Goes through the particles of a group, and for each through the blocks around it."""


SQUARE = "dx * dx + dy * dy + dz * dz"
"""Of the distance of two particles."""


def loop(start: str, body: str, end: str, skip: str = "", opening: str = OPEN_HITS, square: str = SQUARE) -> str:
    """C for cpu, nothing on cuda. `inside` says which of 16 neighbours are within the radius."""
    text = fill(
        _GROUPS, group=GROUP, cell=CELL, blocks=BLOCKS, open=opening, close=CLOSE_BLOCKS,
        skip=skip, start=start, square=square, body=body, end=end,
    )  # fmt: skip
    return on_cpu(text, fused=False)


DENSITY_BODY = """
            $note
            if (smoothing.spline > 0.0f) {
                const V q = ROOT(r2) * per;
                const V a = 1.0f - q, c = AT_LEAST(0.5f - q, 0.0f);
                const V w = a * a * a - 4.0f * (c * c * c);
                total += inside ? $weight : (V)0.0f;
            } else {
                const V a = 1.0f - r2 * (per * per);
                total += inside ? $smooth : (V)0.0f;
            }
"""
"""Of a loop that notes hits: what a neighbour adds, with the spline or with poly6."""

_WEIGHTS = {"note": note_hit("ANY(inside)"), "weight": "w", "smooth": "a * a * a"}

_DENSITY_END = fill(
    """
    const float scale = smoothing.spline > 0.0f ? smoothing.spline : smoothing.poly6;
    density.data[s] = live.mass * scale * SUM_IN_ORDER(total);
    hits.data[s] = $hits;
""",
    hits=HITS,
)

_DENSITY = loop(
    "V total = 0.0f; unsigned long long hits_ = 0;", fill(DENSITY_BODY, **_WEIGHTS), _DENSITY_END, opening=OPEN_BLOCKS
)

_FORCE_SKIP = """
    // Walls only gather density.
    if (tag.data[s] < 0 && live.continuity == 0.0f) { rate.data[s] = wp::vec_t<4, wp::float32>(); continue; }
"""

_FORCE_START = """
    V gx = 0.0f, gy = 0.0f, gz = 0.0f, growth = 0.0f;
    const float ux = vx.data[s], uy = vy.data[s], uz = vz.data[s];
    const float own_push = push.data[s], own_inverse = inverse.data[s];
"""

_FORCE_BODY = """
            const V r = ROOT(r2);
            const V a = 1.0f - r * per, c = AT_LEAST(0.5f - r * per, 0.0f);
            V steep = smoothing.gradient * (a * a - smoothing.kappa * (c * c)) / AT_LEAST(r, nearest);
            const V ex = ux - LOAD(vx.data + t), ey = uy - LOAD(vy.data + t), ez = uz - LOAD(vz.data + t);
            const V other = LOAD(inverse.data + t);
            const V closing = ex * dx + ey * dy + ez * dz;
            V press = own_push + LOAD(push.data + t);
            $monaghan
            V drag = live.viscosity * (own_inverse * other) * (smoothing.laplacian * a + smoothing.morris * steep);
            steep = inside ? steep : (V)0.0f;
            drag = inside ? drag : (V)0.0f;
            press *= steep;
            gx -= press * dx + drag * ex;
            gy -= press * dy + drag * ey;
            gz -= press * dz + drag * ez;
            growth += steep * closing;
"""

_MONAGHAN = """
            const V mu = live.length * closing / (r2 + 0.01f * live.length * live.length);
            const V per_density = 2.0f * own_inverse * other / (own_inverse + other);
            const V brake = (live.beta * mu - live.alpha * live.sound_speed) * mu * per_density;
            press += (closing < 0.0f) ? brake : (V)0.0f;
"""

_FORCE_END = """
    const float m = tag.data[s] < 0 ? 0.0f : live.mass, g = tag.data[s] < 0 ? 0.0f : 1.0f;
    const auto down = live.gravity;
    const float sx = SUM_IN_ORDER(gx), sy = SUM_IN_ORDER(gy), sz = SUM_IN_ORDER(gz), grown = SUM_IN_ORDER(growth);
    rate.data[s] = wp::vec_t<4, wp::float32>(
        m * sx + g * down[0], m * sy + g * down[1], m * sz + g * down[2], live.mass * grown);
"""


def _forces(monaghan: str) -> str:
    return loop(_FORCE_START, fill(_FORCE_BODY, monaghan=monaghan), _FORCE_END, _FORCE_SKIP)


@wp.func_native(_DENSITY)
def densities(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    density: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
): ...


@wp.func_native(_forces(""))
def forces(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    rate: wp.array(dtype=wp.vec4),
): ...


@wp.func_native(_forces(_MONAGHAN))
def braked_forces(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    rate: wp.array(dtype=wp.vec4),
): ...


@wp.kernel
def split_places(
    first: int,
    # params
    grid: GridView,
    # in
    place: wp.array(dtype=wp.vec4),
    # out
    x_out: wp.array(dtype=float),
    y_out: wp.array(dtype=float),
    z_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        here = place[s]
        x_out[s] = here[0]
        y_out[s] = here[1]
        z_out[s] = here[2]


@wp.kernel
def split_motions(
    first: int,
    # params
    grid: GridView,
    # in
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    # out
    push_out: wp.array(dtype=float),
    vx_out: wp.array(dtype=float),
    vy_out: wp.array(dtype=float),
    vz_out: wp.array(dtype=float),
    inverse_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        v = motion[s]
        push_out[s] = place[s][3]
        vx_out[s] = v[0]
        vy_out[s] = v[1]
        vz_out[s] = v[2]
        inverse_out[s] = v[3]


@wp.kernel
def sum_density(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # in
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    # out
    density_out: wp.array(dtype=float),
    hits_out: wp.array(dtype=wp.uint64),
):
    densities(grid, smoothing, live[0], (first + wp.tid()) * _GROUP, x, y, z, density_out, hits_out)


@wp.kernel
def sum_forces(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    monaghan: int,
    live: wp.array(dtype=Live),
    # in
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = (first + wp.tid()) * _GROUP
    if monaghan != 0:
        braked_forces(grid, smoothing, live[0], s, tag, x, y, z, push, vx, vy, vz, inverse, hits, rate_out)
    else:
        forces(grid, smoothing, live[0], s, tag, x, y, z, push, vx, vy, vz, inverse, hits, rate_out)


def launch(stage: Stage, kernel: Any, count: int, args: Sequence[Any]) -> None:
    """On groups of `count` particles; cores share them group by group, as a block of so many would be all."""
    stage.launch(kernel, -(-count // GROUP), args, block=1)
