"""A sheet of tissue over Perlin noise: hills and hollows, what Andersson lets his drops fall on (§3.2.1, §2.4.1).

    z(x, y) = T + A Σ_k 2^−k p(2^k x/w, 2^k y/w) / Σ_k 2^−k

p is Perlin's gradient noise with the fade 6t⁵ − 15t⁴ + 10t³ (K. Perlin, Improving Noise, SIGGRAPH 2002), so slope and
curvature have no jumps: on each corner of a grid of squares stands a random unit vector, and p blends its products with
the way there. The mesh is closed, with sides and a flat underside at z = 0. Axes: x to the right, y away from the
surgeon, z up; its middle is over the origin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from viscera.anatomy.landscape import solid_over
from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

SIZE = (0.110, 0.084)
"""[m]"""
SIZES = (0.02, 2.0)
"""That are allowed [m]."""
EDGE = 0.0022
"""Of the grid's squares [m]; gives about 2 000 vertices on the upper side."""
HEIGHT = 0.011
"""A [m]: hills and hollows are up to about 0.6 of it high and deep."""
WIDTH = 0.042
"""w: how wide the broadest hills and hollows are [m]."""
OCTAVES = 2
THICKNESS = 0.018
"""T [m]"""
MOST_VERTICES = 500_000

Height = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Sheet:
    mesh: TriangleMesh
    """Closed, solid inside."""
    height: Height
    """The upper side's z at x, y [m]; the mesh has it at its vertices."""


def sheet(size: tuple[float, float] = SIZE, edge: float = EDGE, seed: int = 0) -> Sheet:
    """A sheet of this `size` [m] with squares of about `edge` [m]; each seed gives other hills."""
    for name, side in zip("xy", size, strict=True):
        if not (math.isfinite(side) and SIZES[0] <= side <= SIZES[1]):
            raise InputError(f"size along {name} = {side:g} m is not a sheet's.", f"Allowed are {SIZES} m.")
    if not (math.isfinite(edge) and 0.0 < edge <= 0.25 * min(size)):
        raise InputError(f"edge = {edge:g} m is not possible.", f"Allowed is up to {0.25 * min(size):g} m.")
    columns, rows = (math.ceil(side / edge) + 1 for side in size)
    if columns * rows > MOST_VERTICES:
        raise InputError(f"edge = {edge:g} m gives {columns} × {rows} vertices.", f"Allowed are {MOST_VERTICES}.")
    noise = perlin(seed)

    def height(x: FloatArray, y: FloatArray) -> FloatArray:
        x, y = np.asarray(x, dtype=np.float64) / WIDTH, np.asarray(y, dtype=np.float64) / WIDTH
        parts = np.stack([0.5**k * noise(2**k * x, 2**k * y) for k in range(OCTAVES)])
        return THICKNESS + HEIGHT * parts.sum(axis=0) / sum(0.5**k for k in range(OCTAVES))

    x, y = (np.linspace(-0.5 * s, 0.5 * s, n) for s, n in zip(size, (columns, rows), strict=True))
    top = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    top = np.concatenate([top, height(top[..., 0], top[..., 1])[..., None]], axis=-1)
    return Sheet(solid_over(top, 0.0, "sheet"), height)


PERIOD = 256
"""Squares after which the noise repeats."""


def perlin(seed: int = 0) -> Height:
    """Perlin's noise of two numbers, squares of side 1, within ±√½."""
    rng = np.random.default_rng([seed, 7])
    order = rng.permutation(PERIOD)
    turn = rng.uniform(0.0, 2.0 * math.pi, PERIOD)
    vectors = np.stack([np.cos(turn), np.sin(turn)], axis=1)

    def noise(x: FloatArray, y: FloatArray) -> FloatArray:
        column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        u, v = x - column, y - row
        fade_u, fade_v = (t * t * t * (t * (6.0 * t - 15.0) + 10.0) for t in (u, v))

        def corner(i: int, j: int) -> FloatArray:
            vector = vectors[order[(order[(column + i) % PERIOD] + row + j) % PERIOD]]
            return vector[..., 0] * (u - i) + vector[..., 1] * (v - j)

        near = corner(0, 0) + fade_u * (corner(1, 0) - corner(0, 0))
        far = corner(0, 1) + fade_u * (corner(1, 1) - corner(0, 1))
        return near + fade_v * (far - near)

    return noise
