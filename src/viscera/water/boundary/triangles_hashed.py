"""Triangles in a hashed grid: the walls near a point are the list of its own cell.

Space is cut into cells of side l. Each triangle is entered into every cell that its box, extended by the reach R on all
sides, overlaps (Grahn §7.3, Figure 7.4), so whoever asks for triangles within R looks into one cell. Cells live in
buckets,

    bucket = (i·73856093 ⊕ j·19349663 ⊕ k·83492791) mod N   (Teschner et al. 2003; N a power of two),

an array of entries (triangle, cell) sorted by bucket; an entry of another cell that fell into the same bucket is
skipped.

The table is built on the device, so a deforming wall can be part of a recorded program. Boxes are then grown by the
drift δ too, the longest way that a vertex will go: the table holds until the mesh is aimed again, and steps in between
only bring the corners up to date. Lists need no order: of equally near triangles the one with the lowest number wins.

Differs from the source in that cells are floored and bounded, the modulo is not negative and the cell itself is
compared (4.1, §4.1.2), and in that the box grows by the reach instead of a whole cell: fewer entries for the same
answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.water.boundary.nearest import Nearest, nothing_near
from viscera.water.boundary.triangles import closest_on_triangle

wp.set_module_options({"enable_backward": False})

AXIS_LIMIT = 1024
"""Cells along one axis; their product stays below 2³¹."""

ENTRY_LIMIT = 2**27
"""Entries in all: a gigabyte."""

ROUNDING = 1.0e-5
"""Part of the reach by which boxes grow more, for float32: a metre off it is 100 roundings at 1 mm reach."""

SPARE = 2.0
"""Room for entries over what the first shape needs without drift: a wall that deforms needs more."""


@wp.struct
class HashedTriangles:
    """The table as kernels read it."""

    lower: wp.vec3
    """Lower corner of the cells [m]."""
    per_side: float
    """One over the side of a cell [1/m]."""
    cells: wp.vec3i
    """Along each axis."""
    buckets: int
    """A power of two."""
    reach: float
    """[m]"""
    drift: wp.array(dtype=float)
    """How far a vertex may be from where it was when the table was built [m]; shape (1,)."""
    bucket_start: wp.array(dtype=wp.int32)
    """Where each bucket begins; shape (buckets + 1,)."""
    entries: wp.array(dtype=wp.vec2i)
    """Triangle and cell; shape (capacity,)."""
    away: wp.array(dtype=float)
    """Of each entry: from the cell's middle to the triangle, or less [m]."""
    corners: wp.array2d(dtype=wp.vec3)
    """Shape (triangles, 3) [m]."""
    missing: wp.array(dtype=wp.int32)
    """Entries for which there was no room; if any, all triangles are looked at: slow and right. Shape (1,)."""
    indices: wp.array2d(dtype=wp.int32)
    """Vertices of each triangle; shape (triangles, 3)."""
    velocity: wp.array(dtype=wp.vec3)
    """Of each vertex [m/s]."""


@wp.func
def cell_along(x: float, lower: float, per_side: float, cells: int) -> int:
    return int(wp.clamp(wp.floor((x - lower) * per_side), 0.0, float(cells - 1)))


@wp.func
def cell_at(table: HashedTriangles, point: wp.vec3) -> wp.vec3i:
    """The point's cell, clamped to the box: clamping is monotone, so boxes and points beyond it still meet."""
    return wp.vec3i(
        cell_along(point[0], table.lower[0], table.per_side, table.cells[0]),
        cell_along(point[1], table.lower[1], table.per_side, table.cells[1]),
        cell_along(point[2], table.lower[2], table.per_side, table.cells[2]),
    )


@wp.func
def cell_number(table: HashedTriangles, i: int, j: int, k: int) -> int:
    return (k * table.cells[1] + j) * table.cells[0] + i


@wp.func
def bucket_of(table: HashedTriangles, i: int, j: int, k: int) -> int:
    mixed = (wp.uint32(i) * wp.uint32(73856093)) ^ (wp.uint32(j) * wp.uint32(19349663))
    mixed = mixed ^ (wp.uint32(k) * wp.uint32(83492791))
    return int(mixed & wp.uint32(table.buckets - 1))


@wp.func
def cell_middle(table: HashedTriangles, i: int, j: int, k: int) -> wp.vec3:
    return table.lower + wp.vec3(float(i) + 0.5, float(j) + 0.5, float(k) + 0.5) / table.per_side


