"""Stiffness of every spring and bulk modulus of every cell, for one choice of Young's moduli or for many in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.layout import Layout
from viscera.tissue.params import LatticeParams
from viscera.tissue.remedies import stiffness_factor
from viscera.tissue.springs import DIRECTIONS, NodeIndex, cells_around, length_ratio, spring_share

CORNERS = tuple(np.ndindex(2, 2, 2))


class Tables:
    """Of one lattice: who is whose neighbour is looked up once."""

    def __init__(self, params: LatticeParams, layout: Layout, index: NodeIndex | None = None) -> None:
        self._index = NodeIndex(params.nodes) if index is None else index
        self._params, self._layout = params, layout
        self.cells = cells_around(params.nodes, self._index)
        """Of each mass, which of the eight cells around it are whole; shape (masses, 8)."""
        self._others = [self._index.find(params.nodes + np.array(way, dtype=np.int32)) for way in DIRECTIONS]
        self._shares = [
            length_ratio(way, params.equal_springs) * spring_share(self.cells, way, other)
            for way, other in zip(DIRECTIONS, self._others, strict=True)
        ]
        self._corners: list[NDArray[np.integer]] | None = None

    def stiffness(self, young: NDArray[np.float64]) -> NDArray[np.float16]:
        """Relative stiffness of every spring at the mass it looks up from, for the springs' modulus of each mass; shape
        (13·slots,)."""
        params = self._params
        table = np.zeros((len(DIRECTIONS), self._layout.slots), dtype=np.float16)
        for row, (other, share) in enumerate(zip(self._others, self._shares, strict=True)):
            value = share * (0.5 * (young + young[other]))
            if params.remedies.surface_stiffness > 1.0:
                value *= stiffness_factor(self.cells, other, params.remedies.surface_stiffness)
            table[row, self._layout.slot_of_node] = np.where(other >= 0, value, 0.0)
        return table.ravel()

    def bulk(self, young: NDArray[np.float64]) -> NDArray[np.float16]:
        """Relative bulk modulus of the cell whose low corner each place is: the mean of its masses; 0 if it lacks
        one."""
        nodes = self._params.nodes
        if self._corners is None:
            self._corners = [self._index.find(nodes + np.array(corner, dtype=np.int32)) for corner in CORNERS]
            self._whole = self._index.look_up(self._index.whole_cells(), nodes)
        total = np.zeros(len(nodes))
        for corner in self._corners:
            total += young[corner] / 8.0
        table = np.zeros(self._layout.slots, dtype=np.float16)
        table[self._layout.slot_of_node] = np.where(self._whole, total, 0.0)
        return table
