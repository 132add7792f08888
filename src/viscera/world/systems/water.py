"""Particles of a fluid in a vessel, with the tools that push as balls in it.

Once a frame: where the hands hold the balls; as many steps of the fluid as make 16 ms, with contacts. Drains act after
the first step of each frame: the next step's sort takes out what they marked, so between frames all particles are
whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera import water
from viscera.device import Stage
from viscera.errors import StateError
from viscera.instruments import Pushes, Tool
from viscera.timing import FRAME
from viscera.units import LITRE
from viscera.view import Measure, Particles
from viscera.water.boundary.shapes import Shape
from viscera.water.boundary.vessel import Vessel
from viscera.water.sph import step_fluid, step_work
from viscera.water.state import DRAINED, LOST
from viscera.world.system import Kept, Moment, Show, System, having

wp.set_module_options({"enable_backward": False})

DRAWN = 0.8
"""Radius of the drawn balls over the spacing of the particles."""
FASTEST_BALL = 2.4
"""A ball follows its hand no faster [m/s]: below a quarter of a particle's radius per step, so that it meets every
particle on its way."""

WATER = Measure("water", "Water", "L", "In the landscape now.", digits=1)
OUTFLOW = Measure("outflow", "Outflow", "L/s", "Leaves at the lower end or over the sides, mean of a second.", digits=2)


@wp.kernel
def show(
    first: int,
    # params
    fastest: float,
    # in
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
    # out
    drawn_out: wp.array(dtype=wp.vec4),
    status_out: wp.array(dtype=wp.int32),
):
    """Where particles are and how fast; how many there are, and whether one is no longer finite."""
    i = first + wp.tid()
    if i == 0:
        status_out[0] = count[0]
    if i < count[0]:
        p = position[i]
        if not wp.isfinite(p[0] + p[1] + p[2]):
            status_out[1] = 1  # whoever writes it writes the same
        drawn_out[i] = wp.vec4(p[0], p[1], p[2], wp.min(wp.length(velocity[i]) / fastest, 1.0))


def balls(tools: Sequence[Tool]) -> list[Shape]:
    """The tools that push, as shapes at their homes: the first shapes of the walls that `swirling` is given."""
    return [Shape("sphere", tool.instrument.home, (pushes.radius,)) for tool, pushes in having(tools, Pushes)]


@dataclass(eq=False)
class Stream:
    """A fluid in its vessel, as a scenario has made it."""

    fluid: Any
    vessel: Vessel
    """Its walls; the first shapes in them are `balls(tools)`."""
    steps: int
    """Of the fluid, in a frame."""
    drains: Sequence[Any] = ()
    """Act once per frame, and so are not among the fluid's boundaries."""


def swirling(stream: Stream, tools: Sequence[Tool], *, fastest: float) -> System[water.Fluid]:
    """`fastest` is the speed of particles with the brightest shade [m/s]."""
    return _Swirling(stream, tools, fastest).system()


class _Swirling:
    def __init__(self, stream: Stream, tools: Sequence[Tool], fastest: float) -> None:
        self._stream, self._fastest = stream, fastest
        self._fluid, self._walls = stream.fluid, stream.vessel.walls
        self._hands = having(tools, Pushes)
        self._device = device = self._fluid.device
        self._capacity = self._fluid.capacity
        self._drawn = wp.zeros(self._capacity, dtype=wp.vec4, device=device.warp)
        self._status = device.port(2, wp.int32)
        self._drained = np.zeros(1 + round(1.0 / FRAME), dtype=np.int64)
        self._program = device.record(self._record, work=step_work(self._fluid))
        self._show = device.record(self._record_show, work=self._capacity)
        self._redraw()

    def system(self) -> System[water.Fluid]:
        spacing = self._fluid.params.spacing
        look = Particles("water", "water", DRAWN * spacing, self._capacity, "speed", self._fastest)
        own = (lambda: water.save(self._fluid), lambda saved: water.load(self._fluid, saved))
        kept = Kept({"drained": self._drained}, self._redraw, own)
        return System(
            name="water",
            frame=self.frame,
            save=kept.save,
            load=kept.load,
            shows=[Show(look, {look.name: self._drawn}, lambda: {look.name: int(self._status.host[0])})],
            measures=self.measures,
            holds=self._fluid,
        )

    def frame(self, now: Moment) -> None:
        for place, (tool, _) in enumerate(self._hands):
            hand = now.tools[tool.number]
            goal = np.asarray(hand.tip if hand.active else hand.instrument.home, dtype=np.float64)
            # Where it is, as the device has moved it: sums of our own would drift apart from that.
            way = goal - self._walls.view.shapes.numpy()["pose"][place][:3]
            far = float(np.linalg.norm(way))
            velocity = way / FRAME if far <= FASTEST_BALL * FRAME else way / far * FASTEST_BALL
            self._walls.motion.host[place] = velocity
        self._program.run()
        self._redraw()
        self._check(now.tick)
        self._drained[:-1] = self._drained[1:]
        self._drained[-1] = int(self._fluid.report.numpy()[DRAINED])

    def _check(self, tick: int) -> None:
        """A particle that is no longer finite stops the world; it has not left by the end."""
        self._stream.vessel.check(tick)
        if self._status.host[1] or int(self._fluid.report.numpy()[LOST]):
            raise StateError(
                "water: a particle's position is not finite.",
                "The fluid became unstable: make its step shorter, or its sound speed lower.",
                stage="water",
                tick=tick,
            )

    def _record(self, stage: Stage) -> None:
        for number in range(self._stream.steps):
            step_fluid(stage, self._fluid)
            if number == 0:
                for drain in self._stream.drains:
                    drain.contact(stage, self._fluid)

    def _record_show(self, stage: Stage) -> None:
        f = self._fluid
        stage.clear(self._status)
        args = [self._fastest, f.count, f.position, f.velocity, self._drawn, self._status.array]
        stage.launch(show, self._capacity, args)
        stage.download(self._status)

    def _redraw(self) -> None:
        self._show.run()
        self._device.synchronize()

    def measures(self) -> list[tuple[Measure, float]]:
        one = self._fluid.params.spacing**3 / LITRE
        leaving = float(self._drained[-1] - self._drained[0]) * one / (FRAME * (len(self._drained) - 1))
        return [(WATER, int(self._status.host[0]) * one), (OUTFLOW, leaving)]
