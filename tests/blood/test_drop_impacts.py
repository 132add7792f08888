"""Drops in flight and where they hit: drag, bounce, splash, sliding, against closed forms and a float64 reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera import anatomy
from viscera.blood.constants import AIR_DENSITY, BLOOD_DENSITY, BLOOD_VISCOSITY, SURFACE_TENSION
from viscera.blood.drops.drops import DropParams, Drops, make_drops, set_drops, step_drops
from viscera.blood.drops.impact import DRAG, SPLASHING
from viscera.blood.film.params import LITTLE, FilmParams
from viscera.blood.film.state import allocate_state
from viscera.blood.film.surface import FilmSurface, make_surface
from viscera.blood.views import FLYING, SLIDING
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh

DT = 0.016
FILM = FilmParams()
G = 9.81
VOLUME = FILM.little_volume
DIAMETER = (6.0 * FILM.particle_volume / math.pi) ** (1.0 / 3.0)


def plane(slope: float, size: float = 2.0) -> TriangleMesh:
    """A square that falls along x with this angle, in many triangles, so that what slides crosses edges."""
    line = np.linspace(-0.5 * size, 0.5 * size, 41)
    x, y = (axis.ravel() for axis in np.meshgrid(line, line, indexing="ij"))
    vertices = np.stack([x * math.cos(slope), y, -x * math.sin(slope)], axis=1)
    at = np.arange(41 * 41).reshape(41, 41)
    a, b, c, d = (part.ravel() for part in (at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return TriangleMesh(vertices, triangles.astype(np.int32), "plane")


class Air:
    """Drops over a surface; nothing else."""

    def __init__(
        self, surface: FilmSurface, capacity: int = 256, dt: float = DT, lists: bool | None = None, **params: Any
    ) -> None:
        self.device = surface.device
        state = allocate_state(4, 4, surface.device)
        given = {"joins": False, "box": 5.0, "highest": 5.0} | params
        self.drops = make_drops(surface, FILM, state, DropParams(**given), dt, capacity)
        self.drops.lists = self.drops.lists if lists is None else lists
        self.program = self.device.record(lambda stage: step_drops(stage, self.drops), work=1 if lists else capacity)

    def put(self, position: Any, velocity: Any, volume: int = VOLUME) -> Air:
        state = self.drops.state
        where, how = np.atleast_2d(position), np.atleast_2d(velocity)
        for array, values in ((state.position, where), (state.velocity, how)):
            full = np.zeros((state.capacity, 3), dtype=np.float32)
            full[: len(where)] = values
            array.assign(full)
        state.volume.fill_(volume)
        state.fluid.fill_(wp.vec4(1.0, 0.0, 0.0, 0.0))
        state.fate.zero_()
        state.late.zero_()
        state.count.fill_(len(where))
        return self

    def run(self, steps: int = 1) -> Drops:
        for _ in range(steps):
            self.program.run()
        self.device.synchronize()
        return self.drops

    def read(self, name: str) -> np.ndarray:
        state = self.drops.state
        return getattr(state, name).numpy()[: int(state.count.numpy()[0])].astype(np.float64)


@pytest.fixture(scope="module")
def level(device: Device) -> FilmSurface:
    return make_surface(plane(0.0), device)


@pytest.fixture(scope="module")
def tilted(device: Device) -> FilmSurface:
    return make_surface(plane(math.radians(20.0)), device)


def drag_of(diameter: float = DIAMETER) -> float:
    """k [1/m] = ¾ C ρ_air/(ρ D)."""
    return 0.75 * DRAG * AIR_DENSITY / (BLOOD_DENSITY * diameter)


def fine_flight(x: np.ndarray, v: np.ndarray, k: float, time: float, steps: int = 4_000) -> tuple[Any, Any]:
    """float64, Heun's rule in fine steps."""
    g, dt = np.array([0.0, 0.0, -G]), time / steps

    def pull(v: np.ndarray) -> np.ndarray:
        return g - k * np.linalg.norm(v, axis=1, keepdims=True) * v

    for _ in range(steps):
        a = pull(v)
        b = pull(v + dt * a)
        x, v = x + dt * v + 0.5 * dt * dt * a, v + 0.5 * dt * (a + b)
    return x, v


