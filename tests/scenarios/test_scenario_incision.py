"""Incision: a steady hand opens the line; a hot hook goes through what it has burnt."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from verify.passing import Passing
from viscera import Reset, ToolInput, World
from viscera.view import Goal
from viscera.world.systems.burnt_cuts import THROUGH

HOOK = 5


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


def draw_hook(world: World, hold: int, speed: float) -> tuple[float, float, float]:
    """The hook is thrust 2 mm deep into the line, burns there for `hold` ticks, and is drawn 12 mm: what it cut on that
    way [mm²], its median force against it [N], and the burn of the most burnt mass. Speed in mm/s."""
    world.take(Reset(0))
    top, cut, force = float(world.organs[0].body.positions[:, 2].max()), 0.0, []
    for tick in range(hold + round(12_000.0 / speed)):
        if tick == hold:
            world.wait()
            cut = world.measure_values()["cut_area"]
        if tick % 8 == 0:
            x = -0.006 + 1e-6 * speed * max(0, tick - hold)
            world.apply(ToolInput(HOOK, (x, 0.0, top - 0.002), grip=1.0, direct=True))
        world.advance()
        if tick > hold:
            force.append(-world.tools[HOOK].force[0])
    world.wait()
    burn = float(world.system("stiffening").holds.burn.numpy().max())
    return world.measure_values()["cut_area"] - cut, float(np.median(force)), burn


@pytest.mark.slow
def test_a_hot_hook_goes_through_what_it_has_burnt_and_pushes_cold_tissue_along() -> None:
    """Drawn at 4 mm/s it has burnt through what it comes to, and is hardly felt; at 60 mm/s, without waiting, it has
    not."""
    world = viscera.make("incision", device="cpu")
    cut, easy, burnt = draw_hook(world, 1_200, 4.0)
    _, hard, warm = draw_hook(world, 160, 60.0)
    assert burnt > THROUGH > warm
    assert cut > 10.0
    assert easy < 0.3 * hard
