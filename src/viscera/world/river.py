"""Water from a spring, down a bed, to an end: a fluid on a solid ground, with a ball in the hand as an obstacle.

Once a frame, in order: where the hand holds the ball; so many steps of the fluid as make 16 ms, with contacts. The
spring is the fluid's emitter, which puts in a layer whenever the stream has gone on by one spacing and there is room.
The end and the outer sides are its drains, after the first step of each frame: the next step's sort takes out what
they marked, so between frames all particles are whole. Ground and ball are one set of walls, since a particle may be
held by both.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.anatomy.landscape import Landscape
from viscera.device import Device, Stage
from viscera.errors import InputError, StateError
from viscera.tissue.params import TICK
from viscera.view import Instrument, Measure, Particles, Texture
from viscera.water.boundary.contacts import ContactParams
from viscera.water.boundary.shapes import Shape, plane
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import make_walls
from viscera.water.emitter import add_drain, add_emitter, set_emitter
from viscera.water.params import FluidParams, largest_step
from viscera.water.sph import step_fluid, step_work
from viscera.water.state import DRAINED, LOST, arrays, load, make_fluid
from viscera.world.world import TICKS_PER_FRAME, World

wp.set_module_options({"enable_backward": False})

FRAME = TICKS_PER_FRAME * TICK
"""[s]"""
LITRES = 1000.0
"""In a cubic metre."""
DRAWN = 0.8
"""Radius of the drawn balls over the spacing of the particles."""
SPRING = 0.55
"""Radius of the spring over half the width of the bed."""
STEP_SHARE = 0.97
"""Of the longest stable step."""
FRICTION = 0.1
"""Of water on the ground; tuned so that the river is as fast as one of its depth."""
SHADED_SPEED = 2.0
"""Particles this fast have the brightest shade [m/s]."""
FASTEST_BALL = 2.4
"""The ball follows the hand no faster [m/s]: below a quarter of a particle's radius per step, so that it meets every
particle on its way."""

WATER = Measure("water", "Water", "L", "In the landscape now.", digits=1)
OUTFLOW = Measure("outflow", "Outflow", "L/s", "Leaves at the lower end or over the sides, mean of a second.", digits=2)
Box = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Two corners [m]."""


