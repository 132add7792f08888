"""Every drill has levels that get harder: what an easier one asks for, a harder one asks for too."""

from __future__ import annotations

import importlib
from itertools import pairwise

import pytest

from viscera.scenarios import barium
from viscera.view import Level

DRILLS = ("liver", "artery", "spurt", "smoke", "hysteroscopy", "palpation", "bleeding", "cautery", "incision")


def levels_of(name: str) -> tuple[Level, ...]:
    return barium.levels(3) if name == "barium" else importlib.import_module(f"viscera.scenarios.{name}").LEVELS


@pytest.mark.parametrize("name", [*DRILLS, "barium"])
def test_levels_get_harder(name: str) -> None:
    levels = levels_of(name)
    assert len({level.name for level in levels}) == 3
    for easier, harder in pairwise(levels):
        asked = {goal.measure: goal for goal in harder.goals}
        for goal in easier.goals:
            # What a vessel that never bleeds has lost need not be asked for.
            same = asked.get(goal.measure) or asked["bleeding_time" if goal.measure == "blood_lost" else goal.measure]
            if goal.least is not None:
                assert same.least is not None
                assert same.least >= goal.least
            if goal.most is not None:
                assert same.most is not None
                assert same.most <= goal.most
        assert (easier.goals, easier.settings) != (harder.goals, harder.settings)


@pytest.mark.parametrize("name", [*DRILLS, "barium"])
def test_a_level_takes_back_what_another_has_set(name: str) -> None:
    """Settings stay when a drill is started again, so each level sets all that any of them does."""
    levels = levels_of(name)
    assert len({frozenset(level.settings) for level in levels}) == 1
