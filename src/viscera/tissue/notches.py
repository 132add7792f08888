"""Neighbours across a notch of the surface: near each other, and joined by no spring.

Two masses a step apart that no whole cell holds have no spring (springs.spring_share): a crease, where one organ lies
on another, is full of such pairs. Uncut, what is drawn there is one surface, and what touches it one tissue, since both
masses hang on the same springs a step farther in. A blade that goes between them parts them; what tears, or is cut a
step farther in, leaves such a pair as it was. So it is told here when one has come apart: when a way of at most three
springs that led from one mass to the other is gone, or when they are of two pieces. Then it counts as a spring that was
cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import Ints, Lattice
from viscera.geometry.linked_loops import roots_of
from viscera.tissue.cutting import AXES, pack_crossings
from viscera.tissue.springs import DIRECTIONS, NodeIndex, partners

AT_ONCE = 256
"""Pairs that are looked at in one go: 700 masses are a spring or two from one end of each."""


class Notches:
    """Of one lattice. What has come apart depends on nothing but what is cut now."""

    def __init__(self, nodes: NDArray[np.int32]) -> None:
        index = NodeIndex(nodes)
        near = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
        self._other = partners(nodes)
        """At the far end of each spring, -1 where there is none, shape (13, masses)."""
        self._direction, self._mass = np.nonzero((near >= 0) & (self._other < 0))
        self._far = near[self._direction, self._mass].astype(np.int64)
        self._lattice = Lattice(nodes, DIRECTIONS, self._other >= 0)
        around = [self._mass[None], self._far[None], *(self._lattice.near[:, end] for end in (self._mass, self._far))]
        self._around = np.concatenate(around).T
        """Of each pair, the masses whose springs its way may take, -1 for none."""
        self._tied = self._has_way(np.arange(len(self._mass)))
        """Pairs that have a way of three springs, uncut: the others are one as long as their piece is."""
        self._middle = pack_crossings(np.full(3, 0.5), np.eye(3))
        self._whole = np.ones(len(self._mass), dtype=np.bool_)
        self._cut = np.zeros(near.shape, dtype=np.bool_)
        self.roots: Ints = roots_of(self._other >= 0, self._other)
        """Of each mass the lowest one that it hangs together with by springs."""

    def follow(self, cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Now these springs are cut: which pairs have come apart, both per direction and mass, shape (13, masses)."""
        if (self._cut & ~cut).any():
            self._whole[:] = True
        self._cut = cut.copy()
        left = (self._other >= 0) & ~cut
        before = self._lattice.tied.copy()
        self._lattice.lose(left)
        changed = np.append((self._lattice.tied != before).any(axis=0), False)
        some = np.flatnonzero(self._tied & self._whole & changed[self._around].any(axis=1))
        self._whole[some] = self._has_way(some)
        self.roots = roots_of(left, self._other)
        self._whole &= self.roots[self._mass] == self.roots[self._far]
        parted = np.zeros(cut.shape, dtype=np.bool_)
        parted[self._direction, self._mass] = ~self._whole
        return parted

    def cross(self, links: NDArray[np.int64], parted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Where axis springs are cut, shape (3, masses), with pairs that have come apart: in their middle, across."""
        found = links.copy()
        for axis, row in enumerate(AXES):
            found[axis, parted[row] & (links[axis] == 0)] = self._middle[axis]
        return found

    def _has_way(self, pairs: Ints) -> NDArray[np.bool_]:
        """Whether at most three springs lead from one end to the other."""
        found = np.zeros(len(pairs), dtype=np.bool_)
        for begin in range(0, len(pairs), AT_ONCE):
            some = pairs[begin : begin + AT_ONCE]
            within_two = self._reached(self._reached(self._mass[some][:, None]))
            within_one = self._reached(self._far[some][:, None])
            for end in within_one.T:
                found[begin : begin + AT_ONCE] |= ((within_two == end[:, None]) & (end >= 0)[:, None]).any(axis=1)
        return found

    def _reached(self, masses: Ints) -> Ints:
        """Rows of masses (-1 for none), and what one spring ties to them."""
        lattice = self._lattice
        tied = lattice.tied[:, masses] & (masses >= 0)
        near = np.where(tied, lattice.near[:, masses], -1)
        every = np.concatenate([masses[None], near])
        return np.moveaxis(every, 0, 2).reshape(len(masses), -1).astype(np.int64)
