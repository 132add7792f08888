"""The liver: a heart that is felt at its rate and not without it, attachments, a tumour, checkpoints, a user's mesh."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import viscera
from viscera.anatomy import gallbladder, liver
from viscera.errors import InputError, MeshError
from viscera.geometry import icosphere
from viscera.geometry.mesh import TriangleMesh
from viscera.inputs import EndDrill, SetParameter, StartDrill, ToolInput
from viscera.scenarios.liver import HOME_HEIGHT, PROBE_RADIUS
from viscera.tissue.heartbeat import Heartbeat, pulse
from viscera.tissue.materials import LIVER, TUMOUR
from viscera.world import World

SETTLED = 1_000
"""Ticks after which the probe rests."""


def living(**options) -> World:
    return viscera.make("liver", device="cpu", **options)


@pytest.fixture(scope="module")
def shared() -> Iterator[World]:
    """One world for tests that only look."""
    made = living(seed=1)
    yield made
    made.close()


def rest(world: World, ticks: int, depth: float = 0.006, aside: float = 0.0) -> np.ndarray:
    """Force on the probe along z in every tick [N], while it rests over the vessels (or `aside`, to the left) [m]."""
    x, y, z = world.scene().instruments[0].home
    world.apply(ToolInput(0, (x + aside, y, z - HOME_HEIGHT + PROBE_RADIUS - depth)))
    force = np.empty(ticks)
    for tick in range(ticks):
        world.step()
        force[tick] = world.tools[0].force[2]
    return force


def spectrum(force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies [Hz] and amplitudes [N] of a force with one sample per millisecond, its mean removed."""
    amplitudes = 2.0 / len(force) * np.abs(np.fft.rfft(force - force.mean()))
    return np.fft.rfftfreq(len(force), 1e-3), amplitudes


# --- the heart ---


def test_the_pulse_rises_from_nought_to_one_and_is_periodic() -> None:
    wave = np.array([pulse(n / 1000.0) for n in range(2000)])
    assert wave.min() == pytest.approx(0.0, abs=1e-6)
    assert wave.max() == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(wave[:1000], wave[1000:], atol=1e-12)
    # One quick rise, then a slower fall with the dicrotic wave on it: three maxima at most.
    peaks = np.flatnonzero((wave[:1000] > np.roll(wave[:1000], 1)) & (wave[:1000] > np.roll(wave[:1000], -1)))
    assert 0.1 < peaks[0] / 1000.0 < 0.25
    assert 2 <= len(peaks) <= 3


class Anchors:
    """Stands in for a tissue: keeps the drives it is given."""

    def __init__(self) -> None:
        self.drives: list[tuple[float, float]] = []

    def set_drive(self, start: float, end: float) -> None:
        self.drives.append((start, end))


def test_the_drive_is_continuous_whatever_is_changed() -> None:
    anchors = Anchors()
    heart = Heartbeat(anchors, rate=1.0, amplitude=0.004)  # pyright: ignore[reportArgumentType]
    for tick in range(4000):
        if tick == 1100:
            heart.rate = 160.0 / 60.0
        if tick == 2150:
            heart.amplitude = 0.0
        heart.advance(1e-3)
    starts, ends = np.array(anchors.drives).T
    np.testing.assert_array_equal(starts[1:], ends[:-1])
    # No tick is steeper than the percussion wave itself at the highest rate and amplitude: it rises within 0.09 beats.
    assert np.abs(ends - starts).max() < 0.004 / 0.08 * (160.0 / 60.0) * 1e-3
    assert ends[:2150].max() == pytest.approx(0.004, rel=0.02)
    assert np.abs(ends[-500:]).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("per_minute", [60.0, 120.0])
def test_the_force_on_a_resting_probe_beats_at_the_heart_rate(per_minute: float) -> None:
    """Over a whole number of beats all power lies at the rate and its harmonics, most of it at the rate."""
    world = living(seed=1, parameters={"heart_rate": per_minute})
    force = rest(world, SETTLED + 3_000)[SETTLED:]
    frequency, amplitude = spectrum(force)
    beat = per_minute / 60.0
    strongest = frequency[np.argmax(amplitude)]
    assert strongest == pytest.approx(beat, abs=1e-6)
    assert amplitude.max() > 0.005
    # Fingertips tell changes of about a tenth in force: the pulse is well above that.
    assert np.ptp(force) > 0.15 * force.mean() > 0.0
    between = (frequency < 8.0) & (np.abs(frequency / beat - np.round(frequency / beat)) > 0.2) & (frequency > 0.3)
    assert amplitude[between].max() < 0.1 * amplitude.max()


