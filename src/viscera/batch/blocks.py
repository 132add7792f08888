"""Many threads for each world, for cuda: a block that goes through all ticks of an action, or a launch for each phase.

In `run_blocks` the threads of a world meet (`meet_mates`) where one needs what others wrote: worlds do not wait for
each other, and what a world writes stays in the caches near it. As launches of their own, phases of the lattice have as
many threads as they have elements. Contact has few points in a world: a block of threads takes a world through all of a
substep's, and through the lists of a tick.
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

LISTING_THREADS, CONTACT_THREADS, TOOL_THREADS = 128, 64, 32
"""Of a block on cuda: one that lists what the tools of a world may reach, one that computes contact of a world, and one
of tools, a thread for each world."""
AT_ONCE = 1024
"""Threads of contact that a multiprocessor of cuda holds: they wait for memory most of the time, and the more worlds
wait at once the better. This leaves 64 registers to a thread."""


@wp.func_native("#if defined(__CUDA_ARCH__)\n__syncthreads();\n#endif\n")
def meet_mates():
    """All threads of a world have come so far, and see what the others wrote."""


@wp.func
def list_all(lattice: Lattice, samples: Samples, worlds: Worlds, world: int, thread: int, threads: int):
    """What tools may reach in this tick: bundles, then their points."""
    phase.look_near(lattice, samples, worlds, world, thread, threads)
    meet_mates()
    phase.list_near_points(lattice, samples, worlds, world, thread, threads)
    meet_mates()


@wp.func
def touch_all(
    lattice: Lattice, samples: Samples, worlds: Worlds, world: int, substep: int, thread: int, threads: int
):  # fmt: skip
    """Contact of a substep. The list of met points is empty again when it is done."""
    phase.touch_meet(lattice, samples, worlds, world, substep, thread, threads)
    meet_mates()
    phase.touch_count(samples, worlds, world, thread, threads)
    meet_mates()
    phase.touch_push(lattice, samples, worlds, world, substep, thread, threads)
    meet_mates()
    phase.touch_move(lattice, samples, worlds, world, substep, thread, threads)
    meet_mates()
    if thread == 0:
        worlds.counts[world, 1] = 0


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
        list_all(lattice, samples, worlds, world, thread, threads)
        for substep in range(lattice.substeps):
            phase.press(lattice, worlds, world, substep, thread, threads)
            meet_mates()
            phase.gather(lattice, worlds, world, thread, threads)
            meet_mates()
            phase.step(lattice, worlds, world, substep, thread, threads)
            meet_mates()
            touch_all(lattice, samples, worlds, world, substep, thread, threads)
        phase.end_tick(worlds, kit, hands, world, ticks, thread, threads)
        meet_mates()


@wp.kernel
def begin_actions(first: int, kit: Kit, hands: Hands):
    begin_action(kit, hands, first + wp.tid())


@wp.kernel
def start_ticks(first: int, kit: Kit, worlds: Worlds, hands: Hands):
    phase.start_tick(worlds, kit, hands, first + wp.tid(), 0, 1)


@wp.kernel(launch_bounds=(LISTING_THREADS, AT_ONCE // LISTING_THREADS))
def look_near(first: int, lattice: Lattice, samples: Samples, threads: int, worlds: Worlds):
    """`threads`, a whole block, share a world."""
    index = first + wp.tid()
    list_all(lattice, samples, worlds, index // threads, index % threads, threads)


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


@wp.kernel(launch_bounds=(CONTACT_THREADS, AT_ONCE // CONTACT_THREADS))
def touch(first: int, lattice: Lattice, samples: Samples, threads: int, substep: int, worlds: Worlds):
    """`threads`, a whole block, share a world."""
    index = first + wp.tid()
    touch_all(lattice, samples, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def end_ticks(first: int, kit: Kit, plan: wp.array(dtype=wp.int32), worlds: Worlds, hands: Hands):
    phase.end_tick(worlds, kit, hands, first + wp.tid(), plan[0], 0, 1)
