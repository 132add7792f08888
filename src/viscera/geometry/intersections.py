"""Which triangles of a mesh pass through each other.

Broad phase: boxes against Warp's bounding volume hierarchy. Narrow phase in float64: two triangles meet if an edge of
one meets the other; signs of tetrahedron volumes decide, and triangles in one plane are compared by separating axes.
Triangles that share an edge can meet only by folding flat onto each other; those that share a corner are tested by the
edges opposite to it. Touching counts.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, open_device
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.topology import Topology, topology

wp.set_module_options({"enable_backward": False})

PLANE_TOLERANCE = wp.constant(wp.float64(1e-12))
"""Corners closer to a plane than this lie in it; in units of the mesh's extent, well above float64's rounding."""


@dataclass(frozen=True, eq=False)
class Intersections:
    pairs: int
    faces: NDArray[np.int64]
    """Triangles that meet another one of a higher number, shape (n,)."""
    partners: NDArray[np.int64]
    """One such triangle for each, shape (n,)."""


@wp.func
def volume6(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d):
    """Six times the signed volume of a tetrahedron."""
    return wp.dot(wp.cross(b - a, c - a), d - a)


@wp.func
def snapped(value: wp.float64, tolerance: wp.float64):
    return wp.where(wp.abs(value) <= tolerance, wp.float64(0.0), value)


@wp.func
def edge_meets_triangle(p: wp.vec3d, q: wp.vec3d, at_p: wp.float64, at_q: wp.float64, t: wp.mat33d):
    """`at_p` and `at_q` are the sides of the triangle's plane that p and q lie on."""
    zero = wp.float64(0.0)
    if (at_p > zero and at_q > zero) or (at_p < zero and at_q < zero) or (at_p == zero and at_q == zero):
        return False
    u = volume6(p, q, t[0], t[1])
    v = volume6(p, q, t[1], t[2])
    w = volume6(p, q, t[2], t[0])
    return (u >= zero and v >= zero and w >= zero) or (u <= zero and v <= zero and w <= zero)


@wp.func
def flat(p: wp.vec3d, dropped: int):
    """`p` seen along the axis `dropped`."""
    return wp.vec2d(p[(dropped + 1) % 3], p[(dropped + 2) % 3])


@wp.func
def overlap_in_plane(s: wp.mat33d, t: wp.mat33d, dropped: int, length: wp.float64):
    """Separating axes: whether two triangles of one plane share more than a border."""
    for e in range(6):
        a = flat(wp.where(e < 3, s[e % 3], t[e % 3]), dropped)
        b = flat(wp.where(e < 3, s[(e + 1) % 3], t[(e + 1) % 3]), dropped)
        axis = wp.vec2d(a[1] - b[1], b[0] - a[0])
        s0 = wp.dot(axis, flat(s[0], dropped))
        s1 = wp.dot(axis, flat(s[1], dropped))
        s2 = wp.dot(axis, flat(s[2], dropped))
        t0 = wp.dot(axis, flat(t[0], dropped))
        t1 = wp.dot(axis, flat(t[1], dropped))
        t2 = wp.dot(axis, flat(t[2], dropped))
        least = wp.min(wp.max(s0, wp.max(s1, s2)), wp.max(t0, wp.max(t1, t2)))
        most = wp.max(wp.min(s0, wp.min(s1, s2)), wp.min(t0, wp.min(t1, t2)))
        if least - most <= PLANE_TOLERANCE * length:
            return False
    return True


@wp.func
def sides(s: wp.mat33d, t: wp.mat33d, tolerance: wp.float64):
    """On which side of t's plane the corners of s lie."""
    return wp.vec3d(
        snapped(volume6(t[0], t[1], t[2], s[0]), tolerance),
        snapped(volume6(t[0], t[1], t[2], s[1]), tolerance),
        snapped(volume6(t[0], t[1], t[2], s[2]), tolerance),
    )


@wp.func
def longest_side(t: wp.mat33d):
    return wp.max(wp.length(t[1] - t[0]), wp.max(wp.length(t[2] - t[1]), wp.length(t[0] - t[2])))


@wp.func
def corner_shared(i: wp.vec3i, j: wp.vec3i, c: int):
    """Whether corner c of triangle i is one of j's."""
    return i[c] == j[0] or i[c] == j[1] or i[c] == j[2]


