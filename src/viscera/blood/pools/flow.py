"""How the columns of a pool run into each other; `pools` has the equations."""

# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.blood.columns import DRY, NO_GROUND, PARTS, PoolView, depth_of, volume_in
from viscera.blood.drops.around import RUN, Around, Cloth, cloth_cell
from viscera.blood.film.params import LITTLE

wp.set_module_options({"enable_backward": False})

_LITTLE = wp.constant(LITTLE)

KEPT = wp.constant(64)
"""What a column keeps of its volume [pL], so that rounding by fluid never takes more than there is of one."""


@wp.struct
class FlowNumbers:
    """Live numbers; from an array, as scalars are frozen when a program is recorded."""

    dt: float
    gravity: wp.vec3
    """[m/s²]; down along z."""
    viscosity: float
    """Kinematic [m²/s]."""
    damping: float
    """Of waves [1/s]."""
    deepest: float
    """Depth with which pipes carry at most [m]."""


@wp.struct
class Pipes:
    """Between each column and the next one along x (`right`) and y (`back`)."""

    right: wp.array(dtype=wp.int32)
    back: wp.array(dtype=wp.int32)
    """What passed in the last step [pL], positive away from the column."""
    push_right: wp.array(dtype=wp.float32)
    push_back: wp.array(dtype=wp.float32)
    """What would pass in this one [pL]."""


@wp.func
def _pushed(numbers: FlowNumbers, pool: PoolView, i: int, j: int, along: float, before: int) -> float:
    """Volume that would pass from column i to j in a step [pL]; `along` is the part of gravity that way [m/s²]."""
    here = pool.ground[i]
    there = pool.ground[j]
    own = depth_of(pool, volume_in(pool, i))
    other = depth_of(pool, volume_in(pool, j))
    sill = wp.max(here, there)
    # Without ground there is no level: what is beside it falls.
    head = here + own - wp.max(there + other, here - pool.side)
    if here == NO_GROUND:
        head = -(there + other) + wp.max(here, there - pool.side)
    pull = wp.max(-numbers.gravity[2], 0.0) * head / pool.side + along
    over = here + own - sill
    if pull < 0.0:
        over = there + other - sill
    result = float(0.0)
    if over > 0.0:
        carries = wp.min(over, numbers.deepest)
        drag = 1.0 + numbers.dt * (numbers.damping + 3.0 * numbers.viscosity / (over * over))
        # q = side · depth · speed, and dq/dt = side · depth · pull, times a step's dt.
        gained = numbers.dt * numbers.dt * pool.side * carries * pull / _LITTLE
        result = (float(before) + gained) / drag
    return result


@wp.kernel
def push(
    first: int,
    # params
    all_numbers: wp.array(dtype=FlowNumbers),
    pool: PoolView,
    # out
    pipes_out: Pipes,
):
    begin = (first + wp.tid()) * pool.chunk
    numbers = all_numbers[0]
    if pool.wet[0] == 0:
        return
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        column = i % pool.columns
        own = volume_in(pool, i)
        if column + 1 < pool.columns:
            amount = float(0.0)
            if own > 0 or volume_in(pool, i + 1) > 0:
                amount = _pushed(numbers, pool, i, i + 1, numbers.gravity[0], pipes_out.right[i])
            pipes_out.push_right[i] = amount
        if i + pool.columns < pool.columns * pool.rows:
            amount = float(0.0)
            if own > 0 or volume_in(pool, i + pool.columns) > 0:
                amount = _pushed(numbers, pool, i, i + pool.columns, numbers.gravity[1], pipes_out.back[i])
            pipes_out.push_back[i] = amount


@wp.func
def _share(pool: PoolView, pipes: Pipes, i: int) -> float:
    """Part of what would leave column i that it has."""
    away = wp.max(pipes.push_right[i], 0.0) + wp.max(pipes.push_back[i], 0.0)
    if i % pool.columns > 0:
        away += wp.max(-pipes.push_right[i - 1], 0.0)
    if i >= pool.columns:
        away += wp.max(-pipes.push_back[i - pool.columns], 0.0)
    has = float(wp.max(volume_in(pool, i) - KEPT, 0))
    # A little less, as float32 rounds.
    return wp.min(1.0, 0.999999 * has / wp.max(away, 1.0e-6))


@wp.kernel
def pass_on(
    first: int,
    # params
    pool: PoolView,
    # out
    pipes_out: Pipes,
):
    """Whole picolitres, and no more than a column has."""
    begin = (first + wp.tid()) * pool.chunk
    if pool.wet[0] == 0:
        return
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        amount = pipes_out.push_right[i]
        if amount != 0.0:
            source = wp.where(amount > 0.0, i, i + 1)
            amount = amount * _share(pool, pipes_out, source)
        pipes_out.right[i] = int(amount)
        amount = pipes_out.push_back[i]
        if amount != 0.0:
            source = wp.where(amount > 0.0, i, i + pool.columns)
            amount = amount * _share(pool, pipes_out, source)
        pipes_out.back[i] = int(amount)


