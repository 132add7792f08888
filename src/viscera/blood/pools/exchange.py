"""Film becomes pool where it gathers or is covered, a pool that runs thin becomes film; `pools` says when."""

# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.blood.columns import PARTS, PoolView, column_at, depth_of, fluid_over, volume_in
from viscera.blood.drops.numbers import Purse, Tools
from viscera.blood.drops.tools import RINGS, ring_of
from viscera.blood.film.state import POOLED, STAYS
from viscera.blood.film.walk import WalkView
from viscera.blood.pools.flow import parts_of
from viscera.blood.views import INTO_POOL, DropView, FilmView, QueueView

wp.set_module_options({"enable_backward": False})


@wp.struct
class ExchangeNumbers:
    """Live numbers; from an array, as scalars are frozen when a program is recorded."""

    hollow: float
    """Film gathers where the ground can hold more than this [m]."""
    slow: float
    """And where it is slower than this [m/s]."""
    thin: float
    """A pool that is nowhere deeper becomes film, where there is no hollow [m]."""
    share: float
    """Part of the film that gathers which becomes pool in one step."""
    volume: int
    """Of a particle that a pool gives to the film [pL]."""
    least: int
    """What a column must have to give some [pL]."""
    seed: int


@wp.func
def _becomes_pool(numbers: ExchangeNumbers, pool: PoolView, film: FilmView, purse: Purse, i: int) -> int:
    """The column that particle i of the film runs into, or −1."""
    x = film.position[i]
    n = column_at(pool, x)
    result = int(-1)
    if n >= 0:
        covered = pool.near[n] != 0
        if covered:
            covered = fluid_over(pool, x).depth > 0.0
        # Clots hold on to the ground.
        gathers = pool.hollow[n] > numbers.hollow and film.clot[i] < 0.5
        gathers = gathers and wp.length(film.velocity[i]) < numbers.slow
        if gathers and not covered:
            rng = wp.rand_init(numbers.seed + purse.step, i)
            # Only on the ground: not under an overhang.
            over = x[2] > pool.ground[n] - pool.side
            covered = over and wp.randf(rng) < numbers.share
        if covered and pool.face[n] >= 0:
            result = n
    return result


@wp.func
def _pour(pool: PoolView, n: int, volume: int, mixture: wp.vec4):
    """Whole picolitres of each fluid into column n; what rounding leaves is of the largest."""
    largest = int(0)
    for k in range(PARTS):
        if mixture[k] > mixture[largest]:
            largest = k
    left = volume
    for k in range(PARTS):
        if k != largest:
            part = wp.clamp(int(float(volume) * mixture[k]), 0, left)
            wp.atomic_add(pool.content, PARTS * n + k, part)
            left -= part
    wp.atomic_add(pool.content, PARTS * n + largest, left)
    pool.wet[0] = 1


@wp.kernel
def take_drops(
    # in
    drops: DropView,
    # out
    pool_out: PoolView,
):
    """Drops that fell into a pool, before they close their ranks. On cpu launched by one core, as atomics there are
    plain."""
    begin = wp.tid() * drops.chunk
    for i in range(begin, wp.min(begin + drops.chunk, drops.count[0])):
        if drops.fate[i] == INTO_POOL:
            _pour(pool_out, drops.face[i], drops.volume[i], drops.fluid[i])


@wp.kernel
def gather_film(
    # params
    all_numbers: wp.array(dtype=ExchangeNumbers),
    pool: PoolView,
    # in
    purse: wp.array(dtype=Purse),
    # out
    film_out: FilmView,
    pool_out: PoolView,
):
    """Whole picolitres of each fluid. On cpu launched by one core, as atomics there are plain. Levels are those of the
    step before, so nobody sees what another one adds."""
    begin = wp.tid() * pool.chunk
    numbers = all_numbers[0]
    for i in range(begin, wp.min(begin + pool.chunk, film_out.count[0])):
        if film_out.fate[i] == STAYS:
            n = _becomes_pool(numbers, pool, film_out, purse[0], i)
            if n >= 0:
                film_out.fate[i] = POOLED
                _pour(pool_out, n, film_out.volume[i], film_out.fluid[i])


@wp.kernel
def choose_thin(
    first: int,
    # params
    all_numbers: wp.array(dtype=ExchangeNumbers),
    pool: PoolView,
    # out
    flag_out: wp.array(dtype=wp.int32),
):
    """1 for each column that gives a particle to the film: it is in no hollow, and neither it nor one beside it is
    deep."""
    begin = (first + wp.tid()) * pool.chunk
    numbers = all_numbers[0]
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        flag_out[i] = 0
        if pool.wet[0] > 0 and pool.face[i] >= 0:
            has = volume_in(pool, i)
            if has >= numbers.least and pool.hollow[i] <= numbers.hollow:
                deepest = has
                column = i % pool.columns
                row = i // pool.columns
                for b in range(wp.max(row - 1, 0), wp.min(row + 2, pool.rows)):
                    for a in range(wp.max(column - 1, 0), wp.min(column + 2, pool.columns)):
                        deepest = wp.max(deepest, volume_in(pool, b * pool.columns + a))
                if depth_of(pool, deepest) < numbers.thin:
                    flag_out[i] = 1


