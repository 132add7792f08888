"""Springs that a blade has crossed are cut, and what it takes to go on is found (cutting.py)."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.blade_kernels import EDGE_FLOATS, EDGES, SAMPLES, Blades, follow_sample, slot_at, whole_floor
from viscera.tissue.kernels import Lattice

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

QUAD_THREADS = 64
"""On cuda: threads that look at the springs around one quad."""

LONGEST_SWEEP = wp.constant(6)
"""Cells that a quad may span. A hand of 0.6 m/s moves a third of a cell in a tick; more is no blade but a jump."""

SHIFT_X = wp.constant(wp.float64(1.0e-6))
SHIFT_Y = wp.constant(wp.float64(1.4142135e-6))
SHIFT_Z = wp.constant(wp.float64(1.7320508e-6))
"""Masses stand this far aside when a blade looks at them [cells]: one that goes exactly along a plane of the lattice
then passes on one side of all its masses."""

AREA_AXIS = wp.constant(0.187)
AREA_FACE = wp.constant(0.107)
AREA_BODY = wp.constant(0.077)
"""Cut surface that a cut spring of each length stands for, over the area of a cell's side: a plane of any direction
then has its area within -8 and +2 %, on average 1.6 % off (least squares over all directions)."""

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
def packed(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, p: wp.vec3d, q: wp.vec3d):
    """Where the triangle cuts the spring from p to q: the share of its length, from 1, and the triangle's normal, 16
    bits each. Of several triangles the one with the largest number counts, whoever comes first."""
    high = above(a, b, c, p)
    low = above(a, b, c, q)
    share = float(wp.clamp(high / (high - low), wp.float64(0.0), wp.float64(1.0)))
    normal = wp.normalize(wp.cross(b - a, c - a))
    value = wp.int64(1) + wp.int64(wp.rint(share * 32766.0))
    for axis in range(3):
        part = wp.int64(wp.rint(float(normal[axis]) * _NORMAL_UNITS)) + wp.int64(32768)
        value = value * wp.int64(65536) + part
    return value


@wp.func
def quad_crossing(o0: wp.vec3d, o1: wp.vec3d, n0: wp.vec3d, n1: wp.vec3d, p: wp.vec3d, q: wp.vec3d):
    """0 where the spring from p to q misses the quad that an edge swept from o0–o1 to n0–n1, else `packed`. Each side
    that two triangles share is looked at in one direction only, so that no spring slips between them."""
    diagonal = left_of(p, q, o0, n1)
    found = wp.int64(0)
    # Triangle o0, o1, n1.
    first = left_of(p, q, o0, o1)
    inside = first == left_of(p, q, o1, n1) and first != diagonal
    if inside and (above(o0, o1, n1, p) >= wp.float64(0.0)) != (above(o0, o1, n1, q) >= wp.float64(0.0)):
        found = packed(o0, o1, n1, p, q)
    # Triangle o0, n1, n0.
    inside = diagonal != left_of(p, q, n0, n1) and diagonal != left_of(p, q, o0, n0)
    if inside and (above(o0, n1, n0, p) >= wp.float64(0.0)) != (above(o0, n1, n0, q) >= wp.float64(0.0)):
        found = wp.max(found, packed(o0, n1, n0, p, q))
    return found


@wp.func
def cut_quad(
    lattice: Lattice, blades: Blades, bulk: wp.array(dtype=wp.float16), has_volume: int, edge: int, k: int,
    thread: int, threads: int,
):  # fmt: skip
    """Cuts every spring that crosses the quad swept between samples k and k + 1 of an edge."""
    n = edge * _SAMPLES + k
    o0 = blades.swept_from[n]
    o1 = blades.swept_from[n + 1]
    n0 = blades.swept_to[n]
    n1 = blades.swept_to[n + 1]
    low = wp.min(wp.min(o0, o1), wp.min(n0, n1))
    high = wp.max(wp.max(o0, o1), wp.max(n0, n1))
    bx = whole_floor(low[0]) - 1
    by = whole_floor(low[1]) - 1
    bz = whole_floor(low[2]) - 1
    nx = whole_floor(high[0]) + 2 - bx
    ny = whole_floor(high[1]) + 2 - by
    nz = whole_floor(high[2]) + 2 - bz
    if wp.max(nx, wp.max(ny, nz)) > LONGEST_SWEEP + 3:
        return
    for m in range(thread, nx * ny * nz, threads):
        x = bx + m % nx
        y = by + m // nx % ny
        z = bz + m // (nx * ny)
        i = slot_at(blades, x, y, z)
        if i >= 0:
            p = wp.vec3d(wp.float64(x) + SHIFT_X, wp.float64(y) + SHIFT_Y, wp.float64(z) + SHIFT_Z)
            for d in range(13):
                r = (d + 14) // 3
                dx = (d + 14) % 3 - 1
                dy = r % 3 - 1
                dz = r // 3 - 1
                spring = d * lattice.slots + i
                if blades.cut[spring] == wp.uint8(0) and slot_at(blades, x + dx, y + dy, z + dz) >= 0:
                    q = p + wp.vec3d(wp.float64(dx), wp.float64(dy), wp.float64(dz))
                    crossing = quad_crossing(o0, o1, n0, n1, p, q)
                    if crossing != wp.int64(0):
                        part_spring(lattice, blades, bulk, has_volume, i, x, y, z, d, crossing)


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


@wp.func
def spring_of(dx: int, dy: int, dz: int):
    """Direction 0 … 12 of a step that looks up in memory."""
    return 9 * dz + 3 * dy + dx - 1


@wp.func
def fresh_share(lattice: Lattice, blades: Blades, n: int):
    """Of the cell that lies ahead of a sample, how much of what its blade will cross there is not cut yet; 0 outside
    the tissue. And the toughness there [J/m²]."""
    k = n % _SAMPLES
    first = n - k
    before = n - wp.where(k > 0, 1, 0)
    behind = n + wp.where(k < _SAMPLES - 1, 1, 0)
    edge = wp.normalize(blades.swept_to[behind] - blades.swept_to[before])
    way = blades.way[n]
    normal = wp.cross(edge, way)
    ahead = blades.at[n] + wp.float64(0.5) * way
    bx = whole_floor(ahead[0])
    by = whole_floor(ahead[1])
    bz = whole_floor(ahead[2])
    tough = float(0.0)
    for c in range(8):
        s = slot_at(blades, bx + c % 2, by + c // 2 % 2, bz + c // 4)
        if s < 0:
            return 0.0, 0.0
        tough += 0.125 * blades.toughness[s]
    whole = float(0.0)
    total = float(0.0)
    for c in range(8):
        cx = c % 2
        cy = c // 2 % 2
        cz = c // 4
        i = slot_at(blades, bx + cx, by + cy, bz + cz)
        own = wp.dot(normal, wp.vec3d(wp.float64(bx + cx), wp.float64(by + cy), wp.float64(bz + cz)) - ahead)
        for d in range(13):
            r = (d + 14) // 3
            dx = (d + 14) % 3 - 1
            dy = r % 3 - 1
            dz = r // 3 - 1
            if wp.max(wp.max(cx + dx, cy + dy), cz + dz) <= 1 and wp.min(wp.min(cx + dx, cy + dy), cz + dz) >= 0:
                step = wp.vec3d(wp.float64(dx), wp.float64(dy), wp.float64(dz))
                other = own + wp.dot(normal, step)
                corner = wp.vec3d(wp.float64(bx + cx), wp.float64(by + cy), wp.float64(bz + cz))
                crosses = (own >= wp.float64(0.0)) != (other >= wp.float64(0.0))
                point = corner + step * (own / (own - other))
                # What lies behind the end of the cut is cut by now; what lies beyond the edge's ends will not be.
                meets = wp.dot(point - blades.at[n], way) > wp.float64(0.0)
                meets = meets and wp.dot(point - blades.at[first], edge) >= wp.float64(0.0)
                meets = meets and wp.dot(point - blades.at[first + _SAMPLES - 1], edge) <= wp.float64(0.0)
                if crosses and meets:
                    # A cell has a quarter of its axis springs, half of its sides' diagonals, its own all.
                    steps = wp.abs(dx) + wp.abs(dy) + wp.abs(dz)
                    weight = wp.where(steps == 1, 0.25 * AREA_AXIS, wp.where(steps == 2, 0.5 * AREA_FACE, AREA_BODY))
                    total += weight
                    if blades.cut[d * lattice.slots + i] == wp.uint8(0):
                        whole += weight
    return whole / wp.max(total, 1.0e-9), tough


@wp.func
def bound_sample(lattice: Lattice, blades: Blades, edge: int, k: int):
    """Force at which the tissue ahead of a sample is cut: toughness times the length of edge that it stands for."""
    n = edge * _SAMPLES + k
    bound = float(0.0)
    if blades.inside[n] > 0:
        fresh, tough = fresh_share(lattice, blades, n)
        k0 = wp.max(k - 1, 0)
        k1 = wp.min(k + 1, _SAMPLES - 1)
        base = edge * _SAMPLES
        length = 0.5 * float(wp.length(blades.swept_to[base + k1] - blades.swept_to[base + k0])) * lattice.spacing
        bound = tough * float(blades.edges[edge * _EDGE_FLOATS + 1]) * length * fresh
    blades.bound[n] = bound


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
    for edge in range(_EDGES):
        if blades.edges[edge * _EDGE_FLOATS] == wp.float64(0.0):
            blades.known[edge] = 0
        else:
            for k in range(_SAMPLES):
                follow_sample(lattice, blades, live, position, velocity, edge, k)
            if blades.edges[edge * _EDGE_FLOATS + 3] != wp.float64(0.0):
                for k in range(_SAMPLES - 1):
                    cut_quad(lattice, blades, bulk_out, has_volume, edge, k, 0, 1)
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
def cut_quads(
    # params
    lattice: Lattice,
    has_volume: int,
    threads: int,
    # out
    blades: Blades,
    bulk_out: wp.array(dtype=wp.float16),
):
    quad = wp.tid() // threads
    edge = quad // (_SAMPLES - 1)
    base = edge * _EDGE_FLOATS
    if blades.edges[base] != wp.float64(0.0) and blades.edges[base + 3] != wp.float64(0.0):
        cut_quad(lattice, blades, bulk_out, has_volume, edge, quad % (_SAMPLES - 1), wp.tid() % threads, threads)


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
