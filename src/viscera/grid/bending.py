"""Organs that bend: distances at the corners of cells follow a surface that moves.

A corner x near the surface hangs on the point of it that is nearest at rest, and moves with that point's displacement
u. Its distance is the one that was at rest where it would be if nothing had moved,

    φ(x) = φ_rest(x − u),

exact for a surface that is shifted or turned a little as a whole, and off by the change of u over φ elsewhere: small
where it matters, at the surface. What covers faces there moves with u̇ = (u − u of the last step)/Δt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.queries import build_query
from viscera.grid.shape import GridShape, Three, three
from viscera.grid.solids import corner_of
from viscera.grid.state import Grid

wp.set_module_options({"enable_backward": False})

REACH = 0.015
"""Corners hang on a surface that is nearer than this at rest [m]: tissue moves by less."""
MICRON = 1.0e-6
"""[m]"""
FASTEST = 0.6
"""What moves faster has jumped, as a world that was reset [m/s]."""


@wp.struct
class Hanging:
    """Corners that hang on a surface: their entries, the corners of the triangle and their weights."""

    entry: wp.array(dtype=wp.int32)
    triangle: wp.array(dtype=wp.vec3i)
    weight: wp.array(dtype=wp.vec3)


@dataclass(eq=False)
class Bending:
    """A surface in a flow; made by `make_bending`. Where its vertices are is for the caller to write."""

    hanging: Any
    rest: Any
    """Vertices at rest, vec3 [m]."""
    now: Any
    before: Any
    """The same as they are now, and as they were a step ago."""
    distance: Any
    """From corners at rest, in the flow's layout [m]."""
    farthest: Any
    """That any vertex is from its place at rest, now or a step ago, int32 [µm]."""


@wp.kernel
def hang_corners(
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    reach: float,
    # in
    mesh: wp.uint64,
    # out
    face_out: wp.array[wp.int32],
    share_out: wp.array[wp.vec2],
):
    """The triangle nearest to each corner, -1 where none is within reach; `origin` is as the mesh has it."""
    c = shape.layer + wp.tid()
    found = wp.mesh_query_point_no_sign(mesh, corner_of(shape, origin, spacing, c), reach)
    face_out[c] = wp.where(found.result, found.face, -1)
    share_out[c] = wp.vec2(found.u, found.v)


@wp.func
def moved_by(hanging: Hanging, n: int, rest: wp.array[wp.vec3], vertices: wp.array[wp.vec3]):
    """Displacement of the point of the surface on which a corner hangs [m]."""
    t = hanging.triangle[n]
    w = hanging.weight[n]
    u = w[0] * (vertices[t[0]] - rest[t[0]]) + w[1] * (vertices[t[1]] - rest[t[1]])
    return u + w[2] * (vertices[t[2]] - rest[t[2]])


@wp.func
def distance_at(shape: GridShape, distance: wp.array[wp.float32], place: wp.vec3):
    """Between corners; `place` is counted in cells from the lowest corner and kept in the box."""
    x = wp.clamp(place[0], 0.0, float(shape.nx))
    y = wp.clamp(place[1], 0.0, float(shape.ny))
    z = wp.clamp(place[2], 0.0, float(shape.nz))
    i = wp.min(int(x), shape.nx - 1)
    j = wp.min(int(y), shape.ny - 1)
    k = wp.min(int(z), shape.nz - 1)
    x -= float(i)
    y -= float(j)
    z -= float(k)
    c = (k + 1) * shape.layer + (j + 1) * shape.row + i + 1
    t = c + shape.layer
    low = wp.lerp(
        wp.lerp(distance[c], distance[c + 1], x), wp.lerp(distance[c + shape.row], distance[c + shape.row + 1], x), y
    )
    high = wp.lerp(
        wp.lerp(distance[t], distance[t + 1], x), wp.lerp(distance[t + shape.row], distance[t + shape.row + 1], x), y
    )
    return wp.lerp(low, high, z)


