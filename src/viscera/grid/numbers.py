"""The few numbers of a solve, made of partial sums: one thread each. `pressure.py` says what they mean."""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})

ALPHA, BETA, LENGTH, MEAN, BEFORE, AFTER, TOTAL, SCALE, NUMBERS = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Places of a solve's numbers: step, share of the last direction, its length², the mean that is taken away, and the L2
norms² of the divergence before and after; the sum of a substance, and what it is scaled by to keep it."""


@wp.kernel
def add_parts(
    first: int,
    # params
    count: int,
    parts: int,
    # in
    part: wp.array[wp.vec3d],
    # out
    sum_out: wp.array[wp.vec3d],
):
    """Partial sums of partial sums, every `parts`th, in order."""
    t = first + wp.tid()
    total = wp.vec3d()
    i = t
    while i < count:
        total += part[i]
        i += parts
    sum_out[t] = total


@wp.kernel
def begin_solve(
    # params
    parts: int,
    closed: int,
    # in
    part: wp.array[wp.vec3d],
    # out
    numbers_out: wp.array[wp.float64],
):
    total = wp.vec3d()
    for i in range(parts):
        total += part[i]
    mean = wp.float64(0.0)
    if closed != 0 and total[2] > wp.float64(0.0):
        mean = total[0] / total[2]
    numbers_out[MEAN] = mean
    numbers_out[BEFORE] = total[1] - mean * total[0]
    numbers_out[LENGTH] = wp.float64(0.0)


@wp.kernel
def find_direction(
    # params
    parts: int,
    # in
    part: wp.array[wp.vec3d],
    # out
    numbers_out: wp.array[wp.float64],
):
    total = wp.vec3d()
    for i in range(parts):
        total += part[i]
    beta = wp.float64(0.0)
    if numbers_out[LENGTH] > wp.float64(0.0):
        beta = -total[2] / numbers_out[LENGTH]
    length = total[1] + beta * total[2]
    alpha = wp.float64(0.0)
    # What is left of rounding has no direction.
    if length > wp.float64(1.0e-6) * total[1] and length > wp.float64(1.0e-30):
        alpha = total[0] / length
    numbers_out[ALPHA] = alpha
    numbers_out[BETA] = beta
    numbers_out[LENGTH] = length


@wp.kernel
def end_solve(
    # params
    parts: int,
    # in
    part: wp.array[wp.vec3d],
    # out
    numbers_out: wp.array[wp.float64],
):
    total = wp.float64(0.0)
    for i in range(parts):
        total += part[i][0]
    numbers_out[AFTER] = total


@wp.kernel
def end_sweeps(
    # params
    parts: int,
    # in
    part: wp.array[wp.vec3d],
    # out
    numbers_out: wp.array[wp.float64],
):
    total = wp.float64(0.0)
    for i in range(parts):
        total += part[i][1]
    numbers_out[AFTER] = total


@wp.kernel
def take_total(
    # params
    parts: int,
    # in
    part: wp.array[wp.vec3d],
    # out
    numbers_out: wp.array[wp.float64],
):
    """The sum of a substance; the scale that brings it back to the sum before."""
    total = wp.float64(0.0)
    for i in range(parts):
        total += part[i][0]
    scale = wp.float64(1.0)
    if total != wp.float64(0.0):
        scale = numbers_out[TOTAL] / total
    numbers_out[SCALE] = scale
    numbers_out[TOTAL] = total
