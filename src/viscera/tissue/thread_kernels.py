"""Threads through tissue: what they pull at, substep by substep (sewing.py, where the model is described).

One thread of the device does all of it: there are a few dozen holes, and each depends on the one before.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import (
    FORCE_PARTS,
    FORCE_UNITS,
    LIVE_VISCOUS_TIME,
    TORQUE_UNITS,
    Lattice,
    load3,
    store3,
)
from viscera.tissue.touch_kernels import Samples, hanging

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

HOLES = 48
"""Places at which threads may go through one tissue, all stitches together."""
POINTS = 16
"""Free points of a length of thread outside the tissue."""
TAIL = HOLES
"""Number of the length behind the first hole, which ends in a bead."""
HAND_FLOATS = 32
"""What hands do, see `HAND_*`, in the tissue's own frame [m]."""
HAND_ON, HAND_PRESSED, HAND_TOOL = wp.constant(0), wp.constant(1), wp.constant(2)
HAND_START, HAND_END = wp.constant(3), wp.constant(6)
"""Middle of the needle's circle as the tick starts and ends."""
HAND_ACROSS, HAND_UP = wp.constant(9), wp.constant(12)
"""Two unit vectors in the plane of the circle: from where the point stands back to the thread, and up."""
HAND_RADIUS, HAND_PIERCE, HAND_FRICTION = wp.constant(15), wp.constant(16), wp.constant(17)
"""Of the circle [m]; force to go through the surface [N]; of the needle per hole [N]."""
TIE_PRESSED, TIE_TIP, TIE_REACH, TIE_PULL = wp.constant(18), wp.constant(19), wp.constant(22), wp.constant(23)

FREE, INSIDE, OUTSIDE, CLOSING, TO_HAND, CLAMPED = (wp.constant(k) for k in range(6))
"""Kinds of what leads on from a hole: nothing yet, thread within tissue, thread over it to the next hole, thread back
to the first hole of its stitch, thread to the needle; a clip's or staple's legs, to the next hole."""
NEW = wp.constant(2)
LOOSE_HOLE, ON_POINT, ON_NEEDLE = (wp.constant(k) for k in range(3))
"""What holds a hole besides thread: nothing; the needle's point, which has not pierced it yet; the needle."""

COUNT, FIRST, BITE, PHASE, WITHIN, OUT, KNOTS, REFUSED, TYING, TURN = (wp.constant(k) for k in range(10))
TIP_NEAR, TIP_BUNDLE = wp.constant(10), wp.constant(11)
"""In `counts`: holes; the first one of the thread on the needle; the first one of this bite; what the needle does;
whether its point is in tissue; whether it came out again; stitches tied; bites that found no thread or no room; whether
a knot is being drawn; which free point is looked up next; the point of the surface that the needle's was last nearest
to, counted from 1, and its bundle."""
ANGLE, LEFT, TAIL_LENGTH, TAIL_TENSION, FELT = (wp.constant(k) for k in range(5))
"""In `numbers`: how far the needle has turned [rad]; thread on it [m]; behind its first hole [m] and the tension there
[N]; what the point feels [N], smoothed."""

NEEDLE_ARC = wp.constant(2.356)
"""Of the circle that a needle has [rad]: three eighths, as most for skin."""

PASSES = wp.constant(3)
"""Over all lengths of thread in a substep."""
STRETCH = wp.constant(100.0)
"""Force that would double a thread's length [N]: silk 3-0 has 0.2 mm and about 3 GPa."""
STRONGEST = wp.constant(8.0)
"""What a thread bears [N]; silk 3-0 breaks at some 10 to 15. Beyond, it slips out of the holder."""
SLIDE = wp.constant(0.3)
"""Share of what is out of balance at a hole that slides through it in a substep."""
FASTEST_SLIDE = wp.constant(0.5)
"""[m/s]"""
HOLE_FRICTION, HOLE_GRIP = wp.constant(0.15), wp.constant(0.01)
"""Of thread in a hole: Euler's and Eytelwein's μ, and what it takes even without tension [N]; estimated."""
SHORTEST = wp.constant(3.0e-4)
"""A length of thread is never shorter [m]."""
FIRMEST = wp.constant(3.0)
"""Force with which a needle holds one hole across its way, at most [N]."""
STEADY = wp.constant(0.1)
"""Share of the last substep in a smoothed force."""

