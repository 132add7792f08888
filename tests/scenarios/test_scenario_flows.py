"""Smoke and hysteroscopy: the scenarios' own hands reach what the drills ask for."""

from __future__ import annotations

import pytest

import viscera
from viscera import World


def play(world: World, start: int, end: int) -> dict[str, float]:
    """The scenario's own hand between two ticks; what the measures say then."""
    for tick in range(start, end):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    world.wait()
    return world.measure_values()


@pytest.mark.slow
def test_the_hook_smokes_and_the_evacuator_clears_the_view() -> None:
    world = viscera.make("smoke", device="cpu")
    burnt = play(world, 0, 4000)
    assert burnt["coagulated"] >= 80.0
    assert burnt["view"] < 95.0
    cleared = play(world, 4000, 12_000)
    assert cleared["view"] > burnt["view"] + 0.3 * (100.0 - burnt["view"])
    assert cleared["hazy"] <= 5.0
    world.close()


@pytest.mark.slow
def test_sealed_vessels_stop_bleeding_and_the_saline_clears() -> None:
    world = viscera.make("hysteroscopy", device="cpu")
    bled = play(world, 0, 1000)
    assert bled["open_vessels"] == 2.0
    assert bled["bleeding"] > 0.0
    sealed = play(world, 1000, 6500)
    assert sealed["open_vessels"] == 0.0
    assert sealed["blood_lost"] <= 3.0
    cleared = play(world, 6500, 12_000)
    assert cleared["blood_lost"] == sealed["blood_lost"]
    assert cleared["view"] > sealed["view"]
    balance = world.system("saline").holds.balance()
    assert balance.missing == 0
    assert balance.rinsed_out > 0.0
    world.close()
