"""The blood film: Kvick's Figures 7, 8 and 9 beside ours, spawning, the three searches, and a film on an organ.

The document (§4.2, GTX 460, one core of an i5 at 2.8 GHz) spawns particles in a rectangular grid and measures the step
without springs and without the picture. It prints no constants and does not say how dense its fluid settles; here
buckets are one texel wide as there, the rest density is 4 (about 15 neighbours in a settled puddle, column
`neighbours`), forces are symmetric, and there is no gravity, so that nothing runs out of the buffer. Steps are recorded
eight at a time, as a frame takes them.

`floor_ratio` is time over the time in which each particle's state (60 bytes) could be read and written once, at the
bandwidth of a large copy measured beside it. Loops over neighbours are bound by arithmetic and latency, so it is far
above 1; `pairs_per_s` counts pairs within the radius, each visited by three loops.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import warp as wp

from viscera.bench.neighbors import copy_bandwidth
from viscera.bench.registry import Row, benchmark, median_ms, timed
from viscera.blood.film.border import check_film, film_count, spawn
from viscera.blood.film.film import Film, make_film, set_film, step_film
from viscera.blood.film.kernels import Waiting
from viscera.blood.film.params import BLOOD, FilmParams, Sheet, document_params
from viscera.device import Device, Stage
from viscera.geometry import TriangleMesh, icosphere

wp.set_module_options({"enable_backward": False})

NAME = "film"

GAP = 0.5
"""Between particles at the start [texel]: nearly as dense as a film at rest density 4 settles."""

STEPS = 8
"""Steps per recorded program: a frame of 16 ms at 2 ms."""

SETTLE = 160
"""Steps before the clock starts."""

STATE_BYTES = 60
"""Position, velocity, volume, concentrations, clot, age, fate and density of a particle."""

FIGURE_7 = {750: (None, None), 2_500: (1800.0, 7.0), 10_000: (None, None), 40_000: (None, 1.0)}
"""Particles: the document's frames per second on its GPU and its CPU ("below 1" at 40 000)."""

FIGURE_8 = {65_536: (256, 119.0), 262_144: (512, 38.0), 1_048_576: (1024, 12.0)}
"""Particles: side of the buffer, the document's frames per second."""

FIGURE_9 = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
"""Rest densities of 65 536 particles in 512²; the document shows the trend and prints no numbers."""

GOALS_GPU = {2_500: 20_000.0, 65_536: 10_000.0, 262_144: 5_000.0, 1_048_576: 2_000.0}
GOALS_CPU = {2_500: 1_500.0, 40_000: 80.0}

SPAWNED = 1_000
"""Particles per step."""

LIFETIME_STEPS = 64
"""So 64 000 particles live while 1 000 come and go per step."""


@wp.kernel
def emit(
    first: int,
    # params
    width: float,
    count: int,
    turn: int,
    # in and out
    seed_out: wp.array(dtype=wp.int32),
    # out
    queue_out: Waiting,
):
    """Particles at random places, as many wounds would make them, without the host. Two seeds take turns: one is read
    while the next one is written."""
    i = first + wp.tid()
    state = wp.rand_init(seed_out[turn], i)
    queue_out.position[i] = wp.vec3(width * wp.randf(state), width * wp.randf(state), 0.0)
    queue_out.velocity[i] = wp.vec3(0.0, 0.0, 0.0)
    queue_out.volume[i] = 100
    queue_out.fluid[i] = wp.vec4(1.0, 0.0, 0.0, 0.0)
    if i == 0:
        queue_out.count[0] = count
        seed_out[1 - turn] = seed_out[turn] + 1


HEADLINE = 2_500
"""Particles."""


def headline(device: Device) -> Row:
    (gpu, cpu), film = FIGURE_7[HEADLINE], sheet_film(HEADLINE, 256, device)
    document = gpu if device.is_cuda else cpu
    return row(film, "figure 7, in 256²", _bandwidth(device), document, goal(device, HEADLINE))


