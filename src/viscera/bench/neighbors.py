"""Neighbour search: our sorted grid beside Warp's `HashGrid`, for the same sum over the same particles, in one run.

A step builds the grid and computes Σ_j max(r² - |x_i - x_j|², 0)³ for every particle, in the caller's order: a density,
but for its constants. About 30 neighbours in 3D, 20 in 2D; particles in random order, as after long stirring.
Both read the best that they offer: the sorted grid its sorted positions, HashGrid the caller's positions, visited by
cell. On cpu both use all cores for the sum, and a third way has the inner loop as a native snippet over one array per
axis.

`floor_ratio` is time over the time in which the bytes that must move could be moved once, at the bandwidth of a large
copy measured beside it. A build reads positions and writes sorted positions, both indices and the cells' starts; a sum
reads sorted positions, starts and an index, writes sums twice and reads them once. Sums are bound by arithmetic, not by
bytes, so their ratio is far above 1; small cases fit into caches, which are faster than the copy.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.bench.registry import Row, benchmark, median_ms, pick, timed, times_ms
from viscera.device import Device, Stage
from viscera.native import on_cpu, on_cuda
from viscera.neighbors import grid as ng
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count

wp.set_module_options({"enable_backward": False})

RADIUS = 0.01
"""[m]"""
NEIGHBOURS = {2: 20.0, 3: 30.0}
"""Particles within the radius, on average."""
ROUNDS = 5


@wp.kernel
def sum_sorted(
    first: int,
    # params
    grid: GridView,
    radius: float,
    # in
    position: wp.array[Any],
    # out
    sum_out: wp.array(dtype=float),
):
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
            inside = wp.max(radius * radius - wp.dot(offset, offset), 0.0)
            total += inside * inside * inside
    sum_out[s] = total


@wp.kernel
def sum_hashed(
    first: int,
    # params
    grid: wp.uint64,
    radius: float,
    # in
    positions: wp.array(dtype=wp.vec3),
    # out
    sum_out: wp.array(dtype=float),
):
    i = wp.hash_grid_point_id(grid, first + wp.tid())
    here = positions[i]
    total = wp.float32(0.0)
    for j in wp.hash_grid_query(grid, here, radius):
        offset = positions[j] - here
        inside = wp.max(radius * radius - wp.dot(offset, offset), 0.0)
        total += inside * inside * inside
    sum_out[i] = total


# A full vector of the widest unit there is; loads may pass the row's end, which `LANES` allows, and are masked.
_ROW_SUM = on_cpu(
    """
V total = FILL(0.0f);
for (int t = begin; t < end; t += WIDTH) {
    const V dx = LOAD(x.data + t) - here[0], dy = LOAD(y.data + t) - here[1], dz = LOAD(z.data + t) - here[2];
    V inside = radius * radius - (dx * dx + dy * dy + dz * dz);
    inside = ((inside > FILL(0.0f)) & (PLACES(t) < FILL_INT(end))) ? inside : FILL(0.0f);
    total += inside * inside * inside;
}
return SUM_IN_ORDER(total);
""",
    fused=False,
) + on_cuda("return 0.0f;")


@wp.func_native(_ROW_SUM)
def row_sum(
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    begin: int,
    end: int,
    here: wp.vec3,
    radius: float,
) -> float: ...


@wp.kernel
def sum_native(
    first: int,
    # params
    grid: GridView,
    radius: float,
    # in
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    # out
    sum_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = wp.vec3(x[s], y[s], z[s])
    cell = cell_of(grid, here)
    total = wp.float32(0.0)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        total += row_sum(x, y, z, begin, end, here, radius)
    sum_out[s] = total


for _vector in (wp.vec2, wp.vec3):
    wp.overload(sum_sorted, {"position": wp.array(dtype=_vector)})


@dataclass(frozen=True)
class Case:
    dimension: int
    count: int
    extent: float
    """Side of the square or cube [m]."""
    points: np.ndarray

    @property
    def cells(self) -> int:
        return math.ceil(self.extent / RADIUS) ** self.dimension


def make_case(dimension: int, count: int, seed: int = 0) -> Case:
    """Uniform random particles with the wanted mean number of neighbours away from the walls."""
    reach = math.pi if dimension == 2 else 4.0 / 3.0 * math.pi
    extent = RADIUS * (count * reach / NEIGHBOURS[dimension]) ** (1.0 / dimension)
    points = np.random.default_rng(seed).random((count, dimension)) * extent
    return Case(dimension, count, extent, points.astype(np.float32))


def in_cell_order(points: np.ndarray) -> np.ndarray:
    cell = (points / np.float32(RADIUS)).astype(np.int32)
    return points[np.lexsort(cell.T)]


@dataclass(frozen=True)
class Way:
    """One way to search: its build alone, and a whole step that ends with the sums in the caller's order."""

    name: str
    build: Callable[[Stage], None]
    step: Callable[[Stage], None]
    sums: wp.array


def grid_way(case: Case, device: Device, native: bool = False, search: ng.Search = "sorted") -> Way:
    low, high = [0.0] * case.dimension, [case.extent] * case.dimension
    params, state = ng.make_grid(case.count, low, high, RADIUS, case.dimension, device, axes=native, search=search)
    positions = wp.array(case.points, dtype=state.position.dtype, device=device.warp)
    sums, back = (wp.zeros(case.count, dtype=float, device=device.warp) for _ in range(2))

    def build(stage: Stage) -> None:
        ng.build(stage, params, state, positions)
        if native:
            ng.split_axes(stage, params, state)

    def step(stage: Stage) -> None:
        build(stage)
        if native:
            stage.launch(sum_native, case.count, [state.view, RADIUS, *state.axes, sums])
        else:
            stage.launch(sum_sorted, case.count, [state.view, RADIUS, state.position, sums])
        ng.to_original(stage, params, state, sums, back)

    return Way("sorted, native" if native else search, build, step, back)


