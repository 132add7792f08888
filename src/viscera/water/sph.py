"""One step of a fluid of smoothed particles; read this first.

    sort the particles by cell
    density, from the particles around or from continuity
    pressure, from the equation of state
    forces, and boundaries' forces
    move, and contacts

Once per frame, not per step, call `state.check_fluid`: it stops with the reason if positions are no longer finite.

After Grahn chapters 3 and 7.2 and Andersson §3.1; the equations stand with the kernels: density.py, forces.py,
tension.py, walls.py, pressure_solver.py (which keeps density constant instead of taking pressure from it).
"""

from __future__ import annotations

from viscera.device import Stage
from viscera.neighbors import grid as ng
from viscera.water import (
    density,
    emitter,
    forces,
    mixed,
    mixed_sums,
    native,
    native_steps,
    pressure_solver,
    teams,
    tension,
    timestep,
    walls,
)
from viscera.water.state import Fluid


def step_fluid(stage: Stage, fluid: Fluid) -> None:
    """One step of dt."""
    for boundary in fluid.boundaries:
        boundary.before_step(stage, fluid)
    sort(stage, fluid)
    find_density(stage, fluid)
    find_pressure(stage, fluid)
    find_forces(stage, fluid)
    if not fluid.params.compressible:
        pressure_solver.solve_pressure(stage, fluid)
    move(stage, fluid)
    for boundary in fluid.boundaries:
        boundary.contact(stage, fluid)
    if fluid.params.adaptive:
        timestep.adapt_step(stage, fluid)


def pressure_is_fused(fluid: Fluid) -> bool:
    """Whether pressure follows in density's own launch: on cuda, if nothing else adds to density."""
    alone = not any(getattr(b, "adds_density", True) for b in fluid.boundaries)
    return fluid.team > 0 and fluid.params.density == "summation" and fluid.params.sizes is None and alone


def move_is_fused(fluid: Fluid) -> bool:
    """Whether particles move in the launch of their forces: on cuda, if nothing else adds to forces."""
    alone = not any(getattr(b, "adds_force", True) for b in fluid.boundaries)
    return fluid.team > 0 and fluid.params.compressible and fluid.params.tension == "none" and alone


def in_three_passes(fluid: Fluid) -> bool:
    """Whether all but the loops over neighbours is native_steps.py: several sizes on cpu."""
    return fluid.native and fluid.params.sizes is not None


PARTICLE_WORK = 20
"""Cost of a particle's step in elements of `Device.record`: from 3 000 particles on, a second core gains."""
SOLVED_WORK = 60
"""The same of the incompressible solver, whose iterations go through all neighbours again: from 1 000 on."""


def step_work(fluid: Fluid) -> int:
    """What to give to `Device.record` as `work`."""
    return (PARTICLE_WORK if fluid.params.compressible else SOLVED_WORK) * fluid.capacity


def sort(stage: Stage, fluid: Fluid) -> None:
    f, n = fluid, fluid.capacity
    if in_three_passes(f):
        native_steps.sort(stage, f)
        return
    ng.build(stage, f.grid_params, f.grid, f.position)
    if "drained" in f.extra:
        emitter.shorten_count(stage, f)
    before = [f.position, f.velocity, f.tag, f.kept_density, f.rate]
    after = [f.place, f.motion, f.held, f.sorted_tag, f.density, f.report]
    counts_lost = int("drained" not in f.extra)
    stage.launch(density.sort_particles, n, [f.grid.view, counts_lost, f.live, f.grid.original, *before, *after])
    if f.native:
        stage.launch(native.split_places, n, [f.grid.view, f.place, *f.axes[:3]])
    if f.params.sizes is not None:
        mixed.sort_levels(stage, f)


def find_density(stage: Stage, fluid: Fluid) -> None:
    f, n = fluid, fluid.capacity
    if f.params.sizes is not None:
        mixed_sums.find_density(stage, f)
    elif f.params.density == "summation" and f.team:
        teams.find_density(stage, f, then_pressure=pressure_is_fused(f))
    elif f.params.density == "summation" and f.native:
        around = [f.grid.view, f.smoothing, f.live]
        native.launch(stage, native.sum_density, n, [*around, *f.axes[:3], f.density, f.extra["hits"]])
    elif f.params.density == "summation":
        around = [f.grid.view, f.smoothing, f.images, f.live]
        stage.launch(density.sum_density, n, [*around, f.place, f.density])
    for boundary in f.boundaries:
        boundary.add_density(stage, f)


def find_pressure(stage: Stage, fluid: Fluid) -> None:
    f, n = fluid, fluid.capacity
    if in_three_passes(f):
        native_steps.find_pressure(stage, f)
        return
    if f.params.sizes is not None:
        mixed_sums.find_pressure(stage, f)
    elif not pressure_is_fused(f):
        stage.launch(density.find_pressure, n, [f.grid.view, f.live, f.density, f.pressure, f.place, f.motion])
    if f.walls and f.params.no_slip:
        around = [f.grid.view, f.smoothing, f.images]
        stage.launch(walls.mirror_velocity, n, [*around, f.sorted_tag, f.grid.position, f.held, f.motion])
    if f.native:
        stage.launch(native.split_motions, n, [f.grid.view, f.place, f.motion, *f.axes[3:]])


def find_forces(stage: Stage, fluid: Fluid) -> None:
    f, n = fluid, fluid.capacity
    if f.params.sizes is not None:
        mixed_sums.find_forces(stage, f, then_move=move_is_fused(f))
    elif f.team:
        teams.find_forces(stage, f, then_move=move_is_fused(f))
    elif f.native:
        around = [f.grid.view, f.smoothing, int(f.params.alpha + f.params.beta > 0.0), f.live]
        native.launch(stage, native.sum_forces, n, [*around, f.sorted_tag, *f.axes, f.extra["hits"], f.rate])
    else:
        around = [f.grid.view, f.smoothing, f.images, f.live]
        stage.launch(forces.sum_forces, n, [*around, f.place, f.motion, f.sorted_tag, f.rate])
    tension.add_tension(stage, f)
    for boundary in f.boundaries:
        boundary.add_force(stage, f)


def move(stage: Stage, fluid: Fluid) -> None:
    f, n = fluid, fluid.capacity
    if in_three_passes(f):
        native_steps.move(stage, f)
        return
    if f.params.sizes is not None:
        mixed.move_levels(stage, f)
    if move_is_fused(f):
        return
    kept = [f.grid.position, f.held, f.sorted_tag, f.rate]
    out = [f.position, f.velocity, f.tag, f.kept_density, f.clock]
    stage.launch(forces.integrate, n, [f.grid.view, f.images, f.live, *kept, *out])
