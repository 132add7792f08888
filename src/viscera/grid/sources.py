"""Places where fluid and substances enter and leave: wounds, nozzles, suction, burning tissue.

A source spreads over the 3 × 3 × 3 cells around its place with the weights of a quadratic B-spline, over those of them
that are fluid. It brings a volume per second, substances in whole units, and, where it is a jet, its velocity. A sink
takes volume, and of every substance what its cells hold in that volume; in whole units, which are counted.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.dye import GIVEN, TAKEN
from viscera.grid.shape import GridShape, Three

wp.set_module_options({"enable_backward": False})

MOST_SOURCES = 16
PLACE, RATE, JET, PULL, SOURCE_FLOATS = 0, 3, 4, 7, 8
"""Of each source: place [m]; volume per second [m³/s], below 0 for a sink; velocity of its jet [m/s], and how firmly it
takes the fluid along, 0 to 1."""


@wp.struct
class Spline:
    """The cells around a place: the lowest of them, and the weights along each axis."""

    i: int
    j: int
    k: int
    x: wp.vec3
    y: wp.vec3
    z: wp.vec3


@wp.func
def spline_weights(off: float):
    """For a place `off` cells beyond the middle of the middle cell, −½ to ½."""
    low = 0.5 - off
    high = 0.5 + off
    return wp.vec3(0.5 * low * low, 0.75 - off * off, 0.5 * high * high)


@wp.func
def spline_at(origin: wp.vec3, spacing: float, x: wp.vec3, flat: int):
    at = (x - origin) / spacing
    spline = Spline()
    i = int(wp.floor(at[0]))
    j = int(wp.floor(at[1]))
    k = int(wp.floor(at[2]))
    spline.i = i
    spline.j = j
    spline.k = k
    spline.x = spline_weights(at[0] - float(i) - 0.5)
    spline.y = spline_weights(at[1] - float(j) - 0.5)
    spline.z = spline_weights(at[2] - float(k) - 0.5)
    if flat != 0:
        spline.k = 0
        spline.z = wp.vec3(0.0, 1.0, 0.0)
    return spline


@wp.func
def spline_entry(shape: GridShape, spline: Spline, n: int):
    """Entry of cell n of 27, or −1 beyond the box."""
    i = spline.i + n % 3
    j = spline.j + (n // 3) % 3
    k = spline.k + n // 9
    if i < 1 or j < 1 or k < 1 or i > shape.nx or j > shape.ny or k > shape.nz:
        return -1
    return k * shape.layer + j * shape.row + i


@wp.func
def spline_weight(spline: Spline, n: int):
    return spline.x[n % 3] * spline.y[(n // 3) % 3] * spline.z[n // 9]


@wp.func
def spline_sum(shape: GridShape, spline: Spline, inverse: wp.array[wp.float32]):
    """Of the weights that lie in fluid."""
    total = float(0.0)
    for n in range(27):
        c = spline_entry(shape, spline, n)
        if c >= 0:
            total += wp.where(inverse[c] > 0.0, spline_weight(spline, n), 0.0)
    return total


@wp.func
def source_place(sources: wp.array[wp.float32], s: int):
    at = s * SOURCE_FLOATS + PLACE
    return wp.vec3(sources[at], sources[at + 1], sources[at + 2])


@wp.kernel
def put_rates(
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    # in
    count: wp.array[wp.int32],
    sources: wp.array[wp.float32],
    inverse: wp.array[wp.float32],
    # out
    rate_out: wp.array[wp.float32],
    velocity_out: Three,
):
    """Sources as volume per volume and second [1/s]; jets take the fluid along. One thread: sources may share cells."""
    for s in range(count[0]):
        spline = spline_at(origin, spacing, source_place(sources, s), wp.where(shape.nz == 1, 1, 0))
        total = spline_sum(shape, spline, inverse)
        if total > 0.0:
            per_cell = sources[s * SOURCE_FLOATS + RATE] / (total * spacing * spacing * spacing)
            pull = sources[s * SOURCE_FLOATS + PULL]
            jet = s * SOURCE_FLOATS + JET
            for n in range(27):
                c = spline_entry(shape, spline, n)
                if c >= 0 and inverse[c] > 0.0:
                    weight = spline_weight(spline, n)
                    rate_out[c] = rate_out[c] + per_cell * weight
                    # The middle cell has a weight of 0.42 at most.
                    firm = pull * wp.min(2.0 * weight, 1.0)
                    velocity_out.x[c] = velocity_out.x[c] + firm * (sources[jet] - velocity_out.x[c])
                    velocity_out.y[c] = velocity_out.y[c] + firm * (sources[jet + 1] - velocity_out.y[c])
                    velocity_out.z[c] = velocity_out.z[c] + firm * (sources[jet + 2] - velocity_out.z[c])


@wp.kernel
def put_units(
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    dt: float,
    substance: int,
    substances: int,
    # in
    count: wp.array[wp.int32],
    sources: wp.array[wp.float32],
    units: wp.array[wp.int64],
    inverse: wp.array[wp.float32],
    # out
    amount_out: wp.array[wp.int32],
    counters_out: wp.array[wp.int64],
):
    """Whole units: what is left of cutting goes to the heaviest cell. Sinks take theirs."""
    for s in range(count[0]):
        spline = spline_at(origin, spacing, source_place(sources, s), wp.where(shape.nz == 1, 1, 0))
        total = spline_sum(shape, spline, inverse)
        rate = sources[s * SOURCE_FLOATS + RATE]
        given = units[s * substances + substance]
        if total > 0.0 and (given > wp.int64(0) or rate < 0.0):
            left = given
            heaviest = shape.layer
            most = float(0.0)
            taken = wp.int64(0)
            for n in range(27):
                c = spline_entry(shape, spline, n)
                if c >= 0 and inverse[c] > 0.0:
                    weight = spline_weight(spline, n) / total
                    part = wp.int64(wp.float64(given) * wp.float64(weight))
                    amount_out[c] = amount_out[c] + int(part)
                    left -= part
                    if weight > most:
                        most = weight
                        heaviest = c
                    if rate < 0.0:
                        share = wp.min(-rate * dt * weight / (spacing * spacing * spacing), 1.0)
                        out = int(share * float(amount_out[c]))
                        amount_out[c] = amount_out[c] - out
                        taken += wp.int64(out)
            amount_out[heaviest] = amount_out[heaviest] + int(left)
            counters_out[3 * substance + GIVEN] = counters_out[3 * substance + GIVEN] + given
            counters_out[3 * substance + TAKEN] = counters_out[3 * substance + TAKEN] + taken


@wp.kernel
def put_values(
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    substance: int,
    substances: int,
    # in
    count: wp.array[wp.int32],
    sources: wp.array[wp.float32],
    values: wp.array[wp.float32],
    inverse: wp.array[wp.float32],
    # out
    value_out: wp.array[wp.float32],
):
    """Of a substance that is not conservative: so much times m³ of it [value·m³]."""
    for s in range(count[0]):
        given = values[s * substances + substance]
        if given != 0.0:
            spline = spline_at(origin, spacing, source_place(sources, s), wp.where(shape.nz == 1, 1, 0))
            total = spline_sum(shape, spline, inverse)
            if total > 0.0:
                for n in range(27):
                    c = spline_entry(shape, spline, n)
                    if c >= 0 and inverse[c] > 0.0:
                        value_out[c] = value_out[c] + given * spline_weight(spline, n) / (
                            total * spacing * spacing * spacing
                        )
