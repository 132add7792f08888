"""How deep tissue is in tissue, in float64 and independent of how contact finds it.

A mass near a cut that lies in a whole cell of the lattice, as that is deformed now, to none of whose masses it is tied,
is in foreign tissue. It is as deep as it is from the nearest open face of that cell, and what the two surfaces stand
off from their masses: half a cell each at a cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import BITS, STEPS, Lattice
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.tissue.tissue import Tissue

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEWTON = 6
"""Steps to the place in a cell."""
FOUND = 1e-6
"""Farther from its point than this, Newton's method has not found the place [m]."""
STAND_OFF = 1.0
"""Of two cut faces from their masses, together, in cells."""


class Passing:
    """Of one lattice."""

    def __init__(self, tissue: Tissue) -> None:
        self._tissue, nodes = tissue, tissue.params.nodes
        index = NodeIndex(nodes)
        self._there = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) >= 0 for step in DIRECTIONS])
        self._lattice = Lattice(nodes, DIRECTIONS, self._there)

    def look(self, cut: NDArray[np.bool_]) -> Floats:
        """Of each mass near a cut, where these springs are cut, shape (13, masses): how deep it is in foreign tissue,
        in cells; 0 where it is not."""
        lattice = self._lattice
        lattice.lose(self._there & ~cut)
        parted = lattice.parted()
        some, (cells, corners) = np.flatnonzero(parted), self._whole_cells(parted)
        x = self._tissue.rest_positions() + self._tissue.displacement().astype(np.float64)
        mass, cell = _in_box(x[some], x[corners])
        own = np.concatenate([some[:, None], np.where(lattice.tied[:, some], lattice.near[:, some], -1).T], axis=1)
        foreign = ~(own[mass][:, :, None] == corners[cell][:, None, :]).any(axis=(1, 2))
        mass, cell = mass[foreign], cell[foreign]
        place = places_in_cells(x[some[mass]], x[corners[cell]])
        inside = ((place > 0.0) & (place < 1.0)).all(axis=1)
        deep = np.zeros(len(some))
        np.maximum.at(deep, mass[inside], self._below(place[inside], cells[cell[inside]]) + STAND_OFF)
        return deep

    def _whole_cells(self, parted: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.int32]]:
        """Of which all masses hang together, and one at least is at a cut: their low corners, and their masses."""
        corners = self._lattice.corners(self._lattice.nodes)
        good = np.flatnonzero((corners >= 0).all(axis=1))
        good = good[(self._lattice.sides(corners[good]) == 0).all(axis=1) & parted[corners[good]].any(axis=1)]
        return self._lattice.nodes[good], corners[good]

    def _below(self, place: Floats, cells: Ints) -> Floats:
        """Below the nearest open face, in cells: one whose masses have lost a link that leads on; at most 1."""
        found = np.ones(len(place))
        for axis in range(3):
            for side in (0, 1):
                step = np.eye(3, dtype=np.int64)[axis] * (2 * side - 1)
                nodes = self._lattice.find(cells[:, None, :] + BITS[BITS[:, axis] == side])
                on = int(np.flatnonzero((step == STEPS).all(axis=1))[0])
                open_ = ~self._lattice.tied[on, nodes].all(axis=1)
                away = place[:, axis] if side == 0 else 1.0 - place[:, axis]
                found = np.where(open_, np.minimum(found, away), found)
        return found


def _in_box(points: Floats, corners: Floats) -> tuple[Ints, Ints]:
    """Which points are in the boxes around which cells."""
    low, high = corners.min(axis=1), corners.max(axis=1)
    near = np.ones((len(points), len(corners)), dtype=np.bool_)
    for axis in range(3):
        near &= (points[:, None, axis] > low[None, :, axis]) & (points[:, None, axis] < high[None, :, axis])
    mass, cell = np.nonzero(near)
    return mass, cell


def places_in_cells(points: Floats, corners: Floats) -> Floats:
    """The place ξ in [0, 1]³ of a point in a cell, x(ξ) = Σ w(ξ) x_corner, by Newton's method; NaN outside."""
    at, miss = np.full(points.shape, 0.5), np.zeros(points.shape)
    for _ in range(NEWTON):
        sides = np.where(BITS, at[:, None, :], 1.0 - at[:, None, :])
        weights = sides.prod(axis=2)
        miss = np.einsum("nc,nca->na", weights, corners) - points
        slope = np.zeros((len(points), 3, 3))
        for axis in range(3):
            others = np.delete(sides, axis, axis=2).prod(axis=2) * np.where(BITS[:, axis], 1.0, -1.0)
            slope[:, :, axis] = np.einsum("nc,nca->na", others, corners)
        flat = np.abs(np.linalg.det(slope)) < 1e-18
        slope[flat] = np.eye(3)
        at = np.clip(at - np.linalg.solve(slope, miss[..., None])[..., 0], -2.0, 3.0)
    return np.where(np.linalg.norm(miss, axis=1, keepdims=True) > FOUND, np.nan, at)