def middle_flight(x: np.ndarray, v: np.ndarray, k: float, dt: float, steps: int) -> tuple[Any, Any, np.ndarray]:
    """float64, the rule of `impact`: the acceleration at a step's middle. And, per drop, what a step leaves out of the
    place, ⅙ dt³ da/dt, and of the velocity times the time that is left, summed over the steps [m]."""
    g, left_out = np.array([0.0, 0.0, -G]), np.zeros(len(x))

    def pull(v: np.ndarray) -> np.ndarray:
        return g - k * np.linalg.norm(v, axis=1, keepdims=True) * v

    for number in range(steps):
        a, speed = pull(v), np.linalg.norm(v, axis=1)
        # |da/dt| ≤ 2k|v||a|; |d²a/dt²| ≤ 2k(2|a|² + |v| 2k|v||a|): of the velocity a step leaves out ⅙ dt³ of that.
        size = np.linalg.norm(a, axis=1)
        first, second = 2.0 * k * speed * size, 2.0 * k * (2.0 * size**2 + 2.0 * k * speed**2 * size)
        left_out += dt**3 / 6.0 * (first + second * dt * (steps - number))
        middle = v + 0.5 * dt * a
        x, v = x + dt * middle, v + dt * pull(middle)
    return x, v, left_out


def test_drag_in_flight_equals_its_rule_and_the_rule_the_fine_reference(level: FilmSurface) -> None:
    """Drops of 1 to 4 m/s for 0.16 s. The kernel is the rule in float32: at 2 m one place is 0.24 µm, ten steps of two
    roundings 5 µm. The rule is as near to the truth as its left-out terms say, some 0.1 mm, and half the step leaves a
    quarter of that."""
    rng = np.random.default_rng(1)
    v = rng.normal(size=(32, 3))
    v *= (rng.uniform(1.0, 4.0, 32) / np.linalg.norm(v, axis=1))[:, None]
    x = np.tile((0.0, 0.0, 2.0), (32, 1))
    air = Air(level).put(x, v)
    air.run(10)
    rule_x, rule_v, left_out = middle_flight(x, v, drag_of(), DT, 10)
    assert np.abs(air.read("position") - rule_x).max() < 5e-6
    assert np.abs(air.read("velocity") - rule_v).max() < 1e-5
    want, _ = fine_flight(x, v, drag_of(), 10 * DT)
    off = np.linalg.norm(rule_x - want, axis=1)
    assert (off < left_out).all()
    assert off.max() > 5e-5
    half = np.linalg.norm(middle_flight(x, v, drag_of(), 0.5 * DT, 20)[0] - want, axis=1)
    assert half.max() == pytest.approx(0.25 * off.max(), rel=0.1)


@pytest.mark.parametrize("speed", [1.5, 3.0])
def test_a_spurt_rises_as_high_as_its_speed_gives_less_drag(level: FilmSurface, speed: float) -> None:
    """h = ln(1 + k u²/g)/2k; the highest of the steps is at most g dt²/8 = 0.3 mm below the top of the flight."""
    air = Air(level, drag=1.0).put((0.0, 0.0, 0.5), (0.0, 0.0, speed))
    top = 0.0
    for _ in range(40):
        air.run()
        top = max(top, float(air.read("position")[0, 2]))
    k = drag_of()
    height = math.log(1.0 + k * speed**2 / G) / (2.0 * k)
    assert top - 0.5 == pytest.approx(height, abs=5e-4)
    assert height < 0.95 * speed**2 / (2.0 * G)


def stopping(slope: float, friction: float, hysteresis: float) -> float:
    """f [m/s²]: friction and what the contact line holds."""
    mass = BLOOD_DENSITY * VOLUME * LITTLE
    return friction * G * math.cos(slope) + 24.0 / math.pi**3 * SURFACE_TENSION * DIAMETER * hysteresis / mass


