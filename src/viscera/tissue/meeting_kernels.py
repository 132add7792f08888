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
PIECES = 64
"""That are told apart; what more there are count as one."""
BUCKETS = 4096
"""Of the grid of masses."""
NEIGHBOURS = 26

FACING = wp.constant(-0.25)
"""Two masses face each other when the cosine between their normals is below this."""
BEHIND = wp.constant(-1.5)
"""A surface that is deeper than this, in cells, is another side of the tissue, and not met: masses that have passed
each other by less than half a cell are still pushed back, and the far side of a flap, a cell thick, is two cells
off."""
BALL = wp.constant(0.7)
"""How near masses come whose surfaces do not face each other, as edges, in cells."""
SLACK = wp.constant(1.5e-3)
"""How much nearer two masses may come in a tick [m]."""
SOFT = wp.constant(0.05)
"""How deep a surface is in another before it is pushed in full, in cells."""
APART = wp.constant(0.8)
"""Share of its depth by which it is moved apart in a substep."""
FARTHEST = wp.constant(0.1)
"""Nothing is moved farther in a substep than this, in cells."""
LIFT = wp.constant(0.02)
"""Out of the table nothing is moved farther in a substep than this, in cells: what was below it would be thrown up."""
NEAR_TABLE = wp.constant(2.0e-3)
"""What is nearer to the table than this is looked at [m]."""
FAR = wp.constant(1.0e9)
SURE = wp.constant(0.3)
"""A normal is taken as the tissue's deformation gives it while its cosine with what the mass leans on is above this."""

_PARTNERS, _PIECES, _BUCKETS = wp.constant(PARTNERS), wp.constant(PIECES), wp.constant(BUCKETS)
_NEIGHBOURS = wp.constant(NEIGHBOURS)


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
    """How many they are; how many are listed; how many pairs found no room; pieces that are told apart."""
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
    tied: wp.array(dtype=wp.int32)
    """Places of the masses that it is tied to, NEIGHBOURS each; -1 where there is none."""
    leans: wp.array(dtype=wp.int32)
    """Bit by bit: from which of them its normal leads away."""
    flat: wp.array(dtype=wp.float32)
    """How flat its surface is there: length of its normal."""
    lean: wp.array(dtype=wp.vec3)
    """B N of the tissue at rest: N its normal, B = Σ D Dᵀ over what it is tied to, at D [cells]."""
    low: wp.array(dtype=wp.float32)
    high: wp.array(dtype=wp.float32)
    """Box around each piece, three floats [m]."""
    alert: wp.array(dtype=wp.int32)
    """Of each mass: whether something may be near."""
    head: wp.array(dtype=wp.int32)
    after: wp.array(dtype=wp.int32)
    """First mass in each bucket of the grid, and the one after each mass; -1 ends."""
    x: wp.array(dtype=wp.vec3)
    v: wp.array(dtype=wp.vec3)
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
    push: wp.array(dtype=wp.vec3)
    shift: wp.array(dtype=wp.vec3)
    """What each mass gets in a round: velocity and displacement."""
    pushed: wp.array(dtype=wp.vec3)
    shifted: wp.array(dtype=wp.vec3)
    """The same over all rounds of a substep."""


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
        for c in range(meet.begin[number] + wp.tid(), meet.begin[number + 1], threads):
            i = meet.place[c]
            v = load3(velocity, lattice.slots, i)
            meet.x[c] = meet.rest[c] + load3(position, lattice.slots, i) - tau * v
    else:
        for n in range(wp.tid(), meet.count[1], threads):
            c = meet.listed[n]
            if c >= meet.begin[number] and c < meet.begin[number + 1]:
                i = meet.place[c]
                v = load3(velocity, lattice.slots, i)
                meet.v[c] = v
                meet.pushed[c] = wp.vec3()
                meet.shifted[c] = wp.vec3()
                meet.x[c] = meet.rest[c] + load3(position, lattice.slots, i) - tau * v


@wp.kernel
def clear_boxes(
    # out
    meet: Meet,
):
    """Each thread a piece, and its part of the grid."""
    for axis in range(3):
        meet.low[3 * wp.tid() + axis] = FAR
        meet.high[3 * wp.tid() + axis] = -FAR
    for bucket in range(wp.tid(), _BUCKETS, _PIECES):
        meet.head[bucket] = -1
    if wp.tid() == 0:
        meet.count[1] = 0
        meet.count[2] = 0


@wp.kernel
def find_boxes(
    # params
    threads: int,
    # out
    meet: Meet,
):
    for c in range(wp.tid(), meet.count[0], threads):
        row = 3 * meet.piece[c]
        x = meet.x[c]
        for axis in range(3):
            wp.atomic_min(meet.low, row + axis, x[axis])
            wp.atomic_max(meet.high, row + axis, x[axis])


@wp.func
def meet_reach(spacing: float):
    """Masses farther apart than this do not meet in this tick [m]; also the side of the grid's cells."""
    return 1.5 * spacing + SLACK


