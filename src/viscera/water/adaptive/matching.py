"""Who merges with whom: groups of n that nobody shares, and as many that no further group is possible.

Everyone who wishes to merge looks for the n − 1 nearest others of its size that wish it too and are still free. Two
neighbours lie in cells side by side, and so together in a cube of 2 × 2 × 2 cells. Cubes that begin at cells of the
same parity (x, y and z even or odd: 8 colours) share no cell, so their groups cannot conflict: they are made at once,
and the colours one after the other. Within a cube particles come in their sorted order. After all colours no free n of
one size within reach of their first are left in any cube; for n = 2 the matching is maximal.

On cpu one core does it, particle by particle, colour by colour, which is the same order in every cube, and so gives the
same groups. Nothing depends on threads.

Elmasdotter (§6.2) leaves this to the host, "as merging is not possible on the GPU without data race issues".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from viscera.device import BLOCK, Stage
from viscera.neighbors.cells import GridView, cell_of, sorted_count
from viscera.water.sizes import MOST_CHILDREN
from viscera.water.state import Fluid

wp.set_module_options({"enable_backward": False})

Members = wp.types.vector(length=MOST_CHILDREN, dtype=wp.int32)
Distances = wp.types.vector(length=MOST_CHILDREN, dtype=wp.float32)

MERGE = wp.constant(-1)
"""The wish to merge; splitting is 1, staying 0."""
FAR = wp.constant(1.0e30)
"""Square of a distance that none has [m²]."""


@wp.struct
class Merging:
    """What a matching reads and writes, in sorted order; a struct, since kernels hand it on as a whole."""

    children: int
    reach2: wp.array(dtype=float)
    """Square of the distance up to which particles of each size merge [m²]."""
    position: wp.array(dtype=wp.vec3)
    level: wp.array(dtype=wp.int32)
    wish: wp.array(dtype=wp.int32)
    leader: wp.array(dtype=wp.int32)
    """First member of one's group, itself there; -1 while free."""
    follower: wp.array(dtype=wp.int32)
    """Next member of the group, -1 at its last."""
    waiting: wp.array(dtype=wp.int32)
    """Those who wish to merge, in sorted order: few among all, so that only they are looked through."""
    ordinal: wp.array(dtype=wp.int32)
    """How many of them come up to and with each particle."""


@wp.func
def count_before(ordinal: wp.array(dtype=wp.int32), s: int) -> int:
    n = wp.int32(0)
    if s > 0:
        n = ordinal[s - 1]
    return n


@wp.func
def cube_row(grid: GridView, all: Merging, corner: wp.vec3i, row: int):
    """Places [begin, end) in the waiting list of row 0 … 3 of the cube of cells that begins at `corner`."""
    y = corner[1] + row % 2
    z = corner[2] + row // 2
    begin = wp.int32(0)
    end = wp.int32(0)
    if y >= 0 and y < grid.cells_y and z >= 0 and z < grid.cells_z:
        base = (z * grid.cells_y + y) * grid.cells_x
        begin = count_before(all.ordinal, grid.cell_start[base + wp.max(corner[0], 0)])
        end = count_before(all.ordinal, grid.cell_start[base + wp.min(corner[0] + 1, grid.cells_x - 1) + 1])
    return begin, end


@wp.func
def is_free(all: Merging, s: int) -> bool:
    return all.leader[s] < 0


@wp.func
def make_group(grid: GridView, all: Merging, s: int, corner: wp.vec3i):
    """The n − 1 nearest free of the same size in the cube follow s, if there are so many within reach."""
    wanted = all.children - 1
    mine = all.level[s]
    here = all.position[s]
    members = Members()
    away = Distances()
    found = wp.int32(0)
    for row in range(4):
        begin, end = cube_row(grid, all, corner, row)
        for k in range(begin, end):
            t = all.waiting[k]
            if t != s and is_free(all, t) and all.level[t] == mine:
                offset = all.position[t] - here
                r2 = wp.dot(offset, offset)
                if r2 <= all.reach2[mine] and (found < wanted or r2 < away[wanted - 1]):
                    place = wp.min(found, wanted - 1)
                    while place > 0 and away[place - 1] > r2:
                        away[place] = away[place - 1]
                        members[place] = members[place - 1]
                        place -= 1
                    away[place] = r2
                    members[place] = t
                    found = wp.min(found + 1, wanted)
    if found == wanted:
        last = s
        all.leader[s] = s
        for k in range(wanted):
            t = members[k]
            all.leader[t] = s
            all.follower[last] = t
            last = t


