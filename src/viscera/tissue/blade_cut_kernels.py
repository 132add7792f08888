"""Springs that a blade has crossed are cut (cutting.py)."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.blade_kernels import (
    EDGE_FLOATS,
    EDGES,
    SAMPLES,
    Blades,
    displaced,
    follow_sample,
    slot_at,
)
from viscera.tissue.blade_near_kernels import box_edge, box_fronts, cell_place, edge_is_on, is_near, list_near
from viscera.tissue.blade_resistance_kernels import TORN_APART, bound_sample
from viscera.tissue.kernels import LIVE_VISCOUS_TIME, Lattice, load3

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

LONGEST_SWEEP = wp.constant(wp.float64(6.0))
"""Cells that a quad may span. A hand of 0.6 m/s moves a third of a cell in a tick; more is no blade but a jump."""
AROUND = wp.constant(wp.float64(1.0))
"""Springs farther than this from what an edge swept are not looked at [cells]: no mass moves half a cell in a tick."""

SHIFT_X = wp.constant(wp.float64(1.0e-6))
SHIFT_Y = wp.constant(wp.float64(1.4142135e-6))
SHIFT_Z = wp.constant(wp.float64(1.7320508e-6))
"""Masses stand this far aside when a blade looks at them [cells]: one that goes exactly along a plane of the lattice
then passes on one side of all its masses."""

_EDGES, _SAMPLES, _EDGE_FLOATS = wp.constant(EDGES), wp.constant(SAMPLES), wp.constant(EDGE_FLOATS)
_NORMAL_UNITS = wp.constant(32767.0)


@wp.func
def left_of(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d):
    """On which side of the line from p to q the line from a to b passes."""
    return wp.dot(q - p, wp.cross(a - p, b - p)) >= wp.float64(0.0)


@wp.func
def above(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, p: wp.vec3d):
    return wp.dot(wp.cross(b - a, c - a), p - a)


@wp.func
def packed(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, p: wp.vec3d, q: wp.vec3d, axes: wp.mat33d):
    """Where the triangle cuts the spring from p to q: the share of its length, from 1, and the triangle's normal in the
    tissue at rest, 16 bits each. With the axes of a cell as they lie now, the columns of F, that is N ∝ Fᵀ n. Of
    several triangles the one with the largest number counts, whoever comes first."""
    high = above(a, b, c, p)
    low = above(a, b, c, q)
    share = float(wp.clamp(high / (high - low), wp.float64(0.0), wp.float64(1.0)))
    normal = wp.normalize(wp.transpose(axes) * wp.cross(b - a, c - a))
    value = wp.int64(1) + wp.int64(wp.rint(share * 32766.0))
    for axis in range(3):
        part = wp.int64(wp.rint(float(normal[axis]) * _NORMAL_UNITS)) + wp.int64(32768)
        value = value * wp.int64(65536) + part
    return value


@wp.func
def quad_crossing(o0: wp.vec3d, o1: wp.vec3d, n0: wp.vec3d, n1: wp.vec3d, p: wp.vec3d, q: wp.vec3d, axes: wp.mat33d):
    """0 where the spring from p to q misses the quad that an edge swept from o0–o1 to n0–n1, else `packed`. Each side
    that two triangles share is looked at in one direction only, so that no spring slips between them."""
    diagonal = left_of(p, q, o0, n1)
    found = wp.int64(0)
    # Triangle o0, o1, n1.
    first = left_of(p, q, o0, o1)
    inside = first == left_of(p, q, o1, n1) and first != diagonal
    if inside and (above(o0, o1, n1, p) >= wp.float64(0.0)) != (above(o0, o1, n1, q) >= wp.float64(0.0)):
        found = packed(o0, o1, n1, p, q, axes)
    # Triangle o0, n1, n0.
    inside = diagonal != left_of(p, q, n0, n1) and diagonal != left_of(p, q, o0, n0)
    if inside and (above(o0, n1, n0, p) >= wp.float64(0.0)) != (above(o0, n1, n0, q) >= wp.float64(0.0)):
        found = wp.max(found, packed(o0, n1, n0, p, q, axes))
    return found


@wp.func
def seen_place(
    lattice: Lattice, tau: float, position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), i: int,
    rest: wp.vec3d,
):  # fmt: skip
    """Where a blade sees a mass now [cells]."""
    return rest + wp.vec3d(SHIFT_X, SHIFT_Y, SHIFT_Z) + displaced(lattice, tau, position, velocity, i)


@wp.func
def moved_since(lattice: Lattice, blades: Blades, i: int, now: wp.vec3d, rest: wp.vec3d):
    """How far a mass that is seen there has moved in this tick [cells]."""
    u = load3(blades.before, lattice.slots, i)
    was = wp.vec3d(wp.float64(u[0]), wp.float64(u[1]), wp.float64(u[2])) * (
        wp.float64(1.0) / wp.float64(lattice.spacing)
    )
    return now - (rest + wp.vec3d(SHIFT_X, SHIFT_Y, SHIFT_Z) + was)


@wp.func
def cell_axis(
    lattice: Lattice, blades: Blades, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), i: int, j: int, first: wp.vec3i, last: wp.vec3i, axis: int,
):  # fmt: skip
    """Along an axis of the lattice, the mean of the steps to the neighbours of two masses, as they lie now [cells]."""
    step = wp.vec3i(wp.where(axis == 0, 1, 0), wp.where(axis == 1, 1, 0), wp.where(axis == 2, 1, 0))
    along = wp.vec3d(wp.float64(step[0]), wp.float64(step[1]), wp.float64(step[2]))
    total = wp.vec3d()
    count = wp.float64(0.0)
    for which in range(4):
        sign = 1 - 2 * (which % 2)
        cell = first
        slot = i
        if which >= 2:
            cell = last
            slot = j
        other = slot_at(blades, cell[0] + sign * step[0], cell[1] + sign * step[1], cell[2] + sign * step[2])
        if other >= 0:
            u = displaced(lattice, tau, position, velocity, other) - displaced(lattice, tau, position, velocity, slot)
            between = along + wp.float64(sign) * u
            if wp.length(between) < TORN_APART:
                total += between
                count += wp.float64(1.0)
    if count == wp.float64(0.0):
        return along
    return total / count


@wp.func
def cut_spring(
    lattice: Lattice, blades: Blades, bulk: wp.array(dtype=wp.float16), has_volume: int, tau: float,
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), edge: int, m: int, d: int,
):  # fmt: skip
    """Cuts a spring of a mass if it crosses what an edge swept: quads between neighbouring samples, as they were when
    the tick began and as they are now. In the frame of the spring: what was, goes with it by the affine map that takes
    it from where it was to where it is, so that nothing slips between two ticks, and an edge that is carried along with
    the spring cuts nothing."""
    low = blades.boxes[2 * edge]
    high = blades.boxes[2 * edge + 1]
    i = blades.masses[m]
    cell = blades.cells[m]
    r = (d + 14) // 3
    step = wp.vec3i((d + 14) % 3 - 1, r % 3 - 1, r // 3 - 1)
    j = int(-1)
    if blades.cut[d * lattice.slots + i] == wp.uint8(0):
        j = slot_at(blades, cell[0] + step[0], cell[1] + step[1], cell[2] + step[2])
    if j >= 0:
        rest = cell_place(blades, m)
        far = rest + wp.vec3d(wp.float64(step[0]), wp.float64(step[1]), wp.float64(step[2]))
        p = seen_place(lattice, tau, position, velocity, i, rest)
        q = seen_place(lattice, tau, position, velocity, j, far)
        if apart(wp.min(p, q), wp.max(p, q), low, high, AROUND):
            return
        dp = moved_since(lattice, blades, i, p, rest)
        dq = moved_since(lattice, blades, j, q, far)
        slack = wp.float64(2.0) * (wp.length(dp) + wp.length(dq))
        if apart(wp.min(p, q), wp.max(p, q), low, high, slack):
            return
        crossing = cross_all(blades, edge, p, q, dp, dq, slack, wp.identity(n=3, dtype=wp.float64))
        if crossing != wp.int64(0):
            if d == 0 or d == 2 or d == 8:
                # Where it is cut, and how the blade lies there, is kept of these alone.
                last = cell + step
                ax = cell_axis(lattice, blades, tau, position, velocity, i, j, cell, last, 0)
                ay = cell_axis(lattice, blades, tau, position, velocity, i, j, cell, last, 1)
                az = cell_axis(lattice, blades, tau, position, velocity, i, j, cell, last, 2)
                crossing = cross_all(blades, edge, p, q, dp, dq, slack, wp.matrix_from_cols(ax, ay, az))
            part_spring(lattice, blades, bulk, has_volume, i, cell[0], cell[1], cell[2], d, crossing)


@wp.func
def cross_all(
    blades: Blades, edge: int, p: wp.vec3d, q: wp.vec3d, dp: wp.vec3d, dq: wp.vec3d, slack: wp.float64, axes: wp.mat33d
):
    """0 where the spring misses all that an edge swept, else the largest `packed`."""
    crossing = wp.int64(0)
    for k in range(_SAMPLES - 1):
        crossing = wp.max(crossing, cross_quad(blades, edge * _SAMPLES + k, p, q, dp, dq, slack, axes))
    return crossing


@wp.func
def apart(low: wp.vec3d, high: wp.vec3d, other_low: wp.vec3d, other_high: wp.vec3d, slack: wp.float64):
    """Whether two boxes have nothing in common."""
    found = low[0] > other_high[0] + slack or high[0] < other_low[0] - slack
    found = found or low[1] > other_high[1] + slack or high[1] < other_low[1] - slack
    return found or low[2] > other_high[2] + slack or high[2] < other_low[2] - slack


@wp.func
def carried(o: wp.vec3d, p: wp.vec3d, q: wp.vec3d, dp: wp.vec3d, dq: wp.vec3d):
    """Where a place of a tick before is, if it goes with the spring that has come to p and q."""
    p0 = p - dp
    along = (q - dq) - p0
    share = wp.dot(o - p0, along) / wp.max(wp.dot(along, along), wp.float64(1.0e-12))
    return o + dp + share * (dq - dp)


@wp.func
def cross_quad(
    blades: Blades, n: int, p: wp.vec3d, q: wp.vec3d, dp: wp.vec3d, dq: wp.vec3d, slack: wp.float64, axes: wp.mat33d
):
    """0 where the spring misses what is swept between samples n and n + 1, else `packed`."""
    o0 = blades.swept_from[n]
    o1 = blades.swept_from[n + 1]
    n0 = blades.front[n]
    n1 = blades.front[n + 1]
    low = wp.min(wp.min(o0, o1), wp.min(n0, n1))
    high = wp.max(wp.max(o0, o1), wp.max(n0, n1))
    span = high - low
    if wp.max(span[0], wp.max(span[1], span[2])) > LONGEST_SWEEP:
        return wp.int64(0)
    if apart(wp.min(p, q), wp.max(p, q), low, high, slack):
        return wp.int64(0)
    return quad_crossing(carried(o0, p, q, dp, dq), carried(o1, p, q, dp, dq), n0, n1, p, q, axes)


@wp.func
def part_spring(
    lattice: Lattice, blades: Blades, bulk: wp.array(dtype=wp.float16), has_volume: int, i: int, x: int, y: int, z: int,
    d: int, crossing: wp.int64,
):  # fmt: skip
    """The spring is gone. A cell that lost an edge no longer keeps its volume."""
    spring = d * lattice.slots + i
    blades.cut[spring] = wp.uint8(1)
    blades.news[0] = 1
    lattice.stiffness[spring] = wp.float16(0.0)
    axis = int(-1)
    if d == 0:
        axis = 0
    if d == 2:
        axis = 1
    if d == 8:
        axis = 2
    if axis >= 0:
        wp.atomic_max(blades.crossing, axis * lattice.slots + i, crossing)
        if has_volume != 0:
            for corner in range(4):
                a = corner % 2
                b = corner // 2
                cx = x - wp.where(axis == 0, 0, a)
                cy = y - wp.where(axis == 1, 0, wp.where(axis == 0, a, b))
                cz = z - wp.where(axis == 2, 0, b)
                c = slot_at(blades, cx, cy, cz)
                if c >= 0:
                    bulk[c] = wp.float16(0.0)


@wp.kernel
def cut_serial(
    # params
    lattice: Lattice,
    has_volume: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
    bulk_out: wp.array(dtype=wp.float16),
):
    """A whole tick of all edges, on one core."""
    tau = live[LIVE_VISCOUS_TIME]
    for edge in range(_EDGES):
        if not edge_is_on(blades, edge):
            blades.known[edge] = 0
        else:
            box_edge(lattice, blades, edge)
            count = list_near(lattice, blades, live, position, velocity, edge)
            for k in range(_SAMPLES):
                follow_sample(lattice, blades, live, position, velocity, edge, k)
            if blades.edges[edge * _EDGE_FLOATS + 3] != wp.float64(0.0):
                box_fronts(blades, edge)
                for c in range(count):
                    m = blades.near[c]
                    for d in range(13):
                        cut_spring(lattice, blades, bulk_out, has_volume, tau, position, velocity, edge, m, d)
            for k in range(_SAMPLES):
                bound_sample(lattice, blades, edge, k)
            blades.known[edge] = 1


@wp.kernel
def follow_edges(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
):
    edge = wp.tid() // _SAMPLES
    if blades.edges[edge * _EDGE_FLOATS] != wp.float64(0.0):
        follow_sample(lattice, blades, live, position, velocity, edge, wp.tid() % _SAMPLES)


@wp.kernel
def cut_near(
    # params
    lattice: Lattice,
    has_volume: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
    bulk_out: wp.array(dtype=wp.float16),
):
    """Of each mass that is near an edge."""
    m = wp.tid()
    tau = live[LIVE_VISCOUS_TIME]
    for edge in range(_EDGES):
        if edge_is_on(blades, edge) and blades.edges[edge * _EDGE_FLOATS + 3] != wp.float64(0.0):
            place = cell_place(blades, m) + displaced(lattice, tau, position, velocity, blades.masses[m])
            if is_near(blades, edge, place):
                for d in range(13):
                    cut_spring(lattice, blades, bulk_out, has_volume, tau, position, velocity, edge, m, d)


@wp.kernel
def bound_edges(
    # params
    lattice: Lattice,
    # out
    blades: Blades,
):
    edge = wp.tid() // _SAMPLES
    on = blades.edges[edge * _EDGE_FLOATS] != wp.float64(0.0)
    if on:
        bound_sample(lattice, blades, edge, wp.tid() % _SAMPLES)
    if wp.tid() % _SAMPLES == 0:
        blades.known[edge] = wp.where(on, 1, 0)
