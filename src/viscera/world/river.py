"""Water from a spring, down a bed, to an end: a fluid on a solid ground, with a ball in the hand as an obstacle.

Once a frame, in order: where the hand holds the ball; so many steps of the fluid as make 16 ms, with contacts;
particles that have reached the end are taken out, and the spring puts new ones in while there is room. Taking out and
putting in are done by one thread, in order, so that the same world has the same particles.
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
from viscera.errors import InputError
from viscera.tissue.params import TICK
from viscera.view import Instrument, Measure, Particles, Texture
from viscera.water.boundary.contacts import ContactParams
from viscera.water.boundary.shapes import Shape, plane
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import make_walls
from viscera.water.params import FluidParams, largest_step
from viscera.water.sph import step_fluid
from viscera.water.state import CREATED, DRAINED, arrays, load, make_fluid
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
STEP_SHARE = 0.9
"""Of the longest stable step."""
FRICTION = 0.1
"""Of water on the ground; tuned so that the river is as fast as one of its depth."""
SHADED_SPEED = 2.0
"""Particles this fast have the brightest shade [m/s]."""
FASTEST_BALL = 2.5
"""The ball follows the hand no faster [m/s]: water must have time to give way."""

WATER = Measure("water", "Water", "L", "In the landscape now.", digits=1)
OUTFLOW = Measure("outflow", "Outflow", "L/s", "Leaves at the lower end, mean over the last second.", digits=2)


@wp.struct
class Ends:
    """Where water comes from and where it goes."""

    capacity: int
    low: wp.vec3
    high: wp.vec3
    """Corners of the box in which particles have left [m]."""
    slot: wp.array(dtype=wp.vec3)
    """Where new ones appear [m]."""
    speed: wp.vec3
    """And how fast they are [m/s]."""
    density: float
    """[kg/m³]"""


@wp.kernel
def drain_and_fill(
    # params
    ends: Ends,
    # in
    wanted: wp.array(dtype=wp.int32),
    # out
    count_out: wp.array(dtype=wp.int32),
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
    tag_out: wp.array(dtype=wp.int32),
    density_out: wp.array(dtype=float),
    rate_out: wp.array(dtype=wp.vec4),
    report_out: wp.array(dtype=wp.int32),
):
    """Who has reached the end leaves its place to the last one; then the spring adds a layer, each at its own slot."""
    n = count_out[0]
    s = wp.int32(0)
    while s < n:
        p = position_out[s]
        inside = p[0] > ends.low[0] and p[1] > ends.low[1] and p[2] > ends.low[2]
        inside = inside and p[0] < ends.high[0] and p[1] < ends.high[1] and p[2] < ends.high[2]
        if inside or not wp.isfinite(p[0] + p[1] + p[2]):
            n -= 1
            position_out[s] = position_out[n]
            velocity_out[s] = velocity_out[n]
            tag_out[s] = tag_out[n]
            density_out[s] = density_out[n]
            rate_out[s] = rate_out[n]
            report_out[DRAINED] = report_out[DRAINED] + 1
        else:
            s += 1
    for k in range(wp.min(wanted[0], ends.capacity - n)):
        position_out[n] = ends.slot[k]
        velocity_out[n] = ends.speed
        tag_out[n] = report_out[CREATED]
        density_out[n] = ends.density
        rate_out[n] = wp.vec4(0.0, 0.0, 0.0, 0.0)
        report_out[CREATED] = report_out[CREATED] + 1
        n += 1
    count_out[0] = n


@wp.kernel
def show(
    first: int,
    # in
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
    # out
    drawn_out: wp.array(dtype=wp.vec4),
):
    i = first + wp.tid()
    if i < count[0]:
        p = position[i]
        drawn_out[i] = wp.vec4(p[0], p[1], p[2], wp.min(wp.length(velocity[i]) / SHADED_SPEED, 1.0))


def spring_slots(place: Landscape, spacing: float, radius: float) -> NDArray[np.float64]:
    """Where a layer of new particles appears: a disc across the spring's direction, nearest to the middle first."""
    ahead = np.asarray(place.spring_direction)
    side = np.array([-ahead[1], ahead[0], 0.0])
    steps = np.arange(-math.ceil(radius / spacing), math.ceil(radius / spacing) + 1)
    u, v = (g.ravel() * spacing for g in np.meshgrid(steps, steps, indexing="ij"))
    order = np.argsort(np.hypot(u, v), kind="stable")
    order = order[np.hypot(u, v)[order] <= radius]
    return np.asarray(place.spring) + u[order, None] * side + v[order, None] * np.array([0.0, 0.0, 1.0])


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


