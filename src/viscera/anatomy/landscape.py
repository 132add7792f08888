"""A landscape by rule, as large as a table: hills, and between them a river bed with a spring, a fall and an end.

Not an organ, but what Grahn lets his fluid run over (Figure 8.3: 3 000 particles on a landscape). With x along the
river from 0 to the length L, its middle at y = c(x), d = |y − c(x)|, the ground is

    z(x, y) = b(x) + bank (1 − e^(−(d/w)²)) + rise·d + (1 − e^(−(d/2w)²)) hills(x, y)

    b(x)      the bed: an even slope and one fall, always downwards
    c(x)      two waves; bank: how much higher the land is, w: half width of the bed
    hills     some waves of random direction and phase, and never below zero

so the bed is the lowest place at each x and water that starts in it stays in it. The mesh is closed, with sides and a
flat underside: a solid that distance fields, ray tests and contacts know how to handle. Axes: x downstream, z up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

SIZE = (0.72, 0.44)
"""Length and width [m]."""
SIZES = (0.1, 10.0)
"""That are allowed [m]."""
EDGE = 0.011
"""Of the grid's squares [m]; gives about 5 900 triangles."""

SLOPE = 0.045
"""Of the bed: 2.6 degrees."""
FALL = 0.04
"""Height of the fall, as a share of the length."""
FALL_WIDTH = 0.03
"""Over which it goes down, as a share of the length."""
BANK = 0.085
"""How much higher the land is than the bed, as a share of the length; tuned so that a river of its width stays in."""
HALF_WIDTH = 0.055
"""Of the bed, as a share of the length."""
RISE = 0.10
"""Of the land away from the river."""
HILLS = 0.03
"""Height of the hills, as a share of the length."""
BASE = 0.04
"""Of solid ground below the lowest place, as a share of the length."""
MOST_VERTICES = 500_000


@dataclass(frozen=True)
class Landscape:
    mesh: TriangleMesh
    """Closed, solid inside."""
    length: float
    width: float
    """[m]"""
    bed_half_width: float
    """[m]"""
    height: Callable[[FloatArray, FloatArray], FloatArray]
    """The ground's z at x, y [m]."""
    middle: Callable[[FloatArray], FloatArray]
    """The river's y at x [m]."""
    spring: tuple[float, float, float]
    """Where water comes from: above the bed, near its upper end [m]."""
    spring_direction: tuple[float, float, float]
    """Down the river, of length 1."""
    end: tuple[tuple[float, float, float], tuple[float, float, float]]
    """A box across the lower end; what gets there has left [m]."""


def landscape(size: tuple[float, float] = SIZE, edge: float = EDGE, seed: int = 0) -> Landscape:
    """A landscape of `size` (length, width) [m], triangles with sides of `edge` [m]; each seed winds another way."""
    length, width = size
    for name, side in (("length", length), ("width", width)):
        if not (math.isfinite(side) and SIZES[0] <= side <= SIZES[1]):
            raise InputError(f"{name} = {side:g} m is not possible.", f"Allowed are {SIZES[0]} to {SIZES[1]} m.")
    if not (math.isfinite(edge) and 0.0 < edge <= HALF_WIDTH * length):
        raise InputError(
            f"edge = {edge:g} m is not possible.", f"It must be above 0 and at most {HALF_WIDTH * length:g} m."
        )
    columns, rows = math.ceil(length / edge) + 1, math.ceil(width / edge) + 1
    if columns * rows > MOST_VERTICES:
        raise InputError(f"edge = {edge:g} m gives {columns} × {rows} vertices.", f"Allowed are {MOST_VERTICES}.")
    middle = _middle(length, width, seed)
    ground = _ground(length, width, middle, seed)
    x, y = np.meshgrid(np.linspace(0.0, length, columns), np.linspace(-0.5 * width, 0.5 * width, rows), indexing="ij")
    top = np.stack([x, y, ground(x, y)], axis=-1)
    mesh = solid_over(top, float(top[..., 2].min()) - BASE * length, "landscape")

    at = 0.04 * length
    ahead = np.array([0.02 * length, float(middle(np.array(at + 0.02 * length)) - middle(np.array(at))), 0.0])
    ahead /= np.linalg.norm(ahead)
    spring_y = float(middle(np.array(at)))
    spring_z = float(ground(np.array(at), np.array(spring_y))) + 0.8 * HALF_WIDTH * length
    last = 0.035 * length
    lowest = float(top[..., 2].min())
    end = (
        (length - last, -0.5 * width, lowest - 0.5 * length),
        (length + 0.5 * length, 0.5 * width, lowest + 0.5 * length),
    )
    return Landscape(
        mesh,
        length,
        width,
        HALF_WIDTH * length,
        ground,
        middle,
        (at, spring_y, spring_z),
        (float(ahead[0]), float(ahead[1]), 0.0),
        end,
    )


