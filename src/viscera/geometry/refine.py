"""Finer triangles in some places, and meshes cut along a line on them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.mesh import FloatArray, TriangleMesh

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_ROUNDS = 12
"""Of splitting in two: edges get 4 000 times shorter."""


def refined(mesh: TriangleMesh, near: Callable[[FloatArray], Flags], edge: float) -> TriangleMesh:
    """The same surface with edges up to `edge` [m] where `near`, asked about places (n, 3), says so. A longer edge is
    split in its middle, in both triangles that share it, so a closed mesh stays closed."""
    vertices, triangles = mesh.vertices, mesh.triangles.astype(np.int64)
    for _ in range(MOST_ROUNDS):
        ends, edges = _edges(triangles)
        middle = 0.5 * (vertices[ends[:, 0]] + vertices[ends[:, 1]])
        length = np.linalg.norm(vertices[ends[:, 0]] - vertices[ends[:, 1]], axis=1)
        long = (length > edge) & near(middle)
        if not long.any():
            break
        number = np.full(len(ends), -1)
        number[long] = len(vertices) + np.arange(int(long.sum()))
        vertices = np.concatenate([vertices, middle[long]])
        triangles = _split(triangles, number[edges])
    return TriangleMesh(vertices, triangles.astype(np.int32), mesh.name)


def _edges(triangles: Ints) -> tuple[Ints, Ints]:
    """Ends of each edge, lower vertex first, (edges, 2); and for each triangle the edge that begins at each corner."""
    pairs = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=-1).reshape(-1, 2)
    ends, place = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
    return ends, place.reshape(-1, 3)


def _split(triangles: Ints, middle: Ints) -> Ints:
    """Each triangle by its edges that have a new vertex in the middle (−1: none): in 1, 2, 3 or 4."""
    out = [triangles[(middle < 0).all(axis=1)]]
    for first in range(3):
        a, b, c = (np.roll(triangles, -first, axis=1)[:, k] for k in range(3))
        ab, bc, ca = (np.roll(middle, -first, axis=1)[:, k] for k in range(3))
        one = (ab >= 0) & (bc < 0) & (ca < 0)
        out += [_rows(one, a, ab, c), _rows(one, ab, b, c)]
        two = (ab >= 0) & (bc >= 0) & (ca < 0)
        out += [_rows(two, ab, b, bc), _rows(two, a, ab, bc), _rows(two, a, bc, c)]
        if first == 0:
            all_three = (ab >= 0) & (bc >= 0) & (ca >= 0)
            parts = ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
            out += [_rows(all_three, *part) for part in parts]
    return np.concatenate(out)


def _rows(chosen: Flags, *columns: Ints) -> Ints:
    return np.stack([column[chosen] for column in columns], axis=1)


def part_below(mesh: TriangleMesh, values: FloatArray) -> TriangleMesh:
    """The part of a mesh where `values`, given at its vertices and linear in between, are below 0: triangles that the
    line of 0 crosses are cut along it, so that the rim is as smooth as the line."""
    vertices, triangles = mesh.vertices, mesh.triangles.astype(np.int64)
    low = values < 0.0
    ends, edges = _edges(triangles)
    crossed = low[ends[:, 0]] != low[ends[:, 1]]
    a, b = ends[crossed].T
    share = (values[a] / (values[a] - values[b]))[:, None]
    number = np.full(len(ends), -1)
    number[crossed] = len(vertices) + np.arange(len(a))
    vertices = np.concatenate([vertices, vertices[a] + share * (vertices[b] - vertices[a])])
    inside = low[triangles]
    out = [triangles[inside.all(axis=1)]]
    for first in range(3):
        corners, cut = (np.roll(one, -first, axis=1) for one in (triangles, number[edges]))
        kept = np.roll(inside, -first, axis=1)
        alone = kept[:, 0] & ~kept[:, 1] & ~kept[:, 2]
        out.append(_rows(alone, corners[:, 0], cut[:, 0], cut[:, 2]))
        pair = kept[:, 0] & kept[:, 1] & ~kept[:, 2]
        out.append(_rows(pair, corners[:, 0], corners[:, 1], cut[:, 1]))
        out.append(_rows(pair, corners[:, 0], cut[:, 1], cut[:, 2]))
    kept_triangles = np.concatenate(out)
    used, renumbered = np.unique(kept_triangles, return_inverse=True)
    return TriangleMesh(vertices[used], renumbered.reshape(-1, 3).astype(np.int32), mesh.name)