@wp.kernel
def show(
    first: int,
    # in
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
    # out
    drawn_out: wp.array(dtype=wp.vec4),
    told_out: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    if i == 0:
        told_out[0] = count[0]
    if i < count[0]:
        p = position[i]
        if not wp.isfinite(p[0] + p[1] + p[2]):
            told_out[1] = 1  # whoever writes it writes the same
        drawn_out[i] = wp.vec4(p[0], p[1], p[2], wp.min(wp.length(velocity[i]) / SHADED_SPEED, 1.0))


@dataclass(frozen=True)
class RiverParams:
    capacity: int
    """Most particles there can be."""
    spacing: float
    """Of the particles [m]."""
    sound: float
    """Speed of sound in the fluid [m/s]; about five times the fastest water, so that density stays within 4 %."""

    def __post_init__(self) -> None:
        for name in ("capacity", "spacing", "sound"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")


def _edges(place: Landscape, spacing: float) -> list[Box]:
    """Where water that has run over a hill has left: along both sides, as wide as it touches the wall there."""
    low, high = place.mesh.vertices.min(axis=0), place.mesh.vertices.max(axis=0)
    y, top = 0.5 * place.width, float(high[2]) + 1.0
    inner = y - 0.75 * spacing
    return [
        ((-1.0, a, float(low[2]) - 1.0), (2.0 * place.length, b, top))
        for a, b in ((-y - 1.0, -inner), (inner, y + 1.0))
    ]


class River:
    """Water in a landscape. A system of a world."""

    name = "water"

    def __init__(self, place: Landscape, device: Device, params: RiverParams, ball: Instrument) -> None:
        """`ball` is the world's first tool, a sphere; the water flows around it."""
        self._device, self._place = device, place
        capacity, spacing, sound = params.capacity, params.spacing, params.sound
        self.capacity, self.spacing = capacity, spacing
        self.steps = math.ceil(FRAME / (STEP_SHARE * largest_step(self._params(sound))))
        self.fluid = make_fluid(self._params(sound, FRAME / self.steps), np.zeros((0, 3)), device, capacity=capacity)
        ahead = np.asarray(place.spring_direction)
        self._emitter = add_emitter(self.fluid, place.spring, ahead.tolist(), SPRING * place.bed_half_width)
        self._ahead = ahead
        self._drains = [add_drain(self.fluid, box=box) for box in (place.end, *_edges(place, spacing))]
        for drain in self._drains:
            self.fluid.boundaries.remove(drain)  # they act once per frame
        y = 0.5 * place.width
        shapes = [
            Shape("sphere", ball.home, (ball.radius,)),
            plane((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
            plane((0.0, -y, 0.0), (0.0, 1.0, 0.0)),
            plane((0.0, y, 0.0), (0.0, -1.0, 0.0)),
        ]
        self._walls = make_walls(place.mesh, shapes, radius=0.5 * spacing, device=device, fluid_inside=False)
        self._vessel = Vessel(self.fluid, self._walls, ContactParams(friction=FRICTION), moving=True)
        self.fluid.boundaries.append(self._vessel)
        self._drawn = wp.zeros(capacity, dtype=wp.vec4, device=device.warp)
        self._told = device.port(2, wp.int32)
        self._drained = np.zeros(1 + round(1.0 / FRAME), dtype=np.int64)
        self._shown = Particles("water", "water", DRAWN * spacing, capacity, f"speed, 0 to {SHADED_SPEED:g} m/s")
        self._home = ball.home
        self._program = device.record(self._record, work=step_work(self.fluid))
        self._show = device.record(self._record_show, work=capacity)
        self._show.run()
        device.synchronize()

    def set_flow(self, flow: float) -> None:
        """Of the spring [m³/s]: so fast is the stream from its nozzle."""
        speed = flow / (len(self._emitter.layer) * self.spacing**2)
        moving = {"velocity": (speed * self._ahead).tolist()} if flow > 0.0 else {}
        set_emitter(self._emitter, on=flow > 0.0, **moving)

    def _params(self, sound: float, dt: float = 1e-9) -> FluidParams:
        low, high = self._place.mesh.vertices.min(axis=0), self._place.mesh.vertices.max(axis=0)
        return FluidParams(
            self.spacing,
            (float(low[0]), float(low[1]), float(low[2])),
            (1.1 * float(high[0]), float(high[1]), float(high[2])),
            dt=dt,
            sound_speed=sound,
            alpha=0.08,
            gravity=(0.0, 0.0, -9.81),
            fastest=0.2 * sound,
        )

    def frame(self, world: World) -> None:
        hand = world.hands[0]
        goal = np.asarray(hand.tip if hand.active else self._home, dtype=np.float64)
        # Where it is, as the device has moved it: sums of our own would drift apart from that.
        way = goal - self._walls.view.shapes.numpy()["pose"][0][:3]
        far = float(np.linalg.norm(way))
        velocity = way / FRAME if far <= FASTEST_BALL * FRAME else way / far * FASTEST_BALL
        self._walls.motion.host[0] = velocity
        self._program.run()
        self._show.run()
        self._device.synchronize()
        self._check(world)
        self._drained[:-1] = self._drained[1:]
        self._drained[-1] = int(self.fluid.report.numpy()[DRAINED])

    def _check(self, world: World) -> None:
        """A particle that is no longer finite stops the world; it has not left by the end."""
        self._vessel.check(world.tick)
        if self._told.host[1] or int(self.fluid.report.numpy()[LOST]):
            raise StateError(
                "water: a particle's position is not finite.",
                "The fluid became unstable: make its step shorter, or its sound speed lower.",
                stage="water",
                tick=world.tick,
            )

    def _record(self, stage: Stage) -> None:
        for number in range(self.steps):
            step_fluid(stage, self.fluid)
            if number == 0:
                for drain in self._drains:
                    drain.contact(stage, self.fluid)

    def _record_show(self, stage: Stage) -> None:
        f = self.fluid
        stage.clear(self._told)
        stage.launch(show, self.capacity, [f.count, f.position, f.velocity, self._drawn, self._told.array])
        stage.download(self._told)

    def arrays(self) -> dict[str, Any]:
        bytes_of = {name: np.frombuffer(a.numpy().tobytes(), dtype=np.uint8) for name, a in self._structs().items()}
        return arrays(self.fluid) | bytes_of | {"drained": self._drained}

    def _structs(self) -> dict[str, wp.array]:
        """Arrays of structs that change: kept as bytes."""
        shape, known = self._walls.view.shapes, self._vessel.contacts.last_known
        return {"shape": shape, "known": known, "nozzle": self._emitter.nozzle}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        load(self.fluid, arrays)
        for name, array in self._structs().items():
            array.assign(np.frombuffer(arrays[name].tobytes(), dtype=array.numpy().dtype))
        self._drained[:] = arrays["drained"]
        self._show.run()
        self._device.synchronize()

    def textures(self) -> list[tuple[Texture, Any]]:
        return []

    def particles(self) -> list[tuple[Particles, Any, int]]:
        return [(self._shown, self._drawn, int(self._told.host[0]))]

    def measures(self) -> list[tuple[Measure, float]]:
        one = self.spacing**3 * LITRES
        leaving = float(self._drained[-1] - self._drained[0]) * one / (FRAME * (len(self._drained) - 1))
        return [(WATER, int(self._told.host[0]) * one), (OUTFLOW, leaving)]
