"""Several fluids in a film: they separate or mix, blood clots at rest and dissolves in saline (Kvick §6.2.8–10)."""

from __future__ import annotations

import dataclasses
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from film_reference import scatter

from viscera.blood.film.border import check_film, film_count, set_sheet_obstacles, spawn
from viscera.blood.film.film import Film, make_film, set_film, step_film
from viscera.blood.film.params import FilmFluid, FilmParams, Sheet, document_params
from viscera.blood.film.state import DRAINED
from viscera.device import Device
from viscera.errors import InputError

RED = FilmFluid("blood", 1060.0, 4.0, 120.0, 480.0, viscosity=20.0, traction=5.0, clots=True)
OIL = FilmFluid("bile", 1010.0, 4.0, 120.0, 480.0, viscosity=10.0, traction=5.0, phase=1.0)
CLEAR = FilmFluid("saline", 1005.0, 4.0, 120.0, 480.0, viscosity=2.0, traction=5.0, dissolves=True)


def params(*fluids: FilmFluid, **changes: Any) -> FilmParams:
    numbers: dict[str, Any] = {"one_sided": False, "gravity": (0.0, 0.0, 0.0)}
    return document_params(4.0, **(numbers | {"fluids": fluids} | changes))


def run(film: Film, steps: int) -> None:
    program = film.device.record(lambda stage: step_film(stage, film), work=film.work)
    for _ in range(steps):
        program.run()
    film.device.synchronize()
    check_film(film)


def same_neighbours(film: Film) -> float:
    """Part of the neighbours of a particle that are of its own fluid, mean over all."""
    n = film_count(film)
    x = film.state.position.numpy()[:n, :2].astype(float)
    size = film.sheet.width if film.sheet else 1
    offset = x[None] - x[:, None]
    near = np.linalg.norm(offset - size * np.round(offset / size), axis=2) < 1.0
    np.fill_diagonal(near, False)
    own = film.state.fluid.numpy()[:n].argmax(axis=1)
    return float(((own[:, None] == own[None]) & near).sum() / near.sum())


def test_fluids_of_different_phase_separate(device: Device) -> None:
    """Stirred together, two fluids sort themselves out. Without separation and under two names they stay mixed."""
    parts = {}
    for name, other in (("different", OIL), ("equal", dataclasses.replace(OIL, phase=0.0))):
        film = make_film(Sheet(10, 10, wrap=True), params(RED, other), 360, device)
        kinds = np.random.default_rng(3).permutation(np.arange(360) % 2)
        spawn(film, scatter(360, 10, 10, 8), np.eye(4)[kinds])
        run(film, 1)
        before = same_neighbours(film)
        assert before == pytest.approx(0.5, abs=0.04)
        run(film, 500)
        parts[name] = same_neighbours(film)
    assert parts["different"] > 0.8
    assert parts["equal"] == pytest.approx(0.5, abs=0.05)


def test_dilution_keeps_every_fluid_and_ends_mixed(device: Device) -> None:
    """Amounts Σ V c per fluid stay (float32 concentrations, 300 steps: 1e-5); concentrations stay within 0 … 1 and
    their sum 1; in the end each particle is the same mixture."""
    film = make_film(Sheet(6, 6, wrap=True), params(RED, CLEAR, dilution=30.0), 150, device)
    x = scatter(150, 6, 6, 9)
    volumes = np.where(x[:, 0] < 3.0, 2e-10, 1e-10)
    for half, fluid in ((x[:, 0] < 3.0, "blood"), (x[:, 0] >= 3.0, "saline")):
        spawn(film, x[half], fluid, volume=float(volumes[half][0]))
    run(film, 1)

    def amounts() -> np.ndarray:
        n = film_count(film)
        return film.state.volume.numpy()[:n].astype(float) @ film.state.fluid.numpy()[:n].astype(float)

    before, spread = amounts(), film.state.fluid.numpy()[:150, 0].std()
    run(film, 300)
    fluid = film.state.fluid.numpy()[:150]
    assert np.abs(amounts() - before).max() < 1e-5 * before.max()
    assert fluid.min() >= 0.0
    assert fluid.max() <= 1.0
    assert np.abs(fluid.sum(axis=1) - 1.0).max() < 1e-5
    assert fluid[:, 0].std() < 0.2 * spread
    assert not fluid[:, 2:].any()


CLOTTING = {"clot_rate": 2.0, "clot_speed": 0.2, "clot_hold": 1000.0}


def test_resting_blood_clots_and_moving_blood_does_not(device: Device) -> None:
    """At rest c = 1 − exp(−rate t), the closed form. At 20 times `clot_speed` the rate is 1/401 of that."""
    still = make_film(Sheet(40, 40), params(RED, **CLOTTING), 8, device)
    spawn(still, [(5.0, 5.0), (20.0, 20.0)])
    run(still, 50)
    age = still.state.age.numpy()[0]
    assert still.state.clot.numpy()[:2] == pytest.approx(1.0 - math.exp(-2.0 * age), rel=1e-4)
    moving = make_film(
        Sheet(40, 40),
        params(dataclasses.replace(RED, traction=0.0), **CLOTTING),
        8,
        device,
    )
    spawn(moving, [(5.0, 5.0)], velocity=(4.0, 0.0, 0.0))
    run(moving, 50)
    assert moving.state.clot.numpy()[0] == pytest.approx(2.0 * age / 401.0, rel=0.01)