@wp.func
def nearest_hashed(table: HashedTriangles, point: wp.vec3) -> Nearest:
    """The nearest triangle within the reach."""
    found = nothing_near(table.reach)
    cell = cell_at(table, point)
    own = cell_number(table, cell[0], cell[1], cell[2])
    bucket = bucket_of(table, cell[0], cell[1], cell[2])
    best = table.reach * table.reach
    offset = wp.vec3(0.0, 0.0, 0.0)
    # No triangle is nearer than its distance from the cell's middle was, less ours and the drift; with rounding.
    near = table.reach * (1.0 + ROUNDING) + wp.length(point - cell_middle(table, cell[0], cell[1], cell[2]))
    near += table.drift[0]
    slack = near - table.reach
    begin = table.bucket_start[bucket]
    end = table.bucket_start[bucket + 1]
    all_of_them = table.missing[0] > 0
    if all_of_them:
        begin = 0
        end = table.corners.shape[0]
    for e in range(begin, end):
        t = e
        if not all_of_them:
            entry = table.entries[e]
            t = wp.where(entry[1] == own and table.away[e] <= near, entry[0], -1)
        if t >= 0:
            p0 = table.corners[t, 0]
            p1 = table.corners[t, 1]
            p2 = table.corners[t, 2]
            weights = closest_on_triangle(point, p0, p1, p2)
            way = point - (weights[0] * p0 + weights[1] * p1 + weights[2] * p2)
            square = wp.dot(way, way)
            if square < best or (square == best and t < found.face):
                best = square
                offset = way
                near = wp.sqrt(square) + slack
                found.face = t
                found.weights = weights
    if found.face >= 0:
        t = found.face
        found.distance = wp.sqrt(best)
        found.free = found.distance
        found.solid = found.distance
        if found.distance > 0.0:
            found.normal = offset / found.distance
        else:
            # On the surface itself: the inner side of a closed one.
            found.normal = -wp.normalize(
                wp.cross(table.corners[t, 1] - table.corners[t, 0], table.corners[t, 2] - table.corners[t, 0])
            )
        w = found.weights
        found.velocity = (
            w[0] * table.velocity[table.indices[t, 0]]
            + w[1] * table.velocity[table.indices[t, 1]]
            + w[2] * table.velocity[table.indices[t, 2]]
        )
    return found


# --- building ------------------------------------------------------------------------------------------------------


@wp.func
def box_low(table: HashedTriangles, t: int) -> wp.vec3i:
    low = wp.min(wp.min(table.corners[t, 0], table.corners[t, 1]), table.corners[t, 2])
    grown = (table.reach + table.drift[0]) * (1.0 + ROUNDING)
    return cell_at(table, low - wp.vec3(grown, grown, grown))


@wp.func
def box_high(table: HashedTriangles, t: int) -> wp.vec3i:
    high = wp.max(wp.max(table.corners[t, 0], table.corners[t, 1]), table.corners[t, 2])
    grown = (table.reach + table.drift[0]) * (1.0 + ROUNDING)
    return cell_at(table, high + wp.vec3(grown, grown, grown))


@wp.func
def ball_around(table: HashedTriangles, t: int) -> wp.vec4:
    """A ball with all of the triangle in it: middle and radius [m]."""
    middle = (table.corners[t, 0] + table.corners[t, 1] + table.corners[t, 2]) / 3.0
    size = float(0.0)
    for c in range(3):
        size = wp.max(size, wp.length(table.corners[t, c] - middle))
    return wp.vec4(middle[0], middle[1], middle[2], size * (1.0 + ROUNDING))


