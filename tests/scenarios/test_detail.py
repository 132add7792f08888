"""Detail: the same world of more and smaller parts, and as much of it as a machine carries."""

from __future__ import annotations

import dataclasses
import json
import math
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import viscera
from viscera.blood import film as films
from viscera.detail import AUTO, parse_detail
from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import ToolInput
from viscera.scenarios import Scenario, Setting, catalogue
from viscera.scenarios import fit as fitting
from viscera.scenarios._film import FINEST, finer_film
from viscera.scenarios.bleeding.settings import FILM
from viscera.scenarios.fit import FRAME_BUDGET, LADDER, TICK_BUDGET, Fit, Pace, choose_cores, fit, search
from viscera.timing import FRAME
from viscera.view import Camera
from viscera.world import Contents, Moment, System

# --- counts ---


def test_counts_follow_the_detail(cpu: Device) -> None:
    for detail in (0.1, 0.5, 1.0, 3.0, 100.0):
        setting = Setting(cpu, 0, detail=detail)
        count, length = setting.count(5_000), setting.length(0.004)
        assert count == round(5_000 * detail)
        assert count * length**3 == pytest.approx(5_000 * 0.004**3, rel=1e-3)  # they fill the same body


def test_a_block_keeps_its_size(cpu: Device) -> None:
    for detail in (0.1, 0.3, 1.0, 2.0, 50.0):
        cells, spacing = Setting(cpu, 0, detail=detail).cells((24, 24, 8), 0.004)
        assert np.array(cells) * spacing == pytest.approx([0.096, 0.096, 0.032])
        # To the nearest whole cell along the shortest side, half a cell of at least three.
        assert np.prod(np.array(cells)) == pytest.approx(24 * 24 * 8 * detail, rel=0.6)
    assert Setting(cpu, 0).cells((24, 24, 8), 0.004) == ((24, 24, 8), 0.004)


def test_texels_are_what_a_skin_can_have(cpu: Device) -> None:
    sides = {detail: Setting(cpu, 0, detail=detail).texels(512) for detail in (0.1, 0.25, 1.0, 4.0, 16.0, 1000.0)}
    assert sides == {0.1: 128, 0.25: 256, 1.0: 512, 4.0: 1024, 16.0: 2048, 1000.0: 4096}


@pytest.mark.parametrize("detail", [0.0, -1.0, 0.09, 1001.0, math.nan, math.inf, True, "much"])
def test_detail_that_cannot_be_is_refused(detail: float, cpu: Device) -> None:
    with pytest.raises(InputError, match="detail"):
        viscera.make("palpation", device=cpu, detail=detail)


def test_detail_as_people_write_it() -> None:
    assert parse_detail("auto") == parse_detail(" Auto ") == AUTO
    assert parse_detail("0.5") == 0.5
    for wrong in ("", "half", "0", "nan"):
        with pytest.raises(InputError, match="detail"):
            parse_detail(wrong)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "cautery" else pytest.mark.slow) for name in catalogue()]
)
def test_every_scenario_has_half_of_everything_at_half_the_detail(name: str, cpu: Device) -> None:
    whole, half = (catalogue()[name].build(Setting(cpu, 0, detail=detail)) for detail in (1.0, 0.5))
    for one, other in zip(whole.organs, half.organs, strict=True):
        assert len(other.body.nodes) == pytest.approx(0.5 * len(one.body.nodes), rel=0.12)
        # What is drawn of an organ that can be cut has the resolution of its lattice.
        assert other.body.mesh.size == pytest.approx(one.body.mesh.size, rel=1e-6 if one.cuts is None else 0.02)
    for one, other in zip(whole.systems, half.systems, strict=True):
        rooms = [getattr(getattr(kept.holds, "state", None), "capacity", None) for kept in (one, other)]
        if rooms[0] is not None and one.name == "film":
            assert rooms[1] == rooms[0] // 2


# --- the same physics ---


def pressed(detail: float, depth: float, cpu: Device) -> float:
    """Force of the palpation probe, held so deep beside the nodule until it rests [N]."""
    world = viscera.make("palpation", device=cpu, detail=detail)
    x, y, _ = world.hands[0].instrument.home
    top = float(world.organs[0].body.positions[:, 2].max())
    world.apply(ToolInput(0, (x + 0.0231, y - 0.0173, top + 0.008 - depth)))
    world.step(150)
    return world.tools[0].force[2]


@pytest.mark.slow
def test_a_press_feels_the_same_at_any_detail(cpu: Device) -> None:
    """The ball touches masses, not the surface between them, so a coarse lattice gives way a little more: measured at
    detail 0.5, 1 and 2 are 17, 7 and 3 % less than at 4 with 4 mm (0.103 N); with 8 mm it is 36, 17 and 7 %."""
    soft, usual, fine = (pressed(detail, 0.004, cpu) for detail in (0.5, 1.0, 2.0))
    assert soft == pytest.approx(fine, rel=0.2)
    assert usual == pytest.approx(fine, rel=0.1)


