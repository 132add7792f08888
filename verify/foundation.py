"""The foundation: one world, the same however it is run, in real time, seen by many."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import viscera
from verify.framework import Measured, figure
from verify.viewers import Viewer, serve, tick_rate, view
from viscera.session.replay import replay_report
from viscera.world import World

AREA = "foundation"
RUN_SECONDS = 2.0
LIVE_S = 8.0
"""Of a live session: long enough for a checkpoint in its log [s]."""


def headless(*arguments: str, seconds: float = RUN_SECONDS) -> dict[str, Any]:
    """One line of `viscera run palpation --headless`, from a process of its own."""
    command = [sys.executable, "-m", "viscera", "run", "palpation", "--headless", "--json", "--device", "cpu"]
    done = subprocess.run(
        [*command, "--seconds", str(seconds), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    (line,) = done.stdout.splitlines()
    return json.loads(line)


@cache
def reference_run() -> dict[str, Any]:
    """Seed 1, all cores: what the others are compared with."""
    return headless("--seed", "1")


def same(first: str, second: str, detail: str = "") -> Measured:
    return Measured("equal" if first == second else "different", "", first == second, detail or first[:16])


def differs(first: str, second: str) -> Measured:
    return Measured("different" if first != second else "equal", "", first != second)


# --- the same world --------------------------------------------------------------------------------------------------


@figure(area=AREA, claim="same seed, same state hash after 2 s, in two processes", bound="equal")
def same_seed() -> Measured:
    return same(reference_run()["state_hash"], headless("--seed", "1")["state_hash"])


@figure(area=AREA, claim="another seed gives another hash", bound="different")
def other_seed() -> Measured:
    return differs(reference_run()["state_hash"], headless("--seed", "2")["state_hash"])


@figure(area=AREA, claim="one tick of another hand gives another hash", bound="different")
def other_input() -> Measured:
    hashes = []
    for offset in (0.0, 1e-5):
        world = viscera.make("palpation", device="cpu", seed=1)
        _play(world, 200, offset)
        hashes.append(world.state_hash())
        world.close()
    return differs(*hashes)


@figure(area=AREA, claim="one core gives the same hash as two", bound="equal")
def one_core() -> Measured:
    one, two = (headless("--seed", "1", "--cores", str(cores)) for cores in (1, 2))
    return same(one["state_hash"], two["state_hash"])


@figure(area=AREA, claim="replay of a headless recording gives the same hash", bound="equal")
def headless_replay() -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        recorded = headless("--seed", "3", "--out", folder)
        done = replay_report(next(Path(folder).glob("*.h5")))
        done.world.close()
    return same(recorded["state_hash"], done.state_hash)


@figure(area=AREA, claim="a live session, replayed without a window, gives the same hash", bound="equal")
def live_replay() -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        with serve(Path(folder), "--device", "cpu", "--seed", "4") as served:
            moves = asyncio.run(_poke(served, LIVE_S))
        done = replay_report(next(Path(folder).glob("*.h5")))
        done.world.close()
    applied = len(done.recording.inputs)
    detail = f"{applied} of {moves} moves took effect in {done.recording.tick} ticks"
    return same(done.state_hash, done.recording.state_hash, detail if applied else "no move was recorded")


async def _poke(served: Any, seconds: float) -> int:
    async with view(served) as viewer:
        await _move_for(viewer, seconds)
        return viewer.sequence


async def _move_for(viewer: Viewer, seconds: float) -> list[float]:
    """Moves the hand about 60 times a second as the page does; returns how long each took to be seen [s]."""
    delays: list[float] = []
    start = time.monotonic()
    while (now := time.monotonic()) - start < seconds:
        depth = 0.006 * abs(np.sin(3.0 * (now - start)))
        sent = time.monotonic()
        seen = await viewer.move((0.0, 0.0, 0.038 - float(depth)))
        seen.add_done_callback(lambda future, sent=sent: delays.append(future.result() - sent))
        await asyncio.sleep(1 / 60)
    await asyncio.sleep(0.3)
    return delays


def _play(world: World, ticks: int, offset: float = 0.0) -> None:
    """The scenario's own hand; its first push is moved by `offset` [m]."""
    from dataclasses import replace

    from viscera.inputs import ToolInput

    for tick in range(ticks):
        for one in world.script(tick):
            if isinstance(one, ToolInput) and tick == 0:
                x, y, z = one.position
                one = replace(one, position=(x, y, z - offset))
            world.apply(one)
        world.step()


# --- cost ------------------------------------------------------------------------------------------------------------


@figure(
    area=AREA,
    claim="palpation (5 625 masses, 1000 ticks per simulated second) in real time on cpu",
    bound="≥ 1",
    needs=["quiet"],
)
def real_time() -> Measured:
    results = [headless("--seed", "1", seconds=10.0) for _ in range(3)]
    result = sorted(results, key=lambda one: one["real_time_factor"])[1]
    stages = ", ".join(f"{name} {ms:.2f}" for name, ms in result["stages"].items())
    factor = result["real_time_factor"]
    return Measured(factor, "× real time", factor >= 1.0, f"median of 3 runs of 10 s; ms per frame of 16 ms: {stages}")


