"""Against spring inversion: the remedies of Etheredge, Kunst and Sanders (2013), §4.2.

A mass that is pushed through its neighbours finds a new equilibrium with springs inside out. The source lists four
remedies; each can be switched on:

- surface stiffness: springs at the surface are stiffer by a factor, 2 in the source (`stiffness_factor` below);
- shape-preserving springs (Choi et al. 2005): each mass hangs on a zero-length spring at its rest position, so that
  a = −ω_s²·u besides (LIVE_SHAPE in kernels.py);
- torsion springs: between two neighbours a and b of a mass j along different axes there is a spring in the angle,

      U = ½ k_t cos²θ,   cos θ = â·b̂,   f_a = −k_t cosθ (b̂ − cosθ â)/|a|,   f_b alike,   f_j = −f_a − f_b,

  which is zero at the right angle of rest and resists shear (`torsion_forces` below, k_t in N·m);
- a finer lattice: `LatticeParams.spacing`.

Differs from the source: it gives no formula for the torsion spring; ours is the angular Hooke law for small deviations
from the right angle, in a form without inverse trigonometry.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.tissue.kernels import LIVE_TORSION, Lattice, load3, store3
from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

_TILE = wp.constant(TILE)

SHORTEST_ARM = wp.constant(0.25)
"""Of a right angle, in spacings."""


def stiffness_factor(
    cells: NDArray[np.bool_], other: NDArray[np.integer], surface_stiffness: float
) -> NDArray[np.float64]:
    """Factor of each mass's spring to `other`: `surface_stiffness` where one of its ends is at the surface."""
    surface = np.asarray(~cells.all(axis=1))
    return np.where(surface | (surface[other] & (other >= 0)), surface_stiffness, 1.0)


@wp.func
def angle_force(along: wp.vec3, beside: wp.vec3, shortest: float):
    """Force on the end of `along` from the right angle it makes with `beside`, over k_t.

    An arm shorter than `shortest` counts as that long: its direction is about to be lost, and its lever must not grow
    without bound."""
    length = wp.max(wp.length(along), shortest)
    a = along / length
    b = beside / wp.max(wp.length(beside), shortest)
    cosine = wp.dot(a, b)
    return (-cosine / length) * (b - cosine * a)


@wp.func
def neighbour(lattice: Lattice, position: wp.array(dtype=wp.float32), tile: int, lane: int, x: int, y: int, z: int):
    """Present place of the neighbour at this step, relative to the mass's rest place [m]."""
    j = lattice.rows[9 * tile + (y + 1) + 3 * (z + 1)] + lane + x
    offset = wp.vec3(float(x), float(y), float(z)) * lattice.spacing
    return offset + load3(position, lattice.slots, j)


@wp.func
def tied(lattice: Lattice, tile: int, lane: int, axis: int, side: int, x: int, y: int, z: int):
    """Whether the mass at this step is tied to the next one along `axis` on `side`: 1 or 0."""
    dx = x
    dy = y
    dz = z
    direction = wp.int32(0)
    if axis == 1:
        direction = 2
    if axis == 2:
        direction = 8
    if side < 0:
        if axis == 0:
            dx = x - 1
        if axis == 1:
            dy = y - 1
        if axis == 2:
            dz = z - 1
    j = lattice.rows[9 * tile + (dy + 1) + 3 * (dz + 1)] + lane + dx
    if float(lattice.stiffness[direction * lattice.slots + j]) > 0.0:
        return 1.0
    return 0.0


@wp.func
def unit(axis: int, side: int):
    step = wp.vec3i(0, 0, 0)
    step[axis] = side
    return step


@wp.kernel
def torsion_forces(
    first: int,
    # params
    lattice: Lattice,
    keep_extra: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    extra_out: wp.array(dtype=wp.float32),
):
    """Forces of all right angles that a mass is part of: 12 as their corner, 24 as one of their ends."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    own = load3(position, lattice.slots, i)
    total = wp.vec3()
    for turn in range(6):
        axis = turn // 2
        side = 2 * (turn % 2) - 1
        if tied(lattice, tile, lane, axis, side, 0, 0, 0) > 0.0:
            s = unit(axis, side)
            along = neighbour(lattice, position, tile, lane, s[0], s[1], s[2]) - own
            for other in range(4):
                across = (axis + 1 + other // 2) % 3
                t = unit(across, 2 * (other % 2) - 1)
                beside_side = 2 * (other % 2) - 1
                # As the corner: a pair is met once from each of its two ends, each gives its own share.
                if tied(lattice, tile, lane, across, beside_side, 0, 0, 0) > 0.0:
                    beside = neighbour(lattice, position, tile, lane, t[0], t[1], t[2]) - own
                    total -= angle_force(along, beside, SHORTEST_ARM * lattice.spacing)
                # As an end: the corner is the neighbour, its other arm goes across from there.
                if tied(lattice, tile, lane, across, beside_side, s[0], s[1], s[2]) > 0.0:
                    corner = along + own
                    arm = neighbour(lattice, position, tile, lane, s[0] + t[0], s[1] + t[1], s[2] + t[2]) - corner
                    total += angle_force(own - corner, arm, SHORTEST_ARM * lattice.spacing)
    force = total * live[LIVE_TORSION]
    if keep_extra != 0:
        force += load3(extra_out, lattice.slots, i)
    store3(extra_out, lattice.slots, i, force)
