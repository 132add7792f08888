"""Pictures of triangle meshes for saved images: one ray per pixel, through Warp's mesh queries.

For a documentation picture or a test, not for real time: the page draws meshes with WebGL.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from viscera.device import Device
from viscera.imaging.lens import Lens
from viscera.imaging.splats import GBuffer

wp.set_module_options({"enable_backward": False})


@wp.kernel
def cast(
    first: int,
    # params
    mesh: wp.uint64,
    reach: float,
    # in
    origin: wp.array(dtype=wp.vec3),
    direction: wp.array(dtype=wp.vec3),
    index: wp.array(dtype=wp.int32),
    vertex_normal: wp.array(dtype=wp.vec3),
    # out
    distance_out: wp.array(dtype=wp.float32),
    normal_out: wp.array(dtype=wp.vec3),
):
    i = first + wp.tid()
    hit = wp.mesh_query_ray(mesh, origin[i], direction[i], reach)
    distance = wp.float32(-1.0)
    normal = wp.vec3(0.0, 0.0, 0.0)
    if hit.result:
        distance = hit.t
        a = vertex_normal[index[3 * hit.face]]
        b = vertex_normal[index[3 * hit.face + 1]]
        c = vertex_normal[index[3 * hit.face + 2]]
        normal = wp.normalize(hit.u * a + hit.v * b + (1.0 - hit.u - hit.v) * c)
        if wp.dot(normal, direction[i]) > 0.0:
            normal = -normal
    distance_out[i] = distance
    normal_out[i] = normal


def vertex_normals(vertices: ArrayLike, triangles: ArrayLike) -> np.ndarray:
    """Mean of the triangles around each vertex, weighted by area; (n, 3)."""
    points, corner = np.asarray(vertices, dtype=np.float64), np.asarray(triangles)
    a, b, c = (points[corner[:, k]] for k in range(3))
    face = np.cross(b - a, c - a)
    total = np.zeros_like(points)
    for k in range(3):
        np.add.at(total, corner[:, k], face)
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-300)


def see_mesh(
    lens: Lens, vertices: ArrayLike, triangles: ArrayLike, device: Device, normals: ArrayLike | None = None
) -> GBuffer:
    """Depth and interpolated normals of a mesh, turned to the eye; its thickness is nowhere known and 0."""
    points = np.asarray(vertices, dtype=np.float32)
    corner = np.asarray(triangles, dtype=np.int32).ravel()
    smooth = vertex_normals(points, corner.reshape(-1, 3)) if normals is None else np.asarray(normals)
    shape = (lens.height, lens.width)
    if len(corner) == 0:
        return GBuffer(
            np.full(shape, np.inf, dtype=np.float32),
            np.zeros((*shape, 3), dtype=np.float32),
            np.zeros(shape, dtype=np.float32),
        )
    place = device.warp
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3, device=place), wp.array(corner, dtype=wp.int32, device=place))
    way = lens.directions().reshape(-1, 3)
    length = np.linalg.norm(way, axis=1)
    pixels = len(way)
    distance = wp.zeros(pixels, dtype=wp.float32, device=place)
    normal = wp.zeros(pixels, dtype=wp.vec3, device=place)
    eye = np.tile(np.asarray(lens.camera.position, dtype=np.float32), (pixels, 1))
    inputs = [
        0,
        mesh.id,
        2.0 * lens.far,
        wp.array(eye, dtype=wp.vec3, device=place),
        wp.array((way / length[:, None]).astype(np.float32), dtype=wp.vec3, device=place),
        wp.array(corner, dtype=wp.int32, device=place),
        wp.array(smooth.astype(np.float32), dtype=wp.vec3, device=place),
    ]
    wp.launch(cast, dim=pixels, inputs=inputs, outputs=[distance, normal], device=place)
    along = distance.numpy()
    depth = np.where(along >= 0.0, along / length, np.inf).astype(np.float32)
    return GBuffer(depth.reshape(shape), normal.numpy().reshape(*shape, 3), np.zeros(shape, dtype=np.float32))
