"""How a grid lies in memory, and what kernels need to know of it.

Cells, their lower faces and their lower corners are flat float32 arrays of one layout: entry (i, j, k) is the cell, the
face between it and its neighbour below along an axis, or the cell's lowest corner. Cells of the box are 1 to n along
each axis; around them lies a rim of one. Rows and layers have odd lengths, so that red and black cells of a chessboard
are the even and odd entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

wp.set_module_options({"enable_backward": False})

TAIL = 32
"""Entries beyond the last, which loops in C may read."""


@wp.struct
class GridShape:
    """Cells along x, y, z; entries from row to row and from layer to layer; what an open face across x, y, z counts;
    how much more one in a side of the box does than its share of a finer grid's; one over all faces of a cell that are
    open, where kernels may go by that alone, else −1."""

    nx: int
    ny: int
    nz: int
    row: int
    layer: int
    unit: wp.vec3
    rim: wp.vec3
    whole: float


@wp.struct
class Three:
    """Arrays that belong to the faces across x, y, z."""

    x: wp.array(dtype=wp.float32)
    y: wp.array(dtype=wp.float32)
    z: wp.array(dtype=wp.float32)


@wp.struct
class ThreeWhole:
    """The same, of whole numbers."""

    x: wp.array(dtype=wp.int32)
    y: wp.array(dtype=wp.int32)
    z: wp.array(dtype=wp.int32)


def three(arrays: Sequence[Any]) -> Any:
    """Arrays of faces across x, y, z as one argument of a kernel."""
    one: Any = Three() if arrays[0].dtype is wp.float32 else ThreeWhole()
    one.x, one.y, one.z = arrays
    return one


def _odd(count: int) -> int:
    return count + 1 - count % 2


@dataclass(frozen=True)
class Layout:
    cells: tuple[int, int, int]

    @property
    def row(self) -> int:
        return _odd(self.cells[0] + 2)

    @property
    def rows(self) -> int:
        return _odd(self.cells[1] + 2)

    @property
    def layer(self) -> int:
        return self.row * self.rows

    @property
    def size(self) -> int:
        """Entries of an array: faces of the far side look one layer beyond the rim."""
        return self.layer * (self.cells[2] + 3) + TAIL

    @property
    def count(self) -> int:
        """Entries of the layers that have cells, the first of which is entry `layer`."""
        return self.layer * self.cells[2]

    @property
    def tiles(self) -> int:
        """Of 16 entries, over the same layers."""
        return -(-self.count // 16)

    def struct(self) -> Any:
        shape: Any = GridShape()
        shape.nx, shape.ny, shape.nz = self.cells
        shape.row, shape.layer = self.row, self.layer
        shape.unit, shape.rim, shape.whole = wp.vec3(1.0, 1.0, 1.0), wp.vec3(1.0, 1.0, 1.0), -1.0
        return shape

    def box(self, values: NDArray[Any], beyond: tuple[int, int, int] = (0, 0, 0)) -> NDArray[Any]:
        """The cells of the box in a flat array, shape (nz, ny, nx), a view; `beyond` more along x, y, z: faces and
        corners."""
        whole = values[: self.layer * (self.cells[2] + 2)].reshape(self.cells[2] + 2, self.rows, self.row)
        x, y, z = (1 + count + more for count, more in zip(self.cells, beyond, strict=True))
        return whole[1:z, 1:y, 1:x]

    def filled(self, values: NDArray[Any], beyond: tuple[int, int, int] = (0, 0, 0), rest: float = 0.0) -> NDArray[Any]:
        """A flat array with these values in its box and `rest` around."""
        flat = np.full(self.size, rest, dtype=values.dtype)
        self.box(flat, beyond)[...] = values
        return flat