@wp.kernel
def mark_waiting(
    first: int,
    # in
    grid: GridView,
    # out
    all_out: Merging,
):
    s = first + wp.tid()
    waits = wp.int32(0)
    if s < sorted_count(grid) and all_out.wish[s] == MERGE:
        waits = 1
    all_out.ordinal[s] = waits


@wp.kernel
def list_waiting(
    first: int,
    # in
    grid: GridView,
    # out
    all_out: Merging,
):
    s = first + wp.tid()
    if s < sorted_count(grid) and all_out.wish[s] == MERGE:
        all_out.waiting[all_out.ordinal[s] - 1] = s


@wp.kernel
def match_cubes(
    first: int,
    # params
    grid: GridView,
    colour: int,
    # out
    all_out: Merging,
):
    """One thread per cube of a colour; cubes begin at cells -1, 1, 3, … or 0, 2, 4, … along each axis."""
    k = first + wp.tid()
    across = grid.cells_x // 2 + 1
    deep = grid.cells_y // 2 + 1
    x = 2 * (k % across) - (colour & 1)
    y = 2 * ((k // across) % deep) - ((colour >> 1) & 1)
    z = 2 * (k // (across * deep)) - ((colour >> 2) & 1)
    corner = wp.vec3i(x, y, z)
    for row in range(4):
        begin, end = cube_row(grid, all_out, corner, row)
        for i in range(begin, end):
            s = all_out.waiting[i]
            if is_free(all_out, s):
                make_group(grid, all_out, s, corner)


@wp.kernel
def match_in_order(
    # params
    grid: GridView,
    colours: int,
    # out
    all_out: Merging,
):
    """One thread: the same groups as by cubes."""
    waiting = wp.int32(0)
    for s in range(sorted_count(grid)):
        if all_out.wish[s] == MERGE:
            all_out.waiting[waiting] = s
            waiting += 1
        all_out.ordinal[s] = waiting
    for colour in range(colours):
        for k in range(waiting):
            s = all_out.waiting[k]
            if is_free(all_out, s):
                cell = cell_of(grid, all_out.position[s])
                x = cell[0] - ((cell[0] + (colour & 1)) & 1)
                y = cell[1] - ((cell[1] + ((colour >> 1) & 1)) & 1)
                z = cell[2] - ((cell[2] + ((colour >> 2) & 1)) & 1)
                make_group(grid, all_out, s, wp.vec3i(x, y, z))


GROUP = 32
"""Particles that one thread of a cpu takes: a Warp thread costs some 20 ns whatever it does."""


def in_groups(stage: Stage, kernel: Any, count: int, args: Sequence[Any]) -> None:
    """Launches a kernel whose first parameter is how many particles each thread takes."""
    group = 1 if stage.device.is_cuda else GROUP
    stage.launch(kernel, -(-count // group), [group, *args], block=BLOCK if group == 1 else 1)


def find_groups(stage: Stage, fluid: Fluid, merging: Merging) -> None:
    """`leader` and `follower`, from wishes and places; all leaders are -1 before."""
    colours = 8 if fluid.params.dimension == 3 else 4
    x, y, z = fluid.grid_params.cells
    view, device = fluid.grid.view, fluid.device
    if not device.is_cuda:
        stage.once(lambda: wp.launch(match_in_order, dim=1, inputs=[view, colours, merging], device=device.warp))
        return
    stage.launch(mark_waiting, fluid.capacity, [view, merging])
    stage.once(lambda: wp.utils.array_scan(merging.ordinal, merging.ordinal, inclusive=True))
    stage.launch(list_waiting, fluid.capacity, [view, merging])
    cubes = (x // 2 + 1) * (y // 2 + 1) * (z // 2 + 1)
    for colour in range(colours):
        stage.launch(match_cubes, cubes, [view, colour, merging])
