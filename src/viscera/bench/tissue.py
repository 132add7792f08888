"""The lattice: time per substep and per tick, beside Etheredge, Kunst and Sanders (2013), Tables 1 and 2.

A kernel row times one substep inside a recorded program; a tick row times what a haptic loop sees: tool in, one tick,
force out, waited for. `document` is that source's rate on a Tesla C2050. Springs there are directed; so are ours here:
each of the up to 26 springs of a mass counts, as it is computed, once per end.

`floor_ratio` is over the largest of three least times for the places that are computed, empty ones included:

- bytes: each place's state moved once (position and velocity read and written, 13 stored stiffnesses, inverse mass,
  drag) and the tables of its tile, at the rate a large copy reaches here. A lattice that fits a cache can beat it.
- issue: instructions of the compiled kernel (vector arithmetic on cpu) at the rate the cores can issue them.
- load/store: its load and store instructions at the rate the load/store units take them.

Instructions are constants here, counted by benchmarks/count_instructions.py.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.bench._shapes import SHAPES, Nodes
from viscera.bench.registry import Row, benchmark, median_ms, timed, times_ms
from viscera.device import Device, Stage
from viscera.tissue import substeps as probing
from viscera.tissue.lattice import make_lattice
from viscera.tissue.layout import TILE
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.slabs import make_slabs
from viscera.tissue.springs import DIRECTIONS
from viscera.tissue.stepping import record_extra, record_step
from viscera.tissue.tissue import Tissue

DOCUMENT = {
    146_476: (3_614_788, 0.886, 902), 95_487: (2_336_252, 0.589, 1_246), 67_477: (1_638_652, 0.433, 1_564),
    41_851: (1_004_416, 0.281, 2_138), 21_276: (499_364, 0.148, 3_103), 17_000: (395_772, 0.142, 3_167),
    15_096: (349_844, 0.137, 3_205), 11_726: (268_944, 0.0888, 3_838), 11_000: (251_700, 0.0766, 4_057),
    10_248: (233_660, 0.0755, 4_063), 8_876: (202_068, 0.0732, 4_090), 6_569: (146_588, 0.0553, 4_584),
    4_688: (102_660, 0.0543, 4_574), 2_575: (54_282, 0.0551, 4_585), 1_210: (24_024, 0.0433, 4_853),
    307: (5_142, 0.0423, 5_000),
}  # fmt: skip
"""Masses: directed springs, kernel time [ms] (Table 2), framework rate [Hz] (Table 1, two devices, double buffer)."""

LARGEST = 146_476
BEYOND = (1_000_000, 10_000_000, 25_000_000)
ORGANS = (100_000, 1_000_000, 10_000_000)
ONE_SIZE = 21_276
"""Where kernels and options are compared."""

SPACING = 0.002
"""[m]"""
SOFT = Material("soft", 600.0, 1_060.0)
"""One substep carries it, so that a tick is a step of the document's."""
FIVE = tuple(Material(f"tissue {n}", 120.0 * n, 1_000.0 + 20.0 * n) for n in range(1, 5))

BYTES_PER_PLACE = 4 * 12 + 2 * 13 + 4 + 4
BYTES_PER_TILE = 4 * (9 + 1 + 3)


@dataclass(frozen=True)
class Machine:
    """What a kind of device can do at most, and what the kernel asks of it per tile of 16 places."""

    instructions: float
    loads: float
    issue_rate: float
    """Instructions per cycle and core."""
    load_rate: float
    clock: float
    """[Hz]"""


CPU = Machine(instructions=558.0, loads=128.0, issue_rate=2.0, load_rate=1.0, clock=3.7e9)
"""AVX-512 on Zen 4: two 512-bit arithmetic instructions per cycle (one adds, one multiplies), one 512-bit load. 26
square roots and 26 divisions among them count as one each, though they take longer."""
CUDA = Machine(instructions=430.0, loads=49.0, issue_rate=4.0, load_rate=1.0, clock=1.98e9)
"""H200, instructions of whole warps: four schedulers per multiprocessor, one load or store of 128 bytes per cycle."""


def lattice(device: Device, nodes: Nodes, *, native: bool = True, poisson: float = 0.25, mixed: bool = False) -> Tissue:
    """A shaken lattice, anchored at its lowest layer. `mixed` has five materials and a cut half way through."""
    options = {"further": FIVE, "material_of": (np.arange(len(nodes)) * 7 % 5).astype(np.uint8)} if mixed else {}
    params = LatticeParams(
        nodes=nodes,
        spacing=SPACING,
        origin=(0.0, 0.0, 0.0),
        anchored=nodes[:, 2] == nodes[:, 2].min(),
        material=SOFT,
        stiffest=SOFT.young,
        poisson=poisson,
        viscous_time=0.0,
        **options,
    )
    with _known_substeps(len(nodes)):
        tissue = make_lattice(device, params, native=native)
    if mixed:
        cut_half_way(tissue)
    motion = np.random.default_rng(0).normal(0.0, 1e-5, nodes.shape)
    motion[params.anchored] = 0.0
    tissue.set_motion(motion, np.zeros_like(motion))
    return tissue


