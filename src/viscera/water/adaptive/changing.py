"""Splitting and merging: particles become others, and nothing is lost.

    split    m/n each, at x + d_k with Σ d_k = 0, with v + ω × d_k                Elmasdotter eq. 3.37–3.39
    merge    the sum of masses, at the mean of places, with the mean of velocities            eq. 3.40–3.43

Mass is kept exactly (whole quanta), its centre and momentum to rounding. A merged particle turns: what its members had
of angular momentum about their middle,

    S = Σ S_k + m Σ (x_k − x̄) × (v_k − v̄),

stays with it. When it splits, the children get it back as speed, ω = S/(m Σ d²), and share what is left of it. So
angular momentum is kept to rounding too. The source loses it.

Children lie on a small figure (a pair, a triangle, … on a sphere), turned by chance that follows from the particle's
tag; a pair lies across S, so that it gets all of it back.

The particles are written anew, in their order, each in the place that a sum over all before it gives: no holes, and the
same on every device. A split that would not fit into the capacity does not happen.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import math

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.water.adaptive.matching import Merging, in_groups
from viscera.water.mixed import NEWBORN
from viscera.water.state import CREATED, Fluid

wp.set_module_options({"enable_backward": False})

SPLIT = wp.constant(1)
_CREATED = wp.constant(CREATED)


@wp.struct
class Particles:
    """What a particle has between two steps."""

    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    tag: wp.array(dtype=wp.int32)
    level: wp.array(dtype=wp.int32)
    carried: wp.array(dtype=wp.vec4)
    """Angular momentum about itself [kg·m²/s; kg·m/s in 2D], and the size it is drawn with, from 0 for the largest."""
    fresh: wp.array(dtype=wp.vec2)
    """How new it is, from 1 to 0, and what its density lacks [kg/m³]; newborns have the density they came from: see
    sizes.py."""
    density: wp.array(dtype=float)
    pressure: wp.array(dtype=float)


@wp.kernel
def plan_in_order(
    # params
    children: int,
    capacity: int,
    # in
    count: wp.array(dtype=wp.int32),
    leader: wp.array(dtype=wp.int32),
    # out
    wish_out: wp.array(dtype=wp.int32),
    births_out: wp.array(dtype=wp.int32),
    heirs_out: wp.array(dtype=wp.int32),
    ends_out: wp.array(dtype=wp.int32),
    totals_out: wp.array(dtype=wp.int32),
):
    """One thread, for cpu: what `count_births`, `count_heirs` and two sums do for cuda."""
    births = wp.int32(0)
    end = wp.int32(0)
    changes = wp.int32(0)
    for s in range(count[0]):
        heirs = wp.int32(1)
        if wish_out[s] == SPLIT:
            births += children - 1
            if count[0] + births <= capacity:
                heirs = children
            else:
                wish_out[s] = 0
        elif leader[s] >= 0 and leader[s] != s:
            heirs = 0
        if heirs != 1:
            changes = 1
        end += heirs
        births_out[s] = births
        heirs_out[s] = heirs
        ends_out[s] = end
    totals_out[0] = end
    totals_out[1] = births
    totals_out[2] = changes


@wp.kernel
def count_births(
    first: int,
    # params
    children: int,
    # in
    count: wp.array(dtype=wp.int32),
    wish: wp.array(dtype=wp.int32),
    # out
    births_out: wp.array(dtype=wp.int32),
):
    s = first + wp.tid()
    born = wp.int32(0)
    if s < count[0] and wish[s] == SPLIT:
        born = children - 1
    births_out[s] = born


@wp.kernel
def count_heirs(
    first: int,
    # params
    children: int,
    capacity: int,
    # in
    count: wp.array(dtype=wp.int32),
    births: wp.array(dtype=wp.int32),
    leader: wp.array(dtype=wp.int32),
    # out
    wish_out: wp.array(dtype=wp.int32),
    heirs_out: wp.array(dtype=wp.int32),
):
    """How many particles there are in the place of each: one, its children, or none where it follows another."""
    s = first + wp.tid()
    heirs = wp.int32(0)
    if s < count[0]:
        heirs = 1
        if wish_out[s] == SPLIT:
            if count[0] + births[s] <= capacity:
                heirs = children
            else:
                wish_out[s] = 0
        elif leader[s] >= 0 and leader[s] != s:
            heirs = 0
    heirs_out[s] = heirs


@wp.func
def turned(tag: int, flat: int, spin: wp.vec3) -> wp.quat:
    """By chance; with two children (along x) in space, across the spin."""
    state = wp.rand_init(1097, tag)
    if flat != 0:
        return wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), 2.0 * wp.pi * wp.randf(state))
    # Evenly on the sphere: its height along an axis is even.
    height = 2.0 * wp.randf(state) - 1.0
    around = 2.0 * wp.pi * wp.randf(state)
    rim = wp.sqrt(wp.max(1.0 - height * height, 0.0))
    way = wp.vec3(rim * wp.cos(around), rim * wp.sin(around), height)
    strength = wp.length(spin)
    if strength > 0.0:
        across = wp.cross(spin / strength, way)
        if wp.length(across) > 1.0e-3:
            way = wp.normalize(across)
    angle = wp.acos(wp.clamp(way[0], -1.0, 1.0))
    axis = wp.cross(wp.vec3(1.0, 0.0, 0.0), way)
    if wp.length(axis) < 1.0e-6:
        return wp.quat(0.0, 0.0, 0.0, 1.0)
    return wp.quat_from_axis_angle(wp.normalize(axis), angle) * wp.quat_from_axis_angle(
        wp.vec3(1.0, 0.0, 0.0), 2.0 * wp.pi * wp.randf(state)
    )


@wp.func
def felt_density(now: Particles, s: int) -> float:
    """From which its pressure follows [kg/m³]."""
    fresh = now.fresh[s]
    density = now.density[s] + fresh[0] * fresh[1]
    if fresh[0] == NEWBORN:
        density = fresh[1]
    return density


@wp.func
def split_one(
    s: int, at: int, tag: int, flat: int, figure: wp.array(dtype=wp.vec3), reach: wp.array(dtype=float),
    masses: wp.array(dtype=float), now: Particles, next_out: Particles,
):  # fmt: skip
    """Child 0 keeps the tag, the others get `tag` and those after it."""
    children = figure.shape[0]
    level = now.level[s] + 1
    mass = masses[level]
    carried = now.carried[s]
    spin = wp.vec3(carried[0], carried[1], carried[2])
    turn = turned(now.tag[s], flat, spin)
    size = reach[level]
    density = felt_density(now, s)
    inertia = mass * float(children) * size * size
    omega = spin / inertia
    left = spin
    for k in range(children):
        way = size * wp.quat_rotate(turn, figure[k])
        left -= mass * wp.cross(way, wp.cross(omega, way))
    left = left / float(children)
    for k in range(children):
        way = size * wp.quat_rotate(turn, figure[k])
        next_out.position[at + k] = now.position[s] + way
        next_out.velocity[at + k] = now.velocity[s] + wp.cross(omega, way)
        next_out.tag[at + k] = wp.where(k == 0, now.tag[s], tag + k - 1)
        next_out.level[at + k] = level
        next_out.carried[at + k] = wp.vec4(left[0], left[1], left[2], carried[3])
        next_out.fresh[at + k] = wp.vec2(NEWBORN, density)
        next_out.density[at + k] = now.density[s]
        next_out.pressure[at + k] = now.pressure[s]


@wp.func
def merge_some(
    s: int,
    at: int,
    children: int,
    follower: wp.array(dtype=wp.int32),
    masses: wp.array(dtype=float),
    now: Particles,
    next_out: Particles,
):
    share = 1.0 / float(children)
    way = wp.vec3(0.0, 0.0, 0.0)
    velocity = wp.vec3(0.0, 0.0, 0.0)
    seen = float(0.0)
    pressure = float(0.0)
    density = float(0.0)
    t = s
    while t >= 0:
        way += share * (now.position[t] - now.position[s])
        velocity += share * (now.velocity[t] - now.velocity[s])
        seen += share * now.carried[t][3]
        pressure += share * now.pressure[t]
        density += share * felt_density(now, t)
        t = follower[t]
    middle = now.position[s] + way
    drift = now.velocity[s] + velocity
    mass = masses[now.level[s]]
    spin = wp.vec3(0.0, 0.0, 0.0)
    t = s
    while t >= 0:
        own = now.carried[t]
        spin += wp.vec3(own[0], own[1], own[2])
        spin += mass * wp.cross(now.position[t] - middle, now.velocity[t] - drift)
        t = follower[t]
    next_out.position[at] = middle
    next_out.velocity[at] = drift
    next_out.tag[at] = now.tag[s]
    next_out.level[at] = now.level[s] - 1
    next_out.carried[at] = wp.vec4(spin[0], spin[1], spin[2], seen)
    next_out.fresh[at] = wp.vec2(NEWBORN, density)
    next_out.density[at] = now.density[s]
    next_out.pressure[at] = pressure


@wp.func
def copy_one(s: int, at: int, now: Particles, next_out: Particles):
    next_out.position[at] = now.position[s]
    next_out.velocity[at] = now.velocity[s]
    next_out.tag[at] = now.tag[s]
    next_out.level[at] = now.level[s]
    next_out.carried[at] = now.carried[s]
    next_out.fresh[at] = now.fresh[s]
    next_out.density[at] = now.density[s]
    next_out.pressure[at] = now.pressure[s]


@wp.kernel
def change(
    first: int,
    # params
    group: int,
    flat: int,
    figure: wp.array(dtype=wp.vec3),
    reach: wp.array(dtype=float),
    masses: wp.array(dtype=float),
    # in
    count: wp.array(dtype=wp.int32),
    report: wp.array(dtype=wp.int32),
    births: wp.array(dtype=wp.int32),
    ends: wp.array(dtype=wp.int32),
    heirs: wp.array(dtype=wp.int32),
    totals: wp.array(dtype=wp.int32),
    merging: Merging,
    now: Particles,
    # out
    next_out: Particles,
):
    if totals[2] == 0:
        return
    start = (first + wp.tid()) * group
    children = figure.shape[0]
    for s in range(start, wp.min(start + group, count[0])):
        at = ends[s] - heirs[s]
        if heirs[s] > 1:
            tag = report[_CREATED] + births[s] - (children - 1)
            split_one(s, at, tag, flat, figure, reach, masses, now, next_out)
        elif heirs[s] == 1 and merging.leader[s] == s:
            merge_some(s, at, children, merging.follower, masses, now, next_out)
        elif heirs[s] == 1:
            copy_one(s, at, now, next_out)


@wp.kernel
def total(
    # in
    births: wp.array(dtype=wp.int32),
    ends: wp.array(dtype=wp.int32),
    # out
    totals_out: wp.array(dtype=wp.int32),
):
    """Particles after the changes, births asked for, and whether there is anything to do."""
    last = ends.shape[0] - 1
    totals_out[0] = ends[last]
    totals_out[1] = births[last]
    totals_out[2] = 1


@wp.kernel
def finish(
    first: int,
    # params
    group: int,
    # in
    totals: wp.array(dtype=wp.int32),
    next: Particles,
    # out
    now_out: Particles,
    count_out: wp.array(dtype=wp.int32),
    report_out: wp.array(dtype=wp.int32),
):
    start = (first + wp.tid()) * group
    if totals[2] == 0:
        return
    for s in range(start, wp.min(start + group, now_out.level.shape[0])):
        if s < totals[0]:
            copy_one(s, s, next, now_out)
        else:
            now_out.level[s] = 0
            now_out.carried[s] = wp.vec4(0.0, 0.0, 0.0, 0.0)
            now_out.fresh[s] = wp.vec2(0.0, 0.0)
    if start == 0:
        count_out[0] = totals[0]
        report_out[_CREATED] = report_out[_CREATED] + totals[1]


def child_figure(children: int, dimension: int) -> np.ndarray:
    """Where the children lie about their middle, each at distance 1, with sum 0: float64 (children, 3)."""
    k = np.arange(children)
    angle = 2.0 * math.pi * k / children
    ring = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    if dimension == 2 or children <= 3:
        return ring
    cube = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]) / math.sqrt(3.0)
    if children == 8:
        return cube
    if children == 4:
        return cube[[0, 3, 5, 6]]
    poles = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    # A ring between two poles: 3, 4 or 5 around.
    around = children - 2
    angle = 2.0 * math.pi * np.arange(around) / around
    return np.concatenate([np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1), poles])


def particles_of(fluid: Fluid) -> Particles:
    f, view = fluid, Particles()
    view.position, view.velocity, view.tag = f.position, f.velocity, f.tag
    view.level, view.carried, view.fresh = f.extra["level"], f.extra["carried"], f.extra["fresh"]
    view.density, view.pressure = f.density, f.pressure
    return view


def room_for(fluid: Fluid) -> Particles:
    """As many as the fluid may have."""
    view, n, device = Particles(), fluid.capacity, fluid.device.warp
    view.position, view.velocity = (wp.zeros(n, dtype=wp.vec3, device=device) for _ in range(2))
    view.tag, view.level = (wp.zeros(n, dtype=wp.int32, device=device) for _ in range(2))
    view.carried = wp.zeros(n, dtype=wp.vec4, device=device)
    view.fresh = wp.zeros(n, dtype=wp.vec2, device=device)
    view.density, view.pressure = (wp.zeros(n, dtype=float, device=device) for _ in range(2))
    return view


def launch_changes(stage: Stage, fluid: Fluid, merging: Merging, room: Particles, tables: list[wp.array],
                   counts: list[wp.array]) -> None:  # fmt: skip
    """After wishes and groups are known. `tables`: figure, reach and masses; `counts`: three integers per particle, and
    three in all."""
    f, n = fluid, fluid.capacity
    births, heirs, ends, totals = counts
    children, device = merging.children, f.device.warp
    if f.device.is_cuda:
        stage.launch(count_births, n, [children, f.count, merging.wish, births])
        stage.once(lambda: wp.utils.array_scan(births, births, inclusive=True))
        stage.launch(count_heirs, n, [children, n, f.count, births, merging.leader, merging.wish, heirs])
        stage.once(lambda: wp.utils.array_scan(heirs, ends, inclusive=True))
        stage.once(lambda: wp.launch(total, dim=1, inputs=[births, ends, totals], device=device))
    else:
        plan = [children, n, f.count, merging.leader, merging.wish, births, heirs, ends, totals]
        stage.once(lambda: wp.launch(plan_in_order, dim=1, inputs=plan, device=device))
    now, flat = particles_of(f), int(f.params.dimension == 2)
    in_groups(stage, change, n, [flat, *tables, f.count, f.report, births, ends, heirs, totals, merging, now, room])
    in_groups(stage, finish, n, [totals, room, now, f.count, f.report])