@figure(area=AREA, claim="1 000 steps leave no Python memory behind", bound="≤ 2 kB")
def python_allocations() -> Measured:
    world = viscera.make("palpation", device="cpu", seed=1)
    _play(world, 200)
    world.step(200)
    gc.collect()
    tracemalloc.start()
    world.step(16)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    world.step(1000)
    gc.collect()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    world.close()
    grown = after - before
    # Counters that pass small integers (the tick, a sum of seconds) hold a few objects more than before.
    return Measured(grown, "bytes", grown <= 2048, f"highest in between {peak - before} bytes")


@figure(area=AREA, claim="1 000 steps allocate nothing in Warp", bound="0 allocations")
def warp_allocations() -> Measured:
    world = viscera.make("palpation", device="cpu", seed=1)
    _play(world, 200)
    said: list[str] = []
    with wp.ScopedMemoryTracker("steps", report_func=said.append):
        world.step(1000)
    world.close()
    totals = re.search(r"Total allocations:\n((?:    .*\n)*)", said[0])
    assert totals is not None, said[0]
    count = sum(int(number) for number in re.findall(r"^\s+\S+\s+(\d+) \(", totals.group(1), re.MULTILINE))
    return Measured(count, "allocations", count == 0)


# --- being seen ------------------------------------------------------------------------------------------------------

WATCH_S = 8.0


@figure(area=AREA, claim="twenty viewers get frames, each", bound="≥ 20 frames/s", needs=["quiet"])
def twenty_viewers_rate() -> Measured:
    watched = _watched()
    slowest = min(watched["rates_of_twenty"])
    return Measured(slowest, "frames/s", slowest >= 20, f"the fastest of them {max(watched['rates_of_twenty']):.0f}")


@figure(area=AREA, claim="twenty viewers cost the simulation", bound="≤ 5 %", needs=["quiet"])
def twenty_viewers_cost() -> Measured:
    watched = _watched()
    loss = 100 * (1 - watched["ticks_with_twenty"] / watched["ticks_with_one"])
    detail = f"{watched['ticks_with_one']:.0f} ticks/s with one viewer, {watched['ticks_with_twenty']:.0f} with twenty"
    return Measured(max(loss, 0.0), "%", loss <= 5, detail)


@figure(
    area=AREA, claim="a viewer that takes one frame per second slows the simulation", bound="≤ 2 %", needs=["quiet"]
)
def slow_viewer_cost() -> Measured:
    watched = _watched()
    loss = 100 * (1 - watched["ticks_with_slow"] / watched["ticks_with_one"])
    return Measured(max(loss, 0.0), "%", loss <= 2, f"{watched['ticks_with_slow']:.0f} ticks/s beside the slow viewer")


@figure(
    area=AREA, claim="a viewer that takes one frame per second slows another viewer", bound="≤ 5 %", needs=["quiet"]
)
def slow_viewer_beside() -> Measured:
    watched = _watched()
    alone, beside, slow = watched["rate_alone"], watched["rate_beside_slow"], watched["rate_slow"]
    detail = f"{alone:.1f} frames/s alone, {beside:.1f} beside it; it got {slow:.1f}"
    loss = 100 * (1 - beside / alone)
    return Measured(max(loss, 0.0), "%", loss <= 5 and slow <= 3, detail)


@figure(area=AREA, claim="from the hand's message to the frame that shows it, median", bound="≤ 35 ms", needs=["quiet"])
def latency() -> Measured:
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder), "--device", "cpu") as served:
        delays = sorted(1000 * delay for delay in asyncio.run(_latencies(served)))
    p95 = delays[int(0.95 * len(delays))]
    median = statistics.median(delays)
    return Measured(median, "ms", median <= 35, f"{len(delays)} moves; 95 % below {p95:.1f} ms; a frame is 16 ms")


async def _latencies(served: Any) -> list[float]:
    async with view(served) as viewer:
        await asyncio.sleep(1.0)
        return await _move_for(viewer, WATCH_S)


@cache
def _watched() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder), "--device", "cpu") as served:
        return asyncio.run(_watch(served))


async def _watch(served: Any) -> dict[str, Any]:
    from contextlib import AsyncExitStack

    async def ticks() -> float:
        return await asyncio.to_thread(tick_rate, served, WATCH_S)

    found: dict[str, Any] = {}
    async with view(served) as one:
        await asyncio.sleep(2.0)
        start = time.monotonic()
        found["ticks_with_one"] = await ticks()
        found["rate_alone"] = one.rate(start)
        async with view(served, ack_delay=1.0) as slow:
            await asyncio.sleep(2.0)
            start = time.monotonic()
            found["ticks_with_slow"] = await ticks()
            found["rate_beside_slow"], found["rate_slow"] = one.rate(start), slow.rate(start)
        async with AsyncExitStack() as stack:
            twenty = [one] + [await stack.enter_async_context(view(served)) for _ in range(19)]
            await asyncio.sleep(2.0)
            start = time.monotonic()
            found["ticks_with_twenty"] = await ticks()
            found["rates_of_twenty"] = [viewer.rate(start) for viewer in twenty]
    return found
