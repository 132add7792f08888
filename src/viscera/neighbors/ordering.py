"""Sorting particles by (cell, id): the order is the same however the threads run.

A counting sort: count the particles of each cell, add up the counts, put each particle into its cell's range. What is
left is the order inside a cell, where `id` is the index in the caller's arrays.

On `cpu` one core goes through the particles in the order of their ids, so each cell is filled in that order.

On `cuda` threads draw tickets for the places of their cell, in no particular order. Then each particle's place is its
cell's begin plus the number of smaller ids in the cell. A usual cell holds about seven particles, and counting them is
quick. But that is quadratic, so in a cell of more than `CROWD` particles they are counted through buckets: with m of n
particles in the cell, id i belongs to bucket floor(i·m / n) of m. Buckets grow with the id, so the place is the number
of particles in the buckets before (summed in blocks of `BLOCK` buckets), plus the smaller ids in the own bucket. Ids
are distinct, so a bucket holds at most ⌈n/m⌉ of them, and never more than m: at most about √n, also when all particles
share one cell.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.neighbors.cells import GridView, cell_index, cell_of, particle_count

wp.set_module_options({"enable_backward": False})

CROWD = wp.constant(128)
"""A cell with more particles than this is ordered through buckets."""

BLOCK = wp.constant(1024)
"""Buckets per block, near √n for a million particles, where both sums are equally long."""

GATHERED = (wp.float32, wp.int32, wp.vec2, wp.vec3, wp.vec4)
"""Types of values that can be brought from one order into the other."""


@wp.struct
class Crowd:
    """Room for ordering crowded cells. Bucket b of the cell that begins at s is place s + b in these arrays."""

    bucket_count: wp.array(dtype=wp.int32)
    """Particles per bucket; shape (capacity,)."""
    block_count: wp.array(dtype=wp.int32)
    """Particles per block of buckets; shape (capacity // BLOCK + 1,)."""
    newest: wp.array(dtype=wp.int32)
    """The particle that came last into a bucket, -1 for none; shape (capacity,)."""
    earlier: wp.array(dtype=wp.int32)
    """The particle that came into the bucket before this one, -1 for none; shape (capacity,)."""
    seen: wp.array(dtype=wp.int32)
    """Not zero while this build has found a crowded cell; shape (1,)."""
    dirty: wp.array(dtype=wp.int32)
    """Not zero when the build before has left counts behind; shape (1,)."""


@wp.func
def sort_index(grid: GridView, point: Any) -> int:
    """Index of the point's cell, or of the place for lost particles."""
    index = grid.lost
    if wp.isfinite(point):
        index = cell_index(grid, cell_of(grid, point))
    return index


# --- one core, in the order of ids -------------------------------------------------------------------------------


@wp.kernel
def find_cells(
    first: int,
    # params
    grid: GridView,
    # in
    positions: wp.array[Any],
    # out
    cell_out: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    if i < particle_count(grid):
        cell_out[i] = sort_index(grid, positions[i])


# A grid often has many more cells than particles: what costs then is going through the cells. They are cleared in
# vectors and summed once, since counts of cell c stand at c + 2: after the sum, entry c + 1 is where cell c begins, and
# after drawing, where it ends.
_SORT = """
const int cells = grid.lost;
const int* cell_of = cell.data;
int* at = cell_start.data;
int* order = original.data;
int count = grid.count.data[0];
if (count > grid.capacity) count = grid.capacity;
for (int k = 0; k < cells + 2; ++k) at[k] = 0;
int lost = 0;
for (int i = 0; i < count; ++i) {
    const int c = cell_of[i];
    if (c < cells) ++at[c + 2]; else ++lost;
}
int sum = 0;
for (int k = 2; k < cells + 2; ++k) { sum += at[k]; at[k] = sum; }
int after = count - lost;
for (int i = 0; i < count; ++i) {
    const int c = cell_of[i];
    if (c < cells) order[at[c + 1]++] = i; else order[after++] = i;
}
at[cells + 1] = count;
"""


@wp.func_native(_SORT)
def sort_by_cell(
    grid: GridView,
    cell: wp.array(dtype=wp.int32),
    cell_start: wp.array(dtype=wp.int32),
    original: wp.array(dtype=wp.int32),
): ...


@wp.kernel
def sort_in_order(
    # params
    grid: GridView,
    # in
    cell: wp.array(dtype=wp.int32),
    # out
    cell_start_out: wp.array(dtype=wp.int32),
    original_out: wp.array(dtype=wp.int32),
):
    """Launched once, as one thread: the loop over ids is what makes the order stable."""
    sort_by_cell(grid, cell, cell_start_out, original_out)


@wp.kernel
def copy_sorted(
    first: int,
    # params
    grid: GridView,
    # in
    original: wp.array(dtype=wp.int32),
    positions: wp.array[Any],
    # out
    slot_out: wp.array(dtype=wp.int32),
    position_out: wp.array[Any],
):
    s = first + wp.tid()
    if s < particle_count(grid):
        i = original[s]
        slot_out[i] = s
        position_out[s] = positions[i]


# --- many threads, in any order ----------------------------------------------------------------------------------


@wp.kernel
def draw_tickets(
    first: int,
    # params
    grid: GridView,
    # in
    positions: wp.array[Any],
    # out
    cell_count_out: wp.array(dtype=wp.int32),
    cell_out: wp.array(dtype=wp.int32),
    ticket_out: wp.array(dtype=wp.int32),
    crowd_out: Crowd,
):
    """`cell_count_out` starts as zeros. Clearing what crowded cells left behind here saves two launches."""
    i = first + wp.tid()
    if crowd_out.dirty[0] != 0:
        crowd_out.bucket_count[i] = 0
        crowd_out.newest[i] = -1
        if i % BLOCK == 0:
            crowd_out.block_count[i // BLOCK] = 0
    if i < particle_count(grid):
        k = sort_index(grid, positions[i])
        cell_out[i] = k
        ticket_out[i] = wp.atomic_add(cell_count_out, k, 1)


@wp.func
def bucket_of(begin: int, size: int, i: int, count: int) -> int:
    return begin + wp.int32(wp.int64(i) * wp.int64(size) // wp.int64(count))


@wp.kernel
def take_places(
    first: int,
    # params
    grid: GridView,
    # in
    cell: wp.array(dtype=wp.int32),
    ticket: wp.array(dtype=wp.int32),
    # out
    listed_out: wp.array(dtype=wp.int32),
    crowd_out: Crowd,
):
    i = first + wp.tid()
    count = particle_count(grid)
    if i < count:
        k = cell[i]
        begin = grid.cell_start[k]
        size = grid.cell_start[k + 1] - begin
        listed_out[begin + ticket[i]] = i
        if size > CROWD:
            b = bucket_of(begin, size, i, count)
            wp.atomic_add(crowd_out.bucket_count, b, 1)
            wp.atomic_add(crowd_out.block_count, b // BLOCK, 1)
            crowd_out.earlier[i] = wp.atomic_exch(crowd_out.newest, b, i)
            crowd_out.seen[0] = 1


@wp.func
def particles_in_buckets(crowd: Crowd, begin: int, end: int) -> int:
    """Particles in buckets [begin, end). Whole blocks between the two belong to the same cell."""
    total = wp.int32(0)
    first_block = (begin + BLOCK - 1) // BLOCK
    last_block = end // BLOCK
    if first_block >= last_block:
        for b in range(begin, end):
            total += crowd.bucket_count[b]
    else:
        for b in range(begin, first_block * BLOCK):
            total += crowd.bucket_count[b]
        for block in range(first_block, last_block):
            total += crowd.block_count[block]
        for b in range(last_block * BLOCK, end):
            total += crowd.bucket_count[b]
    return total


@wp.func
def rank_in_crowd(crowd: Crowd, begin: int, size: int, i: int, count: int) -> int:
    b = bucket_of(begin, size, i, count)
    rank = particles_in_buckets(crowd, begin, b)
    other = crowd.newest[b]
    while other >= 0:
        if other < i:
            rank += 1
        other = crowd.earlier[other]
    return rank


@wp.kernel
def order_cells(
    first: int,
    # params
    grid: GridView,
    # in
    listed: wp.array(dtype=wp.int32),
    positions: wp.array[Any],
    # out
    cell_count_out: wp.array(dtype=wp.int32),
    crowd_out: Crowd,
    original_out: wp.array(dtype=wp.int32),
    slot_out: wp.array(dtype=wp.int32),
    position_out: wp.array[Any],
):
    """One thread per place and not per id: its reads and writes stay in its cell. Leaves `cell_count_out` as zeros."""
    place = first + wp.tid()
    if place == 0:
        crowd_out.dirty[0] = crowd_out.seen[0]
        crowd_out.seen[0] = 0
    count = particle_count(grid)
    if place < count:
        i = listed[place]
        point = positions[i]
        k = sort_index(grid, point)
        begin = grid.cell_start[k]
        end = grid.cell_start[k + 1]
        rank = wp.int32(0)
        if end - begin > CROWD:
            rank = rank_in_crowd(crowd_out, begin, end - begin, i, count)
        else:
            for other in range(begin, end):
                if listed[other] < i:
                    rank += 1
        cell_count_out[k] = 0
        original_out[begin + rank] = i
        slot_out[i] = begin + rank
        position_out[begin + rank] = point


# --- other arrays ------------------------------------------------------------------------------------------------


@wp.kernel
def gather(
    first: int,
    # params
    grid: GridView,
    # in
    index: wp.array(dtype=wp.int32),
    values: wp.array[Any],
    # out
    gathered_out: wp.array[Any],
):
    k = first + wp.tid()
    if k < particle_count(grid):
        gathered_out[k] = values[index[k]]


@wp.kernel
def split_axes_2d(
    first: int,
    # params
    grid: GridView,
    # in
    position: wp.array(dtype=wp.vec2),
    # out
    x_out: wp.array(dtype=float),
    y_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < particle_count(grid):
        point = position[s]
        x_out[s] = point[0]
        y_out[s] = point[1]


@wp.kernel
def split_axes_3d(
    first: int,
    # params
    grid: GridView,
    # in
    position: wp.array(dtype=wp.vec3),
    # out
    x_out: wp.array(dtype=float),
    y_out: wp.array(dtype=float),
    z_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < particle_count(grid):
        point = position[s]
        x_out[s] = point[0]
        y_out[s] = point[1]
        z_out[s] = point[2]


# Every type that is launched is named here, so that loading the module compiles it all at once.
for _vector in (wp.vec2, wp.vec3):
    _points = wp.array(dtype=_vector)
    wp.overload(find_cells, {"positions": _points})
    wp.overload(copy_sorted, {"positions": _points, "position_out": _points})
    wp.overload(draw_tickets, {"positions": _points})
    wp.overload(order_cells, {"positions": _points, "position_out": _points})
for _value in GATHERED:
    wp.overload(gather, {"values": wp.array(dtype=_value), "gathered_out": wp.array(dtype=_value)})
