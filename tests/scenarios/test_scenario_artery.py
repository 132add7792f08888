"""Artery: cut, it bleeds where it was cut; clipped before, it stays dry."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import ToolInput, World
from viscera.scenarios.artery import CLIPS, GRASPER, HEIGHT, RADIUS, SCALPEL
from viscera.tissue.cutting import pack_crossings
from viscera.world.systems.cut_vessels import crossings


def clip(world: World, x: float) -> None:
    for tick in range(160):
        place = (x, 0.0, HEIGHT + RADIUS)
        world.apply(ToolInput(CLIPS, place, grip=1.0 if tick > 110 else 0.0, direct=True))
        world.advance()
    world.apply(ToolInput(CLIPS, (x, 0.0, HEIGHT + 0.05), active=False))


def cut(world: World, x: float) -> None:
    for tick in range(200):
        y = -0.02 + 0.0002 * tick
        world.apply(ToolInput(SCALPEL, (x, y, HEIGHT - RADIUS), grip=1.0, direct=True))
        world.advance()
    world.apply(ToolInput(SCALPEL, (x, 0.03, HEIGHT + 0.05), active=False))
    for _ in range(64):
        world.advance()
    world.wait()


@pytest.fixture(scope="module")
def world() -> World:
    return viscera.make("artery", device="cpu", cores=1)


def test_cut_it_bleeds_and_a_clip_on_the_side_of_its_supply_stops_it(world: World) -> None:
    world.take(viscera.Reset(0))
    world.step(1)
    assert world.measure_values()["bleeding"] == 0.0
    cut(world, 0.002)
    values = world.measure_values()
    assert values["vessel_cut"] == 1.0
    assert values["bleeding"] > 2.0
    assert values["open_vessels"] == 1.0
    wounds = world.system("wounds").holds
    bleeds = np.flatnonzero(wounds.wounds.view.sealed.numpy()[:9] == 0)
    # The wound that bleeds is the one over the cut: pieces are 4 mm long and begin at -18 mm.
    assert abs(-0.018 + 0.004 * (bleeds[0] + 0.5) - 0.002) <= 0.004
    clip(world, 0.014)
    world.wait()
    assert world.measure_values()["bleeding"] > 2.0
    clip(world, -0.010)
    world.step(32)
    values = world.measure_values()
    assert values["bleeding"] == 0.0
    # A clip that comes after the cut is too late: this goal stays out of reach.
    assert values["behind_clip"] == 0.0
    assert not all(goal.met(values[goal.measure]) for goal in world.contents.goals)


def test_clipped_before_it_stays_dry(world: World) -> None:
    world.take(viscera.Reset(0))
    clip(world, -0.010)
    cut(world, 0.002)
    values = world.measure_values()
    assert values["vessel_cut"] == 1.0
    assert values["bleeding"] == 0.0
    assert values["blood_lost"] == 0.0
    assert values["behind_clip"] == 1.0


@pytest.mark.slow
def test_clipped_pulled_and_cut_all_goals_are_met(world: World) -> None:
    """Etheredge's figure 3: grasped, pulled, cut. The grasper stays clamped while the scalpel works."""
    world.take(viscera.Reset(0))
    for tick in range(2400):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    world.wait()
    values = world.measure_values()
    assert all(goal.met(values[goal.measure]) for goal in world.contents.goals), values
    assert world.tools[GRASPER].force[2] < -0.2
    assert values["pieces"] >= 2.0


def test_a_line_is_cut_where_a_plane_parts_it() -> None:
    nodes = np.argwhere(np.ones((8, 3, 3))).astype(np.float64)
    line = np.stack([np.arange(0.5, 7.0), np.full(7, 1.2), np.full(7, 1.0)], axis=1)
    links = np.zeros((3, len(nodes)), dtype=np.int64)
    assert np.isnan(crossings(line, nodes, links)).all()
    across = nodes[:, 0] == 3.0
    links[0, across] = pack_crossings(np.full(across.sum(), 0.75), np.tile([1.0, 0.0, 0.0], (across.sum(), 1)))
    # At x = 3.75, between the points at 3.5 and 4.5.
    found = crossings(line, nodes, links)
    assert np.isfinite(found[:, 0]).tolist() == [False, False, False, True, False, False]
    assert found[3] == pytest.approx([3.75, 1.2, 1.0], abs=0.01)
    along = np.zeros_like(links)
    along[1] = pack_crossings(np.full(len(nodes), 0.9), np.tile([0.0, 1.0, 0.0], (len(nodes), 1)))
    assert np.isnan(crossings(line, nodes, along)).all()
