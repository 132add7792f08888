"""Where particles may start: on the fluid's side of every wall. Others are counted, and their places named."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.geometry.queries import build_query, checked_points, closest_points
from viscera.water.boundary.shapes import shape_distance
from viscera.water.boundary.walls import Walls

LISTED = 5
"""Places that a message names one by one."""

NEAREST_START = 0.05
"""Part of the radius: nearer to a wall than this, float32 might take a particle for one on the other side."""


def start_distances(walls: Walls, positions: ArrayLike) -> NDArray[np.float64]:
    """From each position, shape (n, 3), to the nearest wall as it was made [m]; negative on the wrong side.

    An open mesh has no wrong side; distances from it are positive.
    """
    points = checked_points("positions", positions)
    distance = np.full(len(points), np.inf)
    if walls.mesh is not None:
        found = closest_points(build_query(walls.mesh), points).distances
        if not walls.closed:
            distance = np.abs(found)
        else:
            distance = -found if walls.fluid_inside else found
    for shape in walls.shapes:
        distance = np.minimum(distance, shape_distance(shape, points))
    return distance


def check_start(walls: Walls, positions: ArrayLike, what: str = "particles") -> None:
    """Raise InputError if particles would start outside the vessel, inside an obstacle, or on a wall."""
    points = np.asarray(positions, dtype=np.float64)
    distance = start_distances(walls, points)
    for wrong, where, hint in (
        (
            distance < 0.0,
            "on the wrong side of the walls",
            "Fill the vessel from a place inside it, or leave these out.",
        ),
        (
            distance < NEAREST_START * walls.radius,
            f"less than {1000 * NEAREST_START * walls.radius:.2g} mm from a wall",
            "Start particles about their radius away from walls.",
        ),
    ):
        if wrong.any():
            raise InputError(
                f"{int(wrong.sum())} of {len(points)} {what} start {where}: {_places(points[wrong])}.", hint
            )


def _places(points: NDArray[np.float64]) -> str:
    named = ", ".join(f"({1000 * x:.1f}, {1000 * y:.1f}, {1000 * z:.1f}) mm" for x, y, z in points[:LISTED])
    low, high = 1000 * points.min(axis=0), 1000 * points.max(axis=0)
    box = " to ".join(f"({x:.1f}, {y:.1f}, {z:.1f})" for x, y, z in (low, high))
    more = f" and {len(points) - LISTED} more, in the box {box} mm" if len(points) > LISTED else ""
    return f"{'at' if len(points) > 1 else 'it is at'} {named}{more}"
