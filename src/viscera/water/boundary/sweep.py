"""Where a path meets a wall first: of a point (a drop's centre), exactly on triangles, and of a ball.

Point: l₀ + d (l₁ − l₀) against the triangles of the cells along it. The path is cut into pieces no longer than the
reach: all that a piece can meet is in the list of the cell where it begins. The hierarchy casts a ray.

Ball: at a place where the nearest wall is d away, a ball of radius r may go d − r in any direction without touching
it. So going on by d − r until that is a thousandth of r finds the first touch, for every kind of wall (conservative
advancement). It never goes past it; a path that grazes a wall may end a little before the true touch, where steps get
short.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.geometry.queries import checked_points
from viscera.water.boundary.triangles import NEVER, segment_hits_triangle
from viscera.water.boundary.triangles_hashed import HashedTriangles, bucket_of, cell_at, cell_number
from viscera.water.boundary.walls import HASHED, HIERARCHY, Walls, WallsView, nearest_wall

# Without fused products: on cuda they round the two sides of an edge differently, and a segment slips between them.
wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TOUCHING = wp.constant(1.0e-3)
"""Part of the radius (of the reach, for a point) at which a wall counts as touched."""

ADVANCES = wp.constant(256)


@wp.func
def hit_hashed(table: HashedTriangles, start: wp.vec3, end: wp.vec3) -> float:
    """Fraction of the way at which the first triangle is met; `NEVER` if none."""
    way = end - start
    pieces = int(wp.ceil(wp.length(way) / table.reach))
    first = NEVER
    for p in range(pieces):
        a = start + float(p) / float(pieces) * way
        b = start + float(p + 1) / float(pieces) * way
        cell = cell_at(table, a)
        own = cell_number(table, cell[0], cell[1], cell[2])
        bucket = bucket_of(table, cell[0], cell[1], cell[2])
        begin = table.bucket_start[bucket]
        stop = table.bucket_start[bucket + 1]
        all_of_them = table.missing[0] > 0
        if all_of_them:
            begin = 0
            stop = table.corners.shape[0]
        for e in range(begin, stop):
            t = e
            if not all_of_them:
                entry = table.entries[e]
                t = wp.where(entry[1] == own, entry[0], -1)
            if t >= 0:
                d = segment_hits_triangle(a, b, table.corners[t, 0], table.corners[t, 1], table.corners[t, 2])
                if d <= 1.0:
                    first = wp.min(first, (float(p) + d) / float(pieces))
        if first <= 1.0:
            break
    return first


@wp.func
def first_touch(walls: WallsView, start: wp.vec3, end: wp.vec3, radius: float) -> float:
    """Fraction of the way at which a ball first touches a wall; `NEVER` if it does not."""
    way = end - start
    length = wp.length(way)
    enough = TOUCHING * wp.where(radius > 0.0, radius, wp.min(walls.reach, length))
    gone = float(0.0)
    for _advance in range(ADVANCES):
        near = nearest_wall(walls, start + wp.min(gone / wp.max(length, 1.0e-30), 1.0) * way)
        room = near.distance - radius
        if room <= enough:
            return gone / wp.max(length, 1.0e-30)
        if gone >= length:
            return NEVER
        gone = wp.min(gone + room, length)
    return gone / wp.max(length, 1.0e-30)


@wp.func
def first_hit(walls: WallsView, start: wp.vec3, end: wp.vec3) -> float:
    """Fraction of the way at which a point first meets a wall; `NEVER` if it does not. Exact on triangles."""
    hit = NEVER
    if walls.structure == HASHED:
        hit = hit_hashed(walls.table[0], start, end)
    elif walls.structure == HIERARCHY:
        length = wp.length(end - start)
        if length > 0.0:
            ray = wp.mesh_query_ray(walls.tree, start, (end - start) / length, length)
            if ray.result:
                hit = ray.t / length
    else:
        hit = first_touch(walls, start, end, 0.0)
    return hit


@wp.kernel
def sweep_paths(
    first: int,
    # params
    walls: WallsView,
    radius: float,
    # in
    starts: wp.array(dtype=wp.vec3),
    ends: wp.array(dtype=wp.vec3),
    # out
    fraction_out: wp.array(dtype=float),
):
    i = first + wp.tid()
    if radius > 0.0:
        fraction_out[i] = first_touch(walls, starts[i], ends[i], radius)
    else:
        fraction_out[i] = first_hit(walls, starts[i], ends[i])


def sweep(walls: Walls, starts: ArrayLike, ends: ArrayLike, radius: float = 0.0) -> NDArray[np.float32]:
    """Fractions of the ways from `starts` to `ends`, shape (n, 3) [m], at which walls are first met; infinite if never.

    With a `radius` [m], below the walls' reach, it is a ball that moves. Without one it is a point, and shapes that
    stand beside triangles are not met by it.
    """
    a, b, device = checked_points("starts", starts), checked_points("ends", ends), walls.device.warp
    if len(a) != len(b):
        raise InputError(f"{len(a)} starts for {len(b)} ends.", "Give one end per start.")
    if not 0.0 <= radius < walls.reach:
        raise InputError(f"radius = {radius} is not possible.", f"It must be 0 to {walls.reach:g} m, the walls' reach.")
    arrays = [wp.array(points, dtype=wp.vec3, device=device) for points in (a, b)]
    fraction = wp.zeros(len(a), dtype=float, device=device)
    wp.launch(sweep_paths, dim=len(a), inputs=[0, walls.view, float(radius), *arrays, fraction], device=device)
    found = fraction.numpy()
    return np.where(found <= 1.0, found, np.float32(np.inf)).astype(np.float32)
