"""Kernels of the drops' way through the air and over the surface: flying, hitting, sliding, splashing; equations are in
`impact`.

A step's flight is tested as a segment against all triangles, from the drop's birth on; where it hits and bounces, the
rest of the time is flown from there, `HITS` times at most, and what is left then is flown in the next step (`late`
below zero). So no drop passes a surface, however fast it is.
"""

# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.blood.drops.around import OUTSIDE, Around, Met, Plunge, from_axis, is_full, meet_around, meet_pool
from viscera.blood.drops.impact import ImpactNumbers, drag_of, held_by, rubbed, splashes
from viscera.blood.drops.landing import Landing, LandingView, meet_moving, meets_any, motion_on, outward, point_on
from viscera.blood.drops.numbers import DropNumbers, Purse
from viscera.blood.film.state import STAYS
from viscera.blood.film.walk import WalkView, face_normal, into_plane, position_at, walk, weights_of
from viscera.blood.views import (
    DROP_BROKEN,
    FLYING,
    INTO_POOL,
    LANDED,
    LOST,
    ON_CLOTH,
    ON_TOOL,
    SLIDING,
    DropView,
    is_there,
)

wp.set_module_options({"enable_backward": False})

LIFT = wp.constant(1.0e-5)
"""How far above the surface a drop begins [m]: nothing beside a drop, and enough for float32 at an organ's size."""

HITS = wp.constant(4)
"""Surfaces that a drop meets in one step; the rest of the time it makes up for in the next."""

TURN = wp.constant(6.2831853)


@wp.func
def _pull(gravity: wp.vec3, drag: float, v: wp.vec3) -> wp.vec3:
    return gravity - drag * wp.length(v) * v


@wp.func
def _just_before(tree: LandingView, at: wp.vec3, n: wp.vec3, way: wp.vec3) -> wp.vec3:
    """Outside a place of the surface that was met on this way: above it, or in a narrow cleft, where that would be
    behind the other wall, a little back on the way, which was free."""
    back = at - way * (LIFT / wp.max(wp.length(way), LIFT))
    above = at + LIFT * n
    if meet_moving(tree, back, above, 0.0).face >= 0:
        above = back
    return above


@wp.struct
class After:
    """Where a drop is after it hit something, and how it goes on."""

    position: wp.vec3
    velocity: wp.vec3
    pieces: int
    """That its splash adds."""


@wp.func
def _hit_surface(
    impact: ImpactNumbers,
    tree: LandingView,
    hit: Landing,
    drops: DropView,
    i: int,
    v: wp.vec3,
    ground: wp.vec3,
    way: wp.vec3,
) -> After:
    """Drop i meets tissue that moves with `ground`, with v against it on this way: it splashes, bounces, or slides from
    now on."""
    after = After()
    n = outward(tree, hit.face)
    speed = -wp.dot(v, n)
    along = v + speed * n
    after.position = _just_before(tree, point_on(tree, hit.face, hit.second, hit.third), n, way)
    back = rubbed(along, impact.friction * (1.0 + impact.restitution) * speed)
    after.velocity = back + impact.restitution * speed * n + ground
    if splashes(impact, drops.volume[i], speed):
        after.pieces = impact.children - 1
        drops.face[i] = hit.face
        # How hard it was, for the pieces.
        drops.barycentric[i] = wp.vec2(speed, 0.0)
    elif speed <= impact.bounce_speed:
        after.velocity = rubbed(along, impact.friction * wp.max(speed, 0.0))
        drops.fate[i] = SLIDING
        drops.face[i] = hit.face
        drops.barycentric[i] = wp.vec2(hit.second, hit.third)
    return after


@wp.func
def _hit_pool(
    impact: ImpactNumbers, hit: Landing, plunge: Plunge, drops: DropView, i: int, at: wp.vec3, v: wp.vec3
) -> After:
    """Drop i meets the level of a pool with v: it is part of it, or splashes up from there."""
    after = After()
    after.position = at + wp.vec3(0.0, 0.0, LIFT)
    after.velocity = v
    speed = wp.max(-v[2], 0.0)
    if splashes(impact, drops.volume[i], speed):
        along = rubbed(wp.vec3(v[0], v[1], 0.0), impact.friction * (1.0 + impact.restitution) * speed)
        after.velocity = along + wp.vec3(0.0, 0.0, impact.restitution * speed)
        after.pieces = impact.children - 1
        drops.face[i] = hit.face
        drops.barycentric[i] = wp.vec2(speed, 0.0)
    else:
        drops.fate[i] = INTO_POOL
        drops.face[i] = plunge.column
    return after


