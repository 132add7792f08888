"""Heat in a skin of several materials: each texel conducts, stores, loses and boils as its own tissue does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.heat.test_heat import RADIUS, put, run, sheet
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry import icosphere
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.heat.burn import BOILING, BurnParams, boiled_heat, make_burn, step_burn
from viscera.heat.conduction import (
    LIVER_PERFUSION,
    STILL_AIR,
    Heat,
    HeatParams,
    explicit_limit,
    make_heat,
    set_heat,
    total_heat,
)
from viscera.heat.materials import HeatMaterials
from viscera.skin import Skin, make_skin

LIVER = (0.52, 1_060.0, 3_540.0)
FAT = (0.21, 911.0, 2_348.0)
"""Conductivity, density and heat capacity; as in tissue/materials.py."""


def flat(device: Device, texels: int = 64, scale: float = 9.0) -> Skin:
    mesh = sheet(scale * np.eye(2))
    return make_skin(mesh, unique_atlas(mesh, AtlasSettings(texels)), texels, device=device)


def of(values: tuple[float, ...]) -> HeatParams:
    return HeatParams(conductivity=values[0], density=values[1], heat_capacity=values[2])


def halves(skin: Skin, axis: int = 0, pair: tuple[Any, Any] = (LIVER, FAT)) -> tuple[HeatMaterials, np.ndarray]:
    """The first where a coordinate is below 0, the second where it is above; and which texels are of the second."""
    second = skin.position.numpy()[:, axis] > 0.0
    return HeatMaterials(*(np.where(second, b, a) for a, b in zip(*pair, strict=True))), second


def diffusivity(values: tuple[float, ...]) -> float:
    return values[0] / (values[1] * values[2])


@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
def test_a_hot_spot_spreads_at_the_rate_of_its_own_material(device: Device, native: bool) -> None:
    """θ = (σ₀²/σ²) exp(−r²/2σ²), σ² = σ₀² + 2αt, in each half of a sheet. The border is 4.5 σ from both middles, where
    nothing has arrived. Over a length of 2.6 texels and in 60 steps of first order: 1 % of the peak."""
    skin = flat(device, 128)
    materials, second = halves(skin)
    wide, steps = 0.004, 60
    duration = 0.4 * wide**2 / diffusivity(LIVER)
    heat = make_heat(skin, of(LIVER), duration / steps, native, materials)
    x, y, _ = skin.position.numpy().T
    square = (np.abs(x) - 0.025) ** 2 + y**2
    put(heat, 40.0 * np.exp(-square / (2 * wide**2)))
    found = run(heat, steps)
    for here, values in ((~second, LIVER), (second, FAT)):
        spread = wide**2 + 2 * diffusivity(values) * duration
        truth = 40.0 * wide**2 / spread * np.exp(-square / (2 * spread))
        texels = np.intersect1d(skin.texels.numpy(), np.flatnonzero(here))
        assert np.abs(found - truth)[texels].max() < 0.01 * truth[texels].max()


def test_heat_is_kept_across_a_border_and_evens_out_to_one_temperature(device: Device) -> None:
    """Σ C θ stays, with each texel's own C; at the end all have Σ C θ/Σ C, not the mean of the temperatures."""
    skin = flat(device)
    materials, second = halves(skin)
    heat = make_heat(skin, of(LIVER), 100.0, materials=materials)
    put(heat, np.where(second, 0.0, 30.0))
    area = skin.rest_area.numpy().astype(np.float64)
    stored = area * materials.density * materials.heat_capacity * heat.params.thickness
    before = total_heat(heat)
    assert before == pytest.approx(float((stored * np.where(second, 0.0, 30.0)).sum()), rel=1e-5)
    found = run(heat, 20)
    assert total_heat(heat) == pytest.approx(before, rel=2e-6)
    assert np.ptp(found[skin.texels.numpy()]) > 5.0
    found = run(heat, 1_500)[skin.texels.numpy()]
    np.testing.assert_allclose(found, before / stored.sum(), rtol=2e-3)


