"""Contacts: particles are balls of radius r that bounce off walls, slide along them with friction, and never pass them.

Never. At each place x the distance d(x) to the nearest wall is known, so the ball of radius d around x holds no wall. A
particle moves only inside such balls: by at most max(d − r/4, d/2), then it asks again. So it is always on the side
where it started, at any speed, and float32 rounding (10⁻⁷ m) is far below the distances that are kept. A particle that
stays in the ball it knows from earlier, a radius from its rim, needs to ask nothing; one at a wall asks the few
triangles it remembers (known.py).

Response. With velocity v, wall velocity w, normal n (from the wall to the particle), restitution ε and friction µ:

    v_n = (v − w)·n < 0:   v ← v − (1 + ε) v_n n,   then |v_t| ← max(0, |v_t| − µ (1 + ε) |v_n|)

(Grahn eq. 7.3–7.5, Coulomb). The way of the step is treated alike: what is left of it after the wall is reached is
reflected or slides, so friction holds a particle on a slope without creep (Andersson §3.2.2). ε acts above
`rest_speed` only.

Corners. A wall met at the end of the way becomes a plane n·y ≥ c for the displacement y, and the way is taken again
from its beginning under all planes met so far (up to 4), by projected Gauss–Seidel sweeps: λ_i ≥ 0 along each normal,
friction within µ λ_i. A particle in a corner thus finds y = 0 and stays where it is, to the bit, instead of being
pushed to and fro between two walls (Grahn §7.3, Figure 7.5). Where walls are nearer to each other than 2r it keeps
what room there is.

Differs from the source in: 7.3 acts only if v·n < 0; 7.5 needs µ (1 + ε) |v_n| and must not divide by v_t = 0; 7.6 is
limited to the free ball, else it pushes through the opposite wall; friction stops and never reverses (Andersson
§3.2.3); detection is continuous, which Grahn §4.3 gives up for speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.water.boundary.known import Known, look, make_known, recentre, take_known
from viscera.water.boundary.nearest import Nearest
from viscera.water.boundary.response import Met, add_plane, obey, reached, shorter, touched
from viscera.water.boundary.walls import LEAST, Walls, WallsView

wp.set_module_options({"enable_backward": False})

TRIES = wp.constant(6)
"""Ways tried from one place, each with one more plane."""

HOPS = wp.constant(64)
"""Free balls a particle may cross in one step. What is left of its way then is given up."""

SLOP = 1.0e-3
"""Part of the radius by which a particle may lie deeper than it should without being pushed."""

PUSH = 0.25
"""Part of the radius by which a particle that lies too deep is pushed out per step, at most."""


@dataclass(frozen=True)
class ContactParams:
    """How particles meet walls."""

    restitution: float = 0.0
    """ε, 0 to 1. Fluid particles do not bounce; drops may."""
    friction: float = 0.0
    """µ of Coulomb, 0 or more."""
    rest_speed: float = 0.05
    """Approach below this does not bounce [m/s]: gravity's share in a few steps. Else things at rest hum."""

    def __post_init__(self) -> None:
        limits = {"restitution": 1.0, "friction": math.inf, "rest_speed": math.inf}
        for name, most in limits.items():
            value = getattr(self, name)
            if not (math.isfinite(value) and 0.0 <= value <= most):
                allowed = "from 0 to 1" if most == 1.0 else "of 0 or more"
                raise InputError(f"{name} = {value} is not possible.", f"It must be a finite number {allowed}.")


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


@dataclass(eq=False)
class Contacts:
    """Made by `make_contacts`."""

    walls: Walls
    rule: wp.array
    """One `ContactRule`."""
    known: wp.array
    """`Known`: the walls around each particle. It need not be this particle's: where it is good is checked."""
    last_known: wp.array
    """The same after the step; another array only for those who sort particles between steps (`vessel`)."""
    everyone: wp.array
    """Tags for callers without any: 0 per particle, int32."""
    touch: Touch

    @property
    def face(self) -> wp.array:
        return self.touch.face

    @property
    def weights(self) -> wp.array:
        return self.touch.weights

    @property
    def kick(self) -> wp.array:
        return self.touch.kick


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
    rule = rules[0]
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
    rest = dt[0]
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


def make_contacts(walls: Walls, capacity: int, params: ContactParams | None = None) -> Contacts:
    """Contacts of up to `capacity` particles with `walls`."""
    if capacity < 0:
        raise InputError(f"capacity is {capacity}.", "Give the most particles there can be, 0 or more.")
    device = walls.device.warp
    known = make_known(capacity, walls.device)
    touch = Touch()
    touch.face = wp.full(capacity, -1, dtype=wp.int32, device=device)
    touch.weights = wp.zeros(capacity, dtype=wp.vec3, device=device)
    touch.kick = wp.zeros(capacity, dtype=wp.vec3, device=device)
    contacts = Contacts(
        walls=walls,
        rule=wp.zeros(1, dtype=ContactRule, device=device),
        known=known,
        last_known=known,
        everyone=wp.zeros(capacity, dtype=wp.int32, device=device),
        touch=touch,
    )
    set_contacts(contacts, params or ContactParams())
    return contacts


def set_contacts(contacts: Contacts, params: ContactParams) -> None:
    """Other numbers from now on, also in recorded programs."""
    rule = ContactRule()
    rule.radius = contacts.walls.radius
    rule.restitution, rule.friction, rule.rest_speed = params.restitution, params.friction, params.rest_speed
    contacts.rule.assign([rule])


def step_contacts(
    stage: Stage,
    contacts: Contacts,
    count: wp.array,
    dt: wp.array,
    before: wp.array,
    position: wp.array,
    velocity: wp.array,
    tag: wp.array | None = None,
) -> None:
    """After a step from `before` to `position`: put particles and velocities where the walls allow. One launch.

    `count` (int32) and `dt` (float [s]) have shape (1,) and are read on the device; the others are vec3 per particle.
    Particles whose `tag` (int32) is below 0 are left alone.
    """
    capacity = len(contacts.face)
    for name, array in (("before", before), ("position", position), ("velocity", velocity)):
        if array.dtype is not wp.vec3 or len(array) < capacity:
            raise InputError(
                f"{name}: {len(array)} of {array.dtype.__name__}.", f"Give at least {capacity} vec3, one per particle."
            )
    given = [count, dt, contacts.everyone if tag is None else tag, before, contacts.known]
    written = [position, velocity, contacts.last_known, contacts.touch]
    stage.launch(meet_walls, capacity, [contacts.walls.view, contacts.rule, *given, *written])


def live(value: float | int, contacts_or_walls: Contacts | Walls) -> wp.array:
    """A number as the device reads it, shape (1,): a count or a dt that stays."""
    walls = contacts_or_walls.walls if isinstance(contacts_or_walls, Contacts) else contacts_or_walls
    dtype = wp.int32 if isinstance(value, int | np.integer) else wp.float32
    return wp.full(1, value, dtype=dtype, device=walls.device.warp)
