"""A flow in a box over an organ, as smoke and saline have it: its step in three frames, the organ and the tools that
stir it, its picture.

A step is 48 ms long: in the first frame the flow moves, in the second its pressure is found, in the third it carries
what is in it. So twenty times a second all of it is true, and no frame has more to do than a third. The organ's surface
and the tools' bars are where they are as a step begins, with the velocity that they have had since the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera import grid
from viscera.device import Stage
from viscera.errors import StateError
from viscera.geometry.distance import distance_field, sample
from viscera.grid import Grid, GridParams
from viscera.grid.bending import bend, find_shift, make_bending
from viscera.grid.shape import GridShape
from viscera.grid.solids import MOST_BARS
from viscera.inputs import Vector3
from viscera.instruments import Tool
from viscera.states import Arrays
from viscera.timing import FRAME
from viscera.view import Volume
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, Saved, Show

wp.set_module_options({"enable_backward": False})

PARTS = 3
"""Frames in which a step is done."""
STEP = PARTS * FRAME
"""[s]"""
FASTEST_BAR = 0.6
"""A bar that moves faster has jumped [m/s]."""
LOOK = 16
"""Steps between two looks whether all is finite and counted."""
CONFINED = "part 0, confined"
"""Program of the first part when whirls are confined."""
SHIFT = 0.05
"""An organ whose surface has moved by less counts as still [cells]."""
WIDTHS = (32, 256)
"""Least and most cells along x, in steps of 32: so that the box travels to the page."""


@wp.kernel
def show_units(
    first: int,
    # params
    shape: GridShape,
    per_unit: float,
    blood: int,
    # in
    amount: wp.array[wp.int32],
    # out
    picture_out: wp.array3d[wp.uint8],
    row_out: wp.array[wp.int64],
):
    """The box as the page has it, row by row, and the units in each row. `per_unit` is one unit's share of the densest
    that is drawn; `blood` is 1 where all of it is blood."""
    line = first + wp.tid()
    c = (1 + line // shape.ny) * shape.layer + (1 + line % shape.ny) * shape.row + 1
    total = wp.int64(0)
    for i in range(shape.nx):
        units = amount[c + i]
        total += wp.int64(units)
        picture_out[line, i, 0] = wp.uint8(wp.min(255.0 * per_unit * float(units) + 0.5, 255.0))
        picture_out[line, i, 1] = wp.uint8(255 * blood)
    row_out[line] = total


def cells_at(detail: float, stated: tuple[int, int, int]) -> tuple[int, int, int]:
    """`detail` times as many cells as stated, as nearly as the page allows: it wants a width, and a depth times a
    height, that are multiples of 32. So the box keeps its size, of more and smaller cells."""
    x, y, z = stated
    least, most = WIDTHS
    width = min(max(32 * round(x * detail ** (1.0 / 3.0) / 32), least), most)

    def nearest(count: int, step: int) -> int:
        return max(step, step * round(count * width / (x * step)))

    shapes = [(width, nearest(y, 8), nearest(z, 4)), (width, nearest(y, 4), nearest(z, 8))]
    return min(shapes, key=lambda cells: abs(cells[1] * x / (y * width) - 1.0) + abs(cells[2] * x / (z * width) - 1.0))


def box_over(organ: Organ, cells: tuple[int, int, int], room: float, above: float) -> tuple[Vector3, float]:
    """The lowest corner and the side of a cell [m] of a box with the organ in its middle, `room` times as long and as
    wide, of whose height the share `above` is over the organ."""
    low, high = organ.body.mesh.bounds
    size, middle = high - low, 0.5 * (low + high)
    spacing = room * float(max(size[0] / cells[0], size[1] / cells[1]))
    x, y = (float(middle[axis] - 0.5 * spacing * cells[axis]) for axis in range(2))
    return (x, y, float(high[2]) - (1.0 - above) * spacing * cells[2]), spacing


def organ_distance(organ: Organ, params: GridParams) -> NDArray[np.float64]:
    """Of the corners of cells from an organ at rest [m]."""
    places = grid.corners(params)
    field = distance_field(organ.body.mesh, params.spacing, device=None)
    return sample(field, places.reshape(-1, 3), "projected")[0].reshape(places.shape[:3])


class BoxedFlow:
    """`shown` is the conservative substance that is seen."""

    def __init__(
        self, organ: Organ, params: GridParams, tools: Sequence[Tool], shown: str, *, per_unit: float, blood: bool
    ) -> None:
        self._device = device = organ.need_skin().device
        self.flow: Grid = grid.make(params, organ_distance(organ, params), device=device)
        self._vertices = organ.vertices
        self.bending = make_bending(self.flow, organ.body.mesh)
        self._shift = device.port(1, wp.int32)
        self._moves = np.zeros(1, dtype=np.bool_)
        """Whether the organ has a velocity."""
        self._tools = len(tools)
        self.confines = False
        """Whether whirls are confined; only where `params.confinement` is above 0."""
        self._shown = (shown, per_unit, blood)
        rows = params.cells[1] * params.cells[2]
        self._rows = device.port(rows, wp.int64)
        self.picture = wp.zeros((rows, params.cells[0], 4), dtype=wp.uint8, device=device.warp)
        self._ends = np.zeros((len(tools), *tools[0].end.shape)) if tools else np.zeros((0, 1, 2, 3))
        self._inside = np.zeros(len(tools), dtype=np.bool_)
        self._clock = np.zeros(3, dtype=np.int64)
        """Part of a step that comes next, steps so far, and the frame in which the last one began."""

    def record(self) -> None:
        """When all that brings something is known (`Grid.brings`)."""
        work, record = grid.work(self.flow), self._device.record
        self._programs = {
            "follow": record(self._record_follow, work=work),
            "look": record(self._record_look, work=1),
            "take": record(lambda stage: self._record_take(stage, self._vertices), work=1),
            "stay": record(lambda stage: self._record_take(stage, self.bending.now), work=1),
            "show": record(self._record_show, work=work),
        }
        for part in range(PARTS):
            self._programs[f"part {part}"] = record(lambda stage, part=part: self._record_part(stage, part), work=work)
        if self.flow.params.confinement > 0.0:
            self._programs[CONFINED] = record(lambda stage: grid.step_part(stage, self.flow, 0), work=work)
        self.redraw()

    def _record_follow(self, stage: Stage) -> None:
        bend(stage, self.flow, self.bending)
        grid.follow(stage, self.flow)

    def _record_look(self, stage: Stage) -> None:
        """How far the organ's surface is from where it was when it was last taken."""
        now = self.bending.now
        args = [SHIFT * self.flow.params.spacing, self._vertices, now, self._shift.array]
        stage.clear(self._shift)
        stage.once(lambda: wp.launch(find_shift, dim=len(now), inputs=args, device=self._device.warp))
        stage.download(self._shift)

    def _record_take(self, stage: Stage, vertices: Any) -> None:
        """The surface is now there, and was where it was taken last."""
        now, before = self.bending.now, self.bending.before
        stage.once(lambda: wp.copy(before, now))
        stage.once(lambda: wp.copy(now, vertices, count=len(now)))

    def _record_part(self, stage: Stage, part: int) -> None:
        grid.step_part(stage, self.flow, part, confines=False)
        if part == PARTS - 1:
            self._record_show(stage)

    def _record_show(self, stage: Stage) -> None:
        name, per_unit, blood = self._shown
        args = [self.flow.levels[0].shape, per_unit, int(blood), self.flow.carried[name].amount]
        stage.launch(show_units, len(self._rows.host), [*args, self.picture, self._rows.array], block=16)
        stage.download(self._rows)

    def run(self, name: str) -> None:
        self._programs[name].run()
        self._device.synchronize()

    def redraw(self) -> None:
        """Brings solids and the picture up to the state."""
        self.run("follow")
        self.run("show")

    @property
    def begins(self) -> bool:
        """Whether the next frame begins a step."""
        return self.next_part == 0

    @property
    def next_part(self) -> int:
        """The part of a step that comes next."""
        return int(self._clock[0])

    @property
    def units(self) -> int:
        """Of what is shown, in the box, as of the last step."""
        return int(self._rows.host.sum())

    def frame(self, now: Moment, put_sources: Callable[[], None]) -> bool:
        """A third of a step; whether it was the last. `put_sources` is called before the first."""
        part = int(self._clock[0])
        if part == 0:
            self._stir(now)
            put_sources()
        self.run(CONFINED if part == 0 and self.confines else f"part {part}")
        self._clock[0] = (part + 1) % PARTS
        if part < PARTS - 1:
            return False
        self._clock[1] += 1
        if self._clock[1] % LOOK == 0:
            self.check(now.tick)
        return True

    def frame_without_flow(self, step: Callable[[], None]) -> None:
        """The same clock for something else that is shown in the box: `step` is called once in a step."""
        if self.begins:
            step()
            self.run("show")
        self._clock[0] = (int(self._clock[0]) + 1) % PARTS

    def check(self, tick: int) -> None:
        name = self._shown[0]
        grid.check(self.flow, tick)
        missing = grid.missing(self.flow, name)
        if missing:
            raise StateError(
                f"{name}: {missing} units are nowhere.", "Report this: it is kept exactly.", stage=name, tick=tick
            )

    def _stir(self, now: Moment) -> None:
        """Organ and tools as they are, and how fast they have moved since the last step."""
        if now.frame - int(self._clock[2]) > PARTS:
            # The flow has rested meanwhile: nobody knows how fast they are.
            self._inside[:] = False
            self.run("take")
            self.run("stay")
            self._moves[0] = True
        self._clock[2] = now.frame
        moved = self._take_surface()
        if self._take_bars(now) or moved:
            self.run("follow")

    def _take_surface(self) -> bool:
        """Whether it has moved, or has come to rest."""
        self.run("look")
        moves = bool(self._shift.host[0] > 0)
        if not moves and not self._moves[0]:
            return False
        self.run("take" if moves else "stay")
        self._moves[0] = moves
        return True

    def _take_bars(self, now: Moment) -> bool:
        """Whether any has moved."""
        ends, radii, speeds = [np.zeros((0, 2, 3))], [np.zeros(0)], [np.zeros((0, 2, 3))]
        for number, tool in enumerate(now.tools[: self._tools]):
            count = tool.bars.count
            if tool.active and count:
                speed = (tool.end[:count] - self._ends[number, :count]) / self.flow.params.dt
                follows = self._inside[number] and float(np.abs(speed).max()) < FASTEST_BAR
                ends.append(tool.end[:count])
                radii.append(tool.bars.radii)
                speeds.append(speed if follows else np.zeros_like(speed))
            self._ends[number], self._inside[number] = tool.end, tool.active
        before = (self.flow.bars.host.copy(), int(self.flow.bar_count.host[0]))
        bars = (np.concatenate(part)[:MOST_BARS] for part in (ends, radii, speeds))
        grid.set_bars(self.flow, *bars)
        return int(self.flow.bar_count.host[0]) != before[1] or not np.array_equal(self.flow.bars.host, before[0])

    def corner(self, *shares: float) -> tuple[float, float, float]:
        """The place in the box at these shares of its sides [m]."""
        p = self.flow.params
        x, y, z = (p.origin[axis] + share * p.spacing * p.cells[axis] for axis, share in enumerate(shares))
        return x, y, z

    def optical_depth(self, area: float) -> float:
        """Of what is shown, from above, as if it were even: `area` is what one unit hides [m²]."""
        p = self.flow.params
        return area * self.units / (p.spacing**2 * p.cells[0] * p.cells[1])

    def show(self, name: str, look: Any, densest: float) -> Show:
        p = self.flow.params
        volume = Volume(name, look, *p.cells, box=(p.origin, self.corner(1.0, 1.0, 1.0)), densest=densest)
        return Show(volume, {name: self.picture})

    def kept(self, more: dict[str, Any]) -> Kept:
        """State of the flow, of organ, tools and clock, what is seen of its last whole step, and more arrays."""
        arrays = {"ends": self._ends, "inside": self._inside, "clock": self._clock, "moves": self._moves}
        arrays |= {"rows": self._rows.host, "picture": self.picture}
        arrays |= {"surface": self.bending.now, "surface_before": self.bending.before}

        def save() -> Saved:
            return grid.save(self.flow)

        def load(saved: Arrays) -> None:
            grid.load(self.flow, saved)

        return Kept(arrays | more, lambda: self.run("follow"), (save, load))
