"""The hashed grid: cells without a box, found through a table of buckets (Grahn §4.1.2).

    (i, j, k) = ⌊x / l⌋,      bucket = (i·p₀ + j·p₁ + k·p₂) mod N,      p = 73856093, 19349663, 83492791

The primes are those of Teschner et al. 2003. Particles are sorted by bucket, stably, so inside a bucket they lie in the
order of their ids and results are the same on every run. It answers the same question as `grid` and exists because the
document compares it; it needs no box, but visits 27 buckets (9 in 2D) where the sorted grid reads 9 ranges (3).

Loops have this form; `s` and `t` are sorted places:

    here = position[s]
    cell = hashed_cell(table, here)
    for k in range(table.cells):
        wanted = cell + neighbour(table, k)
        begin, end = bucket_range(table, wanted)
        for t in range(begin, end):
            if same_cell(hashed_cell(table, position[t]), wanted):
                ...                                         # each particle within the radius comes once

Differs from the source in: floor, so that cells beside 0 are not twice as wide; a modulo that is never negative; and
the cell itself is compared, else two cells in one bucket would each count the other's particles, and a bucket that
two of the 27 cells share would count its own twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.neighbors.grid import CAPACITY_LIMIT, SMALLEST_RADIUS

wp.set_module_options({"enable_backward": False})

PRIMES = (73856093, 19349663, 83492791)
_P0, _P1, _P2 = (wp.constant(wp.uint32(p)) for p in PRIMES)

BUCKETS_PER_PARTICLE = 2
"""Fewer collisions with more; Grahn: "it is often wise to start with a large hash table"."""

FARTHEST = wp.constant(1.0e9)
"""Cells from the origin at which indices are cut off, so that they fit into 32 bits."""


@wp.struct
class HashedView:
    """The table as kernels read it."""

    cells_per_length: float
    """1/l [1/m]"""
    buckets: int
    cells: int
    """Cells around a point: 27 in 3D, 9 in 2D."""
    layer: int
    """Layers below: 1 in 3D, 0 in 2D."""
    capacity: int
    count: wp.array(dtype=wp.int32)
    """How many particles there are; shape (1,)."""
    bucket_start: wp.array(dtype=wp.int32)
    """Where each bucket begins in the sorted arrays; shape (buckets + 2,). The last is for what is not finite."""


@dataclass
class HashedGrid:
    """Made by `make_hashed`; arrays are in sorted order."""

    device: Device
    view: HashedView
    original: wp.array
    """Sorted place → index in the caller's arrays, int32, shape (2·capacity,): the sort needs room."""
    position: wp.array
    """Sorted positions [m], vec3, shape (capacity,)."""
    bucket: wp.array
    """Sorted bucket numbers, int32, shape (2·capacity,)."""


@wp.func
def hashed_cell(table: HashedView, point: wp.vec3) -> wp.vec3i:
    """⌊x / l⌋"""
    scaled = point * table.cells_per_length
    return wp.vec3i(
        int(wp.clamp(wp.floor(scaled[0]), -FARTHEST, FARTHEST)),
        int(wp.clamp(wp.floor(scaled[1]), -FARTHEST, FARTHEST)),
        int(wp.clamp(wp.floor(scaled[2]), -FARTHEST, FARTHEST)),
    )


@wp.func
def bucket_of(table: HashedView, cell: wp.vec3i) -> int:
    """Unsigned, so products wrap and the modulo is never negative."""
    hashed = wp.uint32(cell[0]) * _P0 + wp.uint32(cell[1]) * _P1 + wp.uint32(cell[2]) * _P2
    return int(hashed % wp.uint32(table.buckets))


