"""Ticks of a lattice inside a program of one's own, and what a lattice keeps.

A substep reads one position buffer and writes the other, and which is which is frozen when a program is recorded. So a
recorded piece must end in the buffer where it began: after an odd number of substeps the result is copied back. The
clock counts on the device, as the host does not see every replay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.states import Arrays, copy_in, copy_out, require_names
from viscera.timing import TICKS_PER_FRAME
from viscera.tissue.stepping import record_creep, record_substeps
from viscera.tissue.tissue import Tissue

wp.set_module_options({"enable_backward": False})


@wp.kernel
def count_tick(
    # out
    clock_out: wp.array(dtype=wp.int32),
):
    clock_out[0] = clock_out[0] + 1


def record_ticks(stage: Stage, tissue: Tissue, ticks: int) -> None:
    """See `tissue.step`."""
    if tissue.slabs is not None:
        raise InputError(
            "a lattice in slabs steps with programs of its own.",
            "Call `Tissue.step`, or make the lattice with slabs=1.",
        )
    state, creeps = tissue.state, tissue.params.creep.fraction > 0.0
    if ticks < 1 or (creeps and ticks % TICKS_PER_FRAME):
        allowed = f"Tissue that creeps takes a multiple of {TICKS_PER_FRAME}." if creeps else "It must be 1 or more."
        raise InputError(f"ticks = {ticks} is not possible.", allowed)
    for port in (state.live, state.tools, state.drive, state.poses):
        stage.upload(port)
    if tissue.cutting is not None:
        stage.upload(tissue.cutting.edges)
        stage.upload(tissue.cutting.news)
    if tissue.grasping is not None:
        stage.upload(tissue.grasping.jaws)
    begin = current = tissue.current
    for tick in range(1, ticks + 1):
        stage.clear(state.force)
        record_substeps(stage, tissue, current)
        current = (current + tissue.substeps) % 2
        stage.once(lambda: wp.launch(count_tick, dim=1, inputs=[state.clock.array], device=stage.device.warp))
        if creeps and tick % TICKS_PER_FRAME == 0:
            record_creep(stage, tissue, current)
    if current != begin:
        stage.once(lambda: wp.copy(state.position[begin], state.position[current]))
    for port in (state.force, state.broken, state.clock):
        stage.download(port)
    if tissue.cutting is not None:
        stage.download(tissue.cutting.news)
    if tissue.grasping is not None:
        stage.download(tissue.grasping.report)


def save(tissue: Tissue) -> Arrays:
    tissue.device.synchronize()
    settings = np.array([tissue.young, tissue.viscous_time])
    ticks = np.array([tissue.sync_ticks()], dtype=np.int64)
    return copy_out(tissue.arrays() | _inputs(tissue)) | {"settings": settings, "ticks": ticks}


def load(tissue: Tissue, arrays: Arrays) -> None:
    require_names("tissue", ["settings", "ticks"], arrays)
    copy_in("tissue", tissue.arrays() | _inputs(tissue), arrays)
    tissue.load(arrays, int(arrays["ticks"][0]))
    tissue.young, tissue.viscous_time = arrays["settings"].tolist()
    for port in (tissue.state.clock, tissue.state.broken):
        if port.staging is not port.array:
            wp.copy(port.array, port.staging)


def _inputs(tissue: Tissue) -> dict[str, Any]:
    """What the host has written, and the force of the last tick."""
    return {name: getattr(tissue.state, name) for name in ("live", "tools", "drive", "poses", "force")}
