"""What a needle and free thread do in a tick: the needle turns, pierces and leaves holes; a knot is drawn; thread that
lies free falls, and lies on tissue (sewing.py). On one thread of the device."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.blade_kernels import Blades, at_rest, slot_at, whole_floor
from viscera.tissue.kernels import Lattice
from viscera.tissue.samples import Samples, hanging, middle_of, way_under
from viscera.tissue.thread_kernels import (
    ANGLE,
    BITE,
    COUNT,
    FELT,
    FIRST,
    FREE,
    HAND_ON,
    HAND_PIERCE,
    HAND_PRESSED,
    HOLES,
    INSIDE,
    LEFT,
    LOOSE_HOLE,
    NEEDLE_ARC,
    NEW,
    ON_NEEDLE,
    ON_POINT,
    OUT,
    OUTSIDE,
    PHASE,
    POINTS,
    REFUSED,
    TAIL,
    TAIL_LENGTH,
    TIP_BUNDLE,
    TIP_NEAR,
    TO_HAND,
    WITHIN,
    Threads,
    needle_at,
)
from viscera.tissue.touch_kernels import LOOSE, SLACK

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

READY, DRIVEN, DRAWN, TAKEN_BACK = (wp.constant(k) for k in range(4))
"""What a needle does: waits, turns while the handle is pressed, is drawn through, goes back the way it came."""
ANGLE_HOME, ANGLE_MOST, ANGLE_END = wp.constant(-0.35), wp.constant(3.75), wp.constant(5.933)
"""Of its point: before a bite, as far as a wrist turns, and the first of them a full turn later [rad]."""
TURN_SPEED, DRAW_SPEED = wp.constant(4.0), wp.constant(8.0)
"""With the wrist, and drawn through [rad/s]."""

HOLE_APART = wp.constant(1.2)
"""Holes within tissue along the needle's way [cells]."""
NEAR = wp.constant(4.0e-3)
"""Surface farther away than this is none [m]."""
ASIDE = wp.constant(1.5e-3)
"""What is farther aside of the nearest point of the surface is not over it [m]: in a gap, or beyond the rim."""
DEEPEST = wp.constant(3.0e-3)
"""Thread deeper than this is not under this surface [m]."""

SELDOM = wp.constant(8)
"""Ticks after which the needle's point looks again which point of the surface is nearest: it goes 0.2 mm in them."""
SPARE = wp.constant(0.012)
"""Thread between the last hole and the needle as that is drawn through [m]."""
TAIL_LEFT = wp.constant(0.006)
"""Thread that stays behind the first hole [m]."""
TAKE_UP = wp.constant(0.15)
"""How fast thread is drawn through holes after the needle [m/s]."""
EASE = wp.constant(1.02)
"""Thread over the shortest way, as it is first laid."""

_POINTS, _HOLES, _TAIL = wp.constant(POINTS), wp.constant(HOLES), wp.constant(TAIL)


@wp.func
def nearest_in(
    lattice: Lattice, samples: Samples, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), bundle: int, fine: int, x: wp.vec3, found: int, least: float,
):  # fmt: skip
    """The point of a bundle that is nearest to x, if it is nearer than `least`; coarse ones come first."""
    for s in range(samples.begin[bundle], samples.begin[bundle + 1]):
        if fine == 0 and samples.thickest[s] < 1.0e8:
            break
        place, _v = hanging(samples, lattice.slots, tau, position, velocity, s)
        far = wp.length(place - x)
        if far < least:
            least = far
            found = s
    return found, least


@wp.func
def nearest_of_all(
    lattice: Lattice, samples: Samples, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), bundles: int, fine: int, x: wp.vec3, guess: int, guess_owner: int,
):  # fmt: skip
    """The point of the surface nearest to x and its bundle, -1 where none is near. What was nearest a while ago, if
    anything, rules out most bundles at once."""
    found = int(-1)
    owner = int(-1)
    least = float(NEAR)
    if guess >= 0:
        place, _v = hanging(samples, lattice.slots, tau, position, velocity, guess)
        far = wp.length(place - x)
        if far < least:
            found = guess
            owner = guess_owner
            least = far
    for bundle in range(bundles):
        middle = middle_of(samples, lattice.slots, position, bundle)
        if wp.length(middle - x) - LOOSE * samples.radius[bundle] - SLACK < least:
            before = least
            found, least = nearest_in(
                lattice, samples, tau, position, velocity, bundle, fine, x, found, least
            )  # fmt: skip
            if least < before:
                owner = bundle
    return found, owner


