"""Smoke over burning tissue: where it starts, how much of it, what moves it, and who takes it away."""

from __future__ import annotations

import numpy as np
import pytest

from viscera import grid
from viscera.device import Device, open_device
from viscera.heat.burn import Burn, make_burn
from viscera.heat.conduction import make_heat
from viscera.instruments import Evacuates, Tool, kit
from viscera.tissue.materials import LIVER
from viscera.world import Organ, block, organ
from viscera.world.system import Moment
from viscera.world.systems.boxed_flow import box_over, cells_at
from viscera.world.systems.puffs import (
    AGE,
    FLOATS,
    GROWTH,
    LIFE,
    PER_STEP,
    PHASE,
    PLACE,
    SMALL,
    TREMBLE,
    UNITS,
    Puffs,
    burning_places,
)
from viscera.world.systems.smoke import CELLS, MIST, SOOT, UNIT, Smoke, _params


@pytest.fixture(scope="module")
def theatre() -> tuple[Organ, Burn, list[Tool]]:
    device = open_device("cpu", 1)
    body = block(cells=(12, 10, 4), spacing=0.006)
    pad = organ(
        "pad", body, device, texels=64, burns=True, material=LIVER, anchored=body.positions[:, 2] < 0.001,
        poisson=0.35, viscous_time=2e-4,
    )  # fmt: skip
    burn = make_burn(make_heat(pad.need_skin()))
    pad.write_field("burn_level", burn.burn_level)
    return pad, burn, kit.hand_out([kit.hook(), kit.evacuator()], (0.0, 0.0, 0.06))


@pytest.fixture
def smoke(theatre: tuple[Organ, Burn, list[Tool]]) -> Smoke:
    pad, burn, tools = theatre
    burn.water.fill_(1.0)
    burn.charring.zero_()
    for tool in tools:
        tool.active, tool.grip = False, 0.0
    return Smoke(pad, burn, tools)


def boil(smoke: Smoke, place: tuple[float, float], water: float, char: float = 0.0) -> float:
    """Tissue around a place of the upper side loses so much of its water, and chars: the mass of both in smoke [kg]."""
    pad, burn = smoke.organ, smoke.burn
    skin = pad.need_skin()
    at = skin.position.numpy()
    area = skin.rest_area.numpy()
    near = (np.hypot(at[:, 0] - place[0], at[:, 1] - place[1]) < 0.004) & (at[:, 2] > 0.02) & (area > 0.0)
    assert near.sum() > 5
    left, omega = burn.water.numpy().copy(), burn.charring.numpy().copy()
    left[near] -= water
    omega[near] = -np.log1p(-char)
    burn.water.assign(left)
    burn.charring.assign(omega)
    pad.fields["burn_level"].changes += 1
    heat, wet = burn.heat.params, burn.params.water_content
    tissue = heat.density * heat.thickness * float(area[near].sum(dtype=np.float64))
    return tissue * (MIST * wet * water + SOOT * (1.0 - wet) * char)


def run(smoke: Smoke, frames: int, tools: list[Tool] | None = None) -> None:
    for number in range(frames):
        smoke.frame(Moment(16 * number, tools or [], dict, number))


def heights(smoke: Smoke) -> float:
    """Mean height of the smoke above the floor [cells]."""
    amount = smoke.flow.layout.box(smoke.flow.carried["smoke"].amount.numpy()).astype(np.float64)
    return float((amount.sum(axis=(1, 2)) * np.arange(CELLS[2])).sum() / amount.sum())


@pytest.mark.parametrize(("water", "char"), [(0.5, 0.0), (0.0, 0.6), (0.4, 0.3)])
def test_smoke_is_in_proportion_to_what_boils_and_chars(smoke: Smoke, water: float, char: float) -> None:
    """To a unit for each texel, which wait until they are whole; and none is lost."""
    mass = boil(smoke, (0.01, 0.0), water, char)
    run(smoke, 3)
    given, taken, _ = grid.counted(smoke.flow, "smoke")
    assert given * UNIT == pytest.approx(mass, rel=1e-3)
    assert taken == 0
    assert grid.missing(smoke.flow, "smoke") == 0


def test_it_starts_where_tissue_burns_and_rises(smoke: Smoke) -> None:
    boil(smoke, (-0.015, 0.008), 0.5, 0.5)
    run(smoke, 3)
    flow = smoke.flow
    amount = flow.layout.box(flow.carried["smoke"].amount.numpy())
    place = (amount[..., None] * grid.middles(flow.params)).sum(axis=(0, 1, 2)) / amount.sum()
    assert np.hypot(place[0] + 0.015, place[1] - 0.008) < 2.0 * flow.params.spacing
    assert 0.0 < place[2] - 0.024 < 4.0 * flow.params.spacing
    low = heights(smoke)
    run(smoke, 60)
    assert heights(smoke) > low + 3.0


