"""All ticks of an action in one launch, one thread for each world, for cpu: a world's arrays stay in the core's cache,
and no core waits for another."""

from __future__ import annotations

import warp as wp

from viscera.batch import worlds as phase
from viscera.batch.hands import begin_action
from viscera.batch.kit import Hands, Kit
from viscera.batch.worlds import Worlds
from viscera.tissue.kernels import Lattice
from viscera.tissue.touch_kernels import Samples

wp.set_module_options({"enable_backward": False})


@wp.kernel
def run_worlds(
    first: int,
    # params
    lattice: Lattice,
    samples: Samples,
    kit: Kit,
    # in
    plan: wp.array(dtype=wp.int32),
    # out
    worlds: Worlds,
    hands: Hands,
):
    """plan[0] ticks."""
    world = first + wp.tid()
    ticks = plan[0]
    begin_action(kit, hands, world)
    for _tick in range(ticks):
        phase.start_tick(worlds, kit, hands, world, 0, 1)
        phase.look_near_alone(lattice, samples, worlds, world)
        for substep in range(lattice.substeps):
            phase.press(lattice, worlds, world, substep, 0, 1)
            phase.gather(lattice, worlds, world, 0, 1)
            phase.step(lattice, worlds, world, substep, 0, 1)
            phase.touch_alone(lattice, samples, worlds, world, substep)
        phase.end_tick(worlds, kit, hands, world, ticks, 0, 1)
