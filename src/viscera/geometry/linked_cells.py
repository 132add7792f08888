"""Cells of a lattice whose masses are tied or parted: the ground that a surface with cuts is built on.

A cell is a cube between eight integer positions, of which some may hold no mass. Its masses fall into *sides*: what is
tied to each other by whole springs within the cell. Uncut, a cell has one side as a rule; cut through, two or more.
Corners of a cell are numbered x + 2·y + 4·z; a side is named by its lowest corner.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

BITS = np.array([(c % 2, c // 2 % 2, c // 4) for c in range(8)], dtype=np.int64)
"""Position of each corner in its cell, shape (8, 3)."""

RING = ((0, 0), (-1, 0), (-1, -1), (0, -1))
"""Cells around a link along an axis: steps of their low corner along the two axes that follow it, counter-clockwise
seen from the link's upper end."""


class Box:
    """Integer positions in a box around the nodes, as one number each."""

    def __init__(self, nodes: NDArray[np.integer], border: int = 3) -> None:
        self._low = nodes.min(axis=0).astype(np.int64) - border
        self._size = nodes.max(axis=0).astype(np.int64) + border + 1 - self._low
        self._stride = np.array([1, self._size[0], self._size[0] * self._size[1]])
        self.count = int(np.prod(self._size))

    def number(self, at: Ints) -> Ints:
        """Of positions, shape (…, 3)."""
        return (at - self._low) @ self._stride

    def position(self, number: Ints) -> Ints:
        plane, x = np.divmod(number, self._size[0])
        z, y = np.divmod(plane, self._size[1])
        return np.stack([x, y, z], axis=-1) + self._low


STEPS = np.array([step for step in np.ndindex(3, 3, 3) if step != (1, 1, 1)], dtype=np.int64) - 1
"""To the 26 neighbours of a mass; the opposite of step n is step 25 - n."""
_NUMBER_OF_STEP = {tuple(step): number for number, step in enumerate(STEPS.tolist())}


PAIRS = [(a, b, _NUMBER_OF_STEP[tuple((BITS[b] - BITS[a]).tolist())]) for a, b in itertools.combinations(range(8), 2)]
"""The 28 pairs of corners, each a spring, and the number of its step."""


class Lattice:
    """Masses and their springs, as far as cuts and surfaces ask."""

    def __init__(
        self, nodes: NDArray[np.integer], directions: tuple[tuple[int, int, int], ...], whole: NDArray[np.bool_]
    ) -> None:
        """`whole`: which springs are there and not cut, per direction and node, shape (13, nodes)."""
        self.nodes = nodes.astype(np.int64)
        self.box = Box(nodes)
        self._node_at = np.full(self.box.count, -1, dtype=np.int32)
        self._node_at[self.box.number(self.nodes)] = np.arange(len(nodes), dtype=np.int32)
        self.near = np.stack([self.find(self.nodes + step) for step in STEPS])
        """Neighbour of each node at each step, -1 where there is none, shape (26, nodes)."""
        self._up = [_NUMBER_OF_STEP[direction] for direction in directions]
        self._mended = np.zeros_like(whole)
        self.tied = np.zeros(self.near.shape, dtype=np.bool_)
        """Whether a whole spring leads there, shape (26, nodes)."""
        self.lose(whole)

    def find(self, at: Ints) -> NDArray[np.int32]:
        """The node at each position, -1 where there is none."""
        return self._node_at[self.box.number(at)]

    def lose(self, whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """These springs are left; says which nodes lost one that starts from them."""
        left = whole | self._mended
        lost = np.zeros(left.shape[1], dtype=np.bool_)
        for row, up in zip(left, self._up, strict=True):
            lost |= self.tied[up] & ~row
            self.tied[up] = row
            below = self.near[25 - up]
            self.tied[25 - up] = (below >= 0) & row[below]
        return lost

    def mend(self, low: NDArray[np.integer], axis: int) -> None:
        """The links along an axis from these nodes count as whole from now on."""
        x, y, z = np.eye(3, dtype=np.int64)[axis].tolist()
        up = _NUMBER_OF_STEP[x, y, z]
        self._mended[self._up.index(up), low] = True
        self.tied[up, low] = True
        self.tied[25 - up, self.near[up, low]] = True

    def parted(self) -> NDArray[np.bool_]:
        """Which nodes have a neighbour that they are not tied to."""
        return np.asarray(((self.near >= 0) & ~self.tied).any(axis=0))

    def corners(self, cells: Ints) -> NDArray[np.int32]:
        """Nodes of cells given by their low corner, shape (cells, 8)."""
        return self.find(cells[:, None, :] + BITS)

    def sides(self, corners: NDArray[np.int32]) -> NDArray[np.int8]:
        """Of every corner of cells, the lowest corner that it is tied to within its cell; -1 where there is no mass."""
        label = np.where(corners >= 0, np.arange(8, dtype=np.int8), np.int8(-1))
        ties = [(a, b, self.tied[step, corners[:, a]] & (corners[:, a] >= 0)) for a, b, step in PAIRS]
        ties = [(a, b, tie) for a, b, tie in ties if tie.any()]
        while True:
            before = label.copy()
            for a, b, tie in ties:
                least = np.minimum(label[:, a], label[:, b])
                label[:, a] = np.where(tie, least, label[:, a])
                label[:, b] = np.where(tie, least, label[:, b])
            if np.array_equal(before, label):
                return label


def ring_around(low: Ints, axis: int) -> tuple[Ints, Ints, Ints]:
    """The four cells around links along an axis from these positions, shape (n, 4, 3), and which corner of each the
    link's lower and upper end is, shape (4,)."""
    second, third = (axis + 1) % 3, (axis + 2) % 3
    steps = np.zeros((4, 3), dtype=np.int64)
    steps[:, second], steps[:, third] = np.array(RING).T
    lower = -steps @ np.array([1, 2, 4])
    return low[:, None, :] + steps, lower, lower + (1, 2, 4)[axis]
