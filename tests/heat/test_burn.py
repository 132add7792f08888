"""Burns: rate integrals against closed forms, boiling that keeps its heat, marks in the shape of the tool."""

from __future__ import annotations

import math
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.geometry import TriangleMesh, icosphere
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.geometry.parts import JointedTool, inverse_transformed, make_tool
from viscera.geometry.tools import FOOT, WIRE_RADIUS, bipolar_forceps, monopolar_hook
from viscera.heat.burn import (
    BOILING,
    BOLTZMANN_OVER_PLANCK,
    GAS_CONSTANT,
    Burn,
    BurnParams,
    RateProcess,
    boiled_heat,
    make_burn,
    measure_burn,
    reset_burn,
    set_burn,
    step_burn,
)
from viscera.heat.conduction import LIVER_PERFUSION, HeatParams, make_heat, step_heat, total_heat
from viscera.heat.electrode import Electrode, ElectrodeParams, make_electrode, step_electrodes
from viscera.heat.stages import (
    COLDEST,
    DEFAULT_STAGES,
    HOTTEST,
    BurnStage,
    check_stages,
    look_at,
    make_texture,
    step_texture,
)
from viscera.skin import Skin, make_skin

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
PRESSED = -0.1e-3
"""Height of the tool's tip: pressed a tenth of a millimetre into the sheet [m]."""


def flat(device: Device, side: float = 0.03, width: int = 128) -> Skin:
    """A square of tissue about the origin, nine tenths of the texture."""
    corner = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    vertices = np.concatenate([side * corner, np.zeros((4, 1))], axis=1)
    mesh = TriangleMesh(vertices, np.array([[0, 1, 2], [0, 2, 3]]), "flat", (0.5 + 0.9 * corner).astype(np.float32))
    return make_skin(mesh, unique_atlas(mesh, AtlasSettings(width)), width, device=device)


def burnt(skin: Skin, params: BurnParams, warm: np.ndarray | float, dt: float, steps: int = 1) -> Burn:
    """After `steps` at these constant temperatures above the body's, one per covered texel."""
    burn = make_burn(make_heat(skin, dt=dt), params)
    values = np.zeros(skin.width * skin.height, dtype=np.float32)
    values[skin.texels.numpy()] = warm
    program = skin.device.record(lambda stage: step_burn(stage, burn))
    for _ in range(steps):
        burn.heat.temperature.assign(values)
        program.run()
    return burn


def of(burn: Burn, values) -> np.ndarray:
    return values.numpy()[burn.heat.skin.texels.numpy()].astype(np.float64)


# --- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dt", "steps"), [(0.016, 1), (0.016, 50), (0.5, 3), (1e-4, 1)])
def test_arrhenius_follows_its_closed_form(device: Device, dt: float, steps: int) -> None:
    """Ω = k t, k = (k_B T/h) exp(ΔS/R − ΔH/(RT)), in float64, for 45 to 99 °C.

    Tolerance: ln k is a difference of float32 numbers of up to 20, whose last bit is 2e-6: a few of those. Measured
    3e-6, and 4e-6 of the coagulation."""
    skin = flat(device)
    warm = np.linspace(8.0, 62.0, skin.count)
    params = BurnParams()
    burn = burnt(skin, params, warm, dt, steps)
    kelvin = 310.15 + warm.astype(np.float32).astype(np.float64)
    process = params.coagulation
    rate = (
        BOLTZMANN_OVER_PLANCK
        * kelvin
        * np.exp(process.entropy / GAS_CONSTANT - process.enthalpy / (GAS_CONSTANT * kelvin))
    )
    truth = np.minimum(rate * dt * steps, 60.0)
    assert of(burn, burn.damage) == pytest.approx(truth, rel=1e-5)
    coagulation = 1.0 - np.exp(-truth)
    assert of(burn, burn.burn_level) == pytest.approx(coagulation, rel=1e-5, abs=1e-30)


