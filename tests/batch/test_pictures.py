"""Pictures of many worlds: each is the picture of the single world."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import viscera
from viscera import batch, render
from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import ToolInput
from viscera.tissue.surface import GRAIN

DETAIL, SEED, SIDE = 0.15, 3, 96
WORLDS = 2
DEPTHS = (0.001, 0.006)
"""How deep each world's probe is pressed in [m]."""


@pytest.fixture(scope="module")
def worlds(cpu: Device) -> Iterator[batch.Batch]:
    made = batch.make("palpation", worlds=WORLDS, device=cpu, seed=SEED, detail=DETAIL, anatomies=1)
    made.set_tools(poses())
    made.step(160)
    yield made
    made.close()


def poses() -> np.ndarray:
    found = np.zeros((WORLDS, 1, 7))
    found[:, 0, 2] = 0.032 + 0.008 - np.array(DEPTHS)
    found[:, 0, 6] = 1.0
    return found


@pytest.mark.slow
def test_each_picture_is_that_of_the_single_world(worlds: batch.Batch) -> None:
    """Instruments are cut into short pieces there and not here, so a few pixels at their rims differ."""
    eye = batch.pictures(worlds, width=SIDE, height=SIDE)
    eye.draw()
    colour = eye.colour.numpy().reshape(WORLDS, SIDE, SIDE, 3).astype(np.int32)
    depth, part = (array.numpy().reshape(WORLDS, SIDE, SIDE) for array in (eye.depth, eye.part))
    for number in range(WORLDS):
        world = viscera.make("palpation", device="cpu", cores=1, seed=SEED, detail=DETAIL)
        x, y, z = poses()[number, 0, :3].tolist()
        world.apply(ToolInput(0, (x, y, z)))
        world.step(160)
        seen = render.picture(world, width=SIDE, height=SIDE)
        surface = world.organs[0].vertices.numpy()
        np.testing.assert_allclose(eye.vertices.numpy()[number], surface, atol=GRAIN)
        world.close()
        assert set(np.unique(seen.part)) == {0, 1, 2}, "tissue, the probe, and the cloth around"
        assert (part[number] == seen.part).mean() > 0.995
        alike = part[number] == seen.part
        there = alike & (seen.part > 0)
        np.testing.assert_allclose(depth[number][there], seen.depth[there], rtol=1e-3)
        assert np.abs(colour[number] - seen.colour)[alike].mean() < 0.5
    assert np.abs(colour[0] - colour[1]).mean() > 0.2, "a probe pressed deeper looks different"


def test_pictures_of_no_size_are_refused(worlds: batch.Batch) -> None:
    with pytest.raises(InputError, match="pictures"):
        batch.pictures(worlds, width=0, height=8)
