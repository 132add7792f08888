"""Tissue meets tissue: who may meet whom in a tick; the kernels of meeting.py, where the equations are.

Candidates of a mass are those that it may meet, by piece and ties, and that are near, with SKIN to spare. They are
found through a grid and hold until something is cut, or until more than a few masses have moved by half of SKIN: the
few, as shreds that flutter, are compared with all. Where they are more, on one core, candidates are found anew for
those that moved alone: whom a mass may meet is decided by where both were when they were last listed. Among them the
partners of each tick are found: the same, to the bit, as if all masses were looked at.

Arrays of `Meet` are read in the kernels themselves and not in functions: a call would copy the whole struct.
"""

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import Lattice, load3
from viscera.tissue.meeting_kernels import BUCKETS, CANDIDATES, FAR, MATES, NEIGHBOURS, PARTNERS, PIECES, RUNAWAYS, Meet

# Loops stay loops: unrolled they take long to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

FACING = wp.constant(-0.25)
"""Two masses face each other when the cosine between their normals is below this."""
BALL = wp.constant(0.8)
"""Masses whose surfaces do not face each other, as edges, touch where their surfaces would, a cell from each other at
most: neighbours on both sides of a cut do so at rest. No nearer than this either, in cells: a mass would fall through
the middle of four, √½ from each, and 0.8 where they are stretched by 13 %."""
SLACK = wp.constant(1.5e-3)
"""How much nearer two masses may come in a tick [m]."""
SKIN = wp.constant(0.5)
"""Candidates lie this much farther off than a tick's partners, in cells."""
NEAR_TABLE = wp.constant(2.0e-3)
"""What is nearer to the table than this is looked at [m]."""
POINT = wp.constant(0.1)
"""A mass whose surface is less flat than this is a point, a corner or the end of a shred: its own normal says little,
and it meets what is flatter by that one's."""
MIDDLE = wp.constant(-0.5)
"""Surfaces meet while their masses have passed each other by less than this, in cells: half way to the next ones. What
is deeper is the far side of a flap, two cells thick, which jaws squeeze to 40 % of that."""
SURE = wp.constant(0.3)
"""A normal is taken as the tissue's deformation gives it while its cosine with what the mass leans on is above this."""


_PARTNERS, _PIECES, _BUCKETS = wp.constant(PARTNERS), wp.constant(PIECES), wp.constant(BUCKETS)
_NEIGHBOURS, _CANDIDATES = wp.constant(NEIGHBOURS), wp.constant(CANDIDATES)
_RUNAWAYS, _MATES = wp.constant(RUNAWAYS), wp.constant(MATES)
_FAR = wp.constant(FAR)
_STALE, _RUN = wp.constant(3), wp.constant(4)
"""Places in `Meet.count`."""
_FULL = wp.constant(2)
"""Place in `Meet.fresh_count`."""


@wp.func
def meet_reach(spacing: float):
    """Masses farther apart than this do not meet in this tick [m]."""
    return 1.5 * spacing + SLACK


@wp.func
def list_reach(spacing: float):
    """Masses farther apart than this are not candidates [m]; also the side of the grid's cells."""
    return (1.5 + SKIN) * spacing + SLACK


@wp.func
def stale(count: wp.array(dtype=wp.int32)):
    """Whether candidates are to be found anew."""
    return count[_STALE] != 0 or count[_RUN] > _RUNAWAYS


@wp.func
def runaways_near(count: wp.array(dtype=wp.int32), box: wp.array(dtype=wp.float32), x: wp.vec3, reach: float):
    """How many masses run away, where one of them may be within reach of x: all of them are in this box."""
    found = wp.int32(count[_RUN])
    if found > 0:
        far = 1.01 * reach  # rounding
        for axis in range(3):
            if x[axis] < box[axis] - far or x[axis] > box[3 + axis] + far:
                found = 0
    return found


