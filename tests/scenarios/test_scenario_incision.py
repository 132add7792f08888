"""Incision: a steady hand opens the line, a wild one breaks nothing."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import ToolInput, World
from viscera.instruments import Grasps
from viscera.view import Goal


def test_goals_name_measures_and_are_not_met_at_first() -> None:
    world = viscera.make("incision", device="cpu", cores=1)
    goals: list[Goal] = list(world.contents.goals)
    values = world.measure_values()
    assert not all(goal.met(values[goal.measure]) for goal in goals)


@pytest.mark.slow
def test_a_steady_hand_opens_the_line_and_no_more() -> None:
    world = viscera.make("incision", device="cpu")
    for tick in range(2600):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    world.wait()
    values = world.measure_values()
    assert all(goal.met(values[goal.measure]) for goal in world.contents.goals), values
    assert values["line_opened"] >= 90.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["incision", "artery", "pattern"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_wild_hands_break_nothing(name: str, seed: int) -> None:
    """Two hands that go anywhere for a minute, one cutting and one grasping most of the time: nothing is lost, and
    forces are bounded."""
    world = viscera.make(name, device="cpu", seed=seed)
    worst = fuzz(world, seed, 60_000)
    organ = world.organs[0]
    assert organ.cuts is not None
    assert np.isfinite(organ.tissue.displacement()).all()
    assert worst < 20.0
    shape = organ.cuts.linked.shape
    corners = shape.key[shape.triangles]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    count = int(corners.max()) + 1
    assert np.array_equal(np.sort(edges @ [count, 1]), np.sort(edges @ [1, count]))


def fuzz(world: World, seed: int, ticks: int) -> float:
    """The strongest force on the way [N]."""
    rng = np.random.default_rng(seed)
    low, high = world.organs[0].body.mesh.bounds
    inverse = world.organs[0].tissue.constants.inverse_mass.numpy().copy()
    hands = (0, len(world.hands) - 1)
    assert world.hands[hands[1]].instrument.effect(Grasps) is not None
    places, grips, worst = [(0.0, 0.0, 0.1)] * 2, [0.0, 0.0], 0.0
    for tick in range(ticks):
        if tick % 200 == 0:
            for hand in range(2):
                x, y, z = rng.uniform(low - 0.01, high + 0.01).tolist()
                places[hand], grips[hand] = (x, y, z), float(rng.random() < 0.8)
        if tick % 8 == 0:
            for hand, tool in enumerate(hands):
                world.apply(ToolInput(tool, places[hand], grip=grips[hand]))
        world.advance()
        worst = max(worst, *(float(np.linalg.norm(tool.force)) for tool in world.tools))
    world.wait()
    assert np.array_equal(inverse, world.organs[0].tissue.constants.inverse_mass.numpy())
    return worst
