"""Walls that are mirrors: sums against images that are made one by one, and water that stands at one level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import mixed_reference as reference
import numpy as np
import pytest

from viscera import water
from viscera.bench._pair_counting import PairCounter
from viscera.device import Device
from viscera.errors import InputError
from viscera.scenarios._adaptive.pools import CONTACT, DENSITY, POOLS, filled_level, pool_params
from viscera.water.basin import Basin
from viscera.water.mirrors import Mirrors
from viscera.water.params import FluidParams
from viscera.water.sizes import Sizes
from viscera.water.sph import find_density, find_forces, find_pressure, sort
from viscera.water.state import Fluid, load, make_fluid

SPACING, SIDE = 0.01, 0.06
"""[m]"""
ORIGIN, CORNER = (0.0, 0.0, 0.0), (SIDE, SIDE, SIDE)
INSIDE, SPEED = 0.004, -0.3
"""Where the moving wall stands, and how fast it goes [m, m/s]."""


def stirred(device: Device, *, native: bool, **more: Any) -> Fluid:
    """Particles anywhere in a small box, so that most are at walls, in edges and in corners, with some speed."""
    wanted: dict[str, Any] = {"viscosity": 1.0, "equation": "gas", "gravity": (1.0, -2.0, -9.81)} | more
    params = FluidParams(
        spacing=SPACING, lower=(0.0,) * 3, upper=(SIDE,) * 3, dt=1e-5, sound_speed=5.0, suction=True, **wanted
    )
    rng = np.random.default_rng(8)
    x = rng.random((220, 3)) * (SIDE - INSIDE, SIDE, SIDE)
    fluid = make_fluid(params, x, device, velocities=rng.normal(0.0, 0.2, x.shape), native=native)
    if params.sizes is not None:
        load(fluid, water.save(fluid) | {"level": rng.integers(0, params.sizes.count, len(x))})
    basin = Basin(fluid, ORIGIN, CORNER, [0.0] * len(params.spacings))
    basin.move_wall(INSIDE, SPEED)
    fluid.boundaries += [basin, Mirrors(fluid, basin)]
    device.record(lambda stage: [one.before_step(stage, fluid) for one in fluid.boundaries]).run()
    return fluid


@dataclass(frozen=True)
class Images:
    """Particles and their images, the particles first."""

    x: np.ndarray
    v: np.ndarray
    who: np.ndarray
    turned: np.ndarray
    """Along which axes, (n, 3)."""


def images(x: np.ndarray, v: np.ndarray, reach: float) -> Images:
    """In every wall, edge and corner of the box; those beyond reach of it [m] are left out."""
    walls = [(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [(SIDE - INSIDE, SPEED), (SIDE, 0.0), (SIDE, 0.0)]
    found = []
    for sides in product((None, 0, 1), repeat=3):
        place, speed = x.copy(), v.copy()
        for axis, side in enumerate(sides):
            if side is not None:
                at, moving = walls[side][axis]
                place[:, axis], speed[:, axis] = 2.0 * at - x[:, axis], 2.0 * moving - v[:, axis]
        mirrored = np.tile([side is not None for side in sides], (len(x), 1))
        found.append((place, speed, np.arange(len(x)), mirrored))
    found.sort(key=lambda one: int(one[3].sum()))
    everyone = Images(*(np.concatenate(part) for part in zip(*found, strict=True)))
    near = ((everyone.x > -reach) & (everyone.x < SIDE + reach)).all(axis=1)
    return Images(everyone.x[near], everyone.v[near], everyone.who[near], everyone.turned[near])


CASES = [{}, {"sizes": Sizes(3, 2)}, {"sizes": Sizes(2, 3), "kernels": "muller"}]


@pytest.mark.parametrize("native", [False, True], ids=["plain", "native"])
@pytest.mark.parametrize("case", CASES, ids=["one size", "three sizes", "Müller"])
def test_sums_are_those_of_a_reference_with_images(device: Device, native: bool, case: dict[str, Any]) -> None:
    """In float64, each particle with each other and with all images of each."""
    if native and device.is_cuda:
        pytest.skip("loops in C are for cpu")
    fluid = stirred(device, native=native, **case)
    for part in (sort, find_density, find_pressure, find_forces):
        device.record(lambda stage, part=part: part(stage, fluid)).run()
    n, p = water.count(fluid), fluid.params
    x, v = fluid.grid.position.numpy()[:n].astype(float), fluid.held.numpy()[:n, :3].astype(float)
    level = fluid.extra["sorted_level"].numpy()[:n] if p.sizes is not None else np.zeros(n, dtype=int)
    everyone = images(x, v, p.radius)
    rho = reference.density(p, everyone.x, level[everyone.who])[:n]
    # Sums of up to two hundred terms in float32.
    np.testing.assert_allclose(fluid.density.numpy()[:n], rho, rtol=5e-5)
    pressure, down = fluid.pressure.numpy()[:n].astype(float), np.asarray(p.gravity)
    # What the wall adds to k_i + k_j by hydrostatic pressure is a force of its own, since it depends on the pair.
    a = reference.acceleration(
        p, everyone.x, everyone.v, level[everyone.who], rho[everyone.who], pressure[everyone.who]
    )[:n]
    a += deeper(p, x, everyone, level, down)
    assert np.abs(fluid.rate.numpy()[:n, :3] - a).max() < 2e-4 * np.abs(a).max()


def deeper(p: FluidParams, x: np.ndarray, everyone: Images, level: np.ndarray, down: np.ndarray) -> np.ndarray:
    """− Σ m g·(x_j' − x_i)_n/ρ₀ ∇W over images, whose slopes are finite differences."""
    offset = x[:, None] - everyone.x[None]
    r = np.linalg.norm(offset, axis=-1)
    h = np.sqrt(np.asarray(p.radii)[level][:, None] * np.asarray(p.radii)[level[everyone.who]][None])
    kernel = reference.smoothing.spiky if p.kernels == "muller" else reference.smoothing.spline
    inside = (r < h) & (r > 0.0)
    safe, step = np.where(inside, r, 0.5 * h), 1e-6 * h
    rise = reference._of_radius(kernel, safe + step, h, 3) - reference._of_radius(kernel, safe - step, h, 3)
    slope = np.where(inside, rise / (2.0 * step * safe), 0.0)
    extra = (-offset * everyone.turned[None]) @ down / p.rest_density
    mass = reference.masses(p, level[everyone.who])
    return -((mass[None] * extra * slope)[..., None] * offset).sum(axis=1)


def test_a_lattice_does_not_notice_its_walls(cpu: Device) -> None:
    """Half a spacing from all walls, without weight: density ρ₀ everywhere, and nobody is pushed."""
    params = FluidParams(spacing=SPACING, lower=(0.0,) * 3, upper=(SIDE,) * 3, dt=1e-5, sound_speed=5.0, equation="gas",
                         background=500.0, gravity=(0.0, 0.0, 0.0))  # fmt: skip
    x = water.block((0.0,) * 3, (SIDE,) * 3, SPACING)
    fluid = make_fluid(params, x - x.min(axis=0) + 0.5 * SPACING, cpu)
    basin = Basin(fluid, ORIGIN, CORNER, [0.3 * SPACING])
    fluid.boundaries += [basin, Mirrors(fluid, basin)]
    for part in (sort, find_density, find_pressure, find_forces):
        cpu.record(lambda stage, part=part: part(stage, fluid)).run()
    n = water.count(fluid)
    assert n == 6**3
    np.testing.assert_allclose(fluid.density.numpy()[:n], params.rest_density, rtol=1e-5)
    # One neighbour alone pushes with 2 p/ρ₀² m W', some 100 m/s².
    assert np.abs(fluid.rate.numpy()[:n, :3]).max() < 0.02


def test_walls_take_no_momentum_along_themselves(cpu: Device) -> None:
    """Of particles of three sizes on a floor, far from other walls: what they are pushed along it cancels."""
    params = FluidParams(
        spacing=SPACING, lower=(0.0,) * 3, upper=(0.2, 0.2, 0.2), dt=1e-5, sound_speed=5.0, viscosity=1.0,
        gravity=(0.0, 0.0, -9.81), equation="gas", suction=True, sizes=Sizes(3, 2),
    )  # fmt: skip
    rng = np.random.default_rng(2)
    x = rng.random((300, 3)) * (0.06, 0.06, 0.03) + (0.07, 0.07, 0.0)
    fluid = make_fluid(params, x, cpu, velocities=rng.normal(0.0, 0.2, x.shape))
    level = rng.integers(0, 3, len(x))
    load(fluid, water.save(fluid) | {"level": level})
    basin = Basin(fluid, ORIGIN, (0.2, 0.2, 0.2), [0.0] * 3)
    fluid.boundaries += [basin, Mirrors(fluid, basin)]
    for part in (sort, find_density, find_pressure, find_forces):
        cpu.record(lambda stage, part=part: part(stage, fluid)).run()
    mass = reference.masses(params, fluid.extra["sorted_level"].numpy()[: len(x)])
    pull = mass[:, None] * fluid.rate.numpy()[: len(x), :2].astype(float)
    assert np.abs(pull.sum(axis=0)).max() < 2e-6 * np.abs(pull).sum()


@dataclass(frozen=True)
class Still:
    """Means over the last second of small (0) and large water (1), a spacing and more from walls and the border."""

    depth: np.ndarray
    """Of its mass at ρ₀ [m]."""
    floor: np.ndarray
    """Pressure at the floor, from what particles above have and weigh [Pa]."""
    energy: float
    """Kinetic [J/kg]."""


def side_by_side(device: Device, walls: bool = True, seconds: float = 3.0) -> Still:
    """Water of two sizes in one tank, 0.24 m deep, small on the left: calmed for a third of the time."""
    box = (0.8, 0.3, 0.6)
    params = replace(pool_params(POOLS["waves"], "stiff", base=4_000), upper=box)
    s, rng = params.spacing, np.random.default_rng(4)
    places = filled_level(water.block((0.5 * s,) * 3, tuple(side - 0.5 * s for side in box), s), 1_150)
    left = places[:, 0] < 0.5 * box[0]
    way = rng.normal(size=(int(left.sum()), 3))
    way *= 0.3 * s / np.linalg.norm(way, axis=1, keepdims=True)
    x = np.concatenate([places[~left], places[left] + way, places[left] - way])
    x = np.clip(x, 0.3 * s, np.asarray(box) - 0.3 * s)
    fluid = water.make(params, x, capacity=len(x), device=device)
    load(fluid, water.save(fluid) | {"level": (np.arange(len(x)) >= (~left).sum()).astype(int)})
    basin = Basin(fluid, (0.0, 0.0, 0.0), box, [CONTACT["stiff"] * one for one in params.spacings])
    fluid.boundaries += [basin, Mirrors(fluid, basin)] if walls else [basin]
    program = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    frames, found = round(seconds / 0.016), []
    for frame in range(frames):
        program.run(round(0.016 / params.dt))
        if 3 * frame < frames:
            fluid.velocity.assign(0.9 * fluid.velocity.numpy())
        elif frame > frames - 60:
            found.append(water.particles(fluid) | {"pressure": pressures(fluid)})
    mass = params.mass * 0.5 ** found[0]["level"]
    depth, floor = np.zeros(2), np.zeros(2)
    for one, (low, high) in enumerate(((0.1, 0.3), (0.5, 0.7))):
        for state in found:
            p = state["position"].astype(float)
            inside = (p[:, 0] > low) & (p[:, 0] < high)
            depth[one] += depth_about(p[:, 0], mass, np.linspace(low, high, 9), s, box)
            middle = inside & (p[:, 2] > 1.5 * s) & (p[:, 2] < 0.15) & (np.abs(p[:, 1] - 0.5 * box[1]) < 2.0 * s)
            floor[one] += (state["pressure"] + state["density"] * 9.81 * p[:, 2])[middle].mean()
    last = found[-1]
    energy = 0.5 * (mass * (last["velocity"].astype(float) ** 2).sum(axis=1)).sum() / mass.sum()
    return Still(depth / len(found), floor / len(found), float(energy))


def depth_about(x: np.ndarray, mass: np.ndarray, at: np.ndarray, width: float, box: tuple[float, ...]) -> float:
    """Of water at places along x [m], each particle being spread over a width, since lattices have layers."""
    places = (x, -x, 2.0 * box[0] - x)
    share = sum(np.exp(-0.5 * ((at[:, None] - one[None]) / width) ** 2) for one in places)
    return float((share @ mass).mean() / (width * np.sqrt(2.0 * np.pi)) / DENSITY / box[1])


def pressures(fluid: Fluid) -> np.ndarray:
    """[Pa], of a gas, in the order of `water.particles`."""
    found = water.particles(fluid)["density"].astype(float)
    return np.maximum(fluid.params.sound_speed**2 * (found - fluid.params.rest_density), 0.0)


def test_water_of_two_sizes_stands_at_one_level(cpu: Device) -> None:
    """Side by side, through three seconds, where larger particles are 37 mm and smaller ones 29 mm."""
    still = side_by_side(cpu)
    spacing = pool_params(POOLS["waves"], "stiff", base=4_000).spacing
    assert abs(still.depth[1] - still.depth[0]) < 0.04 * spacing
    assert still.floor[1] == pytest.approx(still.floor[0], rel=0.02)
    assert still.energy < 1e-4


def level(device: Device, base: int, *, regular: bool, walls: bool = True) -> float:
    """Height of the middle of 12 kg of water in a box 0.25 m wide, once it rests [m]."""
    box = (0.25, 0.25, 0.5)
    params = replace(pool_params(POOLS["dambreak"], "stiff", regular=regular, base=base), upper=box)
    margin = 0.5 * params.spacing
    places = water.block((margin,) * 3, tuple(side - margin for side in box), params.spacing)
    places = places[np.argsort(places[:, 2], kind="stable")][: round(12.0 / params.mass)]
    fluid = water.make(params, places, capacity=len(places), device=device)
    basin = Basin(fluid, (0.0, 0.0, 0.0), box, [CONTACT["stiff"] * one for one in params.spacings])
    fluid.boundaries += [basin, Mirrors(fluid, basin)] if walls else [basin]
    program = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    for _ in range(60):
        program.run(round(0.016 / params.dt))
        fluid.velocity.assign(0.85 * fluid.velocity.numpy())
    return float(water.particles(fluid)["position"][:, 2].mean())


def test_water_stands_at_one_level_whatever_its_particles_are(cpu: Device) -> None:
    """12 kg on 0.0625 m² are 0.192 m deep, less 1.5 % by their own weight: the middle is at 0.095 m. Without walls that
    count it is at 62 to 70 mm."""
    few, many = (level(cpu, base, regular=True) for base in (4_000, 8_000))
    large = level(cpu, 8_000, regular=False)
    assert few == pytest.approx(0.095, abs=2e-3)
    assert many == pytest.approx(0.095, abs=2e-3)
    assert large == pytest.approx(many, abs=1.5e-3)
    assert level(cpu, 4_000, regular=True, walls=False) < many - 25e-3


def test_pairs_are_counted_with_those_of_images(cpu: Device) -> None:
    """What accuracy is paid with (bench/_pair_counting.py): the neighbours of each particle, itself and images among
    them, one by one."""
    fluid = stirred(cpu, native=True, sizes=Sizes(3, 2))
    cpu.record(lambda stage: sort(stage, fluid)).run()
    basin = fluid.boundaries[0]
    assert isinstance(basin, Basin)
    n, p = water.count(fluid), fluid.params
    x, level = fluid.grid.position.numpy()[:n].astype(float), fluid.extra["sorted_level"].numpy()[:n]
    everyone = images(x, np.zeros_like(x), p.radius)
    radii = np.asarray(p.radii)[level]
    reach = np.sqrt(radii[:, None] * radii[everyone.who][None])
    far = np.linalg.norm(x[:, None] - everyone.x[None], axis=-1)
    # Which of two walls is nearer decides in the middle of the box, where no image is near.
    assert PairCounter(fluid, basin).count() == int((far < reach).sum())


def test_mirrors_refuse_what_they_do_not_know(cpu: Device) -> None:
    params = FluidParams(spacing=0.01, lower=(0.0,) * 3, upper=(0.1,) * 3, dt=1e-5, alpha=0.1)
    fluid = make_fluid(params, np.full((1, 3), 0.05), cpu)
    with pytest.raises(InputError, match="artificial"):
        Mirrors(fluid, Basin(fluid, ORIGIN, (0.1, 0.1, 0.1), [0.0]))
