"""Each phase of a film's step as a launch over all worlds, with a thread for each particle, for cuda."""

from __future__ import annotations

import warp as wp

from viscera.batch import flowing as phase
from viscera.batch.film_rows import Moving, Resting
from viscera.batch.flowing import Course
from viscera.blood.film.pairs import Rates

wp.set_module_options({"enable_backward": False})


@wp.kernel
def clear_cells(first: int, course: Course, threads: int, moving: Moving):
    index = first + wp.tid()
    phase.clear(course, moving, index // threads, index % threads, threads)


@wp.kernel
def take_in_all(first: int, course: Course, threads: int, rest: Resting, moving: Moving):
    index = first + wp.tid()
    phase.take_in(course, rest, moving, index // threads, index % threads, threads)


@wp.kernel
def add_up_cells(first: int, course: Course, moving: Moving):
    phase.add_up(course, moving, first + wp.tid())


@wp.kernel
def list_all(first: int, course: Course, threads: int, rest: Resting, moving: Moving):
    index = first + wp.tid()
    phase.list_places(course, rest, moving, index // threads, index % threads, threads)


@wp.kernel
def arrange_all(first: int, course: Course, threads: int, rates: wp.array(dtype=Rates), rest: Resting, moving: Moving):
    index = first + wp.tid()
    phase.arrange(course, rates, rest, moving, index // threads, index % threads, threads)


@wp.kernel
def settle_all(first: int, course: Course, rest: Resting, moving: Moving):
    phase.settle(course, rest, moving, first + wp.tid())


@wp.kernel
def slow_all(first: int, course: Course, threads: int, rates: wp.array(dtype=Rates), moving: Moving):
    index = first + wp.tid()
    phase.slow(course, rates, moving, index // threads, index % threads, threads)


@wp.kernel
def crowd_all(first: int, course: Course, threads: int, rates: wp.array(dtype=Rates), moving: Moving):
    index = first + wp.tid()
    phase.crowd(course, rates, moving, index // threads, index % threads, threads)


@wp.kernel
def part_all(first: int, course: Course, threads: int, rates: wp.array(dtype=Rates), moving: Moving):
    index = first + wp.tid()
    phase.part(course, rates, moving, index // threads, index % threads, threads)


@wp.kernel
def mix_all(first: int, course: Course, threads: int, steps: int, rates: wp.array(dtype=Rates), moving: Moving):
    index = first + wp.tid()
    phase.mix(course, steps, rates, moving, index // threads, index % threads, threads)


@wp.kernel
def move_all(
    first: int, course: Course, threads: int, mixes: int, rates: wp.array(dtype=Rates), rest: Resting, moving: Moving
):
    index = first + wp.tid()
    phase.move(course, mixes, rates, rest, moving, index // threads, index % threads, threads)
