"""What an enema is made of: a fluid in a hollow organ with its wall, nozzle and drain; and where the table tilts it.

The patient stays where he is and gravity turns: with the table tilted by θ (head up) and rolled by φ (left side down),

    g = 9.81 (sin φ cos θ, −sin θ, −cos φ cos θ) m/s²

in his axes: x to the left, y to the head, z to the front.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from viscera.units import STANDARD_GRAVITY
from viscera.view import Surface
from viscera.water.boundary.moving_density import MovingWallVolume
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.wall_density import WallVolume
from viscera.water.boundary.walls import Walls
from viscera.water.coating import Coating
from viscera.water.emitter import Drain, Emitter
from viscera.water.state import Fluid
from viscera.world.systems.bowel import Bowel

AIMED = 4
"""Frames in which a wall that moves comes to where it is aimed: to aim it costs as much as a step."""


@dataclass(eq=False)
class Enema:
    """A fluid in a hollow organ, as a scenario has made it."""

    fluid: Fluid
    vessel: Vessel
    coating: Coating
    emitter: Emitter
    along: tuple[float, float, float]
    """Unit vector of the stream from the emitter."""
    drain: Drain
    """A ball; shut at first, and none of the fluid's boundaries."""
    steps: int
    """Of the fluid, in a frame."""
    volume: Any
    """Suspension in each particle [m³], `wp.array` of float: for an X-ray."""
    film_volume: Any
    """On each triangle [m³]."""
    living: Living | None = None
    """What moves the wall; None where it is rigid."""


@dataclass(eq=False)
class Living:
    """A wall that a bowel moves."""

    bowel: Bowel
    """Its points: `wall`, the vessel's vertices; `shown`."""
    surface: Surface
    """What is shown of it, with the vertices `shown`."""
    share: MovingWallVolume
    """Its share in the density where it has not its resting shape, instead of `still`."""
    still: WallVolume
    triangles: Any
    """Of the vessel, (n, 3)."""


def aimed_frames(walls: Walls) -> int:
    """A hierarchy is fitted between programs, once a frame."""
    return AIMED if walls.hashed is not None else 1


def gravity(tilt: float, roll: float) -> tuple[float, float, float]:
    """[m/s²] in the patient's axes, for a table tilted and rolled by degrees."""
    a, b = math.radians(tilt), math.radians(roll)
    g = STANDARD_GRAVITY
    return g * math.sin(b) * math.cos(a), -g * math.sin(a), -g * math.cos(b) * math.cos(a)
