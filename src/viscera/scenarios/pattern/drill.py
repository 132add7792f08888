"""The drill of the pattern cut: how much of the printed circle is cut, and the area between the cut and the line.

The circle is looked at in sectors. In each, the links that were parted there say how far from the middle the cut runs,
by their median. Where it is farther from the line than 2 mm, the area between cut and line counts as off the line.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.skin import Skin, gutter
from viscera.tissue.cutting import unpack_crossings
from viscera.units import SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System

RADIUS = 0.018
"""Of the printed circle [m]; that of the FLS task has 25 mm."""
LINE_HALF_WIDTH = 0.5e-3
ALLOWED = 2.0e-3
"""How far from the line the cut may run [m]."""
SECTORS = 48
"""7.5° each: 2.4 mm along the line, a little more than a cell."""

CUT = Measure("circle_cut", "Circle cut", "%", "Share of the circle's sectors in which the gauze is cut.", digits=0)
OFF_LINE = Measure(
    "off_line",
    "Off the line",
    "mm²",
    "Area between cut and line where they are more than 2 mm apart, at its worst so far.",
    digits=0,
    grows=True,
)


def marked(skin: Skin) -> NDArray[np.float64]:
    """The circle in ink on the upper side, shape (height, width, 4)."""
    texels = skin.texels.numpy()
    line = np.zeros(skin.width * skin.height, dtype=np.bool_)
    place = skin.position.numpy()[texels][:, :2].astype(np.float64)
    near = np.abs(np.linalg.norm(place, axis=1) - RADIUS) < LINE_HALF_WIDTH
    line[texels[near & skin.faces_up()[texels]]] = True
    outside, repeated = gutter(skin, 1)
    line[outside] = line[repeated]
    picture = np.zeros((skin.height, skin.width, 4))
    picture.reshape(-1, 4)[line, 3] = 1.0
    return picture


def sector_of(places: NDArray[np.float64]) -> NDArray[np.int64]:
    """In which sector of the circle places over the table lie, counted from −x counterclockwise."""
    share = np.arctan2(places[:, 1], places[:, 0]) / (2.0 * np.pi) + 0.5
    return np.minimum(np.floor(share * SECTORS).astype(np.int64), SECTORS - 1)


def score(places: NDArray[np.float64]) -> tuple[float, float]:
    """Share of the sectors that are cut [%], and the area off the line [m²], for places over the table where links were
    parted, shape (n, 2) [m]."""
    if len(places) == 0:
        return 0.0, 0.0
    sector = sector_of(places)
    far = np.linalg.norm(places, axis=1)
    outer = np.array([np.median(far[sector == one]) for one in np.unique(sector)])
    between = 0.5 * np.abs(outer**2 - RADIUS**2) * (2.0 * np.pi / SECTORS)
    return 100.0 * len(outer) / SECTORS, float(between[np.abs(outer - RADIUS) > ALLOWED].sum())


class Drill:
    def __init__(self, organ: Organ) -> None:
        assert organ.shadow.cuts is not None
        self._cuts, tissue = organ.shadow.cuts, organ.tissue
        self._rest, self._spacing = tissue.rest_positions(), tissue.params.spacing
        self._seen = -1
        self.values = np.zeros(2)
        self.cut = np.zeros(SECTORS, dtype=np.bool_)
        """Which sectors of the circle are cut."""

    def frame(self, now: Moment) -> None:
        if self._cuts.changes != self._seen:
            self._seen = self._cuts.changes
            self.count()

    def count(self) -> None:
        places = []
        for axis, links in enumerate(self._cuts.links()[:2]):
            cut = links != 0
            share, _ = unpack_crossings(links[cut])
            place = self._rest[cut][:, :2].copy()
            place[:, axis] += share * self._spacing
            places.append(place)
        where = np.concatenate(places)
        share, area = score(where)
        self.cut[:] = False
        self.cut[sector_of(where)] = True
        # What is cut stays cut: a second cut on the line does not take the first one back.
        self.values[:] = share, max(float(self.values[1]), area / SQUARE_MILLIMETRE)

    def measures(self) -> list[tuple[Measure, float]]:
        return [(one, float(value)) for one, value in zip((CUT, OFF_LINE), self.values, strict=True)]


def pattern_drill(organ: Organ) -> System:
    """After `cutting` in the order of a frame."""
    drill = Drill(organ)
    kept = Kept({"values": drill.values})
    return System(name="drill", frame=drill.frame, save=kept.save, load=kept.load, measures=drill.measures, holds=drill)
