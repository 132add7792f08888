"""The drill of an incision: how much of the line is open, what was cut beside it, and how deep."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.skin import Skin, gutter
from viscera.tissue.cutting import need_cutting, unpack_crossings
from viscera.units import MILLI, SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Moment, System

DEPTH = 0.005
"""To which the line is to be opened [m]."""
LINE_HALF_WIDTH = 0.5e-3
"""Of the ink [m]."""
ASTRAY_FROM = 3.0e-3
"""What is cut farther from the line than this is astray [m]."""
SPAN = 0.33
"""The line goes so far to either side of the middle, as a share of the length."""

OPENED = Measure("line_opened", "Line opened", "%", "Share of the line that is open to 5 mm.", digits=0)
ASTRAY = Measure(
    "astray", "Astray", "mm²", "Cut farther than 3 mm from the line, or beyond its ends.", digits=0, grows=True
)
DEEPEST = Measure("deepest", "Deepest", "mm", "Of the cut below the surface.", digits=1, grows=True)


def line_ends(seed: int, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the line over the table, shape (2, 2) [m]; the seed tilts it."""
    rng = np.random.default_rng(seed)
    x = SPAN * (high[0] - low[0])
    y = rng.uniform(-0.08, 0.08, 2) * (high[1] - low[1])
    return np.array([[-x, y[0]], [x, y[1]]])


def line_at(ends: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    return (1.0 - share) * ends[0] + share * ends[1]


def off_line(points: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of points over the table, shape (n, 2), from the line [m]."""
    way = ends[1] - ends[0]
    along = np.clip((points - ends[0]) @ way / (way @ way), 0.0, 1.0)
    return np.linalg.norm(points - ends[0] - along[:, None] * way, axis=1)


def marked(skin: Skin, ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """The line in ink on the upper side, shape (height, width, 4)."""
    texels = skin.texels.numpy()
    line = np.zeros(skin.width * skin.height, dtype=np.bool_)
    near = off_line(skin.position.numpy()[texels][:, :2].astype(np.float64), ends) < LINE_HALF_WIDTH
    line[texels[near & skin.faces_up()[texels]]] = True
    outside, repeated = gutter(skin, 1)
    line[outside] = line[repeated]
    picture = np.zeros((skin.height, skin.width, 4))
    picture.reshape(-1, 4)[line, 3] = 1.0
    return picture


class Drill:
    """Counts links along y, which the line crosses: by column along x and layer in depth."""

    def __init__(self, organ: Organ, ends: NDArray[np.float64]) -> None:
        tissue = organ.tissue
        assert organ.shadow.cuts is not None
        self._cuts, self._ends = organ.shadow.cuts, ends
        self._area_of = need_cutting(tissue).area_of[:, tissue.layout.slot_of_node]
        self._rest = tissue.rest_positions()
        self._spacing, self._top = tissue.params.spacing, float(self._rest[:, 2].max())
        inside = (self._rest[:, 0] >= ends[:, 0].min()) & (self._rest[:, 0] <= ends[:, 0].max())
        self._wanted = inside & (self._rest[:, 2] >= self._top - DEPTH)
        columns = np.unique(np.rint(self._rest[self._wanted][:, [0, 2]] / self._spacing), axis=0)
        self._whole = max(1, len(columns))
        self._seen = -1
        self.values = np.zeros(3)

    def frame(self, now: Moment) -> None:
        if self._cuts.changes != self._seen:
            self._seen = self._cuts.changes
            self.count()

    def count(self) -> None:
        links = self._cuts.links()[1]
        cut = links != 0
        share, _ = unpack_crossings(links[cut])
        place = self._rest[cut].copy()
        place[:, 1] += share * self._spacing
        near = off_line(place[:, :2], self._ends) <= ASTRAY_FROM
        open_ = np.unique(np.rint(self._rest[cut][self._wanted[cut] & near][:, [0, 2]] / self._spacing), axis=0)
        springs = self._cuts.springs()
        off = off_line(self._rest[:, :2], self._ends) > ASTRAY_FROM + self._spacing
        # A spring belongs to the mass that it starts from.
        astray = float(self._area_of[springs & off].sum())
        deepest = self._top - float(self._rest[springs.any(axis=0), 2].min()) if springs.any() else 0.0
        self.values[:] = 100.0 * len(open_) / self._whole, astray / SQUARE_MILLIMETRE, deepest / MILLI

    def measures(self) -> list[tuple[Measure, float]]:
        return [(one, float(value)) for one, value in zip((OPENED, ASTRAY, DEEPEST), self.values, strict=True)]


def incision_drill(organ: Organ, ends: NDArray[np.float64]) -> System:
    """After `cutting` in the order of a frame."""
    drill = Drill(organ, ends)
    return System(
        name="drill", frame=drill.frame, load=lambda saved: drill.count(), measures=drill.measures, holds=drill
    )
