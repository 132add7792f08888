"""Kernels of the drops' way through the air and over the surface: flying, hitting, sliding, splashing; equations are in
`impact`.

A step's flight is tested as a segment against all triangles, from the drop's birth on; where it hits and bounces, the
rest of the time is flown from there, `HITS` times at most, and what is left then is flown in the next step (`late`
below zero). So no drop passes a surface, however fast it is.
"""

# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.blood.drops.impact import drag_of, held_by, rubbed, splashes
from viscera.blood.drops.landing import LandingView, meet_moving, motion_on, outward, point_on
from viscera.blood.drops.numbers import DropNumbers, Purse
from viscera.blood.film.state import STAYS
from viscera.blood.film.walk import WalkView, face_normal, into_plane, position_at, walk, weights_of
from viscera.blood.views import DROP_BROKEN, FLYING, LANDED, LOST, SLIDING, DropView

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


@wp.func
def _land(drops: DropView, i: int, face: int, second: float, third: float, v: wp.vec3, left: float):
    """Drop i lies on a triangle from now on, and slides with `v`."""
    drops.fate[i] = SLIDING
    drops.face[i] = face
    drops.barycentric[i] = wp.vec2(second, third)
    drops.velocity[i] = v
    drops.late[i] = -left


@wp.func
def fly_one(numbers: DropNumbers, tree: LandingView, drops: DropView, i: int, time: float, still: int) -> int:
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
        if hit.face < 0:
            x = end
            v = v + left * pull
            left = 0.0
        else:
            hits += 1
            n = outward(tree, hit.face)
            ground = (moving / wp.max(numbers.dt, 1.0e-12)) * motion_on(tree, hit.face, hit.second, hit.third)
            v = v + (hit.along * left) * pull - ground
            left = left * (1.0 - hit.along)
            moving = 0.0
            speed = -wp.dot(v, n)
            along = v + speed * n
            x = _just_before(tree, point_on(tree, hit.face, hit.second, hit.third), n, end - x - numbers.dt * ground)
            back = rubbed(along, impact.friction * (1.0 + impact.restitution) * speed)
            back = back + impact.restitution * speed * n + ground
            if splashes(impact, volume, speed):
                v = back
                pieces = impact.children - 1
                drops.face[i] = hit.face
                # How hard it was, for the pieces.
                drops.barycentric[i] = wp.vec2(speed, 0.0)
                drops.late[i] = -left
                left = 0.0
            elif speed > impact.bounce_speed:
                v = back
                drops.late[i] = -left
            else:
                v = rubbed(along, impact.friction * wp.max(speed, 0.0))
                _land(drops, i, hit.face, hit.second, hit.third, v, left)
                left = 0.0
    if hits < HITS and drops.fate[i] == FLYING and pieces == 0:
        drops.late[i] = 0.0
    drops.position[i] = x
    drops.velocity[i] = v
    inside = wp.min(x - numbers.lower, numbers.upper - x)
    if wp.min(inside[0], wp.min(inside[1], inside[2])) < 0.0 and drops.fate[i] == FLYING:
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


@wp.kernel
def move(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    tree: LandingView,
    surface: WalkView,
    time: float,
    still: int,
    # out
    drops_out: DropView,
    landed_out: wp.array(dtype=wp.int32),
    pieces_out: wp.array(dtype=wp.int32),
):
    """So much time of every drop [s]; 1 for those that join the film, and how many pieces each splash adds. With
    `still` the surface stands where it is now: its motion was met before in this step."""
    i = first + wp.tid()
    landed_out[i] = 0
    pieces_out[i] = 0
    if i >= drops_out.count[0]:
        return
    fate = drops_out.fate[i]
    if fate == FLYING:
        pieces_out[i] = fly_one(all_numbers[0], tree, drops_out, i, time, still)
        # What hits gently is in the film at once.
        if drops_out.fate[i] == SLIDING and wp.length(drops_out.velocity[i]) < all_numbers[0].impact.join_speed:
            drops_out.fate[i] = LANDED
    elif fate == SLIDING:
        slide_one(all_numbers[0], surface, drops_out, i, time)
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
