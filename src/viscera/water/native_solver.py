"""The two passes of the incompressible solver's iteration in C for cpu, 16 neighbours at once; see native.py.

The same sums as `pressure_solver.push` and `pressure_solver.relax`, up to the last bits. `Fluid.axes` are x, y, z, k,
the push along x, y, z, and one that is not used here.
"""

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportIndexIssue=false, reportCallIssue=false
# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.neighbors.cells import GridView, cell_of, sorted_count
from viscera.water.native import NO_VECTOR, ROWS, VECTORS, on_cpu
from viscera.water.smoothing import Smoothing
from viscera.water.state import Live

wp.set_module_options({"enable_backward": False})

_STEEP = """
        const I inside = (r2 < radius2) & (lane + t < end);
        if (!__builtin_reduce_or(inside)) continue;
        const V r = ROOT(r2);
        const V a = 1.0f - r * per, b = AT_LEAST(0.5f - r * per, 0.0f);
        V steep = smoothing.gradient * (a * a - smoothing.kappa * (b * b)) / AT_LEAST(r, nearest);
        steep = inside ? steep : (V)0.0f;
"""

_PUSH = """
V gx = 0.0f, gy = 0.0f, gz = 0.0f;
const float own = k.data[s], nearest = 1.0e-6f * smoothing.radius;
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
float ax = 0.0f, ay = 0.0f, az = 0.0f;
for (int n = 0; n < 16; ++n) { ax += gx[n]; ay += gy[n]; az += gz[n]; }
return wp::vec_t<4, wp::float32>(mass * ax, mass * ay, mass * az, 0.0f);
"""

_GROWTH = """
V total = 0.0f;
const float ux = px.data[s], uy = py.data[s], uz = pz.data[s], nearest = 1.0e-6f * smoothing.radius;
"""

_GROWTH_BODY = (
    _STEEP
    + """
        const V ex = ux - LOAD(px.data + t), ey = uy - LOAD(py.data + t), ez = uz - LOAD(pz.data + t);
        total += steep * (ex * dx + ey * dy + ez * dz);
"""
)

_GROWTH_END = """
float sum = 0.0f;
for (int n = 0; n < 16; ++n) sum += total[n];
return sum;
"""


@wp.func_native(on_cpu(VECTORS + _PUSH + ROWS.replace("BODY", _PUSH_BODY) + _PUSH_END, NO_VECTOR))
def push_at(
    grid: GridView,
    smoothing: Smoothing,
    mass: float,
    s: int,
    cell: wp.vec3i,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    k: wp.array(dtype=float),
) -> wp.vec4: ...


@wp.func_native(on_cpu(VECTORS + _GROWTH + ROWS.replace("BODY", _GROWTH_BODY) + _GROWTH_END, "0.0f"))
def growth_at(
    grid: GridView,
    smoothing: Smoothing,
    s: int,
    cell: wp.vec3i,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    px: wp.array(dtype=float),
    py: wp.array(dtype=float),
    pz: wp.array(dtype=float),
) -> float: ...


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
    # out
    px_out: wp.array(dtype=float),
    py_out: wp.array(dtype=float),
    pz_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    total = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if tag[s] >= 0:
        cell = cell_of(grid, wp.vec3(x[s], y[s], z[s]))
        total = push_at(grid, smoothing, live[0].mass, s, cell, x, y, z, k)
    px_out[s] = total[0]
    py_out[s] = total[1]
    pz_out[s] = total[2]


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
    # out
    k_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    cell = cell_of(grid, wp.vec3(x[s], y[s], z[s]))
    growth = growth_at(grid, smoothing, s, cell, x, y, z, px, py, pz)
    dt = live[0].dt
    expected = system[s][0] + dt * dt * live[0].mass * growth
    change = relaxation * (expected - live[0].rest_density) * system[s][1]
    k_out[s] = wp.max(k_out[s] + change, 0.0)


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
