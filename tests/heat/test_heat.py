"""Heat in the skin against closed forms: on a sheet, on a sphere whose seams it must cross, with and without losses."""

from __future__ import annotations

import math
import runpy
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import legendre

from viscera.device import Device, Stage, open_device
from viscera.errors import InputError
from viscera.geometry import TriangleMesh, icosphere
from viscera.geometry.atlas import Atlas, AtlasSettings, unique_atlas
from viscera.heat.bodies import LEAST_BODY
from viscera.heat.conduction import (
    FRAME,
    LIVER_PERFUSION,
    MOST_LOSS,
    STILL_AIR,
    Heat,
    HeatParams,
    explicit_limit,
    fitted_loss,
    make_heat,
    set_heat,
    step_heat,
    total_heat,
)
from viscera.heat.network import rebuild_network
from viscera.skin import make_skin, rebuild_skin

RADIUS = 0.05


@pytest.fixture(scope="module")
def ball(tmp_path_factory: pytest.TempPathFactory) -> tuple[TriangleMesh, Atlas]:
    mesh = icosphere(RADIUS, 4)
    return mesh, unique_atlas(mesh, AtlasSettings(128), tmp_path_factory.mktemp("atlases"))


def sheet(matrix: np.ndarray, side: float = 0.1) -> TriangleMesh:
    """A flat square about the origin; `matrix` takes metres to the texture, about its middle."""
    line = np.linspace(-0.5 * side, 0.5 * side, 9)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    low = (np.arange(8)[:, None] * 9 + np.arange(8)).ravel()
    quads = np.stack([low, low + 1, low + 10, low + 9], axis=1)
    uv = 0.5 + np.stack([x, y], axis=1) @ np.asarray(matrix).T
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return TriangleMesh(np.stack([x, y, 0 * x], axis=1), triangles, "sheet", uv.astype(np.float32))


def put(heat: Heat, values: np.ndarray) -> None:
    covered = np.zeros(len(values), dtype=np.float32)
    texels = heat.skin.texels.numpy()
    covered[texels] = values[texels]
    heat.temperature.assign(covered)


def run(heat: Heat, steps: int) -> np.ndarray:
    device = heat.skin.device
    program = device.record(lambda stage: step_heat(stage, heat), work=heat.skin.count * heat.stages)
    for _ in range(steps):
        program.run()
    device.synchronize()
    return heat.temperature.numpy()


ANGLE = math.radians(30.0)
TURN = np.array([[math.cos(ANGLE), -math.sin(ANGLE)], [math.sin(ANGLE), math.cos(ANGLE)]])


@pytest.mark.parametrize(
    "matrix",
    [8.0 * np.eye(2), 6.0 * TURN, np.diag([9.0, 5.0]), 5.5 * np.array([[1.0, 0.5], [0.0, 1.0]])],
    ids=["straight", "turned", "stretched", "sheared"],
)
def test_a_hot_spot_on_a_sheet_stays_gaussian(device: Device, matrix: np.ndarray) -> None:
    """θ = (σ₀²/σ²) exp(−r²/2σ²), σ² = σ₀² + 2αt, however the texture lies on the sheet. 1 % of the peak."""
    mesh = sheet(matrix)
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128)), 128, device=device)
    params = HeatParams()
    wide, steps = 0.008, 100
    duration = 0.5 * wide**2 / params.diffusivity
    heat = make_heat(skin, params, duration / steps)
    square = (skin.position.numpy() ** 2).sum(axis=1)
    put(heat, 40.0 * np.exp(-square / (2 * wide**2)))
    found = run(heat, steps)
    spread = wide**2 + 2 * params.diffusivity * duration
    truth = 40.0 * wide**2 / spread * np.exp(-square / (2 * spread))
    texels = skin.texels.numpy()
    assert np.abs(found - truth)[texels].max() < 0.01 * truth[texels].max()


