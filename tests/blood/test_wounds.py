"""Wounds against the laws they follow: pressure, opening, pulse, sealing, clotting; and volume to the last pL."""

from __future__ import annotations

import math

import numpy as np
import pytest

from viscera.blood.film.params import LITTLE, FilmParams
from viscera.blood.film.state import FilmState, allocate_state
from viscera.blood.film.surface import FilmSurface, make_surface
from viscera.blood.views import make_drop_arrays
from viscera.blood.wounds.vessels import BLOOD_DENSITY, DISCHARGE, VESSELS, VesselParams, flow_rate, vessel_mmhg
from viscera.blood.wounds.wounds import (
    CAPACITY,
    TORN_OFF,
    WoundParams,
    Wounds,
    add_wound,
    find_texels,
    make_wounds,
    set_clip,
    set_opening,
    set_vessel,
    step_cautery,
    step_wounds,
)
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry import icosphere
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.skin import Skin, make_skin
from viscera.units import MMHG

RADIUS = 0.05
DT = 0.016
TOP = (0.0, 0.0, RADIUS)


@pytest.fixture(scope="module")
def surface(device: Device) -> FilmSurface:
    return make_surface(icosphere(RADIUS, 3), device)


def bleeding(surface: FilmSurface, queue: int = 4096, seal_radius: float = 2e-3) -> tuple[Wounds, FilmState]:
    film = FilmParams()
    state = allocate_state(65536, queue, surface.device)
    return make_wounds(surface, film, state, WoundParams(clot_time=0.0, seal_radius=seal_radius), DT), state


def run(wounds: Wounds, state: FilmState, steps: int, pulse: float = 0.0, outside: float = 0.0) -> int:
    """Steps with an emptied queue each time; how many particles came."""
    device = wounds.surface.device
    program = device.record(lambda stage: step_wounds(stage, wounds), work=1)
    came = 0
    wounds.drive.host[:] = pulse, outside
    for _ in range(steps):
        program.run()
        device.synchronize()
        came += int(state.queue.count.numpy()[0])
        state.queue.count.zero_()
    return came


def test_flow_has_both_limits_and_solves_its_equation() -> None:
    """Without a feeding length C A √(2Δp/ρ); through a wide hole Poiseuille's Δp/R; between them Δp = RQ + KQ²."""
    drop, opening = 90.0 * MMHG, 0.4e-3
    free = VesselParams(drop, drop, 1e-3)
    area = math.pi * opening**2
    assert flow_rate(free, opening) == pytest.approx(DISCHARGE * area * math.sqrt(2 * drop / BLOOD_DENSITY), rel=1e-14)
    narrow = VesselParams(drop, drop, 0.05e-3, 0.2)
    assert flow_rate(narrow, 0.05) == pytest.approx(drop / narrow.resistance, rel=1e-9)
    both = VESSELS["artery"]
    rate = flow_rate(both, opening)
    k = both.density / (2 * (DISCHARGE * area) ** 2)
    assert both.resistance * rate + k * rate**2 == pytest.approx(both.diastolic, rel=1e-12)


@pytest.mark.parametrize("opening", [0.1e-3, 0.2e-3, 0.4e-3])
@pytest.mark.parametrize("pressure", [10.0, 40.0, 160.0])
def test_volume_follows_pressure_and_opening(surface: FilmSurface, opening: float, pressure: float) -> None:
    """Particles that came, times their volume, are ∫Q dt to within one particle: the rest is owed."""
    wounds, state = bleeding(surface)
    vessel = vessel_mmhg(pressure, pressure, 2.0)
    add_wound(wounds, TOP, vessel, opening)
    came, steps = run(wounds, state, 40), 40
    expected = flow_rate(vessel, opening) * steps * DT
    volume = wounds.film.particle_volume
    assert wounds.view.rate.numpy()[0] == pytest.approx(flow_rate(vessel, opening), rel=1e-12)
    assert 0.0 <= expected - came * volume < volume
    assert int(wounds.view.given.numpy()[0]) == came * wounds.film.little_volume
    assert LITTLE * wounds.view.owed.numpy()[0] == pytest.approx(expected - came * volume, abs=1e-6 * volume)