@wp.func
def outward(samples: Samples, slots: int, position: wp.array(dtype=wp.float32), bundle: int, s: int):
    """The surface's normal at a point, turned as its bundle is."""
    x = middle_of(samples, slots, position, bundle)
    turn = wp.quat_between_vectors(samples.under[bundle], way_under(samples, slots, position, bundle, x))
    return wp.quat_rotate(turn, samples.normal[s])


@wp.func
def height_over(
    lattice: Lattice, samples: Samples, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), bundle: int, s: int, x: wp.vec3,
):  # fmt: skip
    """How high x is over the surface at its nearest point s [m], and the normal there; far up where it is not over
    it."""
    place, _v = hanging(samples, lattice.slots, tau, position, velocity, s)
    normal = outward(samples, lattice.slots, position, bundle, s)
    high = wp.dot(x - place, normal)
    if wp.length(x - place - high * normal) > ASIDE or high < -DEEPEST:
        high = 1.0
    return high, normal


# --- the needle ---


@wp.func
def add_hole(lattice: Lattice, samples: Samples, threads: Threads, blades: Blades, s: int, x: wp.vec3, rest: wp.vec3):
    """A hole where the point is, on the surface at its point s, or in the tissue, at `rest` there. Whether there was
    room."""
    n = threads.counts[COUNT]
    if n >= _HOLES:
        return 0
    threads.kind[n] = FREE
    threads.held[n] = wp.where(s >= 0, ON_POINT, ON_NEEDLE)
    threads.start[n] = threads.counts[FIRST]
    threads.angle[n] = threads.numbers[ANGLE]
    threads.length[n] = 0.0
    threads.tension[n] = 0.0
    threads.rest[n] = rest
    threads.at[n] = x
    for c in range(8):
        threads.places[8 * n + c] = 0
        threads.weights[8 * n + c] = 0.0
    if s >= 0:
        for c in range(samples.corners):
            threads.places[8 * n + c] = samples.places[s * samples.corners + c]
            threads.weights[8 * n + c] = samples.weights[s * samples.corners + c]
    else:
        hang_hole(lattice, threads, blades, n)
    threads.counts[COUNT] = n + 1
    return 1


