"""One ledger over vessels, film, queue and air: nothing appears, nothing vanishes, whatever the tools and tissue do."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from viscera.blood.balance import BLOOD_VOLUME, Ledger, check_balance, make_ledger, read_balance, step_ledger
from viscera.blood.drops.drops import DropParams, Drops, make_drops, set_tools, step_drops
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.params import LITTLE, FilmParams
from viscera.blood.film.surface import refresh_surface
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.blood.wounds.wounds import WoundParams, Wounds, add_wound, make_wounds, set_clip, step_wounds
from viscera.device import Device, Program
from viscera.errors import StateError
from viscera.geometry import icosphere

RADIUS = 0.03
SUBSTEPS = 4
DT = 0.008


class Scene:
    """A ball that bleeds at its top and side."""

    def __init__(self, device: Device, capacity: int = 3000, drops: int = 1500, queue: int = 512, **film: Any) -> None:
        self.device = device
        self.params = FilmParams(**film)
        self.film: Film = make_film(icosphere(RADIUS, 3), self.params, capacity, device, queue=queue)
        surface = self.film.surface
        assert surface is not None
        self.surface = surface
        self.drops: Drops = make_drops(surface, self.params, self.film.state, DropParams(box=0.05), DT, drops)
        still = WoundParams(clot_time=0.0)
        self.wounds: Wounds = make_wounds(surface, self.params, self.film.state, still, DT, self.drops.state)
        add_wound(self.wounds, (0.0, 0.0, RADIUS), vessel_mmhg(2.0, 1.5, 4.0), 0.3e-3)
        add_wound(self.wounds, (0.0, RADIUS, 0.0), vessel_mmhg(120.0, 80.0, 2.0, 60.0), 0.15e-3)
        self.ledger: Ledger = make_ledger(self.film.state, self.wounds, self.drops)
        self.program: Program = device.record(self.frame, work=1)

    def frame(self, stage) -> None:
        refresh_surface(stage, self.surface)
        step_wounds(stage, self.wounds)
        for _ in range(SUBSTEPS):
            step_film(stage, self.film)
        step_drops(stage, self.drops)
        step_ledger(stage, self.ledger)


def test_nothing_is_lost_while_everything_happens(device: Device) -> None:
    """180 frames: a vein wells up, an artery spurts, the ball breathes, saline rinses, suction takes, a clip opens and
    closes, drops fall off and are lost. Sums are integers, so missing is exactly 0, far below 1e-6 of the total.
    Suction is held beside the vein, where there is blood whichever way it runs down. What the host writes for a frame
    is written after the one before has ended: a program on cuda reads it when it runs, not when it is started."""
    scene = Scene(device, lifetime=0.6, dilution=1.0)
    rest = scene.surface.vertices.numpy().copy()
    total, happened = BLOOD_VOLUME, dict.fromkeys(("given", "rinsed", "film", "air", "lost", "sucked", "expired"), 0.0)
    for number in range(180):
        scene.wounds.drive.host[:] = 0.5 - 0.5 * math.cos(2 * math.pi * number / 100), 0.0
        scene.surface.vertices.assign(rest * (1.0 + 0.02 * math.sin(number / 8)))
        if number == 40:
            set_tools(scene.drops, nozzle=(0.0, 0.03, 0.06), nozzle_velocity=(0.0, 0.0, -0.5), nozzle_rate=2e-6)
        if number == 80:
            set_tools(scene.drops, suction=(0.1 * RADIUS, 0.0, RADIUS), reach=8e-3, suction_rate=3e-6)
        if number in (100, 130):
            set_clip(scene.wounds, 0, closed=number == 100)
        scene.program.run()
        device.synchronize()
        if number % 10 == 9:
            b = check_balance(scene.ledger, number)
            volume = b.vessels + b.film + b.queue + b.air + b.lost + b.run_off + b.sucked + b.expired - b.rinsed
            assert volume == pytest.approx(total, rel=1e-12)
            # Of each there was something at some time; suction may have taken the last of the film as it ends.
            happened = {name: max(most, getattr(b, name)) for name, most in happened.items()}
    b = read_balance(scene.ledger)
    assert b.missing == 0
    assert all(most > 0.0 for most in happened.values()), happened
    # What the ledger says is in the film and in the air is there, particle by particle.
    state, air = scene.film.state, scene.drops.state
    count, flying = int(state.count.numpy()[0]), int(air.count.numpy()[0])
    stays = state.fate.numpy()[:count] == 0
    assert int(state.volume.numpy()[:count][stays].sum(dtype=np.int64)) == round(b.film / LITTLE)
    assert int(air.volume.numpy()[:flying].sum(dtype=np.int64)) == round(b.air / LITTLE)


def test_a_full_film_says_so_and_blood_waits(device: Device) -> None:
    """Room for 200 particles, 64 in the queue, 50 in the air: the rest stays in the vessels and is counted as held."""
    scene = Scene(device, capacity=200, drops=50, queue=64)
    for _ in range(150):
        scene.program.run()
    b = check_balance(scene.ledger, 150)
    assert int(scene.film.state.count.numpy()[0]) == 200
    assert b.held > 0.0
    assert b.missing == 0


def test_what_was_there_at_the_beginning_counts(device: Device) -> None:
    scene = Scene(device)
    for _ in range(20):
        scene.program.run()
    later = make_ledger(scene.film.state, scene.wounds, scene.drops)
    b = read_balance(later)
    assert b.missing == 0
    assert later.begun == 0  # the wounds' own books say where it came from


def test_a_theft_is_noticed(device: Device) -> None:
    scene = Scene(device)
    for _ in range(20):
        scene.program.run()
    check_balance(scene.ledger, 20)
    volume = scene.film.state.volume.numpy()
    volume[0] -= 7
    scene.film.state.volume.assign(volume)
    scene.program.run()
    with pytest.raises(StateError, match="7 pL of fluid are missing"):
        check_balance(scene.ledger, 21)


def test_the_same_world_twice(device: Device) -> None:
    """Bit for bit, through wounds, film, drops and ledger."""
    results = []
    for _ in range(2):
        scene = Scene(device)
        set_tools(scene.drops, nozzle=(0.0, 0.03, 0.06), nozzle_velocity=(0.0, 0.0, -0.5))
        for _ in range(40):
            scene.program.run()
        device.synchronize()
        results.append([scene.film.state.position.numpy().copy(), scene.drops.state.position.numpy().copy()])
    for a, b in zip(*results, strict=True):
        assert a.any()
        assert (a == b).all()


def test_the_example_ends_in_its_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "07_bleeding.py"
    monkeypatch.setattr("sys.argv", [str(path), "--seconds", "0.5", "--device", "cpu"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.endswith("nothing is missing\n")
