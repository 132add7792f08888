"""Creep: under a lasting load the springs' rest lengths follow their lengths, slowly and in part.

With the strain ε of a spring and c the growth of its rest length (over itself),

    dc/dt = (φ ε − c)/T,        force = k·L·(ε − c):

a standard linear solid in each spring. A load that is put on and left gives

    ε(t) = (σ/E)·(1 + φ/(1−φ)·(1 − e^(−(1−φ)t/T))):

it starts at σ/E and ends at σ/(E(1−φ)). c is brought up to date once per frame, since T is seconds.
"""

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import Lattice, load3
from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

_TILE = wp.constant(TILE)


@wp.kernel
def creep_on(
    first: int,
    # params
    lattice: Lattice,
    fraction: float,
    approach: float,
    # in
    position: wp.array(dtype=wp.float32),
    # out
    creep_out: wp.array(dtype=wp.float32),
):
    """`fraction` is φ, `approach` is 1 − e^(−Δt/T)."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    slots = lattice.slots
    own = load3(position, slots, i)
    for d in range(13):
        place = d * slots + i
        if float(lattice.stiffness[place]) > 0.0:
            r = (d + 14) // 3
            step = (d + 14) % 3 - 1
            offset = wp.vec3(float(step), float(r % 3 - 1), float(r // 3 - 1)) * lattice.spacing
            above = lattice.rows[9 * tile + r] + lane + step
            length = wp.length(offset + load3(position, slots, above) - own)
            strain = length / wp.length(offset) - 1.0
            creep_out[place] = creep_out[place] + approach * (fraction * strain - creep_out[place])
