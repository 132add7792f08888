"""Smoke and blood in saline: what a frame of 16 ms costs on the systems' side, full of smoke, stirred by a tool.

A step of the flow is 48 ms long and takes three frames; the row is the mean of three, `worst_ms` the longest of them.
62.5 frames per second is real time, for all systems of a world together. The row of puffs has as many as there can be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from viscera.bench.registry import Row, benchmark, timed, times_ms
from viscera.device import Device
from viscera.scenarios import make
from viscera.timing import FRAME
from viscera.world import World
from viscera.world.system import Moment
from viscera.world.systems.puffs import AGE, FLOATS, LIFE, MOST_PUFFS, PLACE, UNITS
from viscera.world.systems.smoke import Smoke

NAME = "smoke"
REAL_TIME = 1.0 / FRAME
"""[frames/s]"""
SYSTEMS = {"smoke": "smoke", "hysteroscopy": "saline", "cautery": "smoke", "bleeding": "smoke"}
"""The system that has a flow, of each scenario."""
BURN = 1_200
"""Ticks of the scenario's own hand before anything is measured: bleeding's comes later, and burns not yet."""


def headline(device: Device) -> Row:
    return _row(device, "smoke", repeats=12)


@benchmark(NAME, title="Smoke and saline: one frame", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    for name in SYSTEMS:
        yield _row(device, name, repeats=12 if quick else 120)
    yield _puffs(device, repeats=12 if quick else 120)


def _row(device: Device, name: str, repeats: int) -> Row:
    world = make(name, device=device, seed=1)
    for tick in range(BURN if name != "bleeding" else 5_200):
        for one in world.script(tick):
            world.apply(one)
        world.step()
    system = world.system(SYSTEMS[name])
    now = _moment(world)
    times = np.array(times_ms(lambda: system.frame(now), device, 3 * repeats))
    cells = int(np.prod(system.holds.flow.params.cells))
    extra = {"worst_ms": float(np.median(times.reshape(-1, 3).max(axis=1))), "steps_per_s": 1.0 / (3.0 * FRAME)}
    ms = float(np.median(times.reshape(-1, 3).mean(axis=1)))
    world.close()
    return timed(NAME, name, cells, device, ms, goal=REAL_TIME, extra=extra)


def _puffs(device: Device, repeats: int) -> Row:
    """As many puffs as there can be, of all ages, over the tissue: they are as old before every frame."""
    world = make("smoke", device=device, seed=1)
    smoke: Smoke = world.system("smoke").holds
    smoke._set_model(1.0)
    rng = np.random.default_rng(1)
    low, high = smoke.organ.body.mesh.bounds
    crowd = np.zeros((MOST_PUFFS, FLOATS), dtype=np.float32)
    crowd[:, PLACE : PLACE + 3] = rng.uniform(low, high + np.array([0.0, 0.0, 0.08]), (MOST_PUFFS, 3))
    crowd[:, AGE], crowd[:, UNITS] = rng.uniform(0.0, 0.95 * LIFE, MOST_PUFFS), 1e6
    smoke.wake()
    now = _moment(world)

    def frame() -> None:
        smoke.puffs.rows.host[:] = crowd.ravel()
        smoke.puffs.count.host[0] = MOST_PUFFS
        smoke.frame(now)

    times = np.array(times_ms(frame, device, 3 * repeats)).reshape(-1, 3)
    cells = int(np.prod(smoke.flow.params.cells))
    extra = {"worst_ms": float(np.median(times.max(axis=1))), "puffs": MOST_PUFFS}
    world.close()
    return timed(
        NAME, f"{MOST_PUFFS} puffs", cells, device, float(np.median(times.mean(axis=1))), goal=REAL_TIME, extra=extra
    )


def _moment(world: World) -> Moment:
    return Moment(world.tick, [tool.copy() for tool in world.hands], dict, 0)
