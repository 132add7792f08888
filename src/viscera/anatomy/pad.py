"""A pad of tissue by rule: a piece of an organ laid flat to practise on, with gentle hills and a shallow furrow.

    f(x) = c · ((|x/a|⁴ + |y/b|⁴ + |z/c|⁴)^¼ − 1) − h(x, y),   h: a few waves, and a furrow along a wavy line,

inside where f < 0: a brick with round edges, its top neither flat nor steep. Axes: x to the right, y away from the
surgeon, z up; the origin is in its middle.
"""

from __future__ import annotations

import math

import numpy as np

from viscera.anatomy.implicit import polygonise
from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

SIZE = (0.096, 0.072, 0.028)
"""[m]"""
SIZES = (0.01, 0.3)
"""Of its sides [m]."""

EDGE = 0.0022
"""Of the triangles [m]; gives about 5 000 vertices."""

WAVES = ((0.030, 0.0011), (0.019, 0.0006))
"""Length and height of the hills [m]; tuned for appearance."""
FURROW = (0.0022, 0.009)
"""Depth and half width [m]; where fluid gathers."""


def pad(size: tuple[float, float, float] = SIZE, edge: float = EDGE, seed: int = 0) -> TriangleMesh:
    """A closed pad of this `size` [m] with triangles of about `edge` [m]; each seed gives other hills."""
    for name, side in zip("xyz", size, strict=True):
        if not (math.isfinite(side) and SIZES[0] <= side <= SIZES[1]):
            raise InputError(f"size along {name} = {side:g} m is not a pad's.", f"Allowed are {SIZES} m.")
    rng = np.random.default_rng(seed)
    waves = [
        (2.0 * math.pi / length * np.array([math.cos(turn), math.sin(turn)]), phase, height)
        for length, height in WAVES
        for turn, phase in zip(rng.uniform(0.0, math.pi, 2), rng.uniform(0.0, 2.0 * math.pi, 2), strict=True)
    ]
    bend, shift = rng.uniform(0.6, 1.0), rng.uniform(0.0, 2.0 * math.pi)
    half = 0.5 * np.asarray(size)

    def hills(x: FloatArray, y: FloatArray) -> FloatArray:
        # Towards the rim the hills fade, else they would stick out as horns.
        rim = np.maximum(np.abs(x) / half[0], np.abs(y) / half[1])
        fade = np.clip(1.0 - rim**4, 0.0, 1.0)
        h = np.zeros_like(x)
        for wave, phase, height in waves:
            h += height * np.sin(wave[0] * x + wave[1] * y + phase)
        line = 0.18 * half[1] * bend * np.sin(1.6 * math.pi * x / size[0] + shift)
        return fade * (h - FURROW[0] * np.exp(-(((y - line) / FURROW[1]) ** 2)))

    def field(points: FloatArray) -> FloatArray:
        q = np.abs(points / half)
        body = half[2] * ((q**4).sum(axis=1) ** 0.25 - 1.0)
        top = np.clip(points[:, 2] / half[2], 0.0, 1.0)
        return body - top * hills(points[:, 0], points[:, 1])

    reach = half + sum(height for _, height in WAVES) * 2.0
    return polygonise(field, -reach, reach, edge, "pad")