@wp.func
def neighbour(table: HashedView, k: int) -> wp.vec3i:
    """Offset of cell k of those around a cell."""
    return wp.vec3i(k % 3 - 1, (k // 3) % 3 - 1, k // 9 - table.layer)


@wp.func
def bucket_range(table: HashedView, cell: wp.vec3i):
    """Sorted places [begin, end) of the bucket of a cell; other cells may share it."""
    b = bucket_of(table, cell)
    return table.bucket_start[b], table.bucket_start[b + 1]


@wp.func
def same_cell(a: wp.vec3i, b: wp.vec3i) -> bool:
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2]


@wp.func
def hashed_count(table: HashedView) -> int:
    """How many particles lie in buckets: those whose position is finite."""
    return table.bucket_start[table.buckets]


@wp.kernel
def find_buckets(
    first: int,
    # params
    table: HashedView,
    # in
    positions: wp.array(dtype=wp.vec3),
    # out
    bucket_out: wp.array(dtype=wp.int32),
    original_out: wp.array(dtype=wp.int32),
):
    """Those that are not finite come after all buckets, and places without a particle after those."""
    i = first + wp.tid()
    b = table.buckets + 1
    if i < wp.min(table.count[0], table.capacity):
        b = table.buckets
        if wp.isfinite(positions[i]):
            b = bucket_of(table, hashed_cell(table, positions[i]))
    bucket_out[i] = b
    original_out[i] = i


@wp.kernel
def find_starts(
    first: int,
    # params
    table: HashedView,
    # in
    bucket: wp.array(dtype=wp.int32),
    # out
    bucket_start_out: wp.array(dtype=wp.int32),
):
    """The first place whose bucket is b or later, by bisection: no pass over particles that writes gaps."""
    b = first + wp.tid()
    low = wp.int32(0)
    high = table.capacity
    while low < high:
        middle = (low + high) // 2
        if bucket[middle] < b:
            low = middle + 1
        else:
            high = middle
    bucket_start_out[b] = low


@wp.kernel
def copy_sorted(
    first: int,
    # params
    table: HashedView,
    # in
    original: wp.array(dtype=wp.int32),
    positions: wp.array(dtype=wp.vec3),
    # out
    position_out: wp.array(dtype=wp.vec3),
):
    s = first + wp.tid()
    if s < hashed_count(table):
        position_out[s] = positions[original[s]]


def make_hashed(
    capacity: int, radius: float, dimension: int, device: Device, *, buckets: int | None = None
) -> HashedGrid:
    """A table for up to `capacity` particles with neighbours within `radius` [m]; in 2D all z are 0."""
    if not 1 <= capacity <= CAPACITY_LIMIT:
        raise InputError(f"capacity is {capacity}; allowed are 1 to {CAPACITY_LIMIT} particles.", "Choose another.")
    if dimension not in (2, 3):
        raise InputError(f"dimension is {dimension}; allowed are 2 and 3.", "Choose 2 for a plane, 3 for space.")
    if not (np.isfinite(radius) and radius >= SMALLEST_RADIUS):
        raise InputError(f"radius is {radius:g} m.", f"It must be finite and at least {SMALLEST_RADIUS:g} m.")
    number = buckets if buckets is not None else BUCKETS_PER_PARTICLE * capacity
    if not 1 <= number <= CAPACITY_LIMIT:
        raise InputError(f"buckets is {number}; allowed are 1 to {CAPACITY_LIMIT}.", "Leave it out.")

    def integers(size: int) -> wp.array:
        return wp.zeros(size, dtype=wp.int32, device=device.warp)

    view = HashedView()
    # A cell a little wider than the radius: rounding of x/l then never puts a neighbour two cells away near the origin.
    view.cells_per_length = float(np.float32(1.0 / (radius * (1.0 + 1e-4))))
    view.buckets, view.cells, view.layer = number, 3**dimension, dimension - 2
    view.capacity = capacity
    view.count = wp.full(1, capacity, dtype=wp.int32, device=device.warp)
    view.bucket_start = integers(number + 2)
    position = wp.zeros(capacity, dtype=wp.vec3, device=device.warp)
    return HashedGrid(device, view, integers(2 * capacity), position, integers(2 * capacity))


def build(stage: Stage, table: HashedGrid, positions: wp.array) -> None:
    """Sort the particles at `positions` (vec3) by bucket."""
    view, n = table.view, table.view.capacity
    stage.launch(find_buckets, n, [view, positions, table.bucket, table.original])
    stage.once(lambda: wp.utils.radix_sort_pairs(table.bucket, table.original, n))
    stage.launch(find_starts, view.buckets + 2, [view, table.bucket, view.bucket_start])
    stage.launch(copy_sorted, n, [view, table.original, positions, table.position])
