"""Contact with an instrument given as a distance field.

After a substep, a mass whose signed distance d to the instrument is negative goes to the nearest surface point,
x ← x − d·n with n the field's gradient; velocity, friction and reaction are those of `kernels.touch`. An instrument
has up to `PARTS` rigid parts, each with a field and a pose of its own: at the start and at the end of the tick a point
and a unit quaternion. What they feel is one force, and one torque about the tool's tip.
"""

from __future__ import annotations

import warp as wp

from viscera.geometry.distance import FieldGrid, sample_field
from viscera.geometry.parts import pose_position, pose_rotation
from viscera.tissue.kernels import (
    FORCE_PARTS,
    FORCE_UNITS,
    LIVE_KEEP,
    LIVE_VISCOUS_TIME,
    SKIP_REST,
    TORQUE_UNITS,
    Lattice,
    add_integer,
    load3,
    store3,
)
from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

_TILE = wp.constant(TILE)

PARTS = 4
"""Rigid parts that an instrument may have."""
POSE_FLOATS = 24
"""Of each part: active, friction, position and quaternion at the start and at the end of the tick, the tool's tip at
both times. The rest is padding."""


@wp.kernel
def touch_field(
    first: int,
    # params
    lattice: Lattice,
    field: FieldGrid,
    tool: int,
    part: int,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    poses: wp.array(dtype=wp.float32),
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    weight = lattice.inverse_mass[i]
    base = POSE_FLOATS * (PARTS * tool + part)
    if weight * poses[base] == 0.0:
        return
    share = float(substep + 1) / float(lattice.substeps)
    tick = lattice.dt * float(lattice.substeps)
    start = base + 2
    end = base + 9
    from_place = pose_position(poses, start)
    to_place = pose_position(poses, end)
    from_turn = pose_rotation(poses, start)
    to_turn = pose_rotation(poses, end)
    place = from_place + share * (to_place - from_place)
    turn = wp.normalize(from_turn * (1.0 - share) + to_turn * share)
    slots = lattice.slots
    tau = live[LIVE_VISCOUS_TIME]
    v = load3(velocity_out, slots, i)
    u = load3(position_out, slots, i) - tau * v
    x = lattice.tile_origin[tile] + wp.vec3(float(lane) * lattice.spacing, 0.0, 0.0) + u
    local = wp.quat_rotate_inv(turn, x - place)
    sampled = sample_field(field, local)
    if sampled[3] < 0.0:
        normal = wp.normalize(wp.quat_rotate(turn, wp.vec3(sampled[0], sampled[1], sampled[2])))
        moved = x - sampled[3] * normal
        # How fast the instrument's material at this point moves.
        velocity = (wp.quat_rotate(to_turn, local) + to_place - wp.quat_rotate(from_turn, local) - from_place) / tick
        relative = v - velocity
        approach = wp.min(wp.dot(relative, normal), 0.0)
        sliding = relative - wp.dot(relative, normal) * normal
        grip = wp.min(-poses[base + 1] * approach / wp.max(wp.length(sliding), 1.0e-12), 1.0)
        change = -approach * normal - grip * sliding
        felt = -change / (weight * lattice.dt * live[LIVE_KEEP] * lattice.keep[i])
        from_tip = pose_position(poses, base + 16)
        tip = from_tip + share * (pose_position(poses, base + 19) - from_tip)
        torque = wp.cross(moved - tip, felt)
        for c in range(3):
            add_integer(force_out, FORCE_PARTS * tool + c, wp.int64(wp.rint(felt[c] * FORCE_UNITS)))
            add_integer(force_out, FORCE_PARTS * tool + 3 + c, wp.int64(wp.rint(torque[c] * TORQUE_UNITS)))
        v += change
        store3(velocity_out, slots, i, v)
        store3(position_out, slots, i, u + moved - x - lattice.dt * grip * sliding + tau * v)
        if (lattice.features & SKIP_REST) != 0:
            # What was moved, and what is around it, is looked at in the next substep.
            now = lattice.clock[0] * lattice.substeps + substep + 1
            tiles = slots // _TILE
            for r in range(9):
                for step in range(3):
                    near = lattice.rows[9 * tile + r] // _TILE + step - 1
                    lattice.awake[(now % 2) * tiles + near] = now
