"""One substep of the lattice: springs, gravity and Verlet in one gather kernel. Tools come after it (touching.py).

For mass i at rest position X_i, with displacement u_i, velocity v_i and the viscous time τ, let p_i = u_i + τ·v_i. Then

    F_ij = k_ij (|d| − L) d/|d|,   d = X_j − X_i + p_j − p_i,   L = |X_j − X_i|             (Etheredge eq. 2, 3)
    v⁺ = (v + Δt (Σ F_ij / m + g)) / (1 + α Δt),   u⁺ = u + Δt v⁺                           (Verlet, Etheredge eq. 5, 6)

Taking the springs' length at p rather than u adds τ·k_ij times the rate of stretch: a dashpot beside every spring (a
Kelvin–Voigt solid of viscosity E·τ) for no further memory traffic. Only p and v are stored; u = p − τ·v. The drag α
stands for the surroundings that a lattice does not model. |d| − L is computed as (2 R·e + e·e)/(|d| + L) with R = X_j
− X_i, e = p_j − p_i, which keeps small strains in float32.

Differs from the source: the factor ½ before a·Δt² is dropped (it makes periods √2 too long); displacements from rest
instead of 2x − x_prev in world coordinates; springs are damped; contact changes velocity, so that it adds no energy.

`lattice_step` is the plain kernel, the readable form. native.py does the same in C, 16 masses at once on cpu; the
registry of twins holds the two together (twins.py).
"""

from __future__ import annotations

import warp as wp

from viscera.native import on_both
from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

LIVE_FLOATS = 12
LIVE_GRAVITY = wp.constant(0)
"""[m/s²], three floats."""
LIVE_STIFFNESS = wp.constant(3)
"""What a table entry of 1 stands for [N/m]."""
LIVE_VISCOUS_TIME = wp.constant(4)
"""τ [s]."""
LIVE_KEEP = wp.constant(5)
"""Share of its velocity that a mass keeps per substep, 1/(1 + α·Δt), for a drag α [1/s] against its surroundings."""
LIVE_BULK = wp.constant(6)
"""Modulus of the volume-preserving force that a table entry of 1 stands for [Pa]; see volume.py."""
LIVE_SHAPE = wp.constant(7)
"""Shape-preserving springs: ω² of a mass on its own one [1/s²]; see remedies.py."""
LIVE_REST_FORCE = wp.constant(8)
LIVE_REST_SPEED = wp.constant(9)
"""Below both, [N] and [m/s], a mass is at rest; see native.py."""

LIVE_TORSION = wp.constant(10)
"""k_t of torsion springs [N·m]; see remedies.py."""

EXTRA, CREEP, SKIP_REST = wp.constant(1), wp.constant(2), wp.constant(4)
"""Bits of `Lattice.features`."""

FORCE_PARTS = 6
"""Force and torque on a tool, as integers, so that their sum is exact in any order."""
FORCE_UNITS = wp.constant(float(2**30))
"""Integer steps per newton."""
TORQUE_UNITS = wp.constant(float(2**36))
"""Integer steps per newton metre."""

FASTEST = wp.constant(1.0e4)
"""No tissue moves this fast [m/s]: beyond it, or not finite, the state is broken."""

SHORTEST2 = wp.constant(0.0025)
"""A spring below 5 % of its rest length (this squared) pushes less and less: its direction is about to be lost."""

_TILE = wp.constant(TILE)


@wp.struct
class Lattice:
    """What stays while a lattice runs."""

    slots: int
    spacing: float
    """[m]"""
    dt: float
    """Of a substep [s]"""
    substeps: int
    tile_slot: wp.array(dtype=wp.int32)
    rows: wp.array(dtype=wp.int32)
    tile_origin: wp.array(dtype=wp.vec3)
    """Rest position of each tile's first place [m]."""
    stiffness: wp.array(dtype=wp.float16)
    """Per direction and place, relative to LIVE_STIFFNESS; 0 where there is no spring."""
    inverse_mass: wp.array(dtype=wp.float32)
    """[1/kg]; 0 for anchors and empty places."""
    keep: wp.array(dtype=wp.float32)
    """Share of its velocity that each mass keeps per substep for its material's own drag."""
    features: int
    """Bits EXTRA, CREEP, SKIP_REST; arrays below have one element where their feature is off."""
    extra: wp.array(dtype=wp.float32)
    """Forces that other kernels found before this substep [N], three components."""
    creep: wp.array(dtype=wp.float32)
    """How much longer each spring's rest length has become, over itself; per direction and place."""
    awake: wp.array(dtype=wp.int32)
    """Substep for which each tile was last called awake, for even and for odd substeps."""
    clock: wp.array(dtype=wp.int32)
    """Ticks so far."""


