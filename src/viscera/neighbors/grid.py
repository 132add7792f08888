"""The neighbour grid: particles sorted by cell, so that all within a radius lie in 9 short ranges (3 in 2D).

The box is cut into cells whose side is the interaction radius, numbered along x first. Particles are sorted by
(cell, id), id being the index in the caller's arrays. The neighbours of a point are in the 3×3×3 cells around it, and
three cells side by side along x are one range of the sorted arrays. `cells` has the functions for kernels and shows the
loop, `ordering` has the sort; docs/neighbors.md says how to use it, docs/decisions/003-sorted-grid.md why it is so.

Nobody is dropped, and the search is exact:

- Outside the box. A coordinate x maps to t = (x - lower)·k, k being one over the side, and t is clamped to [0, N-1]
  for N cells. Clamping is monotone and never moves two numbers apart. So if two points differ by at most one side along
  an axis, their clamped t differ by at most 1, and so do their cells: they are found, wherever the two points are.
- Rounding. Let k be exactly the float32 that kernels use, and u = 2⁻²⁴. Then t is computed with a relative error of at
  most 2u + u², so the clamped t is off by less than e = N·2⁻²², and the clamped t of points that differ by d differ by
  at most d·k + 2e. `make_grid` chooses k so that R·k + 2e ≤ 1, where R = radius·(1 + 2⁻²⁰). So two points at most R
  apart are found. The 2⁻²⁰ covers the rounding of a distance test in float32.
- Crowds. A cell holds any number of particles. All of them in one cell are slow to search, but all are found.
- Not finite. Such particles come last in the sorted arrays, after all cells, and are nobody's neighbours; `check`
  counts them and names the first.

Everything is allocated by `make_grid`. `build` allocates nothing and can be recorded on `cpu` and `cuda`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import warp as wp

from viscera.device import Device, Stage
from viscera.errors import InputError, StateError
from viscera.neighbors import ordering
from viscera.neighbors.cells import GridView
from viscera.neighbors.hashed import bucket_count

Search = Literal["sorted", "hashed"]
"""Cells of a box, numbered along x; or buckets of cells anywhere (hashed.py)."""

Ordering = Literal["serial", "parallel"]
"""How the particles are sorted: by one core, or by many threads. The result is the same."""

CAPACITY_LIMIT = 2**30
"""Particles; indices are 32-bit and some are multiplied by two."""

AXIS_LIMIT = 2**16
"""Cells along one axis. At this number the room for rounding makes cells 3 % wider than the radius."""

CELL_LIMIT = 2**26
"""Cells in all: 256 MiB per array of one integer per cell."""

HASHED_REACH = 2**13
"""Cells from the lower corner up to which a hashed grid is exact; it makes them 0.4 % wider than the radius."""

SMALLEST_RADIUS = 1e-9
"""[m] Squares of smaller numbers get near what float32 can hold."""

LANES = 16
"""Room after the last particle in `GridState.axes`, so that a vector load of 16 floats may begin at any particle."""


@dataclass(frozen=True)
class GridParams:
    """What stays."""

    dimension: int
    """2 or 3."""
    capacity: int
    """Most particles there can be."""
    radius: float
    """Interaction radius [m], as float32 holds it."""
    side: float
    """Side of a cell [m], a little more than the radius."""
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    """Corners of the box [m]; one number per axis. Particles may leave it."""
    cells: tuple[int, int, int]
    """Cells along x, y and z; of a hashed grid, its buckets in one line."""
    ordering: Ordering
    device: Device
    search: Search = "sorted"

    @property
    def cell_count(self) -> int:
        return self.cells[0] * self.cells[1] * self.cells[2]


@dataclass
class GridState:
    """What a build writes. Sorted arrays hold the particles by (cell, id)."""

    view: GridView
    """What kernels take; refers to the arrays below."""
    count: wp.array
    """How many particles there are, int32, shape (1,). Kernels may write it."""
    cell_start: wp.array
    """Where each cell begins in the sorted arrays, int32, shape (cells + 2,)."""
    original: wp.array
    """Sorted place → index in the caller's arrays, int32, shape (capacity,)."""
    slot: wp.array
    """Index in the caller's arrays → sorted place, int32, shape (capacity,)."""
    position: wp.array
    """Sorted positions [m], vec2 or vec3, shape (capacity,)."""
    axes: tuple[wp.array, ...]
    """Sorted positions, one float32 array of shape (capacity + LANES,) per axis [m]; empty unless asked for."""
    cell: wp.array
    """Cell of each of the caller's particles, int32, shape (capacity,)."""
    cell_count: wp.array
    """Parallel ordering: particles per cell, zero between builds, int32, shape (cells + 2,)."""
    ticket: wp.array
    """Parallel ordering: place of a particle in its cell before ids are ordered, int32, shape (capacity,)."""
    listed: wp.array
    """Parallel ordering: the particles by cell, ids in any order, int32, shape (capacity,)."""
    crowd: ordering.Crowd
    """Parallel ordering: for cells with very many particles."""


