"""The surface that is drawn follows the lattice: each vertex hangs on up to eight masses.

Its displacement is rounded to multiples of `GRAIN`. Tissue never rests in every last bit; its surface does, and what
hangs on a surface that rests (texel maps, conductances) need not be computed again.
"""

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import load3

wp.set_module_options({"enable_backward": False})

GRAIN = 2.0**-18
"""3.8 µm: a hundredth of a texel's side, far below what can be seen or felt [m]."""
_GRAINS = wp.constant(1.0 / GRAIN)
_GRAIN = wp.constant(GRAIN)


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
    u = wp.vec3()
    for corner in range(8):
        u += weights[vertex, corner] * load3(displacement, slots, places[vertex, corner])
    for c in range(3):
        u[c] = _GRAIN * wp.rint(_GRAINS * u[c])
    vertices_out[vertex] = rest[vertex] + u
