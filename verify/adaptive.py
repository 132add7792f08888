"""Adaptive water at full size: at rest through splits and merges, and how right its surface is where somebody looks.

The errors are compared at the same cost, which time decides, so these need a machine that does nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from verify.framework import Measured, figure
from viscera import water
from viscera.bench import _adaptive_error as accuracy
from viscera.device import Device, open_device
from viscera.scenarios._adaptive.pools import BASE, POOLS, pool_params
from viscera.timing import FRAME
from viscera.view import Camera
from viscera.water import adaptive
from viscera.water.basin import Basin
from viscera.water.flat_share import FlatShare

AREA = "adaptive"
BOUND = "less than that of a uniform run of the same cost"
SEEDS = 3
TANK, DEPTH = (0.6, 0.3, 0.5), 0.3
"""[m]"""
EYE = Camera((0.3, -1.5, 0.3), (0.3, 0.15, 0.15), (0.0, 0.0, 1.0), 30.0)


@cache
def _device() -> Device:
    return open_device()


@figure(area=AREA, claim="a resting tank whose halves split and merge in turn: most kinetic energy", bound="≤ 9 mJ/kg")
def rest() -> Measured:
    params = replace(pool_params(POOLS["dambreak"], "stiff"), upper=TANK)
    margin = 0.5 * params.spacing
    places = water.block((margin,) * 3, (TANK[0] - margin, TANK[1] - margin, DEPTH), params.spacing)
    fluid = water.make(params, places, capacity=adaptive.most(params, len(places)), device=_device())
    basin = Basin(fluid, (0.0, 0.0, 0.0), TANK, [0.5 * one for one in params.spacings])
    fluid.boundaries += [basin, FlatShare(fluid, basin)]
    fine, steps = adaptive.make(fluid), round(FRAME / params.dt)
    move = _device().record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    change = _device().record(lambda stage: adaptive.step(stage, fine, "gaze"), work=water.work(fluid))
    move.run(round(1.5 / params.dt))
    still, found = _energy(fluid), []
    for x in (0.3, 0.7, 0.3):
        for _ in range(60):
            adaptive.look(fine, EYE, 1.6, (x, 0.5))
            move.run(steps)
            change.run()
            found.append(_energy(fluid))
    water.check(fluid)
    same = adaptive.quanta(fluid) == 2 * len(places)
    return Measured(
        round(1e3 * max(found), 2), "mJ/kg", max(found) <= 9.0e-3 and same,
        f"{len(places)} base particles, {water.count(fluid)} at the end; {1e3 * still:.2f} before, "
        f"{1e3 * float(np.mean(found[-10:])):.2f} a second after the last change; mass kept exactly: {same}",
    )  # fmt: skip


def _energy(fluid: water.Fluid) -> float:
    """Kinetic [J/kg]."""
    found = water.particles(fluid)
    mass = 0.5 ** found["level"]
    return float(0.5 * (mass * (found["velocity"].astype(float) ** 2).sum(axis=1)).sum() / mass.sum())


def _error(name: str) -> Measured:
    found = list(accuracy.curve(accuracy.CASES[name], open_device(None, cores=1), BASE, SEEDS))
    points = {one.name: one for one in found}
    gaze, both, regular = points["gaze"], points["gaze and surface"], points["regular"]
    other, beside = (accuracy.uniform_error(found, one.ms) for one in (gaze, both))
    return Measured(
        round(1e3 * gaze.error, 2), "mm", gaze.error < other,
        f"uniform at its cost of {gaze.ms:.1f} ms a frame {1e3 * other:.2f} mm; gaze and surface "
        f"{1e3 * both.error:.2f} mm at {both.ms:.1f} ms, uniform there {1e3 * beside:.2f} mm; regular "
        f"{regular.ms:.1f} ms, chance {1e3 * regular.error:.2f} mm; {BASE} base particles, {SEEDS} seeds, three gazes, "
        "one core",
    )  # fmt: skip


@figure(area=AREA, claim="surface inside the gaze disc of a dam break, off the regular run's", bound=BOUND,
        needs=("quiet",))  # fmt: skip
def error_dambreak() -> Measured:
    return _error("dambreak")


@figure(area=AREA, claim="surface inside the gaze disc of waves, off the regular run's", bound=BOUND,
        needs=("quiet",))  # fmt: skip
def error_waves() -> Measured:
    return _error("waves")
