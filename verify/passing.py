"""How deep tissue is in tissue, in float64 and independent of how contact finds it.

A body ends half a cell beyond its masses where it is cut, and at its outermost masses elsewhere: that is where it is
drawn. A mass near a cut that lies in a cell of the lattice as that is deformed now, or beyond one of its open faces by
less than that face stands off, is in foreign tissue, if it is tied to none of the cell's masses. It is as deep there as
it is below an open face, and as its own tissue reaches beyond it on that side; the least over all faces.

A cell that a cut goes through is open itself, and has no inside: one that has all twelve links along its edges counts.
Nor has one an inside that is turned inside out. Springs let soft tissue fold through itself under its own weight, cut
or not: then what lies in it was not let through by a cut. Such cells, and their masses, are counted for themselves.

Nor was a mass let through by a cut that has gone through its own tissue: a corner that hangs on some ties to one side
finds all of them as long as before in the mirror. With d to what it is tied to, D at rest, such a mass is turned over
where det Σ d Dᵀ < 0, while det Σ D Dᵀ is not 0. It is counted, as is what lies in cells that share masses with one that
is turned inside out or have such a mass; how much lies off such folds is told besides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import BITS, PAIRS, STEPS, Lattice
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.tissue.tissue import Tissue

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEWTON = 6
"""Steps to the place in a cell."""
FOUND = 1e-6
"""Farther from its point than this, Newton's method has not found the place [m]."""
STAND_OFF = 0.5
"""Of a cut face from its masses, in cells."""
DEEP = 2.0
"""At most, in cells: what lies farther in is so deep."""
EDGES = [(a, step) for a, _, step in PAIRS if np.abs(STEPS[step]).sum() == 1]
"""The links along the edges of a cell: the corner that each starts from, and the number of its step."""
FACES = [(axis, side) for axis in range(3) for side in (0, 1)]
OUT = [((2 * side - 1) * np.eye(3, dtype=np.int64)[axis]).tolist() for axis, side in FACES]
WAYS = np.array([STEPS.tolist().index(out) for out in OUT])
"""Number of the step that leads out of each face."""


