"""A user's organ on the table: how it lies, and where on its upper side a hand can work.

Our own pads are made so that every place of their upper side will do. A user's organ may be a ring, a tube or a ball:
drawn lines, wounds and the hands of headless runs look for room on it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.voxels import inside_grid
from viscera.world.organ import load_organ, on_the_table

FLAT = 0.9
"""A body whose thinnest side is less than this share of its height does not stand upright by itself."""

COLUMNS = 120
"""Along the longest side, in the view from above."""
MARGIN = 0.004
"""A place is level where the surface goes on for so far to all sides [m], …"""
STEEPEST, ROUGHEST = 0.7, 1.5
"""… falling or rising by no more than this, 35°; a line may go over folds of up to 56°."""
PLANE = 6
"""Vertices through which the surface over a place is laid."""
THICK = 0.95
"""Share of the largest thickness that counts as thickest."""
LOOK = 0.9
"""How steeply the viewer looks down: height over distance, of the flattest camera that a scenario has."""
ANGLES = 12
"""Directions in which room for a line is looked for."""
STARTS = 60
"""Places from which it is."""

Place = NDArray[np.float64]
"""On the table, (x, y) [m]."""


def lay_down(path: Path) -> TriangleMesh:
    """The closed mesh of a file as it comes to lie on the table: its thinnest side up. Where that is y, as in most
    organs of a patient's scan (y to the back, z to the head), it lies on its back."""
    mesh = load_organ(path)
    thinnest = int(np.argmin(mesh.size))
    if mesh.size[thinnest] < FLAT * mesh.size[2]:
        x, y, z = mesh.vertices.T
        turned = (y, z, x) if thinnest == 0 else (x, z, -y)
        mesh = replace(mesh, vertices=np.stack(turned, axis=1))
    return on_the_table(mesh)


