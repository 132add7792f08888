"""What of a lattice can meet other tissue: the masses at its surface, cut faces included, and the piece of each.

It is found out beside the ticks, whenever something was cut, and in force when it lands (meeting.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import STEPS, Lattice
from viscera.geometry.linked_loops import roots_of
from viscera.tissue.beneath import nearest_masses
from viscera.tissue.springs import DIRECTIONS, NodeIndex, partners

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

PARTED = 1
"""Bit of `Edge.kind`: it has lost a spring."""

FLAT_TIES, CUT_TIES = 17, 9
"""Masses that one on a flat side is tied to, and those of them that lie opposite to the other side of a cut. On an edge
they are 11 and 6, at a corner 7 and 4."""
STEEP = 4
"""The normal of a pair is that of the flatter one: an edge counts this power of its share."""


OUTER = np.einsum("sa,sb->sab", STEPS, STEPS).reshape(len(STEPS), 9).astype(np.float64)
"""The matrix s sᵀ of each step."""


class Ties:
    """What each mass of a lattice would have at a surface, by what it is tied to; arrays have a row for each. Those
    alone are looked at anew that are tied otherwise than before."""

    def __init__(
        self, lattice: Lattice, springs: NDArray[np.bool_], outside: NDArray[np.float64], slot: NDArray[np.int32]
    ) -> None:
        """`springs`: where one leads from each mass, uncut, shape (26, masses). Across a notch there is none to lose:
        no face opens there, and the surface is where it was."""
        count = len(lattice.nodes)
        self._springs, self._outside, self._slot = springs, outside, slot
        self._before = np.ones((26, count), dtype=np.bool_)
        self.kind = np.zeros(count, dtype=np.int32)
        self.offset = np.zeros(count)
        """From the mass to its surface, in cells."""
        self.tied = np.zeros((count, 26), dtype=np.int32)
        """Places of what it is tied to, in the order of linked_cells.STEPS."""
        self.leans = np.zeros(count, dtype=np.int64)
        """Bit by bit: from which of them its normal leads away."""
        self.flat = np.zeros(count)
        """How flat its surface is there, from 0 to 1."""
        self.normal = np.zeros((count, 3))
        """At rest, away from what it leans on; not of unit length."""
        self.lean = np.zeros((count, 3))
        """B N, see meeting_kernels.find_normals."""

    def follow(self, lattice: Lattice) -> None:
        """Masses inside, which are tied to all 26, have no use for it."""
        some = np.flatnonzero((lattice.tied != self._before).any(axis=0))
        self._before = lattice.tied.copy()
        tied, near = lattice.tied[:, some], lattice.near[:, some]
        lost = self._springs[:, some] & ~tied
        parted = lost.any(axis=0)
        self.kind[some] = PARTED * parted
        self.offset[some] = np.where(parted, 0.5, self._outside[some])
        self.tied[some] = np.where(tied, self._slot[near], -1).T
        # At a cut: away from what lies opposite to what was lost, so that the rim of a cut faces the other rim.
        across = tied & lost[::-1]
        cut = across.any(axis=0)
        leans = np.where(cut, across, tied)
        self.leans[some] = (leans * (1 << np.arange(26))[:, None]).sum(axis=0)
        self.flat[some] = np.minimum(1.0, leans.sum(axis=0) / np.where(cut, CUT_TIES, FLAT_TIES)) ** STEEP
        self.normal[some] = -(STEPS.T @ leans).T.astype(np.float64)
        spread = (tied.T.astype(np.float64) @ OUTER).reshape(-1, 3, 3)
        self.lean[some] = np.einsum("mab,mb->ma", spread, self.normal[some])


class Edge:
    """The masses at the surface of a lattice; arrays have a row for each, as `Ties` has them."""

    def __init__(self, lattice: Lattice, piece: NDArray[np.int64], ties: Ties) -> None:
        self.mass: NDArray[np.int64] = np.flatnonzero(~lattice.tied.all(axis=0))
        """Number in the lattice."""
        some = self.mass
        self.piece = piece[some]
        """0, 1, … within the lattice."""
        self.kind, self.offset, self.tied = ties.kind[some], ties.offset[some], ties.tied[some]
        self.leans, self.flat, self.normal, self.lean = (
            ties.leans[some], ties.flat[some], ties.normal[some], ties.lean[some]
        )  # fmt: skip


class Landing:
    """What lands of one lattice, in the form that kernels read: made beside the ticks, so that landing is copying."""

    def __init__(self, tissue: Tissue, edge: Edge, cut: NDArray[np.bool_], origin: NDArray[np.float64]) -> None:
        """`cut`: which springs are, per direction and mass; `origin` is common to all lattices [m]."""
        params, layout, mass = tissue.params, tissue.layout, edge.mass
        numbers, piece = np.unique(edge.piece, return_inverse=True)
        self.pieces, self.parted = len(numbers), bool((edge.kind & PARTED).any())
        free = ~params.anchored[mass]
        self.columns: dict[str, NDArray[Any]] = {
            "place": layout.slot_of_node[mass].astype(np.int32),
            "rest": (tissue.rest_positions()[mass] - origin).astype(np.float32),
            "inverse_mass": np.where(free, 1.0 / tissue.mass[mass], 0.0).astype(np.float32),
            "piece": piece.astype(np.int32),
            "kind": edge.kind,
            "offset": (edge.offset * params.spacing).astype(np.float32),
            "tied": edge.tied,
            "leans": edge.leans.astype(np.int32),
            "flat": edge.flat.astype(np.float32),
            "lean": edge.lean.astype(np.float32),
        }
        """Of `meeting_kernels.Meet`, a row for each mass of the edge."""
        self.known = np.zeros((13, layout.slots), dtype=np.uint8)
        self.known[:, layout.slot_of_node] = cut


class Pieces:
    """Of one lattice."""

    def __init__(self, tissue: Tissue, origin: NDArray[np.float64]) -> None:
        self.tissue, self._origin = tissue, origin
        nodes = tissue.params.nodes
        index = NodeIndex(nodes)
        self._there = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) >= 0 for step in DIRECTIONS])
        self._lattice = Lattice(nodes, DIRECTIONS, self._there)
        self._joined = partners(nodes) >= 0
        springs = Lattice(nodes, DIRECTIONS, self._joined).tied
        self._ties = Ties(self._lattice, springs, _outside(tissue, self._lattice), tissue.layout.slot_of_node)
        self._next = self.edge, self.landing = self._find(self._there)
        """What is in force, and what is from the next landing on."""
        self.due = False
        """Whether there is something to land."""

    def hang(self, whole: NDArray[np.bool_]) -> None:
        """These springs are left, shape (13, masses)."""
        self._lattice.lose(whole)
        self._next = self._find(whole)
        self.due = True

    def land(self) -> None:
        (self.edge, self.landing), self.due = self._next, False

    def _find(self, whole: NDArray[np.bool_]) -> tuple[Edge, Landing]:
        lattice = self._lattice
        roots = roots_of(lattice.tied[:13], lattice.near[:13])
        # The largest pieces have the lowest numbers: what has no number of its own is small.
        sizes = np.bincount(roots, minlength=len(roots))
        order = np.argsort(-sizes, kind="stable")
        number = np.empty(len(roots), dtype=np.int64)
        number[order] = np.arange(len(roots))
        self._ties.follow(lattice)
        edge = Edge(lattice, number[roots], self._ties)
        return edge, Landing(self.tissue, edge, self._joined & ~whole, self._origin)


def _outside(tissue: Tissue, lattice: Lattice) -> NDArray[np.float64]:
    """From each mass to the surface that tools touch, along its normal, in cells; 0 where it is the mass itself."""
    found = np.zeros(len(lattice.nodes))
    samples = tissue.need_touching().samples
    if len(samples.normal) <= 1:
        return found
    points = samples.rest.numpy().astype(np.float64)
    owner = nearest_masses(tissue, points + np.asarray(tissue.params.origin))
    normal = -(STEPS.T @ lattice.tied).T.astype(np.float64)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    known = owner >= 0
    way = points[known] / tissue.params.spacing - lattice.nodes[owner[known]]
    height = (way * normal[owner[known]]).sum(axis=1)
    count = np.bincount(owner[known], minlength=len(found))
    total = np.bincount(owner[known], weights=height, minlength=len(found))
    return np.clip(total / np.maximum(count, 1), 0.0, 1.0)
