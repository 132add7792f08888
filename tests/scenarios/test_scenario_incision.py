"""Incision: a steady hand opens the line."""

from __future__ import annotations

import pytest

import viscera
from verify.passing import Passing
from viscera.view import Goal


def test_goals_name_measures_and_are_not_met_at_first() -> None:
    world = viscera.make("incision", device="cpu", cores=1)
    goals: list[Goal] = list(world.contents.goals)
    values = world.measure_values()
    assert not all(goal.met(values[goal.measure]) for goal in goals)


@pytest.mark.slow
def test_a_steady_hand_opens_the_line_and_no_more() -> None:
    world = viscera.make("incision", device="cpu")
    cuts, looking = world.organs[0].shadow.cuts, Passing(world.organs[0].tissue)
    assert cuts is not None
    for tick in range(2600):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
        if tick % 64 == 63:
            world.wait()
            # The two sides never cross by more than half a cell.
            assert looking.look(cuts.springs()).max(initial=0.0) <= 0.5
    world.wait()
    values = world.measure_values()
    # It bleeds where it was cut, and a small artery too.
    assert values["oozes"] > 20.0
    assert values["vessel_cut"] == 1.0
    assert values["bleeding"] > 1.0
    assert all(goal.met(values[goal.measure]) for goal in world.contents.goals), values
    assert values["line_opened"] >= 90.0