@wp.func
def cell_of(x: wp.vec3, side: float):
    """Of the grid."""
    return wp.vec3i(int(wp.floor(x[0] / side)), int(wp.floor(x[1] / side)), int(wp.floor(x[2] / side)))


@wp.func
def bucket_of(cell: wp.vec3i):
    return ((cell[0] * 73856093) ^ (cell[1] * 19349663) ^ (cell[2] * 83492791)) & (_BUCKETS - 1)


@wp.kernel
def find_alert(
    # params
    threads: int,
    # out
    meet: Meet,
):
    """Which masses may meet another: they are put into the grid. On cuda those of a bucket come in any order."""
    # Arrays of `meet` are read here and not in functions: a call would copy the whole struct.
    count = meet.count[0]
    reach = meet_reach(meet.spacing)
    for n in range(wp.tid(), count, threads):
        c = count - 1 - n
        x = meet.x[c]
        near = (meet.kind[c] & 1) != 0
        for piece in range(meet.count[3]):
            if piece != meet.piece[c] and not near:
                near = (
                    x[0] > meet.low[3 * piece] - reach
                    and x[0] < meet.high[3 * piece] + reach
                    and x[1] > meet.low[3 * piece + 1] - reach
                    and x[1] < meet.high[3 * piece + 1] + reach
                    and x[2] > meet.low[3 * piece + 2] - reach
                    and x[2] < meet.high[3 * piece + 2] + reach
                )
        meet.alert[c] = wp.where(near, 1, 0)
        if near:
            meet.after[c] = wp.atomic_exch(meet.head, bucket_of(cell_of(x, reach)), c)


