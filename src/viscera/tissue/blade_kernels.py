"""Where the blades in a lattice are: points of their edges, followed through the tissue at rest (cutting.py).

On cpu one core does all of it in one go, as few springs are near a blade. On cuda each mass has a thread; what they
write is the same in any order. Places are in cells, float64: a blade moves a ten-thousandth of a cell in a tick, and
whether it has crossed a spring must not depend on rounding.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import LIVE_VISCOUS_TIME, Lattice, load3

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

EDGES = 8
"""Cutting edges that may be in a lattice at once; scissors have two."""
SAMPLES = 16
"""Points that stand for an edge, from its first end to its last."""
EDGE_FLOATS = 16
"""Of each edge: on, share of the toughness that it needs, tool, whether it cuts; then both its ends as the tick starts
and as it ends, six numbers each [m], organ frame."""
EDGE_START, EDGE_END = wp.constant(4), wp.constant(10)
SPREAD = 2
"""Along each axis, the masses nearer than this to a point of an edge are pulled by it [cells]. With 1, the corners of
its cell alone, a pull of a cell's stiffness crushes that cell, and the blade cuts what it has not felt."""
HUNG = (2 * SPREAD) ** 3
"""Masses that a sample hangs on."""

ROUNDS = wp.constant(16)
"""Of Newton's iteration, at most."""
CLOSE = wp.constant(wp.float64(1.0e-9))
FAR = wp.constant(wp.float64(1.0e-3))
"""Residual at which it ends, and beyond which it has failed [cells]."""
TINY = wp.constant(wp.float64(1.0e-9))
"""Shorter ways have no direction [cells]."""
STAY = wp.constant(wp.float64(1.0))
"""How far behind its blade the end of a cut may stay in tissue where no place is found for it [cells]."""
CATCHES_UP = wp.constant(wp.float64(0.9))
"""Outside tissue, what is left after a tick of how far the end of a cut was behind its blade."""
JUMP = wp.constant(wp.float64(2.0))
"""An edge that begins so far from where the end of its cut was has been put somewhere else [cells]."""
NOBODY = wp.constant(wp.int64(0x7FFFFFFFFFFFFFFF))
"""In `Blades.nearest`: no mass is near."""


NOTHING = wp.constant(1.0e-9)
"""A smaller sum of weights is none."""

_SAMPLES, _EDGE_FLOATS = wp.constant(SAMPLES), wp.constant(EDGE_FLOATS)
_SPREAD, _HUNG = wp.constant(SPREAD), wp.constant(HUNG)


