"""One particle meets walls: the way of contacts.py, in plain Warp. native_contacts.py has the usual case in C."""

from __future__ import annotations

import warp as wp

from viscera.water.boundary.known import Known, look, recentre, take_known
from viscera.water.boundary.nearest import Nearest
from viscera.water.boundary.response import Met, add_plane, obey, reached, shorter, touched
from viscera.water.boundary.walls import LEAST, WallsView

wp.set_module_options({"enable_backward": False})

TRIES = wp.constant(6)
"""Ways tried from one place, each with one more plane."""

HOPS = wp.constant(64)
"""Free balls a particle may cross in one step. What is left of its way then is given up."""

SLOP = 1.0e-3
"""Part of the radius by which a particle may lie deeper than it should without being pushed."""

PUSH = 0.25
"""Part of the radius by which a particle that lies too deep is pushed out per step, at most."""


@wp.struct
class ContactRule:
    """Live numbers of the step; from an array, as scalars are frozen when a program is recorded."""

    radius: float
    """[m]"""
    restitution: float
    friction: float
    rest_speed: float


@wp.struct
class Touch:
    """What the last step met, per particle."""

    face: wp.array(dtype=wp.int32)
    """Triangle that was touched; -1 for none, and for walls without triangles."""
    weights: wp.array(dtype=wp.vec3)
    """Barycentric coordinates of the touch."""
    kick: wp.array(dtype=wp.vec3)
    """Change of velocity by the walls [m/s]; times mass it is what walls feel."""


@wp.struct
class Hop:
    """A move inside one free ball."""

    way: wp.vec3
    met: Met
    touch: Nearest
    """The wall touched last."""
    ball: wp.vec4
    """A free ball around the end, or around the beginning if the end was not looked at."""


@wp.func
def bounce_of(rule: ContactRule, normal: wp.vec3, approach: wp.vec3) -> float:
    return wp.where(wp.dot(normal, approach) < -rule.rest_speed, rule.restitution, 0.0)


@wp.func
def keep_from(distance: float, radius: float) -> float:
    """How far to keep off a wall that is `distance` away: the radius, or a little more than now where that is not given
    yet."""
    keep = radius
    if distance > (1.0 - SLOP) * radius:
        keep = wp.min(radius, distance)
    elif distance < (1.0 - PUSH) * radius:
        keep = distance + PUSH * radius
    return keep


@wp.func
def most_free(near: Nearest, keep: float, radius: float) -> float:
    """How far a particle may go from here without asking again."""
    most = wp.max(near.free - LEAST * radius, 0.5 * near.free)
    if near.free < LEAST * radius:
        # Shapes and fields know their side: near to them, where a field is not sure, and from beyond, they push back;
        # not through triangles.
        solid = wp.max(near.solid - LEAST * radius, 0.5 * near.solid)
        most = wp.max(most, wp.min(keep - near.distance, solid))
    return most


@wp.func
def add_near(
    met: Met, rule: ContactRule, near: Nearest, way: wp.vec3, velocity: wp.vec3, keep: float, solid: float
) -> Met:
    """The planes of what is near after `way`: to be `keep` away from it, and `solid` from triangles behind a shape."""
    now = add_plane(
        met,
        near.normal,
        near.velocity,
        wp.dot(near.normal, way) + keep - near.distance,
        bounce_of(rule, near.normal, velocity - near.velocity),
    )
    if near.solid < solid and wp.length_sq(near.solid_normal) > 0.0:
        now = add_plane(
            now,
            near.solid_normal,
            near.solid_velocity,
            wp.dot(near.solid_normal, way) + solid - near.solid,
            bounce_of(rule, near.solid_normal, velocity - near.solid_velocity),
        )
    return now


