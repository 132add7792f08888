"""Incision: a steady hand opens the line; a hot hook goes through what it has burnt."""

from __future__ import annotations

import pytest

import viscera
from verify.passing import Passing
from viscera import Reset, SetParameter, ToolInput, World
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


def draw_hook(world: World, power: float) -> tuple[float, float]:
    """The hook goes down beside the line, 2 mm deep, burns for a second, and is drawn 12 mm at 4 mm/s: what it cut
    on that way [mm²], and the burn of the most burnt mass."""
    world.take(Reset(0))
    world.apply(SetParameter("power", power))
    top, cut = float(world.organs[0].body.positions[:, 2].max()), 0.0
    for tick in range(4_400):
        if tick == 1_400:
            world.wait()
            cut = world.measure_values()["cut_area"]
        if tick % 8 == 0:
            x = -0.006 + 4.0e-6 * max(0, tick - 1_400)
            z = top + 0.004 - 0.006 * min(tick / 300.0, 1.0)
            world.apply(ToolInput(HOOK, (x, 0.010, z), grip=1.0 if tick >= 300 else 0.0, direct=True))
        world.advance()
    world.wait()
    return world.measure_values()["cut_area"] - cut, float(world.system("stiffening").holds.burn.numpy().max())


@pytest.mark.slow
def test_a_hot_hook_goes_through_what_it_burns_and_pushes_cold_tissue_along() -> None:
    """With 40 W tissue is burnt through on its way, with 5 W it is not: the same hand cuts a quarter of it at most."""
    world = viscera.make("incision", device="cpu")
    hot, burnt = draw_hook(world, 40.0)
    cold, warm = draw_hook(world, 5.0)
    assert burnt > THROUGH > warm
    assert hot > 8.0
    assert cold < 0.25 * hot
