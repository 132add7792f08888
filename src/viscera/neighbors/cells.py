"""What a solver's kernel needs from the neighbour grid: the cell of a point, and the ranges of its neighbours.

Every kernel that visits neighbours has this form, in 2D and in 3D. `s` and `t` are places in the sorted arrays:

    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = position[s]
    cell = cell_of(grid, here)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            offset = position[t] - here
            if wp.dot(offset, offset) < radius * radius:
                ...

The particle itself (t == s) is among its neighbours. All particles within the radius come, each once, in the same order
on every run and device; farther ones come too, so the kernel tests the distance. `here` may be any point, also one that
is no particle or lies outside the box.
"""

from __future__ import annotations

import warp as wp

from viscera.neighbors.hashed import bucket_of, hashed_cell

wp.set_module_options({"enable_backward": False})


@wp.struct
class GridView:
    """The grid as kernels read it. A 2D grid is a 3D grid with one layer of cells."""

    lower: wp.vec3
    """Lower corner of the box [m]."""
    cells_per_length: float
    """One over the side of a cell [1/m]."""
    cells_x: int
    cells_y: int
    cells_z: int
    rows: int
    """Rows of three cells around a point: 9 in 3D, 3 in 2D. In a hashed grid, cells: 27 or 9."""
    layer: int
    """Layers below a cell's own that may hold neighbours: 1 in 3D, 0 in 2D."""
    lost: int
    """Index of the place for positions that are not finite, one past the last cell."""
    capacity: int
    count: wp.array(dtype=wp.int32)
    """How many particles there are; shape (1,)."""
    cell_start: wp.array(dtype=wp.int32)
    """Where each cell begins in the sorted arrays; shape (cells + 2,). The lost particles are the last two's range."""
    buckets: int
    """0, or the number of buckets of a hashed grid (hashed.py): they stand for cells then, and there is no box."""


@wp.func
def particle_count(grid: GridView) -> int:
    """How many particles there are, at most what the grid has room for."""
    return wp.min(grid.count[0], grid.capacity)


@wp.func
def sorted_count(grid: GridView) -> int:
    """How many particles lie in cells: those whose position is finite. They come first in the sorted arrays."""
    return grid.cell_start[grid.lost]


@wp.func
def coordinate(scaled: float, cells: int) -> int:
    """Index of the cell along one axis, clamped to the box. NaN gives 0, so that no index is ever outside."""
    index = wp.int32(0)
    if scaled > 0.0:
        index = int(wp.min(scaled, float(cells - 1)))
    return index


# Warp keeps both of these and takes the one that fits; pyright knows the second.
@wp.func
def cell_of(grid: GridView, point: wp.vec2) -> wp.vec3i:  # pyright: ignore[reportRedeclaration]
    return cell_of(grid, wp.vec3(point[0], point[1], grid.lower[2]))


@wp.func
def cell_of(grid: GridView, point: wp.vec3) -> wp.vec3i:  # noqa: F811
    """The cell of a point; of a point outside the box, the nearest cell."""
    scaled = (point - grid.lower) * grid.cells_per_length
    if grid.buckets > 0:
        return hashed_cell(scaled)
    return wp.vec3i(
        coordinate(scaled[0], grid.cells_x), coordinate(scaled[1], grid.cells_y), coordinate(scaled[2], grid.cells_z)
    )


@wp.func
def row_range(grid: GridView, cell: wp.vec3i, row: int):
    """Sorted places [begin, end) of the particles in row `row` around `cell`: up to three cells along x, or the bucket
    of one cell, which may hold others' particles too."""
    if grid.buckets > 0:
        wanted = cell + wp.vec3i(row % 3 - 1, (row // 3) % 3 - 1, row // 9 - grid.layer)
        b = bucket_of(grid.buckets, wanted)
        return grid.cell_start[b], grid.cell_start[b + 1]
    y = cell[1] + row % 3 - 1
    z = cell[2] + row // 3 - grid.layer
    begin = wp.int32(0)
    end = wp.int32(0)
    if y >= 0 and y < grid.cells_y and z >= 0 and z < grid.cells_z:
        left = (z * grid.cells_y + y) * grid.cells_x
        begin = grid.cell_start[left + wp.max(cell[0] - 1, 0)]
        end = grid.cell_start[left + wp.min(cell[0] + 1, grid.cells_x - 1) + 1]
    return begin, end


@wp.func
def cell_index(grid: GridView, cell: wp.vec3i) -> int:
    """Cells are numbered along x first, so that three neighbours along x are one range."""
    if grid.buckets > 0:
        return bucket_of(grid.buckets, cell)
    return (cell[2] * grid.cells_y + cell[1]) * grid.cells_x + cell[0]
