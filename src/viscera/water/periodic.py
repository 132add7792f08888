"""Periodic boxes, and reading particles: what every loop over neighbours shares.

A loop visits the images of its own particle instead of copying others: the particle at x, moved by whole periods, asks
for neighbours as any point may. Only images within R of the box are visited. Without periods there is one image.

    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                for t in range(begin, end):
                    other = read4(place, t)
                    offset = there - position_of(other)
"""

from __future__ import annotations

import warp as wp

from viscera.native import on_cpu, on_cuda
from viscera.neighbors.cells import GridView
from viscera.water.state import Images

wp.set_module_options({"enable_backward": False})

ROUNDING = wp.constant(1.001)
"""Squared distances up to this many squared radii count as near."""

# One load of 16 bytes on cuda, where Warp would make four.
_READ4 = on_cpu("return values.data[index];") + on_cuda("""
const float4 v = __ldg(reinterpret_cast<const float4*>(values.data) + index);
return wp::vec_t<4, wp::float32>(v.x, v.y, v.z, v.w);
""")


@wp.func_native(_READ4)
def read4(values: wp.array(dtype=wp.vec4), index: int) -> wp.vec4: ...


@wp.func
def front(v: wp.vec4) -> wp.vec3:
    """The first three numbers."""
    return wp.vec3(v[0], v[1], v[2])


@wp.func
def image_count(images: Images) -> int:
    return (1 - 2 * images.first_x) * (1 - 2 * images.first_y) * (1 - 2 * images.first_z)


@wp.func
def image(images: Images, point: wp.vec3, k: int) -> wp.vec3:
    """Image k of a point."""
    nx = 1 - 2 * images.first_x
    ny = 1 - 2 * images.first_y
    whole = wp.vec3(
        float(k % nx + images.first_x), float((k // nx) % ny + images.first_y), float(k // (nx * ny) + images.first_z)
    )
    return point + wp.cw_mul(whole, images.length)


@wp.func
def reaches(images: Images, point: wp.vec3, radius: float) -> bool:
    """Whether a point is near enough to the box to have neighbours in it; always true without periods."""
    near = bool(True)
    for axis in range(3):
        length = images.length[axis]
        from_lower = point[axis] - images.lower[axis]
        if length > 0.0 and (from_lower < -radius or from_lower > length + radius):
            near = False
    return near


@wp.func
def near_row(grid: GridView, point: wp.vec3, cell: wp.vec3i, row: int, radius2: float) -> bool:
    """Whether a row of cells may hold neighbours; it spares a tenth of the candidates in 3D.

    Only rows at the corners can lie beyond the radius, and only from a point in its own cell is their distance known.
    Cells are off by rounding, up to 2⁻²² of the cells along an axis (see `grid`); `ROUNDING` covers a thousand of them.
    Beyond that, what is missed lies at the very end of the radius, where kernels are 0 to the third order."""
    across = row % 3 - 1
    up = row // 3 - grid.layer
    near = bool(True)
    # Rows of a hashed grid are single cells, in another order: all are looked at.
    if across != 0 and up != 0 and grid.buckets == 0:
        fy = (point[1] - grid.lower[1]) * grid.cells_per_length - float(cell[1])
        fz = (point[2] - grid.lower[2]) * grid.cells_per_length - float(cell[2])
        if fy >= 0.0 and fy <= 1.0 and fz >= 0.0 and fz <= 1.0:
            ay = wp.where(across < 0, fy, 1.0 - fy)
            az = wp.where(up < 0, fz, 1.0 - fz)
            per2 = grid.cells_per_length * grid.cells_per_length
            near = ay * ay + az * az <= ROUNDING * radius2 * per2
    return near


@wp.func
def wrapped(images: Images, point: wp.vec3) -> wp.vec3:
    """The point's image inside the box."""
    inside = point
    for axis in range(3):
        length = images.length[axis]
        if length > 0.0:
            inside[axis] = point[axis] - length * wp.floor((point[axis] - images.lower[axis]) / length)
    return inside