def test_a_steady_flow_crosses_the_border_undiminished(device: Device) -> None:
    """Power into one edge and out of the other: in each half k·dθ/dx is the flow, and both lines meet at the border.
    Slopes from whole columns: float32's rounding over 10⁴ stages leaves 0.2 %."""
    skin = flat(device, scale=7.5)  # edges are texel sides
    materials, _ = halves(skin)
    heat = make_heat(skin, of(LIVER), 200.0, materials=materials)
    x = skin.position.numpy()[:, 0]
    column = np.zeros(len(x), dtype=np.int64)
    texels = skin.texels.numpy()
    places, column[texels] = np.unique(np.round(x[texels], 7), return_inverse=True)
    flow = 0.05  # [W] through the layer
    power = np.zeros(len(x), dtype=np.float32)
    for edge, sign in ((0, 1.0), (len(places) - 1, -1.0)):
        here = texels[column[texels] == edge]
        power[here] = sign * flow / len(here)
    heat.power.assign(power)
    found = run(heat, 1_500)
    means = np.array([found[texels[column[texels] == c]].mean() for c in range(len(places))])
    section = 0.1 * heat.params.thickness
    lines = []
    for half, values in ((places < 0.0, LIVER), (places > 0.0, FAT)):
        slope, offset = np.polyfit(places[half], means[half], 1)
        assert -values[0] * slope * section == pytest.approx(flow, rel=5e-3)
        lines.append(offset)
    # Both lines' values at the border, x = 0, against the drop over one texel.
    assert abs(lines[0] - lines[1]) < 0.02 * abs(means[0] - means[-1]) / len(places)


def test_each_material_cools_at_its_own_rate(cpu: Device) -> None:
    """Alone, losses are exact at any step: θ nears what blood and air leave with (perfusion·s + air)/(ρ c s)."""
    skin = flat(cpu)
    still = ((1e-9, *LIVER[1:]), (1e-9, *FAT[1:]))
    materials, second = halves(skin, pair=still)
    params = HeatParams(*still[0], perfusion=LIVER_PERFUSION, air_transfer=STILL_AIR, air_temperature=296.15)
    heat = make_heat(skin, params, 4.0, materials=materials)
    put(heat, np.full(len(second), 50.0))
    found = run(heat, 5)
    s = params.thickness
    taken = params.perfusion * s + params.air_transfer
    end = params.air_transfer * (params.air_temperature - params.body_temperature) / taken
    for here, values in ((~second, LIVER), (second, FAT)):
        texels = np.intersect1d(skin.texels.numpy(), np.flatnonzero(here))
        rate = taken / (values[1] * values[2] * s)
        np.testing.assert_allclose(found[texels], end + (50.0 - end) * math.exp(-20.0 * rate), rtol=1e-5)


def test_one_material_everywhere_is_what_the_parameters_say(cpu: Device, tmp_path: Path) -> None:
    """On a sphere with seams and slivers, with other parameters than the materials: only ratios are kept."""
    mesh = icosphere(RADIUS, 4)
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(64), tmp_path), 64, device=cpu)
    size = skin.width * skin.height
    materials = HeatMaterials(*(np.full(size, value) for value in FAT))
    made = [make_heat(skin, of(FAT), 20.0), make_heat(skin, of(LIVER), 20.0, materials=materials)]
    spots = 60.0 * (np.random.default_rng(3).random(size) > 0.9)
    found = []
    for heat in made:
        put(heat, spots)
        found.append(run(heat, 10))
    # The number of stages follows from whole texels, and is the same; what is left is float32 of the ratios.
    assert made[0].stages == made[1].stages
    np.testing.assert_allclose(found[1], found[0], atol=2e-4)
    assert total_heat(made[1]) == pytest.approx(total_heat(made[0]), rel=1e-5)


def test_kernels_agree_and_heat_is_kept_over_seams_between_materials(device: Device, tmp_path: Path) -> None:
    mesh = icosphere(RADIUS, 4)
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128), tmp_path), 128, device=device)
    materials, _ = halves(skin, axis=2)
    heats = [make_heat(skin, of(LIVER), dt=5.0, native=native, materials=materials) for native in (True, False)]
    hot = 60.0 * (np.random.default_rng(3).random(skin.width * skin.height) > 0.97)
    found = []
    for heat in heats:
        put(heat, hot)
        before = total_heat(heat)
        found.append(run(heat, 20))
        assert total_heat(heat) == pytest.approx(before, rel=1e-5)
        assert found[-1].min() > -0.1
        assert found[-1].max() < 60.0
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_the_fastest_material_decides_the_stages(cpu: Device) -> None:
    skin = flat(cpu)
    quick = (5.0, *LIVER[1:])
    materials, _ = halves(skin, pair=(LIVER, quick))
    limits = [explicit_limit(make_heat(skin, of(values), 1.0)) for values in (LIVER, quick)]
    mixed = make_heat(skin, of(LIVER), 1.0, materials=materials)
    assert explicit_limit(mixed) == pytest.approx(limits[1], rel=1e-4)
    assert mixed.stages == make_heat(skin, of(quick), 1.0).stages


