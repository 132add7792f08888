"""Drills of bleeding begin in blood, and are not done by a lucky click."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import World
from viscera.blood import film as films
from viscera.blood.wounds.wounds import set_clip
from viscera.inputs import StartDrill
from viscera.scenarios._film import PUDDLE, SPILT

SCENARIOS = ("bleeding", "spurt")
SOON = 400
"""Ticks in which a hand that knows the vessels would have closed them."""


def started(name: str, seed: int, detail: float = 0.4) -> World:
    world = viscera.make(name, device="cpu", cores=1, detail=detail, seed=seed)
    world.apply(StartDrill(0, seed))
    return world


def close_all(world: World) -> None:
    wounds = world.system("wounds").holds.wounds
    for number in range(wounds.count):
        set_clip(wounds, number)


@pytest.mark.parametrize("name", SCENARIOS)
def test_blood_lies_over_the_vessels_when_somebody_starts_it(name: str) -> None:
    world = viscera.make(name, device="cpu", cores=1, detail=0.4, seed=5)
    world.step(16)
    assert world.measure_values()["on_organ"] < 0.02, "nobody has started it: it has only begun to bleed"
    world.apply(StartDrill(0, 5))
    world.step(32)
    values = world.measure_values()
    assert values["on_organ"] == pytest.approx(1e6 * SPILT, abs=0.03)
    assert values["blood_lost"] < 0.02, "what was shed before is not this trainee's"
    ledger = world.system("ledger").holds.balance
    assert ledger.missing == 0
    places, is_open = world.system("wounds").holds.places()
    lying = world.system("film").holds.state.position.numpy()[: films.count(world.system("film").holds)]
    for place in places[is_open]:
        away = np.linalg.norm(lying - place, axis=1)
        assert (away < 0.25 * PUDDLE).sum() > 10
    world.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_whoever_closes_the_vessels_at_once_is_not_done_before_it_is_dry(name: str) -> None:
    world = started(name, seed=3)
    world.step(16)
    close_all(world)
    world.step(SOON)
    values, state = world.measure_values(), world.drill_state()
    assert values["open_vessels"] == 0.0
    assert state is not None
    assert state.phase == "running"
    assert 0.0 < values["dry"] < 1e-3 * SOON
    world.close()


def test_another_seed_spills_elsewhere_and_the_same_in_the_same_place() -> None:
    worlds = [started("bleeding", seed) for seed in (3, 3, 4)]
    hashes = []
    for world in worlds:
        world.step(32)
        hashes.append(world.state_hash())
        world.close()
    assert hashes[0] == hashes[1] != hashes[2]