def test_charring_follows_the_same_form_once_dry(cpu: Device) -> None:
    skin = flat(cpu)
    warm = np.linspace(100.0, 400.0, skin.count)
    params = BurnParams(water_content=0.0)
    burn = burnt(skin, params, warm, 0.02, 10)
    rate = np.exp([params.charring.log_rate(310.15 + float(np.float32(w))) for w in warm])
    truth = np.minimum(0.2 * rate, 60.0)
    assert of(burn, burn.charring) == pytest.approx(truth, rel=2e-5)
    assert of(burn, burn.burn_level) == pytest.approx(2.0 - np.exp(-truth), rel=1e-5)


@pytest.mark.parametrize(("dt", "steps"), [(0.016, 1), (0.016, 40), (0.5, 2)])
def test_the_linear_model_follows_its_closed_form(device: Device, dt: float, steps: int) -> None:
    """B = r (T − T_0) t above T_0, up to 2. Tolerance: float32, 1e-7 per step."""
    skin = flat(device)
    warm = np.linspace(0.0, 250.0, skin.count)
    params = BurnParams(model="linear", water_content=0.0)
    burn = burnt(skin, params, warm, dt, steps)
    above = np.maximum(310.15 + warm.astype(np.float32) - params.threshold, 0.0)
    truth = np.minimum(params.linear_rate * above * dt * steps, 2.0)
    assert of(burn, burn.burn_level) == pytest.approx(truth, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("model", ["arrhenius", "linear"])
def test_nothing_overflows_at_any_temperature(device: Device, model) -> None:
    """From 0 K to what no tissue can be: levels are finite, within 0 and 2, and rise with temperature."""
    skin = flat(device)
    warm = np.concatenate([[-310.0, 0.0], np.geomspace(1e-3, 1e30, skin.count - 2)])
    burn = burnt(skin, BurnParams(model=model, water_content=0.0), warm, 10.0, 3)
    level = of(burn, burn.burn_level)
    assert np.isfinite(level).all()
    assert level[0] == level[1] == 0.0
    assert level.max() == 2.0
    assert (np.diff(level) >= 0.0).all()


@pytest.mark.parametrize("model", ["arrhenius", "linear"])
def test_a_step_of_no_time_burns_nothing(cpu: Device, model) -> None:
    skin = flat(cpu)
    burn = burnt(skin, BurnParams(model=model), 60.0, 0.0, 3)
    assert not burn.burn_level.numpy().any()
    assert (burn.water.numpy() == 1.0).all()


def test_healthy_warmth_leaves_no_trace(cpu: Device) -> None:
    """At 43 °C a day would count as coagulated by the rate alone; cells repair themselves."""
    skin = flat(cpu)
    assert not burnt(skin, BurnParams(), 5.9, 100.0, 10).damage.numpy().any()


def test_a_process_through_a_point() -> None:
    process = RateProcess.through(573.15, 1.0, 1.6e5)
    assert process.log_rate(573.15) == pytest.approx(0.0, abs=1e-12)
    other = RateProcess.through(333.15, math.exp(BurnParams().coagulation.log_rate(333.15)), 2.768e5)
    assert other.entropy == pytest.approx(553.5, rel=1e-12)


# --- water ---------------------------------------------------------------------------------------------------------


def test_boiling_takes_its_heat_and_holds_100_degrees(device: Device) -> None:
    """θ beyond boiling goes into steam, Λ = w₀ L/c per share of water: texel by texel the enthalpy is what it was."""
    skin = flat(device)
    warm = np.linspace(0.0, 900.0, skin.count)
    params = BurnParams()
    burn = burnt(skin, params, warm, 0.016)
    boiling = BOILING - 310.15
    latent = params.water_content * params.latent_heat / HeatParams().heat_capacity
    water = np.clip(1.0 - (warm - boiling) / latent, 0.0, 1.0)
    assert of(burn, burn.water) == pytest.approx(water, abs=2e-6)
    after = of(burn, burn.heat.temperature)
    wet = (water > 1e-3) & (warm > boiling)
    assert after[wet] == pytest.approx(boiling, abs=1e-3)
    assert after + latent * (1.0 - of(burn, burn.water)) == pytest.approx(warm, abs=1e-3)


def hooked(skin: Skin, params: ElectrodeParams | None = None, burn: BurnParams | None = None) -> Electrode:
    return make_electrode(make_tool("hook", monopolar_hook(), skin.device), make_burn(make_heat(skin), burn), params)


def recorded(electrodes: list[Electrode]):
    burn = electrodes[0].burn

    def frame(stage) -> None:
        step_electrodes(stage, electrodes)
        step_heat(stage, burn.heat)
        step_burn(stage, burn)
        measure_burn(stage, burn)

    return burn.heat.skin.device.record(frame)


@pytest.mark.parametrize("dt", [0.016, 2.0])
def test_blood_stops_cooling_what_is_coagulated(device: Device, dt: float) -> None:
    """A quarter of an insulated, barely warm sheet is coagulated, a quarter half so. Without conduction each part cools
    by Pennes' law with the flow it has left: exp(−ω (1 − coagulation) t). Half coagulated, a step's e^(−ω dt)/(1 − (1 −
    e^(−ω dt))/2) differs from that by (ω dt)²/8; 1e-4 is for rounding in 1 250 steps."""
    skin = flat(device)
    params = HeatParams(conductivity=0.0, perfusion=LIVER_PERFUSION)
    heat = make_heat(skin, params, dt=dt)
    burn = make_burn(heat)
    column = skin.texels.numpy() % skin.width
    share = np.select([column < skin.width // 4, column < skin.width // 2], [1.0, 0.5], 0.0)
    damage = np.zeros(skin.width * skin.height, dtype=np.float32)
    damage[skin.texels.numpy()] = np.select([share == 1.0, share == 0.5], [60.0, math.log(2.0)], 0.0)
    burn.damage.assign(damage)
    heat.temperature.fill_(4.0)

    def step(stage) -> None:
        step_heat(stage, heat)
        step_burn(stage, burn)

    program, steps = device.record(step, work=skin.count), round(20.0 / dt)
    for _ in range(steps):
        program.run()
    flow = params.perfusion / (params.density * params.heat_capacity)
    expected = 4.0 * np.exp(-flow * (1.0 - share) * steps * dt)
    assert expected.min() < 3.0
    found = heat.temperature.numpy()[skin.texels.numpy()]
    np.testing.assert_allclose(found, expected, rtol=1.1 * steps * (flow * dt) ** 2 / 8 + 1e-4)


def test_all_power_is_found_again_as_heat_and_steam(device: Device) -> None:
    """A second of a hook on a ball whose seams it crosses. Tolerance: float32 over 60 steps of the conduction, 1e-5."""
    mesh = icosphere(0.012, 4)
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128)), 128, device=device)
    electrode = hooked(skin)
    electrode.press(True)
    electrode.tool.place((-0.002, 0.0, 0.012 + PRESSED), UPRIGHT, jump=True)
    program, given = recorded([electrode]), 0.0
    for _ in range(60):
        program.run()
        device.synchronize()
        given += 0.016 * float(electrode.delivered.host[0])
    assert given > 5.0
    assert boiled_heat(electrode.burn) > 0.2 * given
    assert total_heat(electrode.burn.heat) + boiled_heat(electrode.burn) == pytest.approx(given, rel=2e-5)


