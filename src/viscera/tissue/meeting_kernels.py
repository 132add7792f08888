"""Tissue meets tissue: the kernels of meeting.py, where the equations are.

Each works on a list, some of its places each thread; on cpu there is one thread. What a mass gets it sums itself, over
its partners in a fixed order, so that a device does the same every time, with any number of cores.
"""

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import LIVE_VISCOUS_TIME, Lattice, load3, store3

# Loops stay loops: unrolled they take long to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

PARTNERS = 12
"""Of a mass, at most: some four lie opposite."""
CANDIDATES = 48
"""Of a mass, that are listed: the masses near it, of those that it may meet."""
RUNAWAYS = 32
"""Masses that may be farther from where they were when candidates were found than these allow for."""
FAR = 1.0e6
"""Farther than anything [m]."""
PIECES = 64
"""That are told apart; what more there are count as one."""
BUCKETS = 4096
"""Of the grid of masses."""
NEIGHBOURS = 26
REACH = 2
"""How far from each other at rest masses at a cut that has not landed meet, in cells; see fresh_cuts.py."""
MATES = (2 * REACH + 1) ** 3 - 1
FRESH = 16_384
"""Masses at cuts that have not landed; what more there are meet when they land."""

SOFT = wp.constant(0.05)
"""How deep a surface is in another before it is pushed in full, in cells."""
APART = wp.constant(0.8)
"""Share of its depth by which it is moved apart in a substep."""
FARTHEST = wp.constant(0.1)
"""Nothing is moved farther in a substep than this, in cells."""
LIFT = wp.constant(0.02)
"""Out of the table nothing is moved farther in a substep than this, in cells: what was below it would be thrown up."""

_PARTNERS = wp.constant(PARTNERS)


@wp.struct
class Meet:
    """Masses at the surface of all lattices that meet, in the order of the lattices."""

    spacing: float
    """Of the coarsest lattice [m]."""
    friction: float
    dt: float
    """Of a substep [s]."""
    table: float
    """Height of the table over the common origin [m]; far below where there is none."""
    count: wp.array(dtype=wp.int32)
    """How many they are; how many are listed; how many pairs found no room; 1 where candidates are to
    be found anew; how many run away."""
    begin: wp.array(dtype=wp.int32)
    """First mass of each lattice, and behind the last one."""
    place: wp.array(dtype=wp.int32)
    """In its lattice."""
    rest: wp.array(dtype=wp.vec3)
    """From the common origin [m]."""
    inverse_mass: wp.array(dtype=wp.float32)
    piece: wp.array(dtype=wp.int32)
    kind: wp.array(dtype=wp.int32)
    """Bit 1: it has lost a spring."""
    offset: wp.array(dtype=wp.float32)
    """From the mass to its surface, along its normal [m]."""
    owner: wp.array(dtype=wp.int32)
    """Its lattice."""
    key: wp.array(dtype=wp.int32)
    """Partners are in this order: their numbers, and behind them what has not landed, by its place."""
    tied: wp.array(dtype=wp.int32)
    """Places of the masses that it is tied to, NEIGHBOURS each; -1 where there is none, -2 - place where the spring was
    cut and that has not landed."""
    leans: wp.array(dtype=wp.int32)
    """Bit by bit: from which of them its normal leads away."""
    flat: wp.array(dtype=wp.float32)
    """How flat its surface is there: length of its normal."""
    lean: wp.array(dtype=wp.vec3)
    """B N of the tissue at rest: N its normal, B = Σ D Dᵀ over what it is tied to, at D [cells]."""
    at: wp.array(dtype=wp.vec3)
    """Where each mass was when its candidates were last found [m]."""
    candidates: wp.array(dtype=wp.int32)
    """How many each has; one more than there is room for: all masses are."""
    candidate: wp.array(dtype=wp.int32)
    """In the order of their numbers, CANDIDATES each."""
    runaway: wp.array(dtype=wp.int32)
    """Masses that have moved too far for the candidates."""
    box: wp.array(dtype=wp.float32)
    """Around them: its low corner and its high one; with none of them, the wrong way round [m]."""
    runs: wp.array(dtype=wp.int32)
    """Of each mass: whether it is one of them."""
    fresh_count: wp.array(dtype=wp.int32)
    """How many masses there are with those at cuts that have not landed; how many are at such cuts; 1 where a list of
    candidates has run full since all were made."""
    fresh: wp.array(dtype=wp.int32)
    """Of each mass: its number among those at cuts that have not landed, -1 for others."""
    mates: wp.array(dtype=wp.int32)
    mate: wp.array(dtype=wp.int32)
    """Of those: how many they meet for that alone, and whom, MATES each."""
    head: wp.array(dtype=wp.int32)
    after: wp.array(dtype=wp.int32)
    """First mass in each bucket of the grid, and the one after each mass; -1 ends."""
    low: wp.array(dtype=wp.int32)
    high: wp.array(dtype=wp.int32)
    """Lowest and highest piece in each bucket; PIECES where one is at a cut."""
    x: wp.array(dtype=wp.vec3)
    v: wp.array(dtype=wp.vec3)
    """Where each mass is and how fast, as a round begins, and as every second one ends."""
    normal: wp.array(dtype=wp.vec3)
    listed: wp.array(dtype=wp.int32)
    """Masses with partners, or near the table."""
    partners: wp.array(dtype=wp.int32)
    """How many each has."""
    partner: wp.array(dtype=wp.int32)
    along: wp.array(dtype=wp.vec3)
    """Unit vector from a mass to its partner's surface."""
    weight: wp.array(dtype=wp.float32)
    share: wp.array(dtype=wp.float32)
    """w/(m D): part of a closing speed that the mass takes."""
    reach: wp.array(dtype=wp.float32)
    """Distance along it at which both surfaces touch [m]."""
    total: wp.array(dtype=wp.float32)
    """Sum of each mass's weights; 1 at least."""
    pushed: wp.array(dtype=wp.vec3)
    shifted: wp.array(dtype=wp.vec3)
    """What each mass gets in all rounds of a substep: velocity and displacement."""


