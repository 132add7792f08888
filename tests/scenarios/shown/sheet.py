"""A piece of tissue to show things on: what the worlds of this folder share. It never moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.view import Camera, Surface

SIZE = (0.10, 0.075)
"""Along x and y [m]."""
CELLS = (40, 30)
THICK = 0.009
"""Its foot below its middle [m]."""
CAMERA = Camera((0.0, -0.125, 0.115), (0.0, 0.0, 0.004), (0.0, 0.0, 1.0), 40.0)
BOUNDS = ((-0.06, -0.05, -0.01), (0.06, 0.05, 0.06))


def height(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the sheet [m]: soft hills."""
    return 0.0015 * np.sin(70.0 * x) * np.cos(55.0 * y) + 0.0012 * np.cos(31.0 * x + 1.0) * np.sin(28.0 * y)


def grid() -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Vertices row by row along x, and triangles counter-clockwise from above. The outermost ones are its foot."""
    columns, rows = CELLS[0] + 1, CELLS[1] + 1
    y, x = np.meshgrid(np.linspace(-0.5, 0.5, rows) * SIZE[1], np.linspace(-0.5, 0.5, columns) * SIZE[0], indexing="ij")
    z = height(x, y)
    for border in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
        z[border] = -THICK
    vertices = np.stack([x, y, z], axis=-1).reshape(-1, 3).astype(np.float32)
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
    below = np.stack([corner, corner + 1, corner + columns + 1], axis=1)
    above = np.stack([corner, corner + columns + 1, corner + columns], axis=1)
    return vertices, np.concatenate([below, above]).astype(np.int32)


def sheet(material: str = "liver") -> Surface:
    vertices, triangles = grid()
    return Surface("sheet", material, triangles, "sheet", len(vertices), rest=vertices)
