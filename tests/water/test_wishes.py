"""Who wishes to split and who to merge, against a reference in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from viscera import water
from viscera.device import Device
from viscera.view import Camera
from viscera.water import adaptive
from viscera.water.adaptive import AdaptiveParams
from viscera.water.params import FluidParams
from viscera.water.sizes import Sizes
from viscera.water.state import load

SPACING, ASPECT = 0.02, 1.4
PARAMS = {
    2: AdaptiveParams(depth=0.012, steep=0.4, threshold=0.4),
    3: AdaptiveParams(depth=0.012, steep=0.4, threshold=0.7),
}
"""By the number of sizes; such that some lie where only the limit of depth decides."""
CAMERA = Camera((0.1, -0.45, 0.5), (0.14, 0.12, 0.08), (0.0, 0.0, 1.0), 40.0)
GAZE = (0.45, 0.45)


class Wishes:
    """The rules of wishes.py once more, in float64 and for all particles at once."""

    def __init__(self, sizes: int, x: np.ndarray, level: np.ndarray, radius: np.ndarray) -> None:
        self.sizes, self.level, self.params = sizes, level, PARAMS[sizes]
        ahead = np.subtract(CAMERA.target, CAMERA.position)
        ahead = ahead / np.linalg.norm(ahead)
        right = np.cross(ahead, CAMERA.up)
        right = right / np.linalg.norm(right)
        away = x - np.asarray(CAMERA.position)
        height = 2.0 * math.tan(math.radians(20.0)) * (away @ ahead)  # of the view, there [m]
        u = 0.5 + (away @ right) / (ASPECT * height)
        v = 0.5 - (away @ np.cross(right, ahead)) / height
        on_screen = np.hypot(ASPECT * (u - GAZE[0]), v - GAZE[1])
        self.e = on_screen / (math.sqrt(0.05 * ASPECT / math.pi) + radius / height)

    def wanted(self, e: np.ndarray) -> np.ndarray:
        ring = np.where(e < 1.0, 0, 1 + np.floor((e - 1.0) / self.params.ring))
        return np.maximum(self.sizes - 1 - ring, 0)

    def gaze(self) -> np.ndarray:
        split = self.level < self.wanted(self.e)
        return np.where(split, 1, np.where(self.level > self.wanted(self.e / self.params.hysteresis), -1, 0))

    def surface(self, character: np.ndarray) -> np.ndarray:
        split = (self.level < self.sizes - 1) & (character < self.params.threshold / (self.level + 1))
        merge = (self.level > 0) & (character >= 2.0 * self.params.threshold / np.maximum(self.level, 1))
        return np.where(split, 1, np.where(merge, -1, 0))

    def both(self, character: np.ndarray, depth: np.ndarray) -> np.ndarray:
        gaze, surface = self.gaze(), self.surface(character)
        split = (gaze == 1) & (surface == 1) & (depth <= self.params.depth)
        return np.where(split, 1, np.where((gaze == -1) | (surface == -1), -1, 0))

    def sure(self, character: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Who is so far from every border that rounding in float32 decides nothing."""
        rims = 1.0 + self.params.ring * np.arange(8)
        borders = [np.abs(self.e[:, None] / k - rims).min(axis=1) for k in (1.0, self.params.hysteresis)]
        steps = [k * self.params.threshold / n for k in (1.0, 2.0) for n in (1, 2, 3)]
        borders += [np.abs(character - one) for one in steps] + [np.abs(depth - self.params.depth)]
        return np.min(borders, axis=0) > 1e-5


@pytest.mark.parametrize("sizes", [2, 3])
@pytest.mark.parametrize("criterion", ["gaze", "surface", "gaze and surface"])
def test_wishes_are_those_of_a_reference(cpu: Device, criterion: Any, sizes: int) -> None:
    """Also gaze and surface with limited depth: there what is deeper than 12 mm never splits, and without the limit it
    would."""
    rng = np.random.default_rng(5)
    x = water.block((0.0,) * 3, (0.28, 0.24, 0.2), SPACING)
    x = x + rng.uniform(-0.1, 0.1, x.shape) * SPACING
    params = FluidParams(spacing=SPACING, lower=(-0.05,) * 3, upper=(0.35,) * 3, dt=1e-6, sizes=Sizes(sizes, 2))
    fluid = water.make(params, x, capacity=adaptive.most(params, len(x)), device=cpu)
    load(fluid, water.save(fluid) | {"level": rng.integers(0, sizes, len(x))})
    cpu.record(lambda stage: water.step(stage, fluid)).run()
    fine = adaptive.make(fluid, PARAMS[sizes])
    adaptive.look(fine, CAMERA, ASPECT, GAZE)
    place, level = fluid.position.numpy()[: len(x)].astype(float), fluid.extra["level"].numpy()[: len(x)].copy()
    cpu.record(lambda stage: adaptive.step(stage, fine, criterion)).run()
    cpu.synchronize()
    wish = fine.merging.wish.numpy()[: len(x)]
    character, depth = (one.numpy()[: len(x)].astype(float) for one in (fine.character.field, fine.character.depth))
    rules = Wishes(sizes, place, level, adaptive.particle_radii(params)[level])
    expected = {
        "gaze": rules.gaze,
        "surface": lambda: rules.surface(character),
        "gaze and surface": lambda: rules.both(character, depth),
    }[criterion]()
    sure = (
        rules.sure(character, depth) if criterion != "gaze" else rules.sure(np.full(len(x), 9.0), np.full(len(x), 9.0))
    )
    assert sure.mean() > 0.95
    np.testing.assert_array_equal(wish[sure], expected[sure])
    assert min((wish == one).sum() for one in (-1, 0, 1)) > 5, "all three happen"
    if criterion == "gaze and surface":
        assert depth[wish == 1].max() <= PARAMS[sizes].depth
        deeper = (rules.gaze() == 1) & (rules.surface(character) == 1) & (depth > PARAMS[sizes].depth)
        assert deeper.sum() > 5, "the limit decides about some"