def test_pulse_beats_and_the_cavity_pushes_back(surface: FilmSurface) -> None:
    """An orifice's flow goes with √Δp: 120 against 80 mmHg is √1.5. Gas at 12 mmHg stops a vein of 8."""
    wounds, state = bleeding(surface)
    add_wound(wounds, TOP, vessel_mmhg(120.0, 80.0, 2.0), 0.2e-3)
    add_wound(wounds, (0.0, RADIUS, 0.0), vessel_mmhg(8.0, 8.0, 4.0), 0.5e-3)
    run(wounds, state, 1, pulse=0.0)
    low = wounds.view.rate.numpy()[:2].copy()
    run(wounds, state, 1, pulse=1.0)
    assert wounds.view.rate.numpy()[0] / low[0] == pytest.approx(math.sqrt(1.5), rel=1e-12)
    run(wounds, state, 1, outside=12.0 * MMHG)
    assert wounds.view.rate.numpy()[1] == 0.0
    assert wounds.view.rate.numpy()[0] / low[0] == pytest.approx(math.sqrt(68.0 / 80.0), rel=1e-12)


def test_blood_wells_up_around_the_wound(surface: FilmSurface) -> None:
    """Within the disc it is spread over, on the wound's own triangle, no two particles at one place."""
    wounds, state = bleeding(surface)
    add_wound(wounds, TOP, VESSELS["artery"], 0.4e-3)
    device = surface.device
    device.record(lambda stage: step_wounds(stage, wounds), work=1).run()
    count = int(state.queue.count.numpy()[0])
    face, weights = state.queue.face.numpy()[:count], state.queue.barycentric.numpy()[:count]
    corners = surface.vertices.numpy()[surface.view.triangles.numpy()[face]]
    at = corners[:, 0] + weights[:, :1] * (corners[:, 1] - corners[:, 0])
    at += weights[:, 1:] * (corners[:, 2] - corners[:, 0])
    assert count > 50
    assert (face == face[0]).all()
    assert (weights >= 0).all()
    assert (weights.sum(axis=1) <= 1 + 1e-6).all()
    assert len(np.unique(weights, axis=0)) == count
    # As wide as the particles need at rest, at most half the side of a square of the triangle's area. The wound
    # is near a corner here, so places beyond it are mirrored into the triangle.
    area = 0.5 * np.linalg.norm(np.cross(corners[0, 1] - corners[0, 0], corners[0, 2] - corners[0, 0]))
    need = math.sqrt(wounds.film.radius**2 / (6.0 * 3.0) * count)
    wide = min(max(need, wounds.params.spread), 0.5 * math.sqrt(area))
    assert 0.7 * wide < np.linalg.norm(at - at.mean(axis=0), axis=1).max() < 1.5 * wide
    assert (state.queue.fluid.numpy()[:count] == (1.0, 0.0, 0.0, 0.0)).all()


def test_a_full_queue_keeps_blood_in_the_vessel(surface: FilmSurface) -> None:
    wounds, state = bleeding(surface, queue=8)
    add_wound(wounds, TOP, VESSELS["artery"], 0.4e-3)
    device = surface.device
    program = device.record(lambda stage: step_wounds(stage, wounds), work=1)
    for _ in range(5):
        program.run()
    device.synchronize()
    assert int(state.queue.count.numpy()[0]) == 8
    assert int(wounds.view.given.numpy()[0]) == 8 * wounds.film.little_volume
    expected = 5 * DT * flow_rate(VESSELS["artery"], 0.4e-3) / LITTLE - 8 * wounds.film.little_volume
    assert wounds.view.owed.numpy()[0] == pytest.approx(expected, rel=1e-12)
    assert wounds.view.held.numpy()[0] > 0