@wp.func
def hang_hole(lattice: Lattice, threads: Threads, blades: Blades, n: int):
    """On the eight masses of its cell."""
    x = threads.rest[n] / lattice.spacing
    bx = int(wp.floor(x[0]))
    by = int(wp.floor(x[1]))
    bz = int(wp.floor(x[2]))
    for c in range(8):
        w = wp.where(c % 2 == 1, x[0] - float(bx), 1.0 - x[0] + float(bx))
        w = w * wp.where(c // 2 % 2 == 1, x[1] - float(by), 1.0 - x[1] + float(by))
        w = w * wp.where(c // 4 == 1, x[2] - float(bz), 1.0 - x[2] + float(bz))
        threads.places[8 * n + c] = slot_at(blades, bx + c % 2, by + c // 2 % 2, bz + c // 4)
        threads.weights[8 * n + c] = w


@wp.func
def whole_cell(lattice: Lattice, blades: Blades, x: wp.vec3d):
    """Whether no edge of the cell around a place at rest is cut: a hole in it then is on one side."""
    bx = whole_floor(x[0])
    by = whole_floor(x[1])
    bz = whole_floor(x[2])
    whole = wp.bool(True)
    for c in range(8):
        cx = c % 2
        cy = c // 2 % 2
        cz = c // 4
        i = slot_at(blades, bx + cx, by + cy, bz + cz)
        if i < 0:
            whole = False
        else:
            # Edges along x, y and z start at the corners with that coordinate 0; see springs.DIRECTIONS.
            whole = whole and (cx == 1 or blades.cut[i] == wp.uint8(0))
            whole = whole and (cy == 1 or blades.cut[2 * lattice.slots + i] == wp.uint8(0))
            whole = whole and (cz == 1 or blades.cut[8 * lattice.slots + i] == wp.uint8(0))
    return whole


@wp.func
def pierce(
    lattice: Lattice, samples: Samples, threads: Threads, blades: Blades, tau: float,
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), bundles: int,
):  # fmt: skip
    """The point goes on: through the surface, in or out, where it takes force, or through tissue."""
    counts = threads.counts
    n = counts[COUNT]
    tip = needle_at(threads, 1.0, threads.numbers[ANGLE])
    if n > counts[BITE] and threads.held[n - 1] == ON_POINT:
        if threads.numbers[FELT] >= threads.hand[HAND_PIERCE]:
            threads.held[n - 1] = ON_NEEDLE
            counts[OUT] = counts[WITHIN]
            counts[WITHIN] = 1 - counts[WITHIN]
        return
    s = counts[TIP_NEAR] - 1
    owner = counts[TIP_BUNDLE]
    if s < 0 or lattice.clock[0] % SELDOM == 0:
        s, owner = nearest_of_all(lattice, samples, tau, position, velocity, bundles, 1, tip, s, owner)
    counts[TIP_NEAR] = s + 1
    counts[TIP_BUNDLE] = owner
    if s >= 0:
        high, normal = height_over(lattice, samples, tau, position, velocity, owner, s, tip)
        crosses = (counts[WITHIN] == 0 and high < 0.0) or (counts[WITHIN] == 1 and high > 0.0 and high < 0.5)
        if crosses and counts[OUT] == 0:
            place, _v = hanging(samples, lattice.slots, tau, position, velocity, s)
            threads.numbers[FELT] = 0.0
            rest = samples.rest[s] + tip - place - high * normal
            counts[REFUSED] = counts[REFUSED] + 1 - add_hole(lattice, samples, threads, blades, s, tip, rest)
            return
    if counts[WITHIN] == 1 and wp.length(tip - threads.at[n - 1]) > HOLE_APART * lattice.spacing:
        here = wp.vec3d(wp.float64(tip[0]), wp.float64(tip[1]), wp.float64(tip[2])) / wp.float64(lattice.spacing)
        cell, around = at_rest(lattice, blades, tau, position, velocity, here, here, wp.vec3d(), 1)
        if around == 8 and whole_cell(lattice, blades, cell):
            home = wp.vec3(float(cell[0]), float(cell[1]), float(cell[2])) * lattice.spacing
            counts[REFUSED] = counts[REFUSED] + 1 - add_hole(lattice, samples, threads, blades, -1, tip, home)


@wp.func
def lay_straight(threads: Threads, length: int, start: wp.vec3, end: wp.vec3):
    """Free points in a line."""
    threads.slack[length] = NEW
    for k in range(_POINTS):
        share = float(k + 1) / float(_POINTS + 1)
        p = length * _POINTS + k
        threads.point[p] = start + share * (end - start)
        threads.before[p] = threads.point[p]
        threads.bundle[p] = -1
        threads.touch[p] = -1


@wp.func
def thread_bite(threads: Threads, rear: wp.vec3):
    """The needle is through: thread takes its place in the holes of this bite. Without enough of it there is no
    stitch, and the thread stays as it was."""
    counts = threads.counts
    bite = counts[BITE]
    last = counts[COUNT] - 1
    before = wp.where(bite == counts[FIRST], _TAIL, bite - 1)
    have = threads.numbers[TAIL_LENGTH]
    if before < _TAIL:
        have = threads.length[before]
    within = float(0.0)
    for hole in range(bite, last):
        threads.length[hole] = EASE * wp.length(threads.at[hole + 1] - threads.at[hole])
        within += threads.length[hole]
    ahead = wp.length(rear - threads.at[last]) + SPARE
    if have < within + ahead + SPARE:
        counts[COUNT] = bite
        counts[REFUSED] = counts[REFUSED] + 1
        return
    for hole in range(bite, last + 1):
        threads.held[hole] = LOOSE_HOLE
        threads.kind[hole] = wp.where(hole < last, INSIDE, TO_HAND)
    threads.length[last] = ahead
    if before < _TAIL:
        threads.length[before] = have - within - ahead
        threads.kind[before] = OUTSIDE
    else:
        threads.numbers[TAIL_LENGTH] = have - within - ahead
    lay_straight(threads, last, threads.at[last], rear)


@wp.func
def give_up_bite(threads: Threads):
    """The needle goes back: holes that its point has left are none."""
    counts = threads.counts
    n = counts[COUNT]
    while n > counts[BITE] and threads.angle[n - 1] > threads.numbers[ANGLE]:
        n -= 1
    counts[COUNT] = n


@wp.func
def turn_needle(
    lattice: Lattice, samples: Samples, threads: Threads, blades: Blades, tau: float,
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), bundles: int,
):  # fmt: skip
    """A tick of the needle: it turns while the handle is pressed; let go, it is drawn through if its point is out, and
    taken back if not."""
    counts = threads.counts
    tick = lattice.dt * float(lattice.substeps)
    on = threads.hand[HAND_ON] > 0.0
    pressed = on and threads.hand[HAND_PRESSED] > 0.0
    if counts[PHASE] == READY and pressed and threads.numbers[LEFT] > 0.0:
        counts[PHASE] = DRIVEN
        counts[BITE] = counts[COUNT]
        counts[WITHIN] = 0
        counts[OUT] = 0
    if counts[PHASE] == DRIVEN:
        blunt = counts[COUNT] > counts[BITE] and threads.held[counts[COUNT] - 1] == ON_POINT
        far = threads.numbers[ANGLE] + wp.where(blunt, 0.5, 1.0) * TURN_SPEED * tick
        threads.numbers[ANGLE] = wp.min(far, ANGLE_MOST)
        pierce(lattice, samples, threads, blades, tau, position, velocity, bundles)
        if not pressed:
            counts[PHASE] = TAKEN_BACK
            if counts[OUT] == 1:
                counts[PHASE] = DRAWN
                thread_bite(threads, needle_at(threads, 1.0, threads.numbers[ANGLE] - NEEDLE_ARC))
    elif counts[PHASE] == DRAWN:
        threads.numbers[ANGLE] = threads.numbers[ANGLE] + DRAW_SPEED * tick
        if threads.numbers[ANGLE] >= ANGLE_END:
            threads.numbers[ANGLE] = ANGLE_HOME
            counts[PHASE] = READY
    elif counts[PHASE] == TAKEN_BACK:
        threads.numbers[ANGLE] = wp.max(threads.numbers[ANGLE] - DRAW_SPEED * tick, ANGLE_HOME)
        give_up_bite(threads)
        if threads.numbers[ANGLE] <= ANGLE_HOME or not on:
            threads.numbers[ANGLE] = ANGLE_HOME
            counts[COUNT] = counts[BITE]
            counts[PHASE] = READY


@wp.func
def take_up(threads: Threads, tick: float):
    """Thread follows the needle that was drawn through: what is slack behind the bite goes to the hand."""
    counts = threads.counts
    n = counts[COUNT]
    if n <= counts[FIRST] or threads.kind[n - 1] != TO_HAND or counts[PHASE] == DRIVEN:
        return
    bite = n - 1
    while bite > counts[FIRST] and threads.kind[bite - 1] == INSIDE:
        bite -= 1
    most = TAKE_UP * tick
    if bite == counts[FIRST]:
        give = wp.clamp(threads.numbers[TAIL_LENGTH] - TAIL_LEFT, 0.0, most)
        threads.numbers[TAIL_LENGTH] = threads.numbers[TAIL_LENGTH] - give
        threads.length[n - 1] = threads.length[n - 1] + give
    elif threads.slack[bite - 1] != 0:
        give = wp.min(most, wp.max(threads.length[bite - 1] - TAIL_LEFT, 0.0))
        threads.length[bite - 1] = threads.length[bite - 1] - give
        threads.length[n - 1] = threads.length[n - 1] + give
