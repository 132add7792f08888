"""Sources and sinks: a nozzle that lets layers of particles in, and regions that take them out.

A nozzle is a disc (a line in 2D) across the stream. Whenever the stream has moved on by one spacing, a layer of
particles on a lattice enters with its velocity, so the new fluid has rest density. When the next layer would not fit
into the capacity it is not put in, and counted in `report[REFUSED]`: nothing vanishes silently.

A drain is a sphere or a box. Particles in it are marked with a position that is not a number; the sort puts those last,
where nobody looks, and the count ends before them. They are counted in `report[DRAINED]`.

The documents let fluid in by hand (Grahn §2.1: injected through the rectum) and say no more.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.neighbors.cells import GridView, particle_count, sorted_count
from viscera.water import state
from viscera.water.boundary.start import check_start
from viscera.water.state import CREATED, DRAINED, LOST, REFUSED, Fluid, Live, check_box

wp.set_module_options({"enable_backward": False})

MARKED = wp.constant(state.MARKED)
_REFUSED, _CREATED, _DRAINED, _LOST = (wp.constant(k) for k in (REFUSED, CREATED, DRAINED, LOST))


@wp.struct
class Nozzle:
    """Live numbers of an emitter: an array of one."""

    centre: wp.vec3
    velocity: wp.vec3
    """[m/s]"""
    on: float
    """1 while it is open."""
    travelled: float
    """Way of the stream since the last layer, in spacings."""


@dataclass(eq=False)
class Emitter:
    """Made by `add_emitter`; a boundary that acts before each step."""

    layer: wp.array
    """Places of a layer's particles about the centre [m], vec3."""
    nozzle: wp.array
    """One `Nozzle`."""
    spacing: float
    dimension: int
    adds_density = adds_force = False

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        size = len(self.layer)
        where = [fluid.capacity, self.spacing, fluid.params.rest_density, fluid.live, self.nozzle, self.layer]
        kept = [fluid.position, fluid.velocity, fluid.tag, fluid.kept_density, fluid.rate]
        stage.launch(put_layer, size, [*where, fluid.count, fluid.report, *kept])
        count = [fluid.capacity, self.spacing, size, fluid.live, self.nozzle, fluid.count, fluid.report]
        stage.once(lambda: wp.launch(count_layer, dim=1, inputs=count, device=fluid.device.warp))

    def add_density(self, stage: Stage, fluid: Fluid) -> None: ...
    def add_force(self, stage: Stage, fluid: Fluid) -> None: ...
    def contact(self, stage: Stage, fluid: Fluid) -> None: ...


@dataclass(eq=False)
class Drain:
    """Made by `add_drain`; marks particles after each step, and shortens the count before the next."""

    region: wp.array
    """One float each: lower corner, upper corner, centre, radius, open (1 or 0); float (11,)."""
    reach: float = 0.0
    """The ball's radius as it was made [m]: programs may make the one in `region` smaller."""
    adds_density = adds_force = False

    def before_step(self, stage: Stage, fluid: Fluid) -> None: ...
    def add_density(self, stage: Stage, fluid: Fluid) -> None: ...
    def add_force(self, stage: Stage, fluid: Fluid) -> None: ...

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        out = [fluid.position, fluid.tag]
        stage.launch(mark, fluid.capacity, [fluid.grid.view, self.region, *out])


@wp.func
def due(nozzle: Nozzle, spacing: float, dt: float) -> float:
    """Way of the stream after this step, in spacings; a layer is due at 1."""
    return nozzle.travelled + nozzle.on * wp.length(nozzle.velocity) * dt / spacing


@wp.kernel
def put_layer(
    first: int,
    # params
    capacity: int,
    spacing: float,
    density: float,
    live: wp.array(dtype=Live),
    # in
    nozzle: wp.array(dtype=Nozzle),
    layer: wp.array(dtype=wp.vec3),
    count: wp.array(dtype=wp.int32),
    report: wp.array(dtype=wp.int32),
    # out
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
    tag_out: wp.array(dtype=wp.int32),
    kept_density_out: wp.array(dtype=float),
    rate_out: wp.array(dtype=wp.vec4),
):
    i = first + wp.tid()
    source = nozzle[0]
    way = due(source, spacing, live[0].dt)
    size = layer.shape[0]
    if way < 1.0 or source.on == 0.0 or count[0] + size > capacity:
        return
    k = count[0] + i
    # The layer is as far from the nozzle as the stream has gone beyond one spacing.
    ahead = (way - 1.0) * spacing * wp.normalize(source.velocity)
    position_out[k] = source.centre + layer[i] + ahead
    velocity_out[k] = source.velocity
    tag_out[k] = report[_CREATED] + i
    kept_density_out[k] = density
    rate_out[k] = wp.vec4(0.0, 0.0, 0.0, 0.0)


