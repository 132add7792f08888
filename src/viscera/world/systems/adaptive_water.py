"""Water that is fine where somebody looks, as a system of a world.

Once a frame: where the viewer looks; as many steps of the fluid as make 16 ms; splitting and merging by the chosen
criterion. Gaze comes as the one row of a table, which the page fills: so it is an input like any other, and a recording
has it. With two viewers that of whoever holds the instruments counts: the server takes inputs from nobody else. A gaze
that is lost stays for half a second; after that the surface is refined instead.

What is drawn: the water as a liquid, or its particles as balls by their size, red for large and blue for small; a ball
takes its new size and its new place over some frames (blending.py). The picture can be cut open in the middle, and the
gaze disc hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import warp as wp

from viscera import water
from viscera.device import Program, Stage
from viscera.gaze import Attention, Sample, ScanPath
from viscera.gaze.rows import camera_of, gaze_input, gaze_table
from viscera.inputs import SetTable
from viscera.timing import FRAME, TICK, TICKS_PER_FRAME
from viscera.view import Camera, Measure, Overlay, Parameter, Particles
from viscera.water import adaptive
from viscera.water.state import Fluid
from viscera.world.system import Kept, LiveParameter, LiveTable, Moment, Rows, Show, System
from viscera.world.systems import blending

wp.set_module_options({"enable_backward": False})

DRAWN = 0.8
"""Radius of the drawn balls over the spacing of the particles."""
FADE = 0.15
"""Of the way to its new size that a drawn ball goes in a frame."""
SURFACE_FRAMES = 2
"""So often the surface is found anew."""
CRITERIA = ("gaze", "surface", "gaze and surface", "none")

CRITERION = Parameter(
    "criterion", "Fine by", "", 0.0, 3.0, 0.0, "What decides which particles are small; both: gaze and surface.",
    choices=("gaze", "surface", "both", "none"),
)  # fmt: skip
SOURCE = Parameter(
    "gaze_source", "Gaze", "", 0.0, 1.0, 0.0, "The viewer's: pointer or webcam. Or a model of how people look.",
    choices=("viewer", "model"),
)  # fmt: skip
BALLS = Parameter(
    "balls", "Draw", "", 0.0, 1.0, 0.0, "Red balls are large, blue ones small.", choices=("water", "sizes")
)
CUT = Parameter("cut", "Cut open", "", 0.0, 1.0, 0.0, "The half towards the viewer is left out.", choices=("no", "yes"))
DISC = Parameter("disc", "Gaze disc", "", 0.0, 1.0, 1.0, "Shows where water is fine.", choices=("hidden", "shown"))

LARGE = Measure("large", "Large particles", "", "Not split.", digits=0)
SMALL = Measure("small", "Small particles", "", "Split at least once.", digits=0)


@wp.kernel
def fade(
    first: int,
    # params
    share: float,
    # in
    count: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
    # out
    carried_out: wp.array(dtype=wp.vec4),
):
    """Drawn sizes go on towards what they are."""
    s = first + wp.tid()
    if s < count[0]:
        c = carried_out[s]
        carried_out[s] = wp.vec4(c[0], c[1], c[2], c[3] + share * (float(level[s]) - c[3]))


@dataclass(eq=False)
class Refined:
    """A fluid of several sizes, as a scenario has made it."""

    fluid: Fluid
    fine: adaptive.Adaptive
    steps: int
    """Of the fluid, in a frame."""
    camera: Camera
    """As the world begins."""
    middle: float
    """y of the plane at which the picture is cut open [m]."""
    before: Callable[[float], None] = lambda time: None
    """Called before each frame with the time [s]: a wall that moves."""


def adapting(refined: Refined, seed: int) -> System[Refined]:
    return _Adapting(refined, seed).system()


class _Adapting:
    def __init__(self, refined: Refined, seed: int) -> None:
        self._refined, self._fluid, self._fine = refined, refined.fluid, refined.fine
        self._device, self._capacity = self._fluid.device, self._fluid.capacity
        self._values = {one.name: one.default for one in (CRITERION, SOURCE, BALLS, CUT, DISC)}
        self._table = gaze_table(refined.camera)
        self._row = self._table.rows[0]
        self._news = False
        self._attention = Attention()
        self._time = np.zeros(1)
        self._seed = seed
        self._model = ScanPath(seed)
        work = water.work(self._fluid)
        self._step = self._device.record(lambda stage: water.step(stage, self._fluid), work=work)
        self._changes: dict[str, Program] = {
            name: self._device.record(lambda stage, c=name: adaptive.step(stage, self._fine, c), work=work)
            for name in get_args(adaptive.Criterion)
        }
        self._fade = self._device.record(self._record_fade, work=self._capacity)
        self._drawn = np.zeros((self._capacity, 4), dtype=np.float32)
        self._ring = np.zeros((1, 4), dtype=np.float32)
        self._counts = {"water": 0, "sizes": 0, "gaze": 0}
        self._sizes = np.zeros(len(self._fluid.params.radii), dtype=np.int64)
        self._balls = blending.Balls(self._capacity, blending.TOGETHER * self._fluid.params.spacing)
        self._redraw()

    def system(self) -> System[Refined]:
        radius = DRAWN * self._fluid.params.spacing
        liquid = Particles("water", "water", radius, self._capacity, "volume", volume=full_volume(self._fluid))
        sized = Particles("sizes", "water", radius, self._capacity, "size")
        ring = Overlay("gaze", "ring", 1)
        own = (lambda: water.save(self._fluid), lambda saved: water.load(self._fluid, saved))
        balls = self._balls
        drawn = {"balls": balls.count} | {
            f"ball_{one}": getattr(balls, one) for one in ("tag", "place", "flow", "part")
        }
        kept = Kept({"seen": self._attention.seen, "time": self._time, **drawn}, self._loaded, own)
        return System(
            name="water",
            frame=self.frame,
            save=kept.save,
            load=kept.load,
            shows=[
                Show(liquid, {"water": self._drawn}, lambda: {"water": self._counts["water"]}),
                Show(sized, {"sizes": self._drawn}, lambda: {"sizes": self._counts["sizes"]}),
                Show(ring, {"gaze": self._ring}, lambda: {"gaze": self._counts["gaze"]}),
            ],
            measures=lambda: [(LARGE, float(self._sizes[0])), (SMALL, float(self._sizes[1:].sum()))],
            parameters=[LiveParameter(one, self._setter(one.name)) for one in (CRITERION, SOURCE, BALLS, CUT, DISC)],
            tables=[LiveTable(self._table, self._look)],
            holds=self._refined,
        )

    def _setter(self, name: str) -> Callable[[float], None]:
        return lambda value: self._values.__setitem__(name, value)

    def _look(self, rows: Rows) -> None:
        self._row, self._news = rows[0], True

    def frame(self, now: Moment) -> None:
        time = float(self._time[0])
        # By the water's own clock: ticks go on over a reset, and the same seed must give the same world.
        place = self._gaze(time)
        self._refined.before(time)
        self._step.run(self._refined.steps)
        self._device.synchronize()
        tags, x = self._particles()
        flow = blending.mean_flow(x, self._fluid.velocity.numpy()[: len(x)], blending.CELL * self._fluid.params.spacing)
        blending.approach(self._balls, tags, x, flow, FRAME)
        criterion = CRITERIA[int(self._values["criterion"])]
        if place is None and criterion != "none":
            criterion = "surface"
        # The surface costs more to find than the gaze, and moves less in a frame.
        if criterion == "gaze" or (criterion != "none" and round(time / FRAME) % SURFACE_FRAMES == 0):
            self._change(criterion, flow)
        self._fade.run()
        self._time[0] = time + FRAME
        self._redraw()
        water.check(self._fluid, now.tick)

    def _change(self, criterion: str, flow: np.ndarray) -> None:
        """Particles split and merge; what is drawn stays where it is."""
        tags, x = self._particles()
        before = tags.copy(), x.copy(), flow
        self._changes[criterion].run()
        self._device.synchronize()
        change = adaptive.last_change(self._fine, len(before[0]))
        if change is not None:
            children = self._fine.merging.children
            blending.follow_change(self._balls, before, self._particles(), blending.Change(*change), children)

    def _particles(self) -> tuple[np.ndarray, np.ndarray]:
        """Tags and places [m]."""
        f = self._fluid
        count = int(f.count.numpy()[0])
        return f.tag.numpy()[:count], f.position.numpy()[:count]

    def _gaze(self, time: float) -> tuple[float, float] | None:
        """Where somebody looks, told to the fluid; None once the gaze is lost."""
        row, model = self._row, self._values["gaze_source"] > 0.0
        sample: Sample | None = None
        if model:
            sample = self._model.sample(time)
        elif self._news and row[2] > 0.0:
            sample = Sample(row[0], row[1])
        self._news = False
        self._attention.update(time, sample)
        place = self._attention.place(time)
        self._counts["gaze"] = int(place is not None and self._values["disc"] > 0.0)
        if place is None:
            return None
        adaptive.look(self._fine, camera_of(row), row[13], place)
        self._ring[0] = (*(place if model else (row[14], row[15])), adaptive.disc_radius(row[13]), 1.0)
        return place

    def _loaded(self) -> None:
        """Time may have gone back, which a path cannot."""
        self._model = ScanPath(self._seed)
        self._redraw()

    def _record_fade(self, stage: Stage) -> None:
        f = self._fluid
        stage.launch(fade, self._capacity, [FADE, f.count, f.extra["level"], f.extra["carried"]])

    def _redraw(self) -> None:
        self._device.synchronize()
        f = self._fluid
        tags, at = self._particles()
        level = f.extra["level"].numpy()[: len(tags)]
        self._sizes[:] = np.bincount(level, minlength=len(self._sizes))
        whose, place, part = blending.drawn(self._balls, tags, at)
        if self._values["cut"] > 0.0:
            shown = np.flatnonzero(place[:, 1] >= self._refined.middle)
            whose, place, part = whose[shown], place[shown], part[shown]
        balls = self._values["balls"] > 0.0
        if balls:
            # A shade of 1 is the smallest size.
            size = f.extra["carried"].numpy()[whose, 3]
            shade = np.clip(size / max(len(self._sizes) - 1, 1), 0.0, 1.0)
        else:
            shade = part * (float(self._fine.merging.children) ** -level[whose])
        self._drawn[: len(place), :3], self._drawn[: len(place), 3] = place, shade
        self._counts["water"], self._counts["sizes"] = (0, len(place)) if balls else (len(place), 0)


def full_volume(fluid: Fluid) -> float:
    """Of the liquid in a particle of the largest size [m³]."""
    return fluid.params.mass / fluid.params.rest_density


def seeded_looks(seed: int, camera: Camera, aspect: float = 16.0 / 9.0) -> Callable[[Any, int], list[SetTable]]:
    """A script for runs without a window: the model looks, once a frame."""
    path = ScanPath(seed, aspect)

    def script(world: Any, tick: int) -> list[SetTable]:
        if tick % TICKS_PER_FRAME:
            return []
        seen = path.sample(tick * TICK)
        return [gaze_input(camera, aspect, seen.x, seen.y)]

    return script