@pytest.mark.slow
def test_force_converges_with_detail(cpu: Device) -> None:
    forces = np.array([pressed(detail, 0.008, cpu) for detail in (0.5, 1.0, 2.0, 4.0)])
    steps = np.diff(forces)
    assert (steps > 0.0).all()
    assert (np.diff(steps) < 0.0).all()
    assert forces[:3] / forces[3] == pytest.approx([0.64, 0.83, 0.93], abs=0.05)


@pytest.mark.slow
def test_as_much_blood_is_lost_at_any_detail(cpu: Device) -> None:
    """Pressure and openings decide; particles only carry it. Within one particle of each vessel, 0.8 µL at the most."""
    lost = {}
    for detail in (0.25, 0.5, 1.0):
        world = viscera.make("bleeding", device=cpu, detail=detail)
        world.step(320)
        lost[detail] = world.measure_values()["blood_lost"]
    assert lost[1.0] > 0.02
    for detail in (0.25, 0.5):
        assert lost[detail] == pytest.approx(lost[1.0], abs=2 * 0.2e-3 / detail)


def test_a_finer_film_is_the_same_film() -> None:
    """Its thickness (volume over h²), what pressure does over a length (k·h) and what viscosity does (σ·h²)."""
    assert finer_film(FILM, 1.0) is FILM
    for detail in (0.1, 0.5, 2.0, 4.0, 100.0):
        fine = finer_film(FILM, detail)
        blood = fine.fluids[0]
        usual = FILM.fluids[0]
        assert fine.particle_volume == pytest.approx(FILM.particle_volume / min(detail, FINEST))
        assert fine.particle_volume / fine.radius**2 == pytest.approx(FILM.particle_volume / FILM.radius**2)
        assert blood.stiffness * fine.radius == pytest.approx(usual.stiffness * FILM.radius)
        assert blood.viscosity * fine.radius**2 == pytest.approx(usual.viscosity * FILM.radius**2)
        assert round(FRAME / fine.dt) * fine.dt == pytest.approx(FRAME)
        # What is calm in a step stays so (`FilmFluid.stiffness`).
        assert blood.stiffness * fine.dt**2 / fine.radius <= 1.001 * usual.stiffness * FILM.dt**2 / FILM.radius


# --- as much as a machine carries ---


class Machine:
    """One on which a tick takes `tick_ms`·detail^power beside `floor` [ms], and a frame `frame_ms`·detail."""

    def __init__(
        self, tick_ms: float, power: float = 4.0 / 3.0, frame_ms: float = 0.0, floor: float = 0.0, refuses: float = 1e9
    ) -> None:
        self.tick_ms, self.power, self.frame_ms, self.floor, self.refuses = tick_ms, power, frame_ms, floor, refuses
        self.tried: list[float] = []

    def pace(self, detail: float) -> Pace:
        tick = self.floor + self.tick_ms * detail**self.power
        return Pace(detail, round(5_000 * detail), tick, self.frame_ms * detail)

    def __call__(self, detail: float) -> Pace:
        self.tried.append(detail)
        if detail > self.refuses:
            raise InputError("too many.", "Use fewer.")
        return self.pace(detail)

    def best(self) -> float:
        return max(detail for detail in LADDER if detail <= self.refuses and self.pace(detail).load <= 1.0)


@pytest.mark.parametrize(
    "machine",
    [
        Machine(0.5),
        Machine(3.0),
        Machine(0.1, frame_ms=20.0),
        Machine(0.02, power=5.0 / 3.0, floor=0.1),
        Machine(2e-4, power=1.0, floor=0.2),
        Machine(1e-3, refuses=8.0),
        Machine(0.0, power=1.0, floor=0.01),
    ],
)
def test_the_largest_detail_that_keeps_real_time_is_found(machine: Machine) -> None:
    found = search(machine)
    assert found.detail == machine.best()
    assert found == machine.pace(found.detail)
    assert len(machine.tried) <= fitting.MOST_TRIALS


def test_a_machine_that_is_too_slow_gets_the_least_detail() -> None:
    found = search(Machine(1e3))
    assert found.detail == LADDER[0]
    assert found.load > 1.0


def test_an_organ_with_too_few_masses_gets_more() -> None:
    def thin(detail: float) -> Pace:
        if detail < 0.5:
            raise InputError("gives only 60 masses.", "Use a larger one.")
        return Machine(0.4).pace(detail)

    assert search(thin).detail == Machine(0.4).best()
    with pytest.raises(InputError, match="never"):
        search(lambda detail: (_ for _ in ()).throw(InputError("never", "")))


def test_real_time_is_kept_by_ticks_frames_and_both_together() -> None:
    assert Pace(1.0, 0, TICK_BUDGET, 0.0).load == pytest.approx(1.0)
    assert Pace(1.0, 0, 0.0, FRAME_BUDGET).load == pytest.approx(1.0)
    side_by_side = Pace(1.0, 0, 0.5 * TICK_BUDGET, 0.9 * FRAME_BUDGET)
    assert side_by_side.load == pytest.approx(0.9)
    assert dataclasses.replace(side_by_side, one_core=True).load > 1.0


