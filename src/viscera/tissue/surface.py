"""The surface that is drawn follows the lattice: each vertex hangs on up to eight masses."""

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import load3

wp.set_module_options({"enable_backward": False})


@wp.kernel
def follow_lattice(
    first: int,
    # params
    rest: wp.array(dtype=wp.vec3),
    places: wp.array2d(dtype=wp.int32),
    weights: wp.array2d(dtype=wp.float32),
    slots: int,
    # in
    displacement: wp.array(dtype=wp.float32),
    # out
    vertices_out: wp.array(dtype=wp.vec3),
):
    """x = X + Σ w·u."""
    vertex = first + wp.tid()
    x = rest[vertex]
    for corner in range(8):
        x += weights[vertex, corner] * load3(displacement, slots, places[vertex, corner])
    vertices_out[vertex] = x