@wp.kernel
def count_layer(
    # params
    capacity: int,
    spacing: float,
    size: int,
    live: wp.array(dtype=Live),
    # out
    nozzle_out: wp.array(dtype=Nozzle),
    count_out: wp.array(dtype=wp.int32),
    report_out: wp.array(dtype=wp.int32),
):
    source = nozzle_out[0]
    way = due(source, spacing, live[0].dt)
    if way >= 1.0 and source.on > 0.0:
        way -= 1.0
        if count_out[0] + size > capacity:
            report_out[_REFUSED] = report_out[_REFUSED] + size
        else:
            count_out[0] = count_out[0] + size
            report_out[_CREATED] = report_out[_CREATED] + size
    nozzle_out[0].travelled = way


@wp.kernel
def mark(
    first: int,
    # params
    grid: GridView,
    region: wp.array(dtype=float),
    # out
    position_out: wp.array(dtype=wp.vec3),
    tag_out: wp.array(dtype=wp.int32),
):
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag_out[s] < 0 or region[10] == 0.0:
        return
    x = position_out[s]
    lower = wp.vec3(region[0], region[1], region[2])
    upper = wp.vec3(region[3], region[4], region[5])
    boxed = wp.min(wp.min(x - lower), wp.min(upper - x)) >= 0.0
    ball = region[9] > 0.0 and wp.length(x - wp.vec3(region[6], region[7], region[8])) <= region[9]
    if boxed or ball:
        position_out[s] = wp.vec3(wp.NAN, wp.NAN, wp.NAN)
        tag_out[s] = MARKED


@wp.kernel
def shorten(
    # params
    grid: GridView,
    # in
    original: wp.array(dtype=wp.int32),
    tag: wp.array(dtype=wp.int32),
    # out
    count_out: wp.array(dtype=wp.int32),
    report_out: wp.array(dtype=wp.int32),
):
    """Particles at the end of the sort are gone if they were marked; others broke, and stay to be reported."""
    inside = sorted_count(grid)
    drained = wp.int32(0)
    broken = wp.int32(0)
    for s in range(inside, particle_count(grid)):
        if tag[original[s]] == MARKED:
            drained += 1
        else:
            broken += 1
    report_out[_LOST] = broken
    if broken == 0:
        count_out[0] = inside
        report_out[_DRAINED] = report_out[_DRAINED] + drained


def shorten_count(stage: Stage, fluid: Fluid) -> None:
    """After a sort: the count ends before those that were drained."""
    taken = [fluid.grid.view, fluid.grid.original, fluid.tag, fluid.count, fluid.report]
    stage.once(lambda: wp.launch(shorten, dim=1, inputs=taken, device=fluid.device.warp))


def add_emitter(fluid: Fluid, centre: Sequence[float], velocity: Sequence[float], radius: float) -> Emitter:
    """A round nozzle (a slit in 2D) of `radius` [m] at `centre` [m] that lets fluid in with `velocity` [m/s].

    Its layer must lie in the fluid's box and inside every vessel, made before or after it."""
    p = fluid.params
    way, middle = _vector(velocity, "velocity", p.dimension), _vector(centre, "centre", p.dimension)
    speed = float(np.linalg.norm(way))
    if speed <= 0.0 or not math.isfinite(radius) or radius < 0.0:
        raise InputError(
            f"an emitter with velocity {tuple(velocity)} and radius {radius:g} lets nothing in.",
            "Give a velocity and a radius above 0.",
        )
    layer = _layer(way / speed, radius, p.spacing, p.dimension)
    if len(layer) == 0:
        raise InputError(
            f"an emitter of radius {radius:g} m has no room for a single particle, {p.spacing:g} m wide.",
            f"Give a radius of at least {0.5 * p.spacing:g} m.",
        )
    if fluid.capacity < int(fluid.count.numpy()[0]) + len(layer):
        raise InputError(
            f"there is room for {fluid.capacity} particles and a layer of {len(layer)} does not fit.",
            "Make the fluid with a larger capacity.",
        )
    places = middle + layer
    check_box(p, places, "particles of the emitter's layer")
    for walls in fluid.vessels:
        check_start(walls, places, "particles of the emitter's layer")
    nozzle = Nozzle()
    nozzle.centre, nozzle.velocity, nozzle.on, nozzle.travelled = wp.vec3(*middle), wp.vec3(*way), 1.0, 1.0
    device = fluid.device.warp
    emitter = Emitter(
        wp.array(layer, dtype=wp.vec3, device=device),
        wp.array([nozzle], dtype=Nozzle, device=device),
        p.spacing,
        p.dimension,
    )
    fluid.nozzles.append(places)
    fluid.boundaries.append(emitter)
    return emitter


