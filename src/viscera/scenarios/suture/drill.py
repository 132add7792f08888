"""The drill of a suture: how far the slit gapes, how far from the marks the needle went, and what else was parted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.skin import Skin, gutter
from viscera.tissue.cutting import need_cutting
from viscera.tissue.sewing import need_sewing
from viscera.tissue.springs import NodeIndex
from viscera.tissue.thread_kernels import FREE
from viscera.units import MILLI, SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Moment, System
from viscera.world.systems.cuts import Cutting
from viscera.world.systems.sutures import Sutures

HALF_LENGTH = 0.010
"""Of the slit [m]."""
ASIDE = 0.7e-3
"""Of the slit from the middle of the skin [m]: between two layers of masses."""
MARK_ASIDE, MARK_RADIUS = 4.5e-3, 0.8e-3
"""How far the marks are from the slit, and how large [m]."""
MIDDLE_SHARE = 0.4
"""The gap is looked at over this share of the slit, around the marks."""

GAP = Measure("gap", "Gap", "mm", "Between the lips, at its widest near the marks.", digits=1)
OFF_TARGET = Measure(
    "off_target",
    "Off target",
    "mm",
    "How far from its mark the needle went in or out, the worse of both.",
    digits=1,
)
CUT_MORE = Measure(
    "cut_more", "Cut or torn", "mm²", "Skin that was parted besides the slit, one side of it.", digits=0, grows=True
)
NO_STITCH = 99.0
"""Off target while there is no stitch [mm]."""


def slit_ends(seed: int) -> NDArray[np.float64]:
    """Of the slit over the table, shape (2, 2) [m]; the seed tilts it."""
    tilt = np.random.default_rng(seed).uniform(-0.12, 0.12)
    return np.array([[ASIDE + tilt * y, y] for y in (-HALF_LENGTH, HALF_LENGTH)])


def mark_places(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Both marks over the table, at rest, shape (2, 2) [m]: left and right of the middle, across the slit."""
    way = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    across = np.array([way[1], -way[0]])
    middle = ends.mean(axis=0)
    return np.array([middle - MARK_ASIDE * across, middle + MARK_ASIDE * across])


def marked(skin: Skin, ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """The marks in ink on the upper side, shape (height, width, 4)."""
    texels = skin.texels.numpy()
    dot = np.zeros(skin.width * skin.height, dtype=np.bool_)
    places = skin.position.numpy()[texels][:, :2].astype(np.float64)
    far = np.linalg.norm(places[:, None] - mark_places(ends), axis=2).min(axis=1)
    dot[texels[(far < MARK_RADIUS) & skin.faces_up()[texels]]] = True
    outside, repeated = gutter(skin, 1)
    dot[outside] = dot[repeated]
    picture = np.zeros((skin.height, skin.width, 4))
    picture.reshape(-1, 4)[dot, 3] = 1.0
    return picture


class Drill:
    """Looks at the links across the slit in the uppermost layer."""

    def __init__(self, organ: Organ, cuts: Cutting, sutures: Sutures, ends: NDArray[np.float64]) -> None:
        tissue = organ.tissue
        self._organ, self._cuts, self._sutures, self._ends = organ, cuts, sutures, ends
        params, rest = tissue.params, tissue.rest_positions()
        middle = ends.mean(axis=0)
        top = rest[:, 2] > rest[:, 2].max() - 0.5 * params.spacing
        near = np.abs(rest[:, 1] - middle[1]) <= MIDDLE_SHARE * HALF_LENGTH + 1e-9
        slit = need_cutting(tissue).blades.cut.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node] != 0
        self._slit_area = float(need_cutting(tissue).area_of[:, tissue.layout.slot_of_node][slit].sum())
        self._left = np.flatnonzero(top & near & slit[0])
        self._right = NodeIndex(params.nodes).find(params.nodes[self._left] + np.array([1, 0, 0], dtype=np.int32))
        self._spacing, self._slots = params.spacing, tissue.layout.slot_of_node
        self.values = np.array([0.0, NO_STITCH, 0.0])
        self.frame(None)

    def frame(self, now: Moment | None) -> None:
        moved = self._organ.shadow.displacement.numpy().reshape(3, -1)[0]
        wider = moved[self._slots[self._right]] - moved[self._slots[self._left]]
        self.values[0] = max(0.0, float(wider.max(initial=0.0))) / MILLI
        self.values[1] = self._off()
        self.values[2] = max(0.0, float(self._cuts.numbers[1]) - self._slit_area) / SQUARE_MILLIMETRE

    def _off(self) -> float:
        """Of the best stitch: the worse of where it goes in and out [mm]."""
        seen, best = self._sutures, NO_STITCH
        kind, start = seen.kind, seen.start
        count = int(seen.counts[0])
        rest = need_sewing(self._organ.tissue).threads.rest.numpy() + np.asarray(self._organ.tissue.params.origin)
        marks = mark_places(self._ends)
        for first in np.unique(start[:count]).tolist():
            holes = [k for k in range(first, count) if start[k] == first and kind[k] != int(FREE)]
            if len(holes) < 2:
                continue
            ends = rest[[holes[0], holes[-1]], :2]
            ways = [np.linalg.norm(ends - order, axis=1).max() for order in (marks, marks[::-1])]
            best = min(best, float(min(ways)) / MILLI)
        return best

    def measures(self) -> list[tuple[Measure, float]]:
        return [(one, float(value)) for one, value in zip((GAP, OFF_TARGET, CUT_MORE), self.values, strict=True)]


def suture_drill(organ: Organ, cuts: Cutting, sutures: Sutures, ends: NDArray[np.float64]) -> System:
    """After `cutting` and `sewing` in the order of a frame."""
    drill = Drill(organ, cuts, sutures, ends)
    return System(
        name="drill", frame=drill.frame, load=lambda saved: drill.frame(None), measures=drill.measures, holds=drill
    )
