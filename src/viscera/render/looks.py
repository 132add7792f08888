"""How things look: colours of materials and fluids, as the page has them (`web/src/look`); tuned for appearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.heat.stages import DEFAULT_STAGES
from viscera.view import Table

FloatArray = NDArray[np.float64]


def linear(screen: ArrayLike) -> FloatArray:
    """Colours as a screen has them, 0 to 1, to light."""
    c = np.asarray(screen, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def linear_hex(colour: str) -> FloatArray:
    return linear([int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)])


@dataclass(frozen=True)
class Material:
    """Of a surface; colours sRGB."""

    base: str
    pale: str
    deep: str
    coat: float = 1.0
    """Of the clear film of fluid."""
    dry: float = 0.0
    """0 lets light in like tissue, 1 does not."""
    inner: str = "#842e29"
    """Of what a cut opens."""


MATERIALS = {
    "tissue": Material("#b54138", "#d07766", "#7c1d20"),
    "liver": Material("#632a1f", "#7d4030", "#38130d"),
    "fat": Material("#dba95a", "#efd08c", "#b9742f"),
    "vessel": Material("#b5403c", "#d0776a", "#7a1c20"),
    "skin": Material("#c98f74", "#e0b59a", "#a9604c", coat=0.25, dry=0.35),
    "gauze": Material("#dcdcd6", "#f2f2ee", "#b9bcbb", coat=0.02, dry=0.8, inner="#d2d3cf"),
    "earth": Material("#55503a", "#7d7a58", "#3a3020", coat=0.06, dry=1.0),
}

FLUIDS = {
    "water": (0.25, 0.42, 0.55),
    "saline": (0.25, 0.42, 0.55),
    "blood": (0.30, 0.012, 0.010),
    "barium": (0.93, 0.92, 0.89),
}
"""Light that a ball of each gives back, linear."""

SMALL_BALLS, LARGE_BALLS = (0.020, 0.10, 0.62), (0.55, 0.035, 0.025)
"""Of particles that show how large they are, linear."""

PIN_HEAD, SUTURE = "#2f7fd0", "#6a45b0"

FLESH_GROUND, EARTH_GROUND = (0.30, 0.085, 0.07), (0.105, 0.10, 0.08)
"""What a mirror turned down shows, linear."""

STAGES_TABLE = "burn_stages"


def burn_strip(
    table: Table | None, rows: Sequence[Sequence[float]] | None, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Colour and cover, shape (steps, 4), and roughness and wetness, shape (steps, 2), of burn levels 0 to 2. Columns
    of the table are known by name; without a table a burn looks as usual."""
    usual = np.array([(s.level, *s.colour, s.cover, s.roughness, s.wetness) for s in DEFAULT_STAGES])
    stages = usual
    names = [] if table is None else [column.name for column in table.columns]
    if rows is not None and "level" in names and "colour" in names:
        given = np.array(rows, dtype=np.float64)
        level, packed = given[:, names.index("level")], given[:, names.index("colour")].astype(np.int64)
        screen = np.stack([(packed >> shift) & 255 for shift in (16, 8, 0)], axis=1) / 255.0
        others = [
            given[:, names.index(name)] if name in names else np.interp(level, usual[:, 0], usual[:, 4 + k])
            for k, name in enumerate(("cover", "roughness", "wetness"))
        ]
        stages = np.column_stack([level, linear(screen), *others])
    at = 2.0 * (np.arange(steps) + 0.5) / steps
    look = np.stack([np.interp(at, stages[:, 0], column) for column in stages[:, 1:].T], axis=1)
    return look[:, :4], look[:, 4:]


def grain(rest: ArrayLike) -> NDArray[np.float32]:
    """Slope of the film's waves (3) and how pale the flesh is, −1 to 1, at places of the body at rest [m], shape
    (n, 4): waves of a few odd lengths, so that no repetition is seen."""
    p = np.asarray(rest, dtype=np.float64)
    value, slope = np.zeros(len(p)), np.zeros_like(p)
    for way, phase, weight in _WAVES:
        angle = p @ way + phase
        value += weight * np.sin(angle)
        slope += weight * np.cos(angle)[:, None] * (way / np.linalg.norm(way))
    return np.column_stack([slope, np.clip(0.7 * value, -1.0, 1.0)]).astype(np.float32)


def _waves() -> list[tuple[FloatArray, float, float]]:
    random = np.random.default_rng(11)
    found: list[tuple[FloatArray, float, float]] = []
    for length, weight in ((0.047, 0.30), (0.031, 0.25), (0.023, 0.20), (0.017, 0.18), (0.0113, 0.15), (0.0079, 0.12)):
        for _ in range(2):
            way = random.normal(size=3)
            found.append((way / np.linalg.norm(way) * 2.0 * np.pi / length, float(random.uniform(0.0, 6.28)), weight))
    return found


_WAVES = _waves()
