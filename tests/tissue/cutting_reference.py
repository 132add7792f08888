"""What a blade does, in NumPy and float64, as plainly as can be: which springs a strip of triangles crosses, which
masses hang together, the energy of the springs."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.springs import DIRECTIONS, NodeIndex

Floats = NDArray[np.float64]


def springs_of(nodes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Every spring between neighbouring masses: its direction, its lower and its upper mass."""
    index = NodeIndex(nodes)
    found = []
    for d, direction in enumerate(DIRECTIONS):
        other = index.find(nodes + np.array(direction, dtype=np.int32))
        low = np.flatnonzero(other >= 0)
        found.append(np.stack([np.full(len(low), d), low, other[low]]))
    which, low, high = np.concatenate(found, axis=1)
    return which, low, high


def crosses(start: Floats, end: Floats, triangle: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Whether segments (n, 3) cross a triangle (3, 3), by solving a + s·(b − a) + t·(c − a) = p + r·(q − p); and how
    far from deciding otherwise each is."""
    a, b, c = triangle
    way = end - start
    matrix = np.stack([np.broadcast_to(b - a, way.shape), np.broadcast_to(c - a, way.shape), -way], axis=2)
    flat = np.abs(np.linalg.det(matrix)) < 1e-14
    matrix[flat] = np.eye(3)
    s, t, r = np.linalg.solve(matrix, (start - a)[..., None])[..., 0].T
    room = np.minimum.reduce([s, t, 1.0 - s - t, r, 1.0 - r])
    room[flat] = -1.0
    return room > 0.0, np.abs(room)


def strip(paths: list[Floats]) -> list[Floats]:
    """The triangles that an edge sweeps whose points are at `paths[i]`, shape (points, 3), one after the other."""
    triangles = []
    for old, new in itertools.pairwise(paths):
        for k in range(len(old) - 1):
            triangles += [np.stack([old[k], old[k + 1], new[k + 1]]), np.stack([old[k], new[k + 1], new[k]])]
    return triangles


def pieces(masses: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Flood fill: number of the piece of each mass, in the order of their first mass."""
    neighbours: list[list[int]] = [[] for _ in range(masses)]
    for one, other in zip(low.tolist(), high.tolist(), strict=True):
        neighbours[one].append(other)
        neighbours[other].append(one)
    label = np.full(masses, -1, dtype=np.int64)
    count = 0
    for seed in range(masses):
        if label[seed] < 0:
            label[seed], todo = count, [seed]
            while todo:
                for near in neighbours[todo.pop()]:
                    if label[near] < 0:
                        label[near] = count
                        todo.append(near)
            count += 1
    return label
