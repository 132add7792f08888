"""The two passes of the incompressible solver's iteration in C for cpu, 16 neighbours at once; see native.py.

The same sums as `pressure_solver.push` and `pressure_solver.relax`, up to the last bits. `Fluid.axes` are x, y, z, k,
the push along x, y, z, and one that is not used here.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.native import GROUP, loop
from viscera.water.smoothing import Smoothing
from viscera.water.state import Live

wp.set_module_options({"enable_backward": False})

_GROUP = wp.constant(GROUP)

_STEEP = """
            const V r = ROOT(r2);
            const V a = 1.0f - r * per, c = AT_LEAST(0.5f - r * per, 0.0f);
            V steep = smoothing.gradient * (a * a - smoothing.kappa * (c * c)) / AT_LEAST(r, nearest);
            steep = inside ? steep : (V)0.0f;
"""

_PUSH_SKIP = """
    if (tag.data[s] < 0) { px.data[s] = py.data[s] = pz.data[s] = 0.0f; continue; }
"""

_PUSH_START = """
    V gx = 0.0f, gy = 0.0f, gz = 0.0f;
    const float own = k.data[s];
"""

_PUSH_BODY = (
    _STEEP
    + """
            steep *= own + LOAD(k.data + t);
            gx -= steep * dx;
            gy -= steep * dy;
            gz -= steep * dz;
"""
)

_PUSH_END = """
    px.data[s] = live.mass * SUM_IN_ORDER(gx);
    py.data[s] = live.mass * SUM_IN_ORDER(gy);
    pz.data[s] = live.mass * SUM_IN_ORDER(gz);
"""

_RELAX_START = """
    V growth = 0.0f;
    const float ux = px.data[s], uy = py.data[s], uz = pz.data[s];
"""

_RELAX_BODY = (
    _STEEP
    + """
            const V ex = ux - LOAD(px.data + t), ey = uy - LOAD(py.data + t), ez = uz - LOAD(pz.data + t);
            growth += steep * (ex * dx + ey * dy + ez * dz);
"""
)

_RELAX_END = """
    const float expected = system.data[s][0] + live.dt * live.dt * live.mass * SUM_IN_ORDER(growth);
    const float found = k.data[s] + relaxation * (expected - live.rest_density) * system.data[s][1];
    k.data[s] = found > 0.0f ? found : 0.0f;
"""


@wp.func_native(loop(_PUSH_START, _PUSH_BODY, _PUSH_END, _PUSH_SKIP))
def pushes(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    k: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    px: wp.array(dtype=float),
    py: wp.array(dtype=float),
    pz: wp.array(dtype=float),
): ...


@wp.func_native(loop(_RELAX_START, _RELAX_BODY, _RELAX_END))
def relaxed(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    relaxation: float,
    system: wp.array(dtype=wp.vec2),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    px: wp.array(dtype=float),
    py: wp.array(dtype=float),
    pz: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    k: wp.array(dtype=float),
): ...


@wp.kernel
def take_guess(
    first: int,
    # params
    grid: GridView,
    # in
    place: wp.array(dtype=wp.vec4),
    # out
    k_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        k_out[s] = place[s][3]


@wp.kernel
def push(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # in
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    k: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    px_out: wp.array(dtype=float),
    py_out: wp.array(dtype=float),
    pz_out: wp.array(dtype=float),
):
    s = (first + wp.tid()) * _GROUP
    pushes(grid, smoothing, live[0], s, tag, x, y, z, k, hits, px_out, py_out, pz_out)


@wp.kernel
def relax(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    relaxation: float,
    live: wp.array(dtype=Live),
    # in
    system: wp.array(dtype=wp.vec2),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    px: wp.array(dtype=float),
    py: wp.array(dtype=float),
    pz: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    k_out: wp.array(dtype=float),
):
    s = (first + wp.tid()) * _GROUP
    relaxed(grid, smoothing, live[0], s, relaxation, system, x, y, z, px, py, pz, hits, k_out)


@wp.kernel
def give_back(
    first: int,
    # params
    grid: GridView,
    # in
    k: wp.array(dtype=float),
    px: wp.array(dtype=float),
    py: wp.array(dtype=float),
    pz: wp.array(dtype=float),
    # out
    place_out: wp.array(dtype=wp.vec4),
    push_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        here = place_out[s]
        place_out[s] = wp.vec4(here[0], here[1], here[2], k[s])
        push_out[s] = wp.vec4(px[s], py[s], pz[s], 0.0)
