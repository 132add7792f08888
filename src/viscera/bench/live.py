"""Every scenario in real time, its own hand at work: whether ticks come when they are due, whatever the systems do.

As a session does it: a tick each millisecond, systems and pictures beside them, inputs recorded where the machine has
what recordings need. Where the scenario's own hand is done after some seconds, another one works on for the rest of
the minute (`_working_hand.py`). `ms` is the median of a tick, hand in to force out. `cuts` counts what a hand would
feel: moments in which no new force came for more than 2 ms, after which the haptic loop lets go. `tissue` and `systems`
are shares of real time, `systems_full` the same of the last third, when the world is as full as it gets. Rows `beside a
busy process` run while another process keeps one core busy; rows `auto` have the detail that `--detail auto` finds for
this machine, which is what a session takes (`detail` says which); rows `headless` run as fast as they can, ticks and
systems side by side. A whole run takes hours: `--only` measures some rows, as `--only river --only "*, headless"`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from viscera.bench._working_hand import WorkingHand
from viscera.bench.registry import Case, Row, benchmark, timed
from viscera.collecting import Collecting
from viscera.detail import AUTO
from viscera.device import Device
from viscera.haptics.priority import SessionPriority, step_back
from viscera.inputs import Behind, Input
from viscera.scenarios import FIRST, catalogue, make
from viscera.session.clock import Pacer
from viscera.timing import FRAME, TICK, TICKS_PER_FRAME
from viscera.view import AnyArray
from viscera.world import World

REAL_TIME = 1.0 / TICK
"""[ticks/s]"""
HEADLESS = 1.2
"""Times real time, without a window."""
SECONDS, QUICK_SECONDS = 60.0, 3.0
LARGE, MILLION, LARGE_SECONDS = ("liver", "cautery", "bleeding", "cholecystectomy"), 1_000_000, 10.0
WARM_UP = 1.0
"""Programs are recorded in the first second [s]."""
SCRIPTED = 10.0
"""For so long a scenario's own hand works before the other one takes over [s]."""
LASTING = ("palpation", "liver", "cholecystectomy")
"""Whose own hand works for the whole minute."""
PRIORITY, BUSY, FITTED, UNSEEN = ", priority", " beside a busy process", ", auto", ", headless"
"""Cases have the scenario's name, and these."""
WARM_TICKS = round(WARM_UP / TICK)
STALL = 2e-3
"""Without a new force for so long, the haptic loop lets go of the hand [s]."""

Record = Callable[[int, Input], None]
Given = Callable[[int], list[Input]]
"""What the hand does before a tick."""


def headline(device: Device) -> Row:
    return live_row(device, FIRST, QUICK_SECONDS, FIRST)


@benchmark("live", title="Every scenario in real time, over a minute", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Case]:
    seconds = QUICK_SECONDS if quick else SECONDS
    for name in catalogue():
        yield live_case(device, name, seconds)
        if not quick:
            yield live_case(device, name, seconds, first=True)
            yield live_case(device, name, seconds, busy=True)
            yield live_case(device, name, seconds, first=True, busy=True)
            yield Case(f"{name}{FITTED}", partial(live_row, device, name, seconds, f"{name}{FITTED}", detail=AUTO))
        yield Case(f"{name}{UNSEEN}", partial(headless_row, device, name, seconds))
    if device.is_cuda:
        for name in LARGE:
            for alone in (False, True):
                yield large_case(device, name, QUICK_SECONDS if quick else LARGE_SECONDS, alone=alone)


def live_case(device: Device, name: str, seconds: float, *, first: bool = False, busy: bool = False) -> Case:
    """`busy` beside a process that keeps a core busy."""

    def measure() -> Row:
        with busy_process() if busy else contextlib.nullcontext():
            return live_row(device, name, seconds, case, first=first)

    case = f"{name}{PRIORITY * first}{BUSY * busy}"
    return Case(case, measure)


def large_case(device: Device, name: str, seconds: float, *, alone: bool) -> Case:
    """With about a million masses, skin and particles to match; `alone` without the work of the systems."""

    def measure() -> Row:
        small = make(name, device=device, seed=1)
        detail = MILLION / sum(len(organ.tissue.params.nodes) for organ in small.organs)
        small.close()
        return live_row(device, name, seconds, case, first=True, alone=alone, detail=detail)

    case = f"{name}{PRIORITY}, a million masses{' alone' if alone else ''}"
    return Case(case, measure)


def live_row(
    device: Device,
    name: str,
    seconds: float,
    case: str,
    *,
    first: bool = False,
    alone: bool = False,
    **made_with: Any,
) -> Row:
    """One scenario under its own hand for so long; `first` asks for real-time priority; `alone` gives the systems no
    turn."""
    world = make(name, device=device, seed=1, **made_with)
    with recording(world) as record:
        columns = run_live(world, seconds, record, first=first, alone=alone)
    columns |= {"detail": world.detail} | {f"{stage}_ms_per_frame": ms for stage, ms in world.stages.items()}
    size = sum(len(organ.tissue.params.nodes) for organ in world.organs)
    world.close()
    return timed("live", case, size, device, columns.pop("work_p50_ms"), goal=REAL_TIME, extra=columns)


