"""Adaptive water at full size: at rest through splits and merges, and how right its surface is where somebody looks.

Errors are compared at the same cost, which is counted in pairs of particles and not in time: so they can be measured
beside other programs. Those of full size take half an hour each, of a machine that does nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from verify.framework import Measured, figure
from viscera import water
from viscera.bench import _adaptive_error as accuracy
from viscera.device import Device, Program, open_device
from viscera.gaze.rows import gaze_input
from viscera.scenarios._adaptive.pools import BASE, CONTACT, PACED, POOLS, pool_params
from viscera.timing import FRAME, TICKS_PER_FRAME
from viscera.view import Camera
from viscera.water import adaptive
from viscera.water.basin import Basin
from viscera.water.mirrors import Mirrors
from viscera.world.system import Moment, System
from viscera.world.systems.adaptive_water import DRAWN, Refined, adapting

AREA = "adaptive"
BOUND = "less than that of a uniform run of the same cost"
FEW = 2_000
"""Base particles of the errors that are measured in minutes."""
PIXEL = 0.005
"""[m]"""
POP_FRAMES = 35
_LOOKED_AT = slice(round(0.05 / PIXEL), round(0.22 / PIXEL))
"""Pixels along x of what splits and merges, 5 to 22 cm from the left."""
TANK, DEPTH = (0.6, 0.3, 0.5), 0.3
"""[m]"""
EYE = Camera((0.3, -1.5, 0.3), (0.3, 0.15, 0.15), (0.0, 0.0, 1.0), 30.0)


@cache
def _device() -> Device:
    return open_device()


@dataclass(eq=False)
class _Tank:
    """At rest."""

    fluid: water.Fluid
    fine: adaptive.Adaptive
    base: int
    move: Program
    change: Program
    steps: int
    """In a frame."""


def _resting() -> _Tank:
    params = replace(pool_params(POOLS["dambreak"], "stiff"), upper=TANK)
    margin = 0.5 * params.spacing
    places = water.block((margin,) * 3, (TANK[0] - margin, TANK[1] - margin, DEPTH), params.spacing)
    # What a lattice leaves free lies on both sides: on one alone, the water would slosh for seconds.
    places[:, :2] += 0.5 * (np.asarray(TANK) - margin - places.max(axis=0))[:2]
    fluid = water.make(params, places, capacity=adaptive.most(params, len(places)), device=_device())
    basin = Basin(fluid, (0.0, 0.0, 0.0), TANK, [CONTACT["stiff"] * one for one in params.spacings])
    fluid.boundaries += [basin, Mirrors(fluid, basin)]
    fine, steps = adaptive.make(fluid, PACED), round(FRAME / params.dt)
    move = _device().record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    change = _device().record(lambda stage: adaptive.step(stage, fine, "gaze"), work=water.work(fluid))
    # A lattice that is let go swings for seconds under its own weight; damped, it comes to rest.
    for frame in range(round(1.5 / FRAME)):
        move.run(steps)
        if frame < round(1.0 / FRAME):
            fluid.velocity.assign(accuracy.CALM * fluid.velocity.numpy())
    return _Tank(fluid, fine, len(places), move, change, steps)


@figure(area=AREA, claim="a resting tank whose halves split and merge in turn: most kinetic energy", bound="≤ 9 mJ/kg")
def rest() -> Measured:
    tank = _resting()
    still, found = _energy(tank.fluid), []
    for x in (0.3, 0.7, 0.3):
        for _ in range(60):
            adaptive.look(tank.fine, EYE, 1.6, (x, 0.5))
            tank.move.run(tank.steps)
            tank.change.run()
            found.append(_energy(tank.fluid))
    water.check(tank.fluid)
    same = adaptive.quanta(tank.fluid) == 2 * tank.base
    after = float(np.mean(found[-10:]))
    speeds = [1e3 * float(np.sqrt(2.0 * one)) for one in (max(found), still, after)]
    return Measured(
        round(1e3 * max(found), 2), "mJ/kg", max(found) <= 9.0e-3 and same,
        f"{tank.base} base particles, {water.count(tank.fluid)} at the end; {1e3 * still:.2f} before, "
        f"{1e3 * after:.2f} a second after the last change; root mean square of speeds {speeds[0]:.0f} mm/s at most, "
        f"{speeds[1]:.0f} before, {speeds[2]:.0f} after; mass kept exactly: {same}",
    )  # fmt: skip


@figure(
    area=AREA,
    claim="where a resting tank splits and merges: how far the drawn surface moves from one picture to the next",
    bound="≤ 10 % of a ball's radius",
)
def pop() -> Measured:
    """In the balls that the page draws, and in the particles themselves, which would be drawn without blending."""
    tank = _resting()
    system = adapting(Refined(tank.fluid, tank.fine, tank.steps, EYE, 0.5 * TANK[1]), 0)
    jumps: list[list[float]] = []
    before = _shown(tank.fluid, system)
    # Somebody looks at the left, then at the right: what was split there merges.
    for frame in range(2 * POP_FRAMES):
        system.tables[0].change(gaze_input(EYE, 1.6, 0.35 if frame < POP_FRAMES else 0.75, 0.5).rows)
        system.frame(Moment(frame * TICKS_PER_FRAME, (), dict))
        after = _shown(tank.fluid, system)
        jumps.append([float(np.abs(b - a)[_LOOKED_AT].mean()) for a, b in zip(before, after, strict=True)])
        before = after
    radius = DRAWN * tank.fluid.params.spacing
    drawn, bare = (np.array([pair[k] for pair in jumps]) / radius for k in range(2))
    worst, last = float(drawn.max()), slice(POP_FRAMES - 5, POP_FRAMES)
    return Measured(
        round(100.0 * worst, 1), "%", worst <= 0.1,
        f"mean of the part that changes, {1e3 * worst * radius:.2f} mm at most, "
        f"{1e3 * drawn[last].mean() * radius:.2f} mm half a second after it began to split; as it splits "
        f"{100 * drawn[:POP_FRAMES].max():.1f} %, as it merges {100 * drawn[POP_FRAMES:].max():.1f} %; the particles "
        f"themselves {100 * bare[:POP_FRAMES].max():.1f} % and {100 * bare[POP_FRAMES:].max():.1f} %",
    )  # fmt: skip


def _shown(fluid: water.Fluid, system: System) -> list[np.ndarray]:
    """The drawn surface, and that of balls where the particles are."""
    show = system.shows[0]
    radius = DRAWN * fluid.params.spacing
    balls = show.arrays["water"][: show.counts()["water"], :3]
    return [_drawn(one.astype(float), radius) for one in (balls, water.particles(fluid)["position"])]


def _drawn(x: np.ndarray, radius: float) -> np.ndarray:
    """The surface as it is drawn, seen from above [m]: the highest of the balls, by pixel."""
    top = x[x[:, 2] > x[:, 2].max() - 3.0 * radius]
    across, along = (np.arange(0.5 * PIXEL, side, PIXEL)[:, None] for side in TANK[:2])
    far = (across[:, None] - top[:, 0]) ** 2 + (along[None] - top[:, 1]) ** 2
    return np.where(far < radius**2, top[:, 2] + np.sqrt(np.maximum(radius**2 - far, 0.0)), 0.0).max(axis=-1)


def _energy(fluid: water.Fluid) -> float:
    """Kinetic [J/kg]."""
    found = water.particles(fluid)
    mass = 0.5 ** found["level"]
    return float(0.5 * (mass * (found["velocity"].astype(float) ** 2).sum(axis=1)).sum() / mass.sum())


def _error(name: str, base: int = BASE) -> Measured:
    found = list(accuracy.curve(accuracy.CASES[name], open_device(None, cores=1), base))
    points = {one.name: one for one in found}
    gaze, both, regular = points["gaze"], points["gaze and surface"], points["regular"]
    other, beside = (accuracy.uniform_error(found, one.pairs) for one in (gaze, both))
    return Measured(
        round(1e3 * gaze.error, 2), "mm", gaze.error < other,
        f"uniform at its cost of {1e-6 * gaze.pairs:.3f} million pairs a frame {1e3 * other:.2f} mm; gaze and surface "
        f"{1e3 * both.error:.2f} mm at {1e-6 * both.pairs:.3f}, uniform there {1e3 * beside:.2f} mm; regular "
        f"{1e-6 * regular.pairs:.3f}, chance {1e3 * regular.error:.2f} mm; {base} base particles, "
        f"{len(accuracy.SEEDS)} seeds, three gazes",
    )  # fmt: skip


@figure(area=AREA, claim="surface inside the gaze disc of a dam break, off the regular run's", bound=BOUND,
        needs=("quiet",))  # fmt: skip
def error_dambreak() -> Measured:
    return _error("dambreak")


@figure(area=AREA, claim="surface inside the gaze disc of waves, off the regular run's", bound=BOUND,
        needs=("quiet",))  # fmt: skip
def error_waves() -> Measured:
    return _error("waves")


@figure(area=AREA, claim="the same of a dam break with 2 000 base particles", bound=BOUND)
def error_dambreak_of_few() -> Measured:
    return _error("dambreak", FEW)


@figure(area=AREA, claim="the same of waves with 2 000 base particles", bound=BOUND)
def error_waves_of_few() -> Measured:
    return _error("waves", FEW)
