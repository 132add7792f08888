"""Where adaptive water may serve a surgeon: contrast fluid in a colon, fine where the radiologist looks.

A colon of 8 040 triangles, its lower half filled: with 10 000 small particles of one size, or with 5 000 that split
where somebody looks, at its middle, seen whole. Both have 20 and 50 kernel particles as the pools, and meet the same
walls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from viscera import water
from viscera.anatomy.colon import colon
from viscera.bench.registry import Row, timed, times_ms
from viscera.bench.vessels import lower_half
from viscera.device import Device, Stage
from viscera.view import Camera
from viscera.water import adaptive
from viscera.water.boundary.contacts import ContactParams
from viscera.water.params import FluidParams, largest_step
from viscera.water.sizes import Sizes, support_of

NAME = "adaptive"
BASE = 5_000
FILLED = 0.5
"""Part of the colon."""
EVERY, TURNS, SETTLING_TURNS = 20, 25, 10
"""Steps per adaptive stage; turns of so many steps, and how many of them are not measured."""
QUIET = 0.2
"""Share of the steps below the time that is given."""


def rows(device: Device) -> Iterator[Row]:
    """Both fluids in turn, `EVERY` steps each."""
    fluids = {name: _fill(device, regular=name == "regular") for name in ("regular", "gaze")}
    moves = {name: device.record(_stepping(fluid), work=water.work(fluid)) for name, fluid in fluids.items()}
    fine = adaptive.make(fluids["gaze"])
    adaptive.look(fine, _camera(fluids["gaze"].params), 16.0 / 9.0, (0.5, 0.5))
    change = device.record(lambda stage: adaptive.step(stage, fine, "gaze"), work=water.work(fluids["gaze"]))
    steps: dict[str, list[float]] = {name: [] for name in fluids}
    changes: list[float] = []
    for turn in range(TURNS):
        for name, move in moves.items():
            took = times_ms(move.run, device, EVERY, warmup=0)
            steps[name] += took if turn >= SETTLING_TURNS else []
        changes += times_ms(change.run, device, 1, warmup=0)
    for fluid in fluids.values():
        water.check(fluid)
    spread = {"regular": 0.0, "gaze": float(np.quantile(changes, QUIET)) / EVERY}
    total = {name: float(np.quantile(steps[name], QUIET)) + spread[name] for name in fluids}
    for name, fluid in fluids.items():
        extra = {
            "ratio": total[name] / total["regular"],
            "share": spread[name] / total[name],
            "particles": water.count(fluid),
            "adaptive_ms": spread[name],
        }
        yield timed(NAME, f"colon, {name}", 2 * BASE, device, total[name], extra=extra)


def _stepping(fluid: water.Fluid) -> Callable[[Stage], None]:
    return lambda stage: water.step(stage, fluid)


def _camera(params: FluidParams) -> Camera:
    """Sees all of it."""
    low, high = (np.asarray(corner) for corner in (params.lower, params.upper))
    x, y, z = (float(value) for value in 0.5 * (low + high))
    away = 1.4 * float(np.linalg.norm(high - low))
    return Camera((x, y, z + away), (x, y, z), (0.0, 1.0, 0.0), 40.0)


def _fill(device: Device, *, regular: bool) -> water.Fluid:
    mesh = colon(triangles=8040)
    large = (FILLED * mesh.volume / BASE) ** (1.0 / 3.0)
    small, count = large / 2.0 ** (1.0 / 3.0), 2 * BASE if regular else BASE
    low, high = (tuple(corner.tolist()) for corner in mesh.bounds)
    sizes = Sizes(2, 2, (support_of(20.0), support_of(50.0)), settling=0.1, thickening=5.0)
    params = FluidParams(
        small if regular else large, low, high, dt=1e-7, support=support_of(50.0 if regular else 20.0), equation="gas",
        sound_speed=20.0, viscosity=0.05, sizes=None if regular else sizes,
    )  # fmt: skip
    params = replace(params, dt=0.8 * largest_step(params))
    places = lower_half(mesh, count, params.spacing)
    fluid = water.make(params, places, capacity=2 * BASE, device=device)
    walls = water.make_walls(mesh, radius=0.5 * small, device=device)
    water.add_vessel(fluid, walls, ContactParams(friction=0.1))
    return fluid
