"""Points that tools touch, near a cut: each hangs on masses of its own side alone.

A point belongs to the mass nearest to it at rest. Once that mass, or one tied to it, has lost a spring, the point hangs
on the mass and on those that are still tied to it, the eight nearest, by an affine fit. So does the place beneath a
bundle of points, by which its tissue is gauged: hung on the far side of a cut it would tell of tissue pressed flat
wherever the two sides have moved apart, and hold tools back that touch nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import Lattice
from viscera.geometry.linked_surface import fit_weights, nearest_eight
from viscera.tissue.beneath import nearest_masses
from viscera.tissue.springs import DIRECTIONS

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

Hung = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Places of the lattice that points hang on, and their weights, eight for each."""


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
        # Copies: on cpu these arrays are the device's own memory, which `land` writes.
        self._first = _as_hung(samples.places, samples.weights)
        self._places, self._weights = self._first
        self._beneath = (rest[samples.middle.numpy()] + samples.under.numpy()) / tissue.params.spacing
        """Of each bundle, the place by which it is gauged, in cells."""
        self._beneath_owner = self._owner[samples.middle.numpy()]
        self._beneath_first = _as_hung(samples.under_places, samples.under_weights)
        self._beneath_hung = self._beneath_first
        self._turns = np.zeros(len(self._beneath), dtype=np.bool_)
        """Bundles near a cut."""
        node_of = np.full(tissue.layout.slots, -1, dtype=np.int64)
        node_of[tissue.layout.slot_of_node] = np.arange(len(tissue.params.nodes))
        self._beneath_nodes = node_of[self._beneath_first[0]]
        self.due = False
        """Whether there is something to land."""

    def hang(self, whole: NDArray[np.bool_]) -> None:
        """Anew, where these springs are left, shape (13, masses)."""
        self._lattice.lose(whole)
        parted = self._lattice.parted()
        some = np.flatnonzero((self._owner >= 0) & parted[self._owner])
        self._places, self._weights = self._hung(self._first, some, self._owner[some], self._points[some])
        near = parted[self._beneath_owner] | parted[self._beneath_nodes].any(axis=1)
        self._turns = (self._beneath_owner >= 0) & near
        some = np.flatnonzero(self._turns)
        self._beneath_hung = self._hung(self._beneath_first, some, self._beneath_owner[some], self._beneath[some])
        self.due = True

    def _hung(self, first: Hung, some: NDArray[np.int64], owner: NDArray[np.int32], point: NDArray[np.float64]) -> Hung:
        """As at first, but for some, which hang on their owners and what is tied to those."""
        places, weights = first[0].copy(), first[1].copy()
        if len(some):
            lattice = self._lattice
            near = np.where(lattice.tied[:, owner], lattice.near[:, owner], -1).T
            every = np.concatenate([owner[:, None], near], axis=1)
            nodes, found = fit_weights(nearest_eight(every, lattice.nodes, point, 1), lattice.nodes, point)
            places[some] = self._tissue.layout.slot_of_node[nodes]
            weights[some] = found
        return places, weights

    def land(self) -> None:
        """In force from the next tick on; between two ticks."""
        if self.due:
            samples = self._tissue.need_touching().samples
            samples.places.assign(self._places.ravel())
            samples.weights.assign(self._weights.astype(np.float32).ravel())
            samples.parted.assign(self._turns.astype(np.int32))
            samples.under_places.assign(self._beneath_hung[0].ravel())
            samples.under_weights.assign(self._beneath_hung[1].astype(np.float32).ravel())
            self.due = False


def _as_hung(places: Any, weights: Any) -> Hung:
    return places.numpy().reshape(-1, 8).copy(), weights.numpy().reshape(-1, 8).copy()