def _middle(length: float, width: float, seed: int) -> Callable[[FloatArray], FloatArray]:
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0.0, 2.0 * math.pi, 2)
    reach = rng.uniform(0.13, 0.18) * width

    def middle(x: FloatArray) -> FloatArray:
        along = 2.0 * math.pi * np.asarray(x, dtype=np.float64) / length
        return reach * (np.sin(along + phases[0]) + 0.35 * np.sin(2.3 * along + phases[1]))

    return middle


def _ground(
    length: float, width: float, middle: Callable[[FloatArray], FloatArray], seed: int
) -> Callable[[FloatArray, FloatArray], FloatArray]:
    rng = np.random.default_rng([seed, 1])
    count = 6
    turn, phase = rng.uniform(0.0, 2.0 * math.pi, (2, count))
    waves = 2.0 * math.pi / (width * rng.uniform(0.25, 0.7, count))
    fall = rng.uniform(0.45, 0.6) * length

    def bed(x: FloatArray) -> FloatArray:
        step = 1.0 / (1.0 + np.exp((x - fall) / (0.25 * FALL_WIDTH * length)))
        return SLOPE * (length - x) + FALL * length * step

    def ground(x: FloatArray, y: FloatArray) -> FloatArray:
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        d = np.abs(y - middle(x))
        w = HALF_WIDTH * length
        hills = np.zeros_like(d)
        for k in range(count):
            hills += 1.0 + np.sin(waves[k] * (x * math.cos(turn[k]) + y * math.sin(turn[k])) + phase[k])
        hills *= HILLS * length / count
        bank = BANK * length * (1.0 - np.exp(-((d / w) ** 2)))
        return bed(x) + bank + RISE * d + (1.0 - np.exp(-((0.5 * d / w) ** 2))) * hills

    return ground


def solid_over(top: FloatArray, base: float, name: str) -> TriangleMesh:
    """The surface over a grid (columns, rows, 3), closed by sides and a flat underside at z = base."""
    columns, rows = top.shape[:2]
    index = np.arange(columns * rows).reshape(columns, rows)
    a, b, c, d = index[:-1, :-1].ravel(), index[1:, :-1].ravel(), index[1:, 1:].ravel(), index[:-1, 1:].ravel()
    surface = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    # Around the rim, counter-clockwise seen from above, each place once.
    rim = np.concatenate([index[:-1, 0], index[-1, :-1], index[:0:-1, -1], index[0, :0:-1]])
    vertices = top.reshape(-1, 3)
    under = vertices[rim].copy()
    under[:, 2] = base
    centre = np.array([[0.5 * (top[0, 0, 0] + top[-1, 0, 0]), 0.0, base]])
    low = len(vertices) + np.arange(len(rim))
    after, low_after = np.roll(rim, -1), np.roll(low, -1)
    hub = np.full(len(rim), len(vertices) + len(rim))
    sides = np.concatenate([np.stack([rim, low, low_after], axis=1), np.stack([rim, low_after, after], axis=1)])
    bottom = np.stack([low_after, low, hub], axis=1)
    return TriangleMesh(
        np.concatenate([vertices, under, centre]),
        np.concatenate([surface, sides, bottom]).astype(np.int32),
        name,
    )