# --- electrodes ----------------------------------------------------------------------------------------------------


def powered(electrode: Electrode) -> np.ndarray:
    """Power per area after one step with the pedal down [W/m²]."""
    skin = electrode.burn.heat.skin
    electrode.press(True)
    skin.device.record(lambda stage: step_electrodes(stage, [electrode])).run()
    skin.device.synchronize()
    texels = skin.texels.numpy()
    return electrode.burn.heat.power.numpy()[texels] / skin.area.numpy()[texels]


def exact_distance(tool: JointedTool, part: int, points: np.ndarray) -> np.ndarray:
    """Of a part from its mesh, without any grid."""
    from viscera.geometry import signed_distance

    return signed_distance(tool.parts[part].field.query, inverse_transformed(tool.end[part], points))


@pytest.mark.parametrize("nearness", ["contact", "distance"])
def test_heat_goes_where_the_tool_is(device: Device, nearness) -> None:
    """Heated is what the mesh itself says is within reach: the tool's silhouette. Grid error: h²/(8R), twice."""
    skin = flat(device)
    params = ElectrodeParams(nearness=nearness, most_flux=1e12)
    electrode = hooked(skin, params)
    electrode.tool.place((-0.002, 0.001, PRESSED), UPRIGHT, jump=True)
    flux = powered(electrode)
    d = exact_distance(electrode.tool, 0, skin.position.numpy()[skin.texels.numpy()].astype(np.float64))
    slack = 0.125e-3**2 / (8.0 * WIRE_RADIUS) * 2.0
    assert (flux[d < params.reach - slack] > 0.0).all()
    assert not flux[d > params.reach + slack].any()
    total = float(electrode.burn.heat.power.numpy().sum(dtype=np.float64))
    assert total == pytest.approx(params.power, rel=1e-5)
    assert electrode.delivered.host[0] == pytest.approx(params.power, rel=1e-5)
    if nearness == "contact":
        assert flux[d < params.reach - slack] == pytest.approx(flux.max(), rel=1e-6)
    else:
        share = np.clip(1.0 - d / params.reach, 0.0, 1.0)
        assert flux / flux.max() == pytest.approx(share / share.max(), abs=2.0 * slack / params.reach)
    # The mark is a foot, not a disc: as long as the hook, and as wide as the wire and twice the reach.
    x, y, _ = skin.position.numpy()[skin.texels.numpy()][flux > 0.0].T
    chord = 2.0 * math.sqrt((WIRE_RADIUS + params.reach) ** 2 - (WIRE_RADIUS + PRESSED) ** 2)
    texel = 0.03 / (0.9 * 128)
    assert np.ptp(y) == pytest.approx(chord, abs=1.5 * texel)
    assert np.ptp(x) > 0.8 * FOOT
    assert np.ptp(x) > 2.0 * np.ptp(y)


