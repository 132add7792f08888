"""Density and forces among particles of several sizes: the plain loops, and how sizes are sorted along.

With u = 1/h, f = m u^(d/2), W and its slopes those of radius 1, and q = r √(u_i u_j) < 1:

    ρ_i = u_i^(d/2) Σ_j f_j W(q)
    dv_i/dt = u_i^(d/2 + 1) Σ_j f_j u_j [ −(p_i/ρ_i² + p_j/ρ_j²) W'(q)/q x_ij + μ/(ρ_i ρ_j) ∇²W_viscosity(q) v_ji ] + g

`sizes` says why; density.py and forces.py have the same among equals.
"""

from __future__ import annotations

import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, cell_of, particle_count, row_range, sorted_count
from viscera.water.periodic import front, read4
from viscera.water.smoothing import Smoothing, diffusion, slope, weight
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})


@wp.func
def half_power(u: float, layer: int) -> float:
    """u^(d/2); a grid of one layer is 2D."""
    p = u
    if layer > 0:
        p = u * wp.sqrt(u)
    return p


@wp.kernel
def sort_sizes(
    first: int,
    # params
    grid: GridView,
    table: wp.array(dtype=wp.vec2),
    # in
    original: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
    carried: wp.array(dtype=wp.vec4),
    # out
    sorted_level_out: wp.array(dtype=wp.int32),
    sorted_carried_out: wp.array(dtype=wp.vec4),
    size_out: wp.array(dtype=wp.vec2),
):
    s = first + wp.tid()
    if s < particle_count(grid):
        mine = level[original[s]]
        sorted_level_out[s] = mine
        sorted_carried_out[s] = carried[original[s]]
        size_out[s] = table[mine]


@wp.kernel
def sort_sizes_split(
    first: int,
    # params
    grid: GridView,
    table: wp.array(dtype=wp.vec2),
    # in
    original: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
    carried: wp.array(dtype=wp.vec4),
    # out
    sorted_level_out: wp.array(dtype=wp.int32),
    sorted_carried_out: wp.array(dtype=wp.vec4),
    size_out: wp.array(dtype=wp.vec2),
    inverse_out: wp.array(dtype=float),
    load_out: wp.array(dtype=float),
    pull_out: wp.array(dtype=float),
):
    """Also one array each of u, f and f u, for the loops in C."""
    s = first + wp.tid()
    if s < particle_count(grid):
        mine = level[original[s]]
        here = table[mine]
        sorted_level_out[s] = mine
        sorted_carried_out[s] = carried[original[s]]
        size_out[s] = here
        inverse_out[s] = here[0]
        load_out[s] = here[1]
        pull_out[s] = here[0] * here[1]


@wp.kernel
def keep_levels(
    first: int,
    # in
    count: wp.array(dtype=wp.int32),
    sorted_level: wp.array(dtype=wp.int32),
    sorted_carried: wp.array(dtype=wp.vec4),
    # out
    level_out: wp.array(dtype=wp.int32),
    carried_out: wp.array(dtype=wp.vec4),
):
    """Who comes in later, at the end of the arrays, is of the largest size and does not turn."""
    s = first + wp.tid()
    mine = wp.int32(0)
    turning = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if s < count[0]:
        mine = sorted_level[s]
        turning = sorted_carried[s]
    level_out[s] = mine
    carried_out[s] = turning


@wp.kernel
def sum_density(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    # in
    place: wp.array(dtype=wp.vec4),
    size: wp.array(dtype=wp.vec2),
    # out
    density_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = front(read4(place, s))
    own = size[s][0]
    total = float(0.0)
    cell = cell_of(grid, here)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            offset = here - front(read4(place, t))
            other = size[t]
            total += other[1] * weight(unit, wp.dot(offset, offset) * (own * other[0]))
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
    size: wp.array(dtype=wp.vec2),
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
    own = size[s][0]
    pull = wp.vec3(0.0, 0.0, 0.0)
    cell = cell_of(grid, here)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            other = read4(place, t)
            theirs = size[t]
            offset = here - front(other)
            q2 = wp.dot(offset, offset) * (own * theirs[0])
            if q2 < 1.0:
                moving = read4(motion, t)
                q = wp.sqrt(q2)
                steep = slope(unit, q)
                drag = live[0].viscosity * (own_motion[3] * moving[3]) * diffusion(unit, q, steep)
                push = (own_place[3] + other[3]) * steep
                pull -= (theirs[0] * theirs[1]) * (push * offset + drag * (v - front(moving)))
    pull = (own * half_power(own, grid.layer)) * pull + live[0].gravity
    rate_out[s] = wp.vec4(pull[0], pull[1], pull[2], 0.0)


def sort_levels(stage: Stage, fluid: Fluid) -> None:
    """After a sort."""
    f, e = fluid, fluid.extra
    kernel = sort_sizes_split if f.native else sort_sizes
    known = [f.grid.view, e["size_table"], f.grid.original, e["level"], e["carried"]]
    stage.launch(kernel, f.capacity, [*known, e["sorted_level"], e["sorted_carried"], e["size"], *e["size_axes"]])


def move_levels(stage: Stage, fluid: Fluid) -> None:
    """At the end of a step: all that is kept is in the order of its sort."""
    e = fluid.extra
    known = [fluid.count, e["sorted_level"], e["sorted_carried"]]
    stage.launch(keep_levels, fluid.capacity, [*known, e["level"], e["carried"]])
