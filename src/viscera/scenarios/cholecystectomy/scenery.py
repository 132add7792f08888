"""What is seen around the field: the rest of the liver's lobe, and the wall of the abdomen behind it.

Neither is simulated. The lobe lies a little above the field's own liver where that ends, so that its border is not
seen, and goes deep under it, so that nothing comes through when the field is cut. Shapes are tuned for appearance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.scenarios.cholecystectomy.body import HIGH, LOW
from viscera.scenarios.cholecystectomy.patient import LIVER_TOP
from viscera.view import Surface

ABOVE = 0.0002
"""How far the lobe lies above the field's liver where that ends [m]."""
OVER, SLOWLY, SINKS = 0.002, 0.006, 0.0003
"""How far it goes on over the field, and within which it then sinks by so much [m]: so slowly that where it goes under
the field's liver both look the same way, and no line is seen in the lamp's light."""
DIVES, DEEP = 0.004, 0.006
"""Within which it dives after that, and how deep [m]."""
REACH = (0.085, 0.075)
"""How far the lobe goes on beyond the field along x and along y [m]."""
RISE, FALL = 5.0, 3.5
"""How it bends up away from the surgeon, and down towards him [1/m]."""
EDGE = 0.012
"""Over which its lower border is round [m]."""
FAR = (0.26, 0.22)
"""Half the width of the abdomen, and its height [m]."""
FLOOR = -0.075
"""Lowest place of the abdomen's wall [m]."""
STEPS = 64


def around() -> list[Surface]:
    """All of it."""
    return [_surface("lobe", "liver", _lobe()), _surface("abdomen", "tissue", _abdomen())]


def _surface(name: str, look: str, grid: NDArray[np.float64]) -> Surface:
    """Of a grid of points, shape (rows, columns, 3), seen from +z."""
    rows, columns = grid.shape[:2]
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    triangles = np.concatenate([
        np.stack([first, first + columns, first + columns + 1], axis=1),
        np.stack([first, first + columns + 1, first + 1], axis=1),
    ]).astype(np.int32)  # fmt: skip
    points = grid.reshape(-1, 3).astype(np.float32)
    return Surface(name, look, triangles, name, len(points), points, backdrop=True)


def _lobe() -> NDArray[np.float64]:
    """Rings around the field, from deep under it to the lobe's border."""
    middle = 0.5 * (np.array(LOW[:2]) + np.array(HIGH[:2]))
    half = 0.5 * (np.array(HIGH[:2]) - np.array(LOW[:2]))
    angle = np.linspace(0.0, 2.0 * np.pi, 2 * STEPS + 1)
    # A square with round corners, then rounder and rounder.
    beyond = np.concatenate([[-0.9, -0.5], np.linspace(-0.42, 0.0, 15), np.linspace(0.0, 1.0, STEPS)[1:]])
    rings = [_ring(angle, middle, half, float(share)) for share in beyond]
    return np.stack(rings, axis=0)


def _ring(
    angle: NDArray[np.float64], middle: NDArray[np.float64], half: NDArray[np.float64], beyond: float
) -> NDArray[np.float64]:
    """One of them; `beyond` is 0 at the field's border and 1 at the lobe's."""
    round_ = min(1.0, max(beyond, 0.0) * 2.0)
    power = 2.0 + 10.0 * (1.0 - round_)
    c, s = np.cos(angle), np.sin(angle)
    size = (np.abs(c) ** power + np.abs(s) ** power) ** (-1.0 / power)
    reach = half * (1.0 + min(beyond, 0.0)) + max(beyond, 0.0) * np.array(REACH)
    x, y = middle[0] + reach[0] * size * c, middle[1] + reach[1] * size * s
    out_y = np.maximum(np.abs(y - middle[1]) - half[1], 0.0)
    out_x = np.maximum(np.abs(x - middle[0]) - half[0], 0.0)
    z = LIVER_TOP + ABOVE + np.where(y > middle[1], RISE, -FALL) * out_y**2 + 1.5 * out_x**2
    inside = -beyond * float(half.min())
    z -= SINKS * np.clip((inside - OVER) / SLOWLY, 0.0, 1.0)
    z -= DEEP * np.clip((inside - OVER - SLOWLY) / DIVES, 0.0, 1.0)
    border = np.clip((beyond - 0.86) / 0.14, 0.0, 1.0)
    z -= EDGE * (1.0 - np.sqrt(1.0 - 0.999 * border**2))
    return np.stack([x, y, z], axis=1)


def _abdomen() -> NDArray[np.float64]:
    """A bowl."""
    radius, angle = np.linspace(0.02, 1.0, STEPS // 2), np.linspace(0.0, 2.0 * np.pi, STEPS + 1)
    r, a = np.meshgrid(radius, angle, indexing="ij")
    folds = 0.004 * np.sin(7.0 * a + 9.0 * r) * r + 0.003 * np.sin(23.0 * r + 3.0 * a)
    height = FLOOR + FAR[1] * r**2.5 + folds
    return np.stack([FAR[0] * r * np.cos(a), 0.02 + 0.85 * FAR[0] * r * np.sin(a), height], axis=-1)
