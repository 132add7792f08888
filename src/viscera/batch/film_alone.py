"""All steps of the film of a world by one thread, for cpu: its particles stay in the core's cache."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.batch import flowing as phase
from viscera.batch.film_rows import Moving, Resting
from viscera.batch.flowing import Course
from viscera.blood.film.pairs import Rates

wp.set_module_options({"enable_backward": False})


@wp.kernel
def flow_worlds(
    first: int,
    # params
    course: Course,
    steps: int,
    mixes: int,
    # in
    rates: wp.array(dtype=Rates),
    # out
    rest: Resting,
    moving: Moving,
):
    """So many steps; the first of them mixes and clots for `mixes` steps. A world without blood has nothing to do."""
    world = first + wp.tid()
    for number in range(steps):
        if phase.staged_in(course, rest, world) > 0:
            phase.clear(course, moving, world, 0, 1)
            phase.take_in(course, rest, moving, world, 0, 1)
            phase.add_up(course, moving, world)
            phase.arrange(course, rates, rest, moving, world, 0, 1)
            phase.settle(course, rest, moving, world)
            phase.slow(course, rates, moving, world, 0, 1)
            phase.crowd(course, rates, moving, world, 0, 1)
            phase.part(course, rates, moving, world, 0, 1)
            mixing = int(0)
            if number == 0:
                mixing = mixes
            if mixing > 0:
                phase.mix(course, mixing, rates, moving, world, 0, 1)
            phase.move(course, mixing, rates, rest, moving, world, 0, 1)
