"""A surface that follows a lattice: every vertex is a weighted sum of up to eight nodes.

A vertex in a cell whose eight corners exist takes trilinear weights. Elsewhere (a voxelised body ends up to a cell
below its surface) the nearest complete cell takes its place: trilinear weights at the cell's nearest point plus the
slope there times the way to the vertex. Both reproduce every affine motion exactly, join without a step at the cell's
face, and grow only linearly outward. Where no complete cell is next to it (a part one node thin), the weights are those
of an affine function fitted through the nearest nodes. Where these lie in a plane or on a line, a complete cell farther
off is taken, and only without one the fit again, which then keeps translations and the motion along the nodes.
"""

# `int(0)` and `float(0.0)` declare variables in a kernel.

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray
from viscera.geometry.topology import Ints

wp.set_module_options({"enable_backward": False})

CORNERS = np.array(list(itertools.product((0, 1), repeat=3)), dtype=np.int64)
"""A cell's corners, shape (8, 3)."""

NEXT, FAR = 1, 3
"""Cells around its own in which a vertex looks for a complete cell: at first, and when its nearest nodes do not do."""

THIN = 0.5
"""Nodes spread less than this along a direction (root of the sum of squares, in cells) give no slope there; seven
nodes of a plane and one above them have 0.6 to 0.9."""

CHUNK = 4096
"""Vertices looked at together in a search; bounds memory."""

BLOCK = 8
"""Side of the blocks, in cells, each of which stands for its nodes when a vertex is far from all of them."""


@dataclass(frozen=True, eq=False)
class Embedding:
    """Vertex = rest + Σ weight · displacement of node. Unused places have weight 0 and index 0."""

    indices: NDArray[np.int32]
    """Rows of the node array, shape (vertices, 8)."""
    weights: NDArray[np.float32]
    """Sum to one per vertex, shape (vertices, 8)."""
    inside: int
    """Vertices in a complete cell."""
    extrapolated: int
    """Vertices on or beyond the outermost faces of the lattice, which follow the nearest complete cell."""
    fitted: int
    """Vertices that follow their nearest nodes, for want of a complete cell."""


class _Lookup:
    """Finds nodes by lattice coordinate: binary search in sorted keys, so memory goes with the nodes."""

    def __init__(self, nodes: Ints) -> None:
        self.low = nodes.min(axis=0)
        self.dims = nodes.max(axis=0) - self.low + 1
        keys = self._key(nodes)
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]
        if np.any(self.keys[1:] == self.keys[:-1]):
            raise InputError("nodes holds a lattice coordinate twice.", "Give every node once.")

    def _key(self, at: Ints) -> Ints:
        offset = at - self.low
        return (offset[..., 2] * self.dims[1] + offset[..., 1]) * self.dims[0] + offset[..., 0]

    def find(self, at: Ints) -> Ints:
        """Row of the node at each coordinate, or -1; `at` has shape (…, 3)."""
        offset = at - self.low
        valid = ((offset >= 0) & (offset < self.dims)).all(axis=-1)
        key = np.where(valid, self._key(at), -1)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(valid & (self.keys[place] == key), self.order[place], -1)


def embed(vertices: ArrayLike, nodes: ArrayLike, origin: ArrayLike, spacing: float) -> Embedding:
    """Weights of lattice nodes for surface vertices, both at rest.

    `vertices` [m], shape (v, 3); `nodes` are lattice coordinates, shape (n, 3); node (i, j, k) rests at
    origin + spacing·(i, j, k) [m].
    """
    points, grid = _checked(vertices, nodes, spacing)
    local = (points - np.asarray(origin, dtype=np.float64)) / spacing
    lookup = _Lookup(grid)
    cell = np.floor(local).astype(np.int64)
    corners = lookup.find(cell[:, None, :] + CORNERS)
    complete = np.asarray((corners >= 0).all(axis=1))
    indices = np.where(complete[:, None], corners, 0)
    weights = _cell_weights(local - cell)
    # From the best way to the last resort; each takes what the one before left over.
    rows, near = np.flatnonzero(~complete), cell[~complete]
    rows, near = _follow_cells(rows, near, NEXT, local, lookup, indices, weights)
    near = _move_to_nodes(near, local[rows], grid, lookup)
    flat = _fit(rows, near, local, lookup, indices, weights)
    fitted = len(rows) - len(flat)
    rows, _ = _follow_cells(rows[flat], near[flat], FAR, local, lookup, indices, weights)
    fitted += len(rows)
    inside = int(complete.sum())
    extrapolated = len(points) - inside - fitted
    return Embedding(indices.astype(np.int32), weights.astype(np.float32), inside, extrapolated, fitted)


def _checked(vertices: ArrayLike, nodes: ArrayLike, spacing: float) -> tuple[FloatArray, Ints]:
    points = np.asarray(vertices, dtype=np.float64)
    grid = np.asarray(nodes, dtype=np.int64)
    if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
        raise InputError(f"vertices has shape {points.shape}.", "Give one row of finite x, y, z per vertex.")
    if grid.ndim != 2 or grid.shape[1] != 3 or len(grid) == 0:
        raise InputError(f"nodes has shape {grid.shape}.", "Give one row of i, j, k per node, at least one.")
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise InputError(f"spacing = {spacing} is not possible.", "It must be a finite length above 0, in metres.")
    return points, grid


def _cell_weights(place: FloatArray) -> FloatArray:
    """Weights of a cell's corners for `place` in cell coordinates, shape (v, 3): trilinear inside [0, 1]³, and outside
    the first-order continuation from the nearest point of the cell."""
    held = np.clip(place, 0.0, 1.0)
    beyond = (place - held)[:, None, :]
    factor = np.where(CORNERS == 1, held[:, None, :], 1.0 - held[:, None, :])
    slope = np.where(CORNERS == 1, 1.0, -1.0) * beyond
    x, y, z = (factor[..., a] for a in range(3))
    dx, dy, dz = (slope[..., a] for a in range(3))
    return x * y * z + dx * y * z + x * dy * z + x * y * dz