# Warp's own atomics on cpu are plain additions.
@wp.func_native(on_both("ADD_INTEGER(target.data + index, value);"))
def add_integer(target: wp.array(dtype=wp.int64), index: int, value: wp.int64): ...


@wp.func
def load3(field: wp.array(dtype=wp.float32), slots: int, i: int):
    return wp.vec3(field[i], field[slots + i], field[2 * slots + i])


@wp.func
def store3(field: wp.array(dtype=wp.float32), slots: int, i: int, value: wp.vec3):
    field[i] = value[0]
    field[slots + i] = value[1]
    field[2 * slots + i] = value[2]


@wp.func
def spring(offset: wp.vec3, stretch: wp.vec3, stiffness: float, creep: float):
    """Force of one spring with rest vector `offset` whose ends moved apart by `stretch`.

    `creep` is how much its rest length has grown, over itself."""
    rest2 = wp.dot(offset, offset)
    rest = wp.sqrt(rest2) * (1.0 + creep)
    gain = 2.0 * wp.dot(offset, stretch) + wp.dot(stretch, stretch)
    length = wp.sqrt(wp.max(rest2 + gain, SHORTEST2 * rest2))
    gain = gain - rest2 * creep * (2.0 + creep)
    return (stiffness * gain / (length * (length + rest))) * (offset + stretch)


@wp.func
def spring_sum(lattice: Lattice, position: wp.array(dtype=wp.float32), tile: int, lane: int, i: int):
    """Σ F_ij over the 26 springs of mass i, in units of the reference stiffness."""
    slots = lattice.slots
    own = load3(position, slots, i)
    total = wp.vec3()
    for d in range(13):
        # Of the 27 places around a mass, 14 … 26 look up in memory; the spring there is stored at the lower mass.
        r = (d + 14) // 3
        step = (d + 14) % 3 - 1
        offset = wp.vec3(float(step), float(r % 3 - 1), float(r // 3 - 1)) * lattice.spacing
        above = lattice.rows[9 * tile + r] + lane + step
        below = lattice.rows[9 * tile + 8 - r] + lane - step
        creep_above = float(0.0)
        creep_below = float(0.0)
        if (lattice.features & CREEP) != 0:
            creep_above = lattice.creep[d * slots + i]
            creep_below = lattice.creep[d * slots + below]
        k_above = float(lattice.stiffness[d * slots + i])
        k_below = float(lattice.stiffness[d * slots + below])
        total += spring(offset, load3(position, slots, above) - own, k_above, creep_above)
        total += spring(-offset, load3(position, slots, below) - own, k_below, creep_below)
    return total


@wp.kernel
def lattice_step(
    first: int,
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    broken_out: wp.array(dtype=wp.int32),
):
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    weight = lattice.inverse_mass[i]
    if weight == 0.0:
        return
    slots = lattice.slots
    force = spring_sum(lattice, position, tile, lane, i) * live[LIVE_STIFFNESS]
    if (lattice.features & EXTRA) != 0:
        force += load3(lattice.extra, slots, i)
    gravity = wp.vec3(live[LIVE_GRAVITY], live[LIVE_GRAVITY + 1], live[LIVE_GRAVITY + 2])
    tau = live[LIVE_VISCOUS_TIME]
    keep = live[LIVE_KEEP] * lattice.keep[i]
    own = load3(position, slots, i)
    before = load3(velocity_out, slots, i)
    v = keep * (before + lattice.dt * (force * weight - live[LIVE_SHAPE] * own + gravity))
    u = own - tau * before + lattice.dt * v
    if not (wp.length_sq(v) < FASTEST * FASTEST):
        broken_out[0] = 1
    store3(velocity_out, slots, i, v)
    store3(position_out, slots, i, u + tau * v)


@wp.kernel
def retune(
    first: int,
    # params
    slots: int,
    change: wp.array(dtype=wp.float32),
    # in
    velocity: wp.array(dtype=wp.float32),
    # out
    position_out: wp.array(dtype=wp.float32),
):
    """The viscous time changed by change[0]: keep u, move p = u + τ·v."""
    i = first + wp.tid()
    position_out[i] = position_out[i] + change[0] * velocity[i]