class River:
    """Water in a landscape. A system of a world."""

    name = "water"

    def __init__(self, place: Landscape, device: Device, params: RiverParams, ball: Instrument) -> None:
        """`ball` is the world's first tool, a sphere; the water flows around it."""
        self._device, self._place = device, place
        capacity, spacing, sound = params.capacity, params.spacing, params.sound
        self.capacity, self.spacing = capacity, spacing
        self.speed = 1.01 * spacing / FRAME
        """Of the spring [m/s]: a layer has just left when the next one comes."""
        self._slots = spring_slots(place, spacing, SPRING * place.bed_half_width)
        self.steps = math.ceil(FRAME / (STEP_SHARE * largest_step(self._params(sound))))
        self.fluid = make_fluid(self._params(sound, FRAME / self.steps), self._slots, device, capacity=capacity)
        radius = 0.5 * spacing
        y = 0.5 * place.width
        sides = [
            plane((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
            plane((0.0, -y, 0.0), (0.0, 1.0, 0.0)),
            plane((0.0, y, 0.0), (0.0, -1.0, 0.0)),
        ]
        ground = make_walls(place.mesh, sides, radius=radius, device=device, structure="hashed", fluid_inside=False)
        self._ball = make_walls(shapes=[Shape("sphere", ball.home, (ball.radius,))], radius=radius, device=device)
        self._vessels = [
            Vessel(self.fluid, self._ball, ContactParams(), moving=True),
            Vessel(self.fluid, ground, ContactParams(friction=FRICTION)),
        ]
        self.fluid.boundaries.extend(self._vessels)
        self._wanted = wp.zeros(1, dtype=wp.int32, device=device.warp)
        self._ends: Any = Ends()
        self._ends.capacity = capacity
        self._ends.low, self._ends.high = (wp.vec3(*corner) for corner in place.end)
        self._ends.slot = wp.array(self._slots, dtype=wp.vec3, device=device.warp)
        self._ends.speed = wp.vec3(*(self.speed * np.asarray(place.spring_direction)).tolist())
        self._ends.density = self.fluid.params.rest_density
        self._drawn = wp.zeros(capacity, dtype=wp.vec4, device=device.warp)
        self._count = device.port(1, wp.int32)
        self._drained = np.zeros(1 + round(1.0 / FRAME), dtype=np.int64)
        self._shown = Particles("water", "water", DRAWN * spacing, capacity, f"speed, 0 to {SHADED_SPEED:g} m/s")
        self._home = ball.home
        self._program = device.record(self._record)
        self._show = device.record(self._record_show, work=capacity)
        self.set_flow(self.most_flow)
        self._show.run()
        device.synchronize()

    @property
    def most_flow(self) -> float:
        """Of the spring, with all its slots [m³/s]."""
        return len(self._slots) * self.spacing**3 / FRAME

    def set_flow(self, flow: float) -> None:
        """Of the spring [m³/s], to the nearest whole number of particles per frame."""
        self._wanted.fill_(min(len(self._slots), round(flow * FRAME / self.spacing**3)))

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
        way = goal - self._ball.view.shapes.numpy()["pose"][0][:3]
        far = float(np.linalg.norm(way))
        velocity = way / FRAME if far <= FASTEST_BALL * FRAME else way / far * FASTEST_BALL
        self._ball.motion.host[0] = velocity
        self._program.run()
        self._show.run()
        self._device.synchronize()
        self._drained[:-1] = self._drained[1:]
        self._drained[-1] = int(self.fluid.report.numpy()[DRAINED])

    def _record(self, stage: Stage) -> None:
        for _ in range(self.steps):
            step_fluid(stage, self.fluid)
        f = self.fluid
        outputs = [f.count, f.position, f.velocity, f.tag, f.kept_density, f.rate, f.report]
        inputs = [self._ends, self._wanted, *outputs]
        stage.once(lambda: wp.launch(drain_and_fill, dim=1, inputs=inputs, device=self._device.warp))

    def _record_show(self, stage: Stage) -> None:
        f = self.fluid
        stage.launch(show, self.capacity, [f.count, f.position, f.velocity, self._drawn])
        stage.once(lambda: wp.copy(self._count.array, f.count))
        stage.download(self._count)

    def arrays(self) -> dict[str, Any]:
        balls = {f"ball{k}": vessel.contacts.last_ball for k, vessel in enumerate(self._vessels)}
        shape = np.frombuffer(self._ball.view.shapes.numpy().tobytes(), dtype=np.uint8)
        return arrays(self.fluid) | balls | {"shape": shape, "drained": self._drained}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        load(self.fluid, arrays)
        for k, vessel in enumerate(self._vessels):
            vessel.contacts.last_ball.assign(arrays[f"ball{k}"])
        shapes = self._ball.view.shapes
        shapes.assign(np.frombuffer(arrays["shape"].tobytes(), dtype=shapes.numpy().dtype))
        self._drained[:] = arrays["drained"]
        self._show.run()
        self._device.synchronize()

    def textures(self) -> list[tuple[Texture, Any]]:
        return []

    def particles(self) -> list[tuple[Particles, Any, int]]:
        return [(self._shown, self._drawn, int(self._count.host[0]))]

    def measures(self) -> list[tuple[Measure, float]]:
        one = self.spacing**3 * LITRES
        leaving = float(self._drained[-1] - self._drained[0]) * one / (FRAME * (len(self._drained) - 1))
        return [(WATER, int(self._count.host[0]) * one), (OUTFLOW, leaving)]
