"""The phases of a tick as launches of their own, each over all worlds: for devices whose caches do not hold a world."""

from __future__ import annotations

import warp as wp

from viscera.batch import kernels
from viscera.batch.hands import Hands, Kit, begin_action
from viscera.batch.kernels import Worlds
from viscera.tissue.kernels import Lattice
from viscera.tissue.touch_kernels import Samples

wp.set_module_options({"enable_backward": False})


@wp.kernel
def begin_actions(first: int, kit: Kit, hands: Hands):
    begin_action(kit, hands, first + wp.tid())


@wp.kernel
def start_ticks(first: int, kit: Kit, worlds: Worlds, hands: Hands):
    kernels.start_tick(worlds, kit, hands, first + wp.tid())


@wp.kernel
def look_near(first: int, lattice: Lattice, samples: Samples, threads: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.look_near(lattice, samples, worlds, index // threads, index % threads, threads)


@wp.kernel
def press(first: int, lattice: Lattice, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.press(lattice, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def gather(first: int, lattice: Lattice, threads: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.gather(lattice, worlds, index // threads, index % threads, threads)


@wp.kernel
def step(first: int, lattice: Lattice, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.step(lattice, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def touch_meet(first: int, lattice: Lattice, samples: Samples, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.touch_meet(lattice, samples, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def touch_count(first: int, samples: Samples, threads: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.touch_count(samples, worlds, index // threads, index % threads, threads)


@wp.kernel
def touch_push(first: int, lattice: Lattice, samples: Samples, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.touch_push(lattice, samples, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def touch_move(first: int, lattice: Lattice, threads: int, substep: int, worlds: Worlds):
    index = first + wp.tid()
    kernels.touch_move(lattice, worlds, index // threads, substep, index % threads, threads)


@wp.kernel
def end_ticks(first: int, kit: Kit, plan: wp.array(dtype=wp.int32), worlds: Worlds, hands: Hands):
    kernels.end_tick(worlds, kit, hands, first + wp.tid(), plan[0])
