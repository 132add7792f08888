"""Bleeding, with hands made of numbers: vessels bleed until they are burnt or clipped shut, and no drop goes astray."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import viscera
from viscera.blood.balance import Balance
from viscera.blood.film.border import film_count, spawn
from viscera.blood.film.film import Film, step_film
from viscera.blood.film.state import DRAINED
from viscera.blood.film.surface import FilmSurface
from viscera.inputs import Reset, SetParameter, ToolInput
from viscera.instruments import Rinses
from viscera.scenarios.bleeding import CLIPS, FORCEPS, IRRIGATOR, SUCTION, open_vessels
from viscera.scenarios.bleeding.dressing import Dressing
from viscera.world import Moment, World, surface_height

NOZZLE_RATE = Rinses().rate


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    world = viscera.make("bleeding", device="cpu")
    yield world
    world.close()


@pytest.fixture
def world(made: World) -> World:
    made.apply(Reset(0))
    for name, value in {"pressure": 100.0, "bile_leak": 0.0, "gauze": 0.0, "incision": 0.0}.items():
        made.apply(SetParameter(name, value))
    made.step(16 - made.tick % 16)
    return made


def film_of(world: World) -> Film:
    found = world.system("film").holds
    assert isinstance(found, Film)
    return found


def surface_of(world: World) -> FilmSurface:
    found = film_of(world).surface
    assert found is not None
    return found


def balance_of(world: World) -> Balance:
    """Where all fluid is, as of the last frame."""
    return world.system("ledger").holds.balance


def hold(
    world: World, tool: int, x: float, y: float, seconds: float, above: float = 0.0, frames: int = 0
) -> dict[str, float]:
    """The handle pressed over this place, then the tool taken out again; what the measures say then. `frames` more of
    the blood alone come in between, without the tissue, which takes most of the time."""
    z = 0.0
    for _ in range(0, round(1000 * seconds), 16):
        z = world.organs[0].height(x, y)
        world.apply(ToolInput(tool, (x, y, z + above), grip=1.0))
        world.step(16)
    blood_alone(world, frames)
    world.apply(ToolInput(tool, (x, y, z + 0.05), active=False))
    world.step(16)
    return world.measure_values()


def test_vessels_bleed_and_every_drop_is_accounted_for(world: World) -> None:
    world.step(480)
    found = world.measure_values()
    assert found["open_vessels"] == 2.0
    # Both together about 7 mL/min by their pressures and openings; half a second of it.
    assert 0.03 < found["blood_lost"] < 0.12
    balance = balance_of(world)
    assert balance.missing == 0
    assert balance.given == pytest.approx(balance.film + balance.queue + balance.air + balance.cloth, rel=1e-9)
    picture = world.snapshot().arrays["pad.film"]
    assert (picture[..., 0] > 40).sum() > 50


@pytest.mark.slow
def test_no_pressure_no_blood(world: World) -> None:
    world.apply(SetParameter("pressure", 20.0))
    world.step(320)
    little = world.measure_values()["blood_lost"]
    world.apply(Reset(0))
    world.apply(SetParameter("pressure", 160.0))
    world.step(320)
    assert world.measure_values()["blood_lost"] > 3.0 * little


@pytest.mark.slow
def test_forceps_burn_one_vessel_shut_and_a_clip_closes_the_other(world: World) -> None:
    artery, vein = (wound.point for wound in open_vessels(world.organ("pad").body, world.seed))
    burnt = hold(world, FORCEPS, artery[0], artery[1], 1.4, above=-0.0005)
    assert burnt["coagulated"] > 1.0
    assert burnt["open_vessels"] == 1.0
    clipped = hold(world, CLIPS, vein[0], vein[1], 0.2)
    assert clipped["open_vessels"] == 0.0
    assert clipped["bleeding"] == 0.0
    lost = clipped["blood_lost"]
    world.step(160)
    assert world.measure_values()["blood_lost"] == lost


@pytest.mark.slow
def test_a_long_rinse_runs_off_and_the_film_flows_again(world: World) -> None:
    """Two seconds of saline, 4 mL on a film with room for 2: the film drips, does not fill up, and clears by itself;
    nothing comes out of a nozzle that is off; suction takes the rest."""
    film = film_of(world)
    room = film.state.capacity
    hold(world, IRRIGATOR, 0.0, 0.0, 0.16, above=0.01, frames=115)
    rinsed = balance_of(world).rinsed
    assert rinsed == pytest.approx(2.0 * NOZZLE_RATE, rel=0.02)
    assert film_count(film) < room
    before = balance_of(world)
    blood_alone(world, 40)
    after = balance_of(world)
    assert after.rinsed == rinsed
    assert after.queue == 0.0
    assert after.film < 0.8 * before.film
    assert after.lost > before.lost
    speed = np.linalg.norm(film.state.velocity.numpy()[: film_count(film)], axis=1)
    assert speed.mean() > 5e-3
    there = near(film, 0.003)
    hold(world, SUCTION, 0.0, 0.0, 0.16, above=0.0005, frames=4)
    assert near(film, 0.003) < 0.5 * there
    assert balance_of(world).sucked > 0.0
    assert balance_of(world).missing == 0


def near(film: Film, reach: float) -> int:
    """Particles of the film around the middle of the pad, seen from above."""
    places = film.state.position.numpy()[: film_count(film)]
    return int((np.hypot(places[:, 0], places[:, 1]) < reach).sum())


def blood_alone(world: World, frames: int) -> None:
    """So many frames of all that has to do with blood, without the tissue."""
    now = Moment(world.tick, world.hands, world.measure_values)
    for number in range(frames):
        for name in ("wounds", "drops", "film", "ledger", "film_picture"):
            system = world.system(name)
            if number % system.every == 0:
                system.frame(now)


def change(world: World, **values: float) -> None:
    for name, value in values.items():
        world.apply(SetParameter(name, value))
    world.step(1)


def test_bile_leaks_is_drawn_and_is_no_blood(world: World) -> None:
    change(world, pressure=20.0, bile_leak=15.0, separation=60.0, dissolving=1.5, pooling=30.0)
    params = film_of(world).params
    assert (params.separation, params.dissolve_rate, params.pooling) == (60.0, 1.5, 0.3)
    before = balance_of(world)
    blood_alone(world, 25)
    balance = balance_of(world)
    assert balance.leaked == pytest.approx(15e-6 / 60.0 * 25 * 0.016, rel=0.01)
    assert balance.missing == 0
    assert world.measure_values()["blood_lost"] == pytest.approx(1e6 * balance.given)
    assert balance.given - before.given < balance.leaked
    assert world.measure_values()["open_vessels"] == 2.0
    picture = world.snapshot().arrays["pad.film"]
    assert (picture[..., 2][picture[..., 0] > 0] > 200).sum() > 50  # pure bile


@pytest.mark.slow
def test_a_gauze_keeps_blood_out_or_soaks_first(world: World) -> None:
    """Blood poured on both sides of the gauze's edge: none comes onto it while it is a mask, some where it soaks."""
    came = {}
    bare = world.snapshot().arrays["pad.ink"]
    for kind in (1, 2):
        change(world, pressure=20.0, gauze=kind)
        film = film_of(world)
        film.state.count.zero_()
        under = surface_of(world).obstacle.numpy() > 0.0
        at = world.organ("pad").need_skin().position.numpy()[under]
        low, high = at.min(axis=0), at.max(axis=0)
        assert np.ptp(at[:, :2], axis=0) == pytest.approx(0.014, abs=1e-3)
        assert (world.snapshot().arrays["pad.ink"] != bare).any()
        y = np.linspace(low[1] + 2e-3, high[1] - 2e-3, 200)
        x = low[0] - np.tile([0.4e-3, 0.8e-3, 1.2e-3, 1.6e-3], 50)
        spawn(film, on_pad(world, x, y))
        flow(film, 50)
        places = film.state.position.numpy()[: film_count(film)]
        inside = ((places[:, :2] > low[:2] + 5e-4) & (places[:, :2] < high[:2] - 5e-4)).all(axis=1)
        came[kind] = int(inside.sum())
    assert came[1] == 0
    assert came[2] > 5
    change(world, gauze=0.0)
    assert not surface_of(world).obstacle.numpy().any()
    assert (world.snapshot().arrays["pad.ink"] == bare).all()