def test_arteries_spurt_and_veins_well_up(surface: FilmSurface) -> None:
    """We = ρu²2a/σ: 80 mmHg through 0.8 mm is about 8 000, above 4; 0.05 mmHg is about 2.5."""
    film = FilmParams()
    state = allocate_state(4096, 4096, surface.device)
    drops = make_drop_arrays(4096, surface.device)
    wounds = make_wounds(surface, film, state, WoundParams(clot_time=0.0), DT, drops)
    add_wound(wounds, TOP, vessel_mmhg(80.0, 80.0, 2.0), 0.4e-3)
    add_wound(wounds, (0.0, RADIUS, 0.0), vessel_mmhg(0.05, 0.05, 4.0), 1.0e-3)
    program = surface.device.record(lambda stage: step_wounds(stage, wounds), work=1)
    for _ in range(3):
        program.run()
    surface.device.synchronize()
    air, film_queue = int(drops.count.numpy()[0]), int(state.queue.count.numpy()[0])
    given = wounds.view.given.numpy()[:2] // film.little_volume
    assert air == given[0] > 0
    assert film_queue == given[1] > 0
    speed = drops.velocity.numpy()[:air] @ (0.0, 0.0, 1.0)
    expected = flow_rate(vessel_mmhg(80.0, 80.0, 2.0), 0.4e-3) / (math.pi * 0.4e-3**2)
    assert speed == pytest.approx(expected, rel=0.01)  # the triangle at the pole is not quite level
    assert (np.linalg.norm(drops.position.numpy()[:air], axis=1) > 0.999 * RADIUS).all()


def test_a_clip_stops_it_and_can_be_taken_off(surface: FilmSurface) -> None:
    wounds, state = bleeding(surface)
    add_wound(wounds, TOP, VESSELS["artery"], 0.2e-3)
    assert run(wounds, state, 10) > 0
    set_clip(wounds, 0)
    assert run(wounds, state, 10) == 0
    assert wounds.view.rate.numpy()[0] == 0.0
    set_clip(wounds, 0, closed=False)
    assert run(wounds, state, 10) > 0
    set_opening(wounds, 0, 0.0)
    assert run(wounds, state, 10) == 0


def test_a_sealed_vessel_owes_nothing(surface: FilmSurface) -> None:
    """A full film has kept blood back: it is behind the clip, and does not come when there is room again. What has been
    given stays given."""
    wounds, state = bleeding(surface, queue=8)
    add_wound(wounds, TOP, VESSELS["artery"], 0.4e-3)
    program = surface.device.record(lambda stage: step_wounds(stage, wounds), work=1)
    for _ in range(5):
        program.run()
    surface.device.synchronize()
    given = int(wounds.view.given.numpy()[0])
    assert wounds.view.owed.numpy()[0] > 100 * wounds.film.little_volume
    set_clip(wounds, 0)
    state.queue.count.zero_()
    assert run(wounds, state, 3) == 0
    assert wounds.view.owed.numpy()[0] == 0.0
    assert wounds.view.held.numpy()[0] == 0
    assert int(wounds.view.given.numpy()[0]) == given


def test_no_more_waits_than_the_film_can_take(surface: FilmSurface) -> None:
    film = FilmParams()
    state = allocate_state(40, 4096, surface.device)
    state.count.fill_(30)
    wounds = make_wounds(surface, film, state, WoundParams(clot_time=0.0), DT)
    add_wound(wounds, TOP, VESSELS["artery"], 0.4e-3)
    surface.device.record(lambda stage: step_wounds(stage, wounds), work=1).run()
    surface.device.synchronize()
    assert int(state.queue.count.numpy()[0]) == 10


