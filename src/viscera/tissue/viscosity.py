"""Viscous times that differ from place to place: each spring and each cell is damped as its materials say.

A lattice keeps p = u + τ·v with the τ of its main material (kernels.py). A spring between masses of viscous times τ_i
and τ_j has the mean of both, and is taken at

    d = R + (p_j − p_i) + (τ_ij − τ)(v_j − v_i),    τ_ij = ½(τ_i + τ_j),

and a cell at the places p + (τ_c − τ)·v of its corners, with τ_c the mean of its eight masses. Only differences of
velocity enter, so a body that flies or falls as a whole feels nothing; both ends of a spring see the same force, so
momentum is kept.

The step itself computes every spring at p. What is added here, before it, is the difference between the two, and only
at masses that have such a spring: a lattice of one viscous time has none, and pays nothing. Torsion springs and
shape-preserving springs are no material and keep the main τ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device
from viscera.tissue.kernels import CREEP, LIVE_BULK, LIVE_STIFFNESS, LIVE_VISCOUS_TIME, Lattice, load3, spring, store3
from viscera.tissue.layout import TILE, Layout
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.tissue.volume import store_push

wp.set_module_options({"enable_backward": False})

_TILE = wp.constant(TILE)


@dataclass(frozen=True, eq=False)
class Viscosity:
    """Where a lattice's viscous time is not that of its main material. Elements are tile · 16 + lane."""

    relative: Any
    """τ of each place over that of the main material, float32."""
    springs: Any
    """Elements of the masses with a spring of another τ, int32."""
    cells: Any
    """Elements of the low corners of the cells with another τ, int32; empty without a volume force."""


def make_viscosity(device: Device, params: LatticeParams, layout: Layout, index: NodeIndex) -> Viscosity | None:
    """None where τ is the same everywhere."""
    relative = params.viscous_of().astype(np.float32)
    if (relative == 1.0).all():
        return None
    other = np.zeros(len(relative), dtype=np.bool_)
    for direction in (np.array(sign, dtype=np.int32) * side for sign in DIRECTIONS for side in (1, -1)):
        found = index.find(params.nodes + direction)
        other |= (found >= 0) & (relative + relative[found] != 2.0)
    cell = np.zeros(len(relative), dtype=np.bool_)
    if params.has_volume:
        corners = (index.find(params.nodes + np.array(corner, dtype=np.int32)) for corner in np.ndindex(2, 2, 2))
        cell = index.look_up(index.whole_cells(), params.nodes)
        cell &= sum(relative[found].astype(np.float64) for found in corners) != 8.0
    places = np.ones(layout.slots, dtype=np.float32)
    places[layout.slot_of_node] = relative
    elements = _elements(layout)[layout.slot_of_node]
    return Viscosity(
        relative=wp.array(places, dtype=wp.float32, device=device.warp),
        springs=wp.array(np.sort(elements[other]), dtype=wp.int32, device=device.warp),
        cells=wp.array(np.sort(elements[cell]), dtype=wp.int32, device=device.warp),
    )


def _elements(layout: Layout) -> NDArray[np.int32]:
    """tile · 16 + lane of each place; -1 for places outside all tiles."""
    found = np.full(layout.slots, -1, dtype=np.int32)
    places = layout.tile_slot[:, None].astype(np.int64) + np.arange(TILE)
    found[places] = np.arange(places.size, dtype=np.int32).reshape(places.shape)
    return found


@wp.kernel
def viscous_cells(
    first: int,
    # params
    lattice: Lattice,
    bulk: wp.array(dtype=wp.float16),
    relative: wp.array(dtype=wp.float32),
    cells: wp.array(dtype=wp.int32),
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    push_out: wp.array(dtype=wp.float32),
):
    """`volume.cell_pressure` once more, for the cells whose viscous time is another."""
    index = cells[first + wp.tid()]
    tile = index // _TILE
    lane = index - tile * _TILE
    slots = lattice.slots
    mean = float(0.0)
    for corner in range(8):
        mean += 0.125 * relative[lattice.rows[9 * tile + 4 + corner // 2 % 2 + 3 * (corner // 4)] + lane + corner % 2]
    more = (mean - 1.0) * live[LIVE_VISCOUS_TIME]
    h = lattice.spacing
    a = wp.vec3()
    b = wp.vec3()
    c = wp.vec3()
    for corner in range(8):
        x = corner % 2
        y = corner // 2 % 2
        z = corner // 4
        j = lattice.rows[9 * tile + 4 + y + 3 * z] + lane + x
        p = load3(position, slots, j) + more * load3(velocity, slots, j)
        a += float(2 * x - 1) * 0.25 * p
        b += float(2 * y - 1) * 0.25 * p
        c += float(2 * z - 1) * 0.25 * p
    a += wp.vec3(h, 0.0, 0.0)
    b += wp.vec3(0.0, h, 0.0)
    c += wp.vec3(0.0, 0.0, h)
    i = lattice.tile_slot[tile] + lane
    store_push(a, b, c, h, live[LIVE_BULK] * float(bulk[i]), slots, i, push_out)


@wp.func
def _difference(
    offset: wp.vec3, stretch: wp.vec3, more: float, approach: wp.vec3, stiffness: float, creep: float
):  # fmt: skip
    """Force of a spring with its own viscous time, less that with the main one."""
    own = spring(offset, stretch + more * approach, stiffness, creep)
    return own - spring(offset, stretch, stiffness, creep)


@wp.kernel
def viscous_springs(
    first: int,
    # params
    lattice: Lattice,
    relative: wp.array(dtype=wp.float32),
    masses: wp.array(dtype=wp.int32),
    keep_extra: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    extra_out: wp.array(dtype=wp.float32),
):
    """What the springs' own viscous times add to the force on these masses."""
    index = masses[first + wp.tid()]
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    slots = lattice.slots
    tau = live[LIVE_VISCOUS_TIME]
    p = load3(position, slots, i)
    v = load3(velocity, slots, i)
    total = wp.vec3()
    for turn in range(26):
        # As in kernels.spring_sum: a spring is stored at the lower of its two masses.
        d = turn // 2
        side = 1 - 2 * (turn % 2)
        r = (d + 14) // 3
        step = (d + 14) % 3 - 1
        j = lattice.rows[9 * tile + 4 + side * (r - 4)] + lane + side * step
        place = d * slots + j
        if side > 0:
            place = d * slots + i
        stiffness = float(lattice.stiffness[place])
        more = (0.5 * (relative[i] + relative[j]) - 1.0) * tau
        if stiffness > 0.0 and more != 0.0:
            offset = float(side) * lattice.spacing * wp.vec3(float(step), float(r % 3 - 1), float(r // 3 - 1))
            creep = float(0.0)
            if (lattice.features & CREEP) != 0:
                creep = lattice.creep[place]
            approach = load3(velocity, slots, j) - v
            total += _difference(offset, load3(position, slots, j) - p, more, approach, stiffness, creep)
    force = total * live[LIVE_STIFFNESS]
    if keep_extra != 0:
        force += load3(extra_out, slots, i)
    store3(extra_out, slots, i, force)