@wp.func
def _hit_thing(
    impact: ImpactNumbers, around: Around, met: Met, drops: DropView, i: int, at: wp.vec3, v: wp.vec3, moving: float
) -> After:
    """Drop i meets cloth or an instrument with v; it stays there, or bounces off what is full."""
    after = After()
    after.position = at
    after.velocity = v
    caught = bool(True)
    n = wp.vec3(0.0, 0.0, 1.0)
    if met.bar >= 0:
        bar = around.bars[met.bar]
        after.position = at + (moving * (1.0 - met.along)) * bar.moved
        n = wp.normalize(from_axis(bar, after.position))
        caught = not is_full(around, bar, after.position)
    if caught:
        drops.fate[i] = wp.where(met.bar >= 0, ON_TOOL, ON_CLOTH)
        drops.face[i] = met.bar
    else:
        speed = wp.max(-wp.dot(v, n), 0.0)
        back = rubbed(v + speed * n, impact.friction * (1.0 + impact.restitution) * speed)
        after.position = after.position + LIFT * n
        after.velocity = back + impact.restitution * speed * n
    return after


@wp.func
def _is_outside(numbers: DropNumbers, x: wp.vec3) -> wp.bool:
    inside = wp.min(x - numbers.lower, numbers.upper - x)
    return wp.min(inside[0], wp.min(inside[1], inside[2])) < 0.0


@wp.func
def fly_one(
    numbers: DropNumbers, tree: LandingView, around: Around, drops: DropView, i: int, time: float, still: int
) -> int:
    """So much time of a flying drop [s]; how many pieces its splash adds."""
    x = drops.position[i]
    v = drops.velocity[i]
    volume = drops.volume[i]
    late = drops.late[i]
    left = time - late
    if left <= 0.0:
        # Not born yet.
        drops.late[i] = -left
        return 0
    # One that was born in this step began at the surface as it is now; all others where it was a step ago.
    moving = float(wp.where(late > 0.0 or still != 0, 0.0, 1.0))
    impact = numbers.impact
    drag = drag_of(impact, volume)
    pieces = int(0)
    hits = int(0)
    drops.late[i] = 0.0
    while left > 0.0 and hits < HITS:
        middle = v + (0.5 * left) * _pull(numbers.gravity, drag, v)
        pull = _pull(numbers.gravity, drag, middle)
        end = x + left * middle
        if not wp.isfinite(end):
            drops.fate[i] = DROP_BROKEN
            return 0
        hit = meet_moving(tree, x, end, moving)
        met = meet_around(around, x, end, moving, hit.along)
        if met.along >= OUTSIDE and hit.face < 0:
            x = end
            v = v + left * pull
            left = 0.0
        else:
            hits += 1
            after = After()
            if met.along < OUTSIDE:
                v = v + (met.along * left) * pull
                left = left * (1.0 - met.along)
                after = _hit_thing(impact, around, met, drops, i, x + met.along * (end - x), v, moving)
            else:
                at = point_on(tree, hit.face, hit.second, hit.third)
                plunge = meet_pool(around, x, end, at, hit.along)
                v = v + (plunge.along * left) * pull
                left = left * (1.0 - plunge.along)
                if plunge.column >= 0:
                    after = _hit_pool(impact, hit, plunge, drops, i, x + plunge.along * (end - x), v)
                else:
                    ground = (moving / wp.max(numbers.dt, 1.0e-12)) * motion_on(tree, hit.face, hit.second, hit.third)
                    after = _hit_surface(impact, tree, hit, drops, i, v - ground, ground, end - x - numbers.dt * ground)
            x = after.position
            v = after.velocity
            pieces = after.pieces
            moving = 0.0
            drops.late[i] = -left
            if pieces > 0 or drops.fate[i] != FLYING:
                left = 0.0
    if hits < HITS and drops.fate[i] == FLYING and pieces == 0:
        drops.late[i] = 0.0
    drops.position[i] = x
    drops.velocity[i] = v
    if drops.fate[i] == FLYING and _is_outside(numbers, x):
        drops.fate[i] = LOST
        pieces = 0
    return pieces