def test_bile_leaks_without_clotting(surface: FilmSurface) -> None:
    state = allocate_state(4096, 4096, surface.device)
    wounds = make_wounds(surface, FilmParams(), state, WoundParams(clot_time=2.0), DT)
    add_wound(wounds, TOP, vessel_mmhg(10.0, 10.0, 2.0), 0.2e-3, "bile")
    assert run(wounds, state, 20) > 0
    assert (state.queue.fluid.numpy()[0] == FilmParams().pure("bile")).all()
    assert wounds.view.clot.numpy()[0] == 0.0
    twice = vessel_mmhg(40.0, 40.0, 2.0)
    set_vessel(wounds, 0, twice)
    run(wounds, state, 1)
    assert wounds.view.rate.numpy()[0] == pytest.approx(flow_rate(twice, 0.2e-3), rel=1e-12)


@pytest.fixture(scope="module")
def ball(device: Device, tmp_path_factory: pytest.TempPathFactory) -> Skin:
    mesh = icosphere(RADIUS, 3)
    atlas = unique_atlas(mesh, AtlasSettings(128), tmp_path_factory.mktemp("atlases"))
    return make_skin(mesh, atlas, 128, device=device)


def test_cautery_seals_where_it_is_done(ball: Skin) -> None:
    """The mean over the texels within `seal_radius` decides; 0.5 is not enough, 0.7 is, elsewhere does nothing; what is
    burnt stays shut when the clip is off."""
    import warp as wp

    surface = make_surface(ball, ball.device)
    wounds, state = bleeding(surface, seal_radius=4e-3)
    add_wound(wounds, TOP, VESSELS["artery"], 0.2e-3)
    add_wound(wounds, (0.0, 0.0, -RADIUS), VESSELS["artery"], 0.2e-3)
    find_texels(wounds, ball)
    size = ball.width * ball.height
    coagulated = wp.zeros(size, dtype=wp.float32, device=ball.device.warp)
    program = ball.device.record(lambda stage: step_cautery(stage, wounds, coagulated), work=1)
    at = ball.position.numpy()
    near = (np.linalg.norm(at - TOP, axis=1) < 4e-3) & (ball.coverage.numpy() > 0)
    assert near.sum() > 8

    def burn(where: np.ndarray, much: float) -> list[int]:
        values = np.zeros(size, dtype=np.float32)
        values[where] = much
        coagulated.assign(values)
        program.run()
        ball.device.synchronize()
        return wounds.view.sealed.numpy()[:2].tolist()

    assert burn(~near & (at[:, 2] > 0), 1.0) == [0, 0]
    assert burn(near, 0.5) == [0, 0]
    assert burn(near & (at[:, 0] > 0), 2.0) == [0, 0]  # black on one side does not make up for the other
    assert burn(near, 0.7) == [2, 0]
    assert burn(near, 0.0) == [2, 0]
    set_clip(wounds, 0)
    set_clip(wounds, 0, closed=False)
    run(wounds, state, 2)
    rate = wounds.view.rate.numpy()
    assert rate[0] == 0.0
    assert rate[1] > 0.0


def test_a_small_wound_clots_and_a_large_one_hardly(surface: FilmSurface) -> None:
    """dc/dt = (1 − c)/(T (1 + γ/γ₀)), against the same equation in Python float64 with the same steps."""
    film, params = FilmParams(), WoundParams(clot_time=2.0)
    state = allocate_state(65536, 65536, surface.device)
    wounds = make_wounds(surface, film, state, params, DT)
    vessels = [vessel_mmhg(25.0, 25.0, 0.1, 40.0), vessel_mmhg(100.0, 100.0, 2.0)]
    openings = [0.05e-3, 0.3e-3]
    add_wound(wounds, TOP, vessels[0], openings[0])
    add_wound(wounds, (0.0, RADIUS, 0.0), vessels[1], openings[1])
    steps = 250
    run(wounds, state, steps)
    expected = []
    for vessel, opening in zip(vessels, openings, strict=True):
        c = 0.0
        for _ in range(steps):
            radius = opening * (1.0 - c)
            shear = 4.0 * flow_rate(vessel, radius) / (math.pi * radius**3)
            c += (1.0 - c) * -math.expm1(-DT / (params.clot_time * (1.0 + shear / TORN_OFF)))
        expected.append(c)
    clot = wounds.view.clot.numpy()[:2]
    assert clot == pytest.approx(expected, rel=1e-9)
    assert clot[0] > 0.4
    assert clot[1] < 0.2
    assert (clot < -np.expm1(-steps * DT / params.clot_time)).all()


