"""Many threads for each world, for cuda: a block that goes through all ticks of an action, or a launch for each phase.

In `run_blocks` the threads of a world meet (`meet_mates`) where one needs what others wrote: worlds do not wait for
each other, and what a world writes stays in the caches near it. As launches of their own, phases have as many threads
as they have elements.
"""

from __future__ import annotations

import warp as wp

from viscera.batch import worlds as phase
from viscera.batch.hands import begin_action
from viscera.batch.kit import Hands, Kit
from viscera.batch.worlds import Worlds
from viscera.tissue.kernels import Lattice
from viscera.tissue.touch_kernels import Samples

wp.set_module_options({"enable_backward": False})


@wp.func_native("#if defined(__CUDA_ARCH__)\n__syncthreads();\n#endif\n")
def meet_mates():
    """All threads of a world have come so far, and see what the others wrote."""


@wp.kernel
def run_blocks(
    first: int,
    # params
    lattice: Lattice,
    samples: Samples,
    kit: Kit,
    threads: int,
    # in
    plan: wp.array(dtype=wp.int32),
    # out
    worlds: Worlds,
    hands: Hands,
):
    """plan[0] ticks; `threads`, a whole block, share a world."""
    index = first + wp.tid()
    world = index // threads
    thread = index - world * threads
    ticks = plan[0]
    if thread == 0:
        begin_action(kit, hands, world)
    for _tick in range(ticks):
        phase.start_tick(worlds, kit, hands, world, thread, threads)
        meet_mates()
        phase.look_near(lattice, samples, worlds, world, thread, threads)
        meet_mates()
        phase.list_near_points(lattice, samples, worlds, world, thread, threads)
        meet_mates()
        for substep in range(lattice.substeps):
            phase.press(lattice, worlds, world, substep, thread, threads)
            meet_mates()
            phase.gather(lattice, worlds, world, thread, threads)
            meet_mates()
            phase.step(lattice, worlds, world, substep, thread, threads)
            meet_mates()
            phase.touch_meet(lattice, samples, worlds, world, substep, thread, threads)
            meet_mates()
            phase.touch_count(samples, worlds, world, thread, threads)
            meet_mates()
            phase.touch_push(lattice, samples, worlds, world, substep, thread, threads)
            meet_mates()
            phase.touch_move(lattice, worlds, world, substep, thread, threads)
            meet_mates()
        phase.end_tick(worlds, kit, hands, world, ticks, thread, threads)
        meet_mates()


@wp.kernel
def begin_actions(first: int, kit: Kit, hands: Hands):
    begin_action(kit, hands, first + wp.tid())


@wp.kernel
def start_ticks(first: int, kit: Kit, threads: int, worlds: Worlds, hands: Hands):
    index = first + wp.tid()
    phase.start_tick(worlds, kit, hands, index // threads, index % threads, threads)


@wp.kernel
def look_near(first: int, lattice: Lattice, samples: Samples, threads: int, worlds: Worlds):
    index = first + wp.tid()
    phase.look_near(lattice, samples, worlds, index // threads, index % threads, threads)


@wp.kernel
def list_near_points(first: int, lattice: Lattice, samples: Samples, threads: int, worlds: Worlds):
    index = first + wp.tid()
    phase.list_near_points(lattice, samples, worlds, index // threads, index % threads, threads)


@wp.kernel
def press(first: int, lattice: Lattice, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    phase.press(lattice, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def gather(first: int, lattice: Lattice, threads: int, worlds: Worlds):
    index = first + wp.tid()
    phase.gather(lattice, worlds, index // threads, index % threads, threads)


@wp.kernel
def step(first: int, lattice: Lattice, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    phase.step(lattice, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def touch_meet(first: int, lattice: Lattice, samples: Samples, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    phase.touch_meet(lattice, samples, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def touch_count(first: int, samples: Samples, threads: int, worlds: Worlds):
    index = first + wp.tid()
    phase.touch_count(samples, worlds, index // threads, index % threads, threads)


@wp.kernel
def touch_push(first: int, lattice: Lattice, samples: Samples, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    phase.touch_push(lattice, samples, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def touch_move(first: int, lattice: Lattice, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    phase.touch_move(lattice, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def end_ticks(first: int, kit: Kit, plan: wp.array(dtype=wp.int32), worlds: Worlds, hands: Hands):
    phase.end_tick(worlds, kit, hands, first + wp.tid(), plan[0], 0, 1)
