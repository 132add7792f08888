"""What each part of the device layer is worth; docs/decisions/001-device-layer.md decides by it.

- launches: ten kernels launched one by one, against the same ten replayed as a graph;
- cores: a lattice's tick on one core and on all, when one tick follows the other at once and when a tick is due every
  millisecond, as in a live session, so that the other cores have gone to sleep in between;
- barrier: spinning then sleeping, against sleeping at once and spinning without end, alone and beside a process that
  takes a core;
- kernel: the native one against its plain twin;
- ping-pong: two graphs that take turns, against one that copies the result back.

`size` is the work of a run: elements, or masses × substeps. `gain` is over the first row of the same part and size.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera import device as layer
from viscera.bench._shapes import SHAPES
from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.bench.tissue import lattice, launch_substeps
from viscera.device import Device, Program, Stage, open_device
from viscera.tissue.stepping import record_step
from viscera.tissue.tissue import Tissue

wp.set_module_options({"enable_backward": False})

SUBSTEPS = 4
"""Per tick; one barrier each."""
PERIOD = 1.0e-3
"""Of ticks in a live session [s]."""
WORK = (1_000, 2_500, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 400_000)
BARRIERS = 100
ENDLESS = 2**31 - 1


@wp.kernel
def bump(first: int, values: wp.array(dtype=wp.float32)):
    i = first + wp.tid()
    values[i] = values[i] + 1.0


def headline(device: Device) -> Row:
    return pick(_launches(device, quick=True), "recorded")


@benchmark("device", title="Device layer: graphs, cores, barrier, native kernel, ping-pong", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _launches(device, quick)
    if device.cores > 1:
        yield from _cores(device, quick)
        yield from _barriers(device, quick)
    yield from _kernels(device, quick)
    yield from _ping_pong(device, quick)


def _launches(device: Device, quick: bool) -> Iterator[Row]:
    for count in (1_000,) if quick else (1_000, 100_000):
        values = wp.zeros(count, dtype=wp.float32, device=device.warp)

        def plain(values: wp.array = values, count: int = count) -> None:
            for _ in range(10):
                wp.launch(bump, dim=count, inputs=[0, values], device=device.warp)

        def build(stage: Stage, values: wp.array = values, count: int = count) -> None:
            for _ in range(10):
                stage.launch(bump, count, [values])

        one = Device(device.name, device.warp, device.is_cuda, device.description, device.reason, 1)
        cases = {"ten launches, one by one": plain, "ten launches, recorded": one.record(build).run}
        yield from _compare(device, cases, count, repeats=100 if quick else 1_000, waited=True)


def _compare(
    device: Device, cases: Mapping[str, Callable[[], object]], size: int, repeats: int, waited: bool = False
) -> Iterator[Row]:
    """A row per case; `waited` takes the host's time from the call until the work is done, on cuda too."""
    first = 0.0
    for case, call in cases.items():
        ms = float(np.median(_host_times(call, device, repeats))) if waited else median_ms(call, device, repeats)
        first = first or ms
        yield timed("device", case, size, device, ms, extra={"gain": first / ms})


def _host_times(call: Callable[[], object], device: Device, repeats: int) -> NDArray[np.float64]:
    times = np.empty(repeats)
    for i in range(-5, repeats):
        start = time.perf_counter()
        call()
        device.synchronize()
        times[max(i, 0)] = 1e3 * (time.perf_counter() - start)
    return times


def _paced_times(call: Callable[[], object], repeats: int) -> NDArray[np.float64]:
    """Times of calls that are due every millisecond."""
    times = np.empty(repeats)
    due = time.perf_counter()
    for i in range(-5, repeats):
        due = max(due + PERIOD, time.perf_counter())
        time.sleep(max(0.0, due - time.perf_counter() - 60e-6))
        while time.perf_counter() < due:
            pass
        start = time.perf_counter()
        call()
        times[max(i, 0)] = 1e3 * (time.perf_counter() - start)
    return times