@wp.func
def slide_one(numbers: DropNumbers, surface: WalkView, drops: DropView, i: int, whole: float):
    """So much time of a sliding drop [s], over edges; it joins the film where it is slow enough, and falls off an
    overhang."""
    face = drops.face[i]
    n = face_normal(surface, face)
    v = into_plane(n, drops.velocity[i])
    time = whole - drops.late[i]
    drops.late[i] = 0.0
    press = -wp.dot(numbers.gravity, n)
    held = held_by(numbers.impact, drops.volume[i], press)
    pull = into_plane(n, numbers.gravity)
    free = v + time * pull
    after = rubbed(free, held * time)
    way = (0.5 * time) * (v + after)
    if wp.length(after) == 0.0:
        # It stops on the way; at rest it stays.
        slowing = wp.max(held - wp.dot(pull, v) / wp.max(wp.length(v), 1.0e-12), 1.0e-12)
        way = v * wp.min(0.5 * wp.length(v) / slowing, 0.5 * time)
    drops.slid_face[i] = face
    drops.slid_from[i] = drops.barycentric[i]
    drops.slid_way[i] = into_plane(n, way)
    went = walk(surface, face, weights_of(drops.barycentric[i]), into_plane(n, way))
    # Velocity turns with the way, and loses what a barrier stopped.
    length = wp.length(way)
    if length > 0.0:
        after = went.moved * (wp.length(after) / length)
    m = face_normal(surface, went.face)
    drops.face[i] = went.face
    drops.barycentric[i] = wp.vec2(went.weights[1], went.weights[2])
    drops.position[i] = position_at(surface, went.face, went.weights) + LIFT * m
    drops.velocity[i] = after
    if went.fate != STAYS or wp.length(after) < numbers.impact.join_speed:
        drops.fate[i] = LANDED
    elif numbers.impact.join_speed == 0.0 and wp.dot(numbers.gravity, m) > held:
        drops.fate[i] = FLYING


@wp.func
def _step_one(
    numbers: DropNumbers,
    tree: LandingView,
    surface: WalkView,
    around: Around,
    drops: DropView,
    i: int,
    time: float,
    still: int,
) -> int:
    """So much time of a drop [s]; how many pieces its splash adds."""
    pieces = int(0)
    fate = drops.fate[i]
    drops.slid_way[i] = wp.vec3(0.0, 0.0, 0.0)
    if fate == FLYING:
        pieces = fly_one(numbers, tree, around, drops, i, time, still)
        # What hits gently is in the film at once.
        if drops.fate[i] == SLIDING and wp.length(drops.velocity[i]) < numbers.impact.join_speed:
            drops.fate[i] = LANDED
    elif fate == SLIDING:
        slide_one(numbers, surface, drops, i, time)
    return pieces


@wp.kernel
def fly_free(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    tree: LandingView,
    around: Around,
    time: float,
    still: int,
    # out
    drops_out: DropView,
    landed_out: wp.array(dtype=wp.int32),
    pieces_out: wp.array(dtype=wp.int32),
    list_out: wp.array(dtype=wp.int32),
    listed_out: wp.array(dtype=wp.int32),
):
    """On cuda, before `move`: drops that meet nothing in this step fly; of the others a list is made, those in the air
    from its beginning, those that slide from its end, so that neighbours in `move` have the same to do. Its order is
    any, and changes nothing: drops do not see each other here."""
    i = first + wp.tid()
    landed_out[i] = 0
    pieces_out[i] = 0
    if i >= drops_out.count[0]:
        return
    fate = drops_out.fate[i]
    if fate == SLIDING:
        list_out[drops_out.capacity - 1 - wp.atomic_add(listed_out, 1, 1)] = i
    elif fate == FLYING:
        numbers = all_numbers[0]
        free = drops_out.late[i] == 0.0
        if free:
            x = drops_out.position[i]
            v = drops_out.velocity[i]
            drag = drag_of(numbers.impact, drops_out.volume[i])
            middle = v + (0.5 * time) * _pull(numbers.gravity, drag, v)
            end = x + time * middle
            moving = float(wp.where(still != 0, 0.0, 1.0))
            free = wp.isfinite(end) and meet_around(around, x, end, moving, 2.0).along >= OUTSIDE
            if free:
                free = not meets_any(tree, x, end, moving)
            if free:
                drops_out.position[i] = end
                drops_out.velocity[i] = v + time * _pull(numbers.gravity, drag, middle)
                if _is_outside(numbers, end):
                    drops_out.fate[i] = LOST
        if not free:
            list_out[wp.atomic_add(listed_out, 0, 1)] = i


