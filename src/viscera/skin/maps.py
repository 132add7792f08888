"""Texel maps from deformed vertices: positions, tangents, metric and area, gathered without atomics.

Within a triangle the atlas is affine, so ∂x/∂texel is constant there; a texel takes the mean over the pieces of
triangles in it, weighted by their share. Differs from the source, which differentiates a map of positions (Kvick
§3.8.3): that breaks down beside seams, where a neighbouring texel is somewhere else.
"""

# Warp's stubs know neither its own dtypes nor the fields of a vector.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.kernel
def face_tangents(
    first: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    to_edges: wp.array(dtype=wp.vec4),
    # out
    face_u_out: wp.array(dtype=wp.vec3),
    face_v_out: wp.array(dtype=wp.vec3),
):
    """∂x/∂column and ∂x/∂row of each triangle [m per texel]."""
    i = first + wp.tid()
    corner = triangles[i]
    origin = vertices[corner[0]]
    e = vertices[corner[1]] - origin
    f = vertices[corner[2]] - origin
    m = to_edges[i]
    face_u_out[i] = m[0] * e + m[2] * f
    face_v_out[i] = m[1] * e + m[3] * f


@wp.kernel
def texel_maps(
    first: int,
    # in
    pieces: wp.array(dtype=wp.int32),
    piece_face: wp.array(dtype=wp.int32),
    piece_weight: wp.array(dtype=wp.float32),
    texels: wp.array(dtype=wp.int32),
    face_u: wp.array(dtype=wp.vec3),
    face_v: wp.array(dtype=wp.vec3),
    # out
    tangent_u_out: wp.array(dtype=wp.vec3),
    tangent_v_out: wp.array(dtype=wp.vec3),
    metric_out: wp.array(dtype=wp.vec3),
    area_out: wp.array(dtype=wp.float32),
):
    i = first + wp.tid()
    u = wp.vec3(0.0, 0.0, 0.0)
    v = wp.vec3(0.0, 0.0, 0.0)
    metric = wp.vec3(0.0, 0.0, 0.0)
    area = float(0.0)
    share = float(0.0)
    for k in range(pieces[i], pieces[i + 1]):
        face = piece_face[k]
        weight = piece_weight[k]
        a = face_u[face]
        b = face_v[face]
        u += weight * a
        v += weight * b
        metric += weight * wp.vec3(wp.dot(a, a), wp.dot(a, b), wp.dot(b, b))
        area += weight * wp.length(wp.cross(a, b))
        share += weight
    texel = texels[i]
    tangent_u_out[texel] = u / share
    tangent_v_out[texel] = v / share
    metric_out[texel] = metric / share
    area_out[texel] = area


@wp.kernel
def texel_positions(
    first: int,
    # in
    texels: wp.array(dtype=wp.int32),
    face: wp.array(dtype=wp.int32),
    barycentric: wp.array(dtype=wp.vec2),
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    # out
    position_out: wp.array(dtype=wp.vec3),
):
    texel = texels[first + wp.tid()]
    corner = triangles[face[texel]]
    b = barycentric[texel]
    origin = vertices[corner[0]]
    position_out[texel] = origin + b[0] * (vertices[corner[1]] - origin) + b[1] * (vertices[corner[2]] - origin)