def _chunks(count: int, size: int = CHUNK) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, start + size)


def _around(low: int, high: int) -> Ints:
    return np.array(list(itertools.product(range(low, high + 1), repeat=3)), dtype=np.int64)


def _follow_cells(
    rows: Ints, near: Ints, reach: int, local: FloatArray, lookup: _Lookup, indices_out: Ints, weights_out: FloatArray
) -> tuple[Ints, Ints]:
    """Vertices `rows` get the weights of the nearest complete cell within `reach` of the cells `near`; returns the rest
    of both."""
    offsets = _around(-reach, reach)
    found = np.zeros(len(rows), dtype=bool)
    for part in _chunks(len(rows)):
        some = rows[part]
        point = local[some][:, None, :]
        cells = near[part, None, :] + offsets
        complete = _complete_cells(near[part], reach, lookup)
        gap = np.maximum(np.maximum(cells - point, point - cells - 1.0), 0.0)
        # The cell whose box is nearest; between equals the one whose middle is.
        cost = (gap**2).sum(axis=2) + 1e-6 * ((cells + 0.5 - point) ** 2).sum(axis=2)
        best = np.where(complete, cost, np.inf).argmin(axis=1)
        here = complete.any(axis=1)
        cell = cells[np.arange(len(some)), best][here]
        indices_out[some[here]] = lookup.find(cell[:, None, :] + CORNERS)
        weights_out[some[here]] = _cell_weights(local[some[here]] - cell)
        found[part] = here
    return rows[~found], near[~found]


def _complete_cells(near: Ints, reach: int, lookup: _Lookup) -> NDArray[np.bool_]:
    """Which of the (2·reach + 1)³ cells around each of `near` have all their corners, in the order of `_around`."""
    side = 2 * reach + 2
    found = (lookup.find(near[:, None, :] + _around(-reach, reach + 1)) >= 0).reshape(-1, side, side, side)
    for axis in (1, 2, 3):
        first, second = (np.take(found, np.arange(side - 1) + step, axis=axis) for step in (0, 1))
        found = first & second
    return found.reshape(len(near), -1)


def _move_to_nodes(near: Ints, local: FloatArray, grid: Ints, lookup: _Lookup) -> Ints:
    """The cells `near`, but for vertices without any node within `FAR` the cell of a node that is not far off."""
    lonely = np.zeros(len(near), dtype=bool)
    for part in _chunks(len(near)):
        lonely[part] = (lookup.find(near[part, None, :] + _around(1 - FAR, FAR)) < 0).all(axis=1)
    if not lonely.any():
        return near
    # One node per block is near enough, and few enough to compare with each lonely vertex.
    _, first = np.unique((grid - lookup.low) // BLOCK, axis=0, return_index=True)
    few = grid[first]
    moved = near.copy()
    lost = np.flatnonzero(lonely)
    for part in _chunks(len(lost), max(1, (1 << 22) // len(few))):
        some = lost[part]
        moved[some] = few[((few - local[some][:, None, :]) ** 2).sum(axis=2).argmin(axis=1)]
    return moved


def _fit(
    rows: Ints, near: Ints, local: FloatArray, lookup: _Lookup, indices_out: Ints, weights_out: FloatArray
) -> Ints:
    """Vertices `rows` get their eight nearest nodes (or fewer), with the weights of an affine function fitted through
    them; returns which of `rows` found nodes in a plane or on a line only."""
    offsets = _around(-FAR, FAR + 1)
    flat: list[Ints] = []
    for part in _chunks(len(rows)):
        point = local[rows[part]]
        around = near[part, None, :] + offsets
        found = lookup.find(around)
        distance = np.where(found >= 0, ((around - point[:, None, :]) ** 2).sum(axis=2), np.inf)
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :8]
        each = np.arange(len(point))[:, None]
        there = np.isfinite(distance[each, nearest])
        share = there / there.sum(axis=1, keepdims=True)
        at = around[each, nearest].astype(np.float64)
        mean = np.einsum("vn,vna->va", share, at)
        spread = np.where(there[..., None], at - mean[:, None, :], 0.0)
        u, size, vt = np.linalg.svd(spread, full_matrices=False)
        inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > THIN)
        slope = np.einsum("vns,vs,vsa,va->vn", u, inverse, vt, point - mean)
        indices_out[rows[part]] = np.where(there, found[each, nearest], 0)
        weights_out[rows[part]] = share + slope
        flat.append(part.start + np.flatnonzero((size <= THIN).any(axis=1)))
    return np.concatenate([np.zeros(0, dtype=np.int64), *flat])


@wp.kernel
def embed_surface(
    first: int,
    # params
    rest: wp.array(dtype=wp.vec3),
    indices: wp.array2d(dtype=wp.int32),
    weights: wp.array2d(dtype=float),
    # in
    ux: wp.array(dtype=float),
    uy: wp.array(dtype=float),
    uz: wp.array(dtype=float),
    # out
    vertices_out: wp.array(dtype=wp.vec3),
):
    """Surface vertices from the nodes' displacements [m]; always in the same order, so the same bits."""
    v = first + wp.tid()
    x = float(0.0)
    y = float(0.0)
    z = float(0.0)
    for c in range(8):
        node = indices[v, c]
        weight = weights[v, c]
        x += weight * ux[node]
        y += weight * uy[node]
        z += weight * uz[node]
    vertices_out[v] = rest[v] + wp.vec3(x, y, z)