@pytest.mark.slow
def test_without_a_pulse_the_force_is_still() -> None:
    world = living(seed=1, parameters={"pulse": 0.0})
    force = rest(world, SETTLED + 2_000)[SETTLED:]
    frequency, amplitude = spectrum(force)
    assert force.mean() > 0.05
    assert amplitude[(frequency > 0.4) & (frequency < 8.0)].max() < 5e-4
    assert np.ptp(force[1_000:]) < 0.02 * force.mean()


def test_the_pulse_fades_away_from_the_vessels(shared: World) -> None:
    """Over one beat the front right before the vessels moves several times as far as the right lobe's tip."""
    tissue = shared.organs[0].tissue
    shared.step(600)
    seen = []
    for _ in range(30):
        shared.step(30)
        seen.append(tissue.displacement()[:, 2])
    sway = np.ptp(np.array(seen), axis=0)
    at = tissue.rest_positions()
    home = np.array(shared.scene().instruments[0].home)
    front = np.linalg.norm(at - (home - (0.0, 0.0, HOME_HEIGHT + 0.006)), axis=1) < 0.012
    right = at[:, 0] < at[:, 0].min() + 0.03
    assert sway[front].mean() > 5e-4
    assert sway[right].mean() < 0.3 * sway[front].mean()
    assert tissue.params.driven is not None
    # The wave's top may fall between two looks; the strongest anchor is not quite at the middle of the vessels.
    assert sway[tissue.params.driven].max() == pytest.approx(0.0025, rel=0.1)


# --- the organ ---


def test_it_is_a_liver_of_living_size(shared: World) -> None:
    tissue = shared.organs[0].tissue
    assert 5_000 <= len(tissue.params.nodes) <= 8_000
    # The tumour is as heavy as liver to a percent, so the mass gives the volume of the whole cells: 1.5 L.
    assert tissue.mass.sum() / LIVER.density == pytest.approx(1.5e-3, rel=0.02)
    surface = shared.scene().surfaces[0]
    assert surface.material == "liver"
    assert 6_000 <= surface.vertex_count <= 10_000


def test_it_hangs_on_its_back(shared: World) -> None:
    params = shared.organs[0].tissue.params
    at = shared.organs[0].tissue.rest_positions()
    assert params.driven is not None
    assert (params.driven & ~params.anchored).sum() == 0
    held = params.anchored & ~params.driven
    assert 0.02 < held.mean() < 0.2
    assert 0.005 < params.driven.mean() < 0.05
    # Nothing is held on the front, where one pushes.
    for column in np.unique(params.nodes[params.anchored][:, :2], axis=0)[::20]:
        here = np.all(params.nodes[:, :2] == column, axis=1)
        assert at[params.anchored & here][:, 2].max() == at[here][:, 2].min()


@pytest.mark.slow
def test_every_seed_hides_the_tumour_elsewhere_and_it_is_felt() -> None:
    places = []
    for seed in (1, 2, 3):
        params = living(seed=seed).organs[0].tissue.params
        assert params.materials == (LIVER, TUMOUR)
        assert params.material_of is not None
        at = np.asarray(params.origin) + params.spacing * params.nodes[params.material_of == 1]
        assert 30 <= len(at) <= 80
        places.append(at.mean(axis=0))
    assert min(np.linalg.norm(places[i] - places[j]) for i, j in ((0, 1), (0, 2), (1, 2))) > 0.01
    hard = press(living(seed=1, parameters={"pulse": 0.0}), places[0])
    soft = press(living(seed=2, parameters={"pulse": 0.0}), places[0])
    assert hard > 1.2 * soft > 0.0


def test_a_pin_over_the_tumour_has_found_it_and_one_beside_it_has_not() -> None:
    world = living(seed=1)
    params = world.organs[0].tissue.params
    tumour = (np.asarray(params.origin) + params.spacing * params.nodes[params.material_of == 1]).mean(axis=0)
    seen = world.snapshot().arrays["liver"]
    found = []
    for aside in (0.03, 0.0):
        world.apply(StartDrill())
        off = np.linalg.norm(seen[:, :2] - tumour[:2] - (aside, 0.0), axis=1) - 10.0 * (seen[:, 2] > tumour[2])
        x, y, z = (float(value) for value in seen[np.argmin(off)])
        for grip, ticks in ((1.0, 320), (0.0, 16)):
            world.apply(ToolInput(1, (x, y, z), grip=grip))
            world.step(ticks)
        world.apply(EndDrill("found"))
        world.step(32)
        state = world.drill_state()
        found.append(None if state is None else state.outcome)
    assert found == ["missed", "found"]


