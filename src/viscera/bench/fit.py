"""How much detail this machine carries with each scenario and organ, and whether it keeps real time with it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from viscera.bench.registry import Row, benchmark, timed
from viscera.device import Device, open_device
from viscera.scenarios import FIRST, catalogue, find_scenario, make
from viscera.scenarios.fit import Fit, fit
from viscera.timing import TICK
from viscera.world import World

REAL_TIME = 1.0 / TICK
"""[ticks/s]"""
SECONDS, QUICK_SECONDS = 20.0, 2.0
"""Simulated with the scenario's own hand [s]."""
ON_ORGANS = ("palpation", "cautery", "bleeding")
"""Scenarios that any organ may be given to."""
ANATOMY_VARIABLE = "VISCERA_ANATOMY"
"""A folder of meshes; without it only our own organs are measured."""


def headline(device: Device) -> Row:
    return measure_fit(device, FIRST, None, QUICK_SECONDS)


@benchmark("fit", title="Detail that keeps real time, per scenario and organ", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    seconds = QUICK_SECONDS if quick else SECONDS
    for name in catalogue():
        yield measure_fit(device, name, None, seconds)
    for name in ON_ORGANS:
        for mesh in anatomy():
            yield measure_fit(device, name, mesh, seconds)


def anatomy() -> list[Path]:
    """Meshes of the folder that the user named."""
    folder = os.environ.get(ANATOMY_VARIABLE)
    return sorted(Path(folder).glob("*.stl")) if folder else []


def measure_fit(device: Device, scenario: str, mesh: Path | None, seconds: float) -> Row:
    """Finds the detail anew, then runs the scenario's own hand for so long [s], as fast as it goes. `extra` has the
    detail, the real-time factor and the strongest force."""
    found = fit(find_scenario(scenario), device, mesh=mesh, fresh=True)
    place = open_device(device.name, device.cores)
    world = make(scenario, device=place, mesh=mesh, detail=found.detail)
    ms = _mean_tick_ms(world, round(seconds / TICK))
    row = _row(device, scenario, mesh, found, ms, world.peak_force)
    world.close()
    return row


def _mean_tick_ms(world: World, ticks: int) -> float:
    """Ticks and systems side by side, as in a session: what counts is whether a whole second takes one."""
    start = time.perf_counter()
    for _ in range(ticks):
        for one in world.script(world.tick):
            world.apply(one)
        world.advance()
    world.wait()
    return 1e3 * (time.perf_counter() - start) / ticks


def _row(device: Device, scenario: str, mesh: Path | None, found: Fit, ms: float, force: float) -> Row:
    case = scenario if mesh is None else f"{scenario}, {mesh.stem}"
    extra = {
        "detail": found.detail,
        "real_time_factor": 1e3 * TICK / ms,
        "peak_force_N": force,
        "predicted_tick_ms": found.tick_ms,
        "predicted_frame_ms": found.frame_ms,
        "kept_real_time_in_trial": found.real_time,
    }
    return timed("fit", case, found.masses, device, ms, goal=REAL_TIME, extra=extra)