@wp.kernel
def find_runaways(
    # params
    threads: int,
    # out
    meet: Meet,
):
    """A tick begins: which masses may have others near that are not their candidates."""
    if wp.tid() == 0:
        meet.count[1] = 0
        meet.count[2] = 0
    far = 0.5 * SKIN * meet.spacing
    for c in range(wp.tid(), meet.count[0], threads):
        runs = wp.length(meet.x[c] - meet.at[c]) > far
        meet.runs[c] = wp.where(runs, 1, 0)
        if runs:
            n = wp.atomic_add(meet.count, _RUN, 1)
            if n < _RUNAWAYS:
                meet.runaway[n] = c
            for axis in range(3):
                wp.atomic_min(meet.box, axis, meet.x[c][axis])
                wp.atomic_max(meet.box, 3 + axis, meet.x[c][axis])


@wp.func
def cell_of(x: wp.vec3, side: float):
    """Of the grid."""
    return wp.vec3i(int(wp.floor(x[0] / side)), int(wp.floor(x[1] / side)), int(wp.floor(x[2] / side)))


@wp.func
def bucket_of(cell: wp.vec3i):
    return ((cell[0] * 73856093) ^ (cell[1] * 19349663) ^ (cell[2] * 83492791)) & (_BUCKETS - 1)


@wp.kernel
def clear_grid(
    # params
    threads: int,
    # out
    meet: Meet,
):
    for bucket in range(wp.tid(), wp.where(stale(meet.count), _BUCKETS, 0), threads):
        meet.head[bucket] = -1
        meet.low[bucket] = _PIECES
        meet.high[bucket] = -1


@wp.kernel
def fill_grid(
    # params
    threads: int,
    # out
    meet: Meet,
):
    """On cuda masses of a bucket come in any order."""
    count = wp.where(stale(meet.count), meet.count[0], 0)
    reach = list_reach(meet.spacing)
    whole = threads > 1 or meet.count[_STALE] != 0
    for n in range(wp.tid(), count, threads):
        c = count - 1 - n
        if whole or meet.runs[c] != 0:
            meet.at[c] = meet.x[c]
        if whole:
            meet.candidates[c] = 0
        bucket = bucket_of(cell_of(meet.at[c], reach))
        meet.after[c] = wp.atomic_exch(meet.head, bucket, c)
        wp.atomic_min(meet.low, bucket, meet.piece[c])
        wp.atomic_max(meet.high, bucket, wp.where((meet.kind[c] & 1) != 0, _PIECES, meet.piece[c]))


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
    reach = meet_reach(meet.spacing)
    holds = not stale(meet.count)
    news = meet.fresh_count[0] - meet.count[0]
    begin = meet.begin[number]
    known = meet.begin[number + 1] - begin
    for row in range(wp.tid(), known + news, threads):
        c = begin + row
        if row >= known:
            c = meet.count[0] + row - known
        near = meet.candidates[c] != 0 or meet.fresh[c] >= 0
        runaways = wp.int32(0)
        if not near and holds:
            runaways = runaways_near(meet.count, meet.box, meet.x[c], reach)
        for n in range(runaways):
            near = near or wp.length(meet.x[meet.runaway[n]] - meet.x[c]) <= reach
        if near and meet.owner[c] == number:
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
def may_meet(
    c: int,
    d: int,
    piece: wp.array(dtype=wp.int32),
    kind: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    tied: wp.array(dtype=wp.int32),
):
    """Of another piece, or not tied and one of them at a cut; as far as what is cut has landed."""
    meets = piece[c] != piece[d]
    if not meets:
        meets = ((kind[c] | kind[d]) & 1) != 0
        if meets:
            other = place[d]
            for k in range(_NEIGHBOURS):
                at = tied[_NEIGHBOURS * c + k]
                meets = meets and at != other and at != -2 - other
    return meets