def test_an_organ_without_burns_costs_and_shows_nothing(smoke: Smoke) -> None:
    run(smoke, 6)
    assert not smoke._awake[0]
    assert not smoke.box.picture.numpy().any()
    assert smoke.view() == pytest.approx(100.0)


def test_it_stays_in_a_closed_abdomen_until_it_is_drawn_away(
    smoke: Smoke, theatre: tuple[Organ, Burn, list[Tool]]
) -> None:
    """The evacuator takes 18 L/min out of a box of about 0.5 L: after 3 s most of the smoke has gone, all of it
    counted; without, none has."""
    boil(smoke, (0.0, 0.0), 0.6, 0.6)
    run(smoke, 30)
    whole = grid.amount(smoke.flow, "smoke")
    assert whole == grid.counted(smoke.flow, "smoke")[0]
    dim = smoke.view()
    tools = theatre[2]
    evacuator = tools[1]
    evacuator.active, evacuator.grip = True, 1.0
    evacuator.tip[:] = (0.0, 0.0, 0.06)
    evacuator.bars.place(evacuator.tip, evacuator.orientation, 0.0, evacuator.end)
    run(smoke, 190, tools)
    given, taken, _ = grid.counted(smoke.flow, "smoke")
    assert taken > 0.6 * given
    assert grid.amount(smoke.flow, "smoke") == given - taken
    assert smoke.view() > dim


def test_a_vent_lets_it_out(smoke: Smoke) -> None:
    """10 L/min in a far upper corner of a box of 1.3 L: the smoke, which rises and spreads below the abdominal wall,
    comes there within two seconds; half of it and more is out after 3.5 s, in which 0.6 L are, and all is counted."""
    boil(smoke, (0.0, 0.0), 0.6, 0.6)
    smoke._set_vent(10.0)
    run(smoke, 220)
    given, taken, _ = grid.counted(smoke.flow, "smoke")
    assert taken > 0.5 * given
    assert grid.amount(smoke.flow, "smoke") == given - taken


def whirls(smoke: Smoke) -> float:
    """Curl squared over speed squared, summed over all cells, in cells: how much of the motion is in small whirls."""
    u, v, w = (part.astype(np.float64) for part in grid.velocity(smoke.flow))
    x, y, z = 0.5 * (u[..., 1:] + u[..., :-1]), 0.5 * (v[:, 1:] + v[:, :-1]), 0.5 * (w[1:] + w[:-1])
    xz, xy, _ = np.gradient(x)
    yz, _, yx = np.gradient(y)
    _, zy, zx = np.gradient(z)
    curl = (zy - yz) ** 2 + (xz - zx) ** 2 + (yx - xy) ** 2
    return float(curl.sum() / (x**2 + y**2 + z**2).sum())


def test_swirl_gives_the_smoke_small_whirls(theatre: tuple[Organ, Burn, list[Tool]]) -> None:
    """The more of the motion is in them the higher the setting is; it stays a breeze, and no smoke is lost."""
    pad, burn, tools = theatre
    found = []
    for swirl in (0.0, 1.0, 4.0):
        burn.water.fill_(1.0)
        burn.charring.zero_()
        smoke = Smoke(pad, burn, tools)
        smoke._set_swirl(swirl)
        boil(smoke, (0.0, 0.0), 0.6, 0.6)
        run(smoke, 40)
        found.append(whirls(smoke))
        assert max(np.abs(part).max() for part in grid.velocity(smoke.flow)) < 0.5
        assert grid.missing(smoke.flow, "smoke") == 0
    assert found[1] > 1.1 * found[0]
    assert found[2] > 1.3 * found[1]


def test_it_goes_around_a_tool(smoke: Smoke, theatre: tuple[Organ, Burn, list[Tool]]) -> None:
    """A ball of 9 mm over the plume: where much of the smoke would be there is none; it is beside the ball, and more of
    it than without one."""
    pad, burn, _ = theatre
    within, beside = [], []
    for active in (False, True):
        burn.water.fill_(1.0)
        burn.charring.zero_()
        tools = kit.hand_out([kit.probe(0.009)], (0.0, 0.0, 0.045))
        tools[0].active = active
        around = Smoke(pad, burn, tools)
        boil(around, (0.0, 0.0), 0.6, 0.6)
        run(around, 60, tools)
        flow = around.flow
        amount = flow.layout.box(flow.carried["smoke"].amount.numpy())
        away = np.linalg.norm(grid.middles(flow.params) - (0.0, 0.0, 0.045), axis=-1)
        within.append(float(amount[away < 0.006].mean()))
        beside.append(float(amount[(away > 0.012) & (away < 0.02)].mean()))
    assert within[0] > 2.0 * beside[0], "the plume goes there"
    assert within[1] < 1e-3 * within[0]
    assert beside[1] > 1.1 * beside[0]


