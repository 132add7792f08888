"""Reading a picture: something is hidden in the patient, and whoever sees it in an X-ray clicks there.

A mark finds what is hidden if it lies on it in that picture, else it is a miss. Marks are drawn into the pictures that
follow as rings: those that found something where it is, misses at the depth of the isocentre. The picture that files
keep has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.view import Column, Measure, Table
from viscera.world.system import Rows
from viscera.xray import CArm

MARKS = 32
"""That are seen; the next one takes the place of the oldest."""
TOLERANCE = 4.0e-3
"""A mark this far beside what is hidden still finds it [m]."""
RING = 9.0e-3
"""Radius of a ring around a mark, in the isocentre [m]."""
FOUND_COLOUR, MISS_COLOUR = (127, 230, 255), (255, 140, 90)

FOUND = Measure("found", "Polyps found", "", "Marked by a click in the X-ray.", digits=0)
MISSES = Measure("misses", "Misses", "", "Clicks where there is none.", digits=0, grows=True)

_ANYWHERE = tuple(Column(name, name, "", "number", 0.0, 1.0) for name in ("x", "y"))
TABLE = Table(
    "marks", "Marks", "Where somebody clicked in the picture.",
    (*_ANYWHERE, Column("number", "number", "", "number", 0.0, 1e9)), ((0.0, 0.0, 0.0),), source="picture",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Hidden:
    """What there is to find."""

    middle: NDArray[np.float64]
    """[m], (n, 3)"""
    radius: NDArray[np.float64]
    """[m], (n,)"""


class Reading:
    """What is hidden, and the marks so far."""

    def __init__(self, hidden: Hidden) -> None:
        self.hidden = hidden
        self.found = np.zeros(len(hidden.radius), dtype=np.bool_)
        self.marks = np.zeros((MARKS, 4))
        """Place of each [m], and 1 where it found something, −1 where not, 0 where there is none."""
        self.count = np.zeros(3)
        """Marks, misses, and the number of the last click."""

    def kept(self) -> dict[str, NDArray[np.generic]]:
        return {"found": self.found, "marks": self.marks, "marked": self.count}

    def clicked(self, rows: Rows, arm: CArm | None) -> bool:
        """A click in the picture of this C-arm (None: there is no picture yet); whether it is a new one."""
        x, y, number = rows[0]
        if number == self.count[2]:
            return False
        self.count[2] = number
        if arm is None:
            return False
        self._mark(np.array([x, y]) * arm.pixels, arm)
        return True

    def _mark(self, pixel: NDArray[np.float64], arm: CArm) -> None:
        scale = arm.magnification / arm.pitch  # pixels per metre in the isocentre
        away = np.linalg.norm(arm.project(self.hidden.middle) - pixel, axis=1) / scale - self.hidden.radius
        nearest = int(away.argmin()) if len(away) else -1
        place = int(self.count[0]) % MARKS
        self.count[0] += 1.0
        if nearest >= 0 and away[nearest] <= TOLERANCE:
            self.found[nearest] = True
            self.marks[place] = (*self.hidden.middle[nearest], 1.0)
            return
        self.count[1] += 1.0
        right, up, _ = arm.axes
        across, along = (pixel - 0.5 * arm.pixels) / scale
        self.marks[place] = (*(np.asarray(arm.isocentre) + across * right + along * up), -1.0)

    def draw(self, pixels: NDArray[np.uint8], arm: CArm) -> None:
        """A ring around each mark, into a picture (row 0 at the bottom)."""
        there = self.marks[self.marks[:, 3] != 0.0]
        if len(there) == 0:
            return
        radius = RING * arm.magnification / arm.pitch
        angle = np.linspace(0.0, 2.0 * np.pi, max(32, int(8.0 * radius)), endpoint=False)
        for (x, y), kind in zip(arm.project(there[:, :3]), there[:, 3], strict=True):
            for wide in (-0.5, 0.5):
                column = np.rint(x + (radius + wide) * np.cos(angle)).astype(int)
                row = np.rint(y + (radius + wide) * np.sin(angle)).astype(int)
                inside = (column >= 0) & (row >= 0) & (column < pixels.shape[1]) & (row < pixels.shape[0])
                pixels[row[inside], column[inside], :3] = FOUND_COLOUR if kind > 0.0 else MISS_COLOUR

    def measures(self) -> list[tuple[Measure, float]]:
        return [(FOUND, float(self.found.sum())), (MISSES, float(self.count[1]))]