@wp.kernel
def find_normals(
    # params
    lattice: Lattice,
    number: int,
    threads: int,
    # in
    position: wp.array(dtype=wp.float32),
    # out
    meet: Meet,
):
    """Out of the tissue, the longer the flatter its surface is. With A = Σ d Dᵀ over what a mass is tied to, at D at
    rest and at d now, F = A B⁻¹ is how the tissue is deformed there, and a surface's normal N becomes
    cof(F) N ∝ cof(A) B N: shear along a surface does not tilt it. The springs' positions p stand for u."""
    for c in range(meet.begin[number] + wp.tid(), meet.begin[number + 1], threads):
        if meet.alert[c] != 0:
            i = meet.place[c]
            own = load3(position, lattice.slots, i)
            out = wp.vec3()
            ax = wp.vec3()
            ay = wp.vec3()
            az = wp.vec3()
            leans = meet.leans[c]
            for k in range(_NEIGHBOURS):
                j = meet.tied[_NEIGHBOURS * c + k]
                if j >= 0:
                    # The neighbours are numbered as places of a cube of 27 without its middle; see linked_cells.STEPS.
                    place = wp.where(k < 13, k, k + 1)
                    step = wp.vec3(float(place // 9 - 1), float(place // 3 % 3 - 1), float(place % 3 - 1))
                    way = step + (load3(position, lattice.slots, j) - own) / lattice.spacing
                    ax += step[0] * way
                    ay += step[1] * way
                    az += step[2] * way
                    if ((leans >> k) & 1) != 0:
                        out -= way
            lean = meet.lean[c]
            turned = wp.cross(ay, az) * lean[0] + wp.cross(az, ax) * lean[1] + wp.cross(ax, ay) * lean[2]
            # Too few ties say nothing about the plane, and crushed ones turn it over: then away from what it leans on.
            if wp.dot(turned, out) > SURE * wp.length(turned) * wp.length(out):
                out = turned
            meet.normal[c] = wp.normalize(out) * meet.flat[c]


@wp.func
def place_of_partner(
    c: int,
    d: int,
    partners: wp.array(dtype=wp.int32),
    partner: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
):
    """At the end of c's list; −1 where it is full of others whose numbers are lower: the same in any order."""
    at = _PARTNERS * c + partners[c]
    if partners[c] >= _PARTNERS:
        wp.atomic_add(count, 2, 1)
        at = at - 1
        if d > partner[at]:
            at = -1
    else:
        partners[c] = partners[c] + 1
    return at


@wp.kernel
def find_partners(
    # params
    threads: int,
    # out
    meet: Meet,
):
    """Who may meet each mass in this tick: near, of another piece or parted and not tied, and facing it or as near as
    two edges come. A function that got `meet` would copy kilobytes for every pair."""
    count = meet.count[0]
    reach = meet_reach(meet.spacing)
    for c in range(wp.tid(), count, threads):
        meet.partners[c] = 0
        x = meet.x[c]
        piece = meet.piece[c]
        parted = (meet.kind[c] & 1) != 0
        normal = meet.normal[c]
        own = cell_of(x, reach)
        for n in range(wp.where(meet.alert[c] != 0, 27, 0)):
            cell = own + wp.vec3i(n % 3 - 1, n // 3 % 3 - 1, n // 9 - 1)
            d = meet.head[bucket_of(cell)]
            while d >= 0:
                same = meet.piece[d] == piece
                meets = not same or (parted and (meet.kind[d] & 1) != 0)
                at = wp.int32(0)
                far = float(0.0)
                way = wp.vec3()
                along = wp.vec3()
                weight = float(1.0)
                touch = BALL * meet.spacing
                if meets:
                    way = meet.x[d] - x
                    far = wp.length(way)
                    # Cells far from each other may share a bucket.
                    meets = far <= reach and far >= 1.0e-9 and cell_of(meet.x[d], reach) == cell
                if meets:
                    other = meet.normal[d]
                    if wp.dot(normal, other) < FACING * (wp.length(normal) * wp.length(other)):
                        along = wp.normalize(normal - other)
                        height = wp.dot(along, way)
                        aside = wp.length(way - height * along) / meet.spacing
                        weight = 1.0 - aside * aside
                        touch = meet.offset[c] + meet.offset[d]
                        meets = weight > 0.0 and height - touch >= BEHIND * meet.spacing and height - touch <= SLACK
                    else:
                        along = way / far
                        meets = far <= touch + SLACK
                if meets and same:
                    place = meet.place[d]
                    for k in range(_NEIGHBOURS):
                        meets = meets and meet.tied[_NEIGHBOURS * c + k] != place
                if meets:
                    at = place_of_partner(c, d, meet.partners, meet.partner, meet.count)
                if meets and at >= 0:
                    # In the order of their numbers, so that sums over them are the same on every device.
                    while at > _PARTNERS * c and meet.partner[wp.max(at - 1, 0)] > d:
                        meet.partner[at] = meet.partner[at - 1]
                        meet.along[at] = meet.along[at - 1]
                        meet.weight[at] = meet.weight[at - 1]
                        meet.reach[at] = meet.reach[at - 1]
                        at = at - 1
                    meet.partner[at] = d
                    meet.along[at] = along
                    meet.weight[at] = weight
                    meet.reach[at] = touch
                d = meet.after[d]
        total = float(0.0)
        for k in range(meet.partners[c]):
            total += meet.weight[_PARTNERS * c + k]
        meet.total[c] = wp.max(total, 1.0)
        low = meet.inverse_mass[c] > 0.0 and meet.x[c][2] - meet.offset[c] < meet.table + NEAR_TABLE
        if meet.partners[c] > 0 or low:
            meet.listed[wp.atomic_add(meet.count, 1, 1)] = c


@wp.kernel
def find_shares(
    # params
    threads: int,
    # out
    meet: Meet,
):
    for n in range(wp.tid(), meet.count[1], threads):
        c = meet.listed[n]
        for k in range(meet.partners[c]):
            at = _PARTNERS * c + k
            d = meet.partner[at]
            yields = meet.total[c] * meet.inverse_mass[c] + meet.total[d] * meet.inverse_mass[d]
            meet.share[at] = meet.weight[at] * meet.inverse_mass[c] / wp.max(yields, 1.0e-30)


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
    # out
    meet: Meet,
):
    for n in range(wp.tid(), meet.count[1], threads):
        c = meet.listed[n]
        push = wp.vec3()
        shift = wp.vec3()
        for k in range(meet.partners[c]):
            at = _PARTNERS * c + k
            d = meet.partner[at]
            # Exactly the other way round for the partner: both see the same numbers.
            along = meet.along[at]
            deep = meet.reach[at] - wp.dot(along, meet.x[d] - meet.x[c])
            if deep > 0.0:
                share = meet.share[at]
                soft = wp.min(1.0, deep / (SOFT * meet.spacing))
                speed = meet.v[d] - meet.v[c]
                closing = soft * wp.max(-wp.dot(along, speed), 0.0)
                # All sliding that friction can hold is taken away at once, however soft the contact: it would creep.
                rubs = rub(speed, along, closing, meet.friction)
                push -= share * (closing * along + rubs)
                # What sliding is lost was not moved by either, else what sticks would creep.
                apart = soft * wp.min(APART * deep, FARTHEST * meet.spacing)
                shift -= share * (apart * along + meet.dt * rubs)
        meet.push[c] = push
        meet.shift[c] = shift


@wp.kernel
def take_push(
    # params
    threads: int,
    # out
    meet: Meet,
):
    """What each got in a round is in force for the next one."""
    for n in range(wp.tid(), meet.count[1], threads):
        c = meet.listed[n]
        meet.v[c] = meet.v[c] + meet.push[c]
        meet.x[c] = meet.x[c] + meet.shift[c]
        meet.pushed[c] = meet.pushed[c] + meet.push[c]
        meet.shifted[c] = meet.shifted[c] + meet.shift[c]


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
        if c >= meet.begin[number] and c < meet.begin[number + 1] and meet.inverse_mass[c] > 0.0:
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
