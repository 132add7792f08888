"""Triangles that are not to be turned over: corners that were moved too far go back towards where they were."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.vectors import cross

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS = 5
"""In each the corners of what is turned over go half way back; in the last one all the way."""


def normals(points: Floats, triangles: Ints) -> Floats:
    """Of triangles, as long as twice their area."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return cross(b - a, c - a)


def untangled(points: Floats, home: Floats, triangles: Ints, before: Floats) -> tuple[Floats, Ints]:
    """Points, shape (n, 3), with those moved towards `home` whose triangles look away from where they looked `before`
    (normals of any length), and which these are. A point without a home (NaN) stays."""
    now, moved = points, np.zeros(len(points), dtype=np.bool_)
    for round_ in range(ROUNDS):
        turned = (normals(now, triangles) * before).sum(axis=1) < 0.0
        if not turned.any():
            break
        some = np.unique(triangles[turned])
        some = some[np.isfinite(home[some]).all(axis=1)]
        now = now.copy() if now is points else now
        now[some] = home[some] if round_ == ROUNDS - 1 else 0.5 * (now[some] + home[some])
        moved[some] = True
    return now, np.flatnonzero(moved)