def test_parameters_that_change_take_all_materials_along(cpu: Device) -> None:
    """Twice the conductivity and twice the capacity: everything goes on as fast as before, and holds twice the heat."""
    skin = flat(cpu)
    materials, second = halves(skin)
    found, kept = [], []
    for factor in (1.0, 2.0):
        heat = make_heat(skin, of(LIVER), 10.0, materials=materials)
        set_heat(heat, HeatParams(factor * LIVER[0], LIVER[1], factor * LIVER[2]))
        put(heat, np.where(second, 0.0, 30.0))
        found.append(run(heat, 10))
        kept.append(total_heat(heat))
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    assert kept[1] == pytest.approx(2.0 * kept[0], rel=1e-6)


def test_water_boils_off_with_the_heat_that_each_material_holds(cpu: Device) -> None:
    """20 K beyond boiling are 20·c/(w L) of the water: less in fat, which stores less. What leaves as steam is what
    the skin has lost."""
    skin = flat(cpu)
    materials, second = halves(skin)
    heat: Heat = make_heat(skin, of(LIVER), 0.016, materials=materials)
    params = BurnParams()
    burn = make_burn(heat, params)
    put(heat, np.full(len(second), BOILING - heat.params.body_temperature + 20.0))
    before = total_heat(heat)
    cpu.record(lambda stage: step_burn(stage, burn)).run()
    cpu.synchronize()
    for here, values in ((~second, LIVER), (second, FAT)):
        texels = np.intersect1d(skin.texels.numpy(), np.flatnonzero(here))
        expected = 20.0 * values[2] / (params.water_content * params.latent_heat)
        np.testing.assert_allclose(1.0 - burn.water.numpy()[texels], expected, rtol=1e-4)
    assert boiled_heat(burn) == pytest.approx(before - total_heat(heat), rel=1e-4)


def test_burnt_tissue_without_blood_keeps_the_heat_of_its_own_material(cpu: Device) -> None:
    """Coagulated tissue loses to air alone, whatever it stores: blood's share is given back to the last bit of 1e-5."""
    skin = flat(cpu)
    still = ((1e-9, *LIVER[1:]), (1e-9, *FAT[1:]))
    materials, second = halves(skin, pair=still)
    heat = make_heat(skin, HeatParams(*still[0], perfusion=LIVER_PERFUSION), 1.0, materials=materials)
    burn = make_burn(heat, BurnParams(water_content=0.0))
    burn.damage.fill_(60.0)
    put(heat, np.full(len(second), 5.0))
    run(heat, 1)
    assert np.ptp(heat.temperature.numpy()[skin.texels.numpy()]) > 0.01
    cpu.record(lambda stage: step_burn(stage, burn)).run()
    cpu.synchronize()
    np.testing.assert_allclose(heat.temperature.numpy()[skin.texels.numpy()], 5.0, rtol=1e-5)


def test_impossible_materials_are_refused_by_name(cpu: Device) -> None:
    skin = flat(cpu)
    size = skin.width * skin.height

    def given(**change: np.ndarray) -> HeatMaterials:
        names = ("conductivity", "density", "heat_capacity")
        return HeatMaterials(**({name: np.full(size, value) for name, value in zip(names, FAT, strict=True)} | change))

    make_heat(skin, materials=given())
    for wrong in (np.zeros(size), np.full(size, np.nan), np.ones(3)):
        with pytest.raises(InputError, match="density") as refused:
            make_heat(skin, materials=given(density=wrong))
        assert refused.value.hint
    with pytest.raises(InputError, match="conductivity = 0"):
        make_heat(skin, HeatParams(conductivity=0.0), materials=given())