@wp.struct
class Blades:
    """What ticks know of the blades in one lattice. Arrays per sample have shape (EDGES · SAMPLES, …)."""

    low: wp.vec3i
    size: wp.vec3i
    """Box of the lattice in cells, with a border."""
    grid: wp.array(dtype=wp.int32)
    """Place in memory of the mass at each position of the box, -1 where there is none."""
    masses: wp.array(dtype=wp.int32)
    """Place in memory of every mass, in the order of memory."""
    cells: wp.array(dtype=wp.vec3i)
    """Its integer position."""
    before: wp.array(dtype=wp.float32)
    """Displacement of each place as the tick began [m], three components; scratch, only where an edge is on."""
    stray: float
    """1/m that anchors count with [1/kg]."""
    toughness: wp.array(dtype=wp.float32)
    """Of each place [J/m²]."""
    edges: wp.array(dtype=wp.float64)
    """See `EDGE_FLOATS`."""
    known: wp.array(dtype=wp.int32)
    """Of each edge, whether `at` holds where it was."""
    inside: wp.array(dtype=wp.int32)
    """Whether the sample is among masses."""
    at: wp.array(dtype=wp.vec3d)
    """How far its cut has come, in the tissue at rest [cells]."""
    front: wp.array(dtype=wp.vec3d)
    """Where the end of its cut is now, as the tissue lies [cells]: at the blade, or as far behind as it is held."""
    swept_from: wp.array(dtype=wp.vec3d)
    """Where that was as the tick began; scratch."""
    boxes: wp.array(dtype=wp.vec3d)
    """Low and high corner of what each edge may have swept [cells]; scratch."""
    nearest: wp.array(dtype=wp.int64)
    """Mass that is nearest to a sample, see `near_number`; scratch."""
    near: wp.array(dtype=wp.int32)
    """Masses around an edge, on cpu; scratch."""
    way: wp.array(dtype=wp.vec3d)
    """Direction in which it cuts."""
    places: wp.array(dtype=wp.int32)
    weights: wp.array(dtype=wp.float32)
    """Masses around it, `HUNG` each, and what share of its pull each of them gets."""
    bound: wp.array(dtype=wp.float32)
    """Force at which the tissue there is cut [N]."""
    stiffness: wp.array(dtype=wp.float32)
    """Between the blade and the end of its cut [N/m]."""
    pull: wp.array(dtype=wp.vec3)
    """Its force on the tissue [N]; scratch."""
    share: wp.array(dtype=wp.float32)
    """Of each place: sum of the weights of the samples that hang on it; scratch, 0 between substeps."""
    cut: wp.array(dtype=wp.uint8)
    """1 where a spring is cut, per direction and place."""
    news: wp.array(dtype=wp.int32)
    """1 when something was cut since somebody looked."""
    crossing: wp.array(dtype=wp.int64)
    """Where axis springs are cut, per axis and place; see `packed`. 0 where they are whole."""


@wp.func
def slot_at(blades: Blades, x: int, y: int, z: int):
    """Place of the mass at an integer position, -1 where there is none."""
    i = x - blades.low[0]
    j = y - blades.low[1]
    k = z - blades.low[2]
    if i < 0 or j < 0 or k < 0 or i >= blades.size[0] or j >= blades.size[1] or k >= blades.size[2]:
        return -1
    return blades.grid[(k * blades.size[1] + j) * blades.size[0] + i]


@wp.func
def whole_floor(value: wp.float64):
    return int(wp.floor(value))


@wp.func
def point_of(numbers: wp.array(dtype=wp.float64), at: int):
    return wp.vec3d(numbers[at], numbers[at + 1], numbers[at + 2])


@wp.func
def displaced(
    lattice: Lattice, tau: float, position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), i: int
):
    """u of a mass [cells]."""
    u = load3(position, lattice.slots, i) - tau * load3(velocity, lattice.slots, i)
    return wp.vec3d(wp.float64(u[0]), wp.float64(u[1]), wp.float64(u[2])) * (
        wp.float64(1.0) / wp.float64(lattice.spacing)
    )


@wp.func
def tent(away: wp.float64, reach: int):
    """Weight of a mass so many cells away along an axis: it falls evenly to 0 at `reach`. Those of a row sum to one."""
    return (wp.float64(1.0) - wp.abs(away) / wp.float64(reach)) / wp.float64(reach)


@wp.func
def tent_slope(away: wp.float64, reach: int):
    """Its derivative by the place that it is looked at from; a place at a mass belongs to the cell above it."""
    down = wp.float64(-1.0) / wp.float64(reach * reach)
    return wp.where(away >= wp.float64(0.0), down, -down)


