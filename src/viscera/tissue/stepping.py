"""One tick of a lattice as launches, in order: anchors that are driven, forces besides the springs, the step, tools.

Free functions over a `Tissue`, which records them; slabs.py records the same ones for each of its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.tissue import kernels, native, viscosity, volume
from viscera.tissue.clamping import record_clamp, record_clamps
from viscera.tissue.creep import creep_on
from viscera.tissue.cutting import record_cut, record_drag, record_keep
from viscera.tissue.driven import drive_anchors
from viscera.tissue.grasping import record_hold, record_take
from viscera.tissue.layout import TILE
from viscera.tissue.remedies import torsion_forces
from viscera.tissue.sewing import record_sew, record_threads
from viscera.tissue.touching import record_near, record_touch

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

NATIVE_BLOCK = 1024 // TILE
"""Tiles per block when a launch is over tiles."""


def record_tick(stage: Stage, tissue: Tissue) -> None:
    record_start(stage, tissue)
    record_substeps(stage, tissue, tissue.current)
    record_end(stage, tissue)


def record_substeps(stage: Stage, tissue: Tissue, current: int) -> None:
    """A tick from the buffer `current`, between what goes in and what comes out."""
    record_near(stage, tissue, tissue.state.position[current])
    record_keep(stage, tissue, tissue.state.position[current])
    record_take(stage, tissue, tissue.state.position[current])
    for substep in range(tissue.substeps):
        record_substep(stage, tissue, substep, current)
    record_after(stage, tissue, current)


def record_after(stage: Stage, tissue: Tissue, current: int) -> None:
    """What blades, needles and clips do once a tick, when its substeps from the buffer `current` are done."""
    last = tissue.state.position[(current + tissue.substeps) % 2]
    record_cut(stage, tissue, last)
    record_threads(stage, tissue, last)
    record_clamps(stage, tissue)


def record_start(stage: Stage, tissue: Tissue) -> None:
    state = tissue.state
    for port in (state.live, state.tools, state.clock, state.drive, state.poses, tissue.need_touching().gauge):
        stage.upload(port)
    if tissue.cutting is not None:
        stage.upload(tissue.cutting.edges)
        stage.upload(tissue.cutting.news)
    if tissue.grasping is not None:
        stage.upload(tissue.grasping.jaws)
    if tissue.sewing is not None:
        stage.upload(tissue.sewing.hand)
    stage.clear(state.force)


def record_substep(stage: Stage, tissue: Tissue, substep: int, current: int) -> None:
    there = tissue.state.position[(current + substep + 1) % 2]
    record_free_substep(stage, tissue, substep, current)
    record_touch(stage, tissue, substep, there)
    record_drag(stage, tissue, substep, there)
    record_hold(stage, tissue, substep, there)
    record_sew(stage, tissue, substep, there)
    record_clamp(stage, tissue, substep, there)


def record_free_substep(stage: Stage, tissue: Tissue, substep: int, current: int) -> None:
    """What masses do by themselves."""
    now = (current + substep) % 2
    here, there = tissue.state.position[now], tissue.state.position[1 - now]
    record_drive(stage, tissue, substep, here, there)
    record_extra(stage, tissue, here)
    record_step(stage, tissue, substep, here, there)


def record_end(stage: Stage, tissue: Tissue) -> None:
    stage.download(tissue.state.force)
    stage.download(tissue.state.broken)
    stage.download(tissue.need_touching().gauge)
    if tissue.cutting is not None:
        stage.download(tissue.cutting.news)
    if tissue.grasping is not None:
        stage.download(tissue.grasping.report)


def record_drive(stage: Stage, tissue: Tissue, substep: int, here: wp.array[Any], there: wp.array[Any]) -> None:
    """Anchors go where the drive takes them."""
    if tissue.driven_places.size:
        share = (substep + 1) / tissue.substeps
        args = [tissue.layout.slots, share, tissue.driven_places, tissue.driven_direction, tissue.state.drive.array]
        stage.launch(drive_anchors, tissue.driven_places.size, [*args, here, there])


def record_extra(stage: Stage, tissue: Tissue, here: wp.array[Any]) -> None:
    """Forces besides the springs, into `constants.extra`. The first that is there writes, the others add."""
    state, tiles, constants = tissue.state, len(tissue.layout.tile_slot), tissue.constants
    live, viscous, adds = state.live.array, tissue.viscosity, 0
    if tissue.params.has_volume:
        tiled = tissue.native and not tissue.device.is_cuda
        count, block = (tiles, NATIVE_BLOCK) if tiled else (tiles * TILE, 1024)
        press, gather = (
            (volume.cell_pressure_native, volume.gather_pressure_native)
            if tissue.native
            else (volume.cell_pressure, volume.gather_pressure)
        )
        stage.launch(press, count, [constants, tissue.bulk, live, here, state.push], block)
        if viscous is not None and viscous.cells.size:
            args = [constants, tissue.bulk, viscous.relative, viscous.cells, live, here, state.velocity, state.push]
            stage.launch(viscosity.viscous_cells, viscous.cells.size, args)
        stage.launch(gather, count, [constants, state.push, constants.extra], block)
        adds = 1
    if tissue.params.remedies.torsion > 0.0:
        stage.launch(torsion_forces, tiles * TILE, [constants, adds, live, here, constants.extra])
        adds = 1
    if viscous is not None:
        args = [constants, viscous.relative, viscous.springs, adds, live, here, state.velocity, constants.extra]
        stage.launch(viscosity.viscous_springs, viscous.springs.size, args)


def record_step(stage: Stage, tissue: Tissue, substep: int, here: wp.array[Any], there: wp.array[Any]) -> None:
    """Springs and Verlet."""
    state, tiles = tissue.state, len(tissue.layout.tile_slot)
    args = [tissue.constants, substep, state.live.array, here, state.velocity, there, state.broken.array]
    features = (tissue.constants.features & ~kernels.EXTRA) != 0
    if not tissue.native:
        stage.launch(kernels.lattice_step, tiles * TILE, args)
    elif tissue.device.is_cuda and features:
        stage.launch(native.lattice_features_cuda, tiles * TILE, args)
    elif tissue.device.is_cuda:
        stage.launch(native.lattice_pair_cuda, tiles * TILE // 2, args)
    else:
        kernel = native.lattice_features_cpu if features else native.lattice_step_cpu
        stage.launch(kernel, tiles, args, block=NATIVE_BLOCK)


def record_probe(stage: Stage, tissue: Tissue) -> None:
    """One substep without tools, from the first position buffer; see substeps.py."""
    stage.upload(tissue.state.live)
    record_extra(stage, tissue, tissue.state.position[0])
    record_step(stage, tissue, 0, tissue.state.position[0], tissue.state.position[1])


def record_creep(stage: Stage, tissue: Tissue, current: int | None = None) -> None:
    """A frame's worth of creep, with the positions in the buffer `current`."""
    now = tissue.current if current is None else current
    creep, constants = tissue.params.creep, tissue.constants
    approach = 1.0 - float(np.exp(-TICKS_PER_FRAME * TICK / creep.time))
    args = [constants, creep.fraction, approach, tissue.state.position[now], constants.creep]
    stage.launch(creep_on, len(tissue.layout.tile_slot) * TILE, args)