_POINTS, _HOLES, _FORCE_PARTS, _TAIL = (
    wp.constant(POINTS), wp.constant(HOLES), wp.constant(FORCE_PARTS), wp.constant(TAIL),
)  # fmt: skip


@wp.struct
class Threads:
    """All that changes about threads and needle, and scratch. A length of thread has the number of the hole it leads on
    from, or `TAIL`."""

    counts: wp.array(dtype=wp.int32)
    numbers: wp.array(dtype=wp.float32)
    hand: wp.array(dtype=wp.float32)
    rest: wp.array(dtype=wp.vec3)
    """Of each hole: its place at rest, organ frame [m]."""
    places: wp.array(dtype=wp.int32)
    weights: wp.array(dtype=wp.float32)
    """The masses it hangs on, eight each."""
    kind: wp.array(dtype=wp.int32)
    held: wp.array(dtype=wp.int32)
    start: wp.array(dtype=wp.int32)
    """The first hole of its stitch."""
    angle: wp.array(dtype=wp.float32)
    """Of the needle's point when it made the hole [rad]."""
    length: wp.array(dtype=wp.float32)
    """Of the thread that leads on [m], unstretched."""
    tension: wp.array(dtype=wp.float32)
    """In it [N], smoothed."""
    goal: wp.array(dtype=wp.float32)
    hold: wp.array(dtype=wp.float32)
    """Of a clip or staple: the length that it closes to [m], and the force at which it slips [N]."""
    slack: wp.array(dtype=wp.int32)
    """Of each length: 1 where it is so slack that it stays so in this tick, `NEW` where it was just laid."""
    point: wp.array(dtype=wp.vec3)
    before: wp.array(dtype=wp.vec3)
    """Free points now and a tick before [m], per length and place along it."""
    bundle: wp.array(dtype=wp.int32)
    """The bundle of surface points that each was near to, or -1."""
    near: wp.array(dtype=wp.int32)
    """The nearest of them."""
    touch: wp.array(dtype=wp.int32)
    """The point of the surface that it lies on, or nearly does; or -1."""
    off: wp.array(dtype=wp.vec3)
    """From there to where thread that is pressed onto the surface would be [m]."""
    normal: wp.array(dtype=wp.vec3)
    """Of the surface there."""
    at: wp.array(dtype=wp.vec3)
    """Where each hole is [m]; scratch, and for the eye."""
    sum: wp.array(dtype=wp.float32)
    """Tension of this substep, before it is smoothed; scratch."""
    path: wp.array(dtype=wp.vec3)
    on: wp.array(dtype=wp.int32)
    """Corners of a taut thread, and the free point of each; scratch."""


@wp.func
def hand3(threads: Threads, at: int):
    return wp.vec3(threads.hand[at], threads.hand[at + 1], threads.hand[at + 2])


@wp.func
def hole_place(
    lattice: Lattice, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), hole: int,
):  # fmt: skip
    x = threads.rest[hole]
    for c in range(8):
        w = threads.weights[8 * hole + c]
        if w != 0.0:
            i = threads.places[8 * hole + c]
            x += w * (load3(position, lattice.slots, i) - tau * load3(velocity, lattice.slots, i))
    return x


@wp.func
def yield_of(lattice: Lattice, places: wp.array(dtype=wp.int32), weights: wp.array(dtype=wp.float32), at: int):
    """1/m of a point that hangs on eight masses [1/kg]."""
    found = float(0.0)
    for c in range(8):
        w = weights[8 * at + c]
        found += w * w * lattice.inverse_mass[places[8 * at + c]]
    return found


