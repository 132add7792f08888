"""A mesh moved outwards by a small way, for what counts as wall: faces keep that distance, edges stay sharp.

A vertex v moves by the way w n/c: n is the mean of the unit normals n_f around it, weighted by their angles at v, so it
does not depend on how faces are cut into triangles, and c the mean of n·n_f, so a corner of three faces goes as far as
each of them needs. Where faces meet so sharply that c is small it goes no farther than `MOST` ways.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.water.boundary.triangles_hashed import place_corners
from viscera.water.boundary.walls import Walls

wp.set_module_options({"enable_backward": False})

MOST = wp.constant(2.0)
_NO_LENGTH = wp.constant(1.0e-30)


@wp.func
def quick_angle(cosine: float) -> float:
    """Of a cosine, within 7·10⁻⁵ (Abramowitz and Stegun 4.4.45); a weight needs no more."""
    x = wp.min(wp.abs(cosine), 1.0)
    angle = wp.sqrt(1.0 - x) * (1.5707288 + x * (-0.2121144 + x * (0.0742610 - 0.0187293 * x)))
    return wp.where(cosine < 0.0, 3.14159265 - angle, angle)


@wp.func
def direction(a: wp.vec3) -> wp.vec3:
    return a / wp.sqrt(wp.max(wp.dot(a, a), _NO_LENGTH))


@wp.kernel
def find_normals(
    first: int,
    # in
    corners: wp.array2d(dtype=wp.vec3),
    # out
    normal_out: wp.array(dtype=wp.vec3),
    angle_out: wp.array(dtype=wp.vec3),
):
    """Of each triangle: its normal and its angles."""
    t = first + wp.tid()
    a = corners[t, 0]
    ab = direction(corners[t, 1] - a)
    ac = direction(corners[t, 2] - a)
    bc = direction(corners[t, 2] - corners[t, 1])
    normal_out[t] = direction(wp.cross(ab, ac))
    at_a = quick_angle(wp.dot(ab, ac))
    at_b = quick_angle(-wp.dot(ab, bc))
    angle_out[t] = wp.vec3(at_a, at_b, 3.14159265 - at_a - at_b)


@wp.kernel
def go_behind(
    first: int,
    # params
    way: float,
    start: wp.array(dtype=wp.int32),
    around: wp.array(dtype=wp.vec2i),
    # in
    vertices: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    angle: wp.array(dtype=wp.vec3),
    # out
    behind_out: wp.array(dtype=wp.vec3),
):
    v = first + wp.tid()
    n = wp.vec3(0.0, 0.0, 0.0)
    whole = float(0.0)
    for e in range(start[v], start[v + 1]):
        one = around[e]
        weight = angle[one[0]][one[1]]
        n += weight * normal[one[0]]
        whole += weight
    # |Σ w n_f|²/Σ w is the mean of n·n_f times |Σ w n_f|, so the way is n/|n| over that mean.
    square = wp.dot(n, n)
    scale = float(0.0)
    if square > 0.0:
        scale = wp.min(whole / square, MOST / wp.sqrt(square))
    behind_out[v] = vertices[v] + (way * scale) * n


class Behind:
    """Of walls of triangles, kept up to date by `step`."""

    def __init__(self, walls: Walls, way: float) -> None:
        """`way` [m] outwards, along the normals of the triangles."""
        assert walls.mesh is not None
        device, triangles = walls.device.warp, walls.mesh.triangles
        n, faces = len(walls.mesh.vertices), len(triangles)
        order = np.argsort(triangles.reshape(-1), kind="stable")
        counts = np.bincount(triangles.reshape(-1), minlength=n)
        around = np.stack([order // 3, order % 3], axis=1).astype(np.int32)
        self._walls, self._way = walls, way
        self._indices = wp.array(triangles, dtype=wp.int32, device=device)
        self._start = wp.array(np.concatenate([[0], counts.cumsum()]).astype(np.int32), dtype=wp.int32, device=device)
        self._around = wp.array(around, dtype=wp.vec2i, device=device)
        self._normal = wp.zeros(faces, dtype=wp.vec3, device=device)
        self._angle = wp.zeros(faces, dtype=wp.vec3, device=device)
        self._behind = wp.zeros(n, dtype=wp.vec3, device=device)
        self.corners = wp.zeros((faces, 3), dtype=wp.vec3, device=device)
        """Of each triangle [m]."""

    def step(self, stage: Stage) -> None:
        walls, faces = self._walls, len(self._normal)
        stage.launch(find_normals, faces, [walls.view.corners, self._normal, self._angle])
        found = [walls.vertices, self._normal, self._angle, self._behind]
        stage.launch(go_behind, len(self._behind), [self._way, self._start, self._around, *found])
        stage.launch(place_corners, faces, [self._behind, self._indices, self.corners])
