"""One step of a flow, in order: sources, the flow carries itself, forces, viscosity, pressure, substances.

Stam (1999) and Andersson (2.6) put forces first; here the flow carries itself first, as only then the velocity that
carries has no divergence.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.grid import dye, flow, numbers, sources
from viscera.grid.loops import part_count, run
from viscera.grid.shape import three
from viscera.grid.state import (
    COARSE_SWEEPS,
    FIRST_SUBSTANCE,
    LIFT,
    PER_SUBSTANCE,
    SPREAD,
    STAYS,
    VISCOSITY,
    Carried,
    Grid,
    Level,
)

RED, BLACK, CELLS = 0, 1, 3


def follow_solids(stage: Stage, grid: Grid) -> None:
    """Faces follow organs and bars as they are now, on every level."""
    p, fine = grid.params, grid.levels[0]
    layout, where = grid.layout, [fine.shape, wp.vec3(*p.origin), p.spacing]
    stage.upload(grid.bars)
    stage.upload(grid.bar_count)
    bars = [grid.bar_count.array, grid.bars.array]
    run(stage, grid.native, "fill_corners", layout, [*where, grid.still, *bars, grid.distance])
    filled = [*where, p.inflow, grid.distance, three(grid.drift), *bars, three(fine.faces), three(grid.solid)]
    run(stage, grid.native, "fill_faces", layout, filled)
    stage.once(lambda: wp.copy(grid.fluid, grid.box))
    run(stage, grid.native, "find_cells", layout, [fine.shape, grid.box, three(fine.faces), grid.fluid])
    run(stage, grid.native, "close_faces", layout, [fine.shape, grid.fluid, three(fine.faces)])
    run(stage, grid.native, "invert_diagonal", layout, [fine.shape, three(fine.faces), fine.inverse])
    for finer, coarser in zip(grid.levels, grid.levels[1:], strict=False):
        joined = [finer.shape, coarser.shape, three(finer.faces), three(coarser.faces)]
        run(stage, grid.native, "coarsen_faces", coarser.layout, joined)
        inverted = [coarser.shape, three(coarser.faces), coarser.inverse]
        run(stage, grid.native, "invert_diagonal", coarser.layout, inverted)


def step_grid(stage: Stage, grid: Grid) -> None:
    """One step of `params.dt`."""
    step_flow(stage, grid)
    project(stage, grid)
    step_substances(stage, grid)


def step_flow(stage: Stage, grid: Grid, confines: bool = True) -> None:
    """The first part of a step: all but pressure and what is carried. Without `confines` whirls are not confined,
    whatever `GridParams.confinement` is."""
    _put_sources(stage, grid)
    for bring in grid.brings:
        bring(stage)
    _carry_velocity(stage, grid)
    _push(stage, grid, confines)
    if grid.params.viscosity > 0.0:
        _spread_velocity(stage, grid)


def step_substances(stage: Stage, grid: Grid) -> None:
    """The last part: the new flow carries what is in it."""
    for place, carried in enumerate(grid.carried.values()):
        _carry_substance(stage, grid, place, carried)


def project(stage: Stage, grid: Grid) -> None:
    """Velocity without divergence."""
    fine, layout = grid.levels[0], grid.layout
    walls = [three(fine.faces), three(grid.solid)]
    args = [fine.shape, grid.params.spacing, *walls, fine.inverse, three(grid.velocity), grid.rate, fine.needed]
    run(stage, grid.native, "find_divergence", layout, args)
    _sum(stage, grid, "sum_needed", [fine.inverse, fine.needed])
    _finish(stage, grid, numbers.begin_solve, [int(grid.closed)])
    stage.once(grid.pressure.zero_)
    run(stage, grid.native, "take_mean", layout, [fine.shape, fine.inverse, grid.solve, fine.needed])
    if grid.params.solver == "gauss_seidel":
        _sweep(stage, grid)
    else:
        for _ in range(grid.params.cycles):
            _cycle(stage, grid)
    run(stage, grid.native, "subtract_gradient", layout, [fine.shape, *walls, grid.pressure, three(grid.velocity)])


def _cycle(stage: Stage, grid: Grid) -> None:
    """One direction of generalised conjugate residuals. What is needed is the residual."""
    fine = grid.levels[0]
    _v_cycle(stage, grid, 0)
    image = [three(fine.faces), fine.inverse, fine.pressure, fine.needed, grid.moved, grid.image]
    _sum(stage, grid, "apply_matrix", image)
    _finish(stage, grid, numbers.find_direction, [])
    _sum(
        stage,
        grid,
        "take_direction",
        [grid.solve, fine.pressure, grid.image, grid.direction, grid.moved, grid.pressure, fine.needed],
    )
    _finish(stage, grid, numbers.end_solve, [])


def _v_cycle(stage: Stage, grid: Grid, number: int) -> None:
    level = grid.levels[number]
    if number == len(grid.levels) - 1:
        stage.once(level.pressure.zero_)
        for _ in range(COARSE_SWEEPS):
            _relax(stage, grid, level, RED)
            _relax(stage, grid, level, BLACK)
        return
    coarse = grid.levels[number + 1]
    run(
        stage, grid.native, "relax_first", level.layout, [level.shape, RED, level.inverse, level.needed, level.pressure]
    )
    _relax(stage, grid, level, BLACK)
    matrix = [three(level.faces), level.inverse, level.needed, level.pressure, level.residual]
    run(stage, grid.native, "find_residual", level.layout, [level.shape, RED, *matrix])
    gathered = [level.shape, coarse.shape, level.residual, coarse.needed]
    run(stage, grid.native, "gather_residual", coarse.layout, gathered)
    _v_cycle(stage, grid, number + 1)
    found = [level.shape, coarse.shape, BLACK, level.inverse, three(coarse.faces), coarse.pressure, level.pressure]
    run(stage, grid.native, "spread_coarse", level.layout, found)
    for _ in range(2):
        _relax(stage, grid, level, RED)
        _relax(stage, grid, level, BLACK)


def _relax(stage: Stage, grid: Grid, level: Level, colour: int) -> None:
    matrix = [three(level.faces), level.inverse, level.needed, level.pressure]
    run(stage, grid.native, "relax", level.layout, [level.shape, colour, *matrix])


def _sweep(stage: Stage, grid: Grid) -> None:
    """The document's way."""
    fine = grid.levels[0]
    stage.once(fine.pressure.zero_)
    for _ in range(grid.params.sweeps):
        _relax(stage, grid, fine, RED)
        _relax(stage, grid, fine, BLACK)
    stage.once(lambda: wp.copy(grid.pressure, fine.pressure))
    done = [fine.shape, three(fine.faces), fine.inverse, grid.pressure, fine.needed]
    run(stage, grid.native, "take_pressure", grid.layout, done)
    _sum(stage, grid, "sum_needed", [fine.inverse, fine.needed])
    _finish(stage, grid, numbers.end_sweeps, [])