def hashed_way(case: Case, device: Device) -> Way:
    axis = math.ceil(case.extent / RADIUS)
    table = wp.HashGrid(axis, axis, axis if case.dimension == 3 else 1, device=device.warp)
    # HashGrid knows space only.
    points = np.zeros((case.count, 3), np.float32)
    points[:, : case.dimension] = case.points
    positions = wp.array(points, dtype=wp.vec3, device=device.warp)
    sums = wp.zeros(case.count, dtype=float, device=device.warp)
    table.reserve(case.count)

    def build(stage: Stage) -> None:
        stage.once(lambda: table.build(positions, RADIUS))

    def step(stage: Stage) -> None:
        build(stage)
        stage.launch(sum_hashed, case.count, [table.id, RADIUS, positions, sums])

    return Way("HashGrid", build, step, sums)


def bytes_moved(case: Case, with_sum: bool) -> int:
    """The least that a sorted build (and a sum) must read and write once; see the module's text."""
    vector = 4 * case.dimension
    build = case.count * (vector + vector + 8) + 4 * case.cells
    return build + (case.count * (vector + 4 + 12) + 4 * case.cells if with_sum else 0)


def copy_bandwidth(device: Device, mebibytes: int) -> float:
    """Bytes per second that a large copy reads and writes, together."""
    source = wp.zeros(mebibytes * 2**18, dtype=float, device=device.warp)
    target = wp.zeros_like(source)
    ms = median_ms(lambda: wp.copy(target, source), device, repeats=7)
    return 2.0 * mebibytes * 2**20 / (ms / 1000.0)


def check_equal(case: Case, ways: list[Way], device: Device) -> None:
    """Ways that disagree must not be compared. Sums of some 30 terms in another order agree to float32's 1e-5."""
    for way in ways:
        way.step(Stage(device, 0, 1, None))
    device.synchronize()
    want = ways[0].sums.numpy()
    for way in ways[1:]:
        np.testing.assert_allclose(way.sums.numpy(), want, rtol=1e-5, err_msg=f"{way.name}, {case.dimension}D")


def alternate(steps: dict[str, Callable[[Stage], None]], count: int, device: Device) -> dict[str, float]:
    """Median times [ms]. The ways take turns, so that other work on the machine disturbs all of them alike."""
    programs = {name: device.record(step, work=count) for name, step in steps.items()}
    samples: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            samples[name] += times_ms(program.run, device, 21 if device.is_cuda else 7, warmup=1)
    return {name: statistics.median(times) for name, times in samples.items()}


def measure(case: Case, label: str, ways: list[Way], device: Device, bandwidth: float, sums: bool) -> Iterator[Row]:
    """One row per way and per part; ours says how many times faster it is than the last way, HashGrid."""
    for part in ("build", "build + sum") if sums else ("build",):
        times = alternate({w.name: w.build if part == "build" else w.step for w in ways}, case.count, device)
        floor_ms = 1000.0 * bytes_moved(case, part != "build") / bandwidth
        for name, ms in times.items():
            ours = name != "HashGrid"
            yield timed(
                "neighbors",
                f"{case.dimension}D{label}, {name}: {part}",
                case.count,
                device,
                ms,
                floor_ratio=ms / floor_ms if ours else None,
                extra={
                    "times_faster_than_hash_grid": round(times["HashGrid"] / ms, 2) if ours else None,
                    "copy_gb_per_s": round(bandwidth / 1e9, 1),
                },
            )


def headline(device: Device) -> Row:
    name = "sorted" if device.is_cuda else "sorted, native"
    return pick(_uniform(device, 3, (19_683,), copy_bandwidth(device, 128)), f", {name}: build + sum")


@benchmark("neighbors", title="Neighbour search: our sorted grid beside Warp's HashGrid", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    if device.is_cuda:
        sizes = (4_096, 19_683, 65_536, 1_000_000) if quick else (4_096, 19_683, 65_536, 1_000_000, 4_000_000)
    else:
        sizes = (4_096, 19_683) if quick else (4_096, 19_683, 97_336)
    bandwidth = copy_bandwidth(device, 1024 if device.is_cuda else 128)
    for dimension in (3, 2):
        yield from _uniform(device, dimension, sizes, bandwidth)
    largest = make_case(3, sizes[-1])
    for label, points in (
        # As for a solver that keeps its particles in the order of the last build.
        (", ids in order", in_cell_order(largest.points)),
        # The sum is quadratic for everybody, the build must not be.
        (", all in one cell", largest.points * np.float32(0.4 * RADIUS / largest.extent)),
    ):
        case = Case(3, largest.count, largest.extent, points)
        yield from measure(
            case, label, [grid_way(case, device), hashed_way(case, device)], device, bandwidth, sums=False
        )


def _uniform(device: Device, dimension: int, sizes: tuple[int, ...], bandwidth: float) -> Iterator[Row]:
    for count in sizes:
        case = make_case(dimension, count)
        ways = [grid_way(case, device), grid_way(case, device, search="hashed")]
        if dimension == 3 and not device.is_cuda:
            ways.append(grid_way(case, device, native=True))
        ways.append(hashed_way(case, device))
        check_equal(case, ways, device)
        yield from measure(case, "", ways, device, bandwidth, sums=True)
