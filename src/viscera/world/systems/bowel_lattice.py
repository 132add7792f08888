"""A bowel whose wall gives way: a thin lattice (tissue/hollow.py) along its centreline carries the wall's points.

Muscle squeezes it where a wave is, gas that is not at the resting shape's pressure pushes or lets go, and the liquid
inside presses with its depth. All points of the wall go along with the four masses around them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.anatomy.along import Attached
from viscera.anatomy.colon import Centreline
from viscera.device import Stage
from viscera.timing import FRAME
from viscera.tissue.hollow import (
    HollowParams,
    check_hollow,
    closing_tension,
    make_hollow,
    press_hollow,
    step_hollow,
    substeps,
)
from viscera.water.boundary.wall_pressure import step_pressure
from viscera.water.state import Fluid

FloatArray = NDArray[np.float64]

SIDES = 16
"""Masses around."""
SMOOTH = 0.15
"""Time over which the liquid's pressure is a mean [s]."""
HARDEST = 5.0e3
"""A liquid presses with no more than that [Pa]: half a metre of it."""


class BowelLattice:
    """The lattice, what loads it, and what hangs on it."""

    def __init__(self, line: Centreline, fluid: Fluid, time: float, params: HollowParams | None = None) -> None:
        """`time` [s] is how far one `advance` goes."""
        rest, self.lengths, self.radii = rings_along(line)
        self.rest = rest.reshape(-1, 3)
        """Of each mass, a ring after the other [m], (n, 3)."""
        device, count = fluid.device, len(self.rest)
        self.hollow = make_hollow(rest, params, device=device)
        self._fluid, self._time = fluid, time
        self._rings = len(rest)
        self._bed, self._tension = device.port(count, wp.vec3), device.port(count, wp.float32)
        self._gas = device.port(1, wp.float32)
        self._bed.host[:] = self.rest
        self.hollow.bed, self.hollow.tension = self._bed.array, self._tension.array
        self._liquid = wp.zeros(count, dtype=float, device=device.warp)
        self._program = device.record(self._record, work=count * substeps(self.hollow, time))
        self._feel = device.record(self._record_feeling, work=count)

    def _record(self, stage: Stage) -> None:
        h = self.hollow
        for port in (self._bed, self._tension, self._gas):
            stage.upload(port)
        press_hollow(stage, h, self._gas.array, self._liquid, HARDEST)
        step_hollow(stage, h, self._time)

    def _record_feeling(self, stage: Stage) -> None:
        step_pressure(stage, self._fluid, self.hollow.place, self._liquid, keeps=math.exp(-FRAME / SMOOTH))

    def feel(self) -> None:
        """The liquid's pressure, once a frame, after its steps."""
        self._feel.run()

    def advance(self, bed: FloatArray, closing: FloatArray, gas: float) -> None:
        """By its time: the bed [m], (n, 3), by how much of its radius muscle closes each mass's place, (n,), and the
        gas's pressure over that of the resting shape [Pa]."""
        self._bed.host[:] = bed
        self._tension.host[:] = closing_tension(self.hollow.params, self.radii, closing)
        self._gas.host[0] = gas
        self._program.run()
        self.hollow.device.synchronize()
        check_hollow(self.hollow)

    def displacement(self) -> FloatArray:
        """Of each mass from where it was made [m], (n, 3)."""
        return self.hollow.place.numpy().astype(np.float64) - self.rest

    def carriers(self, points: Attached, line: Centreline) -> tuple[NDArray[np.int64], FloatArray]:
        """The four masses around each point, (n, 4), and their weights: along and around between rings and sides."""
        along = np.clip(points.lengths / line.lengths[-1], 0.0, 1.0) * (self._rings - 1)
        around = np.arctan2(points.local[:, 1], points.local[:, 0]) / (2.0 * math.pi) * SIDES % SIDES
        i, j = np.minimum(along.astype(np.int64), self._rings - 2), around.astype(np.int64) % SIDES
        f, g = along - i, around - np.floor(around)
        after = (j + 1) % SIDES
        masses = np.stack([i * SIDES + j, i * SIDES + after, (i + 1) * SIDES + j, (i + 1) * SIDES + after], axis=1)
        return masses, np.stack([(1 - f) * (1 - g), (1 - f) * g, f * (1 - g), f * g], axis=1)

    def kept(self) -> dict[str, Any]:
        return {"lattice_place": self.hollow.place, "lattice_liquid": self._liquid}


def rings_along(line: Centreline) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Places of a lattice of about square cells around a centreline, (rings, `SIDES`, 3), and of each mass the length
    along it and the radius, (n,) [m]."""
    total = float(line.lengths[-1])
    rings = max(4, round(total * SIDES / (2.0 * math.pi * float(line.radii.mean()))))
    at = np.linspace(0.0, total, rings)

    def between(values: FloatArray) -> FloatArray:
        return np.stack([np.interp(at, line.lengths, one) for one in values.reshape(len(values), -1).T], axis=1)

    middle, along, across = between(line.points), between(line.tangents), between(line.across)
    radii = between(line.radii)[:, 0]
    along /= np.linalg.norm(along, axis=1)[:, None]
    across -= (across * along).sum(axis=1)[:, None] * along
    across /= np.linalg.norm(across, axis=1)[:, None]
    angle = 2.0 * math.pi * np.arange(SIDES) / SIDES
    ring = (
        np.cos(angle)[None, :, None] * across[:, None] + np.sin(angle)[None, :, None] * np.cross(along, across)[:, None]
    )
    places = middle[:, None] + radii[:, None, None] * ring
    return places, np.repeat(at, SIDES), np.repeat(radii, SIDES)