@wp.func
def some_edge_meets(s: wp.mat33d, t: wp.mat33d, at: wp.vec3d, si: wp.vec3i, ti: wp.vec3i):
    """Whether an edge of s, none of whose ends is a corner of t, meets t."""
    meets = bool(False)
    for c in range(3):
        d = (c + 1) % 3
        if not corner_shared(si, ti, c) and not corner_shared(si, ti, d):
            meets = meets or edge_meets_triangle(s[c], s[d], at[c], at[d], t)
    return meets


@wp.func
def triangles_meet(s: wp.mat33d, t: wp.mat33d, si: wp.vec3i, ti: wp.vec3i):
    ls = longest_side(s)
    lt = longest_side(t)
    s_at = sides(s, t, PLANE_TOLERANCE * lt * lt)
    t_at = sides(t, s, PLANE_TOLERANCE * ls * ls)
    if wp.length_sq(s_at) == wp.float64(0.0) or wp.length_sq(t_at) == wp.float64(0.0):
        normal = wp.cross(s[1] - s[0], s[2] - s[0])
        dropped = int(0)
        if wp.abs(normal[1]) > wp.abs(normal[dropped]):
            dropped = int(1)
        if wp.abs(normal[2]) > wp.abs(normal[dropped]):
            dropped = int(2)
        return overlap_in_plane(s, t, dropped, wp.max(ls, lt))
    return some_edge_meets(s, t, s_at, si, ti) or some_edge_meets(t, s, t_at, ti, si)


@wp.kernel
def find_intersections(
    first: int,
    # in
    mesh: wp.uint64,
    vertices: wp.array(dtype=wp.vec3d),
    triangles: wp.array(dtype=wp.vec3i),
    margin: float,
    # out
    count_out: wp.array(dtype=int),
    partner_out: wp.array(dtype=int),
):
    """Per triangle, how many of higher number it meets, and the lowest of them (-1: none)."""
    i = first + wp.tid()
    si = triangles[i]
    s = wp.matrix_from_rows(vertices[si[0]], vertices[si[1]], vertices[si[2]])
    low = wp.vec3(wp.min(wp.min(s[0], s[1]), s[2]))
    high = wp.vec3(wp.max(wp.max(s[0], s[1]), s[2]))
    pad = wp.vec3(margin, margin, margin)
    count = int(0)
    partner = int(-1)
    query = wp.mesh_query_aabb(mesh, low - pad, high + pad)
    j = int(0)
    while wp.mesh_query_next(query, j):
        if j > i:
            ti = triangles[j]
            t = wp.matrix_from_rows(vertices[ti[0]], vertices[ti[1]], vertices[ti[2]])
            if triangles_meet(s, t, si, ti):
                count += 1
                if partner < 0 or j < partner:
                    partner = j
    count_out[i] = count
    partner_out[i] = partner


def self_intersections(mesh: TriangleMesh, topo: Topology | None = None, device: Device | None = None) -> Intersections:
    """Pairs of triangles that pass through or touch each other; needles and slivers without a plane are left out."""
    device = device or open_device("cpu")
    topo = topo or topology(mesh)
    scaled: FloatArray = (mesh.vertices - mesh.centre) / max(mesh.extent, np.finfo(np.float64).tiny)
    flat_ones = np.linalg.norm(mesh.face_vectors[topo.faces], axis=1) <= 1e-14 * mesh.extent**2
    faces = topo.faces[~flat_ones]
    corners = topo.triangles[~flat_ones]
    if len(faces) == 0:
        return Intersections(0, faces, faces)
    points = wp.array(scaled, dtype=wp.vec3, device=device.warp)
    indices = wp.array(corners.ravel(), dtype=wp.int32, device=device.warp)
    tree = wp.Mesh(points, indices, bvh_constructor="sah" if not device.is_cuda else None)
    count = wp.zeros(len(faces), dtype=wp.int32, device=device.warp)
    partner = wp.zeros(len(faces), dtype=wp.int32, device=device.warp)
    exact = wp.array(scaled, dtype=wp.vec3d, device=device.warp)
    triangles = wp.array(corners, dtype=wp.vec3i, device=device.warp)
    # A few float32 roundings of coordinates up to 1.
    margin = 1e-6
    wp.launch(
        find_intersections,
        dim=len(faces),
        inputs=[0, tree.id, exact, triangles, margin, count, partner],
        device=device.warp,
    )
    counts = count.numpy()
    hit = np.flatnonzero(counts)
    return Intersections(int(counts.sum()), faces[hit], faces[partner.numpy()[hit]])
