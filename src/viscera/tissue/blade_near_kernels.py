"""Which masses are around the blades now, wherever they were at rest (cutting.py)."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.blade_kernels import (
    EDGE_END,
    EDGE_FLOATS,
    EDGE_START,
    EDGES,
    NOBODY,
    SAMPLES,
    Blades,
    along_edge,
    displaced,
    near_number,
    point_of,
    seeks,
)
from viscera.tissue.kernels import LIVE_VISCOUS_TIME, Lattice, load3, store3

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

REACH = wp.constant(wp.float64(4.0))
"""How far from what an edge swept a mass may be whose spring it has crossed [cells]: a spring that is drawn out to more
is not found. What is stretched to twice its length has torn long before, and a cell's diagonal is 1.7 cells long."""

_EDGES, _SAMPLES, _EDGE_FLOATS = wp.constant(EDGES), wp.constant(SAMPLES), wp.constant(EDGE_FLOATS)


@wp.func
def edge_is_on(blades: Blades, edge: int):
    return blades.edges[edge * _EDGE_FLOATS] != wp.float64(0.0)


@wp.func
def cell_place(blades: Blades, m: int):
    """Of a mass at rest [cells]."""
    cell = blades.cells[m]
    return wp.vec3d(wp.float64(cell[0]), wp.float64(cell[1]), wp.float64(cell[2]))


@wp.func
def box_edge(lattice: Lattice, blades: Blades, edge: int):
    """The box around an edge as the tick starts and ends, and around the end of its cut; nobody is near it yet."""
    base = edge * _EDGE_FLOATS
    cell = wp.float64(lattice.spacing)
    low = point_of(blades.edges, base + EDGE_START) / cell
    high = low
    for corner in range(1, 4):
        ends = wp.where(corner < 2, EDGE_START, EDGE_END) + 3 * (corner % 2)
        place = point_of(blades.edges, base + ends) / cell
        low = wp.min(low, place)
        high = wp.max(high, place)
    for k in range(_SAMPLES):
        n = edge * _SAMPLES + k
        blades.nearest[n] = NOBODY
        if blades.known[edge] != 0:
            low = wp.min(low, blades.front[n])
            high = wp.max(high, blades.front[n])
    blades.boxes[2 * edge] = low
    blades.boxes[2 * edge + 1] = high


@wp.func
def box_fronts(blades: Blades, edge: int):
    """The box around what the end of the cut has swept."""
    low = blades.front[edge * _SAMPLES]
    high = low
    for k in range(_SAMPLES):
        n = edge * _SAMPLES + k
        low = wp.min(low, wp.min(blades.front[n], blades.swept_from[n]))
        high = wp.max(high, wp.max(blades.front[n], blades.swept_from[n]))
    blades.boxes[2 * edge] = low
    blades.boxes[2 * edge + 1] = high


@wp.func
def is_near(blades: Blades, edge: int, place: wp.vec3d):
    low = blades.boxes[2 * edge]
    high = blades.boxes[2 * edge + 1]
    found = place[0] >= low[0] - REACH and place[0] <= high[0] + REACH
    found = found and place[1] >= low[1] - REACH and place[1] <= high[1] + REACH
    return found and place[2] >= low[2] - REACH and place[2] <= high[2] + REACH


@wp.func
def sample_place(lattice: Lattice, blades: Blades, edge: int, k: int):
    """Where a sample is as the tick ends [cells]."""
    return along_edge(blades, edge * _EDGE_FLOATS + EDGE_END, k) / wp.float64(lattice.spacing)


@wp.func
def list_near(
    lattice: Lattice, blades: Blades, live: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), edge: int,
):  # fmt: skip
    """Lists the masses around an edge, in the order of memory, and finds the nearest one for each sample that seeks.
    On one core."""
    tau = live[LIVE_VISCOUS_TIME]
    count = int(0)
    for m in range(blades.masses.shape[0]):
        place = cell_place(blades, m) + displaced(lattice, tau, position, velocity, blades.masses[m])
        if is_near(blades, edge, place):
            blades.near[count] = m
            count += 1
    for k in range(_SAMPLES):
        n = edge * _SAMPLES + k
        if count > 0 and seeks(blades, edge, n):
            here = sample_place(lattice, blades, edge, k)
            for c in range(count):
                m = blades.near[c]
                place = cell_place(blades, m) + displaced(lattice, tau, position, velocity, blades.masses[m])
                number = near_number(wp.length(place - here), blades.masses[m])
                blades.nearest[n] = wp.min(blades.nearest[n], number)
    return count


@wp.kernel
def keep_places_serial(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
):
    """As a tick starts: where masses are. On one core."""
    some = wp.bool(False)
    for edge in range(_EDGES):
        some = some or edge_is_on(blades, edge)
    if some:
        tau = live[LIVE_VISCOUS_TIME]
        for m in range(blades.masses.shape[0]):
            i = blades.masses[m]
            u = load3(position, lattice.slots, i) - tau * load3(velocity, lattice.slots, i)
            store3(blades.before, lattice.slots, i, u)


@wp.kernel
def keep_places(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
):
    some = wp.bool(False)
    for edge in range(_EDGES):
        some = some or edge_is_on(blades, edge)
    if some:
        i = blades.masses[wp.tid()]
        u = load3(position, lattice.slots, i) - live[LIVE_VISCOUS_TIME] * load3(velocity, lattice.slots, i)
        store3(blades.before, lattice.slots, i, u)


@wp.kernel
def box_edges(
    # params
    lattice: Lattice,
    # out
    blades: Blades,
):
    if edge_is_on(blades, wp.tid()):
        box_edge(lattice, blades, wp.tid())


@wp.kernel
def box_all_fronts(
    # out
    blades: Blades,
):
    if edge_is_on(blades, wp.tid()):
        box_fronts(blades, wp.tid())


@wp.kernel
def find_nearest(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
):
    """Each mass tells the samples around it how near it is."""
    m = wp.tid()
    i = blades.masses[m]
    for edge in range(_EDGES):
        if edge_is_on(blades, edge):
            place = cell_place(blades, m) + displaced(lattice, live[LIVE_VISCOUS_TIME], position, velocity, i)
            if is_near(blades, edge, place):
                for k in range(_SAMPLES):
                    n = edge * _SAMPLES + k
                    if seeks(blades, edge, n):
                        away = wp.length(place - sample_place(lattice, blades, edge, k))
                        wp.atomic_min(blades.nearest, n, near_number(away, i))
