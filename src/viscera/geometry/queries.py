"""Closest point, signed distance and rays on a triangle mesh, through Warp's bounding volume hierarchy.

In kernels: pass `MeshQuery.id` and points relative to `MeshQuery.origin`, and call `closest_on_mesh`,
`signed_distance_to_mesh` or Warp's own mesh queries. From Python: the front functions take and give world positions.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

wp.set_module_options({"enable_backward": False})

FAR = wp.constant(1.0e6)
"""Farther than any two things of a world [m]."""


@dataclass(frozen=True, eq=False)
class MeshQuery:
    """A mesh on a device, ready to be asked. It is kept about its box's centre, where float32 is finest."""

    mesh: TriangleMesh
    origin: FloatArray
    """World position of the tree's origin [m]."""
    tree: wp.Mesh
    device: Device

    @property
    def id(self) -> int:
        """What a kernel takes as `wp.uint64`; valid as long as this object lives."""
        return self.tree.id


def build_query(mesh: TriangleMesh, device: Device | None = None) -> MeshQuery:
    """`mesh` should be closed and face outward (`require_closed`) if signs are to mean anything."""
    device = device or open_device("cpu")
    origin = mesh.centre
    tree = wp.Mesh(
        wp.array(mesh.vertices - origin, dtype=wp.vec3, device=device.warp),
        wp.array(mesh.triangles.ravel(), dtype=wp.int32, device=device.warp),
        support_winding_number=True,
        # The slower build makes the faster tree on cpu; on cuda it would be made on the host.
        bvh_constructor=None if device.is_cuda else "sah",
    )
    return MeshQuery(mesh, origin, tree, device)


@wp.func
def closest_on_mesh(mesh: wp.uint64, point: wp.vec3):
    """The nearest point of the surface."""
    found = wp.mesh_query_point_no_sign(mesh, point, FAR)
    return wp.mesh_eval_position(mesh, found.face, found.u, found.v)


@wp.func
def signed_distance_to_mesh(mesh: wp.uint64, point: wp.vec3):
    """Negative inside; the winding number decides, so small flaws of the surface do not."""
    found = wp.mesh_query_point_sign_winding_number(mesh, point, FAR)
    return found.sign * wp.length(point - wp.mesh_eval_position(mesh, found.face, found.u, found.v))


@wp.kernel
def find_closest(
    first: int,
    # in
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    # out
    closest_out: wp.array(dtype=wp.vec3),
    distance_out: wp.array(dtype=float),
    face_out: wp.array(dtype=int),
):
    """Distances are signed as in `signed_distance_to_mesh`; the face is -1 where nothing was found."""
    i = first + wp.tid()
    found = wp.mesh_query_point_sign_winding_number(mesh, points[i], FAR)
    if found.result:
        closest = wp.mesh_eval_position(mesh, found.face, found.u, found.v)
        closest_out[i] = closest
        distance_out[i] = found.sign * wp.length(points[i] - closest)
        face_out[i] = found.face
    else:
        closest_out[i] = points[i]
        distance_out[i] = wp.inf
        face_out[i] = -1


@wp.kernel
def cast_ray(
    first: int,
    # params
    reach: float,
    # in
    mesh: wp.uint64,
    starts: wp.array(dtype=wp.vec3),
    directions: wp.array(dtype=wp.vec3),
    # out
    distance_out: wp.array(dtype=float),
    face_out: wp.array(dtype=int),
    normal_out: wp.array(dtype=wp.vec3),
):
    """Directions have unit length. Without a hit the distance is infinite and the face -1."""
    i = first + wp.tid()
    distance = wp.inf
    face = int(-1)
    normal = wp.vec3(0.0, 0.0, 0.0)
    hit = wp.mesh_query_ray(mesh, starts[i], directions[i], reach)
    if hit.result:
        distance = hit.t
        face = hit.face
        normal = hit.normal
    distance_out[i] = distance
    face_out[i] = face
    normal_out[i] = normal


@dataclass(frozen=True, eq=False)
class Closest:
    points: FloatArray
    """On the surface, shape (n, 3) [m]."""
    distances: FloatArray
    """Negative inside, shape (n,) [m]."""
    faces: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class RayHits:
    distances: FloatArray
    """From the start, shape (n,) [m]; infinite where nothing is hit."""
    points: FloatArray
    """Shape (n, 3) [m]; NaN where nothing is hit."""
    faces: NDArray[np.int32]
    """-1 where nothing is hit."""
    normals: FloatArray
    """Outward, of the face that was hit."""


def closest_points(query: MeshQuery, points: ArrayLike) -> Closest:
    """The surface's nearest point to each of `points`, shape (n, 3) [m]."""
    asked = checked_points("points", points)
    count, device = len(asked), query.device.warp
    closest = wp.empty(count, dtype=wp.vec3, device=device)
    distance = wp.empty(count, dtype=wp.float32, device=device)
    face = wp.empty(count, dtype=wp.int32, device=device)
    local = wp.array(asked - query.origin, dtype=wp.vec3, device=device)
    wp.launch(find_closest, dim=count, inputs=[0, query.id, local, closest, distance, face], device=device)
    return Closest(closest.numpy() + query.origin, distance.numpy().astype(np.float64), face.numpy())


def signed_distance(query: MeshQuery, points: ArrayLike) -> FloatArray:
    """Distance of each of `points`, shape (n, 3), from the surface, negative inside [m]."""
    return closest_points(query, points).distances


def cast_rays(query: MeshQuery, starts: ArrayLike, directions: ArrayLike, reach: float = 1.0e6) -> RayHits:
    """First hits of rays of length `reach` [m]; directions need not have unit length. Both sides of a face are hit."""
    begin, along = checked_points("starts", starts), checked_points("directions", directions)
    if len(begin) != len(along):
        raise InputError(f"{len(begin)} starts for {len(along)} directions.", "Give one direction per start.")
    length = np.linalg.norm(along, axis=1, keepdims=True)
    if np.any(length == 0.0):
        raise InputError(f"directions[{int(length.argmin())}] is zero.", "Give every ray a direction.")
    if not reach > 0.0:
        raise InputError(f"reach = {reach} is not possible.", "It must be above 0.")
    unit = along / length
    count, device = len(begin), query.device.warp
    distance = wp.empty(count, dtype=wp.float32, device=device)
    face = wp.empty(count, dtype=wp.int32, device=device)
    normal = wp.empty(count, dtype=wp.vec3, device=device)
    local = wp.array(begin - query.origin, dtype=wp.vec3, device=device)
    directions_there = wp.array(unit, dtype=wp.vec3, device=device)
    arguments = [0, min(float(reach), 1.0e6), query.id, local, directions_there, distance, face, normal]
    wp.launch(cast_ray, dim=count, inputs=arguments, device=device)
    distances = distance.numpy().astype(np.float64)
    hit = np.isfinite(distances)[:, None]
    points = np.where(hit, begin + np.where(hit, distances[:, None], 0.0) * unit, np.nan)
    return RayHits(distances, points, face.numpy(), normal.numpy().astype(np.float64))


def checked_points(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"{name} has shape {array.shape}.", "Give one row of x, y, z per point.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has values that are not finite.", "Give finite coordinates in metres.")
    return array
