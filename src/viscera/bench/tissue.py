"""The lattice: time per substep and per tick, beside Etheredge, Kunst and Sanders (2013), Tables 1 and 2.

A kernel row times one substep inside a long recorded program; a tick row times what a haptic loop sees: tool in, one
step, force out, waited for. `document` is that table's rate on a Tesla C2050. Springs there are directed; so are ours
here: each of the up to 26 springs of a mass counts, as it is computed, once per end.

The floor is the time to move each mass's state once (position and velocity read and written, 13 stored stiffnesses,
its inverse mass), 78 bytes per place, at the memory's rate; lattices that fit a cache can be faster than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.bench.registry import Row, benchmark, timed, times_ms
from viscera.device import Device, Stage
from viscera.tissue import kernels
from viscera.tissue.lattice import NATIVE_BLOCK, LatticeParams, Tissue, make_lattice
from viscera.tissue.layout import TILE
from viscera.tissue.materials import Material
from viscera.tissue.native import lattice_step_cpu, lattice_step_cuda

DOCUMENT = {
    146_476: (3_614_788, 0.886, 902), 95_487: (2_336_252, 0.589, 1_246), 67_477: (1_638_652, 0.433, 1_564),
    41_851: (1_004_416, 0.281, 2_138), 21_276: (499_364, 0.148, 3_103), 17_000: (395_772, 0.142, 3_167),
    15_096: (349_844, 0.137, 3_205), 11_726: (268_944, 0.0888, 3_838), 11_000: (251_700, 0.0766, 4_057),
    10_248: (233_660, 0.0755, 4_063), 8_876: (202_068, 0.0732, 4_090), 6_569: (146_588, 0.0553, 4_584),
    4_688: (102_660, 0.0543, 4_574), 2_575: (54_282, 0.0551, 4_585), 1_210: (24_024, 0.0433, 4_853),
    307: (5_142, 0.0423, 5_000),
}  # fmt: skip
"""Masses: directed springs, kernel time [ms] (Table 2), framework rate [Hz] (Table 1, two devices, double buffer)."""

BEYOND = (1_000_000, 10_000_000, 25_000_000)

BYTES_PER_PLACE = 4 * 12 + 26 + 4
MEMORY_RATE = {"cpu": 40e9, "cuda": 4.3e12}
"""Copy rate [bytes/s]: two cores of an AMD EPYC server, measured with a large copy; H200, likewise."""

SPACING = 0.002
SOFT = Material("test", 600.0, 1_060.0)


def cube(masses: int) -> NDArray[np.int32]:
    """Positions of a box as near a cube as its number of masses allows, filled row by row and cut off at `masses`."""
    side = round(masses ** (1 / 3) + 0.499)
    while side**3 < masses:
        side += 1
    place = np.arange(masses, dtype=np.int64)
    return np.stack([place % side, place // side % side, place // side**2], axis=1).astype(np.int32)


def lattice(device: Device, masses: int) -> Tissue:
    nodes = cube(masses)
    params = LatticeParams(
        nodes=nodes,
        spacing=SPACING,
        origin=(0.0, 0.0, 0.0),
        anchored=nodes[:, 2] == 0,
        material=SOFT,
        stiffest=SOFT.young,
    )
    tissue = make_lattice(device, params)
    rng = np.random.default_rng(0)
    motion = np.where(params.anchored[:, None], 0.0, rng.normal(0.0, 1e-5, (masses, 3)))
    tissue.set_motion(motion, np.zeros((masses, 3)))
    return tissue


def directed_springs(tissue: Tissue) -> int:
    return 2 * int(np.count_nonzero(tissue.constants.stiffness.numpy()))


def kernel_ms(device: Device, tissue: Tissue, steps: int, repeats: int) -> float:
    """Median time of one substep, without a tool, inside a program of `steps` of them."""

    def build(stage: Stage) -> None:
        launch_substeps(stage, tissue, steps)

    program = device.record(build, work=steps * len(tissue.params.nodes))
    return float(np.median(times_ms(program.run, device, repeats))) / steps


def launch_substeps(stage: Stage, tissue: Tissue, steps: int) -> None:
    state, tiles = tissue.state, len(tissue.layout.tile_slot)
    stage.upload(state.live)
    here, there = state.position
    for _ in range(steps):
        args: list[Any] = [tissue.constants, 0, state.live.array, state.tools.array, here]
        args += [state.velocity, there, state.force.array, state.broken.array]
        if not tissue.native:
            stage.launch(kernels.lattice_step, tiles * TILE, args)
        elif stage.device.is_cuda:
            stage.launch(lattice_step_cuda, tiles * TILE, args)
        else:
            stage.launch(lattice_step_cpu, tiles, args, block=NATIVE_BLOCK)
        here, there = there, here


def tick_times(device: Device, tissue: Tissue, repeats: int) -> NDArray[np.float64]:
    """Wall times of whole ticks: tool pose in, substeps, force read [ms]."""
    import time

    top = tissue.rest_positions().max(axis=0)
    tip = np.array([[0.5 * top[0], 0.5 * top[1], top[2] + 0.002]] * 2)
    for _ in range(20):
        tissue.step()
    times = np.empty(repeats)
    for i in range(repeats):
        start = time.perf_counter()
        tissue.set_tool(0, start=tip, end=tip, radius=0.004, friction=0.1)
        tissue.step()
        tissue.tool_force(0)
        times[i] = 1e3 * (time.perf_counter() - start)
    return times


@benchmark("tissue", title="Lattice: one substep and one haptic tick")
def run(device: Device, quick: bool) -> Iterator[Row]:
    sizes = [146_476, 21_276, 4_688, 307] if quick else [*sorted(DOCUMENT), *(BEYOND if device.is_cuda else BEYOND[:1])]
    rate = MEMORY_RATE["cuda" if device.is_cuda else "cpu"]
    for masses in sorted(sizes):
        tissue = lattice(device, masses)
        _, document_ms, document_hz = DOCUMENT.get(masses, (None, None, None))
        springs = directed_springs(tissue)
        small = masses < 200_000
        ms = kernel_ms(device, tissue, steps=20 if small else 4, repeats=10 if quick else 30)
        floor = 1e3 * BYTES_PER_PLACE * masses / rate
        yield timed(
            "tissue", "kernel", masses, device, ms,
            document=None if document_ms is None else 1e3 / document_ms,
            goal=_kernel_goal(device, masses),
            floor_ratio=ms / floor,
            extra={"directed_springs": springs, "ns_per_directed_spring": 1e6 * ms / springs,
                   "masses_x_substeps_per_ms": masses / ms, "E_Pa": SOFT.young, "dx_mm": 1e3 * SPACING,
                   "substeps": tissue.substeps},
        )  # fmt: skip
        times = tick_times(device, tissue, repeats=100 if quick else 500)
        yield timed(
            "tissue", "tick", masses, device, float(np.median(times)), document=document_hz,
            goal=1e3 / 0.060 if device.is_cuda and masses == 146_476 else None,
            extra={"p99_ms": float(np.percentile(times, 99)), "substeps": tissue.substeps},
        )  # fmt: skip
        del tissue


def _kernel_goal(device: Device, masses: int) -> float | None:
    if not device.is_cuda:
        return 24_000e3 / masses
    if masses == 146_476:
        return 1e3 / 0.010
    return 25e6 * 1e3 / masses if masses >= 10_000_000 else None