def test_constant_flux_does_not_share_power(cpu: Device) -> None:
    """The document's way: every touched place gets the same, however many there are."""
    electrode = hooked(flat(cpu), ElectrodeParams(constant="flux", most_flux=2e6))
    electrode.tool.place((0.0, 0.0, PRESSED), UPRIGHT, jump=True)
    flux = powered(electrode)
    assert flux[flux > 0.0] == pytest.approx(2e6, rel=1e-6)
    assert electrode.delivered.host[0] == pytest.approx(2e6 * electrode.delivered.host[1], rel=1e-6)


def test_a_generator_has_a_voltage(cpu: Device) -> None:
    """Dry tissue takes σ_dry of the largest flux, char nothing, and the set power is not reached."""
    electrode = hooked(flat(cpu))
    electrode.tool.place((0.0, 0.0, PRESSED), UPRIGHT, jump=True)
    electrode.burn.water.zero_()
    p = electrode.params
    flux = powered(electrode)
    assert flux[flux > 0.0] == pytest.approx(p.most_flux * p.dry_conductance, rel=1e-5)
    assert electrode.delivered.host[0] < p.power
    electrode.burn.charring.fill_(60.0)
    assert not powered(electrode).any()
    assert electrode.delivered.host[0] == 0.0


def test_forceps_heat_what_is_between_their_jaws(device: Device) -> None:
    """Within reach of both jaws, and nowhere else; closing the jaws on a recorded program brings them there."""
    skin = flat(device)
    params = ElectrodeParams(bipolar=True, reach=2.0e-3)
    forceps = make_tool("forceps", bipolar_forceps(), device)
    electrode = make_electrode(forceps, make_burn(make_heat(skin)), params)
    electrode.press(True)
    program = device.record(lambda stage: step_electrodes(stage, [electrode]))
    points = skin.position.numpy()[skin.texels.numpy()].astype(np.float64)
    found = []
    for grip in (0.0, 0.7):
        forceps.place((0.0, 0.0, -1.0e-3), UPRIGHT, grip, jump=True)
        program.run()
        device.synchronize()
        d = np.maximum(*(exact_distance(forceps, part, points) for part in (0, 1)))
        hot = electrode.burn.heat.power.numpy()[skin.texels.numpy()] > 0.0
        slack = 0.1e-3
        assert hot[d < params.reach - slack].all()
        assert not hot[d > params.reach + slack].any()
        found.append(int(hot.sum()))
    assert found[0] == 0
    assert found[1] > 20


