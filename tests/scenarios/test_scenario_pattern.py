"""Pattern cut: what is counted, and that a steady hand reaches the goals."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import ToolInput
from viscera.scenarios.pattern import HEIGHT
from viscera.scenarios.pattern.drill import RADIUS, SECTORS, score
from viscera.scenarios.pattern.surgeon import BITE_TICKS, BITES, SCISSORS, SNIP_TICKS, SNIPS, START
from viscera.scores.table import FORMS
from viscera.units import SQUARE_MILLIMETRE
from viscera.world.holding import MOST_FORCE


def circle(radius: float, part: float = 1.0, count: int = 1_000) -> np.ndarray:
    angle = np.linspace(-np.pi, np.pi * (2.0 * part - 1.0), count, endpoint=False)
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_on_the_line_nothing_is_off_it() -> None:
    assert score(np.zeros((0, 2))) == (0.0, 0.0)
    assert score(circle(RADIUS)) == (100.0, 0.0)
    # 2 mm are allowed.
    assert score(circle(RADIUS + 0.0019)) == (100.0, 0.0)
    cut, off = score(circle(RADIUS, part=0.5))
    assert cut == pytest.approx(50.0, abs=100.0 / SECTORS)
    assert off == 0.0


def test_beside_the_line_the_area_between_counts() -> None:
    """A ring's area, exactly."""
    cut, off = score(circle(RADIUS + 0.003))
    assert cut == 100.0
    assert off == pytest.approx(np.pi * ((RADIUS + 0.003) ** 2 - RADIUS**2), rel=1e-9)


def test_a_bite_is_counted_and_the_goals_are_not_met_by_it() -> None:
    world = viscera.make("pattern", device="cpu", cores=1)
    goals = list(world.contents.goals)
    # From the first bite on; the script's grasper is left out.
    for tick in range(896, 1100):
        for one in world.script(tick):
            if isinstance(one, ToolInput) and one.tool == SCISSORS:
                world.apply(one)
        world.advance()
    world.wait()
    values = world.measure_values()
    assert 0.0 < values["circle_cut"] < 20.0
    assert FORMS["pattern"].measure in values, "the form of MISTELS counts a measure that there is"
    assert not all(goal.met(values[goal.measure]) for goal in goals)


def test_scissors_that_have_closed_in_gauze_come_out_with_their_hand() -> None:
    """Below the frame there is air, so they go down through the sheet; lifted, closed or open, nothing keeps them."""
    world = viscera.make("pattern", device="cpu", cores=1)

    def go(height: float, grip: float, ticks: int) -> float:
        world.apply(ToolInput(SCISSORS, (1.03 * RADIUS, 0.0, HEIGHT + height), upright_along_y, grip=grip))
        strongest = 0.0
        for _ in range(ticks):
            world.advance()
            strongest = max(strongest, float(np.linalg.norm(world.tools[SCISSORS].force)))
        return strongest

    upright_along_y = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    scissors = world.hands[SCISSORS]
    lowest = HEIGHT
    for lifted in (0.0, 1.0, 0.0):
        go(0.012, 0.0, 100)
        go(-0.006, 0.0, 100)
        go(-0.006, 1.0, 120)
        lowest = min(lowest, float(scissors.tip[2]))
        assert go(0.02, lifted, 200) < MOST_FORCE
        assert np.linalg.norm(scissors.tip - scissors.hand) < 1e-4
    assert lowest < HEIGHT - 0.004
    world.wait()
    assert world.measure_values()["cut_area"] > 5.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_steady_hand_cuts_the_disc_out() -> None:
    """Along the whole circle and nowhere else, and what still holds after that is snipped: all goals are met."""
    world = viscera.make("pattern", device="cpu")
    values = world.measure_values()
    for tick in range(START + BITES * BITE_TICKS + SNIPS * SNIP_TICKS):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
        if tick % SNIP_TICKS == 0:
            world.wait()
            values = world.measure_values()
            if all(goal.met(values[goal.measure]) for goal in world.contents.goals):
                break
    assert all(goal.met(values[goal.measure]) for goal in world.contents.goals), values
    assert values["off_line"] * SQUARE_MILLIMETRE < 0.1 * np.pi * RADIUS**2
