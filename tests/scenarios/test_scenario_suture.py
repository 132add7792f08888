"""Suture: a steady hand closes the slit."""

from __future__ import annotations

import pytest

import viscera
from viscera.scores.table import FORMS


def test_the_slit_gapes_at_first_and_only_what_may_not_happen_is_met() -> None:
    world = viscera.make("suture", device="cpu", cores=1)
    world.step(32)
    values = world.measure_values()
    assert values["gap"] > 1.0
    assert FORMS["suture"].measure in values, "the form of MISTELS counts a measure that there is"
    assert [goal.measure for goal in world.contents.goals if goal.met(values[goal.measure])] == ["cut_more", "time"]


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