@wp.func
def try_hop(
    walls: WallsView,
    rule: ContactRule,
    start: wp.vec3,
    near: Nearest,
    known: wp.array(dtype=Known),
    i: int,
    wanted: wp.vec3,
    velocity: wp.vec3,
    time: float,
    keep: float,
) -> Hop:
    """From `start`, where the nearest wall is `near`: `wanted`, as far as walls that keep `keep` away allow."""
    hop = Hop()
    hop.touch = near
    hop.ball = wp.vec4(start[0], start[1], start[2], near.free)
    most = most_free(near, keep, rule.radius)
    # Inside a shape that came over it, a particle is pushed out; friction at other walls must not hold it there.
    friction = wp.where(near.distance < 0.0, 0.0, rule.friction)
    # Triangles behind a shape are kept off too.
    solid = keep_from(near.solid, rule.radius)
    if near.distance - wp.length(wanted) < keep:
        hop.met = add_near(hop.met, rule, near, wp.vec3(0.0, 0.0, 0.0), velocity, keep, solid)
    for _attempt in range(TRIES):
        hop.way = shorter(obey(wanted, hop.met, False, time, friction), most)
        length = wp.length(hop.way)
        if length <= 1.0e-3 * SLOP * rule.radius or near.free - length >= rule.radius:
            break
        end = start + hop.way
        there = look(walls, known, i, end, keep)
        hop.ball = wp.vec4(end[0], end[1], end[2], there.free)
        if there.distance >= keep - 0.1 * SLOP * rule.radius:
            break
        hop.touch = there
        hop.met = add_near(hop.met, rule, there, hop.way, velocity, keep, solid)
    hop.met = touched(hop.met, wanted, hop.way, SLOP * rule.radius)
    return hop


@wp.func
def meet(
    walls: WallsView,
    rule: ContactRule,
    i: int,
    time: float,
    before: wp.array(dtype=wp.vec3),
    known_before: wp.array(dtype=Known),
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
    known_out: wp.array(dtype=Known),
    touch_out: Touch,
):
    """Particle i."""
    place = before[i]
    target = position_out[i]
    take_known(known_before, i, walls.moved[0], walls.moved[1], i, known_out)
    ball = known_out[i].ball
    centre = wp.vec3(ball[0], ball[1], ball[2])
    clear = known_out[i].clear
    touch_out.face[i] = -1
    touch_out.kick[i] = wp.vec3(0.0, 0.0, 0.0)
    if wp.length(place - centre) < clear and wp.length(target - centre) <= clear - 1.001 * rule.radius:
        return
    left = target - place
    rest = time
    velocity = velocity_out[i]
    arrived = velocity
    if not wp.isfinite(left):
        return  # the step before broke it; the neighbour grid reports it
    radius = rule.radius
    for _hop in range(HOPS):
        whole = wp.length(left)
        near = look(walls, known_out, i, place, 1.001 * radius + wp.min(whole, 0.25 * radius))
        ball = wp.vec4(place[0], place[1], place[2], near.free)
        keep = keep_from(near.distance, radius)
        most = wp.max(near.free - LEAST * radius, 0.5 * near.free)
        part = 1.0
        if whole > most:
            part = wp.max(most, 0.0) / wp.max(whole, 1.0e-30)
        hop = Hop()
        for attempt in range(2):
            hop = try_hop(walls, rule, place, near, known_out, i, part * left, velocity, part * rest, keep)
            tight = hop.ball[3] < wp.min(near.free, LEAST * radius)
            if not tight and (near.distance >= (1.0 - SLOP) * radius or hop.ball[3] >= near.free):
                break
            # No room to be pushed out: keep the distance there is instead; and if that does not help, stay.
            keep = wp.max(near.distance, LEAST * radius)
            if attempt == 1 and tight:
                hop.way = wp.vec3(0.0, 0.0, 0.0)
                hop.ball = ball
        place += hop.way
        ball = hop.ball
        left = (1.0 - part) * left
        rest = (1.0 - part) * rest
        if hop.met.count > 0:
            velocity = obey(velocity, hop.met, True, 0.0, rule.friction)
            if part < 1.0:
                left = obey(left, reached(hop.met), False, rest, rule.friction)
            if hop.touch.distance < 1.5 * radius:
                touch_out.face[i] = hop.touch.face
                touch_out.weights[i] = hop.touch.weights
        if wp.length(left) <= 1.0e-6 * radius:
            break
    position_out[i] = place
    velocity_out[i] = velocity
    recentre(known_out, i, ball)
    touch_out.kick[i] = velocity - arrived


@wp.kernel
def meet_walls(
    first: int,
    # params
    walls: WallsView,
    rules: wp.array(dtype=ContactRule),
    # in
    count: wp.array(dtype=wp.int32),
    dt: wp.array(dtype=float),
    tag: wp.array(dtype=wp.int32),
    before: wp.array(dtype=wp.vec3),
    known_before: wp.array(dtype=Known),
    # out
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
    known_out: wp.array(dtype=Known),
    touch_out: Touch,
):
    """`position_out` and `velocity_out` come in as the step without walls left them. Tags below 0 are left alone."""
    i = first + wp.tid()
    if i >= count[0] or tag[i] < 0:
        return
    meet(walls, rules[0], i, dt[0], before, known_before, position_out, velocity_out, known_out, touch_out)