@dataclass(frozen=True, eq=False)
class Top:
    """What is seen of a mesh from above, in columns."""

    mesh: TriangleMesh
    origin: Place
    """Of column (0, 0)."""
    step: float
    """Between columns [m]."""
    height: NDArray[np.float64]
    """Of the upper side, about [m]; NaN beside the organ. Shape (columns along x, along y)."""
    thickness: NDArray[np.float64]
    """From there down to the first gap [m]."""

    @cached_property
    def visible(self) -> NDArray[np.bool_]:
        """Columns that the viewer sees, who looks down from the front (−y): nothing before them stands in the way."""
        rise = np.where(np.isnan(self.height), -np.inf, self.height) + LOOK * self.step * np.arange(
            self.height.shape[1]
        )
        return ~np.isnan(self.height) & (rise >= np.maximum.accumulate(rise, axis=1))

    @cached_property
    def level(self) -> NDArray[np.bool_]:
        """Columns around which there is room to work."""
        return self._no_steeper(STEEPEST)

    @cached_property
    def rough(self) -> NDArray[np.bool_]:
        """Columns over which a line can be drawn."""
        return self._no_steeper(ROUGHEST)

    def _no_steeper(self, most: float) -> NDArray[np.bool_]:
        off = max(1, round(MARGIN / self.step))
        padded = np.pad(self.height, off, constant_values=np.nan)
        found = self.visible.copy()
        for x, y in ((x, y) for x in (-off, 0, off) for y in (-off, 0, off)):
            beside = padded[off + x :, off + y :][: self.height.shape[0], : self.height.shape[1]]
            # A comparison with NaN is false: beside the organ nothing is level.
            found &= np.abs(beside - self.height) <= most * self.step * max(np.hypot(x, y), 1.0)
        return found if found.any() else self.visible

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """Of the level columns, shape (n, 2) [m]."""
        return self.origin + self.step * np.argwhere(self.level)

    @cached_property
    def triangles(self) -> NDArray[np.int64]:
        """Numbers of the triangles that are seen: they face up, and nothing of the organ lies over them."""
        centres = self.mesh.corners.mean(axis=1)
        column = np.rint((centres[:, :2] - self.origin) / self.step).astype(np.int64)
        i, j = np.clip(column, 0, np.array(self.height.shape) - 1).T
        # A centre between two columns may be higher or lower than either.
        seen = (self.mesh.face_vectors[:, 2] > 0.0) & (centres[:, 2] > self.height[i, j] - 2.0 * self.step)
        return np.flatnonzero(seen)

    @cached_property
    def vertices(self) -> NDArray[np.int32]:
        """Numbers of the vertices that are seen."""
        return np.unique(self.mesh.triangles[self.triangles])

    def nearest(self, place: Sequence[float] | Place, apart: float = 0.0) -> Place:
        """The level place nearest to this one that is `apart` from it at least, or the farthest there is [m]."""
        off = np.linalg.norm(self.places - np.asarray(place), axis=1)
        far = off >= apart
        return self.places[np.argmin(np.where(far, off, np.inf)) if far.any() else np.argmax(off)]

    def thickest(self) -> Place:
        """Where a hand presses: level, among the thickest places, and of those in the middle."""
        thick = self.thickness[self.level]
        good = self.places[thick >= THICK * thick.max()]
        return good[np.argmin(np.linalg.norm(good - good.mean(axis=0), axis=1))]

    def thickness_at(self, place: Place) -> float:
        """[m]"""
        i, j = np.rint((place - self.origin) / self.step).astype(np.int64)
        return float(self.thickness[i, j])

    def on_surface(self, place: Place) -> tuple[float, float, float]:
        """The middle of the seen triangle nearest to this place of the table [m]."""
        centres = self.mesh.corners[self.triangles].mean(axis=1)
        x, y, z = centres[np.argmin(np.linalg.norm(centres[:, :2] - place, axis=1))].tolist()
        return x, y, z

    def height_at(self, vertices: NDArray[np.float32], x: float, y: float) -> float:
        """Of the upper side over this place, of the mesh with its vertices moved: a plane through the nearest [m]."""
        seen = vertices[self.vertices].astype(np.float64)
        near = seen[np.argpartition(np.hypot(seen[:, 0] - x, seen[:, 1] - y), PLANE)[:PLANE]]
        plane = np.stack([np.ones(len(near)), near[:, 0] - x, near[:, 1] - y], axis=1)
        fitted = float(np.linalg.lstsq(plane, near[:, 2], rcond=None)[0][0])
        return min(max(fitted, float(near[:, 2].min())), float(near[:, 2].max()))

    @cached_property
    def longest_line(self) -> tuple[Place, Place]:
        """Two ends of a straight line over the organ, as long as one was found."""
        starts = self.places[:: max(1, len(self.places) // STARTS)]
        best = (starts[0], starts[0])
        for angle in np.arange(ANGLES) * np.pi / ANGLES:
            along = np.array([np.cos(angle), np.sin(angle)])
            for start in starts:
                ends = self._run(start, -along), self._run(start, along)
                if np.linalg.norm(ends[1] - ends[0]) > np.linalg.norm(best[1] - best[0]):
                    best = ends
        return best

    def _run(self, start: Place, along: Place) -> Place:
        """The last place with room for a line on the way from `start`."""
        shape = np.array(self.rough.shape)
        way = np.arange(int(np.hypot(*shape)) + 1)[:, None] * self.step * along
        column = np.rint((start + way - self.origin) / self.step).astype(np.int64)
        inside = np.all((column >= 0) & (column < shape), axis=1)
        i, j = np.clip(column, 0, shape - 1).T
        off = np.flatnonzero(~(inside & self.rough[i, j]))
        return start + way[(int(off[0]) if len(off) else len(way)) - 1]


def seen_from_above(mesh: TriangleMesh) -> Top:
    low, _ = mesh.bounds
    step = float(mesh.size.max()) / COLUMNS
    x, y, z = (int(count) for count in np.ceil(mesh.size / step) + 1)
    inside = inside_grid(mesh, low, step, (x, y, z))
    down = inside[:, :, ::-1]
    there = down.any(axis=2)
    first = down.argmax(axis=2)
    # The first gap below the upper side, or the bottom of the grid.
    gap = ~down & (np.arange(z) > first[:, :, None])
    last = np.where(gap.any(axis=2), gap.argmax(axis=2), z)
    height = np.where(there, low[2] + step * (z - 1 - first), np.nan)
    return Top(mesh, low[:2], step, height, np.where(there, step * (last - first), 0.0))
