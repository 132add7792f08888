"""The hands of `pattern`'s script: a grasper that holds the middle, scissors that go around the circle bite by bite,
and then snip what still holds the disc.

Bites do not always meet: between two that run beside each other a bridge is left. As somebody would see it, the way
over springs that are whole from the middle to the frame leads over a bridge; it is snipped where that way crosses the
line, across it, until there is no way any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Input, ToolInput, Vector3
from viscera.scenarios.pattern.drill import RADIUS
from viscera.tissue.cutting import cut_springs
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.tissue.tissue import Tissue

SCISSORS, GRASPER = range(2)
"""What keys 1 and 2 choose."""
BITES, BITE_TICKS = 40, 160
"""With which the scissors go around the circle, and how long one takes."""
SNIPS, SNIP_TICKS = 12, 480
"""After that, at most, and how long one takes: up, over to the bridge, and down through it while they close."""
RISEN, THERE, CLOSED = 80, 304, 424
"""Ticks of a snip until they are up, over the bridge, and closed below it."""
START = 904
"""When the scissors begin; a multiple of 8."""
UNDER, OVER = 0.006, 0.012
"""How far below the sheet their tip goes in a bite, and above it before [m]."""
DEEP, HIGH = 0.010, 0.020
"""The same of a snip [m]."""
LIFT = 0.005
"""Of the middle [m]: it draws the gauze tight at the circle."""
AGAIN = 0.001
"""A snip that did not help is tried again so far along the bridge, to either side in turn [m]."""


class Surgeon:
    """`height` is that of the sheet [m], `stretch` how far it is stretched in its frame."""

    def __init__(self, tissue: Tissue, height: float, stretch: float) -> None:
        self._tissue, self._height, self._radius = tissue, height, RADIUS * (1.0 + stretch)
        nodes = tissue.params.nodes
        index = NodeIndex(nodes)
        self._other = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
        self._middle = int(np.argmin(np.linalg.norm(tissue.rest_positions()[:, :2], axis=1)))
        self._aim: tuple[Vector3, float] | None = None
        """Place and direction of the jaws; None where nothing is left to do."""
        self._from = self._aim

    def script(self, tick: int) -> Iterable[Input]:
        """Every 8 ms."""
        if tick % 8:
            return []
        if tick < START:
            return [self._hold(tick)]
        bite, share = divmod(tick - START, BITE_TICKS)
        if bite < BITES:
            return [self._bite(bite, share)]
        return [self._snip(*divmod(tick - START - BITES * BITE_TICKS, SNIP_TICKS))]

    def _bite(self, bite: int, share: int) -> ToolInput:
        """Down onto the line with open jaws, which close there. Where gauze is stretched, its line is farther out."""
        angle = 2.0 * math.pi * bite / BITES
        height = self._height - UNDER if share > 40 else self._height + OVER
        place = (self._radius * math.cos(angle), self._radius * math.sin(angle), height)
        self._aim = place, angle + 0.5 * math.pi
        return _scissors(place, self._aim[1], 1.0 if 90 < share < 150 else 0.0)

    def _snip(self, snip: int, share: int) -> ToolInput:
        if share in (0, THERE):
            # Seen again from above, as what hangs moves when it is let go.
            self._from, self._aim = self._aim, self._on_bridge(snip)
        if self._aim is None:
            return ToolInput(SCISSORS, (0.0, 0.0, self._height + 0.05), active=False)
        (x, y, z), angle = self._aim
        if share < RISEN and self._from is not None:
            (a, b, _), turned = self._from
            return _scissors((a, b, self._height + HIGH), turned, 0.0)
        down = min(max((share - THERE) / (CLOSED - THERE), 0.0), 1.0)
        return _scissors((x, y, z + HIGH - (HIGH + DEEP) * down), angle, down)

    def _hold(self, tick: int) -> ToolInput:
        """Takes the middle, lifts it and stays there."""
        lift = LIFT * min(max((tick - 600) / 200.0, 0.0), 1.0)
        down = 0.001 if tick < 500 else 0.0
        return ToolInput(GRASPER, (0.0, 0.0, self._height - down + lift), grip=1.0 if tick > 400 else 0.0)

    def _on_bridge(self, snip: int) -> tuple[Vector3, float] | None:
        """Across the way that still holds; None where there is none, or after too many."""
        way = self._way_out()
        if way is None or snip >= SNIPS:
            return None
        tissue = self._tissue
        rest = tissue.rest_positions()[way]
        place = rest + tissue.displacement()[way]
        at = int(np.argmin(np.abs(np.linalg.norm(rest[:, :2], axis=1) - RADIUS)))
        along = place[min(at + 1, len(way) - 1)] - place[max(at - 1, 0)]
        along /= max(float(np.linalg.norm(along)), 1e-9)
        x, y, z = (place[at] + AGAIN * ((snip + 1) % 3 - 1) * along).tolist()
        return (x, y, z), math.atan2(along[1], along[0]) + 0.5 * math.pi

    def _way_out(self) -> NDArray[np.int64] | None:
        """Masses on the shortest way over whole springs from the middle to the frame; None where there is none."""
        row, low = np.nonzero((self._other >= 0) & ~cut_springs(self._tissue))
        high = self._other[row, low]
        a, b = np.concatenate([low, high]), np.concatenate([high, low])
        before = np.full(self._other.shape[1], -1, dtype=np.int64)
        before[self._middle] = self._middle
        frame = self._tissue.params.anchored
        while not (before[frame] >= 0).any():
            fresh = (before[a] >= 0) & (before[b] < 0)
            if not fresh.any():
                return None
            before[b[fresh]] = a[fresh]
        way = [int(np.flatnonzero(frame & (before >= 0))[0])]
        while way[-1] != self._middle:
            way.append(int(before[way[-1]]))
        return np.array(way[::-1])


def _scissors(place: Vector3, angle: float, closed: float) -> ToolInput:
    """Jaws that open along this direction over the table."""
    return ToolInput(SCISSORS, place, (0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)), grip=closed)
