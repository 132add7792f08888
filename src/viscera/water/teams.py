"""The two loops over neighbours for cuda, in C: several threads share a particle, and a step ends where its sums do.

The same sums as `density.sum_density` and `forces.sum_forces`, up to the last bits, and the same ends as
`density.find_pressure` and `forces.integrate`. `Fluid.team` threads share a particle: each takes every team-th
neighbour, and they add up by shuffles, always in the same order, so results are the same on every run.

Few particles are bound by latency. There (`wide`) a thread has one neighbour of each of the nine rows in flight at
once; with 16 or 32 threads per particle a row of three cells is read in one or two goes. Many particles are bound by
arithmetic, and only one candidate in seven is near enough: a warp in which any thread has a hit makes all wait. There
(`long`) a thread first marks up to 32 candidates in a word, and then goes through the marks, so that threads wait for
the longest list of hits and not for every candidate.

Pressure follows in the density kernel and the move in the force kernel where nothing stands between, so that a plain
step is a sort and two launches. Of `place` the density kernel writes the fourth number alone, which no density reads.
No images: periodic boxes take the plain kernels. On cpu the same source runs with a team of one, for tests.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, particle_count, sorted_count
from viscera.water.density import THINNEST, state_pressure
from viscera.water.periodic import front, read4
from viscera.water.smoothing import Smoothing
from viscera.water.state import Fluid, Live
from viscera.water.team_loops import long_density, long_force, wide_density, wide_force

wp.set_module_options({"enable_backward": False})


@wp.struct
class Sorted:
    """A fluid's arrays in sorted order; see `Fluid`."""

    tag: wp.array(dtype=wp.int32)
    before: wp.array(dtype=wp.vec3)
    held: wp.array(dtype=wp.vec4)
    place: wp.array(dtype=wp.vec4)
    motion: wp.array(dtype=wp.vec4)
    density: wp.array(dtype=float)
    pressure: wp.array(dtype=float)
    rate: wp.array(dtype=wp.vec4)


@wp.struct
class Kept:
    """What a step starts from and ends with."""

    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    tag: wp.array(dtype=wp.int32)
    kept_density: wp.array(dtype=float)
    clock: wp.array(dtype=wp.float64)


# Only the fourth number is written: other threads read the first three meanwhile.
@wp.func_native("reinterpret_cast<float*>(values.data + index)[3] = value;")
def write_fourth(values: wp.array(dtype=wp.vec4), index: int, value: float): ...


@wp.func
def end_density(live: Live, s: int, then_pressure: int, density: float, fluid_out: Sorted):
    fluid_out.density[s] = density
    if then_pressure != 0:
        p = state_pressure(live, density)
        inverse = 1.0 / density
        fluid_out.pressure[s] = p
        write_fourth(fluid_out.place, s, p * inverse * inverse)
        write_fourth(fluid_out.motion, s, inverse)


@wp.func
def end_forces(live: Live, s: int, then_move: int, rate: wp.vec4, fluid_out: Sorted, kept_out: Kept):
    who = fluid_out.tag[s]
    change = rate
    if who < 0:
        change = wp.vec4(0.0, 0.0, 0.0, rate[3])
    fluid_out.rate[s] = change
    if then_move != 0:
        start = read4(fluid_out.held, s)
        v = front(start) + live.dt * front(change)
        kept_out.position[s] = fluid_out.before[s] + live.dt * v
        kept_out.velocity[s] = v
        kept_out.tag[s] = who
        if live.continuity > 0.0:
            kept_out.kept_density[s] = wp.max(start[3] + live.dt * change[3], THINNEST * live.rest_density)


@wp.func
def keep_lost(grid: GridView, s: int, fluid: Sorted, kept_out: Kept):
    """As in `forces.integrate`."""
    if s < particle_count(grid):
        kept_out.position[s] = fluid.before[s]
        kept_out.velocity[s] = wp.vec3(0.0, 0.0, 0.0)
        kept_out.tag[s] = fluid.tag[s]


@wp.kernel
def sum_density_wide(
    first: int,
    # params
    team: int,
    then_pressure: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # out
    fluid_out: Sorted,
):
    thread = first + wp.tid()
    s = thread // team
    if s >= sorted_count(grid):
        return
    density = wide_density(grid, smoothing, live[0].mass, s, thread % team, team, fluid_out.place)
    if thread % team == 0:
        end_density(live[0], s, then_pressure, density, fluid_out)


@wp.kernel
def sum_density_long(
    first: int,
    # params
    team: int,
    then_pressure: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # out
    fluid_out: Sorted,
):
    thread = first + wp.tid()
    s = thread // team
    if s >= sorted_count(grid):
        return
    density = long_density(grid, smoothing, live[0].mass, s, thread % team, team, fluid_out.place)
    if thread % team == 0:
        end_density(live[0], s, then_pressure, density, fluid_out)


@wp.kernel
def sum_forces_wide(
    first: int,
    # params
    team: int,
    then_move: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
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
    rate = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if fluid_out.tag[s] >= 0 or live[0].continuity > 0.0:
        rate = wide_force(grid, smoothing, live[0], s, thread % team, team, fluid_out.place, fluid_out.motion)
    if thread % team == 0:
        end_forces(live[0], s, then_move, rate, fluid_out, kept_out)


@wp.kernel
def sum_forces_long(
    first: int,
    # params
    team: int,
    then_move: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
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
    rate = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if fluid_out.tag[s] >= 0 or live[0].continuity > 0.0:
        rate = long_force(grid, smoothing, live[0], s, thread % team, team, fluid_out.place, fluid_out.motion)
    if thread % team == 0:
        end_forces(live[0], s, then_move, rate, fluid_out, kept_out)


def find_density(stage: Stage, fluid: Fluid, *, then_pressure: bool) -> None:
    """Density by summation, and pressure with it where nothing else adds to density."""
    f, team = fluid, fluid.team
    kernel = sum_density_wide if f.wide else sum_density_long
    around = [team, int(then_pressure), f.grid.view, f.smoothing, f.live]
    stage.launch(kernel, team * f.capacity, [*around, sorted_arrays(f)])


def find_forces(stage: Stage, fluid: Fluid, *, then_move: bool) -> None:
    """Forces, and the move with them where nothing else adds to forces."""
    f, team = fluid, fluid.team
    kernel = sum_forces_wide if f.wide else sum_forces_long
    around = [team, int(then_move), f.grid.view, f.smoothing, f.live]
    stage.launch(kernel, team * f.capacity, [*around, sorted_arrays(f), kept_arrays(f)])


def sorted_arrays(fluid: Fluid) -> Any:
    f, view = fluid, Sorted()
    view.tag, view.before, view.held, view.place, view.motion = f.sorted_tag, f.grid.position, f.held, f.place, f.motion
    view.density, view.pressure, view.rate = f.density, f.pressure, f.rate
    return view


def kept_arrays(fluid: Fluid) -> Any:
    f, view = fluid, Kept()
    view.position, view.velocity, view.tag = f.position, f.velocity, f.tag
    view.kept_density, view.clock = f.kept_density, f.clock
    return view
