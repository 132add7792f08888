"""Thread that lies free falls, swings and lies on tissue; a knot is drawn and tied (sewing.py). On one thread of the
device, at the end of a tick."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.blade_kernels import Blades
from viscera.tissue.kernels import LIVE_VISCOUS_TIME, Lattice
from viscera.tissue.needle_kernels import (
    EASE,
    READY,
    SPARE,
    height_over,
    lay_straight,
    nearest_in,
    nearest_of_all,
    take_up,
    turn_needle,
)
from viscera.tissue.samples import Samples, hanging
from viscera.tissue.thread_kernels import (
    ANGLE,
    CLAMPED,
    CLOSING,
    COUNT,
    FIRST,
    FREE,
    HAND_ON,
    INSIDE,
    KNOTS,
    LEFT,
    NEEDLE_ARC,
    NEW,
    PHASE,
    POINTS,
    TAIL,
    TAIL_LENGTH,
    TIE_PRESSED,
    TIE_PULL,
    TIE_REACH,
    TIE_TIP,
    TO_HAND,
    TURN,
    TYING,
    Threads,
    end_of,
    hand3,
    hole_place,
    lay_path,
    needle_at,
    path_length,
)

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

KEPT = wp.constant(0.9)
"""Share of its velocity that free thread keeps in a tick: it is light, and wet."""
GRAVITY = wp.constant(9.81)
"""[m/s²]"""
ROUNDS = wp.constant(6)
"""In which free points find their distances."""
LOOKS = wp.constant(2)
"""Free points whose nearest surface is looked for everywhere in a tick; the others look where they were."""
SELDOM = wp.constant(4)
"""Ticks after which a point near the surface looks again which of its points is nearest."""
THREAD_RADIUS = wp.constant(1.5e-4)
"""[m]"""
NEARLY = wp.constant(5.0e-4)
"""Thread that is no higher than this would lie on the surface if it were taut, or might as the surface comes up [m]."""
MARGIN = wp.constant(1.5e-3)
"""Thread with so much to spare is slack for a tick [m]: hands move less."""
TIE_SPEED = wp.constant(0.02)
"""How fast a knot is drawn [m/s]."""
CUT_OFF = wp.constant(0.012)
"""Thread that is lost with each knot: both its ends [m]."""
USELESS = wp.constant(0.03)
"""Less thread makes no stitch [m]."""

_POINTS, _TAIL = wp.constant(POINTS), wp.constant(TAIL)


# --- knots ---


@wp.func
def thread_end(threads: Threads, count: int):
    """Length of thread in the stitch on the needle [m]."""
    total = float(0.0)
    for hole in range(threads.counts[FIRST], count):
        total += threads.length[hole]
    return total


@wp.func
def begin_knot(threads: Threads):
    """The thread from the last hole is laid back to the first one."""
    first = threads.counts[FIRST]
    last = threads.counts[COUNT] - 1
    tip = hand3(threads, TIE_TIP)
    near = wp.min(wp.length(threads.at[last] - tip), wp.length(threads.at[first] - tip))
    near = wp.min(near, wp.length(0.5 * (threads.at[first] + threads.at[last]) - tip))
    way = EASE * wp.length(threads.at[last] - threads.at[first]) + 0.001
    if near > threads.hand[TIE_REACH] or threads.length[last] < way:
        return
    threads.counts[TYING] = 1
    threads.kind[last] = CLOSING
    threads.numbers[TAIL_LENGTH] = threads.numbers[TAIL_LENGTH] + threads.length[last] - way
    threads.length[last] = way
    lay_straight(threads, last, threads.at[last], threads.at[first])


@wp.func
def end_knot(threads: Threads):
    """Tied: what is left stays on the needle."""
    count = threads.counts[COUNT]
    threads.counts[TYING] = 0
    left = threads.numbers[LEFT] - thread_end(threads, count) - CUT_OFF
    threads.numbers[LEFT] = wp.where(left < USELESS, 0.0, left)
    threads.numbers[TAIL_LENGTH] = threads.numbers[LEFT]
    threads.counts[FIRST] = count
    threads.counts[KNOTS] = threads.counts[KNOTS] + 1
    rear = needle_at(threads, 1.0, threads.numbers[ANGLE] - NEEDLE_ARC)
    lay_straight(threads, _TAIL, rear, rear - wp.vec3(0.0, 0.0, 0.01))


@wp.func
def draw_knot(threads: Threads, tick: float):
    counts = threads.counts
    pressed = threads.hand[TIE_PRESSED] > 0.0
    if counts[TYING] == 0:
        there = counts[COUNT] - counts[FIRST] >= 2 and counts[PHASE] == READY
        if pressed and there and threads.kind[counts[COUNT] - 1] == TO_HAND:
            begin_knot(threads)
        return
    last = counts[COUNT] - 1
    if not pressed:
        end_knot(threads)
    elif threads.tension[last] < threads.hand[TIE_PULL]:
        give = wp.min(TIE_SPEED * tick, wp.max(threads.length[last] - 0.001, 0.0))
        threads.length[last] = threads.length[last] - give
        threads.numbers[TAIL_LENGTH] = threads.numbers[TAIL_LENGTH] + give


# --- free thread ---


@wp.func
def keep_apart(threads: Threads, a: int, b: int, length: float):
    """Two neighbours come within their distance."""
    way = threads.point[b] - threads.point[a]
    far = wp.length(way)
    if far > length:
        half = (0.5 * (far - length) / far) * way
        threads.point[a] = threads.point[a] + half
        threads.point[b] = threads.point[b] - half


@wp.func
def keep_near(threads: Threads, p: int, anchor: wp.vec3, length: float):
    """A free point comes within its distance from an end."""
    way = threads.point[p] - anchor
    far = wp.length(way)
    if far > length:
        threads.point[p] = anchor + (length / far) * way


@wp.func
def lie_on(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), p: int,
):  # fmt: skip
    """A free point below the surface goes up to it, and lies there."""
    threads.touch[p] = -1
    bundle = threads.bundle[p]
    if bundle < 0:
        return
    if (lattice.clock[0] + p) % SELDOM == 0:
        found, _least = nearest_in(
            lattice, samples, tau, position, velocity, bundle, 0, threads.point[p], -1, 1.0
        )  # fmt: skip
        threads.near[p] = found
    s = threads.near[p]
    high, normal = height_over(lattice, samples, tau, position, velocity, bundle, s, threads.point[p])
    if high < THREAD_RADIUS + NEARLY:
        place, _v = hanging(samples, lattice.slots, tau, position, velocity, s)
        threads.touch[p] = s
        threads.off[p] = threads.point[p] + (THREAD_RADIUS - high) * normal - place
        threads.normal[p] = normal
    if high < THREAD_RADIUS:
        threads.point[p] = threads.point[p] + (THREAD_RADIUS - high) * normal
        # On tissue it does not slide by itself.
        threads.before[p] = threads.point[p]


@wp.func
def bridge(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), a: int, b: int,
):  # fmt: skip
    """Thread between two free points stays above the surface too."""
    bundle = threads.bundle[a]
    if bundle < 0 or threads.bundle[b] < 0:
        return
    x = 0.5 * (threads.point[a] + threads.point[b])
    s = threads.near[a]
    high, normal = height_over(lattice, samples, tau, position, velocity, bundle, s, x)
    if high < THREAD_RADIUS:
        threads.point[a] = threads.point[a] + (THREAD_RADIUS - high) * normal
        threads.point[b] = threads.point[b] + (THREAD_RADIUS - high) * normal


@wp.func
def look_up(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), bundles: int, p: int,
):  # fmt: skip
    """A free point looks for the surface nearest to it, everywhere."""
    guess = int(-1)
    if threads.bundle[p] >= 0:
        guess = threads.near[p]
    s, owner = nearest_of_all(
        lattice, samples, tau, position, velocity, bundles, 0, threads.point[p], guess, threads.bundle[p]
    )  # fmt: skip
    threads.bundle[p] = owner
    threads.near[p] = s


@wp.func
def settle_length(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), bundles: int, number: int, whole: float, start: wp.vec3, end: wp.vec3,
    ends: int,
):  # fmt: skip
    """A tick of the free points of one length: with both its `ends` fixed, or the first alone."""
    if threads.slack[number] == NEW:
        threads.slack[number] = 0
        for k in range(_POINTS):
            look_up(lattice, samples, threads, tau, position, velocity, bundles, number * _POINTS + k)
    tick = lattice.dt * float(lattice.substeps)
    first = number * _POINTS
    piece = whole / float(_POINTS + ends - 1)
    for k in range(_POINTS):
        p = first + k
        moved = KEPT * (threads.point[p] - threads.before[p])
        threads.before[p] = threads.point[p]
        threads.point[p] = threads.point[p] + moved - wp.vec3(0.0, 0.0, GRAVITY * tick * tick)
    for _round in range(ROUNDS):
        keep_near(threads, first, start, piece)
        for k in range(_POINTS - 1):
            keep_apart(threads, first + k, first + k + 1, piece)
        if ends == 2:
            keep_near(threads, first + _POINTS - 1, end, piece)
        for k in range(_POINTS - 2, -1, -1):
            keep_apart(threads, first + k, first + k + 1, piece)
    for k in range(_POINTS - 1):
        bridge(lattice, samples, threads, tau, position, velocity, first + k, first + k + 1)
    for k in range(_POINTS):
        lie_on(lattice, samples, threads, tau, position, velocity, first + k)


@wp.func
def look_around(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), bundles: int,
):  # fmt: skip
    """Some free points look for the surface nearest to them."""
    lengths = threads.counts[COUNT] + 1
    for _look in range(LOOKS):
        n = threads.counts[TURN] % (lengths * _POINTS)
        threads.counts[TURN] = n + 1
        number = n // _POINTS
        if number == threads.counts[COUNT]:
            number = _TAIL
        p = number * _POINTS + n % _POINTS
        if number == _TAIL or threads.kind[number] > INSIDE:
            look_up(lattice, samples, threads, tau, position, velocity, bundles, p)


@wp.func
def is_slack(
    lattice: Lattice, samples: Samples, threads: Threads, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), hole: int, rear: wp.vec3,
):  # fmt: skip
    end = end_of(threads, hole)
    if end < -1:
        return 1
    count = lay_path(lattice, samples, threads, tau, position, velocity, hole, end, rear)
    if path_length(threads, count) < threads.length[hole] - MARGIN:
        return 1
    return 0


@wp.kernel
def advance_threads(
    # params
    lattice: Lattice,
    samples: Samples,
    bundles: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    blades: Blades,
    # out
    threads: Threads,
):
    """At the end of a tick."""
    counts = threads.counts
    if counts[COUNT] == 0 and threads.hand[HAND_ON] == 0.0:
        return
    tau = live[LIVE_VISCOUS_TIME]
    tick = lattice.dt * float(lattice.substeps)
    turn_needle(lattice, samples, threads, blades, tau, position, velocity, bundles)
    take_up(threads, tick)
    draw_knot(threads, tick)
    look_around(lattice, samples, threads, tau, position, velocity, bundles)
    rear = needle_at(threads, 1.0, threads.numbers[ANGLE] - NEEDLE_ARC)
    for hole in range(counts[COUNT]):
        threads.at[hole] = hole_place(lattice, threads, tau, position, velocity, hole)
    for hole in range(counts[COUNT]):
        kind = threads.kind[hole]
        if kind > INSIDE:
            end = rear
            ends = int(2)
            if kind == CLOSING:
                end = threads.at[threads.start[hole]]
            elif kind != TO_HAND:
                end = threads.at[hole + 1]
            elif threads.hand[HAND_ON] == 0.0:
                ends = 1
            settle_length(
                lattice, samples, threads, tau, position, velocity, bundles, hole, threads.length[hole],
                threads.at[hole], end, ends,
            )  # fmt: skip
        if kind != FREE:
            threads.slack[hole] = is_slack(lattice, samples, threads, tau, position, velocity, hole, rear)
    if counts[COUNT] == counts[FIRST] and threads.hand[HAND_ON] == 0.0:
        return  # the thread has left with its needle
    anchor = rear
    if counts[COUNT] > counts[FIRST] and threads.kind[counts[FIRST]] != FREE:
        anchor = threads.at[counts[FIRST]]
    tail = threads.numbers[TAIL_LENGTH]
    if threads.counts[TYING] == 1:
        tail = SPARE
    settle_length(lattice, samples, threads, tau, position, velocity, bundles, _TAIL, tail, anchor, anchor, 1)


@wp.kernel
def advance_clamps(
    # params
    lattice: Lattice,
    # out
    threads: Threads,
):
    """At the end of a tick: clips and staples close, and one that is pulled past what it holds slips."""
    closes = TIE_SPEED * lattice.dt * float(lattice.substeps)
    for hole in range(threads.counts[COUNT]):
        if threads.kind[hole] == CLAMPED:
            threads.length[hole] = wp.max(threads.length[hole] - closes, threads.goal[hole])
            if threads.tension[hole] > threads.hold[hole]:
                threads.kind[hole] = FREE
                threads.tension[hole] = 0.0