@wp.func
def displacement_at(
    lattice: Lattice, blades: Blades, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), x: wp.vec3d, reach: int,
):  # fmt: skip
    """u and its gradient at a place of the tissue at rest, in cells, and how many corners of its cell are there. The
    mean of the masses that are nearer than `reach` cells along each axis, by tents: with 1 that is trilinear."""
    bx = whole_floor(x[0])
    by = whole_floor(x[1])
    bz = whole_floor(x[2])
    count = int(0)
    for c in range(8):
        if slot_at(blades, bx + c % 2, by + c // 2 % 2, bz + c // 4) >= 0:
            count += 1
    total = wp.float64(0.0)
    slope = wp.vec3d()
    u = wp.vec3d()
    gx = wp.vec3d()
    gy = wp.vec3d()
    gz = wp.vec3d()
    wide = wp.where(count > 0, 2 * reach, 0)
    for kz in range(wide):
        z = bz + kz - reach + 1
        wz = tent(x[2] - wp.float64(z), reach)
        for ky in range(wide):
            y = by + ky - reach + 1
            wy = tent(x[1] - wp.float64(y), reach)
            for kx in range(wide):
                s = slot_at(blades, bx + kx - reach + 1, y, z)
                if s >= 0:
                    away = x[0] - wp.float64(bx + kx - reach + 1)
                    wx = tent(away, reach)
                    own = displaced(lattice, tau, position, velocity, s)
                    sx = tent_slope(away, reach) * wy * wz
                    sy = wx * tent_slope(x[1] - wp.float64(y), reach) * wz
                    sz = wx * wy * tent_slope(x[2] - wp.float64(z), reach)
                    total += wx * wy * wz
                    slope += wp.vec3d(sx, sy, sz)
                    u += (wx * wy * wz) * own
                    gx += sx * own
                    gy += sy * own
                    gz += sz * own
    if total > TINY:
        # Over those that are there.
        share = wp.float64(1.0) / total
        u = share * u
        gx = share * (gx - slope[0] * u)
        gy = share * (gy - slope[1] * u)
        gz = share * (gz - slope[2] * u)
    return u, wp.matrix_from_cols(gx, gy, gz), count


@wp.func
def at_rest(
    lattice: Lattice, blades: Blades, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), here: wp.vec3d, guess: wp.vec3d, beyond: wp.vec3d, reach: int,
):  # fmt: skip
    """The place at rest of the tissue that is here now, and how many masses are around it: 0 outside, -1 where none was
    found. Newton's iteration on X + u(X) = x; `beyond` is u where there is no tissue."""
    found = guess
    step = wp.vec3d()
    count = int(0)
    residual = wp.float64(1.0)
    for _round in range(ROUNDS):
        u, gradient, count = displacement_at(lattice, blades, tau, position, velocity, found, reach)
        if count == 0:
            u = beyond
        miss = found + u - here
        residual = wp.length(miss)
        if residual < CLOSE:
            break
        step = miss
        if count > 0:
            jacobian = wp.identity(n=3, dtype=wp.float64) + gradient
            if wp.determinant(jacobian) > wp.float64(0.05):
                step = wp.inverse(jacobian) * miss
        length = wp.length(step)
        if length > wp.float64(0.5):
            step = step * (wp.float64(0.5) / length)
        found = found - step
    if residual > FAR:
        count = -1
    return found, count


@wp.func
def along_edge(blades: Blades, ends: int, k: int):
    """Where sample k of an edge with these ends is [m]."""
    along = wp.float64(k) / wp.float64(_SAMPLES - 1)
    return point_of(blades.edges, ends) * (wp.float64(1.0) - along) + point_of(blades.edges, ends + 3) * along


@wp.func
def across_edge(blades: Blades, ends: int, way: wp.vec3d):
    """What of a way leads across the edge: along it nothing is swept."""
    direction = wp.normalize(point_of(blades.edges, ends + 3) - point_of(blades.edges, ends))
    return way - wp.dot(way, direction) * direction


@wp.func
def seeks(blades: Blades, edge: int, n: int):
    """Whether a sample has to find out what tissue it is in: where it was in none, or holds none that is uncut. What it
    held may have stayed behind, or gone with the blade as a shred."""
    return blades.known[edge] == 0 or blades.inside[n] <= 0 or blades.bound[n] <= 0.0


