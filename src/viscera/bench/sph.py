"""Water: what a step costs, stage by stage, and how the cost grows with the number of particles.

A block of water falls in a box of its own, 32 neighbours in 3D (two spacings) unless a case says otherwise; pressure
after Tait, Müller's viscosity. Particles are stirred: their order in memory is that of the last sort, as always.

`floor_ratio` is time over the time in which the bytes that a step must move could be moved once, at the bandwidth of a
large copy measured beside it. Per particle: sorting reads and writes position, velocity and tag (28 + 28 bytes),
cells and indices (24); density reads a position and writes a density (20); pressure reads 36 and writes 36; forces
read 32 and write 16; moving reads 48 and writes 28: 296 bytes. Operations, for scale: 32 neighbours of about 215
candidates, at some 10 operations per candidate and 45 per neighbour in the two loops together, are about 5 700 per
particle, so small and middle sizes are bound by arithmetic, not by bytes.

Andersson's Figure 3.3 shows time against particles for 1 000 steps in 2D (his smoothing length 1.55 spacings, leap-
frog, density by continuity) on a Pentium III with 933 MHz; the text gives no numbers but "a couple of hundred
particles in real time" at steps of 0.2 ms, that is 200 particles at some 5 000 steps/s. The rows `Andersson` are his
case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import warp as wp

from viscera.bench.registry import Row, benchmark, median_ms, timed
from viscera.device import Device, Stage
from viscera.water.params import FluidParams
from viscera.water.sph import (
    find_density,
    find_forces,
    find_pressure,
    move,
    move_is_fused,
    pressure_is_fused,
    sort,
    step_fluid,
    step_work,
)
from viscera.water.state import Fluid, make_fluid
from viscera.water.walls import block

NAME = "sph"

SPACING = 0.01
"""[m]"""
STEP_BYTES = 296
"""Per particle and step; see above."""
STEP_OPERATIONS = 5_700
"""Per particle and step; see above."""
COPY_BYTES = 256 * 2**20
GOALS = {1_000_000: 1_000.0, 4_096_000: 250.0}
"""Steps per second on a large GPU."""
DOCUMENT = {200: 5_000.0}
"""Andersson §3.1: "a couple of hundred particles can be simulated in real-time", at steps of about 0.2 ms."""
STAGES: dict[str, Callable[[Stage, Fluid], None]] = {
    "sort": sort,
    "density": find_density,
    "pressure": find_pressure,
    "forces": find_forces,
    "move": move,
}


def headline(device: Device) -> Row:
    return step_row("step", stirred_block(device, 27), copy_bandwidth(device))


@benchmark(NAME, title="Water: weakly compressible and incompressible steps", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    bandwidth = copy_bandwidth(device)
    sides = (16, 27) if quick else (16, 27, 46, 64, 100, 126, 160)
    for side in sides if device.is_cuda or quick else sides[:-2]:
        fluid = stirred_block(device, side)
        yield step_row("step", fluid, bandwidth)
        for name, stage_of in stages_of(fluid).items():
            yield stage_row(name, fluid, stage_of)
    if device.is_cuda:
        yield from team_rows(device, bandwidth, sides)
    for side in (16,) if quick else (16, 27, 46, 64):
        fluid = stirred_block(device, side, equation="incompressible", sound_speed=20.0)
        row = step_row(f"incompressible, {fluid.params.iterations} iterations", fluid, bandwidth)
        yield row
    yield step_row("step, plain kernels", stirred_block(device, 27, native=False), bandwidth)
    for side in (27,) if quick else (27, 64):
        yield step_row("step, plain kernels, hashed grid", stirred_block(device, side, search="hashed"), bandwidth)
    yield from andersson(device, bandwidth, quick)


def stages_of(fluid: Fluid) -> dict[str, Callable[[Stage, Fluid], None]]:
    """The launches of a step: on cuda pressure is part of density's, and the move of the forces'."""
    stages: dict[str, Callable[[Stage, Fluid], None]] = dict(STAGES)
    if pressure_is_fused(fluid):
        stages = {"sort": sort, "density and pressure": find_density, "forces": find_forces, "move": move}
    if move_is_fused(fluid):
        stages["forces and move"] = stages.pop("forces")
        del stages["move"]
    return stages


def team_rows(device: Device, bandwidth: float, sides: Sequence[int]) -> Iterator[Row]:
    """Which team is best at which size: what `state.TEAMS` is chosen by."""
    for side in sides:
        for team in (1, 2, 4, 8, 16, 32):
            fluid = stirred_block(device, side, team=team)
            yield step_row(f"step, {team} threads per particle", fluid, bandwidth)
        yield step_row("step, plain loops", stirred_block(device, side, native=False), bandwidth)


def andersson(device: Device, bandwidth: float, quick: bool) -> Iterator[Row]:
    """His figure: linear in the number of particles. `seconds_1000` is the time of 1 000 steps."""
    for count in (200, 1_000, 4_000) if quick else (200, 1_000, 4_000, 20_000, 100_000, 400_000):
        side = round(math.sqrt(count))
        params = FluidParams(
            spacing=SPACING, lower=(-SPACING,) * 2, upper=((side + 1) * SPACING,) * 2, dt=2e-5, dimension=2,
            support=3.1, density="continuity", integrator="leapfrog", alpha=0.01, viscosity=0.0,
            sound_speed=math.sqrt(200.0 * 9.81 * 0.2),
        )  # fmt: skip
        fluid = make_fluid(params, block((0.0, 0.0), (side * SPACING,) * 2, SPACING), device)
        row = step_row("Andersson", fluid, bandwidth, document=DOCUMENT.get(count))
        row.extra["seconds_1000"] = row.ms
        yield row


def stirred_block(device: Device, side: int, **more: Any) -> Fluid:
    """side³ particles, a little out of order, with some speed."""
    loops: dict[str, Any] = {name: more.pop(name, None) for name in ("native", "team")}
    random = np.random.default_rng(1)
    x = block((0.0,) * 3, (side * SPACING,) * 3, SPACING)
    x += random.uniform(-0.1 * SPACING, 0.1 * SPACING, x.shape)
    params = FluidParams(
        spacing=SPACING, lower=(-2 * SPACING,) * 3, upper=((side + 2) * SPACING,) * 3, dt=2e-5, support=2.0, **more
    )
    return make_fluid(params, x, device, velocities=random.normal(0.0, 0.1, x.shape), **loops)


def step_row(case: str, fluid: Fluid, bandwidth: float, document: float | None = None) -> Row:
    device, n = fluid.device, fluid.capacity
    program = device.record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    ms = median_ms(program.run, device, repeats_for(n, device))
    floor = 1e3 * STEP_BYTES * n / bandwidth
    goal = GOALS.get(n) if device.is_cuda and case == "step" else None
    extra = {
        "ns_per_particle": 1e6 * ms / n,
        "bytes": STEP_BYTES * n,
        "operations": STEP_OPERATIONS * n,
        "gflops": 1e-6 * STEP_OPERATIONS * n / ms,
        "bandwidth": bandwidth,
    }
    return timed(NAME, case, n, device, ms, goal=goal, document=document, floor_ratio=ms / floor, extra=extra)


def stage_row(name: str, fluid: Fluid, stage_of: Callable[[Stage, Fluid], None]) -> Row:
    device, n = fluid.device, fluid.capacity
    program = device.record(lambda stage: stage_of(stage, fluid), work=step_work(fluid))
    ms = median_ms(program.run, device, repeats_for(n, device))
    return timed(NAME, f"stage: {name}", n, device, ms, extra={"ns_per_particle": 1e6 * ms / n})


def repeats_for(n: int, device: Device) -> int:
    work = 2_000_000_000 if device.is_cuda else 4_000_000
    return max(5, min(100, work // max(n, 1)))


def copy_bandwidth(device: Device) -> float:
    """Bytes read and written per second by a large copy."""
    a, b = (wp.zeros(COPY_BYTES // 4, dtype=float, device=device.warp) for _ in range(2))
    ms = median_ms(lambda: wp.copy(a, b), device, 5)
    return 2.0 * COPY_BYTES / (1e-3 * ms)
