"""What seeds make of the tissue: stiffness of the springs and bulk modulus of the cells, a row for each anatomy."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.tables import Tables
from viscera.world import World

Row = tuple[NDArray[np.float16], NDArray[np.float16]]
"""Relative stiffness of every spring, and relative bulk modulus of every cell."""


class Anatomies:
    """Of one scenario's tissue: who is whose neighbour is looked up once."""

    def __init__(self, world: World) -> None:
        self._tissue, self._relative = world.contents.organs[0].tissue, world.contents.relative_young
        self._tables = Tables(self._tissue.params, self._tissue.layout)

    @property
    def differ(self) -> bool:
        """Whether another seed makes another tissue."""
        return self._relative is not None

    def row(self, seed: int) -> Row:
        params = self._tissue.params
        if self._relative is None:
            return self._tissue.constants.stiffness.numpy(), self._tissue.bulk.numpy()
        changed = dataclasses.replace(params, relative_young=self._relative(seed))
        springs = self._tables.stiffness(changed.spring_young_of())
        if not params.has_volume:
            return springs, np.zeros(1, dtype=np.float16)
        return springs, self._tables.bulk(changed.bulk_young_of())

    def rows(self, seed: int, count: int) -> Row:
        """Of the seeds from `seed` on; one row where all are the same."""
        made = [self.row(seed + number) for number in range(count if self.differ else 1)]
        return np.stack([springs for springs, _ in made]), np.stack([bulk for _, bulk in made])
