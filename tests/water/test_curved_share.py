"""Obstacles with density, and densities that all sizes read alike: closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from viscera import water
from viscera.device import Device
from viscera.errors import InputError
from viscera.scenarios._adaptive.pools import POOLS, pool_params
from viscera.water.basin import Basin, Obstacle
from viscera.water.boundary.volume_map import BEHIND, calibration_of, flat_share, flat_slope
from viscera.water.curved_share import CurvedShare
from viscera.water.params import FluidParams
from viscera.water.sizes import evening_table
from viscera.water.smoothing import lattice_sum

STIFF = pool_params(POOLS["dambreak"], "stiff")


FLAT = 10.0
"""Radius of balls that count as flat [m]: 30 000 times what floats round at it is a spacing."""


def ball_at(x: np.ndarray, distance: float, axis: int) -> Obstacle:
    """A ball that a place has at this distance below it along an axis."""
    return Obstacle(tuple(x - (FLAT + distance) * np.eye(3)[axis]), FLAT)


def alone(
    params: FluidParams, places: np.ndarray, obstacles: list[Obstacle], device: Device
) -> tuple[water.Fluid, CurvedShare]:
    """Particles too far from each other to meet, in a box of 1 m."""
    fluid = water.make(params, places, capacity=len(places), device=device)
    basin = Basin(fluid, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), [0.0] * len(params.spacings), obstacles)
    return fluid, CurvedShare(fluid, basin)


def test_the_share_of_a_pillar_is_the_integral_over_what_lies_behind_it(cpu: Device) -> None:
    """λ and ∇λ by closed form against the sum over shells of the kernel, 2 000 of them."""
    params = replace(STIFF, upper=(1.0, 1.0, 1.0), sizes=None)
    away = np.array([0.001, 0.01, 0.02, 0.03, 0.045])
    places = np.stack([away, 0.5 + 0.0 * away, 0.1 + 0.2 * np.arange(5)], axis=1)
    fluid, share = alone(params, places, [Obstacle((-FLAT, 0.5, 0.0), FLAT, pillar=True)], cpu)
    fluid.boundaries.append(share)
    cpu.record(lambda stage: water.step(stage, fluid)).run()
    s, h = params.spacing, params.radius
    own = params.mass * lattice_sum("spline", h, 10.0 * h, 3)
    found = fluid.density.numpy()
    slopes = share._share.numpy()
    for k, tag in enumerate(fluid.sorted_tag.numpy()):
        distance = float(away[tag]) + BEHIND * s
        amount = params.rest_density * calibration_of(s, h)
        assert found[k] - own == pytest.approx(amount * flat_share(distance, h), rel=2e-4, abs=1e-3)
        assert slopes[k, 0] == pytest.approx(amount * flat_slope(distance, h), rel=2e-4, abs=1e-2)


def lattice_lacks(walls: int, spacing: float, radius: float) -> float:
    """Share of a spline's sum over a lattice that lies behind so many walls, half a spacing from each."""
    reach = int(np.ceil(radius / spacing))
    x = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 3, indexing="ij"), axis=-1)
    q = np.linalg.norm(x, axis=-1) * spacing / radius
    weight = np.maximum(1.0 - q, 0.0) ** 3 - 4.0 * np.maximum(0.5 - q, 0.0) ** 3
    return float(weight[(x[..., :walls] < 0).any(axis=-1)].sum() / weight.sum())


@pytest.mark.parametrize("walls", [1, 2, 3])
def test_where_obstacles_meet_nothing_behind_them_counts_twice(cpu: Device, walls: int) -> None:
    """At a face, in an edge and in a corner a lattice sums to ρ₀ within 1 %: what it lacks is the walls' share. A sum
    of their shares is 3 % too much in an edge and 8 % in a corner."""
    params = replace(STIFF, upper=(1.0, 1.0, 1.0), sizes=None)
    s, h = params.spacing, params.radius
    place = np.full(3, 0.5)
    fluid, share = alone(params, place[None], [ball_at(place, 0.5 * s, axis) for axis in range(walls)], cpu)
    fluid.boundaries.append(share)
    cpu.record(lambda stage: water.step(stage, fluid)).run()
    found = float(share._share.numpy()[0, 3]) / params.rest_density
    assert found == pytest.approx(lattice_lacks(walls, s, h), abs=0.01)


def test_the_push_of_obstacles_that_meet_is_the_slope_of_their_share(cpu: Device) -> None:
    """∇Λ against differences of Λ in a corner."""
    params = replace(STIFF, upper=(1.0, 1.0, 1.0), sizes=None)
    s, step = params.spacing, 1e-3 * params.spacing
    middle = np.full(3, 0.5)
    balls = [ball_at(middle, far * s, axis) for axis, far in enumerate((0.5, 0.7, 0.9))]
    fluid, share = alone(params, middle[None], balls, cpu)
    fluid.boundaries.append(share)
    program = cpu.record(lambda stage: water.step(stage, fluid))

    def found(place: np.ndarray) -> np.ndarray:
        fluid.position.assign(place[None].astype(np.float32))
        program.run()
        return share._share.numpy()[0].astype(float)

    slope = found(middle)[:3]
    for axis in range(3):
        aside = step * np.eye(3)[axis]
        rise = (found(middle + aside) - found(middle - aside))[3] / (2.0 * step)
        assert slope[axis] == pytest.approx(rise, rel=2e-2)


def test_all_sizes_read_the_density_of_the_smallest() -> None:
    """On lattices of the same true density, at rest and compressed by up to a tenth: within 0.1 %."""
    assert STIFF.sizes is not None
    table = evening_table(STIFF)
    np.testing.assert_array_equal(table[1], (1.0, 0.0))
    assert evening_table(pool_params(POOLS["dambreak"], "document")).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    for compressed in (1.0, 1.03, 1.06, 1.1):
        small = STIFF.spacings[1] * compressed ** (-1.0 / 3.0)
        read = 0.5 * STIFF.mass * lattice_sum("spline", STIFF.radii[1], small, 3)
        large = STIFF.mass * lattice_sum("spline", STIFF.radii[0], small * 2.0 ** (1.0 / 3.0), 3)
        assert float(table[0, 0]) * large + float(table[0, 1]) == pytest.approx(read, rel=1e-3)


def test_obstacles_refuse_kernels_that_they_do_not_know(cpu: Device) -> None:
    params = replace(pool_params(POOLS["dambreak"], "document"), upper=(1.0, 1.0, 1.0))
    with pytest.raises(InputError, match="spline"):
        alone(params, np.array([[0.5, 0.5, 0.5]]), [], cpu)
