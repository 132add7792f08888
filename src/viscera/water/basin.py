"""A box with balls and pillars in it: the collisions of Elmasdotter §3.5, at the cost of a few comparisons.

A particle of radius r that has come nearer to a wall than r is put back to r, and loses the speed u·n with which it
approaches (n from the wall into the fluid, w the wall's speed along it):

    x ← contact,   u ← u − min((u − w)·n, 0) n                                                    eq. 3.31, 3.32

Walls of the box stand along the axes (eq. 3.29, 3.30); the one at the upper end of x may move. A ball is met along the
line from its middle (eq. 3.25–3.28), a pillar along z likewise, seen from above (§3.5.2).

For water that only has to stay in. `boundary/` has contacts with friction that nothing passes at any speed, around any
mesh; they cost ten times as much.

Differs from the source in that speed is taken away only from those who approach (eq. 3.32 also stops who leaves), in
that a ball's depth is positive inside (eq. 3.27), and in that each size of particles has its own radius.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.water.adaptive.matching import in_groups
from viscera.water.state import Fluid

wp.set_module_options({"enable_backward": False})

Vector = tuple[float, float, float]

PILLAR = wp.constant(0)
BALL = wp.constant(1)
NEAREST = wp.constant(1.0e-9)
"""Of a middle, where there is no direction away from it [m]."""


@dataclass(frozen=True)
class Obstacle:
    """A ball, or a pillar along z from the floor to the roof."""

    centre: Vector
    """[m]"""
    radius: float
    """[m]"""
    pillar: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0.0 and all(map(math.isfinite, self.centre))):
            raise InputError(f"an obstacle of radius {self.radius} at {self.centre} is not possible.",
                             "Give finite numbers, and a radius above 0.")  # fmt: skip


@wp.func
def meet_wall(x: float, u: float, wall: float, speed: float, side: float):
    """One axis: `side` is 1 for a lower wall and -1 for an upper one; the wall already stands a radius inside."""
    if side * (x - wall) < 0.0:
        return wall, u - side * wp.min(side * (u - speed), 0.0)
    return x, u


@wp.kernel
def stay_inside(
    first: int,
    # params
    group: int,
    lower: wp.vec3,
    upper: wp.vec3,
    radii: wp.array(dtype=float),
    obstacles: wp.array(dtype=wp.vec4),
    kinds: wp.array(dtype=wp.int32),
    # in
    wall: wp.array(dtype=wp.vec2),
    count: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
    # out
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
):
    """`wall`: how far inside the upper end of x the moving wall stands, and its speed towards +x [m, m/s]."""
    start = (first + wp.tid()) * group
    for s in range(start, wp.min(start + group, count[0])):
        mine = wp.int32(0)
        if level.shape[0] > 0:
            mine = level[s]
        r = radii[mine]
        p = position_out[s]
        v = velocity_out[s]
        for k in range(obstacles.shape[0]):
            one = obstacles[k]
            away = p - wp.vec3(one[0], one[1], one[2])
            if kinds[k] == PILLAR:
                away = wp.vec3(away[0], away[1], 0.0)
            far = wp.length(away)
            near = one[3] + r
            if far < near and far > NEAREST:
                n = away / far
                p += (near - far) * n
                v -= wp.min(wp.dot(v, n), 0.0) * n
        x, vx = meet_wall(p[0], v[0], lower[0] + r, 0.0, 1.0)
        x, vx = meet_wall(x, vx, upper[0] - r - wall[0][0], wall[0][1], -1.0)
        y, vy = meet_wall(p[1], v[1], lower[1] + r, 0.0, 1.0)
        y, vy = meet_wall(y, vy, upper[1] - r, 0.0, -1.0)
        z, vz = meet_wall(p[2], v[2], lower[2] + r, 0.0, 1.0)
        z, vz = meet_wall(z, vz, upper[2] - r, 0.0, -1.0)
        position_out[s] = wp.vec3(x, y, z)
        velocity_out[s] = wp.vec3(vx, vy, vz)


class Basin:
    """A boundary of a fluid. The wall at the upper end of x moves with what is written into `wall.host`."""

    adds_density = False
    adds_force = False

    def __init__(
        self, fluid: Fluid, lower: Vector, upper: Vector, radii: Sequence[float], obstacles: Sequence[Obstacle] = ()
    ) -> None:
        """A box between two corners [m]. `radii`: how near particles of each size come to walls [m]."""
        sizes = len(fluid.params.radii)
        if len(radii) != sizes or not all(math.isfinite(r) and r >= 0.0 for r in radii):
            raise InputError(f"radii = {tuple(radii)} is not possible.", f"Give {sizes} finite lengths of 0 or more.")
        if fluid.params.dimension != 3:
            raise InputError("a basin is for fluids in 3D.", "Choose dimension=3.")
        device = fluid.device
        self.lower, self.upper = wp.vec3(*lower), wp.vec3(*upper)
        self.radii = wp.array(np.asarray(radii), dtype=float, device=device.warp)
        shapes = np.array([(*one.centre, one.radius) for one in obstacles], dtype=np.float32).reshape(-1, 4)
        self.obstacles = wp.array(shapes, dtype=wp.vec4, device=device.warp)
        kinds = [int(PILLAR) if one.pillar else int(BALL) for one in obstacles]
        self.kinds = wp.array(np.asarray(kinds, dtype=np.int32), dtype=wp.int32, device=device.warp)
        self.wall: Port = device.port(1, wp.vec2)
        self._none = wp.zeros(0, dtype=wp.int32, device=device.warp)

    def move_wall(self, inside: float, speed: float) -> None:
        """Where the wall stands inside the upper end of x [m], and its speed towards +x [m/s], from the next step."""
        self.wall.host[0] = (inside, speed)

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        stage.upload(self.wall)

    def add_density(self, stage: Stage, fluid: Fluid) -> None: ...
    def add_force(self, stage: Stage, fluid: Fluid) -> None: ...

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        level = fluid.extra.get("sorted_level", self._none)
        box = [self.lower, self.upper, self.radii, self.obstacles, self.kinds]
        moved = [self.wall.array, fluid.count, level, fluid.position, fluid.velocity]
        in_groups(stage, stay_inside, fluid.capacity, [*box, *moved])
