"""The neighbour grid against brute force in float64, on every device and with both orderings."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import warp as wp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from viscera.device import Device, Stage, open_device
from viscera.errors import InputError, StateError
from viscera.neighbors import grid as ng
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count

wp.set_module_options({"enable_backward": False})

ORDERINGS: tuple[ng.Ordering, ...] = ("serial", "parallel")
VECTORS = {2: wp.vec2, 3: wp.vec3}

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@wp.kernel
def visit(
    grid: GridView,
    points: wp.array[Any],
    original: wp.array(dtype=wp.int32),
    visits_out: wp.array2d(dtype=wp.int32),
):
    """How often each particle comes up around each point, before any test of the distance."""
    p = wp.tid()
    cell = cell_of(grid, points[p])
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            i = original[t]
            visits_out[p, i] = visits_out[p, i] + 1


@wp.kernel
def add_up(first: int, grid: GridView, radius: float, position: wp.array[Any], sum_out: wp.array(dtype=float)):
    """The loop that the documentation shows; its float sum depends on the order of the neighbours."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = position[s]
    cell = cell_of(grid, here)
    total = wp.float32(0.0)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            offset = position[t] - here
            if wp.dot(offset, offset) < radius * radius:
                total += radius - wp.length(offset)
    sum_out[s] = total


for _vector in VECTORS.values():
    wp.overload(visit, {"points": wp.array(dtype=_vector)})
    wp.overload(add_up, {"position": wp.array(dtype=_vector)})


class ShuffledStage(Stage):
    """Runs the threads of every launch in another order."""

    def __init__(self, device: Device, seed: int) -> None:
        super().__init__(device, 0, 1, None)
        self.random = np.random.default_rng(seed)

    def launch(self, kernel: Any, count: int, args: Sequence[Any], block: int = 16) -> None:
        for first in self.random.permutation(np.arange(0, count, block)):
            size = min(block, count - int(first))
            wp.launch(kernel, dim=size, inputs=[int(first), *args], device=self.device.warp)


def now(device: Device) -> Stage:
    return Stage(device, 0, 1, None)


def upload(points: np.ndarray, device: Device) -> wp.array:
    return wp.array(points, dtype=VECTORS[points.shape[1]], device=device.warp)


def made(points: np.ndarray, device: Device, order: ng.Ordering, radius: float = 0.1, **more: Any):
    """A grid over the unit box, built."""
    dimension = points.shape[1]
    params, state = ng.make_grid(
        len(points), [0.0] * dimension, [1.0] * dimension, radius, dimension, device, order=order, **more
    )
    ng.build(now(device), params, state, upload(points, device))
    return params, state