@wp.func
def put_candidate(c: int, d: int, found: int, candidate: wp.array(dtype=wp.int32)):
    """Puts d into c's list of so many, in the order of numbers, unless it is there; says how many they are then."""
    if found > _CANDIDATES:
        return found
    at = _CANDIDATES * c + found
    while at > _CANDIDATES * c and candidate[wp.max(at - 1, 0)] > d:
        at = at - 1
    if at > _CANDIDATES * c and candidate[wp.max(at - 1, 0)] == d:
        return found
    if found < _CANDIDATES:
        k = _CANDIDATES * c + found
        while k > at:
            candidate[k] = candidate[k - 1]
            k = k - 1
        candidate[at] = d
    return found + 1


@wp.kernel
def list_candidates(
    # params
    threads: int,
    # out
    meet: Meet,
):
    """Whom each mass may meet until they have moved. Where there are too many for the list, all are.

    On one core no mass looks for what others find. Where something was cut, masses of the first piece, the largest,
    that are at no cut are put into the lists of the others, and those into theirs. Where nothing was, lists of masses
    that have not moved stay, and those that have moved are added to them."""
    reach = list_reach(meet.spacing)
    whole = threads > 1 or meet.count[_STALE] != 0
    alone = threads == 1 and whole
    for c in range(wp.tid(), wp.where(stale(meet.count), meet.count[0], 0), threads):
        found = wp.int32(0)
        x = meet.at[c]
        piece = meet.piece[c]
        parted = (meet.kind[c] & 1) != 0
        own = cell_of(x, reach)
        searches = whole or meet.runs[c] != 0
        if alone:
            searches = parted or piece != 0
        for n in range(wp.where(searches, 27, 0)):
            cell = own + wp.vec3i(n % 3 - 1, n // 3 % 3 - 1, n // 9 - 1)
            bucket = bucket_of(cell)
            d = meet.head[bucket]
            if not parted and meet.low[bucket] == piece and meet.high[bucket] == piece:
                d = wp.int32(-1)  # whole tissue meets nothing of its own piece
            while d >= 0:
                meets = d != c and (parted or (meet.kind[d] & 1) != 0 or meet.piece[d] != piece)
                if meets:
                    meets = wp.length(meet.at[d] - x) <= reach
                if meets:
                    # Cells far from each other may share a bucket.
                    meets = cell_of(meet.at[d], reach) == cell
                if meets:
                    meets = may_meet(c, d, meet.piece, meet.kind, meet.place, meet.tied)
                if meets:
                    found = put_candidate(c, d, found, meet.candidate)
                    tells = not whole and meet.runs[d] == 0
                    if alone:
                        tells = (meet.kind[d] & 1) == 0 and meet.piece[d] == 0
                    if tells:
                        listed = put_candidate(d, c, meet.candidates[d], meet.candidate)
                        meet.candidates[d] = listed
                        if not whole and listed > _CANDIDATES:
                            meet.fresh_count[_FULL] = 1
                d = meet.after[d]
        if searches:
            meet.candidates[c] = found


@wp.func
def pair_of(
    way: wp.vec3, far: float, normal: wp.vec3, other: wp.vec3, flat: float, other_flat: float, offsets: float,
    spacing: float,
):  # fmt: skip
    """How two masses meet, of which one lies this `way` and so `far` from the other: the unit vector along which they
    do, their weight, 0 where they do not meet, and the distance along it at which their surfaces touch. Most that are
    near do not face each other: those are dealt with first."""
    facing = wp.dot(normal, other) < FACING * (flat * other_flat)
    along = way / far
    touch = wp.clamp(offsets, BALL * spacing, spacing)
    weight = wp.where(far <= touch + SLACK, 1.0, 0.0)
    if facing or (flat < POINT) != (other_flat < POINT):
        surface = wp.normalize(normal - other)
        height = wp.dot(surface, way)
        above = height >= MIDDLE * spacing
        if facing or above:
            along = surface
            touch = offsets
            weight = 0.0
            if above and height - touch <= SLACK:
                aside = wp.length(way - height * surface) / spacing
                weight = 1.0 - aside * aside
    return along, weight, touch


@wp.func
def place_of_partner(
    c: int,
    d: int,
    key: wp.array(dtype=wp.int32),
    partners: wp.array(dtype=wp.int32),
    partner: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
):
    """At the end of c's list; −1 where it is full of others whose keys are lower: the same in any order."""
    at = _PARTNERS * c + partners[c]
    if partners[c] >= _PARTNERS:
        wp.atomic_add(count, 2, 1)
        at = at - 1
        if key[d] > key[partner[at]]:
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
    """Who may meet each mass in this tick: its candidates, runaways and mates that face it, or are a point above it, or
    as near as two edges come."""
    count = meet.count[0]
    reach = meet_reach(meet.spacing)
    fresh = stale(meet.count)
    for c in range(wp.tid(), meet.fresh_count[0], threads):
        meet.partners[c] = 0
        x = meet.x[c]
        listed = meet.candidates[c]
        every = listed > _CANDIDATES
        runaways = wp.int32(0)
        if not fresh and c < count:
            every = every or meet.runs[c] != 0
            runaways = wp.where(every, 0, runaways_near(meet.count, meet.box, x, reach))
        listed = wp.where(every, count, listed)
        others = listed + runaways
        mates = wp.int32(0)
        if meet.fresh[c] >= 0:
            mates = meet.mates[meet.fresh[c]]
        for k in range(others + mates):
            d = wp.int32(k)
            compared = bool(every)
            if k >= others:
                d = meet.mate[_MATES * meet.fresh[c] + k - others]
                compared = False
            elif k >= listed:
                d = meet.runaway[k - listed]
                compared = True
            elif not every:
                d = meet.candidate[_CANDIDATES * c + k]
            way = meet.x[d] - x
            far = wp.length(way)
            meets = far <= reach and far >= 1.0e-9
            if meets and compared:
                meets = may_meet(c, d, meet.piece, meet.kind, meet.place, meet.tied)
            elif meets and not fresh and k < others:
                # It comes once more, among the runaways.
                meets = meet.runs[d] == 0
            along = wp.vec3()
            weight = float(0.0)
            touch = float(0.0)
            if meets:
                offsets = meet.offset[c] + meet.offset[d]
                along, weight, touch = pair_of(
                    way, far, meet.normal[c], meet.normal[d], meet.flat[c], meet.flat[d], offsets, meet.spacing
                )
            at = wp.int32(-1)
            if weight > 0.0:
                at = place_of_partner(c, d, meet.key, meet.partners, meet.partner, meet.count)
            if at >= 0:
                # In the order of their keys, so that sums over them are the same on every device.
                while at > _PARTNERS * c and meet.key[meet.partner[wp.max(at - 1, 0)]] > meet.key[d]:
                    meet.partner[at] = meet.partner[at - 1]
                    meet.along[at] = meet.along[at - 1]
                    meet.weight[at] = meet.weight[at - 1]
                    meet.reach[at] = meet.reach[at - 1]
                    at = at - 1
                meet.partner[at] = d
                meet.along[at] = along
                meet.weight[at] = weight
                meet.reach[at] = touch
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
    if wp.tid() == 0:
        # A list that ran full with what has long moved on is made anew.
        meet.count[_STALE] = meet.fresh_count[_FULL]
        meet.fresh_count[_FULL] = 0
        meet.count[_RUN] = 0
        for axis in range(3):
            meet.box[axis] = _FAR
            meet.box[3 + axis] = -_FAR
    for n in range(wp.tid(), meet.count[1], threads):
        c = meet.listed[n]
        for k in range(meet.partners[c]):
            at = _PARTNERS * c + k
            d = meet.partner[at]
            yields = meet.total[c] * meet.inverse_mass[c] + meet.total[d] * meet.inverse_mass[d]
            meet.share[at] = meet.weight[at] * meet.inverse_mass[c] / wp.max(yields, 1.0e-30)