def test_cores_go_where_the_work_is() -> None:
    assert choose_cores(1, 0.5, 8.0) == (1, 1)
    assert choose_cores(2, 0.5, 0.3) == (2, 2)
    assert choose_cores(2, 0.5, 8.0) == (1, 1)
    assert choose_cores(8, 0.5, 8.0) == (4, 4)
    assert choose_cores(8, 0.01, 8.0) == (1, 7)
    assert choose_cores(8, 0.5, 1.0) == (7, 1)


def test_what_was_found_is_kept_until_something_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu: Device
) -> None:
    machine = Machine(0.5)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("viscera.scenarios.fit.measure", machine)
    monkeypatch.setattr("viscera.scenarios.fit._build", lambda entry, device, mesh, detail, options: detail)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    said: list[str] = []
    entry = catalogue()["palpation"]
    first = fit(entry, cpu, progress=lambda text, share: said.append(text))
    assert first.detail == machine.best()
    assert first.real_time
    assert "how much detail this machine carries" in said[0]
    trials = len(machine.tried)
    assert fit(entry, cpu) == first
    assert len(machine.tried) == trials
    assert fit(catalogue()["liver"], cpu).detail == first.detail
    assert len(machine.tried) == 2 * trials
    assert fit(entry, cpu, fresh=True) == first
    mesh = tmp_path / "organ.stl"
    for text in ("one", "other"):
        mesh.write_text(text)
        before = len(machine.tried)
        fit(entry, cpu, mesh=mesh)
        assert len(machine.tried) > before
    fitting.cache_file().write_text("no JSON")
    assert fit(entry, cpu) == first
    assert Fit(**next(iter(json.loads(fitting.cache_file().read_text()).values()))) == first


def test_what_was_found_beside_other_work_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu: Device
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("viscera.scenarios.fit.measure", Machine(0.5))
    monkeypatch.setattr("viscera.scenarios.fit._build", lambda entry, device, mesh, detail, options: detail)
    monkeypatch.setattr("os.getloadavg", lambda: (1e3, 0.0, 0.0))
    fit(catalogue()["palpation"], cpu)
    assert not fitting.cache_file().exists()


def test_a_world_is_made_as_fine_as_the_machine_carries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu: Device
) -> None:
    """The slowest part is the trial, so a world with nothing in it is tried."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seen: list[float] = []

    def build(setting: Setting) -> Contents:
        seen.append(setting.detail)
        camera = Camera((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 40.0)
        return Contents(camera=camera, bounds=((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))

    world = viscera.make(Scenario("nothing", build), device=cpu, detail="auto")
    assert world.detail == seen[-1] == LADDER[-1]
    assert world.scene().detail == world.detail


def test_a_trial_runs_systems_beside_the_ticks_and_as_full_as_they_get(cpu: Device) -> None:
    """A turn of 5 ms is the systems', not a tick's; and nobody fills a world whose systems are at work."""
    turn, at_work, filled = 5.0, threading.Event(), 0

    def work(_: Moment) -> None:
        at_work.set()
        time.sleep(1e-3 * turn)
        at_work.clear()

    def heaviest() -> None:
        nonlocal filled
        assert not at_work.is_set()
        filled += 1

    def build(setting: Setting) -> Contents:
        camera = Camera((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 40.0)
        bounds = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        return Contents(camera=camera, bounds=bounds, systems=[System(name="slow", frame=work)], heaviest=heaviest)

    world = viscera.make(Scenario("slow", build), device=cpu)
    pace = fitting.measure(world)
    assert filled >= fitting.WARM_FRAMES
    assert pace.frame_ms >= turn
    assert pace.tick_ms < 0.2 * turn


def test_blood_is_poured_where_the_surface_is_and_not_where_it_rests(cpu: Device) -> None:
    world = viscera.make("artery", device=cpu, detail=0.25)
    tissue = world.organs[0].tissue
    lifted = np.where(tissue.params.anchored[:, None], 0.0, [0.0, 0.0, 0.02])
    tissue.set_motion(lifted, np.zeros_like(lifted))
    world.step(32)
    before = films.count(world.system("film").holds)
    world.contents.heaviest()
    world.step(16)
    assert films.count(world.system("film").holds) > before


@pytest.mark.parametrize(
    "name", ["artery", *(pytest.param(name, marks=pytest.mark.slow) for name in ("spurt", "incision"))]
)
def test_a_trial_is_as_full_of_blood_as_a_hand_lets_it_get(name: str, cpu: Device) -> None:
    world = viscera.make(name, device=cpu, detail=0.25)
    for _ in range(8):
        world.contents.heaviest()
        world.step(16)
    film = world.system("film").holds
    assert 0.25 * film.state.capacity < films.count(film) <= 0.6 * film.state.capacity