@wp.func
def parts_of(pool: PoolView, i: int, amount: int) -> wp.vec4i:
    """How much of `amount` from column i is each fluid: by its share, what rounding leaves is of the largest."""
    result = wp.vec4i(0, 0, 0, 0)
    best = int(0)
    for k in range(1, PARTS):
        if pool.content[PARTS * i + k] > pool.content[PARTS * i + best]:
            best = k
    total = wp.int64(wp.max(volume_in(pool, i), 1))
    left = amount
    for k in range(PARTS):
        has = pool.content[PARTS * i + k]
        # Most columns hold one fluid: nothing to divide.
        if k != best and has > 0:
            result[k] = int(wp.int64(amount) * wp.int64(has) / total)
            left -= result[k]
    result[best] = left
    return result


@wp.func
def _arrives(pool: PoolView, i: int, j: int, amount: int) -> wp.vec4i:
    """What column i gets of each fluid when `amount` passes from j to it; negative amounts leave it."""
    result = wp.vec4i(0, 0, 0, 0)
    if amount > 0:
        result = parts_of(pool, j, amount)
    elif amount < 0:
        result = -parts_of(pool, i, -amount)
    return result


@wp.kernel
def settle(
    first: int,
    # params
    pool: PoolView,
    # in
    pipes: Pipes,
    # out
    content_out: wp.array(dtype=wp.int32),
):
    begin = (first + wp.tid()) * pool.chunk
    if pool.wet[0] == 0:
        return
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        from_left = int(0)
        from_front = int(0)
        if i % pool.columns > 0:
            from_left = pipes.right[i - 1]
        if i >= pool.columns:
            from_front = pipes.back[i - pool.columns]
        to_right = pipes.right[i]
        to_back = pipes.back[i]
        more = wp.vec4i(0, 0, 0, 0)
        if from_left != 0 or from_front != 0 or to_right != 0 or to_back != 0:
            more += _arrives(pool, i, i - 1, from_left)
            more += _arrives(pool, i, i - pool.columns, from_front)
            more += _arrives(pool, i, i + 1, -to_right)
            more += _arrives(pool, i, i + pool.columns, -to_back)
        for part in range(PARTS):
            content_out[PARTS * i + part] = pool.content[PARTS * i + part] + more[part]


@wp.func
def _falls_off(pool: PoolView, cloth: Cloth, blood: int, i: int, volume: int) -> wp.bool:
    """What is in a column without ground falls onto the cloth below; whether there is one."""
    x = pool.left + (float(i % pool.columns) + 0.5) * pool.side
    y = pool.front + (float(i // pool.columns) + 0.5) * pool.side
    n = int(-1)
    if cloth.columns > 0:
        n = cloth_cell(cloth, x, y)
    if n >= 0:
        wp.atomic_add(cloth.cells.content, n, volume)
        wp.atomic_add(cloth.cells.red, n, pool.content[PARTS * i + blood])
        cloth.cells.dirty[n // RUN] = 1
    return n >= 0


@wp.kernel
def find_levels(
    # params
    pool: PoolView,
    around: Around,
    # out
    pool_out: PoolView,
    gone_out: wp.array(dtype=wp.int64),
):
    """Levels, how many columns are wet, and what has fallen off where there is no ground. Sums of whole numbers: the
    same in any order. On cpu launched by one core, as atomics there are plain."""
    begin = wp.tid() * pool.chunk
    wet = int(0)
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        volume = volume_in(pool, i)
        if volume > 0 and pool.ground[i] == NO_GROUND:
            if not _falls_off(pool, around.cloth, around.blood, i, volume):
                wp.atomic_add(gone_out, 0, wp.int64(volume))
            for part in range(PARTS):
                pool_out.content[PARTS * i + part] = 0
            volume = 0
        pool_out.level[i] = DRY
        if volume > 0:
            wet += 1
            pool_out.level[i] = pool.ground[i] + depth_of(pool, volume)
    if wet > 0:
        wp.atomic_add(pool_out.wet, 0, wet)


@wp.kernel
def find_near(
    first: int,
    # params
    pool: PoolView,
    # out
    near_out: wp.array(dtype=wp.int32),
):
    begin = (first + wp.tid()) * pool.chunk
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        column = i % pool.columns
        row = i // pool.columns
        near = int(0)
        if pool.wet[0] > 0:
            for b in range(wp.max(row - 1, 0), wp.min(row + 2, pool.rows)):
                for a in range(wp.max(column - 1, 0), wp.min(column + 2, pool.columns)):
                    if pool.level[b * pool.columns + a] > DRY:
                        near = 1
        near_out[i] = near
