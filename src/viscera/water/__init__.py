"""Free fluids of smoothed particles, in 2D and 3D.

    pond = water.make(FluidParams(...), water.block(low, high, spacing), device=device)
    water.step(stage, pond)                                 # params.dt
    water.particles(pond)["position"]                       # [m]

The step is in `sph`, the arrays are in `state`; docs/water.md and docs/vessels.md show the use.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.states import Arrays
from viscera.water import emitter as _emitter
from viscera.water import state as _state
from viscera.water.boundary.boundary_particles import BoundaryParams, BoundaryParticles
from viscera.water.boundary.contacts import ContactParams
from viscera.water.boundary.moving_density import MovingWallVolume
from viscera.water.boundary.shapes import Shape, plane
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.wall_density import WallVolume
from viscera.water.boundary.wall_drag import WallDrag
from viscera.water.boundary.walls import Walls, aim_walls, make_walls, refit_walls
from viscera.water.emitter import Drain, Emitter
from viscera.water.params import FluidParams, largest_step
from viscera.water.pressure_solver import density_error
from viscera.water.saving import add_particles, load_fluid, save_fluid
from viscera.water.shifting import Shifting
from viscera.water.sph import step_fluid, step_work
from viscera.water.state import Fluid, Live
from viscera.water.walls import block, box_walls

__all__ = [
    "BoundaryParams",
    "BoundaryParticles",
    "ContactParams",
    "Drain",
    "Emitter",
    "Fluid",
    "FluidParams",
    "Live",
    "MovingWallVolume",
    "Shape",
    "Shifting",
    "Vessel",
    "WallDrag",
    "WallVolume",
    "Walls",
    "add",
    "add_drain",
    "add_emitter",
    "add_points",
    "add_shifting",
    "add_vessel",
    "add_wall_density",
    "add_wall_drag",
    "aim_walls",
    "block",
    "box_walls",
    "check",
    "count",
    "density_error",
    "largest_step",
    "load",
    "make",
    "make_walls",
    "particles",
    "plane",
    "refit_walls",
    "refused",
    "save",
    "set",
    "set_emitter",
    "step",
    "volume",
    "work",
]


def make(
    params: FluidParams,
    positions: ArrayLike | None = None,
    *,
    velocities: ArrayLike | None = None,
    walls: ArrayLike | None = None,
    capacity: int | None = None,
    native: bool | None = None,
    team: int | None = None,
    device: Device,
) -> Fluid:
    """A fluid of particles at `positions` [m], shape (n, dimension), at rest or with `velocities` [m/s].

    Without positions it is empty and waits for `add` or an emitter. `walls` are places of wall particles [m].
    `capacity` is the most particles there can ever be, walls included; without it there is room for no more than these.
    `native` and `team` choose between twins of the inner loops, for tests and benchmarks.
    """
    nobody = np.zeros((0, params.dimension))
    places = nobody if positions is None else np.asarray(positions, dtype=np.float64)
    moving = None if velocities is None else np.asarray(velocities, dtype=np.float64)
    standing = None if walls is None else np.asarray(walls, dtype=np.float64)
    return _state.make_fluid(
        params, places, device, velocities=moving, walls=standing, capacity=capacity, native=native, team=team
    )


def set(fluid: Fluid, params: FluidParams) -> None:
    """Changes numbers while programs run. What decides which kernels are recorded must stay as it is."""
    _state.set_params(fluid, params)


def step(stage: Stage, fluid: Fluid) -> None:
    """One step of `params.dt`, with everything that was added to the fluid: record programs after that."""
    step_fluid(stage, fluid)


def add(fluid: Fluid, positions: ArrayLike, *, velocities: ArrayLike | None = None) -> None:
    """More particles at `positions` [m], shape (n, dimension), between two steps. Refused where there is no room, or
    outside the box or a vessel. Waits for the device."""
    add_particles(fluid, positions, velocities)


def add_emitter(fluid: Fluid, centre: Sequence[float], velocity: Sequence[float], radius: float) -> Emitter:
    """A round nozzle (a slit in 2D) of `radius` [m] at `centre` [m] that lets fluid in with `velocity` [m/s]."""
    return _emitter.add_emitter(fluid, centre, velocity, radius)


def set_emitter(emitter: Emitter, *, on: bool = True, velocity: Sequence[float] | None = None) -> None:
    """Opens or shuts it, or changes its stream, while programs run. Waits for the device."""
    _emitter.set_emitter(emitter, on=on, velocity=velocity)


def add_drain(
    fluid: Fluid,
    *,
    box: tuple[Sequence[float], Sequence[float]] | None = None,
    ball: tuple[Sequence[float], float] | None = None,
) -> Drain:
    """Takes out particles that come into a box (two corners [m]) or a ball (centre and radius [m])."""
    return _emitter.add_drain(fluid, box=box, ball=ball)


def add_vessel(
    fluid: Fluid, walls: Walls, params: ContactParams | None = None, *, moving: bool = False, parts: int = 1
) -> Vessel:
    """Walls (`make_walls`) that keep the fluid in. `moving`: shapes with a velocity, or a mesh that is aimed
    (`aim_walls`) and gets there in `parts` steps."""
    vessel = Vessel(fluid, walls, params, moving=moving, parts=parts)
    fluid.boundaries.append(vessel)
    return vessel


def add_wall_density(fluid: Fluid, walls: Walls) -> WallVolume | MovingWallVolume:
    """The water that the kernels miss behind a wall counts as water at rest: level and pressure are right also beside
    it. For a closed mesh that keeps its shape; takes a map of some million nodes for an organ. For walls that change
    their shape (`deforming`) or formulas it comes from the nearest wall instead, which needs `reach=params.radius`."""
    if walls.mesh is None or walls.deforming:
        moving = MovingWallVolume(fluid, walls, weighs=True)
        fluid.boundaries.append(moving)
        return moving
    if not walls.closed:
        raise InputError("these walls cannot have a density.", "Make them of a closed mesh.")
    volume = WallVolume(fluid, walls.mesh, fluid_inside=walls.fluid_inside, weighs=True)
    fluid.boundaries.append(volume)
    return volume


def add_wall_drag(fluid: Fluid, walls: Walls, velocity: Sequence[float] = (0.0, 0.0, 0.0)) -> WallDrag:
    """Water sticks to a closed mesh that keeps its shape; its surface moves along itself with `velocity` [m/s]."""
    drag = WallDrag(fluid, walls, velocity)
    fluid.boundaries.append(drag)
    return drag


def add_points(
    fluid: Fluid,
    mesh: TriangleMesh,
    params: BoundaryParams,
    *,
    spacing: float | None = None,
    walls: Walls | None = None,
) -> BoundaryParticles:
    """Points on a mesh that push the fluid, `spacing` [m] apart: soft walls, behind which a vessel may stand. With
    `walls` made from the same mesh they follow it where it moves."""
    points = BoundaryParticles(fluid, mesh, params, spacing=spacing, walls=walls)
    fluid.boundaries.append(points)
    return points


def add_shifting(fluid: Fluid) -> Shifting:
    """Keeps particles of a box with periods evenly spread, so that a flow without a surface keeps its energy: add it
    where vortices matter."""
    shifting = Shifting(fluid)
    fluid.boundaries.append(shifting)
    return shifting


def particles(fluid: Fluid) -> dict[str, np.ndarray]:
    """Position [m], velocity [m/s], density [kg/m³], pressure [Pa] and tag of the fluid's own particles, in the order
    of their tags. Waits for the device."""
    return _state.particles(fluid)


def count(fluid: Fluid) -> int:
    """The fluid's own particles now. Waits for the device."""
    return int((fluid.tag.numpy()[: int(fluid.count.numpy()[0])] >= 0).sum())


def volume(fluid: Fluid) -> float:
    """Of the fluid at rest density [m³; m² in 2D]: a spacing's cube for each particle. Waits for the device."""
    return count(fluid) * fluid.params.spacing**fluid.params.dimension


def refused(fluid: Fluid) -> int:
    """Particles that emitters had no room for so far. Waits for the device."""
    return int(fluid.report.numpy()[_state.REFUSED])


def work(fluid: Fluid) -> int:
    """What to give to `Device.record` as `work` for one step."""
    return step_work(fluid)


def check(fluid: Fluid, tick: int = 0) -> None:
    """Raises StateError if positions are no longer finite, or a vessel that moves could pass particles. Waits for the
    device: once per frame. What broke in the very last step is met by the next sort."""
    _state.check_fluid(fluid, tick=tick)
    for boundary in fluid.boundaries:
        if isinstance(boundary, Vessel):
            boundary.check(tick)


def save(fluid: Fluid) -> Arrays:
    """All particles, the clock and the step, and what emitters and vessels remember."""
    return save_fluid(fluid)


def load(fluid: Fluid, arrays: Arrays) -> None:
    """Puts a fluid into a state that `save` gave; it must have the same emitters and vessels, in the same order."""
    load_fluid(fluid, arrays)
