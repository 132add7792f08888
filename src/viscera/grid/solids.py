"""Where fluid can be: organs by their distance at the corners of cells, instruments as round bars that move.

Of every face the open share a is kept, and the velocity s of what covers the rest; fluid through a face is

    a u + (1 − a) s                                                                                (Batty et al. 2007)

so a wall that cuts through cells is smooth, and one that moves pushes. The open share of a face follows from the
distances φ at its corners, Σ max(φ, 0) / Σ |φ|: exact for a straight wall across an edge. A cell whose faces are
together open by less than `LEAST_OPEN` counts as solid: such slivers between a tool and an organ have no flow, only
trouble.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.shape import GridShape, Three

wp.set_module_options({"enable_backward": False})

BAR_FLOATS = 16
"""Of each bar: both ends of its axis, its radius, the velocities of both ends; the rest is padding."""
MOST_BARS = 24
FAR = 1.0e3
"""Distance of a wall where there is none [m]."""

_BAR = wp.constant(BAR_FLOATS)
_LEAST_FACE = wp.constant(0.05)
"""A face that is open by less counts as closed."""
LEAST_OPEN = wp.constant(0.3)


@wp.func
def bar_end(bars: wp.array[wp.float32], at: int):
    return wp.vec3(bars[at], bars[at + 1], bars[at + 2])


@wp.func
def along_bar(bars: wp.array[wp.float32], at: int, x: wp.vec3):
    """Share of the way along its axis that is nearest to x."""
    a = bar_end(bars, at)
    axis = bar_end(bars, at + 3) - a
    return wp.clamp(wp.dot(x - a, axis) / wp.max(wp.dot(axis, axis), 1.0e-12), 0.0, 1.0)


@wp.func
def bar_distance(bars: wp.array[wp.float32], at: int, x: wp.vec3):
    a = bar_end(bars, at)
    near = a + along_bar(bars, at, x) * (bar_end(bars, at + 3) - a)
    return wp.length(x - near) - bars[at + 6]


@wp.func
def bar_velocity(bars: wp.array[wp.float32], at: int, x: wp.vec3):
    share = along_bar(bars, at, x)
    return (1.0 - share) * bar_end(bars, at + 7) + share * bar_end(bars, at + 10)


@wp.func
def corner_of(shape: GridShape, origin: wp.vec3, spacing: float, c: int):
    """The lowest corner of the cell at entry c [m]."""
    k = c // shape.layer
    j = (c - k * shape.layer) // shape.row
    i = c - k * shape.layer - j * shape.row
    return origin + spacing * wp.vec3(float(i - 1), float(j - 1), float(k - 1))


@wp.kernel
def fill_corners(
    first: int,
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    # in
    still: wp.array[wp.float32],
    bar_count: wp.array[wp.int32],
    bars: wp.array[wp.float32],
    # out
    distance_out: wp.array[wp.float32],
):
    """Distance of the nearest solid from each corner [m]."""
    c = shape.layer + first + wp.tid()
    x = corner_of(shape, origin, spacing, c)
    least = still[c]
    for b in range(bar_count[0]):
        least = wp.min(least, bar_distance(bars, b * _BAR, x))
    distance_out[c] = least


@wp.func
def open_share(a: float, b: float, c: float, d: float):
    inside = wp.max(a, 0.0) + wp.max(b, 0.0) + wp.max(c, 0.0) + wp.max(d, 0.0)
    all_of_it = wp.abs(a) + wp.abs(b) + wp.abs(c) + wp.abs(d)
    share = wp.where(all_of_it > 0.0, inside / wp.max(all_of_it, 1.0e-20), 0.0)
    return wp.where(share < _LEAST_FACE, 0.0, share)


@wp.func
def solid_velocity(bar_count: wp.array[wp.int32], bars: wp.array[wp.float32], x: wp.vec3, reach: float, organ: wp.vec3):
    """Of the nearest bar within reach, else the organ's."""
    velocity = organ
    least = reach
    for b in range(bar_count[0]):
        away = bar_distance(bars, b * _BAR, x)
        if away < least:
            least = away
            velocity = bar_velocity(bars, b * _BAR, x)
    return velocity


@wp.kernel
def fill_faces(
    first: int,
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    inflow: float,
    # in
    distance: wp.array[wp.float32],
    drift: Three,
    bar_count: wp.array[wp.int32],
    bars: wp.array[wp.float32],
    # out
    faces_out: Three,
    solid_out: Three,
):
    """Open shares, as if no cell were solid, and velocities of what covers the rest [m/s]: of a bar that is near, else
    of the organ (`drift`). The wall at the low end of x gives `inflow` [m/s]."""
    c = shape.layer + first + wp.tid()
    here = distance[c]
    at_x = distance[c + 1]
    at_y = distance[c + shape.row]
    at_z = distance[c + shape.layer]
    at_xy = distance[c + 1 + shape.row]
    at_xz = distance[c + 1 + shape.layer]
    at_yz = distance[c + shape.row + shape.layer]
    x_share = open_share(here, at_y, at_z, at_yz)
    y_share = open_share(here, at_x, at_z, at_xz)
    z_share = open_share(here, at_x, at_y, at_xy)
    velocity = wp.vec3(drift.x[c], drift.y[c], drift.z[c])
    if wp.min(x_share, wp.min(y_share, z_share)) < 1.0 and bar_count[0] > 0:
        middle = corner_of(shape, origin, spacing, c) + wp.vec3(0.5 * spacing, 0.5 * spacing, 0.5 * spacing)
        velocity = solid_velocity(bar_count, bars, middle, spacing, velocity)
    if inflow != 0.0 and c % shape.row == 1:
        velocity[0] = inflow
    faces_out.x[c] = x_share
    faces_out.y[c] = y_share
    faces_out.z[c] = z_share
    solid_out.x[c] = velocity[0]
    solid_out.y[c] = velocity[1]
    solid_out.z[c] = velocity[2]


