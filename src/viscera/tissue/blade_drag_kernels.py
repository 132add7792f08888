"""Blades pull at the tissue that they have not cut yet (cutting.py)."""

from __future__ import annotations

import warp as wp

from viscera.tissue.blade_kernels import (
    EDGE_END,
    EDGE_FLOATS,
    EDGE_START,
    EDGES,
    HUNG,
    SAMPLES,
    Blades,
    across_edge,
    along_edge,
)
from viscera.tissue.kernels import (
    FORCE_PARTS,
    FORCE_UNITS,
    LIVE_KEEP,
    LIVE_VISCOUS_TIME,
    TORQUE_UNITS,
    Lattice,
    load3,
    store3,
)

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

HOLD = wp.constant(0.15)
"""Stiffness with which a sample holds tissue, over what one substep could carry: more would ring, less would let the
cut lag behind its blade."""

_EDGES, _SAMPLES, _FORCE_PARTS = wp.constant(EDGES), wp.constant(SAMPLES), wp.constant(FORCE_PARTS)
_EDGE_FLOATS, _HUNG = wp.constant(EDGE_FLOATS), wp.constant(HUNG)


@wp.func
def edge_on(blades: Blades, edge: int):
    return blades.edges[edge * _EDGE_FLOATS] != wp.float64(0.0) and blades.known[edge] != 0


@wp.func
def add_shares(blades: Blades, edge: int):
    """Each mass learns how much of it hangs on samples that hold."""
    for k in range(_SAMPLES):
        n = edge * _SAMPLES + k
        if blades.bound[n] > 0.0:
            for c in range(_HUNG):
                i = blades.places[_HUNG * n + c]
                blades.share[i] = blades.share[i] + blades.weights[_HUNG * n + c]


@wp.func
def pull_sample(
    lattice: Lattice, blades: Blades, tau: float, place: wp.vec3d, edge: int, n: int,
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32),
):  # fmt: skip
    """Force of a sample at this place [m] on the tissue at the end of the cut [N]."""
    yields = float(0.0)
    moved = wp.vec3()
    for c in range(_HUNG):
        w = blades.weights[_HUNG * n + c]
        if w > 0.0:
            i = blades.places[_HUNG * n + c]
            inverse = lattice.inverse_mass[i]
            yields += w * blades.share[i] * wp.where(inverse > 0.0, inverse, blades.stray)
            moved += w * (load3(position, lattice.slots, i) - tau * load3(velocity, lattice.slots, i))
    blades.stiffness[n] = HOLD / (yields * lattice.dt * lattice.dt)
    front = blades.at[n] * wp.float64(lattice.spacing)
    front += wp.vec3d(wp.float64(moved[0]), wp.float64(moved[1]), wp.float64(moved[2]))
    ahead = wp.vec3(across_edge(blades, edge * _EDGE_FLOATS + EDGE_END, place - front))
    pull = blades.stiffness[n] * ahead
    size = wp.length(pull)
    if size > blades.bound[n]:
        pull = pull * (blades.bound[n] / size)
    return pull


@wp.func
def feel_sample(pull: wp.vec3, arm: wp.vec3, tool: int, force_out: wp.array(dtype=wp.int64)):
    torque = wp.cross(arm, -pull)
    for axis in range(3):
        f = _FORCE_PARTS * tool + axis
        force_out[f] = force_out[f] - wp.int64(wp.rint(pull[axis] * FORCE_UNITS))
        force_out[f + 3] = force_out[f + 3] + wp.int64(wp.rint(torque[axis] * TORQUE_UNITS))


@wp.func
def move_tissue(
    lattice: Lattice, blades: Blades, tau: float, keep: float, n: int, velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    slots = lattice.slots
    for c in range(_HUNG):
        w = blades.weights[_HUNG * n + c]
        i = blades.places[_HUNG * n + c]
        blades.share[i] = 0.0
        change = (w * lattice.inverse_mass[i] * lattice.dt * keep * lattice.keep[i]) * blades.pull[n]
        store3(velocity_out, slots, i, load3(velocity_out, slots, i) + change)
        store3(position_out, slots, i, load3(position_out, slots, i) + tau * change)


@wp.kernel
def drag_edges(
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    tips: wp.array(dtype=wp.float32),
    tips_at: int,
    # out
    blades: Blades,
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):
    """After a substep: edges pull at the tissue that they have not cut yet, and tools feel it. On one thread."""
    tau = live[LIVE_VISCOUS_TIME]
    share = wp.float64(substep + 1) / wp.float64(lattice.substeps)
    for edge in range(_EDGES):
        if edge_on(blades, edge):
            add_shares(blades, edge)
    for edge in range(_EDGES):
        if edge_on(blades, edge):
            tool = int(blades.edges[edge * _EDGE_FLOATS + 2])
            at = tips_at + 6 * tool
            tip = wp.vec3(tips[at + 3], tips[at + 4], tips[at + 5])
            for k in range(_SAMPLES):
                n = edge * _SAMPLES + k
                if blades.bound[n] > 0.0:
                    first = along_edge(blades, edge * _EDGE_FLOATS + EDGE_START, k)
                    place = first + share * (along_edge(blades, edge * _EDGE_FLOATS + EDGE_END, k) - first)
                    pull = pull_sample(lattice, blades, tau, place, edge, n, position_out, velocity_out)
                    blades.pull[n] = pull
                    feel_sample(pull, wp.vec3(place) - tip, tool, force_out)
    for edge in range(_EDGES):
        if edge_on(blades, edge):
            for k in range(_SAMPLES):
                n = edge * _SAMPLES + k
                if blades.bound[n] > 0.0:
                    move_tissue(lattice, blades, tau, live[LIVE_KEEP], n, velocity_out, position_out)