def cells_in_numpy(params: ng.GridParams, state: ng.GridState, points: np.ndarray) -> np.ndarray:
    """Which cell each point belongs to, with the same float32 operations; the place after all cells if not finite."""
    lower = np.array(params.lower, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = (points.astype(np.float32) - lower) * np.float32(state.view.cells_per_length)
    most = np.array(params.cells[: params.dimension], np.float32) - 1
    cell = np.clip(np.nan_to_num(scaled, nan=0.0), 0, most).astype(np.int64)
    strides = np.cumprod([1, *params.cells])[: params.dimension]
    return np.where(np.isfinite(points).all(axis=1), cell @ strides, params.cell_count)


def assert_sorted(params: ng.GridParams, state: ng.GridState, points: np.ndarray) -> None:
    """Everything that `build` promises, for the first len(points) particles."""
    n = len(points)
    cell = cells_in_numpy(params, state, points)
    order = np.argsort(cell, kind="stable")
    assert np.array_equal(state.original.numpy()[:n], order)
    assert np.array_equal(state.slot.numpy()[:n][order], np.arange(n))
    assert np.array_equal(state.cell_start.numpy(), np.searchsorted(cell[order], np.arange(params.cell_count + 2)))
    assert np.array_equal(state.position.numpy()[:n], points[order], equal_nan=True)


def visits(params: ng.GridParams, state: ng.GridState, points: np.ndarray) -> np.ndarray:
    out = wp.zeros((len(points), max(1, params.capacity)), dtype=wp.int32, device=params.device.warp)
    inputs = [state.view, upload(points, params.device), state.original, out]
    wp.launch(visit, dim=len(points), inputs=inputs, device=params.device.warp)
    return out.numpy()[:, : params.capacity]


@st.composite
def worlds(draw: st.DrawFn, dimension: int):
    """A box, a radius, and particles that like to sit where it hurts: on borders, far outside, on top of each other."""
    lower = draw(st.lists(st.floats(-2, 2, width=32), min_size=dimension, max_size=dimension))
    extent = draw(st.lists(st.floats(0, 2, width=32), min_size=dimension, max_size=dimension))
    radius = np.float32(draw(st.floats(0.0625, 1.5, width=32)))
    origin = np.float32(draw(st.sampled_from(lower)))
    borders = st.builds(
        lambda k, ulps: float(np.float32(origin + np.float32(k) * radius) + ulps * np.spacing(np.float32(k * radius))),
        st.integers(-2, 12),
        st.integers(-2, 2),
    )
    anywhere = st.floats(allow_nan=False, allow_infinity=False, width=32)
    element = st.one_of(st.floats(-3, 5, width=32), borders.map(lambda v: float(np.float32(v))), anywhere)
    count = draw(st.integers(0, 40))
    points = draw(arrays(np.float32, (count, dimension), elements=element))
    return lower, [a + b for a, b in zip(lower, extent, strict=True)], float(radius), points


@pytest.mark.parametrize("order", ORDERINGS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_every_pair_within_the_radius_is_found_once(device: Device, dimension: int, order: ng.Ordering):
    @quick
    @given(worlds(dimension))
    def run(world: Any) -> None:
        lower, upper, radius, points = world
        params, state = ng.make_grid(len(points), lower, upper, radius, dimension, device, order=order)
        ng.build(now(device), params, state, upload(points, device))
        assert_sorted(params, state, points)
        # Particles and points that are none, the latter nearly one radius from a particle along one axis.
        others = points + np.float32(radius) * np.eye(dimension, dtype=np.float32)[len(points) % dimension]
        asked = np.concatenate([points, others])
        seen = visits(params, state, asked)
        exact = asked.astype(np.float64)
        distance = np.linalg.norm(exact[:, None] - exact[None, : len(points)], axis=2)
        assert (seen <= 1).all(), "a particle came twice"
        assert (seen[distance <= radius] == 1).all(), "a neighbour is missing"

    run()


@pytest.mark.parametrize("lower", [0.0, -7.3, 0.1])
@pytest.mark.parametrize("radius", [0.003, 0.01, 0.0999])
def test_rounding_loses_no_pair_at_the_end_of_a_long_box(device: Device, radius: float, lower: float):
    """Pairs one radius apart or a hair less, one of the two within some ulps of a border of cells, up to cell 3300.

    With cells exactly as wide as the radius, rounding puts some of these pairs two cells apart.
    """
    params, state = ng.make_grid(0, [lower, 0.0], [lower + 10.0, 0.0], radius, 2, device)
    r, border = params.radius, np.arange(1, params.cells[0] - 2)
    for width in (r, params.side, 1.0 / float(state.view.cells_per_length)):
        for ulps in range(-3, 4):
            here = (lower + border * width).astype(np.float32)
            here = here + np.float32(ulps) * np.spacing(here)
            there = (here.astype(np.float64) + r).astype(np.float32)
            too_far = there.astype(np.float64) - here.astype(np.float64) > r
            there[too_far] = np.nextafter(there[too_far], np.float32(-np.inf))
            cells = [cells_in_numpy(params, state, np.stack([x, 0 * x], axis=1)) for x in (here, there)]
            assert (np.abs(cells[1] - cells[0]) <= 1).all()


@pytest.mark.parametrize("order", ORDERINGS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_sum_over_neighbours_matches_brute_force(device: Device, dimension: int, order: ng.Ordering):
    """The whole way of a solver: build, loop, back to the caller's order. Some 40 float32 terms below 0.1 are added."""
    points = np.random.default_rng(3).uniform(-0.2, 1.2, (800, dimension)).astype(np.float32)
    params, state = made(points, device, order)
    sums, back = (wp.zeros(800, dtype=float, device=device.warp) for _ in range(2))
    now(device).launch(add_up, 800, [state.view, params.radius, state.position, sums])
    ng.to_original(now(device), params, state, sums, back)
    exact = points.astype(np.float64)
    distance = np.linalg.norm(exact[:, None] - exact[None], axis=2)
    assert np.allclose(back.numpy(), np.maximum(params.radius - distance, 0).sum(axis=1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("order", ORDERINGS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_no_particles_at_all(device: Device, dimension: int, order: ng.Ordering):
    params, state = made(np.zeros((0, dimension), np.float32), device, order)
    assert not state.cell_start.numpy().any()
    params, state = made(np.full((5, dimension), 0.5, np.float32), device, order)
    ng.set_count(params, state, 0)
    ng.build(now(device), params, state, wp.clone(state.position))
    assert not state.cell_start.numpy().any()
    assert not visits(params, state, np.full((1, dimension), 0.5, np.float32)).any()


def crowded(seed: int, sizes: Sequence[int]) -> np.ndarray:
    """Particles in a few cells of very different sizes, ids mixed."""
    random = np.random.default_rng(seed)
    centres = (np.arange(len(sizes)) + 0.5) * 0.1
    points = np.repeat(np.stack([centres, centres[::-1], 0.5 + 0 * centres], axis=1), sizes, axis=0)
    points = points + random.uniform(-0.04, 0.04, points.shape)
    return random.permutation(points).astype(np.float32)


@pytest.mark.parametrize("order", ORDERINGS)
@pytest.mark.parametrize("sizes", [[4000], [1, 130, 2500, 3, 700, 128, 129, 1100], [6, 5, 7]])
def test_crowded_cells_are_ordered_by_id(device: Device, order: ng.Ordering, sizes: list[int]):
    points = crowded(1, sizes)
    assert_sorted(*made(points, device, order), points)


@pytest.mark.parametrize("order", ORDERINGS)
def test_ids_that_come_in_runs_are_ordered(device: Device, order: ng.Ordering):
    """Emitters give neighbours consecutive ids, so that one bucket of a crowded cell gets as many as it can hold."""
    points = np.random.default_rng(0).uniform(0, 1, (5000, 3)).astype(np.float32)
    points[3000:3400] = 0.55
    points[10] = 0.55
    assert_sorted(*made(points, device, order), points)


@pytest.mark.parametrize("order", ORDERINGS)
def test_a_build_leaves_nothing_behind_for_the_next(device: Device, order: ng.Ordering):
    """Crowded, not crowded, fewer particles, crowded elsewhere: each build is as if it were the first."""
    worlds = [
        crowded(1, [3000, 100, 900]),
        np.random.default_rng(5).uniform(0, 1, (4000, 3)).astype(np.float32),
        crowded(2, [10, 200, 790]),
        np.zeros((0, 3), np.float32),
        crowded(3, [400, 400, 2400, 800]),
    ]
    params, state = ng.make_grid(4000, [0] * 3, [1] * 3, 0.1, 3, device, order=order)
    for points in worlds:
        padded = np.full((4000, 3), np.nan, np.float32)
        padded[: len(points)] = points
        ng.set_count(params, state, len(points))
        ng.build(now(device), params, state, upload(padded, device))
        assert_sorted(params, state, points)


@pytest.mark.parametrize("sizes", [[900, 3, 400], [7] * 9])
@pytest.mark.parametrize("dimension", [2, 3])
def test_order_of_threads_does_not_matter(cpu: Device, dimension: int, sizes: list[int]):
    """On cpu, where the order of threads can be chosen. The tickets differ; not one bit of the result does."""
    points = crowded(4, sizes)[:, :dimension]
    results, tickets = [], []
    for seed in range(4):
        params, state = ng.make_grid(
            len(points), [0] * dimension, [1] * dimension, 0.1, dimension, cpu, order="parallel"
        )
        stage = now(cpu) if seed == 0 else ShuffledStage(cpu, seed)
        sums = wp.zeros(len(points), dtype=float, device=cpu.warp)
        for _ in range(2):
            ng.build(stage, params, state, upload(points, cpu))
            stage.launch(add_up, len(points), [state.view, params.radius, state.position, sums])
        tickets.append(state.ticket.numpy().tobytes())
        results.append(
            [a.numpy().tobytes() for a in (state.original, state.slot, state.cell_start, state.position, sums)]
        )
    assert len(set(tickets)) == 4
    assert all(result == results[0] for result in results)


def test_same_bits_on_every_run_device_and_ordering(device: Device, cpu: Device):
    points = np.concatenate([crowded(6, [500, 20, 300]), np.random.default_rng(6).uniform(-1, 2, (3000, 3))]).astype(
        "f4"
    )
    want = made(points, cpu, "serial")[1]
    for order in (*ORDERINGS, *ORDERINGS):
        state = made(points, device, order)[1]
        for name in ("original", "slot", "cell_start", "position"):
            assert getattr(state, name).numpy().tobytes() == getattr(want, name).numpy().tobytes()


@pytest.mark.parametrize("order", ORDERINGS)
def test_recorded_build_follows_positions_and_count(device: Device, order: ng.Ordering):
    random = np.random.default_rng(8)
    params, state = ng.make_grid(3000, [0] * 3, [1] * 3, 0.1, 3, device, order=order)
    positions = upload(np.zeros((3000, 3), np.float32), device)
    ng.build(now(device), params, state, positions)
    program = device.record(lambda stage: ng.build(stage, params, state, positions), work=0)
    for count in (3000, 1, 2999, 0, 3000):
        points = random.uniform(-0.1, 1.1, (3000, 3)).astype(np.float32)
        points[: count // 4] = 0.5
        positions.assign(points)
        ng.set_count(params, state, count)
        program.run()
        device.synchronize()
        assert_sorted(params, state, points[:count])


def test_one_core_gives_the_same_as_all():
    points = np.random.default_rng(9).uniform(0, 1, (9000, 3)).astype(np.float32)
    states = []
    for cores in (1, 2):
        device = open_device("cpu", cores=cores)
        params, state = ng.make_grid(9000, [0] * 3, [1] * 3, 0.1, 3, device, axes=True)
        positions = upload(points, device)

        def step(stage: Stage, params=params, state=state, positions=positions) -> None:
            ng.build(stage, params, state, positions)
            ng.split_axes(stage, params, state)

        program = device.record(step)
        program.run()
        program.run()
        assert_sorted(params, state, points)
        states.append(b"".join(axis.numpy().tobytes() for axis in state.axes))
        device.close()
    assert states[0] == states[1]


@pytest.mark.parametrize("order", ORDERINGS)
def test_build_allocates_nothing(device: Device, order: ng.Ordering):
    params, state = ng.make_grid(2000, [0] * 3, [1] * 3, 0.1, 3, device, order=order)
    positions = upload(crowded(1, [1000, 1000]), device)
    program = device.record(lambda stage: ng.build(stage, params, state, positions), work=0)
    for _ in range(3):
        program.run()
    reports: list[str] = []
    tracemalloc.start()
    with wp.ScopedMemoryTracker("build", report_func=reports.append) as tracker:
        tracker.clear()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            program.run()
        device.synchronize()
        grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    totals = reports[0].split("Total allocations:")[1].split("Peak usage:")[0]
    assert not totals.strip(), f"Warp allocated: {totals}"
    assert grown < 2000, f"{grown} bytes of Python objects were kept"


@pytest.mark.parametrize("order", ORDERINGS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_positions_that_are_not_finite_are_kept_apart(device: Device, dimension: int, order: ng.Ordering):
    points = np.random.default_rng(2).uniform(0, 1, (500, dimension)).astype(np.float32)
    points[[17, 40, 333], [0, 1, dimension - 1]] = np.nan, np.inf, -np.inf
    params, state = made(points, device, order)
    assert_sorted(params, state, points)
    assert ng.lost_particles(params, state).tolist() == [17, 40, 333]
    assert not visits(params, state, points)[:, [17, 40, 333]].any()
    with pytest.raises(
        StateError, match="3 of 500 particle positions are not finite, the first is particle 17"
    ) as caught:
        ng.check(params, state, stage="water", tick=12)
    assert (caught.value.stage, caught.value.tick) == ("water", 12)


@pytest.mark.parametrize("order", ORDERINGS)
def test_count_that_kernels_wrote_beyond_the_capacity_is_reported(device: Device, order: ng.Ordering):
    points = np.random.default_rng(2).uniform(0, 1, (100, 3)).astype(np.float32)
    count = wp.array([100], dtype=wp.int32, device=device.warp)
    params, state = made(points, device, order, count=count)
    ng.check(params, state, stage="water", tick=0)
    count.fill_(101)
    ng.build(now(device), params, state, upload(points, device))
    assert_sorted(params, state, points)
    with pytest.raises(StateError, match="count is 101, but the grid has room for 0 to 100"):
        ng.check(params, state, stage="water", tick=0)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(wp.float32, (300,)), (wp.int32, (300,)), (wp.vec2, (300, 2)), (wp.vec3, (300, 3)), (wp.vec4, (300, 4))],
)
def test_values_go_to_the_sorted_order_and_back(device: Device, kind: Any, shape: tuple[int, ...]):
    points = np.random.default_rng(1).uniform(0, 1, (300, 3)).astype(np.float32)
    params, state = made(points, device, "serial")
    values = wp.array(np.random.default_rng(2).integers(0, 1000, shape), dtype=kind, device=device.warp)
    there, back = wp.zeros_like(values), wp.zeros_like(values)
    ng.to_sorted(now(device), params, state, values, there)
    ng.to_original(now(device), params, state, there, back)
    assert np.array_equal(there.numpy(), values.numpy()[state.original.numpy()])
    assert np.array_equal(back.numpy(), values.numpy())


@pytest.mark.parametrize("dimension", [2, 3])
def test_axes_are_the_sorted_positions(device: Device, dimension: int):
    points = np.random.default_rng(1).uniform(0, 1, (300, dimension)).astype(np.float32)
    params, state = made(points, device, "serial", axes=True)
    ng.split_axes(now(device), params, state)
    assert np.array_equal(np.stack([a.numpy()[:300] for a in state.axes], axis=1), state.position.numpy())
    assert all(len(axis) == 300 + ng.LANES for axis in state.axes)


def test_cells_are_hardly_wider_than_the_radius(cpu: Device):
    """The room for rounding must not cost: more than the radius, less than 0.1 % more at a hundred cells per axis."""
    params, _ = ng.make_grid(1, [0.0] * 3, [1.0] * 3, 0.01, 3, cpu)
    assert params.radius < params.side < 1.001 * params.radius
    assert params.cells == (100, 100, 100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": -1}, "capacity is -1"),
        ({"capacity": 2**31}, "capacity is 2147483648"),
        ({"dimension": 4}, "dimension is 4"),
        ({"lower": [0.0, 0.0]}, "lower has 2 numbers, not 3"),
        ({"upper": [1.0, -1.0, 1.0]}, "from 0 to -1 m along y"),
        ({"lower": [0.0, 0.0, float("nan")]}, "from nan to 1 m along z"),
        ({"radius": 0.0}, "radius is 0 m"),
        ({"radius": float("inf")}, "radius is inf m"),
        ({"radius": 1e-5}, "allowed are 65536 along an axis"),
        ({"radius": 1e-3}, "67108864 in all"),
    ],
)
def test_bad_grids_are_refused(cpu: Device, change: dict[str, Any], message: str):
    good: dict[str, Any] = {"capacity": 1, "lower": [0.0] * 3, "upper": [1.0] * 3, "radius": 0.1, "dimension": 3}
    with pytest.raises(InputError, match=message) as caught:
        ng.make_grid(**(good | change), device=cpu)
    assert caught.value.hint


def test_bad_arrays_are_refused(cpu: Device):
    params, state = ng.make_grid(10, [0.0] * 3, [1.0] * 3, 0.1, 3, cpu)
    stage = now(cpu)

    def zeros(n: int, kind: Any) -> wp.array:
        return wp.zeros(n, dtype=kind, device="cpu")

    with pytest.raises(InputError, match=r"positions: an array of vec3f, shape \(9,\)"):
        ng.build(stage, params, state, zeros(9, wp.vec3))
    with pytest.raises(InputError, match="positions: an array of vec2f"):
        ng.build(stage, params, state, zeros(10, wp.vec2))
    with pytest.raises(InputError, match="the same array is read and written"):
        ng.build(stage, params, state, state.position)
    with pytest.raises(InputError, match="values of type float64 cannot be reordered"):
        ng.to_sorted(stage, params, state, zeros(10, wp.float64), zeros(10, wp.float64))
    with pytest.raises(InputError, match="the output: an array of vec3f"):
        ng.to_sorted(stage, params, state, zeros(10, float), zeros(10, wp.vec3))
    with pytest.raises(InputError, match="count is 11"):
        ng.set_count(params, state, 11)
    with pytest.raises(InputError, match="no room for one array per axis"):
        ng.split_axes(stage, params, state)
    with pytest.raises(InputError, match="works on one core only"):
        ng.build(
            Stage(cpu, 0, 2, None),
            *ng.make_grid(10, [0.0] * 3, [1.0] * 3, 0.1, 3, cpu, order="parallel"),
            zeros(10, wp.vec3),
        )
    with pytest.raises(InputError, match=r"count is an array of float32, shape \(2,\)"):
        ng.make_grid(10, [0.0] * 3, [1.0] * 3, 0.1, 3, cpu, count=zeros(2, float))
