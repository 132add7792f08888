"""Instruments that carry current, in many worlds: their parts as distance fields, as heat/electrode.py has them.

All worlds share the fields; where the parts are is a row for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.batch.kit import Hands
from viscera.batch.turns import HALF, placed, product
from viscera.device import Device
from viscera.geometry.distance import FieldGrid
from viscera.geometry.parts import PART_FLOATS, JointedTool, ball_of_part, field_ball, part_frame
from viscera.heat.electrode import LIVE_FLOATS, LIVE_ON, SAMPLES, ElectrodeParams, nearness_of

wp.set_module_options({"enable_backward": False})

_SAMPLES = wp.constant(SAMPLES)


@wp.struct
class Metal:
    """What the parts are."""

    tool: int
    parts: int
    """None: the tool is a ball or bars, which need no fields."""
    bipolar: int
    pivot: wp.array(dtype=wp.vec3d)
    axis: wp.array(dtype=wp.vec3d)
    angle: wp.array(dtype=wp.vec2d)
    """Open, and closed [rad]; both 0 where a part has no joint."""
    middle: wp.array(dtype=wp.vec3d)
    radius: wp.array(dtype=wp.float64)
    """Of the ball around a part's grid [m]."""
    numbers: wp.array(dtype=wp.int32)
    """Of the active parts."""
    fields: wp.array(dtype=FieldGrid)
    """Theirs."""


@wp.struct
class Placed:
    """Where they are: a row for each world."""

    poses: wp.array2d(dtype=wp.float32)
    """As the step starts and as it ends; see geometry/parts.py."""
    frames: wp.array2d(dtype=wp.transform)
    balls: wp.array2d(dtype=wp.vec4)
    live: wp.array2d(dtype=wp.float32)
    """Pedal and generator; see heat/electrode.py."""


@wp.func
def near_metal(metal: Metal, at: Placed, world: int, x: wp.vec3):
    """n at x."""
    return nearness_of(
        metal.bipolar,
        at.live[world],
        metal.numbers,
        metal.fields,
        at.poses[world],
        at.frames[world],
        at.balls[world],
        x,
    )


@wp.kernel
def place_worlds(
    first: int,
    # params
    metal: Metal,
    # in
    hands: Hands,
    pedal: wp.array(dtype=wp.int32),
    was: wp.array(dtype=wp.int32),
    # out
    at: Placed,
):
    """`JointedTool.place` and `find_frames`: a tool that was not in the body before was already where it is now."""
    world = first + wp.tid()
    tool = metal.tool
    tip = hands.tip[world, tool]
    turn = hands.turn[world, tool]
    grip = hands.grip[world, tool]
    poses = at.poses[world]
    on = pedal[world] != 0 and hands.active[world, tool] != 0 and hands.inside[world, tool] != 0
    at.live[world, LIVE_ON] = wp.where(on, 1.0, 0.0)
    for part in range(metal.parts):
        angle = metal.angle[part]
        half = HALF * (angle[0] + grip * (angle[1] - angle[0]))
        axis = wp.sin(half) * metal.axis[part]
        bent = wp.vec4d(axis[0], axis[1], axis[2], wp.cos(half))
        pivot = metal.pivot[part]
        x = placed(tip, turn, pivot - placed(wp.vec3d(), bent, pivot))
        q = product(turn, bent)
        base = part * PART_FLOATS
        for number in range(7):
            if number < 3:
                now = float(x[number])
            else:
                now = float(q[number - 3])
            poses[base + number] = wp.where(was[world] != 0, poses[base + 7 + number], now)
            poses[base + 7 + number] = now
        middle = placed(x, q, metal.middle[part])
        for number in range(3):
            now = float(middle[number])
            poses[base + 14 + number] = wp.where(was[world] != 0, poses[base + 17 + number], now)
            poses[base + 17 + number] = now
        poses[base + 20] = float(metal.radius[part])
    for k in range(metal.numbers.shape[0]):
        at.balls[world, k] = ball_of_part(poses, metal.numbers[k])
        for pose in range(_SAMPLES):
            share = (float(pose) + 0.5) / float(_SAMPLES)
            at.frames[world, k * _SAMPLES + pose] = part_frame(poses, metal.numbers[k], share)


def make_metal(tool: JointedTool | None, number: int, bipolar: bool, device: Device) -> Any:
    """The struct `Metal`; without a tool, one without parts."""
    made: Any = Metal()
    parts = () if tool is None else tool.parts
    made.tool, made.parts, made.bipolar = number, len(parts), int(bipolar)
    joints = [part.joint for part in parts]
    active = [k for k, part in enumerate(parts) if part.active]
    balls = [field_ball(part.field) for part in parts]

    def put(values: list[Any], dtype: Any) -> wp.array[Any]:
        return wp.array(np.array(values), dtype=dtype, device=device.warp) if values else wp.zeros(1, dtype=dtype)

    nowhere = (0.0, 0.0, 0.0)
    made.pivot = put([joint.pivot if joint else nowhere for joint in joints], wp.vec3d)
    made.axis = put([joint.axis if joint else nowhere for joint in joints], wp.vec3d)
    made.angle = put([(joint.open_angle, joint.closed_angle) if joint else (0.0, 0.0) for joint in joints], wp.vec2d)
    made.middle, made.radius = put([m.tolist() for m, _ in balls], wp.vec3d), put([r for _, r in balls], wp.float64)
    made.numbers = put(active, wp.int32)
    if active:
        made.fields = wp.array([parts[k].field.grid for k in active], dtype=FieldGrid, device=device.warp)
    return made


def make_placed(metal: Any, params: ElectrodeParams, count: int, device: Device) -> Any:
    """The struct `Placed`, with the generator set."""
    made: Any = Placed()

    def rows(size: int, dtype: Any) -> wp.array[Any]:
        return wp.zeros((count, max(size, 1)), dtype=dtype, device=device.warp)

    active = metal.numbers.shape[0]
    made.poses, made.balls = rows(metal.parts * PART_FLOATS, wp.float32), rows(active, wp.vec4)
    made.frames, made.live = rows(active * SAMPLES, wp.transform), rows(LIVE_FLOATS, wp.float32)
    numbers = np.zeros(LIVE_FLOATS, dtype=np.float32)
    numbers[1:7] = params.power, params.reach, float(params.nearness == "distance"), 0.0, params.most_flux, 0.0
    numbers[6] = params.dry_conductance
    made.live.assign(np.tile(numbers, (count, 1)))
    return made