@pytest.mark.parametrize("frames", [9, 10, 11])
def test_saved_and_loaded_it_goes_on_bit_for_bit(smoke: Smoke, frames: int) -> None:
    """Between two steps and within one, in which steam has just come."""
    boil(smoke, (0.0, 0.0), 0.3, 0.3)
    run(smoke, 9)
    boil(smoke, (0.0, 0.0), 0.3, 0.3)
    run(smoke, frames - 9)
    system = smoke.system()
    saved = system.save()
    run(smoke, 8)
    after = {name: values.copy() for name, values in system.save().items()}
    system.load(saved)
    run(smoke, 8)
    for name, values in system.save().items():
        assert np.array_equal(values, after[name]), name


def test_the_picture_is_what_is_in_the_cells(smoke: Smoke) -> None:
    boil(smoke, (0.0, 0.0), 0.2, 0.2)
    run(smoke, 12)
    picture = smoke.box.picture.numpy()[..., 0].reshape(CELLS[2], CELLS[1], CELLS[0])
    values = grid.values(smoke.flow, "smoke")
    assert picture.max() > 20
    lit = picture > 0
    assert (values[lit] > 0.0).all()
    assert np.corrcoef(picture[lit & (picture < 255)], values[lit & (picture < 255)])[0, 1] > 0.999


def test_the_documents_puffs_rise_grow_and_fade(smoke: Smoke) -> None:
    """Selectable, without a flow: two puffs for every step in which something burns; gone after their life, and
    nothing is owed when the flow takes over again."""
    smoke._set_model(1.0)
    boil(smoke, (0.0, 0.0), 0.3, 0.3)
    run(smoke, 3)
    assert smoke.puffs.count.host[0] == 2
    assert not np.any(smoke.flow.velocity[2].numpy())
    low, first = heights(smoke), int((smoke.box.picture.numpy()[..., 0] > 0).sum())
    run(smoke, 60)
    assert heights(smoke) > low + 5.0
    assert int((smoke.flow.carried["smoke"].amount.numpy() > 0).sum()) > 2 * first
    shown = smoke.box.units
    run(smoke, 60)
    assert 0 < smoke.box.units < shown
    run(smoke, 180)
    assert smoke.box.units == 0
    assert not smoke._awake[0]
    smoke._set_model(0.0)
    assert grid.missing(smoke.flow, "smoke") == 0


def test_two_burns_puff_at_both_places_and_not_between(smoke: Smoke) -> None:
    """3 cm apart, one of them three times as much: puffs start within a cell of each, with its share of the smoke; a
    cloud half way between would be in empty air."""
    smoke._set_model(1.0)
    weights = boil(smoke, (-0.015, 0.0), 0.1), boil(smoke, (0.015, 0.0), 0.3)
    run(smoke, 1)
    rows = smoke.puffs.rows.host.reshape(-1, FLOATS)[: smoke.puffs.count.host[0]]
    assert len(rows) == 2 * PER_STEP
    left, right = rows[rows[:, PLACE] < 0.0], rows[rows[:, PLACE] > 0.0]
    spacing = smoke.flow.params.spacing
    for puffs, place in ((left, -0.015), (right, 0.015)):
        assert np.hypot(puffs[:, PLACE] - place, puffs[:, PLACE + 1]).max() < spacing
    assert right[:, UNITS].sum() / left[:, UNITS].sum() == pytest.approx(weights[1] / weights[0], rel=1e-3)
    shown = smoke.flow.layout.box(smoke.flow.carried["smoke"].amount.numpy())
    between = np.abs(grid.middles(smoke.flow.params)[..., 0]) < 0.008
    assert shown.sum() > 0
    assert not shown[between].any()


def test_a_fourth_burn_waits_and_nothing_of_it_is_lost() -> None:
    params = _params(CELLS, (0.0, 0.0, 0.0), 0.003)
    units = np.zeros(CELLS[::-1], dtype=np.int32)
    for number, column in enumerate((5, 15, 25, 35)):
        units[3, 10, column : column + 2] = 10 * (1 + number)
    total = int(units.sum())
    first = burning_places(units, params)
    assert [amount for _, amount in first] == [80, 60, 40]
    assert first[0][0] == pytest.approx((0.003 * 36, 0.003 * 10.5, 0.003 * 3.5))
    assert sum(amount for _, amount in first) + int(units.sum()) == total
    assert [amount for _, amount in burning_places(units, params)] == [20]
    assert not units.any()


