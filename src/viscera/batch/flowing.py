"""A step of the films of many worlds: the functions of `viscera.blood.film`, over rows.

Phases are those of blood/film/film.py, each by one of a world's threads. On cpu one thread takes a world through all of
them (film_alone.py), on cuda each phase is a launch with a thread for each particle (film_blocks.py). Order inside a
cell is by number, as everywhere, so a film has the bits of the same film by itself.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.batch.film_rows import Moving, Resting, cargo_of, grid_of, home_of, sorted_of, surface_of, waiting_of
from viscera.blood.film.kernels import EVERY, move_particles, place_of, put_in_order, receive
from viscera.blood.film.native import density_range_3d, displacement_range_3d, viscosity_range_3d
from viscera.blood.film.native_mixing import mix_range_3d
from viscera.blood.film.native_moves import WALKS, move_sixteens
from viscera.blood.film.obstacles import Sheeted
from viscera.blood.film.pairs import FilmView, Rates
from viscera.blood.film.state import STAYS, WAITING
from viscera.blood.film.surface import normal_around
from viscera.blood.film.walk import WalkView
from viscera.neighbors.cells import GridView, cell_index, cell_of

wp.set_module_options({"enable_backward": False})


@wp.struct
class Course:
    """What all films share, and does not change."""

    view: FilmView
    grid: GridView
    walk: WalkView
    sheet: Sheeted
    fan_start: wp.array(dtype=wp.int32)
    fan: wp.array(dtype=wp.int32)


# --- phases: of one world, by one of its threads ---


@wp.func
def staged_in(course: Course, rest: Resting, world: int):
    """Particles, and those that this step takes in."""
    return wp.min(rest.count[world, 0] + rest.queue_count[world, 0], course.view.capacity)


@wp.func
def clear(course: Course, moving: Moving, world: int, thread: int, threads: int):
    for cell in range(thread, course.grid.lost + 2, threads):
        moving.cell_start[world, cell] = 0


@wp.func
def take_in(course: Course, rest: Resting, moving: Moving, world: int, thread: int, threads: int):
    """What waits comes in; everyone finds its cell and draws a ticket there, or is counted as gone."""
    home = home_of(rest, world)
    queue = waiting_of(rest, world)
    surface = surface_of(course.walk, rest, world)
    held = home.count[0]
    staged = staged_in(course, rest, world)
    for i in range(thread, staged, threads):
        if i >= held:
            receive(queue, home, i, queue.count[0] - (staged - held) + (i - held))
        point = place_of(course.view, surface, home, i)
        fate = home.fate[i]
        cell = course.grid.lost
        if fate == STAYS:
            cell = cell_index(course.grid, cell_of(course.grid, point))
            moving.ticket[world, i] = wp.atomic_add(moving.cell_start, world, cell, 1)
        else:
            wp.atomic_add(home.gone_count, fate, wp.int64(1))
            wp.atomic_add(home.gone_volume, fate, wp.int64(home.volume[i]))
        moving.cell[world, i] = cell


@wp.func
def add_up(course: Course, moving: Moving, world: int):
    """Where each cell begins."""
    total = int(0)
    for cell in range(course.grid.lost + 2):
        here = moving.cell_start[world, cell]
        moving.cell_start[world, cell] = total
        total += here
    moving.count[world, 0] = total


@wp.func
def list_places(course: Course, rest: Resting, moving: Moving, world: int, thread: int, threads: int):
    for i in range(thread, staged_in(course, rest, world), threads):
        cell = moving.cell[world, i]
        if cell < course.grid.lost:
            moving.listed[world, moving.cell_start[world, cell] + moving.ticket[world, i]] = i


@wp.func
def arrange(
    course: Course, rates: wp.array(dtype=Rates), rest: Resting, moving: Moving, world: int, thread: int, threads: int
):
    """Particles stand by cell, and in it by their number. A thread alone has drawn its tickets in that order."""
    home = home_of(rest, world)
    surface = surface_of(course.walk, rest, world)
    film = sorted_of(moving, world)
    cargo = cargo_of(moving, world)
    for i in range(thread, staged_in(course, rest, world), threads):
        cell = moving.cell[world, i]
        if cell < course.grid.lost:
            begin = moving.cell_start[world, cell]
            rank = moving.ticket[world, i]
            if threads > 1:
                rank = int(0)
                for other in range(begin, moving.cell_start[world, cell + 1]):
                    if moving.listed[world, other] < i:
                        rank += 1
            put_in_order(course.view, rates[0], surface, course.sheet, home, i, film, cargo, begin + rank)


@wp.func
def settle(course: Course, rest: Resting, moving: Moving, world: int):
    """Who is left in the queue, and how many there are now."""
    left = rest.queue_count[world, 0] - (staged_in(course, rest, world) - rest.count[world, 0])
    rest.queue_count[world, 0] = left
    rest.status[world, WAITING] = left
    rest.count[world, 0] = moving.count[world, 0]


@wp.func
def share_of(moving: Moving, world: int, thread: int, threads: int):
    """Sorted places that a thread goes through."""
    live = moving.count[world, 0]
    part = (live + threads - 1) // threads
    begin = wp.min(thread * part, live)
    return begin, wp.min(begin + part, live)


@wp.func
def slow(course: Course, rates: wp.array(dtype=Rates), moving: Moving, world: int, thread: int, threads: int):
    """Viscosity, and where particles would go."""
    begin, end = share_of(moving, world, thread, threads)
    grid = grid_of(course.grid, moving, world)
    viscosity_range_3d(begin, end, 0, course.view, grid, rates, sorted_of(moving, world))


@wp.func
def crowd(course: Course, rates: wp.array(dtype=Rates), moving: Moving, world: int, thread: int, threads: int):
    """Density and pressure."""
    begin, end = share_of(moving, world, thread, threads)
    grid = grid_of(course.grid, moving, world)
    density_range_3d(begin, end, 0, course.view, grid, rates, sorted_of(moving, world))


@wp.func
def part(course: Course, rates: wp.array(dtype=Rates), moving: Moving, world: int, thread: int, threads: int):
    """Pressure pushes them apart."""
    begin, end = share_of(moving, world, thread, threads)
    grid = grid_of(course.grid, moving, world)
    displacement_range_3d(begin, end, 0, course.view, grid, rates, sorted_of(moving, world))


@wp.func
def mix(
    course: Course, steps: int, rates: wp.array(dtype=Rates), moving: Moving, world: int, thread: int, threads: int
):
    begin, end = share_of(moving, world, thread, threads)
    grid = grid_of(course.grid, moving, world)
    cargo = cargo_of(moving, world)
    mix_range_3d(begin, end, 0, course.view, steps, grid, rates, sorted_of(moving, world), cargo)


@wp.func
def move(
    course: Course, mixes: int, rates: wp.array(dtype=Rates), rest: Resting, moving: Moving, world: int, thread: int,
    threads: int,
):  # fmt: skip
    """The first of the two is nothing on cuda, and the second takes who crosses an edge; there it takes all."""
    begin, end = share_of(moving, world, thread, threads)
    home = home_of(rest, world)
    surface = surface_of(course.walk, rest, world)
    film = sorted_of(moving, world)
    cargo = cargo_of(moving, world)
    alone = WALKS
    if course.view.atomic != 0:
        alone = EVERY
    move_sixteens(begin, end, course.view, mixes, rates, surface, film, cargo, home)
    move_particles(course.view, mixes, alone, rates[0], surface, course.sheet, film, cargo, begin, end, home)


# --- kernels ---


@wp.kernel
def turn_normals(first: int, course: Course, vertices: int, rest: Resting):
    """Normals of each world's surface, as `refresh_surface` has them."""
    index = first + wp.tid()
    world = index // vertices
    vertex = index % vertices
    around = normal_around(course.walk.triangles, rest.vertex[world], course.fan_start, course.fan, vertex)
    rest.vertex_normal[world, vertex] = around


