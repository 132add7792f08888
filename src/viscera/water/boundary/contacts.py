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
from viscera.water.boundary import native_contacts
from viscera.water.boundary.known import make_known
from viscera.water.boundary.meeting import ContactRule, Touch, meet_walls
from viscera.water.boundary.walls import Walls

wp.set_module_options({"enable_backward": False})


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
    native: bool
    """Whether the usual case is the one in C: on cpu, at triangles in a list."""

    @property
    def face(self) -> wp.array:
        return self.touch.face

    @property
    def weights(self) -> wp.array:
        return self.touch.weights

    @property
    def kick(self) -> wp.array:
        return self.touch.kick


def make_contacts(
    walls: Walls, capacity: int, params: ContactParams | None = None, native: bool | None = None
) -> Contacts:
    """Contacts of up to `capacity` particles with `walls`. `native` chooses between C for the usual case, on cpu and at
    meshes in a hashed grid or a hierarchy, and plain Warp for all."""
    possible = not walls.device.is_cuda and walls.structure in ("hashed", "hierarchy")
    if native and not possible:
        raise InputError(
            f"contacts in C do not know {walls.structure or 'shapes alone'} on {walls.device.name}.",
            "Leave native out.",
        )
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
        native=possible if native is None else native,
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
    args = [contacts.walls.view, contacts.rule, *given, *written]
    if contacts.native:
        # Cores share them chunk by chunk: a block of so many particles as usual would be all of a small fluid.
        stage.launch(native_contacts.meet_walls_simply, -(-capacity // native_contacts.CHUNK), args, block=1)
    else:
        stage.launch(meet_walls, capacity, args)


def live(value: float | int, contacts_or_walls: Contacts | Walls) -> wp.array:
    """A number as the device reads it, shape (1,): a count or a dt that stays."""
    walls = contacts_or_walls.walls if isinstance(contacts_or_walls, Contacts) else contacts_or_walls
    dtype = wp.int32 if isinstance(value, int | np.integer) else wp.float32
    return wp.full(1, value, dtype=dtype, device=walls.device.warp)
