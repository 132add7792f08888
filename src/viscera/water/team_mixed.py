"""The loops of mixed.py for cuda, several threads per particle: those of team_loops.py among several sizes."""

from __future__ import annotations

import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.smoothing import Smoothing
from viscera.water.state import Fluid, Live
from viscera.water.team_loops import LONG, WIDE, source
from viscera.water.teams import Kept, Sorted, end_forces, keep_lost, kept_arrays, sorted_arrays

wp.set_module_options({"enable_backward": False})

_SQUARE = "(dx * dx + dy * dy + dz * dz) * (here.w * other.w)"

_HALF_POWER = "const float half_power = grid.layer > 0 ? here.w * ROOT1(here.w) : here.w;"

_DENSITY = """
            if (smoothing.spline > 0.0f) {
                const float q = r2 * PER_ROOT(LARGER(r2, nearest2));
                const float a = 1.0f - q, b = LARGER(0.5f - q, 0.0f);
                total += load_of(t) * (a * a * a - 4.0f * (b * b * b));
            } else {
                const float a = 1.0f - r2;
                total += load_of(t) * (a * a * a);
            }
"""

_LOADS = """
const float* loads = reinterpret_cast<const float*>(load.data);
const auto load_of = [&](int t) { return loads[2 * t + 1]; };
"""

_DENSITY_START = _LOADS + "float total = 0.0f;"

_DENSITY_END = f"""
{_HALF_POWER}
return half_power * (smoothing.spline > 0.0f ? smoothing.spline : smoothing.poly6) * sum_of(total);
"""

_FORCE_START = (
    _LOADS
    + """
const float own_push = loads[2 * s];
const F4 own = READ4(motion, s);
const wp::float32 viscosity = live.viscosity;
float gx = 0.0f, gy = 0.0f, gz = 0.0f;
"""
)

_FORCE = """
                const F4 moving = READ4(motion, t);
                const float per_q = PER_ROOT(LARGER(r2, nearest2)), q = r2 * per_q;
                const float a = 1.0f - q, b = LARGER(0.5f - q, 0.0f);
                const float steep = smoothing.gradient * (a * a - smoothing.kappa * (b * b)) * per_q;
                const float share = other.w * load_of(t);
                const float press = (own_push + loads[2 * t]) * steep * share;
                const float drag = viscosity * (own.w * moving.w)
                                 * (smoothing.laplacian * a + smoothing.morris * steep) * share;
                gx -= press * dx + drag * (own.x - moving.x);
                gy -= press * dy + drag * (own.y - moving.y);
                gz -= press * dz + drag * (own.z - moving.z);
"""

_FORCE_END = f"""
{_HALF_POWER}
const float k = here.w * half_power, sx = sum_of(gx), sy = sum_of(gy), sz = sum_of(gz);
const auto g = live.gravity;
return wp::vec_t<4, wp::float32>(k * sx + g[0], k * sy + g[1], k * sz + g[2], 0.0f);
"""


def _density(walk: str) -> str:
    return source(walk, _DENSITY_START, _DENSITY, _DENSITY_END, square=_SQUARE, reach2="farthest2")


def _force(walk: str) -> str:
    return source(walk, _FORCE_START, _FORCE, _FORCE_END, square=_SQUARE, reach2="farthest2")


@wp.func_native(_density(WIDE))
def wide_density(
    grid: GridView,
    smoothing: Smoothing,
    farthest2: float,
    s: int,
    lane: int,
    team: int,
    place: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
) -> float: ...


@wp.func_native(_density(LONG))
def long_density(
    grid: GridView,
    smoothing: Smoothing,
    farthest2: float,
    s: int,
    lane: int,
    team: int,
    place: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
) -> float: ...


@wp.func_native(_force(WIDE))
def wide_force(
    grid: GridView,
    smoothing: Smoothing,
    farthest2: float,
    live: Live,
    s: int,
    lane: int,
    team: int,
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
) -> wp.vec4: ...