@contextlib.contextmanager
def _known_substeps(masses: int) -> Iterator[None]:
    """A large lattice takes minutes to find out how many substeps it needs. One carries SOFT in any of our shapes, as
    the smaller ones find."""
    kept = probing.PROBE_ROUNDS
    probing.PROBE_ROUNDS = kept if masses < 50_000 else 0
    try:
        yield
    finally:
        probing.PROBE_ROUNDS = kept


def cut_half_way(tissue: Tissue) -> None:
    """Takes away the springs that cross the middle plane of x in the upper half."""
    nodes, places = tissue.params.nodes, tissue.layout.slot_of_node
    middle, upper = nodes[:, 0].mean(), nodes[:, 2] > nodes[:, 2].mean()
    table = tissue.constants.stiffness.numpy().reshape(len(DIRECTIONS), -1).copy()
    for row, (x, _, _) in enumerate(DIRECTIONS):
        crosses = (nodes[:, 0] < middle) != (nodes[:, 0] + x < middle)
        table[row, places[crosses & upper]] = 0.0
    tissue.constants.stiffness.assign(table.ravel())


def directed_springs(tissue: Tissue) -> int:
    return 2 * int(np.count_nonzero(tissue.constants.stiffness.numpy()))


def launch_substeps(stage: Stage, tissue: Tissue, steps: int) -> None:
    """Substeps without a tool, one after the other."""
    stage.upload(tissue.state.live)
    here, there = tissue.state.position
    for _ in range(steps):
        record_extra(stage, tissue, here)
        record_step(stage, tissue, 0, here, there)
        here, there = there, here


def kernel_ms(device: Device, tissue: Tissue, steps: int, repeats: int) -> float:
    """Median time of one substep, without a tool, inside a program of `steps` of them."""
    work = steps * len(tissue.params.nodes)
    program = device.record(launch_substeps, work=work, arguments=[tissue, steps])
    return float(np.median(times_ms(program.run, device, repeats))) / steps


def tick_times(tissue: Tissue, repeats: int) -> NDArray[np.float64]:
    """Wall times of whole ticks: tool pose in, substeps, force read [ms]."""
    rest = tissue.rest_positions()
    top = rest[rest[:, 2].argmax()]
    tip = np.tile(np.add(top, (0.0, 0.0, 0.002)), (2, 1))
    times = np.empty(repeats)
    for i in range(-20, repeats):
        start = time.perf_counter()
        tissue.set_tool(0, start=tip, end=tip, radius=0.004, friction=0.1)
        tissue.step()
        tissue.tool_force(0)
        times[max(i, 0)] = 1e3 * (time.perf_counter() - start)
    return times


@cache
def copy_rate(device: Device) -> float:
    """Bytes per second, read and written, that a copy far larger than the caches moves on all cores."""
    count = 500_000_000 if device.is_cuda else 16_000_000
    a, b = (wp.zeros(count, dtype=wp.float32, device=device.warp) for _ in range(2))

    def build(stage: Stage) -> None:
        if device.is_cuda:
            wp.copy(a, b)
        else:
            first, last = count * stage.core // stage.cores, count * (stage.core + 1) // stage.cores
            wp.copy(a, b, first, first, last - first)

    return 8.0 * count / (1e-3 * median_ms(device.record(build).run, device, repeats=5))


def floors(device: Device, tissue: Tissue) -> dict[str, float]:
    """Least times of a substep [ms] by what limits it."""
    tiles = len(tissue.layout.tile_slot)
    machine = CUDA if device.is_cuda else CPU
    cores = device.warp.sm_count if device.is_cuda else device.cores
    cycles = 1e3 * tiles / (cores * machine.clock)
    return {
        "floor_bytes_ms": 1e3 * tiles * (TILE * BYTES_PER_PLACE + BYTES_PER_TILE) / copy_rate(device),
        "floor_issue_ms": cycles * machine.instructions / machine.issue_rate,
        "floor_load_store_ms": cycles * machine.loads / machine.load_rate,
    }


def headline(device: Device) -> Row:
    return _tick(device, "box", lattice(device, SHAPES["box"](LARGEST)), quick=True)


