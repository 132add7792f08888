"""Blood in saline: what vessels give is in the cavity or has gone out, what comes in goes out, and burns seal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from viscera import grid
from viscera.blood.wounds.vessels import flow_rate, vessel_mmhg
from viscera.device import open_device
from viscera.heat.burn import Burn, make_burn
from viscera.heat.conduction import make_heat
from viscera.instruments import Rinses, Sucks, Tool, kit
from viscera.tissue.materials import LIVER
from viscera.units import MMHG
from viscera.world import Organ, block, organ
from viscera.world.system import Moment
from viscera.world.systems.saline import CELLS, DENSEST, HEART_RATE, Saline
from viscera.world.systems.wounds import Wound

VESSEL = vessel_mmhg(70.0, 70.0, 0.5, 20.0)
"""One that does not beat, so that its rate is known."""
OPENING = 1.0e-4
"""[m]"""


@pytest.fixture(scope="module")
def theatre() -> tuple[Organ, Burn]:
    device = open_device("cpu", 1)
    body = block(cells=(12, 9, 4), spacing=0.004)
    wall = organ(
        "wall", body, device, texels=64, burns=True, material=LIVER, anchored=body.positions[:, 2] < 0.001,
        poisson=0.35, viscous_time=2e-4,
    )  # fmt: skip
    burn = make_burn(make_heat(wall.need_skin()))
    wall.write_field("burn_level", burn.burn_level)
    return wall, burn


def tools_at(place: tuple[float, float, float]) -> list[Tool]:
    """An irrigator and a suction there, neither of them pressed."""
    rinser = replace(kit.irrigator(), effects=(Rinses(speed=0.2, rate=2e-6, outlet=0.0),))
    sucker = replace(kit.suction(), effects=(Sucks(rate=3e-6),))
    tools = kit.hand_out([rinser, sucker], place, apart=0.0)
    for tool in tools:
        tool.active = True
    return tools


@pytest.fixture
def saline(theatre: tuple[Organ, Burn]) -> Saline:
    wall, burn = theatre
    burn.burn_level.zero_()
    wounds = [Wound((-0.006, 0.0, 0.016), VESSEL, OPENING), Wound((0.008, 0.004, 0.016), VESSEL, OPENING)]
    return Saline(wall, wounds, tools_at((0.0, 0.0, 0.02)))


def run(saline: Saline, frames: int, tools: list[Tool] | None = None) -> None:
    for number in range(frames):
        saline.frame(Moment(16 * number, tools or [], dict, number))


def measures(saline: Saline) -> dict[str, float]:
    return {measure.name: value for measure, value in saline.measures()}


def test_vessels_give_what_their_law_says_and_none_is_lost(saline: Saline) -> None:
    """Both bleed against 40 mmHg of saline for 0.48 s. To a picolitre for each; all of it is in the cavity."""
    saline._set_pump(0.0)
    run(saline, 30)
    rate = flow_rate(VESSEL, OPENING, 0.0, 40.0 * MMHG)
    balance = saline.balance()
    assert balance.given == pytest.approx(2.0 * rate * 0.48, rel=1e-6)
    assert balance.missing == 0
    assert balance.cavity == balance.given - balance.rinsed_out
    assert measures(saline)["bleeding"] == pytest.approx(2.0 * rate * 6e7, rel=1e-6)


def test_pressure_holds_bleeding_back(saline: Saline) -> None:
    saline._set_pressure(80.0)
    run(saline, 9)
    assert saline.balance().given == 0.0
    saline._set_pressure(0.0)
    run(saline, 9)
    assert saline.balance().given > 0.0


def test_what_comes_in_goes_out(saline: Saline) -> None:
    """Pump, irrigator and bleeding against outlet and suction: the projection is left nothing to expand."""
    tools = tools_at((0.0, 0.0, 0.022))
    for tool in tools:
        tool.grip = 1.0
    run(saline, 12, tools)
    rates = saline.flow.rate.numpy().astype(np.float64).sum() * saline.flow.params.cell_volume
    assert abs(rates) < 1e-4 * 2e-6
    said = measures(saline)
    assert said["flow_in"] == pytest.approx(120.0 + 120.0, rel=1e-6)
    assert said["flow_out"] == pytest.approx(said["flow_in"] + said["bleeding"], rel=1e-6)
    before, after = grid.divergence(saline.flow)
    assert after < 1e-4 * before


def test_suction_clears_and_what_it_took_is_counted(saline: Saline) -> None:
    run(saline, 60)
    tools = tools_at((-0.006, 0.0, 0.018))
    tools[1].grip = 1.0
    saline._set_pressure(120.0)  # nothing more bleeds
    before = saline.balance()
    run(saline, 90, tools)
    after = saline.balance()
    assert after.rinsed_out > 0.2 * before.cavity
    assert after.missing == 0
    assert saline.view() > 100.0 * np.exp(-1.0)


def test_a_coagulated_vessel_is_sealed_and_the_other_bleeds_on(saline: Saline, theatre: tuple[Organ, Burn]) -> None:
    wall, burn = theatre
    run(saline, 3)
    assert measures(saline)["open_vessels"] == 2.0
    at = wall.need_skin().position.numpy()
    level = np.zeros(len(at), dtype=np.float32)
    level[np.linalg.norm(at - saline.vessels[0].point, axis=1) < 0.004] = 1.0
    burn.burn_level.assign(level)
    run(saline, 3)
    said = measures(saline)
    assert said["open_vessels"] == 1.0
    assert said["bleeding"] == pytest.approx(flow_rate(VESSEL, OPENING, 0.0, 40.0 * MMHG) * 6e7, rel=1e-6)


def test_blood_sinks_and_is_drawn_as_blood(saline: Saline) -> None:
    """Beside the wound, heavier than saline; red by how much there is, green says that all of it is blood."""
    saline._set_pump(0.0)
    run(saline, 45)
    picture = saline.box.picture.numpy().reshape(CELLS[2], CELLS[1], CELLS[0], 4)
    assert picture[..., 0].max() > 100
    assert (picture[..., 1] == 255).all()
    share = grid.values(saline.flow, "blood")
    drawn = picture[..., 0].astype(np.float64)
    part = (drawn > 0) & (drawn < 255)
    assert np.abs(drawn[part] / 255.0 - share[part] * 23_000.0 / DENSEST).max() < 1.0 / 255.0
    heights = (share.sum(axis=(1, 2)) * np.arange(CELLS[2])).sum() / share.sum()
    assert heights < 0.5 * CELLS[2]


def test_a_moving_tool_stirs_blood_in_saline(theatre: tuple[Organ, Burn]) -> None:
    """Blood lies over a wound that bleeds no more. A bar of 6 mm that is drawn to and fro above it moves the middle of
    all blood along the stroke by most of a millimetre; one that is held still does not. None of it is lost."""
    wall, burn = theatre
    burn.burn_level.zero_()
    middles = []
    for stroke in (0.0, 0.008):
        tools = kit.hand_out([kit.probe(0.003)], (0.006, 0.0, 0.021))
        tools[0].active = True
        cavity = Saline(wall, [Wound((0.0, 0.0, 0.016), VESSEL, OPENING)], tools)
        cavity._set_pump(0.0)
        for number in range(60):
            if number == 30:
                cavity._set_pressure(120.0)
            if number >= 30:
                tools[0].tip[0] = 0.006 - stroke * np.sin(2.0 * np.pi * number / 30.0)
                tools[0].bars.place(tools[0].tip, tools[0].orientation, 0.0, tools[0].end)
            cavity.frame(Moment(16 * number, tools, dict, number))
        share = grid.values(cavity.flow, "blood").astype(np.float64)
        middles.append((share[..., None] * grid.middles(cavity.flow.params)).sum(axis=(0, 1, 2)) / share.sum())
        assert cavity.balance().missing == 0
    assert abs(middles[0][0]) < 5e-5
    assert abs(middles[1][0]) > 5e-4


def test_saved_and_loaded_it_goes_on_bit_for_bit(saline: Saline) -> None:
    run(saline, 7)
    system = saline.system()
    saved = system.save()
    run(saline, 8)
    after = {name: values.copy() for name, values in system.save().items()}
    system.load(saved)
    run(saline, 8)
    for name, values in system.save().items():
        assert np.array_equal(values, after[name]), name


def test_the_heart_beats_in_it(theatre: tuple[Organ, Burn]) -> None:
    """A vessel that beats gives more at the height of the pulse than at its foot."""
    wall, burn = theatre
    burn.burn_level.zero_()
    beating = Saline(wall, [Wound((0.0, 0.0, 0.016), vessel_mmhg(75.0, 45.0, 0.5, 20.0), OPENING)], [])
    rates = []
    for _ in range(round(1.0 / (HEART_RATE * 0.048)) + 1):
        run(beating, 3)
        rates.append(measures(beating)["bleeding"])
    assert max(rates) > 1.5 * min(rates)
