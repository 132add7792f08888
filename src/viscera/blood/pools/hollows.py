"""Where fluid can stand: how deep each column can fill before it runs over the lowest rim.

The level F up to which a column fills is the least, over all ways to where the surface ends, of the highest ground on
the way. It is the limit of

    F_i ← max(b_i, min over the four neighbours of F_j),    from F = ∞, and F = −∞ where the surface ends

(the map that a flood from outside leaves: P. Soille and C. Gratin, J. Vis. Commun. Image Represent. 5 (1994) 181), and
F − b is the depth of the hollow. A map takes as many sweeps as the longest way has columns; some of them are done in
each step, and the map of before is used until the new one is whole. While the ground stands still there is nothing to
do.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.columns import NO_GROUND, PoolView
from viscera.blood.pools.flow import FlowNumbers

wp.set_module_options({"enable_backward": False})

FULL = wp.constant(1.0e3)
"""Where no way out has been found yet [m]."""

IDLE = wp.constant(-1)

PENDING, DONE = 0, 1
"""Entries of `progress`: whether the ground has moved since the map was begun; sweeps that are done, or `IDLE`."""


@wp.func
def _ground(numbers: FlowNumbers, pool: PoolView, i: int) -> float:
    """Height against gravity, also where that is tilted [m]."""
    result = NO_GROUND
    if pool.ground[i] > NO_GROUND:
        aside = numbers.gravity[0] * float(i % pool.columns) + numbers.gravity[1] * float(i // pool.columns)
        result = pool.ground[i] + aside * pool.side / wp.min(numbers.gravity[2], -1.0e-6)
    return result


@wp.kernel
def begin_map(
    # in
    moved: wp.array(dtype=wp.int32),
    # out
    progress_out: wp.array(dtype=wp.int32),
):
    """One thread."""
    if moved[0] != 0:
        progress_out[PENDING] = 1
    if progress_out[PENDING] != 0 and progress_out[DONE] == IDLE:
        progress_out[PENDING] = 0
        progress_out[DONE] = 0


@wp.kernel
def fill_up(
    first: int,
    # params
    pool: PoolView,
    # in
    progress: wp.array(dtype=wp.int32),
    # out
    fill_out: wp.array(dtype=wp.float32),
):
    """All hollows are full to the brim of the world, as far as anybody knows."""
    begin = (first + wp.tid()) * pool.chunk
    if progress[DONE] == 0:
        for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
            fill_out[i] = wp.where(pool.ground[i] > NO_GROUND, FULL, NO_GROUND)


@wp.kernel
def sweep(
    first: int,
    # params
    all_numbers: wp.array(dtype=FlowNumbers),
    pool: PoolView,
    # in
    progress: wp.array(dtype=wp.int32),
    fill: wp.array(dtype=wp.float32),
    # out
    fill_out: wp.array(dtype=wp.float32),
):
    begin = (first + wp.tid()) * pool.chunk
    if progress[DONE] == IDLE:
        return
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        here = fill[i]
        if here > NO_GROUND:
            # Columns at the grid's rim have none beside them; the grid is wider than the surface.
            column = i % pool.columns
            least = float(NO_GROUND)
            row = i // pool.columns
            if column > 0 and column + 1 < pool.columns and row > 0 and row + 1 < pool.rows:
                least = wp.min(fill[i - 1], fill[i + 1])
                least = wp.min(least, wp.min(fill[i - pool.columns], fill[i + pool.columns]))
            here = wp.max(_ground(all_numbers[0], pool, i), least)
        fill_out[i] = here


@wp.kernel
def publish(
    first: int,
    # params
    all_numbers: wp.array(dtype=FlowNumbers),
    pool: PoolView,
    sweeps: int,
    # in
    progress: wp.array(dtype=wp.int32),
    fill: wp.array(dtype=wp.float32),
    # out
    hollow_out: wp.array(dtype=wp.float32),
):
    """The new map, once it is whole."""
    begin = (first + wp.tid()) * pool.chunk
    if progress[DONE] >= sweeps:
        for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
            hollow_out[i] = 0.0
            if pool.ground[i] > NO_GROUND:
                hollow_out[i] = wp.max(fill[i] - _ground(all_numbers[0], pool, i), 0.0)


@wp.kernel
def count_sweeps(
    # params
    each: int,
    # out
    progress_out: wp.array(dtype=wp.int32),
):
    if progress_out[DONE] != IDLE:
        progress_out[DONE] = progress_out[DONE] + each


@wp.kernel
def end_map(
    # params
    sweeps: int,
    # out
    progress_out: wp.array(dtype=wp.int32),
):
    if progress_out[DONE] >= sweeps:
        progress_out[DONE] = IDLE