def _sum(stage: Stage, grid: Grid, name: str, arrays: list[Any]) -> None:
    parts = part_count(grid.device, grid.layout)
    run(stage, grid.native, name, grid.layout, [grid.levels[0].shape, grid.layout.count, parts, *arrays, grid.parts])


def _finish(stage: Stage, grid: Grid, kernel: Any, params: list[Any]) -> None:
    """From partial sums to the solver's numbers."""
    parts, sums = part_count(grid.device, grid.layout), grid.parts
    for fewer in grid.sums:
        stage.launch(numbers.add_parts, fewer.size, [parts, fewer.size, sums, fewer])
        parts, sums = fewer.size, fewer
    args = [parts, *params, sums, grid.solve]
    stage.once(lambda: wp.launch(kernel, dim=1, inputs=args, device=grid.device.warp))


def _carry_velocity(stage: Stage, grid: Grid) -> None:
    p, fine, layout = grid.params, grid.levels[0], grid.layout
    rate = p.dt / p.spacing
    corrected = p.transport == "maccormack"
    for axis in range(3 if p.cells[2] > 1 else 2):
        now, once = grid.velocity[axis], grid.other[axis]
        run(stage, grid.native, "carry", layout, [fine.shape, axis, rate, three(grid.velocity), now, once])
        if corrected:
            args = [fine.shape, axis, rate, three(grid.velocity), now, once, grid.third[axis]]
            run(stage, grid.native, "correct", layout, args)
    for axis in range(3 if p.cells[2] > 1 else 2):
        result = grid.third[axis] if corrected else grid.other[axis]
        stage.once(lambda axis=axis, result=result: wp.copy(grid.velocity[axis], result))


def _push(stage: Stage, grid: Grid, confines: bool) -> None:
    """Substances lift, whirls are confined."""
    fine, layout = grid.levels[0], grid.layout
    for place, carried in enumerate(grid.carried.values()):
        if carried.substance.lift != 0.0 and grid.params.cells[2] > 1:
            args = [fine.shape, FIRST_SUBSTANCE + PER_SUBSTANCE * place + LIFT, grid.live, carried.value]
            run(stage, grid.native, "lift", layout, [*args, grid.velocity[2]])
    if confines and grid.params.confinement > 0.0:
        stage.launch(flow.find_curl, layout.count, [fine.shape, three(grid.velocity), grid.curl])
        stage.launch(flow.confine, layout.count, [fine.shape, grid.live, grid.curl, three(grid.velocity)])


