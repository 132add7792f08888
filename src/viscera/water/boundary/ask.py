"""Walls asked from Python: for tests, tools and people. Kernels call `nearest_wall`."""

from __future__ import annotations

from typing import Any

import warp as wp
from numpy.typing import ArrayLike

from viscera.geometry.queries import checked_points
from viscera.water.boundary.nearest import Nearest
from viscera.water.boundary.walls import Walls, WallsView, nearest_wall

wp.set_module_options({"enable_backward": False})


@wp.kernel
def ask_walls(
    first: int,
    # params
    walls: WallsView,
    # in
    points: wp.array(dtype=wp.vec3),
    # out
    found_out: wp.array(dtype=Nearest),
):
    i = first + wp.tid()
    found_out[i] = nearest_wall(walls, points[i])


def nearest_walls(walls: Walls, points: ArrayLike) -> Any:
    """For each of `points`, shape (n, 3) [m], what `Nearest` says, as a structured array with its fields."""
    asked, device = checked_points("points", points), walls.device.warp
    found = wp.zeros(len(asked), dtype=Nearest, device=device)
    there = wp.array(asked, dtype=wp.vec3, device=device)
    wp.launch(ask_walls, dim=len(asked), inputs=[0, walls.view, there, found], device=device)
    return found.numpy()