def make_grid(
    capacity: int,
    lower: Sequence[float],
    upper: Sequence[float],
    radius: float,
    dimension: int,
    device: Device,
    *,
    count: wp.array | None = None,
    axes: bool = False,
    order: Ordering | None = None,
    search: Search = "sorted",
    buckets: int | None = None,
) -> tuple[GridParams, GridState]:
    """A grid for up to `capacity` particles with neighbours within `radius` [m].

    It is quick while they stay in the box between the corners `lower` and `upper` [m], and right anywhere.

    `count` shares the caller's particle count (int32, shape (1,)); without it there are `capacity` particles until
    `set_count`. `axes` also makes room for `split_axes`. `order` follows from the device; tests choose it.

    `search="hashed"` needs no box, only its lower corner as where cells are counted from: the search is exact up to
    `HASHED_REACH` cells from there, and beyond it misses at most pairs at the very end of the radius. `buckets` follows
    from the capacity.
    """
    _check_capacity(capacity)
    low, high = _check_box(lower, upper, dimension)
    radius = _check_radius(radius)
    if search not in ("sorted", "hashed"):
        raise InputError(f"search is {search!r}; allowed are sorted and hashed.", "Choose one of them.")
    if search == "hashed":
        cells, per_length = (bucket_count(capacity, buckets), 1, 1), _per_length(HASHED_REACH, radius)
    else:
        cells, per_length = _divide(low, high, radius)
    params = GridParams(
        dimension,
        capacity,
        radius,
        1.0 / per_length,
        low,
        high,
        cells,
        order or ("parallel" if device.is_cuda else "serial"),
        device,
        search,
    )
    return params, _allocate(params, per_length, _check_count(count, device), axes)


def build(stage: Stage, params: GridParams, state: GridState, positions: wp.array) -> None:
    """Sort the particles at `positions` (vec2 or vec3, at least `capacity` of them; the first `count` are used).

    Fills `cell_start`, `original`, `slot` and `position`. Reads `count` on the device, so a recorded build follows it.
    """
    build_order(stage, params, state, positions)
    if params.ordering == "serial":
        copy = [state.view, state.original, positions, state.slot, state.position]
        stage.launch(ordering.copy_sorted, params.capacity, copy)


def build_order(stage: Stage, params: GridParams, state: GridState, positions: wp.array) -> None:
    """As `build`, but `slot` and `position` are only filled where that comes along (parallel ordering)."""
    _check_array(positions, "positions", params, state.position.dtype, state.position)
    if params.ordering == "serial":
        _order_serially(stage, params, state, positions)
    else:
        _order_in_parallel(stage, params, state, positions)


def to_sorted(stage: Stage, params: GridParams, state: GridState, values: wp.array, sorted_out: wp.array) -> None:
    """Bring values from the caller's order into the sorted one: float32, int32, vec2, vec3 or vec4."""
    _gather(stage, params, state, state.original, values, sorted_out)


def to_original(stage: Stage, params: GridParams, state: GridState, sorted_values: wp.array, out: wp.array) -> None:
    """Bring values from the sorted order back into the caller's."""
    _gather(stage, params, state, state.slot, sorted_values, out)


def split_axes(stage: Stage, params: GridParams, state: GridState) -> None:
    """Fill `state.axes` from `state.position`: what an inner loop needs that is a native snippet on cpu."""
    if not state.axes:
        raise InputError("this grid has no room for one array per axis.", "Make it with make_grid(…, axes=True).")
    kernel = ordering.split_axes_2d if params.dimension == 2 else ordering.split_axes_3d
    stage.launch(kernel, params.capacity, [state.view, state.position, *state.axes])


def set_count(params: GridParams, state: GridState, count: int) -> None:
    """From now on the first `count` particles take part."""
    if not 0 <= count <= params.capacity:
        raise InputError(
            f"count is {count}; this grid has room for 0 to {params.capacity} particles.",
            "Make the grid with a larger capacity.",
        )
    state.count.fill_(count)


