"""The document's two ways of finding neighbours: linked lists (§3.7.2) and spatial binning (§3.7.1).

Particles stay in their order; a bucket is a cell of the grid. In a linked list, `head` holds the first particle of a
bucket and `following[i]` the one after particle i. In bins, layer n of a bucket holds its particle number n, lowest
first; each layer is one pass in which every particle that is above the one in the layer before competes by its number.

Differs from the source: cells are clamped at the box's sides (as in the sorted grid), not wrapped; lists are put in
rising order after they are built, since atomics link them in any order and sums would differ from run to run; a bucket
that runs out of layers says so (`FilmState.status`).
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046
# Kernels compute both sides of `and`, so tests that guard each other are nested.
# ruff: noqa: SIM114

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.blood.film.pairs import FilmView, Sorted
from viscera.blood.film.state import BUCKET_OVERFLOW
from viscera.device import Device, Stage
from viscera.neighbors.cells import GridView, cell_index, cell_of, row_range

wp.set_module_options({"enable_backward": False})

NOBODY = wp.constant(2147483647)
"""Above every particle's number: an empty place of a layer."""


SORTED = wp.constant(0)
LINKED = wp.constant(1)
BINNED = wp.constant(2)


@wp.struct
class Search:
    """One way to find neighbours. A cursor stands for a place in it; `start_at`, `particle` and `onward` know which."""

    kind: int
    parts: int
    """Ranges, lists or stacks around a point: rows of the sorted grid, else buckets."""
    layers: int
    """Of the bins."""
    cells: int
    grid: GridView
    head: wp.array(dtype=wp.int32)
    """First of each bucket's list, −1 for none, shape (cells,); in bins the layers, shape (layers · cells,)."""
    following: wp.array(dtype=wp.int32)
    """The one after, −1 for none, shape (capacity,)."""


