"""Where the masses of a lattice lie in memory.

Masses are stored in tiles: 16 places that follow each other along x. Tiles that follow each other along x lie next to
each other in memory, so the neighbour one cell to the right is always one place up, and for all 16 masses of a tile
the neighbours in another row (y ± 1, z ± 1) start at one place, kept in a table of nine rows per tile. Every run of
tiles is closed by an empty tile at both ends. A place without a mass has no springs and no weight, so what lies
beyond a run's end is read but never counts. Cost follows the organ's volume: empty tiles are stored, never computed.

That makes every access of the inner loop contiguous (vector loads on cpu, coalesced on cuda) without a neighbour index
per spring; docs/decisions/002-lattice-storage.md compares it with neighbour tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.tissue.springs import ROWS

TILE = 16
"""Places per tile: one AVX-512 register of float32, half a warp."""

WARP_TILES = 4
"""Tiles along x that a warp computes together, two masses per thread."""
BRICK = 4
"""Rows along y and z in a bundle of tiles that are computed together on cuda."""

_GUARD_TILES = 2
"""Empty tiles before and behind everything, so that no read leaves the arrays; tile 1 stands for
rows that do not exist."""


@dataclass(frozen=True)
class Layout:
    slots: int
    """Places in each array, empty ones included."""
    slot_of_node: NDArray[np.int32]
    """Place of each mass, shape (masses,)."""
    tile_slot: NDArray[np.int32]
    """First place of each tile that holds a mass, shape (tiles,)."""
    tile_cell: NDArray[np.int32]
    """Integer lattice position of that place, shape (tiles, 3)."""
    rows: NDArray[np.int32]
    """First place of the neighbouring row r of each tile, shape (tiles, 9)."""


def make_layout(nodes: NDArray[np.int32], bricks: bool = False) -> Layout:
    """Lays out masses at these integer positions, shape (masses, 3), no two alike.

    With `bricks`, tiles are listed in bundles of `BRICK` × `BRICK` rows instead of row by row: what lies in memory does
    not change, but a block of threads on cuda then reads fewer neighbouring rows for the rows it owns.
    """
    if len(nodes) == 0:
        raise InputError("the lattice has no masses.", "Use a finer spacing or a larger organ.")
    low = nodes.min(axis=0).astype(np.int64)
    relative = nodes.astype(np.int64) - low
    tile_of_node = relative.copy()
    tile_of_node[:, 0] //= TILE
    # One free tile column on the left and right, one free row around: keys of neighbours stay distinct.
    extent = tile_of_node.max(axis=0) + 1
    size = extent + 4

    def key(tile: NDArray[np.int64]) -> NDArray[np.int64]:
        shifted = tile + 2
        return (shifted[..., 2] * size[1] + shifted[..., 1]) * size[0] + shifted[..., 0]

    node_key = key(tile_of_node)
    occupied = np.unique(node_key)
    allocated = np.unique(np.concatenate([occupied - 1, occupied, occupied + 1]))

    def tile_index(keys: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.minimum(np.searchsorted(allocated, keys), len(allocated) - 1)
        return np.where(allocated[at] == keys, at + _GUARD_TILES, 1)

    slot_of_node = tile_index(node_key) * TILE + relative[:, 0] % TILE
    if np.bincount(slot_of_node).max() > 1:
        raise InputError("two masses of the lattice share one position.", "Give each integer position once.")
    rows = np.stack([tile_index(occupied + z * size[1] * size[0] + y * size[0]) * TILE for y, z in ROWS], axis=1)
    tile_cell = np.stack(
        [
            (occupied % size[0] - 2) * TILE + low[0],
            occupied // size[0] % size[1] - 2 + low[1],
            occupied // (size[0] * size[1]) - 2 + low[2],
        ],
        axis=1,
    )
    if bricks:
        x, y, z = (tile_cell - low).T
        run = TILE * WARP_TILES
        order = np.lexsort((x % run, y % BRICK, z % BRICK, x // run, y // BRICK, z // BRICK))
        occupied, rows, tile_cell = occupied[order], rows[order], tile_cell[order]
    slots = (len(allocated) + 2 * _GUARD_TILES) * TILE
    if slots * 13 > 2**31 - 1:
        raise InputError(
            f"a lattice of {len(nodes):,} masses is too large for 32-bit places.",
            "Use a coarser spacing or several slabs.",
        )
    return Layout(
        slots=int(slots),
        slot_of_node=slot_of_node.astype(np.int32),
        tile_slot=(tile_index(occupied) * TILE).astype(np.int32),
        tile_cell=tile_cell.astype(np.int32),
        rows=rows.astype(np.int32),
    )