@pytest.mark.parametrize(("hysteresis", "uphill"), [(0.0, 1.0), (0.05, 1.0), (0.0, -1.0)])
def test_sliding_stops_where_the_inclined_plane_says(tilted: FilmSurface, hysteresis: float, uphill: float) -> None:
    """Down a slope of 20° with 0.5 m/s, v₀²/2(f − g sin θ) far; up it v₀²/2(f + g sin θ). μ = 0.6 > tan 20°, so it
    stays. The drop is put 0.1 µm over the surface and hits it with nothing: it loses nothing there."""
    slope, friction = math.radians(20.0), 0.6
    down = np.array([math.cos(slope), 0.0, -math.sin(slope)]) * uphill
    up = np.array([math.sin(slope), 0.0, math.cos(slope)])
    start = 0.013 * down + np.array([0.0, 0.003, 0.0])
    air = Air(tilted, friction=friction, hysteresis=hysteresis, drag=0.0, bounce_speed=9.0)
    # 1 mm/s into the surface, which costs μ times that.
    speed, press = 0.5, 1.0e-3
    air.put(start + 1e-7 * up, speed * down - press * up)
    air.run(40)
    assert air.read("fate")[0] == int(SLIDING)
    assert np.linalg.norm(air.read("velocity")[0]) == 0.0
    slows = stopping(slope, friction, hysteresis) - uphill * G * math.sin(slope)
    way = (air.read("position")[0] - start) @ down
    assert way == pytest.approx((speed - friction * press) ** 2 / (2.0 * slows), rel=5e-3)
    resting = air.read("position").copy()
    air.run(30)
    assert (air.read("position") == resting).all()


def test_on_a_steep_slope_a_drop_speeds_up_as_the_formula_says(device: Device) -> None:
    """45°, μ = 0.3: v = g (sin θ − μ cos θ) t, so after 0.16 s ½ a t² far; across 40 edges."""
    slope = math.radians(45.0)
    air = Air(make_surface(plane(slope, 1.0), device), hysteresis=0.0, drag=0.0)
    down = np.array([math.cos(slope), 0.0, -math.sin(slope)])
    air.put((0.0, 0.003, 1e-7), (0.0, 0.0, -1e-6))
    air.run(10)
    pull = G * (math.sin(slope) - 0.3 * math.cos(slope))
    assert (air.read("position")[0] @ down) == pytest.approx(0.5 * pull * (10 * DT) ** 2, rel=0.01)
    assert (air.read("velocity")[0] @ down) == pytest.approx(pull * 10 * DT, rel=0.01)


def test_drops_bounce_above_the_threshold_and_stay_below_it(level: FilmSurface) -> None:
    """ε and Coulomb's law of impact: v_t loses μ(1 + ε) v_n, and stops rather than turn round."""
    air = Air(level, drag=0.0, bounce_speed=1.0, restitution=0.25, friction=0.2, children=1)
    velocity = np.array([[0.5, 0.0, -0.95], [1.0, 0.0, -2.0], [0.3, 0.0, -2.0]])
    air.put([[0.0, 0.0, 1e-6], [0.1, 0.0, 1e-6], [0.2, 0.0, 1e-6]], velocity)
    air.run()
    fate, after = air.read("fate"), air.read("velocity")
    assert fate.tolist() == [int(SLIDING), int(FLYING), int(FLYING)]
    assert after[1] + [0.0, 0.0, G * DT] == pytest.approx([1.0 - 0.2 * 1.25 * 2.0, 0.0, 0.5], abs=1e-4)
    assert after[2] + [0.0, 0.0, G * DT] == pytest.approx([0.0, 0.0, 0.5], abs=1e-4)
    assert (air.read("position")[1:, 2] > 0.004).all()


def splash_speed(volume: int) -> float:
    """u_n at which We = K^1.6 Oh^0.4 (Mundo, Sommerfeld and Tropea 1995) [m/s]."""
    d = (6.0 * volume * LITTLE / math.pi) ** (1.0 / 3.0)
    oh = BLOOD_VISCOSITY / math.sqrt(BLOOD_DENSITY * SURFACE_TENSION * d)
    weber = SPLASHING**1.6 * oh**0.4
    speed = math.sqrt(weber * SURFACE_TENSION / (BLOOD_DENSITY * d))
    # The same as We^½ Re^¼ = K.
    reynolds = BLOOD_DENSITY * speed * d / BLOOD_VISCOSITY
    assert math.sqrt(weber) * reynolds**0.25 == pytest.approx(SPLASHING, rel=1e-9)
    return speed