def add_drain(
    fluid: Fluid,
    *,
    box: tuple[Sequence[float], Sequence[float]] | None = None,
    ball: tuple[Sequence[float], float] | None = None,
) -> Drain:
    """Take out particles that come into a box (two corners [m]) or a ball (centre and radius [m])."""
    if (box is None) == (ball is None):
        raise InputError("a drain needs a box or a ball, and not both.", "Give box=(lower, upper) or ball=(centre, r).")
    region = np.zeros(11, dtype=np.float32)
    region[0:3], region[3:6], region[10] = 1.0, -1.0, 1.0  # a box that holds nothing
    if box is not None:
        lower, upper = (_vector(corner, "box", fluid.params.dimension) for corner in box)
        if (lower[: fluid.params.dimension] >= upper[: fluid.params.dimension]).any():
            raise InputError(
                f"a drain's box from {tuple(box[0])} to {tuple(box[1])} holds nothing.",
                "Give the lower corner first; along each axis it must be below the upper one.",
            )
        region[0:3], region[3:6] = lower, upper
        if fluid.params.dimension == 2:
            region[2], region[5] = -1.0, 1.0
    if ball is not None:
        if not (math.isfinite(ball[1]) and ball[1] > 0.0):
            raise InputError(f"a drain's ball of radius {ball[1]} holds nothing.", "Give a finite radius above 0.")
        region[6:9], region[9] = _vector(ball[0], "ball", fluid.params.dimension), ball[1]
    drain = Drain(wp.array(region, dtype=float, device=fluid.device.warp), reach=float(region[9]))
    fluid.boundaries.append(drain)
    fluid.extra["drained"] = True
    return drain


def set_emitter(emitter: Emitter, *, on: bool = True, velocity: Sequence[float] | None = None) -> None:
    """Open or shut it, or change its stream, while programs run. A layer stays across the velocity it was made with."""
    values: Any = emitter.nozzle.numpy()
    if velocity is not None:
        way = _vector(velocity, "velocity", emitter.dimension)
        if not way.any():
            raise InputError("an emitter with velocity 0 lets nothing in.", "Shut it with on=False instead.")
        values["velocity"][0] = way
    values["on"][0] = float(on)
    emitter.nozzle.assign(values)


def _layer(direction: np.ndarray, radius: float, spacing: float, dimension: int) -> np.ndarray:
    """A lattice across `direction`, within `radius` less half a particle."""
    reach = math.floor(max(radius - 0.5 * spacing, -1.0) / spacing + 1e-6)
    steps = spacing * np.arange(-reach, reach + 1)
    if reach < 0:
        return np.zeros((0, 3))
    if dimension == 2:
        return steps[:, None] * np.array([-direction[1], direction[0], 0.0])
    side = np.cross(direction, np.eye(3)[np.argmin(np.abs(direction))])
    side /= np.linalg.norm(side)
    up = np.cross(direction, side)
    a, b = (g.ravel() for g in np.meshgrid(steps, steps, indexing="ij"))
    inside = np.hypot(a, b) <= radius - 0.5 * spacing + 1e-9
    return a[inside, None] * side + b[inside, None] * up


def _vector(values: Sequence[float], name: str, dimension: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (dimension,) or not np.isfinite(array).all():
        raise InputError(f"{name} = {tuple(values)} is not possible.", f"Give {dimension} finite numbers.")
    return np.concatenate([array, np.zeros(3 - dimension)])
