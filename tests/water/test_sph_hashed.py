"""The hashed grid finds every neighbour once, and a fluid that searches by it is the same fluid, in every loop."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
import pytest
import warp as wp

from viscera.device import Device
from viscera.errors import InputError
from viscera.neighbors import grid as ng
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.neighbors.hashed import FEWEST_BUCKETS, PRIMES, bucket_count
from viscera.water.params import FluidParams
from viscera.water.sph import step_fluid
from viscera.water.state import check_fluid, make_fluid, particles, set_params
from viscera.water.walls import block

RADIUS = 0.1


@wp.kernel
def count_neighbours(
    first: int,
    grid: GridView,
    radius: float,
    position: wp.array(dtype=wp.vec3),
    original: wp.array(dtype=wp.int32),
    found_out: wp.array(dtype=wp.int32),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = position[s]
    cell = cell_of(grid, here)
    total = wp.int32(0)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            if wp.length(position[t] - here) < radius:
                total += 1
    found_out[original[s]] = total


@pytest.mark.parametrize("buckets", [None, FEWEST_BUCKETS], ids=["many", "few"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_every_neighbour_comes_once(device: Device, dimension: int, buckets: int | None) -> None:
    """On both sides of the origin, where truncation would go wrong; with few buckets, where cells share them; and far
    outside the box, which is only where cells are counted from."""
    x = np.random.default_rng(2).uniform(-0.5, 0.5, (600, 3)).astype(np.float32)
    x[400:] += np.array([300.0, -200.0, 100.0], dtype=np.float32)
    if dimension == 2:
        x[:, 2] = 0.0
    x[17] = np.nan
    box = ((-0.5,) * 3, (0.5,) * 3)
    params, state = ng.make_grid(len(x), *box, RADIUS, 3, device, search="hashed", buckets=buckets)
    if dimension == 2:
        state.view.rows, state.view.layer = 9, 0
    positions = wp.array(x, dtype=wp.vec3, device=device.warp)
    found = wp.zeros(len(x), dtype=wp.int32, device=device.warp)

    def both(stage) -> None:
        ng.build(stage, params, state, positions)
        stage.launch(count_neighbours, len(x), [state.view, RADIUS, state.position, state.original, found])

    program = device.record(both, work=len(x))
    for _ in range(2):  # a recorded build replays
        program.run()
    device.synchronize()
    apart = np.linalg.norm(x[:, None].astype(np.float64) - x[None], axis=-1)
    truth = (apart < RADIUS).sum(axis=1)
    assert truth.max() > 3
    # Pairs within rounding of the radius may go either way.
    unsure = (np.abs(apart - RADIUS) < 1e-6).any(axis=1)
    assert (found.numpy() == truth)[~unsure].all()
    assert unsure.sum() < 5
    assert found.numpy()[17] == 0
    assert list(ng.lost_particles(params, state)) == [17]


def test_cells_around_a_particle_never_share_a_bucket() -> None:
    """Δ·p ≢ 0 (mod N) for all Δ of up to two cells and all N that are allowed; half of the least would not do."""

    def shares(buckets: int) -> bool:
        steps = itertools.product(range(-2, 3), repeat=3)
        return any(any(d) and sum(i * p for i, p in zip(d, PRIMES, strict=True)) % buckets == 0 for d in steps)

    assert not any(shares(2**power) for power in range(5, 31))
    assert shares(FEWEST_BUCKETS // 2)
    for capacity in (0, 1, 16, 17, 1_000):
        found = bucket_count(capacity)
        assert found >= max(FEWEST_BUCKETS, 2 * capacity)
        assert found & (found - 1) == 0


CASES: dict[str, dict[str, Any]] = {
    "tait": {"viscosity": 0.05},
    "gas, Monaghan": {"equation": "gas", "alpha": 0.1, "beta": 0.1},
    "Müller's kernels": {"kernels": "muller", "viscosity": 0.05},
    "continuity, leap-frog": {"density": "continuity", "integrator": "leapfrog", "alpha": 0.1},
    "incompressible": {"equation": "incompressible", "iterations": 5},
    "colour": {"tension": "colour", "tension_coefficient": 0.05},
    "curvature": {"tension": "curvature", "tension_coefficient": 0.05},
    "pairwise": {"tension": "pairwise", "tension_coefficient": 0.05},
    "walls that drag": {"no_slip": True, "viscosity": 0.05},
    "periodic": {"periodic": (True, False, True), "viscosity": 0.05},
    "adaptive": {"adaptive": True},
}


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_a_hashed_fluid_is_the_sorted_fluid(device: Device, case: str, dimension: int) -> None:
    """Every loop over neighbours: the same particles after 20 steps, but for the order of sums in float32."""
    spacing, side = 0.01, 8
    random = np.random.default_rng(4)
    periodic = CASES[case].get("periodic", (False,) * 3)
    options: dict[str, Any] = CASES[case] | ({"periodic": (periodic[0], False, False)} if dimension == 2 else {})
    x = block((0.0,) * dimension, (side * spacing,) * dimension, spacing)
    x = x + random.uniform(-0.1 * spacing, 0.1 * spacing, x.shape)
    v = random.normal(0.0, 0.1, x.shape)
    upper = [side * spacing] * dimension
    floor = block((0.0, -3 * spacing, 0.0)[:dimension], (upper[0], 0.0, upper[0])[:dimension], spacing)
    if any(periodic):
        x = np.mod(x, side * spacing)
    results = []
    searches: tuple[ng.Search, ...] = ("sorted", "hashed")
    for search in searches:
        params = FluidParams(
            spacing=spacing, lower=(0.0,) * dimension, upper=tuple(upper), dt=5e-5, dimension=dimension,
            search=search, **options,
        )  # fmt: skip
        fluid = make_fluid(params, x, device, velocities=v, walls=floor if case == "walls that drag" else None)
        assert fluid.native == (search == "sorted" and not any(options.get("periodic", ())) and not device.is_cuda)
        program = device.record(lambda stage, fluid=fluid: step_fluid(stage, fluid))
        for _ in range(20):
            program.run()
        device.synchronize()
        check_fluid(fluid)
        results.append(particles(fluid))
    one, other = results
    np.testing.assert_array_equal(one["tag"], other["tag"])
    moved = np.abs(one["velocity"] - np.pad(v, ((0, 0), (0, 3 - dimension)))).max()
    assert moved > 1e-4
    np.testing.assert_allclose(other["position"], one["position"], atol=1e-4 * spacing)
    np.testing.assert_allclose(other["velocity"], one["velocity"], atol=2e-4 * max(moved, 0.1))
    np.testing.assert_allclose(other["density"], one["density"], rtol=1e-4)


def test_it_needs_no_box(cpu: Device) -> None:
    """Two blocks a kilometre apart: a box around them would have 10¹³ cells. Each falls as it would alone."""
    spacing = 0.01
    near = block((0.0,) * 3, (0.05,) * 3, spacing)
    params = FluidParams(spacing=spacing, lower=(0.0,) * 3, upper=(0.05,) * 3, dt=2e-5, search="hashed")
    fluid = make_fluid(params, np.concatenate([near, near + 1_000.0]), cpu)
    alone = make_fluid(params, near, cpu)
    for one in (fluid, alone):
        program = cpu.record(lambda stage, one=one: step_fluid(stage, one))
        for _ in range(10):
            program.run()
    cpu.synchronize()
    both, single = particles(fluid), particles(alone)
    np.testing.assert_allclose(both["velocity"][: len(near)], single["velocity"], atol=1e-6)
    assert both["density"].max() < 1.2 * params.rest_density


def test_what_a_hashed_grid_cannot_do_is_refused(cpu: Device) -> None:
    params = FluidParams(spacing=0.01, lower=(0.0,) * 3, upper=(0.05,) * 3, dt=2e-5, search="hashed")
    x = block((0.0,) * 3, (0.05,) * 3, 0.01)
    choices: list[dict[str, Any]] = [{"native": True}, {"team": 1}]
    for loops in choices:
        with pytest.raises(InputError, match="sorted cells") as refused:
            make_fluid(params, x, cpu, **loops)
        assert 'search="sorted"' in refused.value.hint
    with pytest.raises(InputError, match="'kd'"):
        FluidParams(spacing=0.01, lower=(0.0,) * 3, upper=(0.05,) * 3, dt=2e-5, search=cast(Any, "kd"))
    fluid = make_fluid(params, x, cpu)
    with pytest.raises(InputError, match="search cannot change"):
        set_params(fluid, FluidParams(spacing=0.01, lower=(0.0,) * 3, upper=(0.05,) * 3, dt=2e-5))
    box = ((0.0,) * 3, (0.05,) * 3, RADIUS, 3, cpu)
    with pytest.raises(InputError, match="search is 'kd'"):
        ng.make_grid(10, *box, search=cast(Any, "kd"))
    for buckets in (16, 48, 2**27):
        with pytest.raises(InputError, match="buckets"):
            ng.make_grid(10, *box, search="hashed", buckets=buckets)