@wp.kernel
def bend_corners(
    first: int,
    # params
    shape: GridShape,
    spacing: float,
    dt: float,
    # in
    hanging: Hanging,
    rest: wp.array[wp.vec3],
    now: wp.array[wp.vec3],
    before: wp.array[wp.vec3],
    distance: wp.array[wp.float32],
    farthest: wp.array[wp.int32],
    # out
    still_out: wp.array[wp.float32],
    drift_out: Three,
):
    """Of a corner that the surface cannot have come near only the sign matters, and that is as it was."""
    n = first + wp.tid()
    c = hanging.entry[n]
    velocity = wp.vec3()
    away = distance[c]
    if wp.abs(away) < MICRON * float(1 + farthest[0]) + 2.0 * spacing:
        u = moved_by(hanging, n, rest, now)
        corner = corner_of(shape, wp.vec3(), 1.0, c)
        away = distance_at(shape, distance, corner - u / spacing)
        velocity = (u - moved_by(hanging, n, rest, before)) / dt
        if wp.length(velocity) > FASTEST:
            velocity = wp.vec3()
    still_out[c] = away
    drift_out.x[c] = velocity[0]
    drift_out.y[c] = velocity[1]
    drift_out.z[c] = velocity[2]


@wp.kernel
def find_farthest(
    # in
    rest: wp.array[wp.vec3],
    now: wp.array[wp.vec3],
    before: wp.array[wp.vec3],
    # out
    farthest_out: wp.array[wp.int32],
):
    """In whole micrometres, so that it is the same in any order. On cpu one core does it, as atomics there are
    plain."""
    i = wp.tid()
    away = wp.max(wp.length(now[i] - rest[i]), wp.length(before[i] - rest[i]))
    wp.atomic_max(farthest_out, 0, int(wp.min(away / MICRON, 1.0e9)))


@wp.kernel
def find_shift(
    # params
    unit: float,
    # in
    vertices: wp.array[wp.vec3],
    now: wp.array[wp.vec3],
    # out
    most_out: wp.array[wp.int32],
):
    """The farthest that a vertex is from where it was taken last, in whole units; as `find_farthest`."""
    i = wp.tid()
    wp.atomic_max(most_out, 0, int(wp.min(wp.length(vertices[i] - now[i]) / unit, 1.0e9)))


def make_bending(grid: Grid, mesh: TriangleMesh) -> Bending:
    """A surface whose distances the flow was made with (`Grid.still`)."""
    device, layout, p = grid.device.warp, grid.layout, grid.params
    query = build_query(mesh, grid.device)
    face = wp.full(layout.size, -1, dtype=wp.int32, device=device)
    share = wp.zeros(layout.size, dtype=wp.vec2, device=device)
    origin = wp.vec3(*(np.asarray(p.origin) - query.origin).tolist())
    args = [layout.struct(), origin, p.spacing, REACH, query.id, face, share]
    wp.launch(hang_corners, dim=layout.count + layout.layer, inputs=args, device=device)
    entry = _entries_of_box(grid)
    found = face.numpy()[entry]
    near, u, v = entry[found >= 0], *share.numpy()[entry[found >= 0]].T
    hanging: Any = Hanging()
    hanging.entry = wp.array(near, dtype=wp.int32, device=device)
    hanging.triangle = wp.array(mesh.triangles[found[found >= 0]], dtype=wp.vec3i, device=device)
    hanging.weight = wp.array(np.stack([u, v, 1.0 - u - v], axis=1), dtype=wp.vec3, device=device)
    rest = wp.array(mesh.vertices.astype(np.float32), dtype=wp.vec3, device=device)
    farthest = wp.zeros(1, dtype=wp.int32, device=device)
    return Bending(hanging, rest, wp.clone(rest), wp.clone(rest), wp.clone(grid.still), farthest)


def _entries_of_box(grid: Grid) -> NDArray[np.int64]:
    """Of all corners of the box."""
    return grid.layout.box(np.arange(grid.layout.size), (1, 1, 1)).ravel()


def bend(stage: Stage, grid: Grid, bending: Bending) -> None:
    """Distances and velocities of what does not hang on tools, as the surface is now."""
    b, p = bending, grid.params
    places = [b.rest, b.now, b.before]
    stage.once(b.farthest.zero_)
    far = [*places, b.farthest]
    stage.once(lambda: wp.launch(find_farthest, dim=len(b.rest), inputs=far, device=grid.device.warp))
    args = [grid.levels[0].shape, p.spacing, p.dt, b.hanging, *places, b.distance, b.farthest]
    stage.launch(bend_corners, len(b.hanging.entry), [*args, grid.still, three(grid.drift)])