class Passing:
    """Of one lattice."""

    def __init__(self, tissue: Tissue) -> None:
        self._tissue, nodes = tissue, tissue.params.nodes
        index = NodeIndex(nodes)
        self._there = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) >= 0 for step in DIRECTIONS])
        self._lattice = Lattice(nodes, DIRECTIONS, self._there)
        self.turned = 0
        """Masses near a cut in cells that were turned inside out, in all looks together."""
        self.off_folds: Floats = np.zeros(0)
        """What the last look found, but for masses that are turned over or in a cell that is turned inside out, near a
        cut or not, and what lies in cells that have such masses."""

    def look(self, cut: NDArray[np.bool_]) -> Floats:
        """Of each mass near a cut, where these springs are cut, shape (13, masses): how deep it is in foreign tissue,
        in cells; 0 where it is not."""
        lattice = self._lattice
        lattice.lose(self._there & ~cut)
        parted = lattice.parted()
        some, corners = np.flatnonzero(parted), self._whole_cells()
        x = self._tissue.rest_positions() + self._tissue.displacement().astype(np.float64)
        inverted = is_inverted(x[corners])
        folded = is_turned_over(x, lattice)
        folded[corners[inverted]] = True
        near = parted[corners].any(axis=1)
        corners, inverted = corners[near], inverted[near]
        turned = np.isin(some, corners[inverted])
        self.turned += int(turned.sum())
        corners = corners[~inverted]
        off = self._stand_off(corners)
        mass, cell = _near_cells(x[some], x[corners])
        own = np.concatenate([some[:, None], np.where(lattice.tied[:, some], lattice.near[:, some], -1).T], axis=1)
        foreign = ~(own[mass][:, :, None] == corners[cell][:, None, :]).any(axis=(1, 2)) & ~turned[mass]
        mass, cell = mass[foreign], cell[foreign]
        place = places_in_cells(x[some[mass]], x[corners[cell]])
        # From each face inwards; where tissue goes on behind it, a mass must be on this side of it.
        below = np.concatenate([place, 1.0 - place], axis=1)[:, [0, 3, 1, 4, 2, 5]]
        inside = (below + np.nan_to_num(off[cell]) > 0.0).all(axis=1)
        mass, cell, below = mass[inside], cell[inside], below[inside]
        faced = below + off[cell] + self._own_stand_off(some[mass], x, corners[cell])
        depth = np.fmin(np.fmin.reduce(faced, axis=1), DEEP)
        deep, self.off_folds = np.zeros((2, len(some)))
        np.maximum.at(deep, mass, depth)
        off_folds = ~folded[corners[cell]].any(axis=1) & ~folded[some[mass]]
        np.maximum.at(self.off_folds, mass[off_folds], depth[off_folds])
        return deep

    def _whole_cells(self) -> NDArray[np.int32]:
        """Masses of the cells that no cut goes through."""
        corners = self._lattice.corners(self._lattice.nodes)
        corners = corners[(corners >= 0).all(axis=1)]
        whole = np.all([self._lattice.tied[step, corners[:, a]] for a, step in EDGES], axis=0)
        return corners[whole]

    def _stand_off(self, corners: NDArray[np.int32]) -> Floats:
        """How far the surface lies beyond each face of cells, in cells; NaN where tissue goes on, shape (cells, 6)."""
        found = np.full((len(corners), 6), np.nan)
        for row, ((axis, side), way) in enumerate(zip(FACES, WAYS, strict=True)):
            on = corners[:, BITS[:, axis] == side]
            gone = ~self._lattice.tied[way, on].any(axis=1)
            outside = (self._lattice.near[way, on] < 0).any(axis=1)
            found[gone, row] = np.where(outside, 0.0, STAND_OFF)[gone]
        return found

    def _own_stand_off(self, mass: Ints, x: Floats, corners: NDArray[np.int32]) -> Floats:
        """How far masses' own tissue reaches from them into the cells that they are in, from each face inwards, in
        cells: to their surface at a cut, not at all where they are the outermost ones, and on where they are tied;
        shape (masses, 6)."""
        near, tied = self._lattice.near[WAYS][:, mass], self._lattice.tied[WAYS][:, mass]
        ways = np.where(tied[..., None], x[near] - x[mass], 0.0)
        # A way that is not tied leads on from the one opposite.
        ways = np.where(tied[..., None], ways, -ways[[1, 0, 3, 2, 5, 4]])
        ways /= np.maximum(np.linalg.norm(ways, axis=2, keepdims=True), 1e-12)
        reaches = np.where(tied, DEEP, np.where(near < 0, 0.0, STAND_OFF))
        found = np.zeros((len(mass), 6))
        for row, (axis, side) in enumerate(FACES):
            into = x[corners[:, BITS[:, axis] != side]].mean(axis=1) - x[corners[:, BITS[:, axis] == side]].mean(axis=1)
            along = np.argmax((ways * into).sum(axis=2), axis=0)
            found[:, row] = reaches[along, np.arange(len(mass))]
        return found


def is_inverted(corners: Floats) -> NDArray[np.bool_]:
    """Which cells are turned inside out in their middle: their x, y and z are a left-handed three."""
    ways = [
        corners[:, BITS[:, axis] == 1].mean(axis=1) - corners[:, BITS[:, axis] == 0].mean(axis=1) for axis in range(3)
    ]
    return np.linalg.det(np.stack(ways, axis=1)) <= 0.0


def is_turned_over(x: Floats, lattice: Lattice) -> NDArray[np.bool_]:
    """Which masses lie as in a mirror to what they are tied to, as far as that lies not in a plane at rest."""
    steps = STEPS.astype(np.float64)
    ways = np.where(lattice.tied[..., None], x[lattice.near] - x, 0.0)
    turned = np.einsum("kma,kb->mab", ways, steps)
    rest = np.einsum("km,ka,kb->mab", lattice.tied.astype(np.float64), steps, steps)
    # Steps are whole numbers, and so is their determinant.
    return (np.linalg.det(rest) > 0.5) & (np.linalg.det(turned) < 0.0)


def _near_cells(points: Floats, corners: Floats) -> tuple[Ints, Ints]:
    """Which points are in the boxes around which cells, made larger by what a face stands off."""
    low, high = corners.min(axis=1), corners.max(axis=1)
    more = STAND_OFF * (high - low)
    low, high = low - more, high + more
    near = np.ones((len(points), len(corners)), dtype=np.bool_)
    for axis in range(3):
        near &= (points[:, None, axis] > low[None, :, axis]) & (points[:, None, axis] < high[None, :, axis])
    mass, cell = np.nonzero(near)
    return mass, cell


def places_in_cells(points: Floats, corners: Floats) -> Floats:
    """The place ξ of a point in a cell, x(ξ) = Σ w(ξ) x_corner, by Newton's method, in [0, 1]³ inside; NaN where it was
    not found."""
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
