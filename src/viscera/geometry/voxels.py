"""Which nodes of a cubic lattice lie inside a closed mesh.

Rays along x, one per lattice row, are followed through the surface: each crossing adds or takes one from the winding
number, and nodes where it is positive are inside. A ray that meets an edge or a corner must meet exactly one of the
triangles there, so corners are rounded to a fine integer grid (2⁻²⁸ of the extent) on which the side of every edge is
computed exactly, and ties are broken as if all rays were moved by the same infinitely small amount (ε, ε²):
Edelsbrunner and Mücke, "Simulation of simplicity", 1990, doi 10.1145/77635.77639. So no row of a closed mesh leaks.
Work and memory grow with the surface and the result, not with the box around it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError, MeshError
from viscera.geometry.mesh import FloatArray, IntArray, TriangleMesh
from viscera.geometry.topology import Ints, components

FINE_BITS = 28
"""The integer grid's cells along the mesh's extent, as a power of two; products of two coordinates fit into int64."""

MAX_NODES = 200_000_000
"""More would not fit into memory: refused before they are made."""

THINNEST = 100
"""A body that a lattice still misses when one layer of it would have so many times the nodes that it should have is too
thin for one."""
BATCH = 1 << 22
"""Candidates (triangle and row) looked at together; bounds memory."""


@dataclass(frozen=True, eq=False)
class Voxels:
    """Lattice nodes inside a body, one connected part (26 neighbours), ordered by k, then j, then i."""

    nodes: IntArray
    """Lattice coordinates (i, j, k), none negative, shape (n, 3)."""
    origin: FloatArray
    """World position of node (0, 0, 0) [m]."""
    spacing: float
    """Between neighbours along an axis [m]."""
    dropped: int = 0
    """Nodes of further, smaller parts that were left out."""
    dropped_parts: int = 0

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def positions(self) -> FloatArray:
        """World positions of the nodes, shape (n, 3) [m]."""
        return self.origin + self.spacing * self.nodes

    @property
    def volume(self) -> float:
        """One cell per node [m³]."""
        return len(self.nodes) * self.spacing**3

    @property
    def dims(self) -> tuple[int, int, int]:
        """Nodes along x, y and z of the box that holds all."""
        i, j, k = (self.nodes.max(axis=0) + 1).tolist()
        return i, j, k


@dataclass(frozen=True, eq=False)
class Runs:
    """Nodes inside, row by row: from `start` to before `stop` along x, in row `row` = k·ny + j; sorted."""

    row: Ints
    start: Ints
    stop: Ints

    @property
    def nodes(self) -> int:
        return int((self.stop - self.start).sum())


def voxelise(mesh: TriangleMesh, spacing: float) -> Voxels:
    """Nodes inside `mesh`, which must be closed and face outward (`require_closed`).

    The lattice is centred in the mesh's box, its outermost nodes a quarter to three quarters of a cell inside, so that
    a node stands for the cell around it. Only the largest part that hangs together is kept.
    """
    origin, dims = _lattice(mesh, spacing)
    runs = rows_inside(mesh, origin, spacing, dims)
    if runs.nodes == 0:
        raise MeshError(
            f"{mesh.name}: no lattice node lies inside at a spacing of {1000 * spacing:.4g} mm "
            f"(its box is {_mm(mesh.size)}).",
            "Choose a finer spacing.",
        )
    if runs.nodes > MAX_NODES:
        raise _too_many(mesh, spacing, runs.nodes)
    kept, dropped, parts = _largest_part(runs, dims)
    nodes = _expand(kept, dims)
    low = nodes.min(axis=0)
    return Voxels(nodes - low, origin + spacing * low, float(spacing), dropped, parts)


def spacing_for_count(mesh: TriangleMesh, count: int) -> float:
    """The spacing [m] at which `mesh` holds about `count` nodes: within 2 %, or as near as its shape allows."""
    if not 1 <= count <= MAX_NODES:
        raise InputError(f"count = {count} is not possible.", f"Allowed are 1 to {MAX_NODES} nodes.")
    if mesh.volume <= 0.0:
        raise MeshError(f"{mesh.name} holds no volume.", "Close it and turn its faces outward (`require_closed`).")
    # A body thinner than that holds one layer of nodes, if any.
    spacing = max(float(np.cbrt(mesh.volume / count)), math.sqrt(0.5 * mesh.area / count))
    best, error = spacing, np.inf
    for _ in range(8):
        found = rows_inside(mesh, *_with_spacing(mesh, spacing)).nodes
        if abs(found - count) < error:
            best, error = spacing, abs(found - count)
        if error <= 0.02 * count:
            break
        if found == 0 and 0.5 * mesh.area / spacing**2 > THINNEST * count:
            raise _too_thin(mesh, count)
        # Nodes go with the inverse cube of the spacing; a lattice that misses a thin body altogether is halved.
        spacing *= float(np.cbrt(found / count)) if found else 0.5
    return best


def lattice_for_count(mesh: TriangleMesh, count: int) -> Voxels:
    """Masses for a lattice of about `count`: the corners of all cells whose centre is inside the mesh.

    Each mass is then part of a whole cell, and the cells' volume is the organ's; the outermost masses lie up to half a
    cell outside of the surface, which so hangs on whole cells everywhere.
    """
    spacing = spacing_for_count(mesh, count)
    best: Voxels | None = None
    for _ in range(6):
        made = cell_corners(voxelise(mesh, spacing))
        if best is None or abs(len(made) - count) < abs(len(best) - count):
            best = made
        if abs(len(made) / count - 1.0) < 0.01:
            break
        spacing *= (len(made) / count) ** (1.0 / 3.0)
    assert best is not None
    return best


def cell_corners(cells: Voxels) -> Voxels:
    """The corners of cells that are given by their centres, each once, ordered by k, then j, then i."""
    i, j, k = cells.nodes.T
    nx, ny, nz = (int(axis.max()) + 2 for axis in (i, j, k))
    there = np.zeros((nz, ny, nx), dtype=bool)
    for x, y, z in np.ndindex(2, 2, 2):
        there[k + z, j + y, i + x] = True
    z, y, x = np.nonzero(there)
    return Voxels(
        nodes=np.stack([x, y, z], axis=1).astype(np.int32),
        origin=cells.origin - 0.5 * cells.spacing,
        spacing=cells.spacing,
        dropped=cells.dropped,
        dropped_parts=cells.dropped_parts,
    )


def box_nodes(size: ArrayLike, spacing: float, centre: ArrayLike = (0.0, 0.0, 0.0)) -> Voxels:
    """Nodes of a box with the outermost on its faces; sides are rounded to whole numbers of cells."""
    sides = np.asarray(size, dtype=np.float64)
    _check_spacing(spacing)
    if sides.shape != (3,) or not np.isfinite(sides).all() or sides.min() <= 0.0:
        raise InputError(f"size = {size} is not possible.", "Give three sides above 0, in metres.")
    cells = np.maximum(1, np.rint(sides / spacing)).astype(np.int64)
    if np.prod(cells + 1.0) > MAX_NODES:
        raise InputError(
            f"spacing = {spacing} gives {np.prod(cells + 1.0):.3g} nodes.",
            f"Allowed are {MAX_NODES}; choose a coarser one.",
        )
    k, j, i = np.indices(tuple(cells[::-1] + 1)).reshape(3, -1)
    nodes = np.stack([i, j, k], axis=1).astype(np.int32)
    return Voxels(nodes, np.asarray(centre, dtype=np.float64) - 0.5 * spacing * cells, float(spacing))


def inside_grid(
    mesh: TriangleMesh, origin: FloatArray, spacing: float, dims: tuple[int, int, int]
) -> NDArray[np.bool_]:
    """Whether each node of a whole grid lies inside, shape `dims` (x first)."""
    runs = rows_inside(mesh, origin, spacing, dims)
    nx, ny, nz = dims
    step = np.zeros((ny * nz, nx + 1), dtype=np.int8)
    np.add.at(step, (runs.row, runs.start), 1)
    np.add.at(step, (runs.row, runs.stop), -1)
    inside = np.cumsum(step, axis=1, dtype=np.int8)[:, :nx] > 0
    return inside.reshape(nz, ny, nx).transpose(2, 1, 0)


def _check_spacing(spacing: float) -> None:
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise InputError(f"spacing = {spacing} is not possible.", "It must be a finite length above 0, in metres.")


def _mm(size: FloatArray) -> str:
    return " × ".join(f"{1000 * s:.4g}" for s in size) + " mm"


def _too_many(mesh: TriangleMesh, spacing: float, nodes: float) -> InputError:
    return InputError(
        f"{mesh.name}: a spacing of {1000 * spacing:.4g} mm gives about {nodes:.3g} nodes.",
        f"Allowed are {MAX_NODES}: choose a coarser spacing, and check the mesh's unit (its box is {_mm(mesh.size)}).",
    )


def _too_thin(mesh: TriangleMesh, count: int) -> MeshError:
    return MeshError(
        f"{mesh.name} is too thin for a lattice of {count} nodes: one that is fine enough to meet it would have "
        f"more than {THINNEST * count} (its box is {_mm(mesh.size)}).",
        "Give it a wall that is thicker, or ask for more nodes.",
    )


def _lattice(mesh: TriangleMesh, spacing: float) -> tuple[FloatArray, tuple[int, int, int]]:
    _check_spacing(spacing)
    guess = max(mesh.volume, 0.0) / spacing**3
    if guess > 2.0 * MAX_NODES or mesh.extent / spacing > 2.0**16:
        raise _too_many(mesh, spacing, guess)
    # The nearest whole number of cells: the nodes' cells then fill a box-shaped body as well as they can.
    cells = np.maximum(1, np.rint(mesh.size / spacing)).astype(np.int64)
    i, j, k = cells.tolist()
    return mesh.centre - 0.5 * spacing * (cells - 1), (i, j, k)


def _with_spacing(mesh: TriangleMesh, spacing: float) -> tuple[FloatArray, float, tuple[int, int, int]]:
    origin, dims = _lattice(mesh, spacing)
    return origin, spacing, dims


def rows_inside(mesh: TriangleMesh, origin: FloatArray, spacing: float, dims: tuple[int, int, int]) -> Runs:
    """Runs of nodes of the grid origin + spacing·(i, j, k) that lie inside `mesh`."""
    nx, ny, nz = dims
    reach = max(float(np.abs(mesh.vertices - origin).max()), spacing * max(dims))
    fine = 2 ** int(np.floor(np.log2(2.0**FINE_BITS * spacing / reach)))
    """Integer steps per spacing."""
    corners = np.rint((mesh.vertices - origin) * (fine / spacing)).astype(np.int64)[mesh.triangles]
    # Rows that a triangle's shadow in the y-z plane can cover, with one more for the tie-breaking shift.
    low = np.clip(-(-corners[:, :, 1:].min(axis=1) // fine) - 1, 0, (ny, nz))
    high = np.clip(corners[:, :, 1:].max(axis=1) // fine + 2, 0, (ny, nz))
    width = np.maximum(high - low, 0)
    candidates = width[:, 0] * width[:, 1]
    parts = [_crossings(corners[s], low[s], width[s], fine, ny) for s in _batches(candidates) if candidates[s].any()]
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Runs(empty, empty, empty)
    row, x, sign = (np.concatenate(p) for p in zip(*parts, strict=True))
    if np.bincount(row, weights=sign).any():
        raise MeshError(
            f"{mesh.name} is not a closed surface: a ray goes in and does not come out.",
            "Check it with `require_closed`.",
        )
    return _runs(row, np.clip(np.ceil(x / fine), 0, nx).astype(np.int64), sign, nx)


def _batches(candidates: Ints) -> list[slice]:
    """Consecutive triangles with at most about `BATCH` candidates together."""
    batch = np.cumsum(candidates) // BATCH
    edges = np.flatnonzero(np.diff(batch)) + 1
    bounds = [0, *edges.tolist(), len(candidates)]
    return [slice(a, b) for a, b in itertools.pairwise(bounds)]


def _crossings(corners: Ints, low: Ints, width: Ints, fine: int, ny: int) -> tuple[Ints, FloatArray, Ints]:
    """Rows, heights along x (in integer steps) and signs (+1 going in) of all crossings of rows with triangles."""
    candidates = width[:, 0] * width[:, 1]
    triangle = np.repeat(np.arange(len(corners)), candidates)
    place = np.arange(len(triangle)) - np.repeat(np.cumsum(candidates) - candidates, candidates)
    j = low[triangle, 0] + place % width[triangle, 0]
    k = low[triangle, 1] + place // width[triangle, 0]
    yz = corners[triangle, :, 1:]
    point = np.stack([j * fine, k * fine], axis=1)
    side = [_side(yz[:, a], yz[:, (a + 1) % 3], point) for a in range(3)]
    positive = np.stack([sign > 0 for _, sign in side])
    left: NDArray[np.bool_] = np.all(positive, axis=0)
    hit = left | ~np.any(positive, axis=0)
    # Barycentric weights are the edges' areas; an exactly level triangle gives exactly its height.
    ab, bc, ca = (value[hit].astype(np.float64) for value, _ in side)
    x0, x1, x2 = (corners[triangle[hit], c, 0].astype(np.float64) for c in range(3))
    total = ab + bc + ca
    x = x0 + (ca * (x1 - x0) + ab * (x2 - x0)) / np.where(total == 0.0, 1.0, total)
    # Seen along +x, a face that runs counter-clockwise in (y, z) looks along +x: the ray leaves the body there.
    return (k * np.int64(ny) + j)[hit], x, np.where(left[hit], -1, 1)


def _side(a: Ints, b: Ints, p: Ints) -> tuple[Ints, Ints]:
    """Twice the area of (a, b, p), exact, and its sign, never zero unless a = b, for p moved by (ε, ε²)."""
    edge = b - a
    area = edge[:, 0] * (p[:, 1] - a[:, 1]) - edge[:, 1] * (p[:, 0] - a[:, 0])
    sign = np.where(area != 0, area, np.where(edge[:, 1] != 0, -edge[:, 1], edge[:, 0]))
    return area, sign


def _runs(row: Ints, first: Ints, sign: Ints, nx: int) -> Runs:
    """`first` is the first node behind each crossing; the winding number changes by `sign` from there on."""
    order = np.lexsort((first, row))
    row, first, sign = row[order], first[order], sign[order]
    # Over a whole row the signs of a closed surface add to zero, so one sum over all rows will do.
    inside = np.cumsum(sign) > 0
    same = np.append(row[1:] == row[:-1], False)
    stop = np.append(first[1:], nx)
    keep = inside & same & (stop > first)
    row, start, stop = row[keep], first[keep], stop[keep]
    # Runs that touch (the winding number went from 1 to 2) are one.
    joined = np.zeros(len(row), dtype=bool)
    joined[1:] = (row[1:] == row[:-1]) & (start[1:] == stop[:-1])
    head = np.flatnonzero(~joined)
    tail = np.append(head[1:], len(row)) - 1 if len(head) else head
    return Runs(row[head], start[head], stop[tail])


def _largest_part(runs: Runs, dims: tuple[int, int, int]) -> tuple[Runs, int, int]:
    """The runs of the largest part of 26-connected nodes, and how many nodes in how many other parts are left out."""
    label = components(len(runs.row), *_linked_runs(runs, dims))
    root, group = np.unique(label, return_inverse=True)
    nodes = np.bincount(group, weights=runs.stop - runs.start)
    largest = int(nodes.argmax())
    keep = group == largest
    kept = Runs(runs.row[keep], runs.start[keep], runs.stop[keep])
    return kept, int(nodes.sum() - nodes[largest]), len(root) - 1


def _linked_runs(runs: Runs, dims: tuple[int, int, int]) -> tuple[Ints, Ints]:
    """Pairs of runs in neighbouring rows that touch, diagonals included."""
    nx, ny, nz = dims
    # One line of numbers on which the rows lie one after the other, with room for the neighbours' overlap.
    pitch = np.int64(nx + 2)
    starts, stops = runs.row * pitch + runs.start, runs.row * pitch + runs.stop
    j, k = runs.row % ny, runs.row // ny
    pairs: list[tuple[Ints, Ints]] = []
    for dj, dk in ((1, 0), (-1, 1), (0, 1), (1, 1)):
        there = np.flatnonzero((j + dj >= 0) & (j + dj < ny) & (k + dk < nz))
        shift = (dk * ny + dj) * pitch
        # Runs of that row that end at or after our start and begin at or before our stop.
        first = np.searchsorted(stops, starts[there] + shift, side="left")
        last = np.searchsorted(starts, stops[there] + shift, side="right")
        count = np.maximum(last - first, 0)
        a = np.repeat(there, count)
        b = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
        pairs.append((a, b))
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def _expand(runs: Runs, dims: tuple[int, int, int]) -> IntArray:
    length = runs.stop - runs.start
    count = int(length.sum())
    nodes = np.empty((count, 3), dtype=np.int32)
    offset = np.repeat(runs.start - (np.cumsum(length) - length), length)
    nodes[:, 0] = np.arange(count) + offset
    nodes[:, 1] = np.repeat(runs.row % dims[1], length)
    nodes[:, 2] = np.repeat(runs.row // dims[1], length)
    return nodes
