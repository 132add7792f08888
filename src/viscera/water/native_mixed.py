"""The loops of mixed.py in C for cpu: those of native.py with two more loads and three products per neighbour.

Places are in units of the pair's radius: `r2` is q², and the kernels are those of radius 1.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.native import fill
from viscera.neighbors.blocks import HITS, OPEN_BLOCKS, note_hit
from viscera.neighbors.cells import GridView
from viscera.water.native import DENSITY_BODY, GROUP, SQUARE, loop
from viscera.water.smoothing import Smoothing
from viscera.water.state import Live

wp.set_module_options({"enable_backward": False})

_GROUP = wp.constant(GROUP)

_SQUARE = f"({SQUARE}) * (own * LOAD(inverse_radius.data + t))"

_HALF_POWER = "(grid.layer > 0 ? own * ROOT1(own) : own)"

_LOADED = {
    "note": note_hit("ANY(inside)"),
    "weight": "w * LOAD(load.data + t)",
    "smooth": "a * a * a * LOAD(load.data + t)",
}

_DENSITY_START = "const float own = inverse_radius.data[s]; V total = 0.0f; unsigned long long hits_ = 0;"

_DENSITY_END = fill(
    """
    const float scale = smoothing.spline > 0.0f ? smoothing.spline : smoothing.poly6;
    density.data[s] = $half_power * scale * SUM_IN_ORDER(total);
    hits.data[s] = $hits;
""",
    hits=HITS,
    half_power=_HALF_POWER,
)

_DENSITY = loop(_DENSITY_START, fill(DENSITY_BODY, **_LOADED), _DENSITY_END, opening=OPEN_BLOCKS, square=_SQUARE)

_FORCE_START = """
    V gx = 0.0f, gy = 0.0f, gz = 0.0f;
    const float own = inverse_radius.data[s];
    const float ux = vx.data[s], uy = vy.data[s], uz = vz.data[s];
    const float own_push = push.data[s], own_inverse = inverse.data[s];
"""

_FORCE_BODY = """
            const V q = ROOT(r2);
            const V a = 1.0f - q, c = AT_LEAST(0.5f - q, 0.0f);
            V steep = smoothing.gradient * (a * a - smoothing.kappa * (c * c)) / AT_LEAST(q, nearest);
            const V ex = ux - LOAD(vx.data + t), ey = uy - LOAD(vy.data + t), ez = uz - LOAD(vz.data + t);
            V drag = live.viscosity * (own_inverse * LOAD(inverse.data + t))
                   * (smoothing.laplacian * a + smoothing.morris * steep);
            const V share = inside ? LOAD(pull.data + t) : (V)0.0f;
            const V press = (own_push + LOAD(push.data + t)) * steep * share;
            drag *= share;
            gx -= press * dx + drag * ex;
            gy -= press * dy + drag * ey;
            gz -= press * dz + drag * ez;
"""

_FORCE_END = fill(
    """
    const float k = own * $half_power;
    const auto down = live.gravity;
    const float sx = SUM_IN_ORDER(gx), sy = SUM_IN_ORDER(gy), sz = SUM_IN_ORDER(gz);
    rate.data[s] = wp::vec_t<4, wp::float32>(k * sx + down[0], k * sy + down[1], k * sz + down[2], 0.0f);
""",
    half_power=_HALF_POWER,
)


@wp.func_native(_DENSITY)
def densities(
    grid: GridView,
    smoothing: Smoothing,
    first: int,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    load: wp.array(dtype=float),
    density: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
): ...


@wp.func_native(loop(_FORCE_START, _FORCE_BODY, _FORCE_END, square=_SQUARE))
def forces(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    pull: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    rate: wp.array(dtype=wp.vec4),
): ...


@wp.kernel
def sum_density(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    # in
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    load: wp.array(dtype=float),
    # out
    density_out: wp.array(dtype=float),
    hits_out: wp.array(dtype=wp.uint64),
):
    s = (first + wp.tid()) * _GROUP
    densities(grid, unit, s, x, y, z, inverse_radius, load, density_out, hits_out)


@wp.kernel
def sum_forces(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    live: wp.array(dtype=Live),
    # in
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    pull: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = (first + wp.tid()) * _GROUP
    forces(grid, unit, live[0], s, x, y, z, push, vx, vy, vz, inverse, inverse_radius, pull, hits, rate_out)
