"""A surface whose triangles change: a blade opens a sheet of tissue along a drawn line.

    viscera run tests/scenarios/shown/cut.py

Each vertex of the line that the blade passes becomes two lips, which draw apart, and a bottom between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from sheet import BOUNDS, CAMERA, CELLS, SIZE, grid

from viscera.inputs import Input, ToolInput
from viscera.instruments import Instrument, Part, Pushes, kit
from viscera.scenarios import Scenario, Setting
from viscera.view import Measure, Surface, Texture
from viscera.world import Contents, Moment, Show, System, World
from viscera.world.system import Saved

FIRST, LAST = 8, 32
"""Columns of the line's ends: they are not cut through."""
WIDTH = 0.0032
"""Half of an open wound, in its middle [m]."""
DEPTH = 0.004
"""[m]"""
OPENING = 0.08
"""Share of the way that lips go in a frame."""
REACH = 0.004
"""From the blade's tip to a vertex that it cuts [m]."""
PIXELS = 128
"""Side of the picture with the drawn line."""

OPENED = Measure("opened", "Opened", "mm", "How long the cut is.", digits=0)

BLADE = Instrument(
    "scalpel",
    (Pushes(0.0015, offset=0.0015),),
    label="Scalpel",
    icon="scissors",
    action="cut",
    parts=(
        Part((0.0, 0.0, 0.0006), (0.0, 0.0, 0.014), 0.0006),
        Part((0.0, 0.0, 0.014), (0.0, 0.0, 0.29), 0.0025),
    ),
)