@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
@pytest.mark.parametrize("scale", [10.0, 7.5], ids=["to the rim", "no slivers"])
def test_a_sheet_whose_edges_are_texel_sides(device: Device, scale: float, native: bool) -> None:
    """cos(πx/a) cos(πy/a) decays as exp(−2απ²t/a²) between insulated edges: nothing lies beyond them, also where they
    are the texture's own. The mode of 64 texels is 0.02 % off, 100 steps of first order up to 0.25 %."""
    mesh = sheet(scale * np.eye(2))
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(64)), 64, device=device)
    params = HeatParams()
    rate = 2.0 * params.diffusivity * (math.pi / 0.1) ** 2
    heat = make_heat(skin, params, 1.0 / rate / 100, native=native)
    assert len(heat.network.bodies.border) == 0
    x, y, _ = np.moveaxis(skin.position.numpy(), 1, 0)
    mode = np.cos(math.pi * (x / 0.1 + 0.5)) * np.cos(math.pi * (y / 0.1 + 0.5))
    put(heat, 20.0 * (1.0 + mode))
    before = total_heat(heat)
    found = run(heat, 100)[skin.texels.numpy()]
    truth = 20.0 * (1.0 + math.exp(-1.0) * mode)[skin.texels.numpy()]
    assert np.abs(found - truth).max() < 0.005 * 20.0
    assert total_heat(heat) == pytest.approx(before, rel=1e-6)