def check(params: GridParams, state: GridState, *, stage: str, tick: int) -> None:
    """Raise StateError if the last build met positions that are not finite, or more particles than there is room for.

    Waits for the device: call it once per frame, not per step.
    """
    count = int(state.count.numpy()[0])
    if not 0 <= count <= params.capacity:
        raise StateError(
            f"{stage}: the particle count is {count}, but the grid has room for 0 to {params.capacity}.",
            "Make the grid with a larger capacity, or stop emitting particles when it is full.",
            stage=stage,
            tick=tick,
        )
    lost = lost_particles(params, state)
    if len(lost):
        raise StateError(
            f"{stage}: {len(lost)} of {count} particle positions are not finite, the first is particle {lost[0]}.",
            "The step before broke them: take a smaller time step or a softer material.",
            stage=stage,
            tick=tick,
        )


def lost_particles(params: GridParams, state: GridState) -> np.ndarray:
    """Ids of the particles whose position was not finite in the last build, ascending. Waits for the device."""
    begin, end = state.cell_start.numpy()[params.cell_count : params.cell_count + 2]
    return state.original.numpy()[begin:end]


# --- building ----------------------------------------------------------------------------------------------------


def _order_serially(stage: Stage, params: GridParams, state: GridState, positions: wp.array) -> None:
    view, n = state.view, params.capacity
    sort = [view, state.cell, state.cell_start, state.original]
    stage.launch(ordering.find_cells, n, [view, positions, state.cell])
    stage.once(lambda: wp.launch(ordering.sort_in_order, dim=1, inputs=sort, device=params.device.warp))


def _order_in_parallel(stage: Stage, params: GridParams, state: GridState, positions: wp.array) -> None:
    if stage.cores > 1:
        # Warp's atomics on cpu are plain additions: two cores would lose counts.
        raise InputError("parallel ordering on cpu works on one core only.", 'Make the grid with order="serial".')
    view, n = state.view, params.capacity
    order = [view, state.listed, positions, state.cell_count, state.crowd, state.original, state.slot, state.position]
    stage.launch(ordering.draw_tickets, n, [view, positions, state.cell_count, state.cell, state.ticket, state.crowd])
    stage.once(lambda: wp.utils.array_scan(state.cell_count, state.cell_start, inclusive=False))
    stage.launch(ordering.take_places, n, [view, state.cell, state.ticket, state.listed, state.crowd])
    stage.launch(ordering.order_cells, n, order)


def _gather(
    stage: Stage, params: GridParams, state: GridState, index: wp.array, values: wp.array, out: wp.array
) -> None:
    if values.dtype not in ordering.GATHERED:
        allowed = ", ".join(t.__name__ for t in ordering.GATHERED)
        raise InputError(f"values of type {values.dtype.__name__} cannot be reordered.", f"Allowed are {allowed}.")
    _check_array(values, "values", params, values.dtype, out)
    _check_array(out, "the output", params, values.dtype, values)
    stage.launch(ordering.gather, params.capacity, [state.view, index, values, out])


# --- making ------------------------------------------------------------------------------------------------------


def _divide(low: tuple[float, ...], high: tuple[float, ...], radius: float) -> tuple[tuple[int, int, int], float]:
    """Cells along each axis, and one over their side [1/m]: the largest float32 that the module's proof allows."""
    extents = [h - lo for lo, h in zip(low, high, strict=True)]
    most = max(math.ceil(extent / radius) + 1 for extent in extents)
    per_length = _per_length(most, radius)
    counts = [max(1, math.ceil(extent * per_length)) for extent in extents] + [1] * (3 - len(extents))
    if most > AXIS_LIMIT or math.prod(counts) > CELL_LIMIT:
        raise InputError(
            f"the box of {' × '.join(f'{extent:g}' for extent in extents)} m needs {' × '.join(map(str, counts))} "
            f"cells of {radius:g} m; allowed are {AXIS_LIMIT} along an axis and {CELL_LIMIT} in all.",
            "Make the box smaller (particles outside it are still found) or the radius larger.",
        )
    return (counts[0], counts[1], counts[2]), per_length


def _per_length(most: int, radius: float) -> float:
    """One over the side of a cell [1/m] where there are up to `most` of them along an axis."""
    room = 2.0 * most * 2.0**-22
    wanted = (1.0 - room) / (radius * (1.0 + 2.0**-20)) if most <= AXIS_LIMIT else 1.0 / radius
    return float(np.nextafter(np.float32(wanted), np.float32(0.0)))


