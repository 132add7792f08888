"""Density and pressure of particles.

    ρ_i = Σ_j m W(x_i − x_j)                                        Grahn eq. 3.4, Andersson eq. 2.15
    dρ_i/dt = Σ_j m (v_i − v_j)·∇W                                  Andersson eq. 3.3; summed in forces.py
    p = c² (ρ − ρ₀)          or          p = (ρ₀c²/γ) ((ρ/ρ₀)^γ − 1)        Grahn eq. 3.13, Andersson eq. 2.17

Differs from the sources in that a pressure below 0 is cut off unless `suction` is set: particles at a free surface have
too few neighbours, and would be sucked together; and in that density by continuity never falls below `THINNEST`.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.neighbors.cells import GridView, cell_of, particle_count, row_range, sorted_count
from viscera.water.periodic import front, image, image_count, near_row, reaches, read4
from viscera.water.smoothing import Smoothing, weight
from viscera.water.state import LOST, Images, Live

wp.set_module_options({"enable_backward": False})

THINNEST = wp.constant(0.1)
"""Of ρ₀: density by continuity of particles that fly apart would go on to 0 and below, and pressure divides by it."""
_LOST = wp.constant(LOST)


@wp.kernel
def sort_particles(
    first: int,
    # params
    grid: GridView,
    counts_lost: int,
    live: wp.array(dtype=Live),
    # in
    original: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    kept_density: wp.array(dtype=float),
    previous_rate: wp.array(dtype=wp.vec4),
    # out
    place_out: wp.array(dtype=wp.vec4),
    motion_out: wp.array(dtype=wp.vec4),
    held_out: wp.array(dtype=wp.vec4),
    sorted_tag_out: wp.array(dtype=wp.int32),
    density_out: wp.array(dtype=float),
    report_out: wp.array(dtype=wp.int32),
):
    """Leap-frog predicts what forces depend on, half a step on (Andersson eq. 3.9). Those whose position is not finite
    come last; only who they are is kept, and how many (`counts_lost`; where there is a drain, it counts them)."""
    s = first + wp.tid()
    if s == 0 and counts_lost != 0:
        report_out[_LOST] = particle_count(grid) - sorted_count(grid)
    if s >= particle_count(grid):
        return
    i = original[s]
    sorted_tag_out[s] = tag[i]
    if s >= sorted_count(grid):
        return
    x = position[i]
    v = velocity[i]
    half = 0.5 * live[0].dt * live[0].leapfrog
    kept = float(0.0)
    if live[0].continuity > 0.0:
        kept = kept_density[i]
    change = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if half > 0.0:
        change = half * previous_rate[i]
    density_out[s] = wp.max(kept + change[3], THINNEST * live[0].rest_density * live[0].continuity)
    place_out[s] = wp.vec4(x[0], x[1], x[2], 0.0)
    motion_out[s] = wp.vec4(v[0] + change[0], v[1] + change[1], v[2] + change[2], 0.0)
    held_out[s] = wp.vec4(v[0], v[1], v[2], kept)


@wp.kernel
def sum_density(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    # out
    density_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = front(read4(place, s))
    total = float(0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                if not near_row(grid, there, cell, row, smoothing.radius2):
                    end = begin
                for t in range(begin, end):
                    offset = there - front(read4(place, t))
                    total += weight(smoothing, wp.dot(offset, offset))
    density_out[s] = live[0].mass * total


@wp.func
def state_pressure(live: Live, density: float) -> float:
    """The equation of state [Pa]."""
    p = float(0.0)
    if live.equation == 0:
        p = live.stiffness * (density - live.rest_density)
    elif live.equation == 1:
        compressed = density / live.rest_density
        if live.gamma == 7.0:
            square = compressed * compressed
            p = live.stiffness * (square * square * square * compressed - 1.0)
        else:
            p = live.stiffness * (wp.pow(compressed, live.gamma) - 1.0)
    return wp.max(p, live.lowest) + live.background


@wp.kernel
def find_pressure(
    first: int,
    # params
    grid: GridView,
    live: wp.array(dtype=Live),
    # in
    density: wp.array(dtype=float),
    # out
    pressure_out: wp.array(dtype=float),
    place_out: wp.array(dtype=wp.vec4),
    motion_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    p = state_pressure(live[0], density[s])
    inverse = 1.0 / density[s]
    pressure_out[s] = p
    x = place_out[s]
    v = motion_out[s]
    place_out[s] = wp.vec4(x[0], x[1], x[2], p * inverse * inverse)
    motion_out[s] = wp.vec4(v[0], v[1], v[2], inverse)