@pytest.mark.parametrize("nearness", ["contact", "distance"])
def test_swept_forceps_heat_what_both_jaws_reach_at_once(device: Device, nearness) -> None:
    """Drawn at 0.19 m/s across the gap between their jaws. What one jaw reaches in one pose and the other in the next
    was never between them: n is the mean over poses of the least of both jaws, by the meshes' own distances. Grid error
    at the jaws' edges: h²/(8R), 16 µm, twice."""
    skin = flat(device, 0.02, 64)
    params = ElectrodeParams(bipolar=True, reach=1.5e-3, nearness=nearness, constant="flux", most_flux=1.0)
    forceps = make_tool("forceps", bipolar_forceps(), device)
    electrode = make_electrode(forceps, make_burn(make_heat(skin)), params)
    points = skin.position.numpy()[skin.texels.numpy()].astype(np.float64)
    way, slack = np.array([0.19 * 0.016, 0.0, 0.0]), 2.0 * 0.25e-3**2 / (8.0 * 0.5e-3)
    for grip, heats in ((0.0, False), (0.5, False), (1.0, True)):
        begin = np.array([-0.001, 0.0, -1.0e-3])
        forceps.place(begin, UPRIGHT, grip, jump=True)
        forceps.place(begin + way, UPRIGHT, grip)
        flux = powered(electrode)
        # At the frame's end the tool is at begin + way: at an earlier pose points are as much further.
        poses = [points + way * (1.0 - (k + 0.5) / 4.0) for k in range(4)]
        d = np.array([[exact_distance(forceps, part, at) for part in (0, 1)] for at in poses]).max(axis=1)
        swept = np.array([[exact_distance(forceps, part, at) for at in poses] for part in (0, 1)]).min(axis=1)
        never = (d > params.reach + slack).all(axis=0)
        assert not flux[never].any()
        if nearness == "contact":
            sure = (np.abs(d - params.reach) > slack).all(axis=0)
            assert flux[sure] == pytest.approx((d < params.reach).mean(axis=0)[sure], rel=1e-5)
        else:
            share = np.clip(1.0 - d / params.reach, 0.0, 1.0).mean(axis=0)
            assert flux == pytest.approx(share, abs=slack / params.reach)
        assert bool(flux.any()) == heats
        # Half closed, each jaw passes over some texels while the other is away.
        assert (never & (swept < params.reach).all(axis=0)).any() or grip == 0.0


def test_a_fast_tool_leaves_a_line_and_not_stamps(cpu: Device) -> None:
    """At 0.2 m/s the hook's foot, drawn sideways, moves 3.2 mm per frame and is 1.4 mm wide."""
    skin = flat(cpu)
    electrode = hooked(skin)
    electrode.press(True)
    electrode.tool.place((-0.002, -0.008, PRESSED), UPRIGHT, jump=True)
    program = recorded([electrode])
    for frame in range(5):
        electrode.tool.place((-0.002, -0.008 + 3.2e-3 * (frame + 1), PRESSED), UPRIGHT)
        program.run()
    x, y, _ = skin.position.numpy()[skin.texels.numpy()].T
    on_line = (np.abs(x) < 0.5e-3) & (np.abs(y) < 7e-3)
    assert (electrode.burn.heat.temperature.numpy()[skin.texels.numpy()][on_line] > 1.0).all()