@wp.func
def _weights_under(surface: WalkView, face: int, x: float, y: float) -> wp.vec2:
    """Weights of a triangle's second and third corner under a place."""
    corner = surface.triangles[face]
    a = surface.vertices[corner[0]]
    e = surface.vertices[corner[1]] - a
    f = surface.vertices[corner[2]] - a
    double = e[0] * f[1] - e[1] * f[0]
    second = wp.clamp(((x - a[0]) * f[1] - (y - a[1]) * f[0]) / wp.max(double, 1.0e-20), 0.0, 1.0)
    third = wp.clamp((e[0] * (y - a[1]) - e[1] * (x - a[0])) / wp.max(double, 1.0e-20), 0.0, 1.0 - second)
    return wp.vec2(second, third)


@wp.func
def room_for_pool(film: FilmView, queue: QueueView, fullest: float) -> int:
    """Length that the film's queue may have."""
    return wp.min(queue.capacity, int(fullest * float(film.capacity)) - film.count[0])


@wp.kernel
def give_film(
    first: int,
    # params
    all_numbers: wp.array(dtype=ExchangeNumbers),
    fullest: float,
    pool: PoolView,
    surface: WalkView,
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    film: FilmView,
    # out
    pool_out: PoolView,
    queue_out: QueueView,
):
    begin = (first + wp.tid()) * pool.chunk
    numbers = all_numbers[0]
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        slot = queue_out.count[0] + place[i]
        if flag[i] != 0 and slot < room_for_pool(film, queue_out, fullest):
            x = pool.left + (float(i % pool.columns) + 0.5) * pool.side
            y = pool.front + (float(i // pool.columns) + 0.5) * pool.side
            volume = wp.min(volume_in(pool, i), numbers.volume)
            mixture = wp.vec4(0.0, 0.0, 0.0, 0.0)
            parts = parts_of(pool, i, volume)
            for k in range(PARTS):
                mixture[k] = float(parts[k]) / float(volume)
            for k in range(PARTS):
                pool_out.content[PARTS * i + k] = pool.content[PARTS * i + k] - parts[k]
            queue_out.face[slot] = pool.face[i]
            queue_out.barycentric[slot] = _weights_under(surface, pool.face[i], x, y)
            queue_out.velocity[slot] = wp.vec3(0.0, 0.0, 0.0)
            queue_out.volume[slot] = volume
            queue_out.fluid[slot] = mixture


@wp.kernel
def book_film(
    # params
    fullest: float,
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    film: FilmView,
    # out
    queue_out: QueueView,
):
    last = flag.shape[0] - 1
    after = wp.min(queue_out.count[0] + place[last] + flag[last], room_for_pool(film, queue_out, fullest))
    queue_out.count[0] = wp.max(queue_out.count[0], after)


@wp.func
def surface_of(pool: PoolView, i: int) -> wp.vec3:
    """The middle of a column's surface [m]."""
    x = pool.left + (float(i % pool.columns) + 0.5) * pool.side
    y = pool.front + (float(i // pool.columns) + 0.5) * pool.side
    return wp.vec3(x, y, pool.level[i])


@wp.func
def _ring_of(tools: Tools, pool: PoolView, i: int) -> int:
    """Of the nearest place of a column, down to its ground: suction held into a pool reaches all around it."""
    at = surface_of(pool, i)
    z = wp.clamp(tools.suction[2], pool.ground[i], pool.level[i])
    return ring_of(tools, wp.vec3(at[0], at[1], z))


@wp.kernel
def measure_pool(
    # params
    all_tools: wp.array(dtype=Tools),
    # in
    pool: PoolView,
    # out
    ring_out: wp.array(dtype=wp.int64),
):
    """What suction reaches, by rings around its tip. On cpu launched by one core."""
    begin = wp.tid() * pool.chunk
    if all_tools[0].suction_reach > 0.0 and pool.wet[0] > 0:
        for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
            volume = volume_in(pool, i)
            if volume > 0:
                ring = _ring_of(all_tools[0], pool, i)
                if ring < RINGS:
                    wp.atomic_add(ring_out, ring, wp.int64(volume))


@wp.kernel
def suck_pool(
    # params
    all_tools: wp.array(dtype=Tools),
    pool: PoolView,
    # in
    purse: wp.array(dtype=Purse),
    # out
    pool_out: PoolView,
    taken_out: wp.array(dtype=wp.int64),
    gone_out: wp.array(dtype=wp.int64),
):
    """Whole columns nearer than the last ring, and of that ring the part that the rate allows."""
    begin = wp.tid() * pool.chunk
    if all_tools[0].suction_reach > 0.0 and pool.wet[0] > 0:
        for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
            volume = volume_in(pool, i)
            ring = RINGS
            if volume > 0:
                ring = _ring_of(all_tools[0], pool, i)
            amount = int(0)
            if ring < RINGS and ring < purse[0].ring:
                amount = volume
            elif ring < RINGS and ring == purse[0].ring:
                amount = int(purse[0].part * float(volume))
            if amount > 0:
                parts = parts_of(pool, i, amount)
                for k in range(PARTS):
                    pool_out.content[PARTS * i + k] = pool.content[PARTS * i + k] - parts[k]
                wp.atomic_add(taken_out, 0, wp.int64(amount))
                wp.atomic_add(gone_out, 1, wp.int64(amount))