@wp.kernel
def find_cells(
    first: int,
    # params
    shape: GridShape,
    # in
    box: wp.array[wp.float32],
    faces: Three,
    # out
    fluid_out: wp.array[wp.float32],
):
    """1 where there is fluid, 0 where not. `box` is 1 in the box and beyond its open sides."""
    c = shape.layer + first + wp.tid()
    total = faces.x[c] + faces.x[c + 1] + faces.y[c] + faces.y[c + shape.row] + faces.z[c] + faces.z[c + shape.layer]
    fluid_out[c] = wp.where(total > LEAST_OPEN, box[c], 0.0)


@wp.kernel
def close_faces(
    first: int,
    # params
    shape: GridShape,
    # in
    fluid: wp.array[wp.float32],
    # out
    faces_out: Three,
):
    """Faces between fluid and solid, and around the box."""
    c = shape.layer + first + wp.tid()
    here = fluid[c]
    faces_out.x[c] = faces_out.x[c] * (here * fluid[c - 1])
    faces_out.y[c] = faces_out.y[c] * (here * fluid[c - shape.row])
    faces_out.z[c] = faces_out.z[c] * (here * fluid[c - shape.layer])


@wp.kernel
def invert_diagonal(
    first: int,
    # params
    shape: GridShape,
    # in
    faces: Three,
    # out
    inverse_out: wp.array[wp.float32],
):
    """One over all open faces of a cell of the box; 0 where none is, and in the rim."""
    c = shape.layer + first + wp.tid()
    k = c // shape.layer
    j = (c - k * shape.layer) // shape.row
    i = c - k * shape.layer - j * shape.row
    total = faces.x[c] + faces.x[c + 1] + faces.y[c] + faces.y[c + shape.row] + faces.z[c] + faces.z[c + shape.layer]
    inside = i >= 1 and i <= shape.nx and j >= 1 and j <= shape.ny
    inverse_out[c] = wp.where(inside and total > 1.0e-6, 1.0 / wp.max(total, 1.0e-6), 0.0)


@wp.func
def fine_face(coarse: int, cells: int):
    """The fine face that lies in a coarse one, counted from 1; the last coarse cell may be half beyond the box."""
    return wp.where(cells > 1, wp.min(2 * coarse - 1, cells + 1), coarse)


@wp.func
def fine_first(coarse: int, cells: int):
    """The first fine cell of a coarse one."""
    return wp.where(cells > 1, 2 * coarse - 1, coarse)


@wp.func
def fine_many(coarse: int, cells: int):
    """How many fine cells it has along this axis."""
    return wp.where(cells > 1 and 2 * coarse <= cells, 2, 1)


@wp.func
def shortened(coarse: int, fine_cells: int, cells: int, rim: float):
    """What the sum of fine faces counts less, as the way across is longer; on the sides of the box not by as much."""
    half = wp.where(fine_cells > 1, 0.5, 1.0)
    return wp.where(coarse == 1 or coarse == cells + 1, half * rim, half)


@wp.kernel
def coarsen_faces(
    first: int,
    # params
    fine: GridShape,
    shape: GridShape,
    # in
    finer: Three,
    # out
    faces_out: Three,
):
    """Open faces of the next coarser grid: half the sum of the fine ones that lie in each, as a coarse cell is twice
    as long (Shao et al. 2022). Faces of the far side of the last cells, too. Beyond an open side the pressure is 0 half
    a cell of the finest grid further on, whatever the grid: `GridShape.rim`."""
    c = shape.layer + first + wp.tid()
    k = c // shape.layer
    j = (c - k * shape.layer) // shape.row
    i = c - k * shape.layer - j * shape.row
    if i < 1 or j < 1 or i > shape.nx + 1 or j > shape.ny + 1:
        return
    fi = fine_first(i, fine.nx)
    fj = fine_first(j, fine.ny)
    fk = fine_first(k, fine.nz)
    mi = fine_many(i, fine.nx)
    mj = fine_many(j, fine.ny)
    mk = fine_many(k, fine.nz)
    x = float(0.0)
    y = float(0.0)
    z = float(0.0)
    if j <= shape.ny and k <= shape.nz:
        for b in range(mk):
            for a in range(mj):
                x += finer.x[(fk + b) * fine.layer + (fj + a) * fine.row + fine_face(i, fine.nx)]
    if i <= shape.nx and k <= shape.nz:
        for b in range(mk):
            for a in range(mi):
                y += finer.y[(fk + b) * fine.layer + fine_face(j, fine.ny) * fine.row + fi + a]
    if i <= shape.nx and j <= shape.ny:
        for b in range(mj):
            for a in range(mi):
                z += finer.z[fine_face(k, fine.nz) * fine.layer + (fj + b) * fine.row + fi + a]
    faces_out.x[c] = x * shortened(i, fine.nx, shape.nx, shape.rim[0])
    faces_out.y[c] = y * shortened(j, fine.ny, shape.ny, shape.rim[1])
    faces_out.z[c] = z * shortened(k, fine.nz, shape.nz, shape.rim[2])