def test_two_electrodes_add_up_and_pedals_work(cpu: Device) -> None:
    skin = flat(cpu)
    burn = make_burn(make_heat(skin))
    tool = make_tool("hook", monopolar_hook(), cpu)
    other = make_tool("hook", monopolar_hook(), cpu)
    pair = [make_electrode(t, burn, ElectrodeParams(power=p)) for t, p in ((tool, 10.0), (other, 20.0))]
    tool.place((-0.008, 0.0, PRESSED), UPRIGHT, jump=True)
    other.place((0.004, 0.0, PRESSED), UPRIGHT, jump=True)
    program = recorded(pair)
    for pedals, watts in (((True, True), 30.0), ((False, True), 20.0), ((False, False), 0.0)):
        for electrode, pedal in zip(pair, pedals, strict=True):
            electrode.press(pedal)
        program.run()
        assert float(burn.heat.power.numpy().sum(dtype=np.float64)) == pytest.approx(watts, rel=1e-5)
    pair[0].press(True)
    pair[0].set(replace(pair[0].params, power=5.0))
    program.run()
    assert pair[0].delivered.host[0] == pytest.approx(5.0, rel=1e-5)


# --- marks ---------------------------------------------------------------------------------------------------------


def drawn(electrode: Electrode, speed: float, seconds: float) -> dict[str, float]:
    """A mark drawn sideways at `speed` [m/s], after 0.6 s of cooling."""
    burn = electrode.burn
    program = recorded([electrode])
    start = np.array([-0.002, -0.5 * speed * seconds, PRESSED])
    electrode.tool.place(start, UPRIGHT, jump=True)
    electrode.press(True)
    frames = round(seconds / 0.016)
    white, black = math.inf, math.inf
    for frame in range(frames):
        electrode.tool.place(start + np.array([0.0, speed * 0.016 * (frame + 1), 0.0]), UPRIGHT)
        program.run()
        coagulated, charred = burn.area.host[0]
        white = min(white, 0.016 * (frame + 1) if coagulated > 0.0 else math.inf)
        black = min(black, 0.016 * (frame + 1) if charred > 0.0 else math.inf)
    electrode.press(False)
    for _ in range(40):
        program.run()
    coagulated, charred = (1e6 * float(a) for a in burn.area.host[0])
    level = float(burn.burn_level.numpy().max())
    return {"level": level, "white": white, "black": black, "coagulated": coagulated, "charred": charred}


def test_three_ways_to_hold_a_hook_leave_three_marks(cpu: Device) -> None:
    """30 W. Held still: white at once, black after a second or two. 5 mm/s: white, not black. 60 mm/s: pale."""
    still = drawn(hooked(flat(cpu)), 0.0, 2.4)
    slow = drawn(hooked(flat(cpu)), 5e-3, 2.4)
    fast = drawn(hooked(flat(cpu)), 60e-3, 0.3)
    assert still["white"] < 0.2
    assert 0.8 < still["black"] < 3.0
    assert still["level"] > 1.9
    assert still["charred"] > 1.0
    assert slow["level"] == pytest.approx(1.0, abs=0.01)
    assert slow["charred"] == 0.0
    assert slow["coagulated"] > 2.0 * still["coagulated"]
    assert 0.1 < fast["level"] < 0.8
    assert fast["charred"] == 0.0
    assert fast["coagulated"] < 0.1 * slow["coagulated"]