def headless_row(device: Device, name: str, seconds: float) -> Row:
    """One scenario as fast as it goes, ticks and systems side by side."""
    world = make(name, device=device, seed=1)
    given = hand_of(world, seconds)
    start = time.perf_counter()
    for _ in range(round(seconds / TICK)):
        for one in given(world.tick):
            world.apply(one)
        world.advance()
    world.wait()
    factor = world.time / (time.perf_counter() - start)
    size = sum(len(organ.tissue.params.nodes) for organ in world.organs)
    columns: dict[str, Any] = {"tissue": factor, "peak_force": world.peak_force}
    columns |= {f"{stage}_ms_per_frame": ms for stage, ms in world.stages.items()}
    world.close()
    return timed("live", f"{name}{UNSEEN}", size, device, 1.0 / factor, goal=HEADLESS * REAL_TIME, extra=columns)


def run_live(
    world: World, seconds: float, record: Record, *, first: bool = False, alone: bool = False
) -> dict[str, Any]:
    """What ticks and systems did over so many seconds of simulated time."""
    with Collecting() as collecting:  # as in a session
        return _run_live(world, seconds, record, collecting, first=first, alone=alone)


def _run_live(
    world: World, seconds: float, record: Record, collecting: Collecting, *, first: bool, alone: bool
) -> dict[str, Any]:
    given = hand_of(world, seconds)
    live = world.go_live()
    priority = SessionPriority(time.perf_counter()) if first else None
    slot: dict[str, AnyArray] = {n: np.zeros(spec.shape, dtype=spec.kind) for n, spec in world.array_specs().items()}
    ticks = round(seconds / TICK)
    work, gaps = np.zeros(ticks), np.zeros(ticks)
    behind = 0
    pacer = Pacer()
    begin = last = time.perf_counter()
    turns = live.begun
    begin_full, turns_full = begin, turns
    for number in range(-WARM_TICKS, ticks):
        if number == 0:
            begin, behind, turns = time.perf_counter(), 0, live.begun
            world.peak_force = 0.0
        if number == ticks - ticks // 3:
            begin_full, turns_full = time.perf_counter(), live.begun
        # What the scenario's hand thinks is not the tick's, but what it does is.
        inputs = [*given(world.tick), *([Behind()] if alone else [])]
        start = time.perf_counter()
        for one in inputs:
            world.apply(one)
            record(world.tick, one)
        world.advance()
        end = time.perf_counter()
        if world.behind:
            behind += 1
            record(world.tick - 1, Behind())
        if world.tick % TICKS_PER_FRAME == 0:
            world.frame()
            live.draw(lambda write: write(slot))
            if priority is not None:
                priority.watch(end)
        if number >= 0:
            work[number], gaps[number] = end - start, end - last
        last = end
        collecting.look(pacer.wait())
    end, turned = time.perf_counter(), live.begun
    live.settle()
    world.wait()
    got_priority = priority is not None and priority.first
    if priority is not None:
        step_back()
    percent = {"p50": 50.0, "p99": 99.0, "p999": 99.9, "worst": 100.0}
    columns: dict[str, Any] = {f"work_{n}_ms": 1e3 * float(np.percentile(work, q)) for n, q in percent.items()}
    columns |= {f"gap_{n}_ms": 1e3 * float(np.percentile(gaps, q)) for n, q in percent.items() if n != "p50"}
    return columns | {
        "within_2ms": float((work <= STALL).mean()),
        "cuts": int((gaps > STALL).sum()),
        "tissue": ticks * TICK / (end - begin),
        "systems": (turned - turns) * FRAME / (end - begin),
        "systems_full": (turned - turns_full) * FRAME / (end - begin_full),
        "ticks_behind": behind,
        "peak_force": world.peak_force,
        "real_time_priority": got_priority,
        "cores": world.device.cores,
    }


def hand_of(world: World, seconds: float) -> Given:
    """The scenario's own, and where that is done before the end the one that works on."""
    if world.scenario in LASTING:
        return lambda tick: [*world.script(tick)]
    scripted = round(SCRIPTED / TICK)
    worker = WorkingHand(world, scripted, WARM_TICKS + round(seconds / TICK) - scripted)
    return lambda tick: [*world.script(tick)] if tick < scripted or not worker.works else [*worker.inputs(tick)]


@contextlib.contextmanager
def recording(world: World) -> Iterator[Record]:
    """Records what is given, where the machine has what recordings need; otherwise forgets it."""
    try:
        from viscera.session.recorder import Recorder, make_header
    except ImportError:
        yield lambda tick, given: None
        return
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder.create(Path(folder), make_header(world.source, world.seed, world.device.name))
        yield recorder.input
        recorder.close()


@contextlib.contextmanager
def busy_process() -> Iterator[None]:
    """Another process that takes all it gets of one core."""
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _spin() -> None:
    """Until who started it is gone, however that ended."""
    begun_by = os.getppid()
    while os.getppid() == begun_by:
        for _ in range(100_000):
            pass
