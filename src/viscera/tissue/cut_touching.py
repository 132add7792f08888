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

from viscera.device import put
from viscera.geometry.linked_cells import Lattice
from viscera.geometry.linked_loops import nearest_eight
from viscera.geometry.linked_surface import fit_weights
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
        slots = tissue.layout.slot_of_node
        self._surface = _Hanging(_as_hung(samples.places, samples.weights), slots)
        self._beneath = (rest[samples.middle.numpy()] + samples.under.numpy()) / tissue.params.spacing
        """Of each bundle, the place by which it is gauged, in cells."""
        self._beneath_owner = self._owner[samples.middle.numpy()]
        self._under = _Hanging(_as_hung(samples.under_places, samples.under_weights), slots)
        self._tied = self._lattice.tied.copy()
        """As of the last time that points were hung."""
        self._parted = np.zeros(len(self._beneath), dtype=np.int32)
        """1 for bundles near a cut."""
        node_of = np.full(tissue.layout.slots, -1, dtype=np.int64)
        node_of[tissue.layout.slot_of_node] = np.arange(len(tissue.params.nodes))
        self._beneath_nodes = node_of[self._under.first[0]]
        self.due = False
        """Whether there is something to land."""

    def hang(self, whole: NDArray[np.bool_]) -> None:
        """Anew, where these springs are left, shape (13, masses)."""
        self._lattice.lose(whole)
        parted, changed = self._lattice.parted(), (self._lattice.tied != self._tied).any(axis=0)
        self._tied = self._lattice.tied.copy()
        some = (self._owner >= 0) & parted[self._owner]
        self._surface.hang(self._lattice, self._owner, self._points, some, changed)
        near = parted[self._beneath_owner] | parted[self._beneath_nodes].any(axis=1)
        turns = (self._beneath_owner >= 0) & near
        self._under.hang(self._lattice, self._beneath_owner, self._beneath, turns, changed)
        self._parted = turns.astype(np.int32)
        self.due = True

    def land(self) -> None:
        """In force from the next tick on; between two ticks."""
        if self.due:
            samples = self._tissue.need_touching().samples
            self._surface.land(samples.places, samples.weights)
            self._under.land(samples.under_places, samples.under_weights)
            put(samples.parted, self._parted)
            self.due = False


class _Hanging:
    """Some points, what each hung on at first, and what those near a cut hang on now. Of these only they are fitted
    anew whose masses have lost or got a spring since."""

    def __init__(self, first: Hung, slot_of_node: NDArray[np.int32]) -> None:
        self.first, self._slot_of_node = first, slot_of_node
        self._places, self._weights = first[0].copy(), first[1].copy()
        """What each hangs on as it lands next."""
        self._some = np.zeros(len(first[0]), dtype=np.bool_)
        """Those that hang on their owners and what is tied to them."""
        self._changed = np.zeros(len(first[0]), dtype=np.bool_)
        """Those that hang on something else than what has landed."""

    def hang(
        self, lattice: Lattice, owner: NDArray[np.int32], points: NDArray[np.float64], some: NDArray[np.bool_],
        changed: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """`some` of the points are near a cut; `changed` are the masses whose ties are not those of the last time."""
        back = np.flatnonzero(self._some & ~some)
        self._places[back], self._weights[back] = self.first[0][back], self.first[1][back]
        new = np.flatnonzero(some & (~self._some | changed[owner]))
        self._some = some
        self._changed[back] = self._changed[new] = True
        if len(new) == 0:
            return
        mine, point = owner[new], points[new]
        near = np.where(lattice.tied[:, mine], lattice.near[:, mine], -1).T
        every = np.concatenate([mine[:, None], near], axis=1)
        nodes, self._weights[new] = fit_weights(nearest_eight(every, lattice.nodes, point, 1), lattice.nodes, point)
        self._places[new] = self._slot_of_node[nodes]

    def land(self, places_out: Any, weights_out: Any) -> None:
        rows = np.flatnonzero(self._changed)
        put(places_out, self._places, rows)
        put(weights_out, self._weights, rows)
        self._changed[rows] = False


def _as_hung(places: Any, weights: Any) -> Hung:
    return places.numpy().reshape(-1, 8).copy(), weights.numpy().reshape(-1, 8).copy()
