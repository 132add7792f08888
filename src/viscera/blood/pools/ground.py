"""The ground of a pool: for each column the highest triangle over its middle, as the tissue moves.

Heights are compared as whole tenths of a micrometre with the triangle's number behind, so the largest is the same in
any order. While no vertex has moved by `STILL` since it was last found, all of it returns at once.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.columns import NO_GROUND, PoolView

wp.set_module_options({"enable_backward": False})

STILL = wp.constant(1.0e-5)
"""[m]"""

FINE = wp.constant(1.0e7)
"""Steps of height per metre."""

FACES = wp.constant(wp.int64(2**24))
"""More than there are triangles."""

LOWEST = wp.constant(wp.int64(2**31))
"""Added to heights, so that they are positive."""

EDGE_ON = wp.constant(1.0e-12)
"""Twice the area of a triangle seen from above that counts as none [m²]."""

RIM = wp.constant(-1.0e-4)
"""Weights down to this are inside: neighbours overlap rather than leave a gap."""


@wp.kernel
def find_moved(
    first: int,
    # params
    chunk: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    seen: wp.array(dtype=wp.vec3),
    # out
    moved_out: wp.array(dtype=wp.int32),
):
    """1 where a vertex has moved. Several threads may write it."""
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, vertices.shape[0])):
        if not (wp.length(vertices[i] - seen[i]) < STILL):
            moved_out[0] = 1


@wp.kernel
def clear_top(
    first: int,
    # params
    pool: PoolView,
    # in
    moved: wp.array(dtype=wp.int32),
    # out
    top_out: wp.array(dtype=wp.int64),
):
    begin = (first + wp.tid()) * pool.chunk
    if moved[0] != 0:
        for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
            top_out[i] = wp.int64(0)


@wp.kernel
def find_top(
    # params
    pool: PoolView,
    # in
    moved: wp.array(dtype=wp.int32),
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    # out
    top_out: wp.array(dtype=wp.int64),
):
    """A thread takes `pool.chunk` triangles. On cpu launched by one core, as atomics there are plain."""
    begin = wp.tid() * pool.chunk
    if moved[0] == 0:
        return
    for t in range(begin, wp.min(begin + pool.chunk, triangles.shape[0])):
        corner = triangles[t]
        a = vertices[corner[0]]
        e = vertices[corner[1]] - a
        f = vertices[corner[2]] - a
        double = e[0] * f[1] - e[1] * f[0]
        # Those that face down cannot be the highest of a closed body.
        if double > EDGE_ON:
            low_x = wp.min(0.0, wp.min(e[0], f[0])) + a[0]
            high_x = wp.max(0.0, wp.max(e[0], f[0])) + a[0]
            low_y = wp.min(0.0, wp.min(e[1], f[1])) + a[1]
            high_y = wp.max(0.0, wp.max(e[1], f[1])) + a[1]
            left = wp.max(int(wp.floor((low_x - pool.left) / pool.side - 0.5)), 0)
            right = wp.min(int(wp.floor((high_x - pool.left) / pool.side - 0.5)) + 2, pool.columns)
            front = wp.max(int(wp.floor((low_y - pool.front) / pool.side - 0.5)), 0)
            back = wp.min(int(wp.floor((high_y - pool.front) / pool.side - 0.5)) + 2, pool.rows)
            for j in range(front, back):
                for i in range(left, right):
                    x = pool.left + (float(i) + 0.5) * pool.side - a[0]
                    y = pool.front + (float(j) + 0.5) * pool.side - a[1]
                    second = (x * f[1] - y * f[0]) / double
                    third = (e[0] * y - e[1] * x) / double
                    if second >= RIM and third >= RIM and second + third <= 1.0 - RIM:
                        z = a[2] + second * e[2] + third * f[2]
                        high = wp.int64(z * FINE) + LOWEST
                        wp.atomic_max(top_out, j * pool.columns + i, high * FACES + wp.int64(t))


@wp.kernel
def take_ground(
    first: int,
    # params
    pool: PoolView,
    # in
    moved: wp.array(dtype=wp.int32),
    top: wp.array(dtype=wp.int64),
    # out
    pool_out: PoolView,
):
    begin = (first + wp.tid()) * pool.chunk
    if moved[0] == 0:
        return
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        pool_out.ground[i] = NO_GROUND
        pool_out.face[i] = -1
        if top[i] > wp.int64(0):
            pool_out.ground[i] = float(top[i] / FACES - LOWEST) / FINE
            pool_out.face[i] = int(top[i] % FACES)


@wp.kernel
def remember(
    first: int,
    # params
    chunk: int,
    # in
    moved: wp.array(dtype=wp.int32),
    vertices: wp.array(dtype=wp.vec3),
    # out
    seen_out: wp.array(dtype=wp.vec3),
):
    begin = (first + wp.tid()) * chunk
    if moved[0] != 0:
        for i in range(begin, wp.min(begin + chunk, vertices.shape[0])):
            seen_out[i] = vertices[i]
