"""The place on a surface that is nearest to a point, in float64: for wounds that people put somewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.blood.film.surface import FilmSurface


def closest_place(surface: FilmSurface, point: NDArray[np.float64]) -> tuple[int, tuple[float, float], float]:
    """Triangle, weights of its second and third corner, and distance [m] of the surface's place nearest to `point`."""
    corners = surface.vertices.numpy().astype(np.float64)[surface.view.triangles.numpy()]
    second, third = _closest_weights(corners, point)
    e, f = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    distance = np.linalg.norm(corners[:, 0] + second[:, None] * e + third[:, None] * f - point, axis=1)
    face = int(distance.argmin())
    return face, (float(second[face]), float(third[face])), float(distance[face])


def _closest_weights(corners: NDArray[np.float64], point: NDArray[np.float64]) -> tuple[Any, Any]:
    """Of the nearest point of each triangle: the foot of the perpendicular if it is inside, else on a side."""
    a, e, f = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    d = point - a
    n = np.cross(e, f)
    square = np.maximum((n * n).sum(axis=1), 1e-300)
    s, t = (np.cross(d, f) * n).sum(axis=1) / square, (np.cross(e, d) * n).sum(axis=1) / square

    def along(origin: Any, way: Any) -> Any:
        return np.clip(((point - origin) * way).sum(axis=1) / np.maximum((way * way).sum(axis=1), 1e-300), 0.0, 1.0)

    p, q, r = along(a, e), along(a, f), along(a + e, f - e)
    zero = np.zeros_like(p)
    choices = np.stack([np.stack([s, t]), np.stack([p, zero]), np.stack([zero, q]), np.stack([1.0 - r, r])])
    apart = ((a + choices[:, 0, :, None] * e + choices[:, 1, :, None] * f - point) ** 2).sum(axis=2)
    apart[0][(s < 0.0) | (t < 0.0) | (s + t > 1.0)] = np.inf
    best = apart.argmin(axis=0)
    chosen = choices[best, :, np.arange(len(best))]
    return chosen[:, 0], chosen[:, 1]


def points_of(vertices: Any, corner: Any, weights: Any) -> NDArray[np.float64]:
    a, b, c = (vertices[corner[:, k]] for k in range(3))
    return a + weights[:, :1] * (b - a) + weights[:, 1:] * (c - a)
