"""Incision: a steady hand opens the line."""

from __future__ import annotations

import pytest

import viscera
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
