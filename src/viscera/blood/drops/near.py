"""How drops find each other, where they hold together or merge; `coupling` has the equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.blood.drops import coupling
from viscera.blood.drops.params import DropParams
from viscera.blood.film.params import LITTLE
from viscera.device import Device
from viscera.errors import InputError
from viscera.neighbors.grid import GridParams, GridState, make_grid

MOST_CELLS = 2**18
"""Of the search for drops beside each other."""

STIFFEST = 0.5
"""Most of √72 c_e √½ dt/r₀: leap-frog of a lone pair is stable below 2; in a clump of drops twelve pull at once."""


@dataclass(eq=False)
class Near:
    """How drops find each other."""

    grid: GridParams
    cells: GridState
    cohesion: Any
    """c_e [m/s] and c [1/s], vec2, shape (1,)."""
    merging: Any
    """Largest difference of velocity [m/s] and largest volume [pL], vec2, shape (1,)."""
    velocity: Any
    """Scratch: velocities after a kick, vec3, shape of the drops [m/s]."""
    partner: Any
    """Scratch: with whom each merges, int32, shape of the drops."""


def check_cohesion(params: DropParams, dt: float, volume: float) -> None:
    size = (6.0 * volume / math.pi) ** (1.0 / 3.0)
    step = 6.0 * params.cohesion * dt / (params.substeps * size)
    if step > STIFFEST * (1.0 + 1e-9):
        most, least = STIFFEST * params.substeps * size / (6.0 * dt), math.ceil(params.substeps * step / STIFFEST)
        raise InputError(
            f"cohesion = {params.cohesion:g} m/s is too much for {params.substeps} substeps of {dt:g} s together.",
            f"Take at most {most:.3g} m/s, or {least} substeps.",
        )


def make_near(
    params: DropParams, volume: float, box: tuple[Any, Any], count: Any, capacity: int, device: Device
) -> Near:
    """For `capacity` drops of `volume` [m³] in a box of these corners [m], of which `count` (shape (1,)) are there."""
    warp = device.warp
    lower, upper = (np.array(corner) for corner in box)
    largest = max(volume, params.largest_volume if params.merge_speed > 0.0 else 0.0)
    reach = float(coupling.REACH) * (6.0 * largest / math.pi) ** (1.0 / 3.0)
    side = max(reach, float(np.prod(upper - lower) / MOST_CELLS) ** (1.0 / 3.0))
    grid, cells = make_grid(capacity, tuple(lower), tuple(upper), side, 3, device, count=count)
    cohesion, merging = (wp.zeros(1, dtype=wp.vec2, device=warp) for _ in range(2))
    velocity, partner = wp.zeros(capacity, dtype=wp.vec3, device=warp), wp.zeros(capacity, dtype=wp.int32, device=warp)
    return Near(grid, cells, cohesion, merging, velocity, partner)


def set_near(near: Near, params: DropParams) -> None:
    damping = params.cohesion_damping if params.cohesion > 0.0 else 0.0
    near.cohesion.assign(np.array([[params.cohesion, damping]], dtype=np.float32))
    near.merging.assign(np.array([[params.merge_speed, params.largest_volume / LITTLE]], dtype=np.float32))
