"""What no tool can enter: tissue that holds fast, and the table under it.

Points of the surface that hang on anchors alone cannot give way, so tools are kept out of that tissue here. It is the
part of the organ within `REACH` of an anchor that does not move; as a distance, on a grid over the organ at rest,

    d(x) = max(distance to the nearest such anchor − REACH, signed distance to the surface).

Where most of the lowest masses of an organ are anchors, those that are drawn along too, it lies on a table, which goes
on to all sides. One that a frame holds at its edge, or that hangs between its ends, lies on none.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.distance import distance_field
from viscera.geometry.mesh import TriangleMesh
from viscera.tissue.lattice import Tissue

REACH = 0.75
"""Around an anchor, in spacings of the lattice: anchors side by side leave no gap."""
BAND = 3
"""Cells around an anchor in which its distance is kept; beyond that it is far."""
PLACES = np.linspace(0.0, 1.0, 5)[:, None]
STEEPEST = 2.0
"""More than any slope of what is interpolated between distances, √3 at most."""
WORKING = 0.05
"""Of each bar, so much from either end of its axis that comes near tissue is looked at, in five places [m]."""


class Floor:
    """Of one organ."""

    def __init__(self, mesh: TriangleMesh, tissue: Tissue) -> None:
        params = tissue.params
        fixed = params.anchored if params.driven is None else params.anchored & ~params.driven
        anchors = tissue.rest_positions()[fixed]
        low, _high = mesh.bounds
        self.table = float(low[2]) if lies_on_table(tissue) else -np.inf
        """Height of the table [m]."""
        self.top = max(self.table, float(anchors[:, 2].max()) + REACH * params.spacing) if len(anchors) else self.table
        """No tool above this is held back [m]."""
        self._spacing = params.spacing
        self._values: NDArray[np.float64] | None = None
        self._clear: dict[int, tuple[NDArray[np.float64], float]] = {}
        """Of each tool: where its bars were when they were last looked at [m], and how far they were from being held
        back [m]."""
        if len(anchors):
            field = distance_field(mesh, params.spacing, 2.0 * params.spacing, tissue.device)
            self._origin = field.origin
            far = _distance(anchors, field.origin, params.spacing, field.dims) - REACH * params.spacing
            self._values = np.maximum(far, field.values.numpy().astype(np.float64))
            self._most = np.array(self._values.shape) - 1

    def keep_out(
        self, tool: int, bars: NDArray[np.float64], radii: NDArray[np.float64], way: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The way that this tool may go which wants to go `way` [m], but for the table. Its bars, ends of their axes of
        shape (bars, 2, 3) [m], are outside as it starts."""
        if self._values is None or float(bars[:, :, 2].min()) + float(way[2]) - float(radii.max()) > self.top:
            return way
        there = bars + way
        before, room = self._clear.get(tool, (there, 0.0))
        if float(np.abs(there - before).max()) < room:
            return way
        axis = bars[:, 1] - bars[:, 0]
        length = np.linalg.norm(axis, axis=1, keepdims=True)
        part = axis * np.minimum(1.0, WORKING / np.maximum(length, 1e-9))
        points = (bars[:, None, 0] + PLACES * part[:, None]).reshape(-1, 3)
        radius = np.repeat(radii, len(PLACES))
        for attempt in range(2):
            clear, slope = self._clearance(points + way)
            short = radius - clear
            worst = int(np.argmax(short))
            if short[worst] <= 0.0:
                if attempt == 0:
                    self._clear[tool] = there, self._room(points + way, clear - radius)
                break
            way = way + short[worst] * slope[worst]
        return way

    def _room(self, points: NDArray[np.float64], clear: NDArray[np.float64]) -> float:
        """How far every coordinate of a bar's ends may change before a point of it can be held back [m]. Within the
        grid a distance changes by no more than `STEEPEST` times the way; from outside, the way into it comes first."""
        local = (points - self._origin) / self._spacing
        outside = np.maximum(np.maximum(-local, local - self._most), 0.0).max(axis=1) * self._spacing
        return float(np.where(np.isinf(clear), outside, clear / STEEPEST).min()) / np.sqrt(3.0)

    def grid(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float] | None:
        """Distance from what holds fast on a grid [m], where its first node is [m], and its spacing [m]; None where
        nothing does."""
        return None if self._values is None else (self._values, self._origin, self._spacing)

    def _clearance(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distance from what holds fast [m], and the direction away from it; far outside the grid."""
        if self._values is None:
            return np.full(len(points), np.inf), np.zeros_like(points)
        local = (points - self._origin) / self._spacing
        most = self._most
        outside = ((local < 0.0) | (local > most)).any(axis=1)
        cell = np.minimum(np.maximum(local, 0.0).astype(np.int64), most - 1)
        x, y, z = np.clip(local - cell, 0.0, 1.0).T
        i, j, k = cell.T
        # Values at the corners of each cell, of shape (points, x, y, z), and what is left of them axis by axis.
        value = self._values[
            (i[:, None] + _BITS[0]), (j[:, None] + _BITS[1]), (k[:, None] + _BITS[2])
        ].reshape(-1, 2, 2, 2)  # fmt: skip
        along_z = value[..., 0] + z[:, None, None] * (value[..., 1] - value[..., 0])
        along_y = along_z[..., 0] + y[:, None] * (along_z[..., 1] - along_z[..., 0])
        found = along_y[:, 0] + x * (along_y[:, 1] - along_y[:, 0])
        slope = np.empty_like(points)
        slope[:, 0] = along_y[:, 1] - along_y[:, 0]
        by_y = along_z[..., 1] - along_z[..., 0]
        slope[:, 1] = by_y[:, 0] + x * (by_y[:, 1] - by_y[:, 0])
        by_z = value[..., 1] - value[..., 0]
        by_z = by_z[..., 0] + y[:, None] * (by_z[..., 1] - by_z[..., 0])
        slope[:, 2] = by_z[:, 0] + x * (by_z[:, 1] - by_z[:, 0])
        slope /= np.maximum(np.sqrt((slope * slope).sum(axis=1, keepdims=True)), 1e-12)
        return np.where(outside, np.inf, found), slope


def lies_on_table(tissue: Tissue) -> bool:
    """Whether most masses of the lattice's lowest layer are anchors."""
    layer = tissue.params.nodes[:, 2]
    return bool(2 * tissue.params.anchored[layer == layer.min()].sum() > (layer == layer.min()).sum())


_BITS = np.array(list(itertools.product((0, 1), repeat=3))).T
"""Corners of a cell: x, y and z of each."""


def _distance(
    anchors: NDArray[np.float64], origin: NDArray[np.float64], spacing: float, dims: tuple[int, int, int]
) -> NDArray[np.float64]:
    """From every node of a grid to the nearest anchor, as far as `BAND` cells, and that beyond [m]."""
    found = np.full(dims, BAND * spacing)
    local = (anchors - origin) / spacing
    base = np.round(local).astype(np.int64)
    for step in itertools.product(range(-BAND, BAND + 1), repeat=3):
        node = base + np.array(step)
        there = ((node >= 0) & (node < dims)).all(axis=1)
        away = spacing * np.linalg.norm(node[there] - local[there], axis=1)
        np.minimum.at(found, tuple(node[there].T), away)
    return found