def test_a_clot_stays_where_it_is(device: Device) -> None:
    """Clotted blood on a slope has a thousand times the traction, and moves a thousandth of the way of fluid blood."""
    film = make_film(Sheet(40, 40), params(RED, **CLOTTING), 8, device)
    spawn(film, [(5.0, 30.0)])
    run(film, 400)
    assert film.state.clot.numpy()[0] > 0.99
    set_film(film, dataclasses.replace(film.params, gravity=(0.0, -10.0, 0.0)))
    run(film, 100)
    fallen = 30.0 - film.state.position.numpy()[0, 1]
    fluid = 10.0 * film.params.dt / -math.expm1(-RED.traction * film.params.dt) * 100 * film.params.dt
    assert 0.0 < fallen < 0.005 * fluid


def test_saline_dissolves_a_clot_and_only_blood_clots(device: Device) -> None:
    film = make_film(Sheet(12, 12), params(RED, CLEAR, dissolve_rate=20.0, **CLOTTING), 400, device)
    spawn(film, scatter(60, 12, 12, 4, margin=4.0), "blood")
    run(film, 200)
    clotted = film.state.clot.numpy()[:60].mean()
    assert clotted > 0.9
    set_film(film, dataclasses.replace(film.params, clot_rate=0.0))
    run(film, 50)
    assert film.state.clot.numpy()[:60].mean() == pytest.approx(clotted, rel=1e-4)
    spawn(film, scatter(200, 12, 12, 5, margin=3.5), "saline")
    run(film, 150)
    n = film_count(film)
    fluid, clot = film.state.fluid.numpy()[:n], film.state.clot.numpy()[:n]
    assert clot[fluid[:, 0] > 0.5].mean() < 0.5 * clotted
    assert not clot[fluid[:, 1] > 0.5].any()


def test_only_the_blood_in_a_mixture_clots(device: Device) -> None:
    """Half blood, half saline, nothing dissolves: the clotted part ends at one half."""
    film = make_film(Sheet(40, 40), params(RED, CLEAR, **CLOTTING), 4, device)
    spawn(film, [(5.0, 5.0)], (0.5, 0.5, 0.0, 0.0))
    run(film, 1000)
    assert film.state.clot.numpy()[0] == pytest.approx(0.5, rel=1e-3)
    assert film.state.clot.numpy()[0] <= 0.5


def test_the_sheet_has_obstacles_and_drains_too(device: Device) -> None:
    pull = params(RED, gravity=(0.0, -40.0, 0.0))
    film = make_film(Sheet(40, 40), pull, 64, device)
    wall = np.zeros((40, 40))
    wall[18:20, 10:30] = np.inf
    wall[0:3, :] = -1.0
    set_sheet_obstacles(film, wall)
    spawn(film, [(20.0, 22.0), (5.0, 22.0)])
    run(film, 350)
    # One fell beside the wall and into the drain; the other rests on the wall, right above it.
    assert film.state.gone_count.numpy()[int(DRAINED)] == 1
    assert film_count(film) == 1
    assert film.state.position.numpy()[0, 1] == pytest.approx(20.0, abs=0.2)
    with pytest.raises(InputError, match=r"\(40, 40\)"):
        set_sheet_obstacles(film, np.zeros((3, 3)))
    with pytest.raises(InputError, match="no obstacle map"):
        set_sheet_obstacles(make_film(Sheet(9, 9), pull, 4, device, obstacles=False), np.zeros((9, 9)))


def test_parameters_change_while_it_runs(device: Device) -> None:
    film = make_film(Sheet(60, 60), params(RED, gravity=(1.0, 0.0, 0.0)), 4, device)
    spawn(film, [(30.0, 30.0)])
    program = device.record(lambda stage: step_film(stage, film), work=film.work)
    for _ in range(50):
        program.run()
    device.synchronize()
    there = film.state.position.numpy()[0, 0]
    assert there > 30.001
    slow = dataclasses.replace(RED, traction=500.0)
    set_film(film, dataclasses.replace(film.params, gravity=(0.0, 0.0, 0.0), fluids=(slow,)))
    for _ in range(5):
        program.run()
    device.synchronize()
    assert film.state.position.numpy()[0, 0] == pytest.approx(there, abs=0.02)
    assert np.abs(film.state.velocity.numpy()[0]).max() < 1e-6


def test_the_example_holds() -> None:
    path = Path(__file__).parents[2] / "examples" / "08_blood_on_an_organ.py"
    runpy.run_path(str(path), run_name="__main__")


def test_mixing_four_steps_at_once_is_four_steps(device: Device) -> None:
    """At rest, so that both see the same neighbours. One exchange is a forward step of dc/dt = −λ (c − c₀) with
    λ = dilution Σ(1 − q), about 4/s here: after 0.4 s, steps four times as long are off by λ²t · 3dt/2 · e^(−λt), 0.02.
    Clots follow an exact integral, and feel only the difference in concentrations."""
    ends = []
    for every in (1, 4):
        still = tuple(dataclasses.replace(f, stiffness=0.0, near_stiffness=0.0) for f in (RED, CLEAR))
        film = make_film(Sheet(6, 6), params(*still, dilution=1.0, **CLOTTING), 100, device)
        x = scatter(80, 6, 6, 2)
        spawn(film, x, np.eye(4)[(x[:, 0] < 3.0).astype(int)])
        for number in range(40):
            mixing = every if number % every == 0 else 0
            device.record(lambda stage, f=film, m=mixing: step_film(stage, f, m), work=1).run()
        device.synchronize()
        ends.append((film.state.fluid.numpy()[:80], film.state.clot.numpy()[:80]))
    assert ends[0][0][:, 0].std() < 0.48
    assert np.abs(ends[0][0] - ends[1][0]).max() < 0.03
    assert np.abs(ends[0][1] - ends[1][1]).max() < 0.03
    assert ends[0][1].max() > 0.5
