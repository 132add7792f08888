"""Density and forces among particles of several sizes: the plain loops, and how sizes are sorted along.

With u = 1/h, f = m u^(d/2), W and its slopes those of radius 1, and q = r √(u_i u_j) < 1:

    ρ_i = u_i^(d/2) Σ_j f_j W(q)
    dv_i/dt = u_i^(d/2 + 1) Σ_j f_j u_j [ −(p_i/ρ_i² + p_j/ρ_j²) W'(q)/q x_ij + μ/(ρ_i ρ_j) ∇²W_viscosity(q) v_ji ] + g

`sizes` says why; density.py and forces.py have the same among equals.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, cell_of, particle_count, row_range, sorted_count
from viscera.water.density import state_pressure
from viscera.water.periodic import front, read4
from viscera.water.smoothing import Smoothing, diffusion, slope, weight
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})


KEPT_OF_SIZES = ("level", "carried", "fresh")
"""What particles of several sizes keep between steps, in `Fluid.extra`; with `sorted_` before it, in sorted order."""


@wp.func
def half_power(u: float, layer: int) -> float:
    """u^(d/2); a grid of one layer is 2D."""
    p = u
    if layer > 0:
        p = u * wp.sqrt(u)
    return p


NEWBORN = wp.constant(2.0)
"""b of a particle that has not met its density yet: beside it stands the density it came from, not what it lacks."""
_GROWN = wp.constant(1.5)


@wp.func
def older(fresh: wp.vec2, dt: float, settling: float) -> wp.vec2:
    """How new a particle is after a step; a newborn stays so until it has met its density."""
    left = float(0.0)
    if settling > 0.0:
        left = fresh[0]
        if left <= _GROWN:
            left = wp.max(left - dt / settling, 0.0)
    return wp.vec2(left, fresh[1])


@wp.func
def met(fresh: wp.vec2, density: float) -> wp.vec2:
    """A newborn keeps what its density lacks of that it came from."""
    now = fresh
    if fresh[0] > _GROWN:
        now = wp.vec2(1.0, fresh[1] - density)
    return now


@wp.kernel
def sort_sizes(
    first: int,
    # params
    grid: GridView,
    table: wp.array(dtype=wp.vec2),
    settling: float,
    live: wp.array(dtype=Live),
    # in
    original: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
    carried: wp.array(dtype=wp.vec4),
    fresh: wp.array(dtype=wp.vec2),
    # out
    sorted_level_out: wp.array(dtype=wp.int32),
    sorted_carried_out: wp.array(dtype=wp.vec4),
    sorted_fresh_out: wp.array(dtype=wp.vec2),
    place_out: wp.array(dtype=wp.vec4),
    load_out: wp.array(dtype=wp.vec2),
):
    """The fourth number of a place is u here: every neighbour is asked for it."""
    s = first + wp.tid()
    if s < particle_count(grid):
        mine = level[original[s]]
        sorted_level_out[s] = mine
        sorted_carried_out[s] = carried[original[s]]
        sorted_fresh_out[s] = older(fresh[original[s]], live[0].dt, settling)
        x = place_out[s]
        place_out[s] = wp.vec4(x[0], x[1], x[2], table[mine][0])
        load_out[s] = wp.vec2(0.0, table[mine][1])


@wp.kernel
def keep_levels(
    first: int,
    # in
    count: wp.array(dtype=wp.int32),
    sorted_level: wp.array(dtype=wp.int32),
    sorted_carried: wp.array(dtype=wp.vec4),
    sorted_fresh: wp.array(dtype=wp.vec2),
    # out
    level_out: wp.array(dtype=wp.int32),
    carried_out: wp.array(dtype=wp.vec4),
    fresh_out: wp.array(dtype=wp.vec2),
):
    """Who comes in later, at the end of the arrays, is of the largest size and does not turn."""
    s = first + wp.tid()
    mine = wp.int32(0)
    turning = wp.vec4(0.0, 0.0, 0.0, 0.0)
    young = wp.vec2(0.0, 0.0)
    if s < count[0]:
        mine = sorted_level[s]
        turning = sorted_carried[s]
        young = sorted_fresh[s]
    level_out[s] = mine
    carried_out[s] = turning
    fresh_out[s] = young


@wp.func
def evened(evening: wp.array(dtype=wp.vec2), level: int, density: float) -> float:
    """What the smallest size would read [kg/m³]; never below half of it, as of a particle on its own."""
    one = evening[level]
    return wp.max(one[0] * density + one[1], 0.5 * density)


@wp.func
def settled_pressure(live: Live, fresh: wp.vec2, density: float) -> float:
    return state_pressure(live, density + fresh[0] * fresh[1])


@wp.func
def thickness(fresh: wp.vec2, thickening: float) -> float:
    """√k: both ends of a pair have their share in its viscosity."""
    return wp.sqrt(1.0 + fresh[0] * (thickening - 1.0))


@wp.kernel
def find_pressure(
    first: int,
    # params
    grid: GridView,
    thickening: float,
    evening: wp.array(dtype=wp.vec2),
    live: wp.array(dtype=Live),
    # in
    level: wp.array(dtype=wp.int32),
    # out
    density_out: wp.array(dtype=float),
    fresh_out: wp.array(dtype=wp.vec2),
    pressure_out: wp.array(dtype=float),
    load_out: wp.array(dtype=wp.vec2),
    motion_out: wp.array(dtype=wp.vec4),
):
    """As `density.find_pressure`, of evened densities; p/ρ² goes with the load, and the fourth number of a motion is
    √k/ρ."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    density = evened(evening, level[s], density_out[s])
    density_out[s] = density
    inverse = 1.0 / density
    fresh = met(fresh_out[s], density)
    fresh_out[s] = fresh
    p = settled_pressure(live[0], fresh, density)
    pressure_out[s] = p
    v = motion_out[s]
    load_out[s] = wp.vec2(p * inverse * inverse, load_out[s][1])
    motion_out[s] = wp.vec4(v[0], v[1], v[2], inverse * thickness(fresh, thickening))


