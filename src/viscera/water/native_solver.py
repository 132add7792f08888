"""The incompressible solver's equations and the two passes of its iteration in C for cpu, 16 neighbours at once; see
native.py.

The same sums as `pressure_solver.begin`, `push` and `relax`, up to the last bits. `Fluid.axes` are x, y, z, k, the push
along x, y, z, and one that is not used here; before the first push, the velocity after all other forces along x, y, z,
and 1 for what moves, 0 for walls.

Particles stay where they are while pressures are found, so the kernel's slopes of a particle's first blocks
(`state.SLOTS`) are kept when the equations are set up: the iteration reads them instead of taking a root and a quotient
for each pair.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.native import fill
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.native import GROUP, loop
from viscera.water.smoothing import Smoothing
from viscera.water.state import Live

wp.set_module_options({"enable_backward": False})

_GROUP = wp.constant(GROUP)
WARM_START = wp.constant(0.5)
"""Part of the last pressures that the iteration starts from (Ihmsen et al. §3.3)."""

STEEP = """
            const V r = ROOT(r2);
            const V a = 1.0f - r * per, c = AT_LEAST(0.5f - r * per, 0.0f);
            steep = smoothing.gradient * (a * a - smoothing.kappa * (c * c)) / AT_LEAST(r, nearest);
            steep = inside ? steep : (V)0.0f;
"""
"""W'/r of 16 neighbours, 0 of those beyond the radius."""

_FIND_STEEP = (
    "V steep;"
    + STEEP
    + """
            if (slot < slots) STORE(mine + 16 * slot, steep);
            ++slot;
"""
)

_TAKE_STEEP = fill(
    """
            V steep;
            if (slot < slots) {
                steep = LOAD(mine + 16 * slot);
            } else {
                $steep
            }
            ++slot;
""",
    steep=STEEP,
)

_OWN_SLOTS = """
    int slot = 0;
    float* mine = slopes.data + 16L * slots * s;
"""

_BEGIN_START = (
    _OWN_SLOTS
    + """
    V gx = 0.0f, gy = 0.0f, gz = 0.0f, growth = 0.0f, squares = 0.0f;
    const float ux = vx.data[s], uy = vy.data[s], uz = vz.data[s];
"""
)

_BEGIN_BODY = (
    _FIND_STEEP
    + """
            const V ex = ux - LOAD(vx.data + t), ey = uy - LOAD(vy.data + t), ez = uz - LOAD(vz.data + t);
            growth += steep * (ex * dx + ey * dy + ez * dz);
            gx += steep * dx;
            gy += steep * dy;
            gz += steep * dz;
            squares += LOAD(moves.data + t) * (steep * steep * r2);
"""
)

_BEGIN_END = """
    const float m = live.mass, dt = live.dt;
    const float ox = m * SUM_IN_ORDER(gx), oy = m * SUM_IN_ORDER(gy), oz = m * SUM_IN_ORDER(gz);
    const float others = m * m * SUM_IN_ORDER(squares);
    const float diagonal = others + (tag.data[s] < 0 ? 0.0f : ox * ox + oy * oy + oz * oz);
    const float scale = live.rest_density * smoothing.per_radius;
    const bool alone = !(diagonal > 1.0e-12f * scale * scale && dt > 0.0f);
    system.data[s][0] = density.data[s] + dt * m * SUM_IN_ORDER(growth);
    system.data[s][1] = alone ? 0.0f : 1.0f / (dt * dt * diagonal);
    own.data[s] = wp::vec_t<4, wp::float32>(ox, oy, oz, others);
"""

_PUSH_SKIP = """
    if (tag.data[s] < 0) { px.data[s] = py.data[s] = pz.data[s] = 0.0f; continue; }
"""

_PUSH_START = (
    _OWN_SLOTS
    + """
    V gx = 0.0f, gy = 0.0f, gz = 0.0f;
    const float own = k.data[s];
"""
)

_PUSH_BODY = (
    _TAKE_STEEP
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

_RELAX_START = (
    _OWN_SLOTS
    + """
    V growth = 0.0f;
    const float ux = px.data[s], uy = py.data[s], uz = pz.data[s];
"""
)

_RELAX_BODY = (
    _TAKE_STEEP
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


@wp.func_native(loop(_BEGIN_START, _BEGIN_BODY, _BEGIN_END))
def equations(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    slots: int,
    tag: wp.array(dtype=wp.int32),
    density: wp.array(dtype=float),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    moves: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    slopes: wp.array(dtype=float),
    system: wp.array(dtype=wp.vec2),
    own: wp.array(dtype=wp.vec4),
): ...


@wp.func_native(loop(_PUSH_START, _PUSH_BODY, _PUSH_END, _PUSH_SKIP))
def pushes(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    slots: int,
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    k: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    slopes: wp.array(dtype=float),
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
    slots: int,
    relaxation: float,
    system: wp.array(dtype=wp.vec2),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    px: wp.array(dtype=float),
    py: wp.array(dtype=float),
    pz: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    slopes: wp.array(dtype=float),
    k: wp.array(dtype=float),
): ...


@wp.kernel
def split_advected(
    first: int,
    # params
    grid: GridView,
    live: wp.array(dtype=Live),
    # in
    held: wp.array(dtype=wp.vec4),
    rate: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    vx_out: wp.array(dtype=float),
    vy_out: wp.array(dtype=float),
    vz_out: wp.array(dtype=float),
    moves_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        v = held[s] + live[0].dt * rate[s]
        vx_out[s] = v[0]
        vy_out[s] = v[1]
        vz_out[s] = v[2]
        moves_out[s] = wp.where(tag[s] >= 0, 1.0, 0.0)


@wp.kernel
def begin(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    slots: int,
    live: wp.array(dtype=Live),
    # in
    tag: wp.array(dtype=wp.int32),
    density: wp.array(dtype=float),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    moves: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    slopes_out: wp.array(dtype=float),
    system_out: wp.array(dtype=wp.vec2),
    own_out: wp.array(dtype=wp.vec4),
):
    s = (first + wp.tid()) * _GROUP
    equations(
        grid, smoothing, live[0], s, slots, tag, density, x, y, z, vx, vy, vz, moves, hits,
        slopes_out, system_out, own_out,
    )  # fmt: skip


@wp.kernel
def guess(
    first: int,
    # params
    grid: GridView,
    # in
    original: wp.array(dtype=wp.int32),
    system: wp.array(dtype=wp.vec2),
    warm: wp.array(dtype=float),
    # out
    place_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        k = float(0.0)
        if system[s][1] > 0.0:
            k = WARM_START * warm[original[s]]
        here = place_out[s]
        place_out[s] = wp.vec4(here[0], here[1], here[2], k)


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
    slots: int,
    live: wp.array(dtype=Live),
    # in
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    k: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    slopes: wp.array(dtype=float),
    # out
    px_out: wp.array(dtype=float),
    py_out: wp.array(dtype=float),
    pz_out: wp.array(dtype=float),
):
    s = (first + wp.tid()) * _GROUP
    pushes(grid, smoothing, live[0], s, slots, tag, x, y, z, k, hits, slopes, px_out, py_out, pz_out)


@wp.kernel
def relax(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    slots: int,
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
    slopes: wp.array(dtype=float),
    # out
    k_out: wp.array(dtype=float),
):
    s = (first + wp.tid()) * _GROUP
    relaxed(grid, smoothing, live[0], s, slots, relaxation, system, x, y, z, px, py, pz, hits, slopes, k_out)


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
