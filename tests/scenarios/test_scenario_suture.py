"""Suture: a steady hand closes the slit, a wild one breaks nothing."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import ToolInput


def test_the_slit_gapes_at_first_and_no_goal_but_the_time_is_met() -> None:
    world = viscera.make("suture", device="cpu", cores=1)
    world.step(32)
    values = world.measure_values()
    assert values["gap"] > 1.0
    assert [goal.measure for goal in world.contents.goals if goal.met(values[goal.measure])] == ["time"]


@pytest.mark.slow
def test_a_steady_hand_closes_the_slit_through_the_marks() -> None:
    world = viscera.make("suture", device="cpu")
    for tick in range(5000):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    world.wait()
    values = world.measure_values()
    assert all(goal.met(values[goal.measure]) for goal in world.contents.goals), values
    assert values["stitches"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_wild_hands_break_nothing(seed: int) -> None:
    """Needle, knot and scalpel go anywhere for a minute and act half of the time: nothing is lost, forces are
    bounded."""
    world = viscera.make("suture", device="cpu", seed=seed)
    rng = np.random.default_rng(seed)
    low, high = world.organs[0].body.mesh.bounds
    inverse = world.organs[0].tissue.constants.inverse_mass.numpy().copy()
    worst, tool, place, grip = 0.0, 0, (0.0, 0.0, 0.1), 0.0
    for tick in range(60_000):
        if tick % 250 == 0:
            x, y, z = rng.uniform([*low[:2], high[2] - 0.004], [*high[:2], high[2] + 0.01]).tolist()
            new = int(rng.integers(0, 4)) if rng.random() < 0.3 else tool
            if new != tool:
                world.apply(ToolInput(tool, place, active=False))
            tool, place, grip = new, (x, y, z), float(rng.random() < 0.6)
        if tick % 8 == 0:
            world.apply(ToolInput(tool, place, grip=grip))
        world.advance()
        worst = max(worst, *(float(np.linalg.norm(one.force)) for one in world.tools))
    world.wait()
    assert np.array_equal(inverse, world.organs[0].tissue.constants.inverse_mass.numpy())
    assert np.isfinite(world.organs[0].tissue.displacement()).all()
    assert worst < 30.0