def test_puffs_are_the_same_units_on_one_core_and_on_two() -> None:
    """And those of a slow sum in NumPy, to the units that rounding takes."""
    shown = []
    for cores in (1, 2):
        device = open_device("cpu", cores)
        flow = grid.make(_params((32, 24, 24), (-0.05, -0.04, 0.0), 0.0032), device=device)
        puffs = Puffs(flow)
        rng = np.random.default_rng(3)
        rows = puffs.rows.host.reshape(-1, FLOATS)
        rows[:, PLACE : PLACE + 3] = rng.uniform((-0.06, -0.05, -0.01), (0.06, 0.05, 0.09), (len(rows), 3))
        rows[:, AGE], rows[:, UNITS] = rng.uniform(0.0, LIFE, len(rows)), 1e6
        puffs.count.host[0] = len(rows)
        device.record(puffs.record).run()
        device.synchronize()
        shown.append(flow.layout.box(flow.carried["smoke"].amount.numpy()).copy())
        places = grid.middles(flow.params)
        device.close()
    assert np.array_equal(*shown)
    slow = np.zeros(shown[0].shape)
    for row in rows:
        sway = TREMBLE * min(row[AGE], 2.0)
        centre = row[PLACE : PLACE + 3] + sway * np.sin(row[PHASE : PHASE + 3] + row[AGE] * np.array([5.0, 7.0, 4.0]))
        radius = SMALL + GROWTH * row[AGE]
        near = np.maximum(1.0 - (np.linalg.norm(places - centre, axis=-1) / radius) ** 2, 0.0)
        slow += 1e6 * (1.0 - row[AGE] / LIFE) * near**2 / (32.0 * np.pi / 105.0 * (radius / 0.0032) ** 3)
    assert slow.max() > 1e5
    assert np.abs(shown[0] - slow).max() < 1e-3 * slow.max()


def test_an_evacuator_is_an_instrument_with_the_effect(cpu: Device) -> None:
    assert kit.evacuator().effect(Evacuates) is not None


def test_gas_fills_a_dent_and_moves_with_the_tissue(smoke: Smoke, theatre: tuple[Organ, Burn, list[Tool]]) -> None:
    """The surface as it is now, not at rest: where tissue has given way by 6 mm there is gas, which the sinking
    tissue has drawn down; when it comes to rest nothing moves it any more."""
    pad = theatre[0]
    rest = pad.vertices.numpy().copy()
    flow = smoke.flow
    middle = [int(np.argmin(np.abs(grid.middles(flow.params)[0, 0, :, 0]))), int(CELLS[1] / 2)]
    below = flow.layout.box(flow.levels[0].inverse.numpy())[:, middle[1], middle[0]] > 0.0
    smoke.wake()
    boil(smoke, (0.02, 0.01), 0.2)
    try:
        run(smoke, 3)
        dented = rest.copy()
        dented[:, 2] -= (rest[:, 2] > 0.012) * 0.006 * np.exp(-(rest[:, 0] ** 2 + rest[:, 1] ** 2) / 0.015**2)
        pad.vertices.assign(dented)
        smoke.frame(Moment(48, [], dict, 3))
        column = flow.layout.box(flow.levels[0].inverse.numpy())[:, middle[1], middle[0]] > 0.0
        assert abs(int(column.sum()) - int(below.sum()) - 0.006 / flow.params.spacing) <= 1.0
        assert float(flow.solid[2].numpy().min()) == pytest.approx(-0.006 / 0.048, rel=0.1)
        for number in range(4, 10):
            smoke.frame(Moment(16 * number, [], dict, number))
        assert not flow.solid[2].numpy().any()
        assert grid.missing(flow, "smoke") == 0
    finally:
        pad.vertices.assign(rest)


def test_detail_gives_more_and_smaller_cells_in_the_same_box(theatre: tuple[Organ, Burn, list[Tool]]) -> None:
    stated = np.array(CELLS)
    for detail in (0.1, 1.0, 3.0, 8.0, 1e4):
        cells = np.array(cells_at(detail, CELLS))
        assert cells[0] % 32 == 0
        assert (cells[1] * cells[2]) % 32 == 0
        assert np.allclose(cells / cells[0], stated / stated[0], rtol=0.1)
        assert cells[0] <= 256
    assert tuple(cells_at(1.0, CELLS)) == CELLS
    assert cells_at(8.0, CELLS) == (128, 80, 88)
    finest = cells_at(1e4, CELLS)
    assert _params(finest, *box_over(theatre[0], finest, 1.5, 0.75)).dye_steps > 3, "else it spreads too far in a step"
    coarse = Smoke(*theatre, detail=0.125).flow.params
    assert coarse.cells == (32, 20, 24)
    assert coarse.spacing == pytest.approx(2.0 * box_over(theatre[0], CELLS, 1.5, 0.75)[1])