def test_same_seed_same_blood(surface: FilmSurface) -> None:
    places = []
    for _ in range(2):
        wounds, state = bleeding(surface)
        add_wound(wounds, TOP, VESSELS["artery"], 0.3e-3)
        surface.device.record(lambda stage, w=wounds: step_wounds(stage, w), work=1).run()
        surface.device.synchronize()
        places.append(state.queue.barycentric.numpy().copy())
    assert (places[0] == places[1]).all()
    assert places[0].any()


def test_a_step_of_no_time_gives_nothing(surface: FilmSurface) -> None:
    state = allocate_state(16, 64, surface.device)
    wounds = make_wounds(surface, FilmParams(), state, dt=0.0)
    add_wound(wounds, TOP, VESSELS["artery"], 0.3e-3)
    assert run(wounds, state, 5) == 0
    assert wounds.view.owed.numpy()[0] == 0.0
    assert wounds.view.clot.numpy()[0] == 0.0


@pytest.mark.parametrize(
    ("point", "opening", "message"),
    [
        ((0.0, 0.0, RADIUS + 0.0123), 1e-3, "12.3 mm from the surface"),
        ((0.0, 0.0, 0.0), 1e-3, "mm from the surface"),
        ((math.nan, 0.0, 0.0), 1e-3, "point"),
        (TOP, 0.0, "opening"),
        (TOP, math.nan, "opening"),
        (TOP, -1e-3, "opening"),
        (TOP, 0.5, "500 mm is wider than the vessel, whose radius is 1 mm"),
    ],
)
def test_wounds_that_cannot_be(surface: FilmSurface, point: tuple[float, ...], opening: float, message: str) -> None:
    wounds, _ = bleeding(surface)
    with pytest.raises(InputError, match=message):
        add_wound(wounds, point, VESSELS["artery"], opening)
    assert wounds.count == 0


def test_openings_stay_within_their_vessel(surface: FilmSurface) -> None:
    """Also later; and a full list of wounds says so, as nothing takes a wound away."""
    wounds, _ = bleeding(surface)
    add_wound(wounds, TOP, VESSELS["artery"], VESSELS["artery"].radius)
    with pytest.raises(InputError, match="wider than the vessel"):
        set_opening(wounds, 0, 1.1e-3)
    with pytest.raises(InputError, match="wider than the vessel"):
        set_vessel(wounds, 0, VESSELS["arteriole"])
    assert wounds.vessels[0] is VESSELS["artery"]
    wounds.vessels = [VESSELS["artery"]] * CAPACITY
    with pytest.raises(InputError, match="64 wounds") as refused:
        add_wound(wounds, TOP, VESSELS["artery"], 1e-4)
    assert "make_wounds" in str(refused.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: vessel_mmhg(80.0, 120.0, 2.0),
        lambda: vessel_mmhg(math.nan, 80.0, 2.0),
        lambda: vessel_mmhg(120.0, 80.0, 0.0),
        lambda: vessel_mmhg(120.0, 80.0, 50.0),
        lambda: VesselParams(1e4, 1e4, 1e-3, viscosity=0.0),
        lambda: VesselParams(1e4, 1e4, 1e-3, viscosity=-1.0),
        lambda: WoundParams(seal_fraction=1.5),
        lambda: WoundParams(clot_time=-1.0),
        lambda: flow_rate(VESSELS["vein"], -1e-3),
    ],
)
def test_numbers_that_cannot_be(make) -> None:
    with pytest.raises(InputError):
        make()
