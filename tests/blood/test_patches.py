"""Patches of film that their contact line holds, against the law for a strip, a round one and a hill."""

from __future__ import annotations

import math

import numpy as np
import pytest

from viscera.blood.constants import BLOOD_DENSITY, SURFACE_TENSION
from viscera.blood.film.params import LITTLE
from viscera.blood.patches import JAGGED, RETENTION, find_held, find_patches

SIDE, STEP = 2.5e-3, 0.9e-3
"""Of a cell; from particle to particle [m]."""
VOLUME, HYSTERESIS = 200_000, 0.3
GRAVITY = np.array([0.0, 0.0, -9.81])
HOLDS = RETENTION * SURFACE_TENSION * HYSTERESIS
"""Of a line of one metre, ahead and behind [N]."""


def held(places: np.ndarray, normal: np.ndarray) -> np.ndarray:
    at = np.concatenate([places, np.zeros((len(places), 1))], axis=1)
    volume = np.full(len(places), VOLUME)
    return find_held(at, np.broadcast_to(normal, at.shape), volume, SIDE, HYSTERESIS, GRAVITY)


def grid(columns: int, rows: int) -> np.ndarray:
    x, y = np.meshgrid(STEP * (np.arange(columns) + 0.5), STEP * (np.arange(rows) + 0.5), indexing="ij")
    return np.stack([x.ravel(), y.ravel()], axis=1)


@pytest.mark.parametrize("length", [5, 10, 20, 40, 80])
def test_a_strip_is_held_up_to_its_length(length: int) -> None:
    """`length` particles down the slope, 30 across: the line is 27 mm ahead and behind, less a cell of rounding and
    what is taken off for stairs."""
    places = grid(length, 30)
    weight = length * 30 * BLOOD_DENSITY * VOLUME * LITTLE * 9.81
    # Between these slopes either may be found: a cell more or less of the line.
    wide, line = SIDE / (30 * STEP), HOLDS * JAGGED * 30 * STEP
    for part, expected in ((1.0 - wide, True), (1.0 + 2.0 * wide, False)):
        sine = part * line / weight
        if sine < 1.0:
            normal = np.array([sine, 0.0, math.sqrt(1.0 - sine**2)])
            assert held(places, normal).all() == expected
            assert held(places, normal).any() == expected


def test_a_hill_is_held_all_around_and_patches_apart_are_judged_apart() -> None:
    """A round film on a cone runs off on all sides; beside it a long strip on the same slope, which is not held."""
    places = grid(40, 40) - 20 * STEP
    places = places[np.linalg.norm(places, axis=1) < 18 * STEP]
    out = places / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-9)
    weight, border = len(places) * BLOOD_DENSITY * VOLUME * LITTLE * 9.81, 2.0 * math.pi * 18 * STEP
    for part, expected in ((0.7, True), (1.4, False)):
        sine = part * HOLDS * 0.5 * border / weight
        normal = np.concatenate([sine * out, np.full((len(out), 1), math.sqrt(1.0 - sine**2))], axis=1)
        strip = grid(200, 6) + np.array([0.1, 0.0])
        lean = np.array([sine, 0.0, math.sqrt(1.0 - sine**2)])
        at = np.concatenate([places, strip])
        found = find_held(
            np.concatenate([at, np.zeros((len(at), 1))], axis=1),
            np.concatenate([normal, np.broadcast_to(lean, (len(strip), 3))]),
            np.full(len(at), VOLUME), SIDE, HYSTERESIS, GRAVITY,
        )  # fmt: skip
        assert found[: len(places)].all() == expected
        assert not found[len(places) :].any()


def test_patches_are_those_of_a_flood_fill() -> None:
    rng = np.random.default_rng(4)
    wet = np.zeros((40, 50), dtype=bool)
    wet[1:-1, 1:-1] = rng.random((38, 48)) < 0.3
<<<<<<< HEAD
    rows, columns = np.nonzero(wet)
    found = find_patches((rows, columns), wet.shape)
=======
    row, column = np.nonzero(wet)
    found = find_patches((row, column), wet.shape)
>>>>>>> main
    seen, number = np.zeros(wet.shape, dtype=int), 0
    for start in zip(*np.nonzero(wet), strict=True):
        if seen[start]:
            continue
        number += 1
        left = [start]
        while left:
            i, j = left.pop()
            if wet[i, j] and not seen[i, j]:
                seen[i, j] = number
                left += [(i + a, j + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    assert found.max() == number
    pairs = set(zip(found[wet].tolist(), seen[wet].tolist(), strict=True))
    assert len(pairs) == number
    assert not found[~wet].any()


def test_nothing_is_held_where_nothing_is() -> None:
    assert len(find_held(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, dtype=int), SIDE, 0.3, GRAVITY)) == 0