def test_an_incision_holds_blood_up_or_drains_it(world: World) -> None:
    """A crowd of particles left of the cut: pushed apart, they stop at a barrier and vanish in a drain."""
    drained = {}
    for kind in (1, 2):
        change(world, pressure=20.0, incision=kind)
        film = film_of(world)
        film.state.count.zero_()
        dressing = world.system("dressing").holds
        assert isinstance(dressing, Dressing)
        vertices = surface_of(world).vertices.numpy()[dressing.edges]
        beside = vertices.mean(axis=1)[len(vertices) // 2]
        places = beside[:2] - np.stack([np.linspace(0.5e-3, 2e-3, 60), np.linspace(-1e-3, 1e-3, 60)], axis=1)
        spawn(film, on_pad(world, *places.T))
        flow(film, 50)
        drained[kind] = int(film.state.gone_count.numpy()[int(DRAINED)])
    assert drained[1] == 0
    assert drained[2] > 5


def flow(film: Film, steps: int) -> None:
    """Of the film alone: what a test pours onto it is not in the ledger."""
    program = film.device.record(lambda stage: step_film(stage, film, 0), work=film.work)
    for _ in range(steps):
        program.run()


def on_pad(world: World, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    vertices = np.asarray(world.organs[0].vertices.numpy(), dtype=np.float32)
    return np.array([(a, b, surface_height(vertices, a, b)) for a, b in zip(x, y, strict=True)])


def test_blood_comes_back_bit_for_bit(world: World) -> None:
    world.step(160)
    state, once = world.save_state(), world.measure_values()
    hold(world, IRRIGATOR, 0.01, 0.0, 0.05, above=0.01)
    after = world.state_hash()
    world.load_state(state)
    assert world.measure_values() == once
    hold(world, IRRIGATOR, 0.01, 0.0, 0.05, above=0.01)
    assert world.state_hash() == after