def test_areas_are_sums_over_texels(device: Device) -> None:
    skin = flat(device)
    burn = burnt(skin, BurnParams(water_content=0.0), np.linspace(0.0, 350.0, skin.count), 0.1, 5)
    device.record(lambda stage: measure_burn(stage, burn)).run()
    device.synchronize()
    area = of(burn, skin.area)
    white, black = 1.0 - np.exp(-of(burn, burn.damage)), 1.0 - np.exp(-of(burn, burn.charring))
    assert burn.area.host[0, 0] == pytest.approx(area[white >= 0.5].sum(), rel=1e-12)
    assert burn.area.host[0, 1] == pytest.approx(area[black >= 0.5].sum(), rel=1e-12)
    assert 0.0 < burn.area.host[0, 1] < burn.area.host[0, 0] < area.sum()


def test_the_same_bits_on_any_number_of_cores() -> None:
    found = []
    for cores in (1, 2):
        device = open_device("cpu", cores=cores)
        electrode = hooked(flat(device))
        electrode.press(True)
        electrode.tool.place((-0.002, 0.0, PRESSED), UPRIGHT, jump=True)
        program = recorded([electrode])
        for frame in range(30):
            electrode.tool.place((-0.002, 1e-4 * frame, PRESSED), UPRIGHT)
            program.run()
        burn = electrode.burn
        found.append([a.numpy().copy() for a in (burn.heat.temperature, burn.damage, burn.water)])
        device.close()
    for one, two in zip(*found, strict=True):
        assert (one == two).all()


def test_the_example_ends_in_its_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "05_burn_marks.py"
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.endswith("ok\n")


# --- what is seen --------------------------------------------------------------------------------------------------


def test_the_texture_holds_the_maps_and_a_border(device: Device) -> None:
    mesh = icosphere(0.02, 3)
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128)), 128, device=device)
    burn = burnt(skin, BurnParams(), np.linspace(0.0, 900.0, skin.count), 0.1, 1)
    texture = make_texture(burn)
    device.record(lambda stage: step_texture(stage, texture)).run()
    device.synchronize()
    pixels = texture.pixels.numpy()
    assert pixels.shape == (128, 128, 4)
    assert pixels.dtype == np.uint8
    kelvin = 310.15 + of(burn, burn.heat.temperature)
    truth = np.stack(
        [
            (kelvin - COLDEST) / (HOTTEST - COLDEST),
            1.0 - np.exp(-of(burn, burn.damage)),
            1.0 - np.exp(-of(burn, burn.charring)),
            of(burn, burn.water),
        ],
        axis=1,
    )
    texels = skin.texels.numpy()
    packed = pixels.reshape(-1, 4)[texels].astype(np.float64)
    assert np.abs(packed - 255.0 * np.clip(truth, 0.0, 1.0)).max() < 0.501
    # Every texel that bilinear sampling inside a chart can touch has a value: A is never 0 where tissue is wet.
    covered = (skin.coverage.numpy() > 0.0).reshape(128, 128)
    burn.water.fill_(1.0)
    device.record(lambda stage: step_texture(stage, texture)).run()
    device.synchronize()
    alpha = texture.pixels.numpy()[..., 3]
    rows, columns = np.nonzero(covered)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            r, c = rows + down, columns + right
            inside = (r >= 0) & (r < 128) & (c >= 0) & (c < 128)
            assert (alpha[r[inside], c[inside]] == 255).all()
    assert (alpha == 0).any()


