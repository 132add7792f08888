"""Balls in a vessel under gravity that turns: the boundary alone, without a fluid's forces."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera.device import Device, Program, Stage
from viscera.geometry import TriangleMesh, build_query, signed_distance
from viscera.water.boundary.contacts import ContactParams, Contacts, live, make_contacts, step_contacts
from viscera.water.boundary.walls import Walls

wp.set_module_options({"enable_backward": False})

GRAVITY = 9.81
"""[m/s²]"""

DRAG = 2.0
"""Rate at which speed is lost [1/s], so that balls fall through a colon at metres and not tens of metres per second."""


@wp.kernel
def fall(
    first: int,
    # params
    dt: float,
    turn: float,
    # in
    step: wp.array(dtype=wp.int32),
    # out
    before_out: wp.array(dtype=wp.vec3),
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
):
    """Gravity turns about z and tips about x, `turn` radians per step."""
    i = first + wp.tid()
    angle = turn * float(step[0])
    down = wp.vec3(wp.sin(angle), -wp.cos(angle) * wp.cos(0.3 * angle), wp.sin(0.3 * angle) * wp.cos(angle))
    velocity = (velocity_out[i] + dt * GRAVITY * down) * (1.0 - dt * DRAG)
    before_out[i] = position_out[i]
    velocity_out[i] = velocity
    position_out[i] = position_out[i] + dt * velocity


@wp.kernel
def count_step(step_out: wp.array(dtype=wp.int32)):
    step_out[0] = step_out[0] + 1


@dataclass(eq=False)
class Tumble:
    contacts: Contacts
    before: wp.array
    position: wp.array
    velocity: wp.array
    step: wp.array
    program: Program

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.program.run()
        self.contacts.walls.device.synchronize()


def make_tumble(
    walls: Walls,
    start: np.ndarray,
    *,
    dt: float = 1e-3,
    turn: float = 2 * math.pi / 2500,
    params: ContactParams | None = None,
    whole: bool = True,
    work: int | None = None,
) -> Tumble:
    """Balls that start at rest at `start` [m]; `turn` in radians per step.

    Without `whole`, only the contacts are recorded. `work` is as in `Device.record`.
    """
    device, count = walls.device, len(start)
    contacts = make_contacts(walls, count, params or ContactParams(restitution=0.2, friction=0.1))
    position = wp.array(start, dtype=wp.vec3, device=device.warp)
    before, velocity = wp.clone(position), wp.zeros(count, dtype=wp.vec3, device=device.warp)
    step = wp.zeros(1, dtype=wp.int32, device=device.warp)
    number, dts = live(count, walls), live(dt, walls)

    def build(stage: Stage) -> None:
        if whole:
            stage.launch(fall, count, [dt, turn, step, before, position, velocity])
            stage.once(lambda: wp.launch(count_step, dim=1, inputs=[step], device=device.warp))
        step_contacts(stage, contacts, number, dts, before, position, velocity)

    return Tumble(
        contacts, before, position, velocity, step, device.record(build, work=count if work is None else work)
    )


def inside_points(
    mesh: TriangleMesh, count: int, distance: float, seed: int = 0, device: Device | None = None
) -> np.ndarray:
    """`count` random places inside a closed mesh, at least `distance` from its wall [m]."""
    rng = np.random.default_rng(seed)
    query = build_query(mesh, device)
    low, high = mesh.bounds
    found = np.zeros((0, 3))
    while len(found) < count:
        trial = rng.uniform(low, high, (4 * count, 3))
        found = np.concatenate([found, trial[signed_distance(query, trial) < -distance]])
    return found[:count]


def outside(mesh: TriangleMesh, points: np.ndarray) -> int:
    """How many of `points` are not inside, by winding number."""
    return int((signed_distance(build_query(mesh), points) >= 0.0).sum())
