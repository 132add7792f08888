"""Where tips may be: a box around all there is to see and all homes, with some room. A tool does not leave it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Vector3

MARGIN = 0.1
"""Around what there is to see [m]."""


@dataclass(frozen=True)
class Room:
    low: Vector3
    """[m]"""
    high: Vector3
    """[m]"""

    def clamped(self, point: Vector3) -> Vector3:
        """The nearest point of the room."""
        x, y, z = (min(max(value, low), high) for value, low, high in zip(point, self.low, self.high, strict=True))
        return (x, y, z)

    def distance(self, point: Vector3) -> float:
        """Of a point from the room; 0 inside [m]."""
        return math.dist(point, self.clamped(point))

    def keep(self, tip: NDArray[np.float64]) -> None:
        """Brings a tip that has left back to the wall."""
        tip[:] = self.clamped((float(tip[0]), float(tip[1]), float(tip[2])))


def room_around(bounds: tuple[Vector3, Vector3], homes: Iterable[Vector3]) -> Room:
    """The room of a world that is seen in this box, with tools that wait there [m]."""
    points = np.array([*bounds, *homes])
    low, high = (points.min(axis=0) - MARGIN).tolist(), (points.max(axis=0) + MARGIN).tolist()
    return Room(tuple(low), tuple(high))
