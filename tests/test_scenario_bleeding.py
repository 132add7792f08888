"""Bleeding, with hands made of numbers: vessels bleed until they are burnt or clipped shut, and no drop goes astray."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import viscera
from viscera.blood.film_border import film_count
from viscera.inputs import Reset, SetParameter, ToolInput
from viscera.scenarios.bleeding import CLIPS, FORCEPS, IRRIGATOR, SUCTION, open_vessels
from viscera.scenarios.cautery import liver_body, surface_height
from viscera.world import World
from viscera.world.bleeding import NOZZLE_RATE, Bleeding


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    world = viscera.make("bleeding", device="cpu")
    yield world
    world.close()


@pytest.fixture
def world(made: World) -> World:
    made.apply(Reset(0))
    made.apply(SetParameter("pressure", 100.0))
    made.step(16 - made.tick % 16)
    return made


def blood(world: World) -> Bleeding:
    found = world.systems[1]
    assert isinstance(found, Bleeding)
    return found


def hold(
    world: World, tool: int, x: float, y: float, seconds: float, above: float = 0.0, frames: int = 0
) -> dict[str, float]:
    """The handle pressed over this place, then the tool taken out again; what the measures say then. `frames` more of
    the blood alone come in between, without the tissue, which takes most of the time."""
    z = 0.0
    for _ in range(0, round(1000 * seconds), 16):
        z = surface_height(np.asarray(world.organs[0].vertices.numpy(), dtype=np.float32), x, y)
        world.apply(ToolInput(tool, (x, y, z + above), grip=1.0))
        world.step(16)
    for _ in range(frames):
        blood(world).frame(world)
    world.apply(ToolInput(tool, (x, y, z + 0.05), active=False))
    world.step(16)
    return world.measure_values()


def test_vessels_bleed_and_every_drop_is_accounted_for(world: World) -> None:
    world.step(480)
    found = world.measure_values()
    assert found["open_vessels"] == 2.0
    # Both together about 7 mL/min by their pressures and openings; half a second of it.
    assert 0.03 < found["blood_lost"] < 0.12
    balance = blood(world).balance
    assert balance.missing == 0
    assert balance.given == pytest.approx(balance.film + balance.queue + balance.air + balance.lost, rel=1e-9)
    picture = world.snapshot().arrays["pad.film"]
    assert (picture[..., 0] > 40).sum() > 50


def test_no_pressure_no_blood(world: World) -> None:
    world.apply(SetParameter("pressure", 20.0))
    world.step(320)
    little = world.measure_values()["blood_lost"]
    world.apply(Reset(0))
    world.apply(SetParameter("pressure", 160.0))
    world.step(320)
    assert world.measure_values()["blood_lost"] > 3.0 * little


def test_forceps_burn_one_vessel_shut_and_a_clip_closes_the_other(world: World) -> None:
    artery, vein = (wound.point for wound in open_vessels(liver_body(None), world.seed))
    burnt = hold(world, FORCEPS, artery[0], artery[1], 1.4, above=-0.0005)
    assert burnt["coagulated"] > 1.0
    assert burnt["open_vessels"] == 1.0
    clipped = hold(world, CLIPS, vein[0], vein[1], 0.2)
    assert clipped["open_vessels"] == 0.0
    assert clipped["bleeding"] == 0.0
    lost = clipped["blood_lost"]
    world.step(160)
    assert world.measure_values()["blood_lost"] == lost


def test_rinsing_brings_saline_and_suction_takes_it_away(world: World) -> None:
    rinsed = hold(world, IRRIGATOR, 0.0, 0.0, 0.3, above=0.01)
    assert blood(world).balance.rinsed > 0.0
    assert rinsed["on_organ"] > 0.0
    sucked = hold(world, SUCTION, 0.0, 0.0, 0.3, above=0.0005)
    assert sucked["sucked"] > 0.0
    assert blood(world).balance.missing == 0


def test_a_long_rinse_runs_off_and_the_film_flows_again(world: World) -> None:
    """Two seconds of saline, 4 mL on a film with room for 2: the film drips, does not fill up, and clears by itself;
    nothing comes out of a nozzle that is off; suction takes the rest."""
    system = blood(world)
    room = system.film.state.capacity
    hold(world, IRRIGATOR, 0.0, 0.0, 0.16, above=0.01, frames=115)
    rinsed = system.balance.rinsed
    assert rinsed == pytest.approx(2.0 * NOZZLE_RATE, rel=0.02)
    assert film_count(system.film) < room
    before = system.balance
    for _ in range(40):
        system.frame(world)
    after = system.balance
    assert after.rinsed == rinsed
    assert after.queue == 0.0
    assert after.film < 0.8 * before.film
    assert after.lost > before.lost
    speed = np.linalg.norm(system.film.state.velocity.numpy()[: film_count(system.film)], axis=1)
    assert speed.mean() > 5e-3
    there = near(system, 0.003)
    hold(world, SUCTION, 0.0, 0.0, 0.16, above=0.0005, frames=4)
    assert near(system, 0.003) < 0.5 * there
    assert system.balance.sucked > 0.0


def near(system: Bleeding, reach: float) -> int:
    """Particles of the film around the middle of the pad, seen from above."""
    places = system.film.state.position.numpy()[: film_count(system.film)]
    return int((np.hypot(places[:, 0], places[:, 1]) < reach).sum())


def test_blood_comes_back_bit_for_bit(world: World) -> None:
    world.step(160)
    state, once = world.save_state(), world.measure_values()
    hold(world, IRRIGATOR, 0.01, 0.0, 0.05, above=0.01)
    after = world.state_hash()
    world.load_state(state)
    assert world.measure_values() == once
    hold(world, IRRIGATOR, 0.01, 0.0, 0.05, above=0.01)
    assert world.state_hash() == after