@pytest.mark.parametrize("volume", [VOLUME, 8 * VOLUME + 3])
def test_a_drop_splashes_above_its_weber_number_and_keeps_mass_and_momentum(level: FilmSurface, volume: int) -> None:
    """Just below it bounces whole; just above four pieces leave with the bounce's momentum, to float32, and not a
    picolitre less."""
    threshold = splash_speed(volume)
    whole = Air(level, drag=0.0).put((0.0, 0.0, 1e-6), (0.7, 0.0, -0.99 * threshold), volume)
    whole.run()
    assert len(whole.read("fate")) == 1
    speed = 1.01 * threshold
    air = Air(level, drag=0.0).put((0.0, 0.0, 1e-6), (0.7, 0.0, -speed), volume)
    air.run()
    volumes, velocity = air.read("volume"), air.read("velocity")
    assert len(volumes) == 4
    assert int(volumes.sum()) == volume
    momentum = (volumes[:, None] * velocity).sum(axis=0) / volume
    bounce = np.array([max(0.7 - 0.3 * 1.2 * speed, 0.0), 0.0, 0.2 * speed])
    assert momentum == pytest.approx(bounce, abs=1e-5 * speed)
    sideways = np.linalg.norm((velocity - momentum)[:, :2], axis=1)
    assert (sideways > 0.24 * speed).all()
    assert (sideways < 0.51 * speed).all()
    assert (velocity**2).sum(axis=1).max() < 0.7**2 + speed**2


def test_a_splash_that_finds_no_room_bounces_whole(level: FilmSurface) -> None:
    """Room for 5 drops, two splash: one into four, the other stays one."""
    air = Air(level, capacity=5).put([[0.0, 0.0, 1e-6], [0.1, 0.0, 1e-6]], np.tile((0.0, 0.0, -6.0), (2, 1)))
    air.run()
    assert len(air.read("volume")) == 5
    assert int(air.read("volume").sum()) == 2 * VOLUME
    assert sorted(air.read("volume").astype(int).tolist())[-1] == VOLUME