@wp.kernel
def place_masses(
    # params
    lattice: Lattice,
    number: int,
    listed: int,
    threads: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    meet: Meet,
):
    """Where masses of a lattice are and how fast: all, or those that are listed."""
    tau = live[LIVE_VISCOUS_TIME]
    if listed == 0:
        news = meet.fresh_count[0] - meet.count[0]
        begin = meet.begin[number]
        known = meet.begin[number + 1] - begin
        for n in range(wp.tid(), known + news, threads):
            c = begin + n
            if n >= known:
                c = meet.count[0] + n - known
            if meet.owner[c] == number:
                i = meet.place[c]
                v = load3(velocity, lattice.slots, i)
                meet.x[c] = meet.rest[c] + load3(position, lattice.slots, i) - tau * v
    else:
        for n in range(wp.tid(), meet.count[1], threads):
            c = meet.listed[n]
            if meet.owner[c] == number:
                i = meet.place[c]
                v = load3(velocity, lattice.slots, i)
                meet.v[c] = v
                meet.pushed[c] = wp.vec3()
                meet.shifted[c] = wp.vec3()
                meet.x[c] = meet.rest[c] + load3(position, lattice.slots, i) - tau * v


@wp.func
def rub(velocity: wp.vec3, n: wp.vec3, change: float, friction: float):
    """Change of a sliding velocity by Coulomb's friction, where along n it changes by `change`."""
    found = wp.vec3()
    if change > 0.0:
        slide = velocity - wp.dot(velocity, n) * n
        speed = wp.length(slide)
        if speed > 1.0e-9:
            found = -slide * (wp.min(friction * change, speed) / speed)
    return found


@wp.kernel
def push_pairs(
    # params
    threads: int,
    # in
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    # out
    x_out: wp.array(dtype=wp.vec3),
    v_out: wp.array(dtype=wp.vec3),
    meet: Meet,
):
    """A round. What each gets is in force for the next one."""
    soft_depth = SOFT * meet.spacing
    farthest = FARTHEST * meet.spacing
    for n in range(wp.tid(), meet.count[1], threads):
        c = meet.listed[n]
        own_x = x[c]
        own_v = v[c]
        push = wp.vec3()
        shift = wp.vec3()
        for k in range(meet.partners[c]):
            at = _PARTNERS * c + k
            d = meet.partner[at]
            # Exactly the other way round for the partner: both see the same numbers.
            along = meet.along[at]
            deep = meet.reach[at] - wp.dot(along, x[d] - own_x)
            if deep > 0.0:
                share = meet.share[at]
                soft = wp.min(1.0, deep / soft_depth)
                speed = v[d] - own_v
                closing = soft * wp.max(-wp.dot(along, speed), 0.0)
                # All sliding that friction can hold is taken away at once, however soft the contact: it would creep.
                rubs = rub(speed, along, closing, meet.friction)
                push -= share * (closing * along + rubs)
                # What sliding is lost was not moved by either, else what sticks would creep.
                apart = soft * wp.min(APART * deep, farthest)
                shift -= share * (apart * along + meet.dt * rubs)
        x_out[c] = own_x + shift
        v_out[c] = own_v + push
        meet.pushed[c] = meet.pushed[c] + push
        meet.shifted[c] = meet.shifted[c] + shift


@wp.kernel
def move_masses(
    # params
    lattice: Lattice,
    number: int,
    threads: int,
    # in
    live: wp.array(dtype=wp.float32),
    # out
    meet: Meet,
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
):
    """Masses of a lattice take what they get, and stay over the table."""
    tau = live[LIVE_VISCOUS_TIME]
    for n in range(wp.tid(), meet.count[1], threads):
        c = meet.listed[n]
        if meet.owner[c] == number and meet.inverse_mass[c] > 0.0:
            i = meet.place[c]
            push = meet.pushed[c]
            shift = meet.shifted[c]
            below = meet.table + meet.offset[c] - meet.x[c][2]
            if below > 0.0:
                up = wp.vec3(0.0, 0.0, 1.0)
                speed = meet.v[c]
                lifts = wp.max(-speed[2], 0.0)
                rubs = rub(speed, up, lifts, meet.friction)
                push += lifts * up + rubs
                shift += wp.min(APART * below, LIFT * meet.spacing) * up + meet.dt * rubs
            store3(velocity_out, lattice.slots, i, load3(velocity_out, lattice.slots, i) + push)
            store3(position_out, lattice.slots, i, load3(position_out, lattice.slots, i) + shift + tau * push)
