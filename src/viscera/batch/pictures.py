"""What each world of a batch looks like: colour, depth and what each pixel shows, in one recorded program."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.batch import drawing
from viscera.batch.batch import Batch
from viscera.device import Stage
from viscera.errors import InputError
from viscera.instruments.bars import MOST_BARS
from viscera.render import make as make_renderer
from viscera.render.light import STEEL_FINISH
from viscera.render.shading import BarLook, BarSet
from viscera.view import Camera

MOST_PIXELS = 1 << 20
"""Of one picture."""


class Pictures:
    """Made by `batch.pictures`. Arrays are on the device and overwritten by the next `draw`."""

    def __init__(self, worlds: Batch, width: int, height: int, camera: Camera | None) -> None:
        if not (width >= 1 and height >= 1 and width * height <= MOST_PIXELS):
            raise InputError(f"pictures of {width} × {height} are not possible.", f"At most {MOST_PIXELS} pixels.")
        self._worlds = worlds
        self.width, self.height = width, height
        world, device, count = worlds.template, worlds.device, worlds.count
        self._renderer = make_renderer(world.scene(), device=device, width=width, height=height)
        world.write_arrays(self._renderer.arrays)
        self._renderer.render(world.frame(), camera)  # puts what all pictures share on the device
        self._shared = self._renderer.shared()
        self._organ = world.contents.organs[0]
        self._bars = len(worlds.tools) * MOST_BARS
        self.parts = self._renderer.parts
        """Names of what `part` numbers, from 1; 0 is nothing."""

        def rows(size: int, dtype: Any) -> wp.array[Any]:
            return wp.zeros((count, size), dtype=dtype, device=device.warp)

        made = drawing.Drawn()
        vertices, pixels = len(self._organ.rest), width * height
        made.vertex, made.seen, made.normal = (rows(vertices, wp.vec3) for _ in range(3))
        made.shade, made.there = rows(vertices, wp.vec2), rows(self._bars, wp.int32)
        made.start, made.end = rows(self._bars, wp.vec3), rows(self._bars, wp.vec3)
        made.tip, made.tail = rows(self._bars, wp.vec4), rows(self._bars, wp.vec4)
        made.key, made.colour = rows(pixels, wp.int64), rows(pixels, wp.vec3ub)
        made.depth, made.part = rows(pixels, wp.float32), rows(pixels, wp.int32)
        self._drawn, self._shown = made, self._with_bars()
        self._program = device.record(self._record)

    @property
    def colour(self) -> wp.array[Any]:
        """As a screen has it, shape (worlds, height·width) of three bytes; the first row is the top."""
        return self._drawn.colour

    @property
    def depth(self) -> wp.array[Any]:
        """Along the camera's axis [m], infinite where nothing is, float32, shape (worlds, height·width)."""
        return self._drawn.depth

    @property
    def part(self) -> wp.array[Any]:
        """What is seen: 0 nothing, k the k-th of `parts`; int32, shape (worlds, height·width)."""
        return self._drawn.part

    @property
    def vertices(self) -> wp.array[Any]:
        """Of the organ's surface as it was drawn [m], shape (worlds, vertices) of three floats: a point cloud."""
        return self._drawn.vertex

    def draw(self) -> None:
        """Every world as it is now. On cuda it returns before it is done; reading an array waits."""
        self._program.run()

    def _with_bars(self) -> Any:
        """What all worlds' pictures share, with room for the bars of tools."""
        shown, worlds, device = self._shared.shown, self._worlds, self._worlds.device
        tools = worlds.template.contents.tools
        names = [tool.instrument.name for tool in tools]
        looks, radius = [], []
        for name in worlds.tools:
            tool = tools[names.index(name)]
            for bar in range(MOST_BARS):
                look = BarLook()
                look.finish, look.part = STEEL_FINISH, 1 + self.parts.index(name)
                looks.append(look)
                radius.append(float(tool.bars.radii[bar]) if bar < tool.bars.count else 0.0)
        bars = BarSet()
        bars.start, bars.end = (wp.zeros(1, dtype=wp.vec3, device=device.warp) for _ in range(2))
        bars.radius = wp.array(np.array(radius), dtype=wp.float32, device=device.warp)
        bars.look = wp.array(looks, dtype=BarLook, device=device.warp)
        shown.bars, shown.ball_first = bars, shown.bar_first + self._bars
        return shown

    def _record(self, stage: Stage) -> None:
        shared, drawn, worlds, organ = self._shared, self._drawn, self._worlds, self._organ
        tissue, count = worlds.tissue, worlds.count
        vertices, pixels, each = len(organ.rest), drawn.key.shape[1], shared.triangles + self._bars
        surface = [tissue.layout.slots, tissue.substeps, organ.rest, organ.places, organ.weights]
        stage.launch(drawing.follow_worlds, count * vertices, [*surface, worlds.rows, drawn])
        stage.launch(
            drawing.follow_tools, count * self._bars, [worlds.kit, MOST_BARS, shared.eye, worlds.hand_rows, drawn]
        )
        around = [shared.corner, shared.begin, shared.beside]
        stage.launch(drawing.see_worlds, count * vertices, [*around, shared.eye, drawn])
        stage.launch(drawing.clear_worlds, count * pixels, [drawn])
        # A block is a world: the least key of a pixel is found by one core.
        args = [shared.triangles, shared.bar_first, shared.corner, shared.eye, drawn]
        stage.launch(drawing.draw_worlds, count * each, args, block=each)
        stage.launch(
            drawing.shade_worlds, count * pixels, [self._shown, shared.background, shared.eye, shared.around, drawn]
        )  # fmt: skip


def pictures(worlds: Batch, *, width: int = 128, height: int = 128, camera: Camera | None = None) -> Pictures:
    """What draws every world of a batch, from the scenario's own camera unless another is given."""
    return Pictures(worlds, width, height, camera)
