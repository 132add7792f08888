"""The 1 kHz loop, live: a simulated hand in its haptic process holds a probe in a block of tissue that ticks here.

`ms` is the median time from the start of a tick to its force being published: pose in, substeps, force out. The
further columns are what a hand notices: how regular ticks come, and how long a pose takes to be answered. A session
does the same with snapshots, recording and commands beside it. `gaps_per_1000` says what the machine allows at best:
how many times in a thousand milliseconds a thread that does nothing but look at the clock was held up by more than
0.1 ms.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from viscera.bench.registry import Row, benchmark, pick, timed
from viscera.device import Device, open_device
from viscera.haptics.link import TimeSummary
from viscera.haptics.port import WARM_UP_TICKS, SessionPort
from viscera.haptics.priority import SESSION_LEVEL, come_first, step_back
from viscera.haptics.process import HapticProcess, HapticSpec
from viscera.inputs import ToolInput
from viscera.instruments import Tool, kit
from viscera.session.clock import Pacer
from viscera.timing import TICK
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import SOFT_TISSUE
from viscera.tissue.params import LatticeParams
from viscera.tissue.tissue import Tissue
from viscera.view import ToolState

SIDE = 0.096
"""Of the block [m]."""
PROBE_CELLS = 2.0
"""Radius of the probe over the spacing."""
REAL_TIME = 1.0 / TICK
GAP = 0.1e-3
"""What a tick may be late by without a hand that notices [s]."""
SIZES = (4_096, 1_000_000)
"""Masses: what a laptop should carry, and what a GPU should."""


class Block:
    """A cube of soft tissue on its underside, and a probe 40 mm above it."""

    def __init__(self, device: Device, masses: int) -> None:
        count = round(masses ** (1.0 / 3.0))
        axis = np.arange(count, dtype=np.int32)
        nodes = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
        spacing = SIDE / (count - 1)
        young = SOFT_TISSUE.young
        self.tissue: Tissue = make_lattice(
            device,
            LatticeParams(
                nodes,
                spacing,
                (-SIDE / 2, -SIDE / 2, 0.0),
                nodes[:, 2] == 0,
                SOFT_TISSUE,
                stiffest=young,
                poisson=0.25,
                viscous_time=0.0,
            ),
        )
        self.masses = len(nodes)
        self.home = (0.0, 0.0, SIDE + 0.04)
        self.radius = max(0.008, PROBE_CELLS * spacing)
        self.tool = Tool(0, kit.probe(self.radius).at(self.home))
        self.tools = [ToolState(0, position=self.home)]
        self.tick = 0

    def step(self, given: list[ToolInput]) -> None:
        tool = self.tool
        for one in given:
            tool.take(one)
        if tool.active:
            tool.follow(TICK)
            self.tissue.set_tool(0, start=tool.start[0], end=tool.end[0], radius=self.radius, friction=0.1)
        else:
            self.tissue.remove_tool(0)
        self.tissue.step()
        force, torque = self.tissue.tool_force(0)
        x, y, z = tool.tip.tolist()
        felt = (force[0], force[1], force[2]), (torque[0], torque[1], torque[2])
        self.tools = [ToolState(0, (x, y, z), active=tool.active, force=felt[0], torque=felt[1])]
        self.tick += 1


@dataclass(frozen=True)
class Felt:
    """A live run."""

    masses: int
    work_ms: float
    """Median of a tick, pose in to force out [ms]."""
    times: dict[str, TimeSummary]
    counters: dict[str, int]
    peak_force: float
    """Of the tissue on the probe [N]."""
    first: bool
    """Whether the system gave real-time priority."""


def feel_block(device: Device, masses: int, seconds: float) -> Felt:
    """The block at 1000 ticks per second under a simulated hand for so long."""
    block = Block(device, masses)
    with HapticProcess(HapticSpec(("hand",))) as haptic:
        first = come_first(SESSION_LEVEL)
        try:
            work, peak = _run(block, SessionPort(haptic.link, [block.home]), haptic, seconds)
        finally:
            step_back()
        times, counters = haptic.link.times(), haptic.link.counters()
    return Felt(block.masses, 1e3 * float(np.median(work)), times, counters, peak, first)


def clock_gaps(seconds: float) -> tuple[float, float]:
    """Of a thread that only looks at the clock: gaps of more than 0.1 ms per thousand milliseconds, and the longest
    [ms]."""
    count, longest = 0, 0.0
    start = last = time.perf_counter()
    while last - start < seconds:
        now = time.perf_counter()
        gap = now - last
        last = now
        if gap > GAP:
            count += 1
        longest = max(longest, gap)
    return count / (last - start), 1e3 * longest


def _run(block: Block, port: SessionPort, haptic: HapticProcess, seconds: float) -> tuple[list[float], float]:
    """How long each tick took [s], and the strongest force [N]."""
    pacer = Pacer()
    for _ in range(WARM_UP_TICKS + 50):
        _tick(block, port)
        pacer.wait()
    haptic.link.forget_times()
    work: list[float] = []
    peak = 0.0
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        _tick(block, port)
        work.append(time.perf_counter() - start)
        peak = max(peak, abs(block.tools[0].force[2]))
        pacer.wait()
    return work, peak


def _tick(block: Block, port: SessionPort) -> None:
    block.step(port.take())
    port.publish(block.tick, block.tools)


def headline(device: Device) -> Row:
    return pick(_live(device, SIZES[:1], gap_seconds=0.5, seconds=2.0), "live")


@benchmark("feel", title="The haptic loop, live: tick to tick, and pose to force", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    sizes = SIZES if device.is_cuda and not quick else SIZES[:1]
    yield from _live(device, sizes, gap_seconds=1.0 if quick else 10.0, seconds=3.0 if quick else 20.0)


def _live(device: Device, sizes: Sequence[int], gap_seconds: float, seconds: float) -> Iterator[Row]:
    gaps, longest = clock_gaps(gap_seconds)
    for masses in sizes:
        fresh = open_device(device.name, cores=device.cores if not device.is_cuda else None)
        felt = feel_block(fresh, masses, seconds)
        fresh.close()
        columns = {
            f"{name}_{figure}": getattr(felt.times[name], figure)
            for name in ("tick", "latency", "period")
            for figure in ("p50_ms", "p99_ms", "p999_ms", "longest_ms")
        }
        columns |= {"gaps_per_1000": gaps, "longest_gap_ms": longest, "real_time_priority": felt.first}
        columns |= {"within_2ms": felt.times["tick"].within_2ms, "peak_force": felt.peak_force}
        yield timed("feel", "live", felt.masses, device, felt.work_ms, goal=REAL_TIME, extra=columns)