def _spread_velocity(stage: Stage, grid: Grid) -> None:
    p, fine = grid.params, grid.levels[0]
    for axis in range(3 if p.cells[2] > 1 else 2):
        now = grid.velocity[axis]
        stage.once(lambda axis=axis, now=now: wp.copy(grid.other[axis], now))
        _spread(stage, grid, axis, VISCOSITY, fine.faces[axis], grid.other[axis], now)


def _spread(stage: Stage, grid: Grid, axis: int, number: int, face_open: Any, before: Any, now: Any) -> None:
    # Nothing holds a substance at a wall.
    held = int(grid.params.no_slip and axis < CELLS)
    for _ in range(grid.spread_sweeps):
        for colour in (RED, BLACK):
            args = [grid.levels[0].shape, axis, colour, number, held, grid.live, grid.cells, face_open, before, now]
            run(stage, grid.native, "diffuse", grid.layout, args)


def _carry_substance(stage: Stage, grid: Grid, place: int, carried: Carried) -> None:
    if carried.amount is not None:
        for _ in range(grid.params.dye_steps):
            _move_dye(stage, grid, place, carried)
        return
    p, fine, layout = grid.params, grid.levels[0], grid.layout
    first, rate = FIRST_SUBSTANCE + PER_SUBSTANCE * place, p.dt / p.spacing
    args = [fine.shape, CELLS, rate, three(grid.velocity), carried.value, carried.other]
    if carried.substance.keeps_total:
        _take_total(stage, grid, carried)
    run(stage, grid.native, "carry", layout, args)
    result = carried.other
    if carried.substance.carried == "maccormack":
        result = grid.image  # free between two solves
        run(stage, grid.native, "correct", layout, [*args, result])
    stage.once(lambda: wp.copy(carried.value, result))
    if carried.substance.keeps_total:
        _take_total(stage, grid, carried)
        stage.launch(flow.scale, layout.count, [fine.shape, grid.solve, carried.value])
    if carried.substance.diffusivity > 0.0:
        stage.once(lambda: wp.copy(carried.other, carried.value))
        _spread(stage, grid, CELLS, first + SPREAD, grid.fluid, carried.other, carried.value)
    if carried.substance.fading > 0.0:
        stage.launch(flow.fade, layout.count, [fine.shape, first + STAYS, grid.live, carried.value])


def _take_total(stage: Stage, grid: Grid, carried: Carried) -> None:
    _sum(stage, grid, "sum_needed", [grid.levels[0].inverse, carried.value])
    _finish(stage, grid, numbers.take_total, [])


def _move_dye(stage: Stage, grid: Grid, place: int, carried: Carried) -> None:
    """One of `dye_steps`."""
    p, fine, layout = grid.params, grid.levels[0], grid.layout
    number = FIRST_SUBSTANCE + PER_SUBSTANCE * place + SPREAD
    walls = [grid.live, three(fine.faces), three(grid.solid), three(grid.velocity), grid.box]
    run(stage, grid.native, "find_fluxes", layout, [fine.shape, number, *walls, carried.amount, three(grid.fluxes)])
    run(stage, grid.native, "find_share", layout, [fine.shape, three(grid.fluxes), carried.amount, grid.share])
    run(stage, grid.native, "cut_fluxes", layout, [fine.shape, three(grid.fluxes), grid.share, three(grid.wholes)])
    moved = [fine.shape, carried.substance.unit / p.cell_volume, grid.cells, three(grid.wholes)]
    run(stage, grid.native, "move_units", layout, [*moved, carried.amount, carried.value])
    if not grid.closed:
        args = [fine.shape, dye.COUNTERS * place + dye.LEFT, three(grid.wholes), grid.counters]
        stage.once(lambda: wp.launch(dye.count_left, dim=1, inputs=args, device=grid.device.warp))


def _put_sources(stage: Stage, grid: Grid) -> None:
    p, fine, device = grid.params, grid.levels[0], grid.device.warp
    for port in (grid.sources, grid.source_count, grid.source_units, grid.source_values):
        stage.upload(port)
    stage.once(grid.rate.zero_)
    where = [fine.shape, wp.vec3(*p.origin), p.spacing]
    given = [grid.source_count.array, grid.sources.array]
    rates = [*where, *given, fine.inverse, grid.rate, three(grid.velocity)]
    stage.once(lambda: wp.launch(sources.put_rates, dim=1, inputs=rates, device=device))
    for place, carried in enumerate(grid.carried.values()):
        many = [place, len(grid.carried)]
        if carried.amount is not None:
            args = [*where, p.dt, *many, *given, grid.source_units.array, fine.inverse, carried.amount, grid.counters]
            stage.once(lambda args=args: wp.launch(sources.put_units, dim=1, inputs=args, device=device))
        else:
            args = [*where, *many, *given, grid.source_values.array, fine.inverse, carried.value]
            stage.once(lambda args=args: wp.launch(sources.put_values, dim=1, inputs=args, device=device))
