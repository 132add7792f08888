"""Shapes that lattices are measured in: a box, a liver-like lump, a winding tube. NumPy alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int32]


def box(masses: int) -> Nodes:
    """As near a cube as the number of masses allows, filled row by row and cut off at exactly `masses`."""
    side = round(masses ** (1 / 3) + 0.499)
    while side**3 < masses:
        side += 1
    place = np.arange(masses, dtype=np.int64)
    return np.stack([place % side, place // side % side, place // side**2], axis=1).astype(np.int32)


LOBES = (
    ((0.0, 0.0, 0.0), (1.0, 0.62, 0.72)),
    ((0.85, 0.12, 0.25), (0.75, 0.42, 0.38)),
    ((-0.35, 0.25, -0.3), (0.55, 0.45, 0.55)),
)
"""Centres and half axes of the ellipsoids that a liver-like lump is the union of; tuned for appearance."""

LUMP_VOLUME = 2.305
"""Of that union, in the same units: how many masses a scale gives."""


def liver(masses: int) -> Nodes:
    """A lump of three lobes with about `masses` masses; a third of its box is tissue."""
    scale = (masses / LUMP_VOLUME) ** (1 / 3)
    low = np.floor(scale * np.min([np.subtract(c, a) for c, a in LOBES], axis=0)).astype(int)
    high = np.ceil(scale * np.max([np.add(c, a) for c, a in LOBES], axis=0)).astype(int)
    axes = [np.arange(low[axis], high[axis] + 1, dtype=np.float32) / np.float32(scale) for axis in range(3)]
    inside = np.zeros([len(axis) for axis in reversed(axes)], dtype=bool)
    for centre, half in LOBES:
        x, y, z = (((axis - c) / a) ** 2 for axis, c, a in zip(axes, centre, half, strict=True))
        inside |= z[:, None, None] + y[None, :, None] + x[None, None, :] <= 1.0
    return (np.argwhere(inside)[:, ::-1] + low).astype(np.int32)


BENDS = np.array(
    [(0, 0, 0), (-6, 4, 30), (0, -2, 62), (24, -8, 50), (46, 2, 64), (52, 6, 30), (46, 0, 4), (28, 10, -6)]
)
"""Corners of the winding tube's middle line: up, across, down and back, like a colon; none runs along an axis."""

OUTER, INNER = 8.0, 5.0
"""Radii of the tube in the unit of its smallest version; a wall of three masses."""

TUBE_MASSES = 110_000
"""How many masses the tube has at scale 1, with a middle line of `STRETCH` times `BENDS`."""
STRETCH = 4.35


def tube(masses: int) -> Nodes:
    """The wall of a winding tube with about `masses` masses; it fills a few per cent of its box."""
    scale = (masses / TUBE_MASSES) ** (1 / 3)
    corners = BENDS * (STRETCH * scale)
    parts = [_around(a, b, OUTER * scale) for a, b in pairwise(corners)]
    nodes = _distinct(np.concatenate(parts))
    nearest = np.full(len(nodes), np.inf, dtype=np.float32)
    for a, b in pairwise(corners):
        nearest = np.minimum(nearest, _distance(nodes, a, b))
    return nodes[nearest >= INNER * scale]


def _around(a: NDArray[np.float64], b: NDArray[np.float64], radius: float) -> Nodes:
    """Positions within `radius` of the segment from a to b."""
    found: list[Nodes] = []
    for z in range(int(np.floor(min(a[2], b[2]) - radius)), int(np.ceil(max(a[2], b[2]) + radius)) + 1):
        # Only the piece of the segment within reach of this layer counts.
        ends = np.clip((np.array([z - radius, z + radius]) - a[2]) / (b[2] - a[2]), 0.0, 1.0)
        piece = a + ends[:, None] * (b - a)
        low = np.floor(piece.min(axis=0) - radius).astype(np.int32)
        high = np.ceil(piece.max(axis=0) + radius).astype(np.int32)
        y, x = np.mgrid[low[1] : high[1] + 1, low[0] : high[0] + 1].astype(np.int32)
        layer = np.stack([x.ravel(), y.ravel(), np.full(x.size, z, dtype=np.int32)], axis=1)
        found.append(layer[_distance(layer, a, b) <= radius])
    return np.concatenate(found)


def _distance(nodes: Nodes, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float32]:
    axis = (b - a).astype(np.float32)
    away = nodes - a.astype(np.float32)
    along = np.clip(away @ axis / (axis @ axis), 0.0, 1.0)
    return np.linalg.norm(away - along[:, None] * axis, axis=1).astype(np.float32)


def _distinct(nodes: Nodes) -> Nodes:
    """Each position once, in the order of memory: z, then y, then x."""
    low = nodes.min(axis=0)
    size = (nodes.max(axis=0) - low + 1).astype(np.int64)
    x, y, z = (nodes - low).astype(np.int64).T
    key = np.unique((z * size[1] + y) * size[0] + x)
    return (np.stack([key % size[0], key // size[0] % size[1], key // (size[0] * size[1])], axis=1) + low).astype(
        np.int32
    )


SHAPES: dict[str, Callable[[int], Nodes]] = {"box": box, "liver": liver, "tube": tube}
