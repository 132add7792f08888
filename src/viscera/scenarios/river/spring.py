"""Spring and bed: water from a spring, down a landscape, to an end.

The spring is the fluid's emitter, which puts in a layer whenever the stream has gone on by one spacing and there is
room. The end and the outer sides are its drains. Ground and balls are one set of walls, since a particle may be held by
both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from viscera.anatomy.landscape import Landscape
from viscera.device import Device
from viscera.errors import InputError
from viscera.instruments import Tool
from viscera.timing import FRAME
from viscera.water import count
from viscera.water.boundary.contacts import ContactParams
from viscera.water.boundary.shapes import plane
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import make_walls
from viscera.water.emitter import add_drain, add_emitter, set_emitter
from viscera.water.params import FluidParams, largest_step
from viscera.water.saving import add_particles
from viscera.water.state import make_fluid
from viscera.world.systems.water import Stream, balls

NOZZLE = 0.55
"""Radius of the spring over half the width of the bed."""
STEP_SHARE = 0.97
"""Of the longest stable step."""
FRICTION = 0.1
"""Of water on the ground; tuned so that the river is as fast as one of its depth."""

Box = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Two corners [m]."""


@dataclass(frozen=True)
class Spring:
    """What comes out of it."""

    capacity: int
    """Most particles there can be."""
    spacing: float
    """Of the particles [m]."""
    sound: float
    """Speed of sound in the fluid [m/s]; about five times the fastest water, so that density stays within 4 %."""

    def __post_init__(self) -> None:
        for name in ("capacity", "spacing", "sound"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")


def make_spring(
    place: Landscape, spring: Spring, tools: Sequence[Tool], device: Device
) -> tuple[Stream, Callable[[float], None]]:
    """The water in its bed, dry at first, and what sets the spring's flow [m³/s]."""
    steps = math.ceil(FRAME / (STEP_SHARE * largest_step(_params(place, spring))))
    params = _params(place, spring, FRAME / steps)
    fluid = make_fluid(params, np.zeros((0, 3)), device, capacity=spring.capacity)
    ahead = np.asarray(place.spring_direction)
    emitter = add_emitter(fluid, place.spring, ahead.tolist(), NOZZLE * place.bed_half_width)
    drains = [add_drain(fluid, box=box) for box in (place.end, *_edges(place, spring.spacing))]
    for drain in drains:
        fluid.boundaries.remove(drain)  # they act once per frame
    y = 0.5 * place.width
    shapes = [
        *balls(tools),
        plane((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        plane((0.0, -y, 0.0), (0.0, 1.0, 0.0)),
        plane((0.0, y, 0.0), (0.0, -1.0, 0.0)),
    ]
    walls = make_walls(place.mesh, shapes, radius=0.5 * spring.spacing, device=device, fluid_inside=False)
    vessel = Vessel(fluid, walls, ContactParams(friction=FRICTION), moving=True)
    fluid.boundaries.append(vessel)

    def set_flow(flow: float) -> None:
        """The faster the stream from its nozzle."""
        speed = flow / (len(emitter.layer) * spring.spacing**2)
        moving = {"velocity": (speed * ahead).tolist()} if flow > 0.0 else {}
        set_emitter(emitter, on=flow > 0.0, **moving)

    return Stream(fluid, vessel, steps, drains), set_flow


def flood(place: Landscape, spring: Spring, stream: Stream) -> None:
    """As much water as the river holds when it has run for a while, at once: two layers over the bed."""
    if count(stream.fluid) > 0:
        return
    half = place.bed_half_width
    x, y = np.arange(0.1, 0.9, spring.spacing / place.length) * place.length, np.arange(-half, half, spring.spacing)
    along, aside = (axis.ravel() for axis in np.meshgrid(x, y, indexing="ij"))
    aside = aside + place.middle(along)
    layers = [place.height(along, aside) + layer * spring.spacing for layer in (1.0, 2.0)]
    points = np.concatenate([np.stack([along, aside, z], axis=1) for z in layers])
    add_particles(stream.fluid, points[: spring.capacity], None)


def _params(place: Landscape, spring: Spring, dt: float = 1e-9) -> FluidParams:
    low, high = place.mesh.vertices.min(axis=0), place.mesh.vertices.max(axis=0)
    return FluidParams(
        spring.spacing,
        (float(low[0]), float(low[1]), float(low[2])),
        (1.1 * float(high[0]), float(high[1]), float(high[2])),
        dt=dt,
        sound_speed=spring.sound,
        alpha=0.08,
        gravity=(0.0, 0.0, -9.81),
        fastest=0.2 * spring.sound,
    )


def _edges(place: Landscape, spacing: float) -> list[Box]:
    """Where water that has run over a hill has left: along both sides, as wide as it touches the wall there."""
    low, high = place.mesh.vertices.min(axis=0), place.mesh.vertices.max(axis=0)
    y, top = 0.5 * place.width, float(high[2]) + 1.0
    inner = y - 0.75 * spacing
    return [
        ((-1.0, a, float(low[2]) - 1.0), (2.0 * place.length, b, top))
        for a, b in ((-y - 1.0, -inner), (inner, y + 1.0))
    ]