def test_the_stage_table_is_checked_and_mixed() -> None:
    assert check_stages(DEFAULT_STAGES) == DEFAULT_STAGES
    between = look_at(DEFAULT_STAGES, 0.75)
    assert between == pytest.approx(0.5 * (look_at(DEFAULT_STAGES, 0.5) + look_at(DEFAULT_STAGES, 1.0)))
    light = look_at(DEFAULT_STAGES, [0.0, 1.0, 2.0])[:, :3].mean(axis=1)
    assert light[1] > 2.0 * light[0]
    assert light[2] < 0.2 * light[0]
    edited = (DEFAULT_STAGES[0], replace(DEFAULT_STAGES[1], colour=(0.0, 1.0, 0.0)))
    assert look_at(edited, 2.0)[:3].tolist() == [0.0, 1.0, 0.0]


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("harmless", -1.0),
        ("harmless", math.nan),
        ("water_content", 1.5),
        ("water_content", -0.1),
        ("latent_heat", math.inf),
        ("threshold", 0.0),
        ("linear_rate", -1.0),
        ("linear_rate", math.nan),
        ("model", "magic"),
        ("harmless", np.float32("nan")),
        ("water_content", np.float32(-1.0)),
        ("water_content", "0.7"),
        ("latent_heat", None),
        ("threshold", True),
        ("linear_rate", [1.0, 2.0]),
        ("coagulation", 1.0),
        ("charring", None),
    ],
)
def test_impossible_burns_are_refused_by_name(name: str, value) -> None:
    with pytest.raises(InputError, match=name):
        BurnParams(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("power", -1.0),
        ("power", math.nan),
        ("power", 1e6),
        ("reach", 0.0),
        ("reach", math.nan),
        ("most_flux", -1.0),
        ("dry_conductance", 2.0),
        ("nearness", "far"),
        ("constant", "voltage"),
        ("power", "30"),
        ("power", None),
        ("reach", np.float32("nan")),
        ("bipolar", "no"),
    ],
)
def test_impossible_electrodes_are_refused_by_name(name: str, value) -> None:
    with pytest.raises(InputError, match=name):
        ElectrodeParams(**{name: value})


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: RateProcess(-1.0, 500.0), "enthalpy"),
        (lambda: RateProcess(2e5, math.nan), "entropy"),
        (lambda: RateProcess("2e5", 500.0), "enthalpy"),  # pyright: ignore[reportArgumentType]
        (lambda: RateProcess.through(0.0, 1.0, 1e5), "temperature"),
        (lambda: BurnStage(0.0, "a", (0.0, 0.0, 2.0), 0.0, 0.0, 0.0), "colour"),
        (lambda: BurnStage(math.nan, "a", (0.0, 0.0, 0.0), 0.0, 0.0, 0.0), "level"),
        (lambda: check_stages(()), "0 stages"),
        (lambda: check_stages(DEFAULT_STAGES[1:]), "first row must start at level 0"),
        (lambda: check_stages((DEFAULT_STAGES[0], DEFAULT_STAGES[2], DEFAULT_STAGES[1])), "does not rise"),
    ],
)
def test_impossible_numbers_are_refused(make, named: str) -> None:
    with pytest.raises(InputError, match=named):
        make()


def test_numbers_of_any_kind_become_floats() -> None:
    burn, electrode = BurnParams(water_content=np.float32(0.5)), ElectrodeParams(power=np.int64(20))  # pyright: ignore[reportArgumentType]
    assert type(burn.water_content) is type(electrode.power) is float
    assert (burn.water_content, electrode.power) == (0.5, 20.0)


def test_what_does_not_fit_together_is_refused(cpu: Device) -> None:
    skin = flat(cpu)
    burn = make_burn(make_heat(skin))
    hook = make_tool("hook", monopolar_hook(), cpu)
    with pytest.raises(InputError, match=r"reach = 0\.05"):
        make_electrode(hook, burn, ElectrodeParams(reach=0.05))
    with pytest.raises(InputError, match="1 active"):
        make_electrode(hook, burn, ElectrodeParams(bipolar=True))
    with pytest.raises(InputError, match="0 active"):
        make_electrode(make_tool("shaft", monopolar_hook()[1:], cpu), burn)
    burn.damage.fill_(1.0)
    with pytest.raises(InputError, match="model"):
        set_burn(burn, BurnParams(model="linear"))
    reset_burn(burn)
    set_burn(burn, BurnParams(model="linear"))