@wp.kernel
def move(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    tree: LandingView,
    surface: WalkView,
    around: Around,
    time: float,
    still: int,
    # out
    drops_out: DropView,
    landed_out: wp.array(dtype=wp.int32),
    pieces_out: wp.array(dtype=wp.int32),
):
    """So much time of every drop [s]; 1 for those that join the film, and how many pieces each splash adds. With
    `still` the surface stands where it is now: its motion was met before in this step. A thread takes `chunk` drops."""
    begin = (first + wp.tid()) * drops_out.chunk
    for i in range(begin, wp.min(begin + drops_out.chunk, drops_out.capacity)):
        landed_out[i] = 0
        pieces_out[i] = 0
        if i < drops_out.count[0]:
            # One that landed in an earlier part of this step has joined the film then.
            there = is_there(drops_out.fate[i])
            pieces_out[i] = _step_one(all_numbers[0], tree, surface, around, drops_out, i, time, still)
            if there and drops_out.fate[i] == LANDED:
                landed_out[i] = 1


@wp.kernel
def move_listed(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    tree: LandingView,
    surface: WalkView,
    around: Around,
    time: float,
    still: int,
    # in
    chosen: wp.array(dtype=wp.int32),
    listed: wp.array(dtype=wp.int32),
    # out
    drops_out: DropView,
    landed_out: wp.array(dtype=wp.int32),
    pieces_out: wp.array(dtype=wp.int32),
):
    """The same of those in the list of `fly_free`."""
    k = first + wp.tid()
    if k < listed[0] or k >= drops_out.capacity - listed[1]:
        i = chosen[k]
        pieces_out[i] = _step_one(all_numbers[0], tree, surface, around, drops_out, i, time, still)
        if drops_out.fate[i] == LANDED:
            landed_out[i] = 1


@wp.kernel
def splash(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    tree: LandingView,
    # in
    purse: wp.array(dtype=Purse),
    pieces: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    # out
    drops_out: DropView,
):
    """Drop i and its pieces part: whole picolitres, and sideways momenta whose sum is nothing. What finds no room for
    all its pieces bounces whole."""
    i = first + wp.tid()
    more = pieces[i]
    if more == 0:
        return
    start = drops_out.count[0] + place[i]
    if start + more > drops_out.capacity:
        return
    numbers = all_numbers[0]
    n = outward(tree, drops_out.face[i])
    e = wp.normalize(wp.cross(n, wp.where(wp.abs(n[0]) < 0.7, wp.vec3(1.0, 0.0, 0.0), wp.vec3(0.0, 1.0, 0.0))))
    f = wp.cross(n, e)
    rng = wp.rand_init(numbers.seed + purse[0].step, i)
    turn = TURN * wp.randf(rng)
    speed = numbers.impact.scatter * drops_out.barycentric[i][0] * (0.5 + 0.5 * wp.randf(rng))
    whole = drops_out.volume[i]
    share = whole // (more + 1)
    mean = float(whole) / float(more + 1)
    v = drops_out.velocity[i]
    for k in range(more + 1):
        volume = share
        slot = start + k - 1
        if k == 0:
            volume = whole - more * share
            slot = i
        angle = turn + TURN * float(k) / float(more + 1)
        side = wp.cos(angle) * e + wp.sin(angle) * f
        drops_out.position[slot] = drops_out.position[i]
        drops_out.velocity[slot] = v + (speed * mean / float(volume)) * side
        drops_out.volume[slot] = volume
        drops_out.fluid[slot] = drops_out.fluid[i]
        drops_out.fate[slot] = FLYING
        drops_out.late[slot] = drops_out.late[i]


@wp.kernel
def count_pieces(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    # in
    pieces: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    # out
    drops_out: DropView,
):
    """The pieces that found room: splashes are numbered by place and add as many pieces each."""
    last = pieces.shape[0] - 1
    each = wp.max(all_numbers[0].impact.children - 1, 1)
    room = (drops_out.capacity - drops_out.count[0]) // each * each
    drops_out.count[0] = drops_out.count[0] + wp.min(place[last] + pieces[last], room)
