"""What systems cost per frame of 16 ms once a world is full: blood on all of the organ, water in all of the bed.

Its first seconds say little about a world: the film of `bleeding` has all its particles after 20 s. Each world runs so
long with its own hand, then every system's frames are timed. `ms` is the mean over all frames, also over those in which
a system that takes every second turn does nothing; so rows of one world add up to its row "all systems".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from viscera.bench.registry import Row, benchmark, timed
from viscera.device import Device, open_device
from viscera.scenarios import make
from viscera.timing import FRAME, TICKS_PER_FRAME
from viscera.world import World

NAME = "frames"
WORLDS = ("bleeding", "cautery", "river")
FULL = 20.0
"""Simulated time after which worlds are full [s]."""
MEASURED = 5.0
"""Simulated time that is measured [s]."""
BUDGET = 13.0
"""What all systems together may take on one core beside the ticks [ms]."""


def headline(device: Device) -> Row:
    return next(_rows(device, "bleeding", 1.0, 1.0))


@benchmark(NAME, title="Systems per frame of 16 ms, in worlds that are full", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    full, measured = (1.0, 1.0) if quick else (FULL, MEASURED)
    for name in WORLDS:
        if not device.is_cuda:
            yield from _rows(open_device("cpu", cores=1), name, full, measured)
        if device.is_cuda or device.cores > 1:
            yield from _rows(device, name, full, measured)


def _rows(device: Device, name: str, full: float, measured: float) -> Iterator[Row]:
    """First all systems together, then each that takes a hundredth of that."""
    world = make(name, device=device, seed=1)
    for _ in range(round(full / FRAME)):
        _frame(world)
    times: dict[str, list[tuple[float, float]]] = {}
    for system in world.systems:
        system.frame = _timed(system.frame, times.setdefault(system.name, []))
    count = round(measured / FRAME)
    per_frame = np.zeros((count, 2))
    each: dict[str, np.ndarray] = {}
    for frame in range(count):
        before = {one: len(taken) for one, taken in times.items()}
        _frame(world)
        for one, taken in times.items():
            if len(taken) > before[one]:
                each.setdefault(one, np.zeros((count, 2)))[frame] = taken[-1]
                per_frame[frame] += taken[-1]
    world.close()
    cores = "" if device.is_cuda else f", {device.cores} core{'s' * (device.cores > 1)}"
    yield _row(device, f"{name}, all systems{cores}", per_frame, goal=1000.0 / BUDGET)
    for one, taken in each.items():
        if taken[:, 0].mean() > 0.01 * per_frame[:, 0].mean():
            yield _row(device, f"{name}, {one}{cores}", taken)


def _frame(world: World) -> None:
    for _ in range(TICKS_PER_FRAME):
        for one in world.script(world.tick):
            world.apply(one)
        world.step()


def _timed(frame: Callable[[Any], None], times: list[tuple[float, float]]) -> Callable[[Any], None]:
    """The same, noting how long it takes by the clock and by the processor [s]."""

    def noted(now: Any) -> None:
        wall, processor = time.perf_counter(), time.thread_time()
        frame(now)
        times.append((time.perf_counter() - wall, time.thread_time() - processor))

    return noted


def _row(device: Device, case: str, taken: np.ndarray, goal: float | None = None) -> Row:
    wall, processor = 1e3 * taken.T
    extra = {
        "median_ms": float(np.median(wall)),
        "p99_ms": float(np.percentile(wall, 99)),
        "processor_ms": float(processor.mean()),
        "processor_p99_ms": float(np.percentile(processor, 99)),
    }
    return timed(NAME, case, len(taken), device, float(wall.mean()), goal=goal, extra=extra)