@wp.func
def away_from(table: HashedTriangles, t: int, ball: wp.vec4, i: int, j: int, k: int) -> float:
    """Distance from the cell's middle to the triangle; negative if no point of the cell can be within reach of it.

    A mesh that moves is entered anew all the time, so that of its small triangles only the `ball` around them is asked:
    no farther than they are, in a fifth of the time."""
    p0 = table.corners[t, 0]
    p1 = table.corners[t, 1]
    p2 = table.corners[t, 2]
    half = 0.5 / table.per_side
    grown = (table.reach + table.drift[0]) * (1.0 + ROUNDING) + ROUNDING * half
    middle = cell_middle(table, i, j, k)
    away = wp.max(wp.length(middle - wp.vec3(ball[0], ball[1], ball[2])) - ball[3], 0.0)
    if table.drift[0] == 0.0 or ball[3] > half:
        w = closest_on_triangle(middle, p0, p1, p2)
        away = wp.length(middle - w[0] * p0 - w[1] * p1 - w[2] * p2)
    normal = wp.cross(p1 - p0, p2 - p0)
    span = half * (wp.abs(normal[0]) + wp.abs(normal[1]) + wp.abs(normal[2])) * (1.0 + ROUNDING)
    # Cells at the rim also stand for all that lies beyond.
    rim = i == 0 or j == 0 or k == 0
    rim = rim or i == table.cells[0] - 1 or j == table.cells[1] - 1 or k == table.cells[2] - 1
    far = away > grown + 1.7321 * half or wp.abs(wp.dot(normal, middle - p0)) > grown * wp.length(normal) + span
    return wp.where(far and not rim, -1.0, away)


@wp.kernel
def place_corners(
    first: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    indices: wp.array2d(dtype=wp.int32),
    # out
    corners_out: wp.array2d(dtype=wp.vec3),
):
    t = first + wp.tid()
    for c in range(3):
        corners_out[t, c] = vertices[indices[t, c]]


@wp.kernel
def count_entries(
    first: int,
    # in
    table: HashedTriangles,
    # out
    count_out: wp.array(dtype=wp.int32),
    missing_out: wp.array(dtype=wp.int32),
):
    """`count_out` starts as zeros. Integers: exact in any order."""
    t = first + wp.tid()
    if t == 0:
        missing_out[0] = 0
    ball = ball_around(table, t)
    low = box_low(table, t)
    high = box_high(table, t)
    for k in range(low[2], high[2] + 1):
        for j in range(low[1], high[1] + 1):
            for i in range(low[0], high[0] + 1):
                if away_from(table, t, ball, i, j, k) >= 0.0:
                    wp.atomic_add(count_out, bucket_of(table, i, j, k), 1)


@wp.kernel
def enter_triangles(
    first: int,
    # params
    capacity: int,
    # in
    table: HashedTriangles,
    # out
    count_out: wp.array(dtype=wp.int32),
    entries_out: wp.array(dtype=wp.vec2i),
    away_out: wp.array(dtype=float),
    missing_out: wp.array(dtype=wp.int32),
):
    """Counts the buckets down to zero again. Entries without room are counted in `missing_out`."""
    t = first + wp.tid()
    ball = ball_around(table, t)
    low = box_low(table, t)
    high = box_high(table, t)
    for k in range(low[2], high[2] + 1):
        for j in range(low[1], high[1] + 1):
            for i in range(low[0], high[0] + 1):
                away = away_from(table, t, ball, i, j, k)
                if away >= 0.0:
                    bucket = bucket_of(table, i, j, k)
                    place = table.bucket_start[bucket] + wp.atomic_sub(count_out, bucket, 1) - 1
                    if place < capacity:
                        entries_out[place] = wp.vec2i(t, cell_number(table, i, j, k))
                        away_out[place] = away
                    else:
                        wp.atomic_add(missing_out, 0, 1)


@wp.kernel
def close_table(
    # params
    capacity: int,
    buckets: int,
    # out
    bucket_start_out: wp.array(dtype=wp.int32),
):
    """Nobody reads beyond the room there is."""
    b = wp.tid()
    if bucket_start_out[b] > capacity:
        bucket_start_out[b] = capacity


@dataclass(eq=False)
class Hashed:
    """Made by `make_hashed`."""

    table: HashedTriangles
    triangles: int
    capacity: int
    count: wp.array
    """Entries per bucket while building, zero between builds; shape (buckets + 1,)."""
    side: float
    """Of a cell [m]."""