@benchmark("tissue", title="Lattice: one substep and one haptic tick", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    if quick:
        sizes = [307, 4_688, ONE_SIZE, LARGEST]
    else:
        sizes = [*sorted(DOCUMENT), *(BEYOND if device.is_cuda else BEYOND[:1])]
    for masses in sizes:
        yield from _pair(device, "box", lattice(device, SHAPES["box"](masses)), quick)
    mixed = lattice(device, SHAPES["box"](LARGEST), mixed=True)
    yield from _pair(device, "box, five materials and a cut", mixed, quick)
    for masses in ORGANS[:1] if quick else ORGANS if device.is_cuda else ORGANS[:2]:
        yield from _pair(device, "organ", lattice(device, SHAPES["liver"](masses)), quick)
    yield from _options(device, quick)


def _options(device: Device, quick: bool) -> Iterator[Row]:
    """The plain kernel, nearly incompressible tissue, and slabs, at one size."""
    nodes = SHAPES["box"](ONE_SIZE)
    yield _kernel(device, "box, plain kernel", lattice(device, nodes, native=False), quick)
    yield _kernel(device, "box, ν = 0.45", lattice(device, nodes, poisson=0.45), quick)
    whole = lattice(device, SHAPES["box"](ONE_SIZE if quick else LARGEST))
    for count in (1, 2, 4):
        yield _slabs(device, whole, count, quick)


def _slabs(device: Device, whole: Tissue, count: int, quick: bool) -> Row:
    """The same tick in slabs on one device: what cutting and exchanging cost."""
    masses = len(whole.params.nodes)
    with _known_substeps(masses):
        cut = make_slabs([device] * count, whole.params)
    times = tick_times(cut, repeats=50 if quick else 300)
    return timed(
        "tissue", f"tick, box, slabs: {count}", masses, device, float(np.median(times)),
        extra={"p99_ms": float(np.percentile(times, 99)), "substeps": cut.substeps,
               "halo_bytes_per_substep": cut.slabs.halo_bytes() if cut.slabs else 0},
    )  # fmt: skip


def _pair(device: Device, case: str, tissue: Tissue, quick: bool) -> Iterator[Row]:
    yield _kernel(device, case, tissue, quick)
    yield _tick(device, case, tissue, quick)


def _kernel(device: Device, case: str, tissue: Tissue, quick: bool) -> Row:
    masses = len(tissue.params.nodes)
    _, document_ms, _ = DOCUMENT.get(masses, (None, None, None))
    ms = kernel_ms(device, tissue, steps=20 if masses < 200_000 else 4, repeats=7 if quick else 30)
    springs = directed_springs(tissue)
    # Counted for the springs of the native kernel alone.
    least = floors(device, tissue) if tissue.native and tissue.constants.features == 0 else {}
    return timed(
        "tissue", f"kernel, {case}", masses, device, ms,
        document=None if document_ms is None else 1e3 / document_ms,
        goal=_kernel_goal(device, case, masses),
        floor_ratio=ms / max(least.values()) if least else None,
        extra={"directed_springs": springs, "ns_per_directed_spring": 1e6 * ms / springs, **_about(tissue),
               "masses_x_substeps_per_ms": masses / ms, **least},
    )  # fmt: skip


def _tick(device: Device, case: str, tissue: Tissue, quick: bool) -> Row:
    masses = len(tissue.params.nodes)
    _, _, document_hz = DOCUMENT.get(masses, (None, None, None))
    times = tick_times(tissue, repeats=50 if quick else 500 if masses < 2_000_000 else 100)
    return timed(
        "tissue", f"tick, {case}", masses, device, float(np.median(times)), document=document_hz,
        goal=1e3 / 0.060 if device.is_cuda and masses == LARGEST else None,
        extra={"p99_ms": float(np.percentile(times, 99)), **_about(tissue)},
    )  # fmt: skip


def _about(tissue: Tissue) -> dict[str, float]:
    places = len(tissue.layout.tile_slot) * TILE
    return {
        "E_Pa": tissue.params.material.young,
        "dx_mm": 1e3 * tissue.params.spacing,
        "substeps": tissue.substeps,
        "places_per_mass": places / len(tissue.params.nodes),
    }


def _kernel_goal(device: Device, case: str, masses: int) -> float | None:
    """[substeps/s]"""
    if "plain" in case or "ν" in case:
        return None
    if not device.is_cuda:
        return 24_000e3 / masses
    if masses == LARGEST:
        return 1e3 / 0.010
    return (10e6 if case == "organ" else 25e6) * 1e3 / masses if masses >= 5_000_000 else None