def _cores(device: Device, quick: bool) -> Iterator[Row]:
    many, one = open_device("cpu", cores=device.cores), open_device("cpu", cores=1)
    repeats = 60 if quick else 400
    for work in WORK[1::3] if quick else WORK:
        nodes = SHAPES["box"](work // SUBSTEPS)
        programs = [(here.cores, _tick(here, lattice(here, nodes))) for here in (one, many)]
        for pace, measure in (("at once", lambda p: _host_times(p, device, repeats)),
                              ("every ms", lambda p: _paced_times(p, repeats))):  # fmt: skip
            first = 0.0
            for cores, program in programs:
                times = measure(program.run)
                ms = float(np.median(times))
                first = first or ms
                yield timed("device", f"tick {pace}, {cores} core{'s' * (cores > 1)}", work, device, ms,
                            extra={"gain": first / ms, "p99_ms": float(np.percentile(times, 99))})  # fmt: skip
    many.close()


def _tick(device: Device, tissue: Tissue) -> Program:
    """Substeps on every core of the device, however small the lattice."""
    return device.record(launch_substeps, arguments=[tissue, SUBSTEPS])


def _barriers(device: Device, quick: bool) -> Iterator[Row]:
    """A run of barriers with next to nothing in between: what waiting costs, and how it ends when a core is taken."""
    ways = {"spin, then sleep": layer.SPIN, "sleep at once": 0, "spin without end": ENDLESS}
    for beside in (False, True):
        with _taken_core() if beside else contextlib.nullcontext():
            for way, spin in ways.items():
                times = _barrier_times(device.cores, spin, repeats=100 if quick else 1_000) / BARRIERS
                yield timed(
                    "device", f"barrier, {way}{', a core taken' if beside else ''}", BARRIERS, device,
                    float(np.median(times)),
                    extra={"p99_ms": float(np.percentile(times, 99)), "worst_run_ms": float(times.max()) * BARRIERS},
                )  # fmt: skip


def _barrier_times(cores: int, spin: int, repeats: int) -> NDArray[np.float64]:
    kept = layer.SPIN
    layer.SPIN = spin  # read when a program is recorded
    try:
        device = open_device("cpu", cores=cores)
        values = wp.zeros(cores * layer.BLOCK, dtype=wp.float32, device=device.warp)

        def build(stage: Stage) -> None:
            for _ in range(BARRIERS):
                stage.launch(bump, 1, [values])

        times = _host_times(device.record(build).run, device, repeats)
        device.close()
        return times
    finally:
        layer.SPIN = kept


@contextlib.contextmanager
def _taken_core() -> Iterator[None]:
    """A process that never rests, while this lasts."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.2)
        yield
    finally:
        busy.kill()
        busy.wait()


def _kernels(device: Device, quick: bool) -> Iterator[Row]:
    nodes = SHAPES["box"](20_000)
    one = device if device.is_cuda else open_device("cpu", cores=1)
    place = "" if device.is_cuda else ", one core"
    cases = {
        f"{name} kernel{place}": _tick(one, lattice(one, nodes, native=native)).run
        for name, native in (("plain", False), ("native", True))
    }
    yield from _compare(device, cases, SUBSTEPS * len(nodes), repeats=10 if quick else 50)


def _ping_pong(device: Device, quick: bool) -> Iterator[Row]:
    """One substep per tick: the result is in the other buffer."""
    for masses in (20_000,) if quick else (5_000, 20_000, 150_000):
        tissue = lattice(device, SHAPES["box"](masses))
        pair = tissue.state.position

        def copied(stage: Stage, tissue: Tissue = tissue) -> None:
            here, there = tissue.state.position
            record_step(stage, tissue, 0, here, there)
            stage.once(lambda: wp.copy(here, there))

        def turns(stage: Stage, variant: int, tissue: Tissue = tissue, pair: tuple[wp.array, ...] = pair) -> None:
            record_step(stage, tissue, 0, pair[variant], pair[1 - variant])

        cases = {
            "result copied back": device.record(copied, work=masses).run,
            "two graphs take turns": device.record(turns, variants=2, work=masses).run,
        }
        yield from _compare(device, cases, masses, repeats=50 if quick else 300)
