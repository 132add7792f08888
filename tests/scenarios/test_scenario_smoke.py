"""Smoke in the scenarios that have it: a hook's plume has its size and speed, and tissue that burns smokes."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import grid
from viscera.world import World
from viscera.world.systems.smoke import Smoke


def played(name: str, ticks: int) -> World:
    world = viscera.make(name, device="cpu", seed=1)
    for tick in range(ticks):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    world.wait()
    return world


def amounts(smoke: Smoke) -> np.ndarray:
    return smoke.flow.layout.box(smoke.flow.carried["smoke"].amount.numpy()).astype(np.float64)


@pytest.mark.slow
def test_a_hooks_plume_is_centimetres_wide_and_rises_with_decimetres_a_second() -> None:
    """After a second of the scenario's own hand, in layers of 10 mm from 10 to 40 mm over the tissue: twice the root
    mean square of the distance from the plume's middle is its width. A cautery plume in a closed abdomen is one or two
    centimetres wide and takes a fraction of a second for ten centimetres."""
    world = played("smoke", 1_050)
    smoke: Smoke = world.system("smoke").holds
    top = float(world.organs[0].body.mesh.bounds[1][2])
    at, dense = grid.middles(smoke.flow.params), amounts(smoke)
    up = grid.velocity(smoke.flow)[2]
    rises = 0.5 * (up[1:] + up[:-1])
    world.close()
    for low in (0.01, 0.02, 0.03):
        layer = (at[..., 2] - top > low) & (at[..., 2] - top < low + 0.01)
        weight = dense[layer] / dense[layer].sum()
        place = at[layer][:, :2]
        width = 2.0 * np.sqrt((weight * ((place - weight @ place) ** 2).sum(axis=1)).sum())
        assert 0.005 < width < 0.025
        assert 0.03 < weight @ rises[layer] < 0.3
        assert 0.08 < rises[layer].max() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ticks"), [("cautery", 700), ("bleeding", 5_200)])
def test_tissue_that_burns_smokes_in_other_scenarios_too(name: str, ticks: int) -> None:
    """Their scripts burn with hook and forceps; the picture that the page gets has it, and none is missing."""
    world = played(name, ticks)
    smoke: Smoke = world.system("smoke").holds
    given = grid.counted(smoke.flow, "smoke")[0]
    shown = smoke.box.picture.numpy()[..., 0]
    missing = grid.missing(smoke.flow, "smoke")
    world.close()
    assert given > 1000
    assert shown.max() > 8
    assert missing == 0
