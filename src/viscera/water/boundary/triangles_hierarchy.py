"""Triangles in a bounding volume hierarchy: Warp's `Mesh`, asked for the nearest point within a reach.

A tree of boxes, each around its children's boxes (Grahn §4.2.1); a branch whose box is farther than the best so far is
not entered. Warp builds it (surface area heuristic on cpu) and answers; what is ours is the form of the answer.

For walls that deform the boxes are fitted again (`Mesh.refit`). A recorded program on cpu does not replay that,
without an error: fit between runs, never inside one. The hashed grid has no such trap.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device
from viscera.water.boundary.nearest import Nearest, nothing_near

wp.set_module_options({"enable_backward": False})


@wp.func
def nearest_in_hierarchy(tree: wp.uint64, reach: float, point: wp.vec3) -> Nearest:
    """The nearest triangle within the reach."""
    found = nothing_near(reach)
    query = wp.mesh_query_point_no_sign(tree, point, reach)
    if query.result:
        way = point - wp.mesh_eval_position(tree, query.face, query.u, query.v)
        distance = wp.length(way)
        if distance < reach:
            found.distance = distance
            found.free = distance
            found.solid = distance
            if distance > 0.0:
                found.normal = way / distance
            else:
                found.normal = -wp.mesh_eval_face_normal(tree, query.face)
            found.face = query.face
            found.weights = wp.vec3(query.u, query.v, 1.0 - query.u - query.v)
            found.velocity = wp.mesh_eval_velocity(tree, query.face, query.u, query.v)
    return found


def make_hierarchy(vertices: NDArray[np.float64], triangles: NDArray[np.int32], device: Device) -> wp.Mesh:
    """The tree over the triangles as they are."""
    return wp.Mesh(
        wp.array(vertices, dtype=wp.vec3, device=device.warp),
        wp.array(triangles.ravel(), dtype=wp.int32, device=device.warp),
        velocities=wp.zeros(len(vertices), dtype=wp.vec3, device=device.warp),
        # The slower build makes the faster tree on cpu; on cuda it would be made on the host.
        bvh_constructor=None if device.is_cuda else "sah",
    )