def test_the_first_mode_of_a_sphere_decays_across_seams(device: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    """θ ∝ z decays as exp(−2αt/R²). 64 steps of first order over half a time constant are off by 0.2 % of the 2 %."""
    skin = make_skin(*ball, 128, device=device)
    assert len(skin.seams) > 50
    params = HeatParams()
    steps = 64
    heat = make_heat(skin, params, 0.5 * RADIUS**2 / (2 * params.diffusivity) / steps)
    mode = 10.0 * skin.position.numpy()[:, 2] / RADIUS
    put(heat, mode)
    found = run(heat, steps)
    area = skin.area.numpy().astype(np.float64)
    left = (area * found * mode).sum() / (area * mode * mode).sum()
    assert left == pytest.approx(math.exp(-0.5), rel=0.02)
    # No line: nowhere, at a seam or not, is a texel off by as much as it differs from the next one.
    error = (found - left * mode)[skin.texels.numpy()]
    next_one = 10.0 * left * math.sqrt(ball[0].area / skin.coverage.numpy().sum()) / RADIUS
    assert np.abs(error).max() < 1.0 * next_one
    assert error.std() < 0.15 * next_one


def test_heat_is_kept_and_bounded_at_a_hundred_times_the_explicit_limit(
    device: Device, ball: tuple[TriangleMesh, Atlas]
) -> None:
    skin = make_skin(*ball, 128, device=device)
    heat = make_heat(skin, dt=0.0)
    heat = make_heat(skin, dt=100.0 * explicit_limit(heat))
    spots = np.random.default_rng(3).random(skin.width * skin.height) > 0.97
    put(heat, 60.0 * spots)
    before = total_heat(heat)
    found = heat.temperature.numpy()
    for _ in range(3):
        found = run(heat, 5)[skin.texels.numpy()]
        assert total_heat(heat) == pytest.approx(before, rel=1e-5)
        assert found.min() > -0.1
        assert found.max() < 60.0
    mean = before / total_heat_of_one_kelvin(heat)
    assert np.abs(found - mean).max() < 0.5 * mean


def total_heat_of_one_kelvin(heat: Heat) -> float:
    p = heat.params
    return p.density * p.heat_capacity * p.thickness * float(heat.skin.rest_area.numpy().sum(dtype=np.float64))


def test_a_step_of_no_time_changes_nothing(ball: tuple[TriangleMesh, Atlas], cpu: Device) -> None:
    skin = make_skin(*ball, 128, device=cpu)
    heat = make_heat(skin, HeatParams(perfusion=1e4, air_transfer=10.0, air_temperature=295.0), dt=0.0)
    put(heat, skin.position.numpy()[:, 0])
    total = total_heat(heat)
    # The first step may share heat within bodies of several texels: slivers have the temperature of their body.
    before = run(heat, 1).copy()
    assert abs(total_heat(heat) - total) < 1e-6 * total_heat_of_one_kelvin(heat) * np.abs(before).max()
    assert (run(heat, 3) == before).all()


def test_losses_follow_their_closed_forms(ball: tuple[TriangleMesh, Atlas], cpu: Device) -> None:
    """A warm skin cools as exp(−rate t) to where blood and air balance; 200 steps are exact to 0.1 %."""
    skin = make_skin(*ball, 128, device=cpu)
    params = HeatParams(perfusion=4e4, air_transfer=20.0, air_temperature=290.15)
    loss = params.perfusion * params.thickness + params.air_transfer
    rate = loss / (params.density * params.heat_capacity * params.thickness)
    rest = params.air_transfer * (params.air_temperature - params.body_temperature) / loss
    heat = make_heat(skin, params, dt=1.0 / rate / 200)
    put(heat, np.full(128 * 128, 30.0))
    found = run(heat, 200)[skin.texels.numpy()]
    truth = rest + (30.0 - rest) * math.exp(-1.0)
    assert np.abs(found - truth).max() < 2e-3 * (30.0 - rest)


@pytest.mark.parametrize("stages", [2, 4, 20, 400])
@pytest.mark.parametrize("decay", [1e-9, 2.4e-4, 1.0, 8.0, 1e5])
def test_the_fitted_loss_is_the_exponential(stages: int, decay: float) -> None:
    """P_S(1 − w λ) = exp(−r dt), with Legendre's polynomial from NumPy. Near 1 it has 1e-16 · S² of rounding."""
    loss = fitted_loss(decay, stages)
    found = legendre.Legendre.basis(stages)(1.0 - 2.0 * loss / (stages**2 + stages))
    assert found == pytest.approx(math.exp(-decay), abs=1e-11)
    assert loss == pytest.approx(decay, rel=2e-4) if decay < 1e-3 else 0.0 < loss < MOST_LOSS


@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
@pytest.mark.parametrize("transfer", [20.0, 1e6])
def test_cold_air_cools_as_the_exponential_at_any_step(
    device: Device, ball: tuple[TriangleMesh, Atlas], transfer: float, native: bool
) -> None:
    """θ = θ_air + (θ_0 − θ_air) exp(−r t) with steps of 300 s, 1.6 and 80 000 time constants, on a skin made for 16 ms:
    losses alone are exact, so only float32 is left. Power under them likewise: θ → q/r."""
    skin = make_skin(*ball, 128, device=device)
    heat = make_heat(skin, native=native)
    params = HeatParams(air_transfer=transfer, air_temperature=305.15)
    set_heat(heat, params, dt=300.0)
    rate, air = transfer / params.capacity, -5.0
    texels = skin.texels.numpy()
    put(heat, np.full(128 * 128, 30.0))
    for step in range(1, 4):
        truth = air + (30.0 - air) * math.exp(-rate * 300.0 * step)
        assert np.abs(run(heat, 1)[texels] - truth).max() < 1e-4
    watts = 1e4 * skin.rest_area.numpy()
    heat.power.assign(watts)
    warmer = total_heat(heat) / total_heat_of_one_kelvin(heat)
    run(heat, 1)
    rest = air + watts[texels].sum(dtype=np.float64) / transfer / float(skin.rest_area.numpy().sum(dtype=np.float64))
    truth = rest + (warmer - rest) * math.exp(-rate * 300.0)
    # Slivers' power enters at the start of a step, and 1 to 2 % of the skin is slivers.
    assert total_heat(heat) / total_heat_of_one_kelvin(heat) == pytest.approx(truth, rel=0.02)


def test_power_arrives_and_parameters_change_while_it_runs(ball: tuple[TriangleMesh, Atlas], cpu: Device) -> None:
    skin = make_skin(*ball, 128, device=cpu)
    heat = make_heat(skin, dt=0.016)
    power = np.zeros(128 * 128, dtype=np.float32)
    power[skin.texels.numpy()[1000:1010]] = 0.5
    heat.power.assign(power)
    program = cpu.record(lambda stage: step_heat(stage, heat), work=skin.count)
    for _ in range(10):
        program.run()
    assert total_heat(heat) == pytest.approx(10 * 0.016 * 5.0, rel=1e-4)
    peak = heat.temperature.numpy().max()
    heat.power.zero_()
    set_heat(heat, HeatParams(conductivity=0.0))
    program.run()
    assert heat.temperature.numpy().max() == pytest.approx(peak, rel=1e-4)


def test_stretched_tissue_is_thinner_and_conducts_as_it_lies(cpu: Device) -> None:
    """A sheet made twice as long is half as thick, since tissue keeps its volume: the network after rebuilding is that
    of a sheet made so at once. And it holds the heat it held."""
    mesh = sheet(6.0 * TURN)
    atlas = unique_atlas(mesh, AtlasSettings(128))
    long = TriangleMesh(mesh.vertices * (2.0, 1.0, 1.0), mesh.triangles, "long", mesh.uv)
    moved, made = make_skin(mesh, atlas, 128, device=cpu), make_skin(long, atlas, 128, device=cpu)
    thick = HeatParams()
    heat, truth = make_heat(moved, thick), make_heat(made, replace(thick, thickness=0.5 * thick.thickness))
    put(heat, 40.0 * (moved.position.numpy()[:, 0] > 0.0))
    before = total_heat(heat)
    moved.vertices.assign(long.vertices.astype(np.float32))
    for native in (True, False):
        cpu.record(lambda stage, native=native: follow(stage, heat, native)).run()
        for name in ("left", "bottom", "shear", "link", "inverse"):
            made_so = getattr(truth.network.net, name).numpy()
            assert np.abs(getattr(heat.network.net, name).numpy() - made_so).max() < 1e-5 * np.abs(made_so).max()
    # Sheared enough to count: a tenth of the least of what flows straight.
    assert np.abs(truth.network.net.shear.numpy()).max() > 0.1 * truth.network.net.left.numpy().max()
    run(heat, 5)
    assert total_heat(heat) == pytest.approx(before, rel=1e-6)


def test_a_breathing_organ_keeps_its_heat(device: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    """10 % wider each way and back, four times while heat spreads: only rounding is lost (areas would give 21 %)."""
    skin = make_skin(*ball, 128, device=device)
    heat = make_heat(skin, dt=1.0)
    put(heat, 60.0 * (np.random.default_rng(5).random(128 * 128) > 0.9))
    before, warm = total_heat(heat), heat.temperature.numpy().copy()

    def frame(stage: Stage) -> None:
        follow(stage, heat)
        step_heat(stage, heat)

    program = device.record(frame)
    for scale in (1.1, 1.0, 0.9, 1.1):
        skin.vertices.assign((scale * ball[0].vertices).astype(np.float32))
        program.run()
        device.synchronize()
        assert total_heat(heat) == pytest.approx(before, rel=1e-5)
    assert np.abs(heat.temperature.numpy() - warm).max() > 10.0


def follow(stage: Stage, heat: Heat, native: bool = True) -> None:
    rebuild_skin(stage, heat.skin)
    rebuild_network(stage, heat.skin, heat.network, native)


def test_tissue_sheared_far_stays_stable(cpu: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    """Stages are chosen at rest; a skin that is then sheared and flattened must not make them diverge."""
    skin = make_skin(*ball, 128, device=cpu)
    heat = make_heat(skin, dt=20.0)
    put(heat, 60.0 * (np.random.default_rng(5).random(128 * 128) > 0.9))
    shear = np.array([[1.0, 1.5, 0.0], [0.0, 1.0, 0.0], [0.8, 0.0, 0.4]])
    before = total_heat(heat)
    skin.vertices.assign((ball[0].vertices @ shear.T).astype(np.float32))
    cpu.record(lambda stage: follow(stage, heat)).run()
    found = run(heat, 50)[skin.texels.numpy()]
    assert np.abs(found).max() < 60.0
    assert total_heat(heat) == pytest.approx(before, rel=1e-4)


def links_of(heat: Heat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hosts on both ends of each link, and its conductance."""
    bodies = heat.network.bodies
    owner = np.repeat(bodies.border, np.diff(bodies.link_start))
    return owner, bodies.border[bodies.link_border], heat.network.net.link.numpy()


def test_a_link_is_the_same_from_both_sides(cpu: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    heat = make_heat(make_skin(*ball, 128, device=cpu))
    owner, other, link = (values.tolist() for values in links_of(heat))
    assert len(link) > 500
    assert sorted(zip(owner, other, link, strict=True)) == sorted(zip(other, owner, link, strict=True))


def matrix_of(heat: Heat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texels, capacities and conductances (symmetric, per step) of all bodies, from the maps, in float64."""
    net, w = heat.network.net, heat.skin.width
    hosts = np.unique(heat.network.bodies.host)[1:]
    place = np.full(w * heat.skin.height, -1)
    place[hosts] = np.arange(len(hosts))
    joined = np.zeros((len(hosts), len(hosts)))

    def join(a: np.ndarray, b: np.ndarray, g: np.ndarray) -> None:
        np.add.at(joined, (place[a], place[b]), g)
        np.add.at(joined, (place[b], place[a]), g)

    left, bottom, shear = (m.numpy().astype(np.float64)[hosts] for m in (net.left, net.bottom, net.shear))
    for away, g in ((1, left), (w, bottom), (w + 1, shear)):
        join(hosts[g != 0], hosts[g != 0] - away, g[g != 0])
    slanted = hosts[shear != 0]
    join(slanted - 1, slanted - w, -shear[shear != 0])
    owner, other, link = links_of(heat)
    np.add.at(joined, (place[owner], place[other]), link.astype(np.float64))
    return hosts, 1.0 / net.inverse.numpy().astype(np.float64)[hosts], joined


@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
def test_a_step_is_that_of_the_reference(device: Device, tmp_path: Path, native: bool) -> None:
    """S stages in float64 on the dense matrix of the same conductances; 1e-6 of the peak is float32's rounding. The
    ball's coarse atlas is mostly border, so links and slivers weigh."""
    mesh = icosphere(RADIUS, 3)
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(64), tmp_path), 64, device=device)
    params = HeatParams(perfusion=LIVER_PERFUSION, air_transfer=STILL_AIR, air_temperature=295.15)
    heat = make_heat(skin, params, dt=60.0, native=native)
    assert heat.stages >= 4
    rng = np.random.default_rng(1)
    put(heat, 40.0 * rng.random(64 * 64))
    texels = skin.texels.numpy()
    power = np.zeros(64 * 64, dtype=np.float32)
    power[texels] = 1e-3 * rng.random(len(texels))
    heat.power.assign(power)
    hosts, capacity, joined = matrix_of(heat)
    host = heat.network.bodies.host[texels]
    area, start = skin.rest_area.numpy().astype(np.float64), heat.temperature.numpy().astype(np.float64)
    body = np.bincount(host, weights=area[texels] * start[texels])[hosts] * params.capacity / capacity
    alone = hosts[np.isin(hosts, host[host != texels], invert=True)]
    watts = power.astype(np.float64)
    merged = np.bincount(host, weights=watts[texels])[hosts] - watts[hosts]
    decay = heat.dt * (params.perfusion * params.thickness + params.air_transfer) / params.capacity
    loss = fitted_loss(decay, heat.stages)
    dt = heat.dt * loss / decay
    gain = dt * params.air_transfer * (params.air_temperature - params.body_temperature) / params.capacity
    y = body + dt * merged / capacity
    before, w = y, 2.0 / (heat.stages**2 + heat.stages)
    for j in range(1, heat.stages + 1):
        flow = joined @ y - joined.sum(axis=1) * y
        change = (flow + dt * watts[hosts]) / capacity + gain - loss * y
        y, before = y + (j - 1) / j * (y - before) + (2 * j - 1) / j * w * change, y
    found = run(heat, 1)
    assert len(alone) < len(hosts)
    assert np.abs(found[hosts] - y).max() < 1e-6 * y.max()
    assert (found[texels] == found[host]).all()


def test_bodies_take_every_texel_once_and_are_no_slivers(cpu: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    skin = make_skin(*ball, 128, device=cpu)
    heat = make_heat(skin)
    texels, bodies = skin.texels.numpy(), heat.network.bodies
    host = bodies.host[texels]
    assert (bodies.host[host] == host).all()
    assert ((bodies.host >= 0) == (skin.coverage.numpy() > 0)).all()
    slivers = texels[host != texels]
    assert sorted(bodies.member) == sorted(slivers)
    assert len(slivers) > 100
    # Everything lies in the chart of its host, and has enough of a texel to hold heat.
    chart = skin.atlas.chart[skin.face.numpy()]
    assert (chart[slivers] == chart[bodies.host[slivers]]).all()
    weight = np.bincount(host, weights=skin.coverage.numpy()[texels])
    assert weight[np.unique(host)].min() >= LEAST_BODY
    capacity = 1.0 / heat.network.net.inverse.numpy().astype(np.float64)[np.unique(host)]
    assert capacity.sum() == pytest.approx(total_heat_of_one_kelvin(heat), rel=1e-6)


def test_cores_and_kernels_agree(ball: tuple[TriangleMesh, Atlas]) -> None:
    """The same bits on one core and on two; the plain kernel fuses no multiply-adds and differs in the last ones."""
    found = []
    for cores, native in ((1, True), (2, True), (2, False)):
        device = open_device("cpu", cores=cores)
        skin = make_skin(*ball, 128, device=device)
        heat = make_heat(skin, dt=2.0, native=native)
        put(heat, 60.0 * (np.random.default_rng(5).random(128 * 128) > 0.9))
        program = device.record(lambda stage, heat=heat: step_heat(stage, heat))
        for _ in range(20):
            program.run()
        found.append(heat.temperature.numpy().copy())
        device.close()
    assert (found[0] == found[1]).all()
    assert np.abs(found[0] - found[2]).max() < 1e-5 * found[0].max()


def test_conductances_in_c_are_those_of_the_plain_kernels(cpu: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    """On a ball that was sheared and squeezed so far that conduction is cut in places."""
    skin = make_skin(*ball, 128, device=cpu)
    heat = make_heat(skin, dt=20.0)
    shear = np.array([[1.0, 1.5, 0.0], [0.0, 1.0, 0.0], [0.8, 0.0, 0.2]])
    skin.vertices.assign((ball[0].vertices @ shear.T).astype(np.float32))
    names = ("left", "bottom", "shear", "link", "inverse", "share")
    found = []
    for native in (True, False):
        cpu.record(lambda stage, native=native: follow(stage, heat, native)).run()
        found.append([getattr(heat.network.net, name).numpy().copy() for name in names])
    cut = heat.network.fabric.cut.numpy()[np.unique(heat.network.bodies.host)[1:]]
    assert 0.05 < (cut < 1.0).mean() < 0.9
    for name, fast, plain in zip(names, *found, strict=True):
        assert np.abs(fast - plain).max() < 2e-6 * np.abs(plain).max(), name


def test_a_step_far_too_stiff_for_its_stages_stays_bounded(cpu: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    """Made for 16 ms, then set to minutes, to silver and to a gale: conduction and losses are cut, heat is kept."""
    skin = make_skin(*ball, 128, device=cpu)
    heat = make_heat(skin)
    put(heat, 60.0 * (np.random.default_rng(5).random(128 * 128) > 0.9))
    before = total_heat(heat)
    set_heat(heat, HeatParams(conductivity=430.0), dt=300.0)
    found = run(heat, 50)[skin.texels.numpy()]
    assert found.min() > -1e-3
    assert found.max() < 60.0
    assert total_heat(heat) == pytest.approx(before, rel=1e-5)
    set_heat(heat, HeatParams(conductivity=430.0, air_transfer=1e6), dt=300.0)
    found = run(heat, 50)[skin.texels.numpy()]
    assert np.abs(found).max() < 60.0


def test_the_example_ends_in_its_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "06_heat_over_seams.py"
    monkeypatch.setattr("sys.argv", [str(path), "--seconds", "8"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.endswith("ok\n")


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, np.float32("nan"), np.float32(-1.0), "1", None, True])
@pytest.mark.parametrize("name", [field.name for field in fields(HeatParams)])
def test_impossible_parameters_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        HeatParams(**{name: value})


def test_an_impossible_step_is_refused(cpu: Device, ball: tuple[TriangleMesh, Atlas]) -> None:
    skin = make_skin(*ball, 128, device=cpu)
    heat = make_heat(skin)
    for dt in (-1.0, math.nan, math.inf, "0.016"):
        with pytest.raises(InputError, match=f"dt = {dt!r}"):
            make_heat(skin, dt=dt)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InputError, match=f"dt = {dt!r}"):
            set_heat(heat, heat.params, dt)  # pyright: ignore[reportArgumentType]
    assert heat.dt == FRAME


@pytest.mark.parametrize("name", ["thickness", "density", "heat_capacity", "body_temperature", "air_temperature"])
def test_nothing_is_not_possible_either(name: str) -> None:
    with pytest.raises(InputError, match=name):
        HeatParams(**{name: 0.0})
