"""Drops that feel each other in the air: they hold together, and merge.

Two drops r apart push each other along the line between them with the force of Lennard and Jones, of depth ε at r₀, and
below r_s = 0.9 r₀ with a cubic that meets it there in value and slope and stays finite (Andersson §3.2.6, figure 3.6,
which draws both and prints neither; 3.7 is a boundary's):

    F(r) = 12 ε/r₀ ((r₀/r)¹³ − (r₀/r)⁷)                       r_s ≤ r,   times a switch that ends it at r_c = 2.5 r₀
    F(r) = F(r_s) + F'(r_s) (r³/r_s² − r_s)/3                 r < r_s:   F(0) = F(r_s) − F'(r_s) r_s/3

and slow what moves along it, −c m (v_rel·r̂) (1 − r/r_c). Both are equal and opposite, so momentum stays. ε = ½ m c_e²
with the mean mass of the pair; r₀ is the mean of both diameters. A step is split into `substeps` of a kick and a drift
(leap-frog, as there); √72 c_e √(½)/r₀ of them must be small enough: more is refused.

Two drops that touch (r < ½ (D_i + D_j)), with velocities that differ by less than `merge_speed`, each the other's
nearest, become one (Murta and Miller): volume exact, momentum and middle of mass kept.
"""

# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.blood.drops.impact import diameter_of
from viscera.blood.views import FLYING, MERGED, DropView
from viscera.neighbors.cells import GridView, cell_of, row_range

wp.set_module_options({"enable_backward": False})

PATCH = wp.constant(0.9)
"""r_s/r₀"""
REACH = wp.constant(2.5)
"""r_c/r₀"""
FADES = wp.constant(2.0)
"""Where the switch begins, in r₀."""


@wp.func
def _steep(s: float) -> float:
    """F r₀/ε at r = s r₀."""
    inverse = 1.0 / s
    six = inverse * inverse * inverse * inverse * inverse * inverse
    return 12.0 * inverse * (six * six - six)


@wp.func
def pair_force(s: float) -> float:
    """F r₀/ε at r = s r₀, positive where drops push each other away."""
    result = float(0.0)
    if s < PATCH:
        inverse = 1.0 / PATCH
        six = inverse * inverse * inverse * inverse * inverse * inverse
        slope = 12.0 * inverse * inverse * (7.0 * six - 13.0 * six * six)
        result = _steep(PATCH) + slope * (s * s * s / (PATCH * PATCH) - PATCH) / 3.0
    elif s < REACH:
        fades = wp.clamp((REACH - s) / (REACH - FADES), 0.0, 1.0)
        result = _steep(s) * fades * fades * (3.0 - 2.0 * fades)
    return result


@wp.kernel
def kick(
    first: int,
    # params
    dt: float,
    cohesion: wp.array(dtype=wp.vec2),
    grid: GridView,
    # in
    original: wp.array(dtype=wp.int32),
    drops: DropView,
    # out
    velocity_out: wp.array(dtype=wp.vec3),
):
    """Velocities after the forces of one substep; `cohesion` is c_e [m/s] and c [1/s]."""
    i = first + wp.tid()
    if i >= drops.count[0]:
        return
    v = drops.velocity[i]
    if drops.fate[i] == FLYING and drops.late[i] <= 0.0:
        x = drops.position[i]
        own = float(drops.volume[i])
        size = diameter_of(drops.volume[i])
        gained = wp.vec3(0.0, 0.0, 0.0)
        cell = cell_of(grid, x)
        for row in range(grid.rows):
            begin, end = row_range(grid, cell, row)
            for t in range(begin, end):
                j = original[t]
                if j != i and drops.fate[j] == FLYING and drops.late[j] <= 0.0:
                    apart = 0.5 * (size + diameter_of(drops.volume[j]))
                    away = x - drops.position[j]
                    r = wp.length(away)
                    if r < REACH * apart:
                        # At one place there is no line between them; they part along a fixed one.
                        line = wp.vec3(wp.where(i < j, 1.0, -1.0), 0.0, 0.0)
                        if r > 1.0e-9:
                            line = away / r
                        mass = 0.5 * (own + float(drops.volume[j]))
                        push = 0.5 * cohesion[0][0] * cohesion[0][0] * pair_force(r / apart) / apart
                        slows = cohesion[0][1] * wp.dot(v - drops.velocity[j], line) * (1.0 - r / (REACH * apart))
                        gained += line * ((push - slows) * mass / own)
        v = v + dt * gained
    velocity_out[i] = v


@wp.kernel
def take_velocity(
    first: int,
    # in
    velocity: wp.array(dtype=wp.vec3),
    # out
    drops_out: DropView,
):
    i = first + wp.tid()
    if i < drops_out.count[0]:
        drops_out.velocity[i] = velocity[i]


@wp.kernel
def find_partner(
    first: int,
    # params
    merging: wp.array(dtype=wp.vec2),
    grid: GridView,
    # in
    original: wp.array(dtype=wp.int32),
    drops: DropView,
    # out
    partner_out: wp.array(dtype=wp.int32),
):
    """The nearest drop that it touches and flies with, −1; `merging` is the largest difference of velocity [m/s] and
    the largest volume [pL]. Of two as near, the one with the lower number."""
    i = first + wp.tid()
    partner_out[i] = -1
    if i >= drops.count[0]:
        return
    if drops.fate[i] != FLYING or drops.late[i] > 0.0:
        return
    x = drops.position[i]
    nearest = float(1.0e30)
    best = int(-1)
    cell = cell_of(grid, x)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            j = original[t]
            if j != i and drops.fate[j] == FLYING and drops.late[j] <= 0.0:
                r = wp.length(x - drops.position[j])
                touch = 0.5 * (diameter_of(drops.volume[i]) + diameter_of(drops.volume[j]))
                alike = wp.length(drops.velocity[i] - drops.velocity[j]) < merging[0][0]
                fits = float(drops.volume[i]) + float(drops.volume[j]) <= merging[0][1]
                if r < touch and alike and fits and (r < nearest or (r == nearest and j < best)):
                    nearest = r
                    best = j
    partner_out[i] = best


@wp.kernel
def merge(
    first: int,
    # in
    partner: wp.array(dtype=wp.int32),
    # out
    drops_out: DropView,
):
    """Drop i takes its partner in, where each is the other's; the lower number stays."""
    i = first + wp.tid()
    if i >= drops_out.count[0]:
        return
    j = partner[i]
    if j > i and partner[wp.max(j, 0)] == i:
        a = float(drops_out.volume[i])
        b = float(drops_out.volume[j])
        share = b / (a + b)
        drops_out.position[i] = drops_out.position[i] + share * (drops_out.position[j] - drops_out.position[i])
        drops_out.velocity[i] = drops_out.velocity[i] + share * (drops_out.velocity[j] - drops_out.velocity[i])
        drops_out.fluid[i] = drops_out.fluid[i] + share * (drops_out.fluid[j] - drops_out.fluid[i])
        drops_out.volume[i] = drops_out.volume[i] + drops_out.volume[j]
        drops_out.fate[j] = MERGED