def below(surface: anatomy.Sheet, mesh: TriangleMesh, where: np.ndarray) -> np.ndarray:
    """How far each place over the grid is below its mesh [m]: the height of its square's triangles, float64."""
    side = np.unique(np.round(mesh.vertices[: np.flatnonzero(mesh.vertices[:, 2] == 0.0)[0], 0], 9))
    other = np.unique(np.round(mesh.vertices[: np.flatnonzero(mesh.vertices[:, 2] == 0.0)[0], 1], 9))
    i = np.clip(np.searchsorted(side, where[:, 0]) - 1, 0, len(side) - 2)
    j = np.clip(np.searchsorted(other, where[:, 1]) - 1, 0, len(other) - 2)
    u = (where[:, 0] - side[i]) / (side[i + 1] - side[i])
    v = (where[:, 1] - other[j]) / (other[j + 1] - other[j])
    h = [surface.height(side[i + a], other[j + b]) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
    first = h[0] + u * (h[1] - h[0]) + v * (h[2] - h[1])
    second = h[0] + v * (h[3] - h[0]) + u * (h[2] - h[3])
    return np.where(u >= v, first, second) - where[:, 2]


def rain(device: Device, count: int, steps: int) -> float:
    """Drops of 0.1 to 30 m/s in all directions over and on a Perlin sheet, newborn ones among them; how far the lowest
    of all steps was below the mesh [m]."""
    sheet = anatomy.sheet(seed=3)
    surface = make_surface(sheet.mesh, device)
    air = Air(surface, capacity=2 * count, box=0.3)
    rng = np.random.default_rng(2)
    x = rng.uniform(-0.5, 0.5, (count, 2)) * (0.10, 0.075)
    deep = sheet.height(x[:, 0], x[:, 1])
    # Half of them begin within 0.1 mm of the surface.
    over = np.where(np.arange(count) % 2 == 0, 1e-4, rng.uniform(1e-4, 0.03, count))
    v = rng.normal(size=(count, 3))
    v *= (10.0 ** rng.uniform(-1.0, 1.5, count) / np.linalg.norm(v, axis=1))[:, None]
    here = np.concatenate([x, (deep + over)[:, None]], axis=1)
    outside = below(sheet, sheet.mesh, here) < -1e-5
    air.put(here[outside], v[outside])
    late = np.zeros(2 * count, dtype=np.float32)
    late[: outside.sum()] = rng.uniform(-DT, DT, outside.sum())
    air.drops.state.late.assign(late)
    lowest = -1.0
    for _ in range(steps):
        air.run()
        at = air.read("position")
        on_top = (np.abs(at[:, 0]) < 0.055) & (np.abs(at[:, 1]) < 0.042) & (at[:, 2] > 0.001)
        lowest = max(lowest, float(below(sheet, sheet.mesh, at[on_top]).max()))
    assert (air.read("fate") == int(SLIDING)).sum() > 0.1 * count
    return lowest


def test_no_drop_is_below_a_perlin_sheet_at_any_speed(device: Device) -> None:
    """200 000 drop-steps; float32 at 0.1 m, and a triangle of 2 mm: 2 µm."""
    assert rain(device, 10_000, 20) < 2e-6


def test_drops_that_are_listed_first_move_the_same(device: Device) -> None:
    """What cuda does, and one core can: drops that meet nothing fly first, the others are listed. Not a bit differs on
    cpu; compilers of cuda may join products and sums in other places: 1e-6 of 0.1 m and 10 m/s after one step."""
    sheet = anatomy.sheet(seed=3)
    surface = make_surface(sheet.mesh, device)
    rng, found = np.random.default_rng(5), []
    x = rng.uniform((-0.05, -0.035, 0.03), (0.05, 0.035, 0.08), (2000, 3))
    v = rng.normal(0.0, 2.0, (2000, 3))
    for lists in (False, True):
        air = Air(surface, capacity=8000, box=0.3, lists=lists).put(x, v)
        air.run()
        found.append([air.read(name) for name in ("position", "velocity", "volume", "fate")])
    assert len(found[0][0]) == len(found[1][0]) > 2000
    for one, other in zip(*found, strict=True):
        assert np.abs(one - other).max() <= (0.0 if not device.is_cuda else 1e-5)


@pytest.mark.slow
def test_no_drop_is_below_a_perlin_sheet_in_a_million_steps(device: Device) -> None:
    assert rain(device, 25_000, 60) < 2e-6


def test_numbers_that_cannot_be() -> None:
    wrongs: tuple[dict[str, Any], ...] = (
        {"restitution": 0.9, "scatter": 0.6},
        {"friction": -0.1},
        {"drag": 2.0},
        {"children": 0},
    )
    for wrong in wrongs:
        with pytest.raises(InputError):
            DropParams(**wrong)


# --- drops that feel each other --------------------------------------------------------------------------------------


def pair_force(r: np.ndarray, r0: float, energy: np.ndarray | float) -> np.ndarray:
    """Lennard-Jones with its patch and its end, float64, as `coupling` states it."""
    s = r / r0
    lennard = 12.0 / s * (s**-12.0 - s**-6.0)
    p = 0.9
    at, slope = 12.0 / p * (p**-12.0 - p**-6.0), 12.0 / p**2 * (7.0 * p**-6.0 - 13.0 * p**-12.0)
    fades = np.clip((2.5 - s) / 0.5, 0.0, 1.0)
    patched = at + slope * (s**3 / p**2 - p) / 3.0
    return energy / r0 * np.where(s < p, patched, lennard * fades**2 * (3.0 - 2.0 * fades))


def clump(count: int, seed: int, speed: float, height: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Drops about a diameter apart, high in the air, with random velocities."""
    rng = np.random.default_rng(seed)
    side = math.ceil(count ** (1.0 / 3.0))
    at = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    x = np.array([0.0, 0.0, height]) + DIAMETER * (at - 0.5 * side + 0.05 * rng.normal(size=(count, 3)))
    return x, speed * rng.normal(size=(count, 3))


def test_cohesion_equals_the_reference_and_keeps_momentum(level: FilmSurface) -> None:
    """One substep of 27 drops, some nearer than the patch begins: the velocities after it, to float32 at 5 cm."""
    x, v = clump(27, 5, 0.02, height=0.05)
    x[1] = x[0] + [0.3 * DIAMETER, 0.0, 0.0]
    params: dict[str, Any] = {"cohesion": 0.05, "cohesion_damping": 20.0, "drag": 0.0}
    dt = 1e-3
    air = Air(level, dt=dt, **params).put(x, v)
    air.run()
    away = x[:, None] - x[None]
    r = np.linalg.norm(away, axis=2) + np.eye(27)
    line = away / r[..., None]
    push = pair_force(r, DIAMETER, 0.5 * 0.05**2)
    slows = 20.0 * ((v[:, None] - v[None]) * line).sum(axis=2) * np.clip(1.0 - r / (2.5 * DIAMETER), 0.0, None)
    gained = ((push - slows) * (r < 2.5 * DIAMETER) * (1.0 - np.eye(27)))[..., None] * line
    want = v + dt * gained.sum(axis=1) + np.array([0.0, 0.0, -G * dt])
    found = air.read("velocity")
    assert np.abs(found - want).max() < 2e-4 * np.abs(want - v).max()
    assert np.abs(found.sum(axis=0) - want.sum(axis=0)).max() < 1e-5 * np.abs(found).sum()
    # Finite everywhere, also at one place.
    assert np.isfinite(pair_force(np.linspace(0.0, 3.0, 301) * DIAMETER + 1e-300, DIAMETER, 1.0)[1:]).all()
    same = Air(level, dt=dt, **params).put([[0.0, 0.0, 2.0]] * 2, np.zeros((2, 3)))
    same.run()
    apart = same.read("velocity")
    assert np.isfinite(apart).all()
    assert apart[0, 0] == pytest.approx(-apart[1, 0], rel=1e-6)
    assert apart[0, 0] > 0.0


def test_drops_that_hold_together_stay_together(level: FilmSurface) -> None:
    """27 drops, 2 cm/s at random, for 0.4 s in free fall: without cohesion half of them are beyond 8 mm, with it four
    in five stay within 1.5 times the farthest of the beginning (one or two may evaporate); momentum is what gravity
    alone gives."""
    spread = {}
    for cohesion in (0.0, 0.06):
        x, v = clump(27, 6, 0.02)
        air = Air(level, cohesion=cohesion, merge_speed=0.0 if cohesion else 1e-9, substeps=16, drag=0.0).put(x, v)
        air.run(25)
        at = air.read("position")
        far = np.linalg.norm(at - np.median(at, axis=0), axis=1)
        spread[cohesion] = float(np.quantile(far, 0.8 if cohesion else 0.5))
        drift = air.read("velocity").mean(axis=0) - v.mean(axis=0) + [0.0, 0.0, G * 25 * DT]
        assert np.abs(drift).max() < 1e-4
    began = float(np.linalg.norm(x - np.median(x, axis=0), axis=1).max())
    assert spread[0.0] > 8e-3
    assert spread[0.06] < 1.5 * began


def test_drops_that_touch_and_fly_alike_merge_with_volume_and_momentum(level: FilmSurface) -> None:
    """Pairs: one merges, one is too far apart, one too fast against each other, one too large together."""
    d = DIAMETER
    x = np.array([[0, 0, 0], [0.6 * d, 0, 0], [0.1, 0, 0], [0.1 + 1.2 * d, 0, 0], [0.2, 0, 0], [0.2 + 0.6 * d, 0, 0]])
    v = np.array([[0, 0, 0], [0.1, 0.2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0.9, 0, 0]], dtype=float)
    air = Air(level, merge_speed=0.5, drag=0.0).put(x + np.array([0.0, 0.0, 1.0]), v)
    volumes = np.full(256, VOLUME, dtype=np.int32)
    volumes[1] = 2 * VOLUME + 1
    air.drops.state.volume.assign(volumes)
    air.run()
    assert sorted(air.read("volume").astype(int).tolist()) == [*[VOLUME] * 4, 3 * VOLUME + 1]
    one = int(np.argmax(air.read("volume")))
    share = (2 * VOLUME + 1) / (3 * VOLUME + 1)
    assert air.read("velocity")[one] + [0.0, 0.0, G * DT] == pytest.approx(share * v[1], abs=1e-5)
    assert air.read("position")[one, 0] - DT * share * 0.1 == pytest.approx(share * 0.6 * d, abs=1e-6)
    tight = Air(level, merge_speed=0.5, largest_volume=1.5 * FILM.particle_volume, drag=0.0).put(x[:2] + 1.0, v[:2])
    tight.run()
    assert len(tight.read("volume")) == 2


def test_cohesion_that_a_step_cannot_hold_is_refused(level: FilmSurface) -> None:
    with pytest.raises(InputError, match="substeps"):
        Air(level, cohesion=1.0)
    strangers = Air(level).drops
    with pytest.raises(InputError, match="do not know each other"):
        set_drops(strangers, DropParams(merge_speed=1.0))