@wp.kernel
def dry_worlds(first: int, mask: wp.array(dtype=wp.int32), rest: Resting):
    """No blood lies in the worlds of the mask, none waits, and none has gone."""
    world = first + wp.tid()
    if mask[world] != 0:
        rest.count[world, 0] = 0
        rest.queue_count[world, 0] = 0
        for fate in range(rest.gone_count.shape[1]):
            rest.gone_count[world, fate] = wp.int64(0)
            rest.gone_volume[world, fate] = wp.int64(0)
        for entry in range(rest.status.shape[1]):
            rest.status[world, entry] = 0


@wp.kernel
def pour_worlds(
    first: int,
    # params
    course: Course,
    queue: int,
    # in
    count: int,
    face: wp.array2d(dtype=wp.int32),
    barycentric: wp.array2d(dtype=wp.vec2),
    mask: wp.array(dtype=wp.int32),
    volume: int,
    fluid: wp.vec4,
    # out
    rest: Resting,
):
    """Particles for the next step of each world in the mask, as many as can wait."""
    world = first + wp.tid()
    if mask[world] == 0:
        return
    waits = rest.queue_count[world, 0]
    for k in range(wp.min(count, queue - waits)):
        rest.queue_face[world, waits + k] = face[world, k]
        rest.queue_barycentric[world, waits + k] = barycentric[world, k]
        rest.queue_velocity[world, waits + k] = wp.vec3()
        rest.queue_volume[world, waits + k] = volume
        rest.queue_fluid[world, waits + k] = fluid
    rest.queue_count[world, 0] = waits + wp.min(count, queue - waits)
