"""A drill's clock runs until all goals are met at once, and then stands."""

from __future__ import annotations

import pytest

from viscera.view import Goal
from viscera.world import Moment
from viscera.world.systems.goals import LOOK, goals_clock


def test_the_clock_stops_when_all_goals_are_met_at_once() -> None:
    values = {"line": 0.0, "black": 0.0}
    drill = goals_clock((Goal("line", least=90.0), Goal("black", most=0.5)))

    def run(frames: int) -> float:
        for _ in range(frames):
            drill.frame(Moment(0, (), lambda: values))
        return drill.measures()[0][1]

    def finished() -> bool:
        return bool(drill.holds[1])

    assert run(LOOK) == pytest.approx(0.016 * LOOK)
    values["line"], values["black"] = 95.0, 1.0
    run(LOOK)
    assert not finished()
    values["black"] = 0.5
    stopped = run(2 * LOOK)
    assert finished()
    assert stopped == pytest.approx(0.016 * 3 * LOOK)
    values["line"] = 0.0
    assert run(100) == stopped
    kept = drill.save()
    other = goals_clock(())
    other.load(kept)
    assert other.holds[1]
    assert other.measures() == drill.measures()
