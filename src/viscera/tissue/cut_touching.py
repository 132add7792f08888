"""Points that tools touch, near a cut: each hangs on masses of its own side alone.

A point belongs to the mass nearest to it at rest. Once that mass, or one tied to it, has lost a spring, the point hangs
on the mass and on those that are still tied to it, the eight nearest, by an affine fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import Lattice
from viscera.geometry.linked_surface import fit_weights, nearest_eight
from viscera.tissue.beneath import nearest_masses
from viscera.tissue.springs import DIRECTIONS

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue


class CutTouching:
    """Of one lattice with a surface that tools touch."""

    def __init__(self, tissue: Tissue, whole: NDArray[np.bool_]) -> None:
        """`whole`: which springs there are, uncut."""
        self._tissue = tissue
        self._lattice = Lattice(tissue.params.nodes, DIRECTIONS, whole)
        samples = tissue.need_touching().samples
        rest = samples.rest.numpy().astype(np.float64)
        self._points = rest / tissue.params.spacing
        self._owner = nearest_masses(tissue, rest + np.asarray(tissue.params.origin))
        self._first = samples.places.numpy().reshape(-1, 8), samples.weights.numpy().reshape(-1, 8)
        self._places, self._weights = (array.copy() for array in self._first)
        self.due = False
        """Whether there is something to land."""

    def hang(self, whole: NDArray[np.bool_]) -> None:
        """Anew, where these springs are left, shape (13, masses)."""
        self._lattice.lose(whole)
        parted = self._lattice.parted()
        some = np.flatnonzero((self._owner >= 0) & parted[self._owner])
        self._places, self._weights = (array.copy() for array in self._first)
        if len(some):
            nodes, weights = self._hung(some)
            self._places[some] = self._tissue.layout.slot_of_node[nodes]
            self._weights[some] = weights
        self.due = True

    def _hung(self, some: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        owner, lattice, point = self._owner[some], self._lattice, self._points[some]
        near = np.where(lattice.tied[:, owner], lattice.near[:, owner], -1).T
        every = np.concatenate([owner[:, None], near], axis=1)
        return fit_weights(nearest_eight(every, lattice.nodes, point, 1), lattice.nodes, point)

    def land(self) -> None:
        """In force from the next tick on; between two ticks."""
        if self.due:
            samples = self._tissue.need_touching().samples
            samples.places.assign(self._places.ravel())
            samples.weights.assign(self._weights.astype(np.float32).ravel())
            self.due = False
