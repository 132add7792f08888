"""A drill's clock runs until all goals are met at once, and then stands."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from viscera.world.drill import LOOK, Drill

from viscera.view import Goal
from viscera.world import TICKS_PER_FRAME


def test_the_clock_stops_when_all_goals_are_met_at_once() -> None:
    values = {"line": 0.0, "black": 0.0}
    world = SimpleNamespace(measure_values=lambda: values)
    drill = Drill((Goal("line", least=90.0), Goal("black", most=0.5)), TICKS_PER_FRAME)

    def run(frames: int) -> float:
        for _ in range(frames):
            drill.frame(world)  # pyright: ignore[reportArgumentType]
        return drill.measures()[0][1]

    assert run(LOOK) == pytest.approx(0.016 * LOOK)
    values["line"], values["black"] = 95.0, 1.0
    run(LOOK)
    assert not drill.finished
    values["black"] = 0.5
    stopped = run(2 * LOOK)
    assert drill.finished
    assert stopped == pytest.approx(0.016 * 3 * LOOK)
    values["line"] = 0.0
    assert run(100) == stopped
    kept = {name: array.copy() for name, array in drill.arrays().items()}
    other = Drill((), TICKS_PER_FRAME)
    other.load(kept)
    assert other.finished
    assert other.measures() == drill.measures()