@wp.func
def shift_masses(
    lattice: Lattice, places: wp.array(dtype=wp.int32), weights: wp.array(dtype=wp.float32), at: int, tau: float,
    shift: wp.vec3, velocity_out: wp.array(dtype=wp.float32), position_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    """The masses of a point are moved by `shift` [kg·m] over their mass, and have the velocity for it."""
    slots = lattice.slots
    for c in range(8):
        w = weights[8 * at + c]
        i = places[8 * at + c]
        inverse = lattice.inverse_mass[i]
        if w != 0.0 and inverse > 0.0:
            move = (w * inverse) * shift
            faster = move / lattice.dt
            store3(velocity_out, slots, i, load3(velocity_out, slots, i) + faster)
            store3(position_out, slots, i, load3(position_out, slots, i) + move + tau * faster)


@wp.func
def needle_at(threads: Threads, share: float, angle: float):
    """A place on the needle's circle when `share` of the tick has passed [m]: its point at this angle."""
    middle = hand3(threads, HAND_START) + share * (hand3(threads, HAND_END) - hand3(threads, HAND_START))
    across = hand3(threads, HAND_ACROSS)
    up = hand3(threads, HAND_UP)
    return middle - threads.hand[HAND_RADIUS] * (wp.cos(angle) * across + wp.sin(angle) * up)


@wp.func
def feel(threads: Threads, force: wp.vec3, arm: wp.vec3, force_out: wp.array(dtype=wp.int64)):
    """The hand that holds the needle feels this."""
    tool = int(threads.hand[HAND_TOOL])
    torque = wp.cross(arm, force)
    for axis in range(3):
        f = _FORCE_PARTS * tool + axis
        force_out[f] = force_out[f] + wp.int64(wp.rint(force[axis] * FORCE_UNITS))
        force_out[f + 3] = force_out[f + 3] + wp.int64(wp.rint(torque[axis] * TORQUE_UNITS))


@wp.func
def end_of(threads: Threads, hole: int):
    """The hole that the thread from this one leads to, -1 for the needle, -2 for none."""
    kind = threads.kind[hole]
    if kind == INSIDE:
        return hole + 1
    if kind == OUTSIDE:
        return hole + 1
    if kind == CLAMPED:
        return hole + 1
    if kind == CLOSING:
        return threads.start[hole]
    if kind == TO_HAND and threads.hand[HAND_ON] > 0.0:
        return -1
    return -2


@wp.func
def add_corner(threads: Threads, count: int, x: wp.vec3, on: int):
    """Another corner of a path. What lies before it and would not be pressed onto tissue is none."""
    while count > 1:
        here = threads.path[count - 1]
        bend = wp.normalize(here - threads.path[count - 2]) + wp.normalize(here - x)
        if wp.dot(bend, threads.normal[threads.on[count - 1]]) > 0.0:
            break
        count -= 1
    threads.path[count] = x
    threads.on[count] = on
    return count + 1


@wp.func
def lay_path(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), hole: int, end: int, rear: wp.vec3,
):  # fmt: skip
    """Corners of the thread from a hole if it is taut: its ends, and what of it lies on tissue. How many."""
    threads.path[0] = hole_place(lattice, threads, tau, position, velocity, hole)
    threads.on[0] = -1
    count = int(1)
    if threads.kind[hole] != INSIDE and threads.kind[hole] != CLAMPED:
        for k in range(_POINTS):
            p = hole * _POINTS + k
            if threads.touch[p] >= 0:
                x, _v = hanging(samples, lattice.slots, tau, position, velocity, threads.touch[p])
                count = add_corner(threads, count, x + threads.off[p], p)
    last = rear
    if end >= 0:
        last = hole_place(lattice, threads, tau, position, velocity, end)
    return add_corner(threads, count, last, -1)


@wp.func
def path_slope(threads: Threads, count: int, k: int):
    """By how much the path grows when its corner k moves."""
    slope = wp.vec3()
    if k > 0:
        slope += wp.normalize(threads.path[k] - threads.path[k - 1])
    if k < count - 1:
        slope += wp.normalize(threads.path[k] - threads.path[k + 1])
    return slope