class Cut:
    """The sheet as it is now. Whatever is drawn of it follows from `cut` and `open`."""

    def __init__(self) -> None:
        self.rest, self.triangles = grid()
        columns, rows = CELLS[0] + 1, CELLS[1] + 1
        self.line = np.arange(FIRST, LAST + 1) + columns * (rows // 2)
        self.cut = np.zeros(len(self.line), dtype=np.int32)
        self.open = np.zeros(len(self.line))
        self.version = 1
        corners = self.rest[self.triangles]
        self.upper = corners[..., 1].mean(axis=1) > self.rest[self.line[0], 1]
        self.uv = (corners[..., :2] / np.array(SIZE) + 0.5).astype(np.float32)
        most = len(self.rest) + 2 * len(self.line)
        room = len(self.triangles) + 4 * len(self.line)
        self.surface = Surface(
            "sheet", "tissue", self.triangles, "sheet", most, rest=self.rest, uv=self.uv, triangle_capacity=room
        )
        self.counts = {"sheet": 0, "sheet/triangles": 0, "sheet/rest": 0, "sheet/uv": 0}
        self.arrays = {name: np.zeros(spec.shape, spec.kind) for name, spec in self.surface.arrays().items()}
        self.rebuild()
        self.draw()

    def frame(self, now: Moment) -> None:
        before = self.cut.copy()
        for tool in now.tools:
            if tool.pressed:
                near = np.linalg.norm(self.rest[self.line] - tool.tip, axis=1) < REACH
                self.cut[1:-1] |= near[1:-1]
        moved = self.cut * OPENING * (1.0 - self.open)
        self.open += moved
        if (self.cut != before).any():
            self.version += 1
            self.rebuild()
        if moved.any():
            self.draw()

    def rebuild(self) -> None:
        """The triangles, where the cut is: lips belong to one side each, and meet in the bottom."""
        opened = np.flatnonzero(self.cut)
        lip = np.full(len(self.rest), -1)
        lip[self.line[opened]] = len(self.rest) + np.arange(len(opened))
        bottom = np.full(len(self.rest), -1)
        bottom[self.line[opened]] = len(self.rest) + len(opened) + np.arange(len(opened))
        moved = lip[self.triangles] >= 0
        triangles = np.where(moved & self.upper[:, None], lip[self.triangles], self.triangles)
        walls = []
        for one, other in zip(self.line[:-1], self.line[1:], strict=True):
            if bottom[one] < 0 and bottom[other] < 0:
                continue
            for side in (False, True):
                walls += self._wall(one, other, lip, bottom, side)
        rest = np.concatenate([self.rest, self.rest[self.line[opened]], self.rest[self.line[opened]]])
        rest[len(self.rest) + len(opened) :, 2] -= DEPTH
        uv = np.concatenate([self.uv.reshape(-1, 6), np.zeros((len(walls), 6), np.float32)])
        self._put("sheet/triangles", np.concatenate([triangles, np.array(walls, np.int32).reshape(-1, 3)]))
        self._put("sheet/rest", rest)
        self._put("sheet/uv", uv)

    def _wall(
        self, one: int, other: int, lip: NDArray[np.int64], bottom: NDArray[np.int64], upper: bool
    ) -> list[tuple[int, int, int]]:
        """Between a lip and the bottom, from one vertex of the line to the next; at an end of the cut both are one."""

        def ends(vertex: int) -> tuple[int, int]:
            if bottom[vertex] < 0:
                return vertex, vertex
            return (int(lip[vertex]) if upper else vertex), int(bottom[vertex])

        (a, c), (b, d) = ends(one), ends(other)
        quad = [(a, d, b), (a, c, d)] if upper else [(a, b, d), (a, d, c)]
        return [(int(p), int(q), int(r)) for p, q, r in quad if len({p, q, r}) == 3]

    def draw(self) -> None:
        """Where the vertices are now: lips as far apart as they are open, most in the middle of the line."""
        opened = np.flatnonzero(self.cut)
        along = (opened / (len(self.line) - 1) - 0.5) * 2.0
        apart = (WIDTH * self.open[opened] * np.sqrt(1.0 - along**2)).astype(np.float32)
        at = self.rest[self.line[opened]]
        lower, upper, bottom = self.rest.copy(), at.copy(), at.copy()
        lower[self.line[opened], 1] -= apart
        upper[:, 1] += apart
        bottom[:, 2] -= DEPTH * self.open[opened].astype(np.float32)
        self._put("sheet", np.concatenate([lower, upper, bottom]))

    def _put(self, name: str, rows: NDArray[np.float32] | NDArray[np.int32]) -> None:
        self.counts[name] = len(rows)
        self.arrays[name][: len(rows)] = rows

    def save(self) -> Saved:
        return {"cut": self.cut.copy(), "open": self.open.copy(), "version": np.array([self.version])}

    def load(self, saved: Saved) -> None:
        self.cut[:], self.open[:] = saved["cut"], saved["open"]
        self.version = int(saved["version"][0])
        self.rebuild()
        self.draw()

    def measure(self) -> list[tuple[Measure, float]]:
        return [(OPENED, 1000.0 * float(self.cut.sum()) * SIZE[0] / CELLS[0])]


def drawn_line() -> tuple[Texture, Mapping[str, NDArray[np.uint8]]]:
    """A violet line on the sheet, where to cut."""
    texture = Texture("sheet.ink", "sheet", "ink", PIXELS, PIXELS)
    v, u = (np.mgrid[0:PIXELS, 0:PIXELS] + 0.5) / PIXELS
    inside = (u > FIRST / CELLS[0]) & (u < LAST / CELLS[0]) & (np.abs(v - 0.5) < 0.012)
    pixels = np.zeros((PIXELS, PIXELS, 4), dtype=np.uint8)
    pixels[inside, 3] = 230
    return texture, {texture.name: pixels}


def build(setting: Setting) -> Contents:
    cut = Cut()
    ink, pixels = drawn_line()
    place = CAMERA.target[0] - 0.03, 0.0, 0.05
    sheet = Show(cut.surface, cut.arrays, lambda: cut.counts, lambda: cut.version)
    system = System(
        name="cut", frame=cut.frame, save=cut.save, load=cut.load, measures=cut.measure,
        shows=[sheet, Show(ink, pixels)], holds=cut,
    )  # fmt: skip

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that draws the blade along the line at 3 cm/s."""
        if tick % 8:
            return []
        x = min(-0.03 + 0.00003 * tick, 0.03)
        return [ToolInput(0, (x, 0.0, 0.0005), grip=1.0 if x < 0.03 else 0.0)]

    return Contents(
        tools=kit.hand_out([BLADE], place, friction=0.05),
        systems=[system],
        camera=CAMERA,
        bounds=BOUNDS,
        script=script,
    )


SCENARIO = Scenario(
    name="cut",
    build=build,
    title="Cut",
    summary="Open a sheet of tissue along a drawn line.",
    instructions="Move the scalpel to an end of the violet line.\nHold the left button and draw it along the line.",
)