def _allocate(params: GridParams, per_length: float, count: wp.array | None, axes: bool) -> GridState:
    device, n, cells = params.device.warp, params.capacity, params.cell_count
    vector = wp.vec2 if params.dimension == 2 else wp.vec3
    # Only one of the orderings runs; the other's arrays stay empty.
    parallel, many = (n, cells + 2) if params.ordering == "parallel" else (0, 0)

    def integers(size: int) -> wp.array:
        return wp.zeros(size, dtype=wp.int32, device=device)

    crowd = ordering.Crowd()
    crowd.bucket_count = integers(parallel)
    crowd.block_count = integers(parallel // ordering.BLOCK + 1)
    crowd.newest = wp.full(parallel, -1, dtype=wp.int32, device=device)
    crowd.earlier = integers(parallel)
    crowd.seen = integers(1)
    crowd.dirty = integers(1)

    view = GridView()
    view.lower = wp.vec3(*params.lower, *([0.0] * (3 - params.dimension)))
    view.cells_per_length = per_length
    view.cells_x, view.cells_y, view.cells_z = params.cells
    hashed = params.search == "hashed"
    view.buckets = params.cells[0] if hashed else 0
    view.rows = 3 ** (params.dimension if hashed else params.dimension - 1)
    view.layer = params.dimension - 2
    view.lost = cells
    view.capacity = n
    view.count = count if count is not None else wp.full(1, n, dtype=wp.int32, device=device)
    view.cell_start = integers(cells + 2)
    return GridState(
        view=view,
        count=view.count,
        cell_start=view.cell_start,
        original=integers(n),
        slot=integers(n),
        position=wp.zeros(n, dtype=vector, device=device),
        axes=tuple(wp.zeros(n + LANES, dtype=float, device=device) for _ in range(params.dimension if axes else 0)),
        cell=integers(n),
        cell_count=integers(many),
        ticket=integers(parallel),
        listed=integers(parallel),
        crowd=crowd,
    )


# --- what is allowed ---------------------------------------------------------------------------------------------


def _check_capacity(capacity: int) -> None:
    if not 0 <= capacity <= CAPACITY_LIMIT:
        raise InputError(
            f"capacity is {capacity}; allowed are 0 to {CAPACITY_LIMIT} particles.",
            "Choose the most particles there can be.",
        )


def _check_box(
    lower: Sequence[float], upper: Sequence[float], dimension: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if dimension not in (2, 3):
        raise InputError(f"dimension is {dimension}; allowed are 2 and 3.", "Choose 2 for a plane, 3 for space.")
    for name, corner in (("lower", lower), ("upper", upper)):
        if len(corner) != dimension:
            raise InputError(
                f"{name} has {len(corner)} numbers, not {dimension}.", "Give one number per axis, in metres."
            )
    # Kernels compute with float32 corners, so the proof must hold for those.
    low = tuple(float(np.float32(v)) for v in lower)
    high = tuple(float(np.float32(v)) for v in upper)
    for axis, a, b in zip("xyz", low, high, strict=False):
        if not (math.isfinite(a) and math.isfinite(b) and a <= b):
            raise InputError(
                f"the box goes from {a:g} to {b:g} m along {axis}; both must be finite and in this order.",
                "Give the lower corner first, in metres.",
            )
    return low, high


def _check_radius(radius: float) -> float:
    if not (math.isfinite(radius) and radius >= SMALLEST_RADIUS):
        raise InputError(
            f"radius is {radius:g} m; it must be finite and at least {SMALLEST_RADIUS:g} m.",
            "Give the interaction radius in metres.",
        )
    return float(np.float32(radius))


def _check_count(count: wp.array | None, device: Device) -> wp.array | None:
    if count is not None and (count.dtype is not wp.int32 or count.shape != (1,) or count.device != device.warp):
        raise InputError(
            f"count is an array of {count.dtype.__name__}, shape {count.shape}, on {count.device}; "
            f"it must be int32, shape (1,), on {device.name}.",
            "Make it with wp.zeros(1, dtype=wp.int32, device=device.warp).",
        )
    return count


def _check_array(array: wp.array, name: str, params: GridParams, dtype: type, other: wp.array) -> None:
    fits = array.ndim == 1 and len(array) >= params.capacity
    if array.dtype is not dtype or not fits or array.device != params.device.warp:
        raise InputError(
            f"{name}: an array of {array.dtype.__name__}, shape {array.shape}, on {array.device}; "
            f"it must be {dtype.__name__}, at least {params.capacity} long, on {params.device.name}.",
            f"The grid was made for {params.capacity} particles in {params.dimension}D.",
        )
    if params.capacity and array.ptr == other.ptr:
        raise InputError(f"{name}: the same array is read and written.", "Use another array for the result.")