@wp.kernel
def sum_density(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    # in
    place: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
    # out
    density_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = front(read4(place, s))
    own = place[s][3]
    total = float(0.0)
    cell = cell_of(grid, here)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            other = read4(place, t)
            offset = here - front(other)
            total += load[t][1] * weight(unit, wp.dot(offset, offset) * (own * other[3]))
    density_out[s] = half_power(own, grid.layer) * total


@wp.kernel
def sum_forces(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    load: wp.array(dtype=wp.vec2),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    own_place = read4(place, s)
    own_motion = read4(motion, s)
    here = front(own_place)
    v = front(own_motion)
    own = own_place[3]
    own_push = load[s][0]
    pull = wp.vec3(0.0, 0.0, 0.0)
    cell = cell_of(grid, here)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            other = read4(place, t)
            offset = here - front(other)
            q2 = wp.dot(offset, offset) * (own * other[3])
            if q2 < 1.0:
                moving = read4(motion, t)
                theirs = load[t]
                q = wp.sqrt(q2)
                steep = slope(unit, q)
                drag = live[0].viscosity * (own_motion[3] * moving[3]) * diffusion(unit, q, steep)
                push = (own_push + theirs[0]) * steep
                pull -= (other[3] * theirs[1]) * (push * offset + drag * (v - front(moving)))
    pull = (own * half_power(own, grid.layer)) * pull + live[0].gravity
    rate_out[s] = wp.vec4(pull[0], pull[1], pull[2], 0.0)


def sort_levels(stage: Stage, fluid: Fluid) -> None:
    """After a sort."""
    f, e = fluid, fluid.extra
    sizes = f.params.sizes
    how = [f.grid.view, e["size_table"], 0.0 if sizes is None else sizes.settling, f.live]
    known = [f.grid.original, *(e[name] for name in KEPT_OF_SIZES)]
    out = [*(e[f"sorted_{name}"] for name in KEPT_OF_SIZES), f.place, e["load"]]
    stage.launch(sort_sizes, f.capacity, [*how, *known, *out])


def move_levels(stage: Stage, fluid: Fluid) -> None:
    """At the end of a step: all that is kept is in the order of its sort."""
    e = fluid.extra
    known = [e[f"sorted_{name}"] for name in KEPT_OF_SIZES]
    stage.launch(keep_levels, fluid.capacity, [fluid.count, *known, *(e[name] for name in KEPT_OF_SIZES)])
