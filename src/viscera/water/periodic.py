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

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportIndexIssue=false, reportCallIssue=false

from __future__ import annotations

import warp as wp

from viscera.water.state import Images

wp.set_module_options({"enable_backward": False})

# One load of 16 bytes on cuda, where Warp would make four.
_READ4 = """
#if defined(__CUDA_ARCH__)
const float4 v = __ldg(reinterpret_cast<const float4*>(values.data) + index);
return wp::vec_t<4, wp::float32>(v.x, v.y, v.z, v.w);
#else
return values.data[index];
#endif
"""


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
def wrapped(images: Images, point: wp.vec3) -> wp.vec3:
    """The point's image inside the box."""
    inside = point
    for axis in range(3):
        length = images.length[axis]
        if length > 0.0:
            inside[axis] = point[axis] - length * wp.floor((point[axis] - images.lower[axis]) / length)
    return inside