@wp.func
def follow_sample(
    lattice: Lattice, blades: Blades, live: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), edge: int, k: int,
):  # fmt: skip
    """Where the cut has come to at a point of an edge, now and in the tissue at rest, and where it was a tick before.
    A point that was not in tissue begins at the mass that is nearest to it now, however far that has moved."""
    n = edge * _SAMPLES + k
    start = edge * _EDGE_FLOATS + EDGE_START
    end = edge * _EDGE_FLOATS + EDGE_END
    cell = wp.float64(lattice.spacing)
    tau = live[LIVE_VISCOUS_TIME]
    begin = along_edge(blades, start, k) / cell
    blade = along_edge(blades, end, k) / cell
    was = blades.at[n]
    target = blade
    u = wp.vec3d()
    tracked = not seeks(blades, edge, n)
    if tracked:
        u, _gradient, _count = displacement_at(lattice, blades, tau, position, velocity, was, _SPREAD)
        ahead = across_edge(blades, end, target - was - u)
        size = wp.length(ahead)
        if size > TINY:
            blades.way[n] = ahead / size
        if blades.stiffness[n] > 0.0:
            held = wp.float64(blades.bound[n] / blades.stiffness[n]) / cell
            target = target - ahead * wp.min(held / wp.max(size, TINY), wp.float64(1.0))
    else:
        if wp.length(blade - begin) > TINY:
            blades.way[n] = wp.normalize(blade - begin)
        if blades.nearest[n] != NOBODY:
            u = displaced(lattice, tau, position, velocity, mass_of(blades.nearest[n]))
    found, count = at_rest(lattice, blades, tau, position, velocity, target, target - u, u, _SPREAD)
    front = target
    holds = tracked and blades.inside[n] == 8 and blades.bound[n] > 0.0 and wp.length(blade - was - u) <= STAY
    if count < 0 and holds:
        # Tissue that is folded over the blade: it stays where it was in it.
        found = was
        front = was + u
        count = blades.inside[n]
    elif count <= 0:
        found = blade - u
        front = blade
        count = 0
    blades.swept_from[n] = begin
    behind = begin - blades.front[n]
    if blades.known[edge] != 0 and wp.length(behind) < JUMP:
        blades.swept_from[n] = blades.front[n]
        if count == 0 and wp.length(behind) < STAY:
            front = blade - CATCHES_UP * behind
    blades.front[n] = front
    blades.at[n] = found
    blades.inside[n] = count
    hang_sample(blades, n)


@wp.func
def near_number(distance: wp.float64, i: int):
    """Distance, in 2⁻²⁰ cells, and place of a mass in one number: the least is the nearest, of several the first."""
    return wp.int64(wp.rint(distance * wp.float64(1048576.0))) * wp.int64(0x100000000) + wp.int64(i)


@wp.func
def mass_of(number: wp.int64):
    return int(number % wp.int64(0x100000000))


@wp.func
def hang_sample(blades: Blades, n: int):
    """The masses around a sample, with weights that sum to one: those of `displacement_at`."""
    x = blades.at[n]
    bx = whole_floor(x[0])
    by = whole_floor(x[1])
    bz = whole_floor(x[2])
    total = float(0.0)
    for c in range(_HUNG):
        kx = bx + c % (2 * _SPREAD) - _SPREAD + 1
        ky = by + c // (2 * _SPREAD) % (2 * _SPREAD) - _SPREAD + 1
        kz = bz + c // (4 * _SPREAD * _SPREAD) - _SPREAD + 1
        s = slot_at(blades, kx, ky, kz)
        w = tent(x[0] - wp.float64(kx), _SPREAD) * tent(x[1] - wp.float64(ky), _SPREAD)
        share = wp.where(s >= 0, float(w * tent(x[2] - wp.float64(kz), _SPREAD)), 0.0)
        total += share
        blades.places[_HUNG * n + c] = wp.max(s, 0)
        blades.weights[_HUNG * n + c] = share
    for c in range(_HUNG):
        blades.weights[_HUNG * n + c] = blades.weights[_HUNG * n + c] / wp.max(total, NOTHING)