@wp.func
def path_length(threads: Threads, count: int):
    total = float(0.0)
    for k in range(count - 1):
        total += wp.length(threads.path[k + 1] - threads.path[k])
    return total


@wp.func
def pull_length(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, hole: int, rear: wp.vec3, tip: wp.vec3,
    velocity_out: wp.array(dtype=wp.float32), position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """A length of thread that is too long for where its ends are pulls them, and what it lies on, together."""
    end = end_of(threads, hole)
    if end < -1 or threads.slack[hole] != 0:
        return
    count = lay_path(lattice, samples, threads, tau, position_out, velocity_out, hole, end, rear)
    excess = path_length(threads, count) - threads.length[hole]
    if excess <= 0.0:
        return
    dt2 = lattice.dt * lattice.dt
    yields = wp.max(threads.length[hole], SHORTEST) / (STRETCH * dt2)
    for k in range(count):
        slope = wp.length_sq(path_slope(threads, count, k))
        if threads.on[k] >= 0:
            yields += slope * yield_of(lattice, samples.places, samples.weights, threads.touch[threads.on[k]])
        elif k == 0:
            yields += slope * yield_of(lattice, threads.places, threads.weights, hole)
        elif end >= 0:
            yields += slope * yield_of(lattice, threads.places, threads.weights, end)
    room = STRONGEST * dt2 - threads.sum[hole]
    push = wp.min(excess / yields, wp.max(room, 0.0))
    threads.sum[hole] = threads.sum[hole] + push
    for k in range(count):
        shift = -push * path_slope(threads, count, k)
        if threads.on[k] >= 0:
            s = threads.touch[threads.on[k]]
            shift_masses(lattice, samples.places, samples.weights, s, tau, shift, velocity_out, position_out)
        elif k == 0:
            shift_masses(lattice, threads.places, threads.weights, hole, tau, shift, velocity_out, position_out)
        elif end >= 0:
            shift_masses(lattice, threads.places, threads.weights, end, tau, shift, velocity_out, position_out)
        else:
            feel(threads, shift / dt2, rear - tip, force_out)


@wp.func
def way_on(threads: Threads, hole: int, end: int, rear: wp.vec3):
    """Direction in which thread leaves a hole towards another one, or the needle."""
    other = rear
    if end >= 0:
        other = threads.at[end]
    return wp.normalize(other - threads.at[hole])


@wp.func
def slide_at(lattice: Lattice, threads: Threads, hole: int, rear: wp.vec3):
    """Thread slides through a hole to the side that pulls more, as far as friction lets it (Euler, Eytelwein)."""
    first = threads.start[hole]
    before = hole - 1
    if hole == first:
        before = _TAIL
        if first < threads.counts[FIRST] or threads.kind[hole] == FREE or threads.counts[TYING] == 1:
            return  # a knot: nothing slides
    end = end_of(threads, hole)
    if end < -1:
        return
    low = threads.numbers[TAIL_TENSION]
    turn = float(1.57)
    if before < _TAIL:
        low = threads.tension[before]
        cosine = wp.dot(way_on(threads, hole, before, rear), way_on(threads, hole, end, rear))
        turn = wp.acos(wp.clamp(-cosine, -1.0, 1.0))
    high = threads.tension[hole]
    ratio = wp.exp(HOLE_FRICTION * turn)
    stiff = yield_of(lattice, threads.places, threads.weights, hole) * lattice.dt * lattice.dt
    most = FASTEST_SLIDE * lattice.dt
    gives = float(0.0)
    if high > ratio * low + HOLE_GRIP:
        gives = wp.min(SLIDE * (high - ratio * low - HOLE_GRIP) * stiff, most)
    elif low > ratio * high + HOLE_GRIP:
        gives = -wp.min(SLIDE * (low - ratio * high - HOLE_GRIP) * stiff, most)
    have = threads.numbers[TAIL_LENGTH]
    if before < _TAIL:
        have = threads.length[before]
    gives = wp.clamp(gives, -wp.max(threads.length[hole] - SHORTEST, 0.0), wp.max(have - SHORTEST, 0.0))
    threads.length[hole] = threads.length[hole] + gives
    if before < _TAIL:
        threads.length[before] = have - gives
    else:
        threads.numbers[TAIL_LENGTH] = have - gives


@wp.func
def hold_hole(
    lattice: Lattice, threads: Threads, tau: float, share: float, turned: float, hole: int, tip: wp.vec3,
    velocity_out: wp.array(dtype=wp.float32), position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """A hole with the needle in it stays on the needle's circle, and friction takes it along; one that the point has
    not pierced yet stays at the point."""
    x = hole_place(lattice, threads, tau, position_out, velocity_out, hole)
    yields = yield_of(lattice, threads.places, threads.weights, hole)
    if yields == 0.0:
        return
    dt2 = lattice.dt * lattice.dt
    across = hand3(threads, HAND_ACROSS)
    up = hand3(threads, HAND_UP)
    middle = hand3(threads, HAND_START) + share * (hand3(threads, HAND_END) - hand3(threads, HAND_START))
    angle = threads.numbers[ANGLE]
    if threads.held[hole] == ON_NEEDLE:
        angle = wp.atan2(-wp.dot(x - middle, up), -wp.dot(x - middle, across))
    way = needle_at(threads, share, angle) - x
    force = way / (yields * dt2)
    size = wp.length(force)
    if size > FIRMEST:
        force = force * (FIRMEST / size)
    if threads.held[hole] == ON_NEEDLE and turned != 0.0:
        along = wp.sin(angle) * across - wp.cos(angle) * up
        force += wp.sign(turned) * threads.hand[HAND_FRICTION] * along
    if threads.held[hole] == ON_POINT:
        threads.numbers[FELT] = threads.numbers[FELT] + STEADY * (wp.length(force) - threads.numbers[FELT])
    shift_masses(lattice, threads.places, threads.weights, hole, tau, dt2 * force, velocity_out, position_out)
    feel(threads, -force, x - tip, force_out)


@wp.kernel
def pull_threads(
    # params
    lattice: Lattice,
    samples: Samples,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    tips: wp.array(dtype=wp.float32),
    tips_at: int,
    # out
    threads: Threads,
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):
    """After a substep: threads that are taut pull, the needle holds its holes, and thread slides. On one thread."""
    count = threads.counts[COUNT]
    if count == 0:
        return
    tau = live[LIVE_VISCOUS_TIME]
    share = float(substep + 1) / float(lattice.substeps)
    at = tips_at + 6 * int(threads.hand[HAND_TOOL]) + 3
    tip = wp.vec3(tips[at], tips[at + 1], tips[at + 2])
    rear = needle_at(threads, share, threads.numbers[ANGLE] - NEEDLE_ARC)
    turned = float(0.0)
    if threads.counts[PHASE] == 1:
        turned = 1.0
    if threads.counts[PHASE] == 3:
        turned = -1.0
    for hole in range(count):
        threads.sum[hole] = 0.0
        if threads.held[hole] != LOOSE_HOLE:
            hold_hole(lattice, threads, tau, share, turned, hole, tip, velocity_out, position_out, force_out)
    for _pass in range(PASSES):
        for hole in range(count):
            pull_length(
                lattice, samples, threads, tau, hole, rear, tip, velocity_out, position_out, force_out
            )  # fmt: skip
    for hole in range(count):
        threads.at[hole] = hole_place(lattice, threads, tau, position_out, velocity_out, hole)
        now = threads.sum[hole] / (lattice.dt * lattice.dt)
        threads.tension[hole] = threads.tension[hole] + STEADY * (now - threads.tension[hole])
    for hole in range(count):
        if threads.held[hole] == LOOSE_HOLE:
            slide_at(lattice, threads, hole, rear)
