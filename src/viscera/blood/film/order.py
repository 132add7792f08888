"""Taking in, sorting and arranging on cuda in three launches and a scan: the order of `neighbors.ordering`, fused.

The general grid sorts in four launches, and the film's own two around it read and write the same numbers again. Here
`take_in_and_draw` draws a particle's ticket where it computes its place, and `order_and_arrange` carries a particle to
its sorted place where it finds it. Particles that go draw no ticket: they are counted at once and stand nowhere, where
the general sort would put them all into one cell and order that (with a thousand going per step, a third of the step).

Order inside a cell is by id, as everywhere: tickets decide nothing. A cell of more than `CROWD` particles counts ids
in `ordering`'s buckets. Not for springs, which need the old place of every particle.
"""

# ruff: noqa: PLR0913

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.blood.film.kernels import Home, Waiting, place_of, put_in_order, receive
from viscera.blood.film.obstacles import Sheeted
from viscera.blood.film.pairs import Carried, FilmView, Rates, Sorted
from viscera.blood.film.state import STAYS, WAITING
from viscera.blood.film.walk import WalkView
from viscera.device import Stage
from viscera.errors import InputError
from viscera.neighbors.cells import GridView, cell_index, cell_of
from viscera.neighbors.ordering import BLOCK, CROWD, Crowd, bucket_of, rank_in_crowd

wp.set_module_options({"enable_backward": False})


@wp.kernel
def take_in_and_draw(
    first: int,
    # params
    view: FilmView,
    grid: GridView,
    # in
    surface: WalkView,
    queue: Waiting,
    # out
    home_out: Home,
    staged_out: wp.array(dtype=wp.int32),
    cell_count_out: wp.array(dtype=wp.int32),
    cell_out: wp.array(dtype=wp.int32),
    ticket_out: wp.array(dtype=wp.int32),
    crowd_out: Crowd,
):
    """`cell_count_out` starts as zeros; what crowded cells left behind is cleared here."""
    i = first + wp.tid()
    if crowd_out.dirty[0] != 0:
        crowd_out.bucket_count[i] = 0
        crowd_out.newest[i] = -1
        if i % BLOCK == 0:
            crowd_out.block_count[i // BLOCK] = 0
    held = home_out.count[0]
    staged = wp.min(held + queue.count[0], view.capacity)
    if i == 0:
        staged_out[0] = staged
    if i < staged:
        if i >= held:
            receive(queue, home_out, i, queue.count[0] - (staged - held) + (i - held))
        point = place_of(view, surface, home_out, i)
        fate = home_out.fate[i]
        k = grid.lost
        if fate == STAYS:
            k = cell_index(grid, cell_of(grid, point))
            ticket_out[i] = wp.atomic_add(cell_count_out, k, 1)
        else:
            wp.atomic_add(home_out.gone_count, fate, wp.int64(1))
            wp.atomic_add(home_out.gone_volume, fate, wp.int64(home_out.volume[i]))
        cell_out[i] = k


@wp.kernel
def take_places(
    first: int,
    # params
    grid: GridView,
    # in
    staged: wp.array(dtype=wp.int32),
    cell: wp.array(dtype=wp.int32),
    ticket: wp.array(dtype=wp.int32),
    # out
    listed_out: wp.array(dtype=wp.int32),
    crowd_out: Crowd,
):
    i = first + wp.tid()
    if i < staged[0]:
        k = cell[i]
        if k < grid.lost:
            begin = grid.cell_start[k]
            size = grid.cell_start[k + 1] - begin
            listed_out[begin + ticket[i]] = i
            if size > CROWD:
                b = bucket_of(begin, size, i, staged[0])
                wp.atomic_add(crowd_out.bucket_count, b, 1)
                wp.atomic_add(crowd_out.block_count, b // BLOCK, 1)
                crowd_out.earlier[i] = wp.atomic_exch(crowd_out.newest, b, i)
                crowd_out.seen[0] = 1


@wp.kernel
def order_and_arrange(
    first: int,
    # params
    view: FilmView,
    grid: GridView,
    # in
    rates: wp.array(dtype=Rates),
    surface: WalkView,
    sheet: Sheeted,
    staged: wp.array(dtype=wp.int32),
    listed: wp.array(dtype=wp.int32),
    cell: wp.array(dtype=wp.int32),
    # out
    cell_count_out: wp.array(dtype=wp.int32),
    crowd_out: Crowd,
    queue_out: Waiting,
    home_out: Home,
    film_out: Sorted,
    cargo_out: Carried,
):
    """One thread per place: its reads and writes stay in its cell. Leaves `cell_count_out` as zeros."""
    place = first + wp.tid()
    live = grid.cell_start[grid.lost]
    if place == 0:
        crowd_out.dirty[0] = crowd_out.seen[0]
        crowd_out.seen[0] = 0
        left = queue_out.count[0] - (staged[0] - home_out.count[0])
        queue_out.count[0] = left
        home_out.status[WAITING] = left
        home_out.count[0] = live
        film_out.count[0] = live
    if place < live:
        i = listed[place]
        k = cell[i]
        begin = grid.cell_start[k]
        end = grid.cell_start[k + 1]
        rank = wp.int32(0)
        if end - begin > CROWD:
            rank = rank_in_crowd(crowd_out, begin, end - begin, i, staged[0])
        else:
            for other in range(begin, end):
                if listed[other] < i:
                    rank += 1
        cell_count_out[k] = 0
        put_in_order(view, rates[0], surface, sheet, home_out, i, film_out, cargo_out, begin + rank)


def take_in_order(stage: Stage, film: Any) -> None:
    """What waits comes in, what goes is counted, the rest stands sorted in `film.sorted`."""
    if stage.cores > 1:
        # Warp's atomics on cpu are plain additions: two cores would lose counts.
        raise InputError("this order works on one core only.", "Leave the film's `fused` as it was made.")
    view, grid, n = film.view, film.grid, film.view.capacity
    tickets, order = [grid.cell_count, grid.cell, grid.ticket, grid.crowd], [film.rates, film.walk, film.maps]
    places = [film.staged, grid.cell, grid.ticket, grid.listed, grid.crowd]
    found = [film.staged, grid.listed, grid.cell, grid.cell_count, grid.crowd]
    out = [film.waiting, film.home, film.sorted, film.cargo]
    stage.launch(take_in_and_draw, n, [view, grid.view, film.walk, film.waiting, film.home, film.staged, *tickets])
    stage.once(lambda: wp.utils.array_scan(grid.cell_count, grid.cell_start, inclusive=False))
    stage.launch(take_places, n, [grid.view, *places])
    stage.launch(order_and_arrange, n, [view, grid.view, *order, *found, *out])