def make_hashed(
    vertices: NDArray[np.float64],
    triangles: NDArray[np.int32],
    reach: float,
    device: Device,
    *,
    side: float | None = None,
    room: float = 0.0,
    spare: float = 1.0,
) -> Hashed:
    """A table for triangles within `reach` [m]; cells have that side too unless told.

    `room` [m] widens the box for walls that will move; there is place for `spare` times the entries of this shape.
    """
    side = float(side if side is not None else reach)
    low = vertices.min(axis=0) - room - reach * (1 + 2 * ROUNDING)
    high = vertices.max(axis=0) + room + reach * (1 + 2 * ROUNDING)
    cells = np.ceil((high - low) / side).astype(np.int64)
    if cells.max() > AXIS_LIMIT:
        raise InputError(
            f"cells of {side:g} m cut the vessel of {float((high - low).max()):.3g} m into {cells.max()}.",
            f"Allowed are {AXIS_LIMIT} along an axis: make the reach (the particles' radius) larger.",
        )
    entries, occupied = _measure(vertices[triangles], low, 1.0 / side, cells, reach * (1 + ROUNDING))
    if entries > ENTRY_LIMIT:
        raise InputError(
            f"{len(triangles)} triangles make {entries} entries in cells of {side:g} m.",
            f"Allowed are {ENTRY_LIMIT}: make the reach smaller, or give a longer side of cells.",
        )
    buckets = 1 << max(4, int(2 * occupied - 1).bit_length())
    capacity = int(entries * spare) + 64
    table = HashedTriangles()
    table.lower = wp.vec3(*low.tolist())
    table.per_side = 1.0 / side
    table.cells = wp.vec3i(*(int(n) for n in cells))
    table.buckets = buckets
    table.reach = reach
    table.drift = wp.zeros(1, dtype=float, device=device.warp)
    table.bucket_start = wp.zeros(buckets + 1, dtype=wp.int32, device=device.warp)
    table.entries = wp.zeros(capacity, dtype=wp.vec2i, device=device.warp)
    table.missing = wp.zeros(1, dtype=wp.int32, device=device.warp)
    table.away = wp.zeros(capacity, dtype=float, device=device.warp)
    table.corners = wp.zeros((len(triangles), 3), dtype=wp.vec3, device=device.warp)
    table.indices = wp.array(triangles, dtype=wp.int32, device=device.warp)
    table.velocity = wp.zeros(len(vertices), dtype=wp.vec3, device=device.warp)
    count = wp.zeros(buckets + 1, dtype=wp.int32, device=device.warp)
    return Hashed(table, len(triangles), capacity, count, side)


def place_triangles(stage: Stage, hashed: Hashed, vertices: wp.array) -> None:
    """Bring corners up to date while the table holds: no vertex may have gone farther than the drift."""
    stage.launch(place_corners, hashed.triangles, [vertices, hashed.table.indices, hashed.table.corners])


def rebuild_hashed(stage: Stage, hashed: Hashed, vertices: wp.array) -> None:
    """Enter all triangles where `vertices` are now, with room for the drift. Allocates nothing."""
    table, n, device = hashed.table, hashed.triangles, stage.device.warp
    enter = [hashed.capacity, table, hashed.count, table.entries, table.away, table.missing]

    def build() -> None:
        wp.launch(count_entries, dim=n, inputs=[0, table, hashed.count, table.missing], device=device)
        wp.utils.array_scan(hashed.count, table.bucket_start, inclusive=False)
        wp.launch(enter_triangles, dim=n, inputs=[0, *enter], device=device)
        wp.launch(
            close_table,
            dim=table.buckets + 1,
            inputs=[hashed.capacity, table.buckets, table.bucket_start],
            device=device,
        )

    place_triangles(stage, hashed, vertices)
    # Warp's atomics on cpu are plain additions, so one core counts.
    stage.once(build)


def _measure(
    corners: NDArray[np.float64], low: NDArray[np.float64], per_side: float, cells: NDArray[np.int64], grown: float
) -> tuple[int, int]:
    """How many entries these triangles need, and how many cells they touch."""
    first = np.clip(np.floor((corners.min(axis=1) - grown - low) * per_side), 0, cells - 1).astype(np.int64)
    last = np.clip(np.floor((corners.max(axis=1) + grown - low) * per_side), 0, cells - 1).astype(np.int64)
    sizes = last - first + 1
    entries = int(sizes.prod(axis=1).sum())
    if entries > ENTRY_LIMIT:
        return entries, 1
    # Rounding may put a box into one cell more than here; the 64 spare entries and `SPARE` are not for that, so count
    # it.
    marks = np.zeros(cells[::-1] + 1, dtype=np.int32)
    for sign_x, x in ((1, first[:, 0]), (-1, last[:, 0] + 1)):
        for sign_y, y in ((1, first[:, 1]), (-1, last[:, 1] + 1)):
            for sign_z, z in ((1, first[:, 2]), (-1, last[:, 2] + 1)):
                np.add.at(marks, (z, y, x), sign_x * sign_y * sign_z)
    covered = marks.cumsum(0).cumsum(1).cumsum(2) > 0
    return entries + entries // 50, int(covered.sum())
