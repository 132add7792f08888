"""One ledger over film, drops and saline: a wound bleeds onto an organ under saline, its blood dissolves, and every
picolitre is somewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from viscera.blood.drops.drops import DropParams, make_drops
from viscera.blood.film.params import BLOOD, LITTLE, SALINE, FilmParams
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.blood.wounds.wounds import make_wounds
from viscera.device import open_device
from viscera.errors import StateError
from viscera.instruments import Rinses, Sucks, Tool, kit
from viscera.timing import FRAME
from viscera.tissue.materials import LIVER
from viscera.units import MILLILITRE
from viscera.world import Moment, Organ, block, organ
from viscera.world.system import System
from viscera.world.systems.drops import flying
from viscera.world.systems.film import flowing, make_film_on
from viscera.world.systems.ledger import Accounts, accounting
from viscera.world.systems.saline import Saline
from viscera.world.systems.wounds import Wound, bleeding

UNDER = (0.0, 0.0, 0.016)
"""Where the wound is, on the upper side [m]."""
VEIN = vessel_mmhg(1.0, 1.0, 4.0)
INTO = vessel_mmhg(70.0, 70.0, 0.5, 20.0)
"""One that bleeds into the saline itself."""


class Theatre:
    def __init__(self) -> None:
        device = open_device("cpu", 1)
        body = block(cells=(12, 9, 4), spacing=0.004)
        self.wall: Organ = organ(
            "wall", body, device, texels=64, material=LIVER, anchored=body.positions[:, 2] < 0.001, poisson=0.35,
            viscous_time=2e-4,
        )  # fmt: skip
        params = FilmParams(fluids=(BLOOD, SALINE), dilution=2.0)
        film = make_film_on(self.wall, params, 3000)
        follow = device.record(self.wall.record_surface, work=1)
        follow.run()
        assert film.surface is not None
        drops = make_drops(film.surface, params, film.state, DropParams(jet_volume=0.4e-9), FRAME, 512)
        wounds = make_wounds(film.surface, params, film.state, dt=FRAME, drops=drops.state)
        rinser = replace(kit.irrigator(), effects=(Rinses(speed=0.2, rate=2e-6, outlet=0.0),))
        sucker = replace(kit.suction(), effects=(Sucks(rate=3e-6),))
        self.tools: list[Tool] = kit.hand_out([rinser, sucker], (0.01, 0.0, 0.02), apart=0.0)
        vessels = [Wound((-0.008, 0.004, 0.016), INTO, 1.0e-4)]
        self.saline = Saline(self.wall, vessels, self.tools, detail=0.3, film=film)
        self.ledger = accounting(film, wounds, drops, self.saline)
        self.accounts: Accounts = self.ledger.holds
        self.systems: list[System] = [
            bleeding(self.wall, wounds, [Wound(UNDER, VEIN, 0.6e-3)]),
            flying("wall", drops),
            flowing(film),
            self.saline.system(),
            self.ledger,
        ]
        self.frames = 0

    def run(self, frames: int) -> None:
        for _ in range(frames):
            self.frames += 1
            now = Moment(16 * self.frames, self.tools, dict, self.frames)
            for system in self.systems:
                system.frame(now)


@pytest.fixture(scope="module")
def theatre() -> Theatre:
    """After half a second of bleeding, then a second with irrigator and suction."""
    made = Theatre()
    made.run(30)
    for tool in made.tools:
        tool.active, tool.grip = True, 1.0
    made.run(60)
    return made


def whole(volume: float) -> int:
    """Picolitres."""
    return round(volume / LITTLE)


def test_blood_of_all_wounds_is_on_the_organ_in_the_air_dissolved_or_gone(theatre: Theatre) -> None:
    """What was given on one side, all places where it can be on the other; whole picolitres, so exactly."""
    film, saline = theatre.accounts.balance, theatre.saline.balance()
    assert whole(film.given) > whole(1e-3 * MILLILITRE)
    assert whole(saline.given) > 0
    assert whole(saline.dissolved) > 0.2 * whole(film.given)
    came = whole(film.given) + whole(film.rinsed) + whole(saline.given)
    here = sum(whole(v) for v in (film.film, film.queue, film.air, saline.cavity))
    gone = sum(whole(v) for v in (film.lost, film.run_off, film.sucked, film.expired, film.drained, film.left))
    assert came == here + gone + whole(saline.rinsed_out) + whole(saline.washed)
    assert whole(film.dissolved) == whole(saline.dissolved) + whole(saline.washed)
    assert (film.missing, saline.missing) == (0, 0)
    assert whole(saline.rinsed_out) > 0


def test_what_flows_into_a_full_cavity_flows_out(theatre: Theatre) -> None:
    """The pump's 120 mL/min over 30 steps of 48 ms, tools at 2 and 3 mL/s over 20 of them; to a unit each."""
    now = theatre.saline.balance()
    steps, used, unit = 30, 20, theatre.saline.unit
    assert now.pumped == pytest.approx(2e-6 * 0.048 * steps, abs=unit)
    assert now.irrigated == pytest.approx(2e-6 * 0.048 * used, abs=unit)
    assert now.sucked == pytest.approx(3e-6 * 0.048 * used, abs=unit)
    came = sum(map(whole, (now.pumped, now.irrigated, now.given, now.dissolved, now.washed)))
    assert came == whole(now.sucked) + whole(now.let_out)
    rates = theatre.saline.flow.rate.numpy().astype(np.float64).sum() * theatre.saline.flow.params.cell_volume
    assert abs(rates) < 1e-4 * 2e-6


def test_a_picolitre_that_is_lost_on_the_way_stops_the_world(theatre: Theatre) -> None:
    saved = theatre.saline.system().save()
    account = saved["account"].copy()
    account[0] -= 1
    theatre.saline.system().load(saved | {"account": account})
    with pytest.raises(StateError, match="1 pL"):
        theatre.accounts.check_saline(0)
    theatre.saline.system().load(saved)
    theatre.accounts.check_saline(0)


def test_saved_and_loaded_it_goes_on_bit_for_bit(theatre: Theatre) -> None:
    frames = theatre.frames
    saved = {system.name: system.save() for system in theatre.systems}
    theatre.run(7)
    after = {system.name: system.save() for system in theatre.systems}
    for system in theatre.systems:
        system.load(saved[system.name])
    theatre.frames = frames
    theatre.run(7)
    for system in theatre.systems:
        for name, values in system.save().items():
            assert np.array_equal(values, after[system.name][name], equal_nan=True), f"{system.name} {name}"