def press(world: World, under: np.ndarray, depth: float = 0.010) -> float:
    """Force [N] along z of a push from the front onto what lies at `under` [m]."""
    seen = world.snapshot().arrays["liver"]
    near = seen[np.linalg.norm(seen[:, :2] - under[:2], axis=1) < 0.004]
    above = float(near[:, 2].max()) + PROBE_RADIUS
    for target in (above, above - depth):
        world.apply(ToolInput(0, (float(under[0]), float(under[1]), target)))
        world.step(500)
    return world.tools[0].force[2]


# --- what every world keeps ---


def test_a_checkpoint_keeps_the_phase_of_the_heart() -> None:
    world = living(seed=4)
    rest(world, 333)
    world.apply(SetParameter("heart_rate", 150.0))
    world.step(50)
    kept = world.save_state()
    world.step(150)
    other = living(seed=9)
    other.load_state(kept)
    other.step(150)
    assert other.state_hash() == world.state_hash()


def test_one_core_gives_what_two_give() -> None:
    one, two = (living(seed=3, cores=cores) for cores in (1, 2))
    for world in (one, two):
        rest(world, 150)
    assert one.state_hash() == two.state_hash()


@pytest.mark.slow
def test_the_example_ends_in_its_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "03_feel_the_heartbeat.py"
    monkeypatch.setattr("sys.argv", [str(path), "--rate", "120"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.endswith("ok\n")


def test_the_hash_covers_the_heart() -> None:
    world = living(seed=4)
    before = world.state_hash()
    world.save_state()["motions/0"][0] = 0.5
    assert world.state_hash() == before
    world.contents.motions[0].state[0] = 0.5
    assert world.state_hash() != before


def test_its_own_hand_pushes_on_it() -> None:
    world = living(seed=1)
    for tick in range(1_000):
        for one in world.script(tick):
            world.apply(one)
        world.step()
    assert 0.1 < world.peak_force < 2.0
    assert world.tools[0].force[2] > 0.05


@pytest.mark.parametrize(("name", "value", "word"), [("heart_rate", 300.0, "40 to 160"), ("pulse", -1.0, "0 to 4")])
def test_impossible_hearts_are_refused(shared: World, name: str, value: float, word: str) -> None:
    with pytest.raises(InputError, match=word):
        shared.apply(SetParameter(name, value))


# --- a user's mesh ---


def saved(mesh: TriangleMesh, path: Path) -> Path:
    import trimesh

    trimesh.Trimesh(1e3 * mesh.vertices, mesh.triangles, process=False).export(path)
    return path


@pytest.mark.slow
def test_a_users_liver_is_laid_on_its_back(tmp_path: Path) -> None:
    """A mesh in patient coordinates (left, back, head) comes to lie as ours does."""
    ours = liver(edge=0.008, seed=5)
    x, y, z = ours.vertices.T
    path = saved(TriangleMesh(np.stack([x, -z, y], axis=1), ours.triangles), tmp_path / "mine.stl")
    world = living(mesh=path)
    low, high = ours.bounds
    seen = world.snapshot().arrays["liver"]
    np.testing.assert_allclose(np.ptp(seen, axis=0), high - low, atol=1e-5)
    np.testing.assert_allclose(seen.min(axis=0)[2], 0.0, atol=1e-6)
    assert rest(world, 600)[-1] > 0.03


@pytest.mark.slow
def test_what_is_no_liver_still_becomes_an_organ_or_is_refused(tmp_path: Path) -> None:
    ball = living(mesh=saved(icosphere(0.05, 4), tmp_path / "ball.stl"))
    assert np.isfinite(rest(ball, 200)).all()
    bag = living(mesh=saved(gallbladder(edge=0.003), tmp_path / "bag.stl"))
    assert np.isfinite(rest(bag, 200)).all()
    open_ball = TriangleMesh(icosphere(0.05, 3).vertices, icosphere(0.05, 3).triangles[:-1])
    with pytest.raises(MeshError, match="closed"):
        living(mesh=saved(open_ball, tmp_path / "open.stl"))
