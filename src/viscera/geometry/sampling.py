"""Points spread evenly over a closed surface, in levels from coarse to fine, and bundles of near ones.

Every triangle is covered by a fine grid; of all points in a cube of side h the one nearest to the cube's middle stays.
Coarser levels are chosen from finer ones in the same way, so each level is part of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.mesh import FloatArray, TriangleMesh

SHIFT = np.array([0.317, 0.459, 0.618])
"""Of the cubes, in sides: flat sides of a body often lie at round numbers, and would lie between two layers of them."""

FILL = 0.5
"""Of the finest cube's side: how far apart points are before they are thinned."""


@dataclass(frozen=True, eq=False)
class SurfacePoints:
    points: FloatArray
    """Shape (n, 3) [m]."""
    normals: FloatArray
    """Outward unit vectors, shape (n, 3)."""
    level: NDArray[np.int32]
    """The coarsest level each belongs to, 0 the coarsest; it belongs to all finer ones too."""


def spread_points(mesh: TriangleMesh, sides: Sequence[float]) -> SurfacePoints:
    """Points on the surface, one in each cube of `sides` [m], coarse to fine, that it passes through."""
    points, triangle = _cover(mesh, FILL * sides[-1])
    kept = _thin(points, np.zeros(len(points)), sides[-1])
    points, triangle = points[kept], triangle[kept]
    level = np.full(len(points), len(sides) - 1, dtype=np.int32)
    for number in range(len(sides) - 1):
        chosen = _thin(points, level.astype(np.float64), sides[number])
        level[chosen] = np.minimum(level[chosen], number)
    corners = mesh.vertices[mesh.triangles[triangle]]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return SurfacePoints(points, normals, level)


def _cover(mesh: TriangleMesh, apart: float) -> tuple[FloatArray, NDArray[np.int64]]:
    """Points no farther apart than this on every triangle, and the triangle of each."""
    corners = np.asarray(mesh.vertices, dtype=np.float64)[mesh.triangles]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    parts = np.maximum(1, np.ceil(longest / apart)).astype(np.int64)
    points, owners = [], []
    for count in np.unique(parts):
        rows = np.flatnonzero(parts == count)
        a, b = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
        inside = (a + b <= count).ravel()
        share = np.stack([a.ravel()[inside], b.ravel()[inside]], axis=1) / count
        weights = np.column_stack([share, 1.0 - share.sum(axis=1)])
        points.append(np.einsum("pc,tcx->tpx", weights, corners[rows]).reshape(-1, 3))
        owners.append(np.repeat(rows, len(weights)))
    return np.concatenate(points), np.concatenate(owners)


def _thin(points: FloatArray, order: FloatArray, side: float) -> NDArray[np.int64]:
    """One point of each cube: the one of lowest `order`, and of those the nearest to the cube's middle."""
    cell = np.floor(points / side + SHIFT)
    off = np.linalg.norm(points / side + SHIFT - cell - 0.5, axis=1)
    whole = (cell - cell.min(axis=0)).astype(np.int64)
    size = whole.max(axis=0) + 1
    key = (whole[:, 0] * size[1] + whole[:, 1]) * size[2] + whole[:, 2]
    # Rounded, so that equally good points are told apart by their place in the mesh and not by their last bits.
    ranked = np.lexsort((np.arange(len(points)), np.round(off, 6), order, key))
    _, first = np.unique(key[ranked], return_index=True)
    return np.sort(ranked[first])


def bundle(points: FloatArray, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order of the points in which bundles of at most `most` near ones follow each other, and where each begins (and
    the last one ends), by halving along the longest side."""
    order = np.arange(len(points), dtype=np.int64)
    begins = [0]
    todo = [(0, len(points))]
    while todo:
        start, end = todo.pop()
        if end - start <= most:
            begins.append(end)
            continue
        rows = order[start:end]
        here = points[rows]
        axis = int(np.argmax(here.max(axis=0) - here.min(axis=0)))
        order[start:end] = rows[np.argsort(here[:, axis], kind="stable")]
        half = (start + end) // 2
        todo += [(half, end), (start, half)]
    return order, np.array(begins, dtype=np.int64)