@wp.func
def start_at(search: Search, cell: wp.vec3i, c: int):
    """First cursor of part `c` around a cell, and the cursor that ends it."""
    begin = int(-1)
    end = int(-1)
    grid = search.grid
    if search.kind == SORTED:
        begin, end = row_range(grid, cell, c)
    else:
        x = cell[0] + c % 3 - 1
        y = cell[1] + (c // 3) % 3 - 1
        z = cell[2] + c // 9 - grid.layer
        if x >= 0 and x < grid.cells_x and y >= 0 and y < grid.cells_y and z >= 0 and z < grid.cells_z:
            bucket = cell_index(grid, wp.vec3i(x, y, z))
            first = search.head[bucket]
            if search.kind == LINKED:
                begin = first
            elif first != NOBODY:
                begin = bucket
    return begin, end


@wp.func
def particle(search: Search, cursor: int) -> int:
    t = cursor
    if search.kind == BINNED:
        t = search.head[cursor]
    return t


@wp.func
def onward(search: Search, cursor: int) -> int:
    following = cursor + 1
    if search.kind == LINKED:
        following = search.following[cursor]
    elif search.kind == BINNED:
        following = cursor + search.cells
        if following >= search.layers * search.cells:
            following = -1
        elif search.head[following] == NOBODY:
            following = -1
    return following


@wp.func
def bucket_of(view: FilmView, grid: GridView, film: Sorted, s: int) -> int:
    point = wp.vec3(film.x[s], film.y[s], 0.0)
    if view.on_surface != 0:
        point[2] = film.z[s]
    return cell_index(grid, cell_of(grid, point))


# --- counting who stays ----------------------------------------------------------------------------------------------


@wp.kernel
def mark_staying(
    first: int,
    # params
    capacity: int,
    # in
    staged: wp.array(dtype=wp.int32),
    fate: wp.array(dtype=wp.int32),
    # out
    flag_out: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    stays = int(0)
    if i < staged[0] and fate[i] == 0:
        stays = 1
    flag_out[i] = stays


@wp.kernel
def close_ranks(
    first: int,
    # params
    capacity: int,
    # in
    staged: wp.array(dtype=wp.int32),
    flag: wp.array(dtype=wp.int32),
    upto: wp.array(dtype=wp.int32),
    # out
    original_out: wp.array(dtype=wp.int32),
    slot_out: wp.array(dtype=wp.int32),
):
    """`upto` counts who stays, the particle itself included. Who goes comes after them."""
    i = first + wp.tid()
    if i < staged[0]:
        before = upto[i] - flag[i]
        place = before
        if flag[i] == 0:
            place = upto[capacity - 1] + i - before
        original_out[place] = i
        slot_out[i] = place


# --- building --------------------------------------------------------------------------------------------------------


@wp.kernel
def link(
    first: int,
    # params
    view: FilmView,
    # in
    film: Sorted,
    # out
    search_out: Search,
):
    s = first + wp.tid()
    if s < film.count[0]:
        b = bucket_of(view, search_out.grid, film, s)
        search_out.following[s] = wp.atomic_exch(search_out.head, b, s)


@wp.kernel
def order_lists(
    first: int,
    # out
    search_out: Search,
):
    """Puts each list in rising order, by inserting one after the other into a new list."""
    b = first + wp.tid()
    begin = int(-1)
    t = search_out.head[b]
    while t >= 0:
        following = search_out.following[t]
        before = int(-1)
        after = int(begin)
        while after >= 0 and after < t:
            before = after
            after = search_out.following[after]
        search_out.following[t] = after
        if before < 0:
            begin = t
        else:
            search_out.following[before] = t
        t = following
    search_out.head[b] = begin


@wp.kernel
def fill_layer(
    first: int,
    # params
    view: FilmView,
    layer: int,
    # in
    film: Sorted,
    # out
    search_out: Search,
):
    s = first + wp.tid()
    if s < film.count[0]:
        b = bucket_of(view, search_out.grid, film, s)
        waits = bool(layer == 0)
        if layer > 0:
            waits = bool(search_out.head[(layer - 1) * search_out.cells + b] < s)
        if waits:
            wp.atomic_min(search_out.head, layer * search_out.cells + b, s)


@wp.kernel
def find_overflow(
    first: int,
    # params
    view: FilmView,
    # in
    film: Sorted,
    search: Search,
    # out
    status_out: wp.array(dtype=wp.int32),
):
    s = first + wp.tid()
    if s < film.count[0]:
        b = bucket_of(view, search.grid, film, s)
        if search.head[(search.layers - 1) * search.cells + b] < s:
            status_out[BUCKET_OVERFLOW] = 1


def make_search(kind: str, capacity: int, grid: Any, layers: int, device: Device) -> Any:
    """`grid` is the view of the sorted grid; linked lists and bins use its cells."""
    search: Any = Search()
    search.kind = {"grid": int(SORTED), "linked": int(LINKED), "binned": int(BINNED)}[kind]
    search.parts = grid.rows if kind == "grid" else 3 * grid.rows
    search.layers = layers if kind == "binned" else 1
    search.cells = grid.lost
    search.grid = grid
    search.head = wp.full(0 if kind == "grid" else search.layers * search.cells, -1, dtype=wp.int32, device=device.warp)
    search.following = wp.full(capacity if kind == "linked" else 0, -1, dtype=wp.int32, device=device.warp)
    return search


def build_buckets(stage: Stage, view: Any, film: Any, search: Any, status: Any) -> None:
    """Atomics on cpu are plain operations there, so one core builds while the others wait."""
    n, warp = view.capacity, stage.device.warp
    empty = -1 if search.kind == int(LINKED) else int(NOBODY)
    stage.once(lambda: search.head.fill_(empty))
    if search.kind == int(LINKED):
        stage.once(lambda: wp.launch(link, dim=n, inputs=[0, view, film, search], device=warp))
        stage.launch(order_lists, search.cells, [search])
        return
    for layer in range(search.layers):
        args = [0, view, layer, film, search]
        stage.once(lambda args=args: wp.launch(fill_layer, dim=n, inputs=args, device=warp))
    stage.launch(find_overflow, n, [view, film, search, status])