@benchmark(NAME, title="Blood film: steps per second", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    bandwidth = _bandwidth(device)
    for count, (gpu, cpu) in FIGURE_7.items():
        film = sheet_film(count, 256, device)
        document = gpu if device.is_cuda else cpu
        yield row(film, "figure 7, in 256²", bandwidth, document, goal(device, count))
    for count, (side, document) in FIGURE_8.items():
        if quick and count > (300_000 if device.is_cuda else 100_000):
            continue
        film = sheet_film(count, side, device)
        yield row(film, f"figure 8, in {side}²", bandwidth, document if device.is_cuda else None, goal(device, count))
    for density in (2.0, 10.0) if quick else FIGURE_9:
        film = sheet_film(65_536, 512, device, document_params(density, one_sided=False, gravity=(0.0, 0.0, 0.0)))
        yield row(film, f"figure 9, rest density {density:g}, in 512²", bandwidth)
    yield from spawn_rows(device, bandwidth)
    yield from search_rows(device, bandwidth)
    for count in (2_500, 20_000) if quick else (2_500, 20_000, 65_536):
        yield row(organ_film(count, device), "on an organ, in space", bandwidth)


def _bandwidth(device: Device) -> float:
    return copy_bandwidth(device, 1024 if device.is_cuda else 128)


def goal(device: Device, count: int) -> float | None:
    return (GOALS_GPU if device.is_cuda else GOALS_CPU).get(count)


def sheet_film(
    count: int, side: int, device: Device, params: FilmParams | None = None, native: bool | None = None
) -> Film:
    """Particles in a square grid about the middle of the buffer, `GAP` apart."""
    params = params or document_params(one_sided=False, gravity=(0.0, 0.0, 0.0))
    film = make_film(Sheet(side, side), params, count, device, queue=count, obstacles=False, native=native)
    line = math.ceil(math.sqrt(count))
    row_, column = np.divmod(np.arange(count), line)
    places = 0.5 * side + GAP * (np.stack([column, row_], axis=1) - 0.5 * (line - 1))
    spawn(film, places + np.random.default_rng(1).normal(0.0, 0.02, places.shape))
    return film


def organ_film(count: int, device: Device) -> Film:
    """A film that covers part of a liver-sized ball, running down it."""
    ball = icosphere(0.06, 5)
    film = make_film(ball, FilmParams(fluids=(dataclasses.replace(BLOOD, clots=False),)), count, device, queue=count)
    spawn(film, on_the_ball(ball, count, film.params.radius))
    return film


def on_the_ball(ball: TriangleMesh, count: int, radius: float) -> np.ndarray:
    """A spiral from the top down, as densely as a settled film lies [m]."""
    gap2 = radius**2 / 4.3
    size = float(np.abs(ball.vertices).max())
    z = size - np.arange(count) * gap2 / (2.0 * math.pi * size)
    z = np.maximum(z, -size + gap2)
    angle = np.arange(count) * math.pi * (3.0 - math.sqrt(5.0))
    ring = np.sqrt(np.maximum(size**2 - z**2, 0.0))
    return np.stack([ring * np.cos(angle), ring * np.sin(angle), z], axis=1)


def row(
    film: Film, case: str, bandwidth: float, document: float | None = None, wanted: float | None = None, settle: int = 0
) -> Row:
    device, count = film.device, film.state.capacity

    def steps(stage: Stage) -> None:
        for _ in range(STEPS):
            step_film(stage, film)

    program = device.record(steps, work=film.work)
    for _ in range((settle or SETTLE) // STEPS if count < 300_000 or device.is_cuda else 2):
        program.run()
    repeats = 100 if device.is_cuda else max(5, min(60, 400_000 // count))
    ms = median_ms(program.run, device, repeats) / STEPS
    check_film(film)
    if film_count(film) != count:
        raise RuntimeError(f"{count} particles became {film_count(film)}")
    return _row(film, case, bandwidth, ms, document, wanted)


def _row(film: Film, case: str, bandwidth: float, ms: float, document: float | None, wanted: float | None) -> Row:
    count = film_count(film)
    floor_ms = 1000.0 * 2 * STATE_BYTES * count / bandwidth
    neighbours = mean_neighbours(film)
    extra = {
        "neighbours": round(neighbours, 1),
        "ns_per_particle": round(1e6 * ms / count, 2),
        "pairs_per_s": float(f"{3 * count * neighbours / (1e-3 * ms):.3g}"),
    }
    return timed(
        NAME, case, count, film.device, ms, document=document, goal=wanted, floor_ratio=ms / floor_ms, extra=extra
    )


def mean_neighbours(film: Film, sample: int = 200) -> float:
    """Within the radius, mean over some particles."""
    n = film_count(film)
    x = film.state.position.numpy()[:n].astype(np.float64)
    chosen = x[np.random.default_rng(2).permutation(n)[:sample]]
    near = [int((((x - point) ** 2).sum(axis=1) < film.params.radius**2).sum()) - 1 for point in chosen]
    return float(np.mean(near))


def spawn_rows(device: Device, bandwidth: float) -> Iterator[Row]:
    """The same film with and without a thousand particles coming and a thousand going in every step."""
    side, alive = 128, SPAWNED * LIFETIME_STEPS
    params = document_params(one_sided=False, gravity=(0.0, 0.0, 0.0))
    params = dataclasses.replace(params, lifetime=(LIFETIME_STEPS - 0.5) * params.dt)
    film = make_film(Sheet(side, side), params, alive + 2 * SPAWNED, device, queue=SPAWNED, obstacles=False)
    seed = wp.zeros(2, dtype=wp.int32, device=device.warp)

    def coming(stage: Stage) -> None:
        for number in range(STEPS):
            stage.launch(emit, SPAWNED, [float(side), SPAWNED, number % 2, seed, film.waiting])
            step_film(stage, film)

    def steady(stage: Stage) -> None:
        for _ in range(STEPS):
            step_film(stage, film)

    program = device.record(coming, work=film.work)
    for _ in range(2 * LIFETIME_STEPS // STEPS):
        program.run()
    repeats = 100 if device.is_cuda else 5
    spawning = median_ms(program.run, device, repeats) / STEPS
    with_spawn = _row(film, f"spawning {SPAWNED} per step", bandwidth, spawning, None, None)
    set_film(film, dataclasses.replace(params, lifetime=0.0))
    film.waiting.count.zero_()
    program = device.record(steady, work=film.work)
    still = median_ms(program.run, device, repeats) / STEPS
    cost = round(100.0 * (spawning / still - 1.0), 1)
    yield _row(film, "the same without spawning", bandwidth, still, None, None)
    yield dataclasses.replace(with_spawn, extra=with_spawn.extra | {"spawning_costs_per_cent": cost})


def search_rows(device: Device, bandwidth: float) -> Iterator[Row]:
    """The document's two hashings (§3.7) beside the sorted grid, and the plain loops beside those in C."""
    base = document_params(one_sided=False, gravity=(0.0, 0.0, 0.0), bucket_size=32)
    for search in ("grid", "linked", "binned"):
        film = sheet_film(10_000, 128, device, dataclasses.replace(base, search=search))
        yield row(film, f"search: {search}", bandwidth)
    yield row(sheet_film(10_000, 128, device, base, native=False), "search: grid, plain loops", bandwidth)