@wp.func_native(_force(LONG))
def long_force(
    grid: GridView,
    smoothing: Smoothing,
    farthest2: float,
    live: Live,
    s: int,
    lane: int,
    team: int,
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
) -> wp.vec4: ...


@wp.kernel
def sum_density_wide(
    first: int,
    # params
    team: int,
    grid: GridView,
    unit: Smoothing,
    farthest2: float,
    # in
    place: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
    # out
    density_out: wp.array(dtype=float),
):
    thread = first + wp.tid()
    s = thread // team
    if s >= sorted_count(grid):
        return
    density = wide_density(grid, unit, farthest2, s, thread % team, team, place, load)
    if thread % team == 0:
        density_out[s] = density


@wp.kernel
def sum_forces_wide(
    first: int,
    # params
    team: int,
    then_move: int,
    grid: GridView,
    unit: Smoothing,
    farthest2: float,
    live: wp.array(dtype=Live),
    # in
    load: wp.array(dtype=wp.vec2),
    # out
    fluid_out: Sorted,
    kept_out: Kept,
):
    thread = first + wp.tid()
    s = thread // team
    if thread == 0 and then_move != 0:
        kept_out.clock[0] = kept_out.clock[0] + wp.float64(live[0].dt)
    if s >= sorted_count(grid):
        if then_move != 0 and thread % team == 0:
            keep_lost(grid, s, fluid_out, kept_out)
        return
    f = fluid_out
    rate = wide_force(grid, unit, farthest2, live[0], s, thread % team, team, f.place, f.motion, load)
    if thread % team == 0:
        end_forces(live[0], s, then_move, rate, fluid_out, kept_out)


@wp.kernel
def sum_density_long(
    first: int,
    # params
    team: int,
    grid: GridView,
    unit: Smoothing,
    farthest2: float,
    # in
    place: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
    # out
    density_out: wp.array(dtype=float),
):
    thread = first + wp.tid()
    s = thread // team
    if s >= sorted_count(grid):
        return
    density = long_density(grid, unit, farthest2, s, thread % team, team, place, load)
    if thread % team == 0:
        density_out[s] = density


@wp.kernel
def sum_forces_long(
    first: int,
    # params
    team: int,
    then_move: int,
    grid: GridView,
    unit: Smoothing,
    farthest2: float,
    live: wp.array(dtype=Live),
    # in
    load: wp.array(dtype=wp.vec2),
    # out
    fluid_out: Sorted,
    kept_out: Kept,
):
    thread = first + wp.tid()
    s = thread // team
    if thread == 0 and then_move != 0:
        kept_out.clock[0] = kept_out.clock[0] + wp.float64(live[0].dt)
    if s >= sorted_count(grid):
        if then_move != 0 and thread % team == 0:
            keep_lost(grid, s, fluid_out, kept_out)
        return
    f = fluid_out
    rate = long_force(grid, unit, farthest2, live[0], s, thread % team, team, f.place, f.motion, load)
    if thread % team == 0:
        end_forces(live[0], s, then_move, rate, fluid_out, kept_out)


def find_density(stage: Stage, fluid: Fluid) -> None:
    f = fluid
    kernel = sum_density_wide if f.wide else sum_density_long
    how = [f.team, f.grid.view, f.extra["unit"], f.params.radius**2]
    stage.launch(kernel, f.team * f.capacity, [*how, f.place, f.extra["load"], f.density])


def find_forces(stage: Stage, fluid: Fluid, *, then_move: bool) -> None:
    f = fluid
    kernel = sum_forces_wide if f.wide else sum_forces_long
    how = [f.team, int(then_move), f.grid.view, f.extra["unit"], f.params.radius**2, f.live]
    stage.launch(kernel, f.team * f.capacity, [*how, f.extra["load"], sorted_arrays(f), kept_arrays(f)])
