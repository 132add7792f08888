"""The surface that is drawn follows the lattice: each vertex hangs on up to eight masses."""

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import LIVE_VISCOUS_TIME, load3

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
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    vertices_out: wp.array(dtype=wp.vec3),
):
    """x = X + Σ w·u with u = p − τ·v of the masses (see kernels.py)."""
    vertex = first + wp.tid()
    tau = live[LIVE_VISCOUS_TIME]
    x = rest[vertex]
    for corner in range(8):
        i = places[vertex, corner]
        x += weights[vertex, corner] * (load3(position, slots, i) - tau * load3(velocity, slots, i))
    vertices_out[vertex] = x
