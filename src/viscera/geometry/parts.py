"""Instruments of several rigid parts that move: each with its own distance field and its own pose (Kvick §3.3.2).

A part is given in the tool's frame, tip at the origin and shaft along +z, as it lies when its joint is at angle 0. With
the tool at position x with rotation q, and the joint turned by φ about an axis through the pivot c,

    point of the part X  →  x + q (c + J(X − c)),     J the rotation by φ = open + grip (closed − open).

Poses are rows of a device array, as the frame starts and as it ends, so a recorded program stays valid while the tool
moves. The distance to an instrument is the least of the distances to its parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from viscera.device import Device, Port
from viscera.errors import InputError
from viscera.geometry.distance import DistanceField, FarField, distance_field, sample
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.queries import checked_points
from viscera.geometry.vectors import cross

wp.set_module_options({"enable_backward": False})

PART_FLOATS = 24
"""Of each part: position and quaternion as the frame starts, the same as it ends, the middle of its grid at both times,
and the radius of a ball around that which holds the grid. The rest is padding."""
PART_START, PART_END = wp.constant(0), wp.constant(7)
PART_MIDDLE, PART_RADIUS = wp.constant(14), wp.constant(20)

TURN_MARGIN = 1.1
"""How much larger than the grid the ball is: while a part turns, its grid's middle leaves the straight way between both
ends by less than a tenth of its distance from the joint, for turns of up to 50° in a frame."""


@dataclass(frozen=True)
class Joint:
    """A hinge. `grip` 0 is open, 1 is closed."""

    pivot: tuple[float, float, float]
    """[m], in the tool's frame."""
    axis: tuple[float, float, float]
    """Unit vector in the tool's frame."""
    open_angle: float
    """[rad]"""
    closed_angle: float = 0.0
    """[rad]"""

    def __post_init__(self) -> None:
        numbers = (*self.pivot, *self.axis, self.open_angle, self.closed_angle)
        if not all(map(math.isfinite, numbers)):
            raise InputError(f"joint {numbers} is not finite.", "Give finite positions [m] and angles [rad].")
        if abs(math.hypot(*self.axis) - 1.0) > 1e-6:
            raise InputError(f"axis = {self.axis} is not a unit vector.", "Divide it by its length.")


@dataclass(frozen=True, eq=False)
class PartShape:
    """A part before it has a field."""

    name: str
    mesh: TriangleMesh
    """Closed, in the tool's frame [m]."""
    spacing: float
    """Of its distance field [m]."""
    margin: float
    """Of its grid around the mesh [m]."""
    joint: Joint | None = None
    active: bool = False
    """Whether it carries current."""


@dataclass(frozen=True, eq=False)
class Part:
    name: str
    field: DistanceField
    joint: Joint | None
    active: bool


@dataclass(eq=False)
class JointedTool:
    """Made by `make_tool`. `place` moves it; kernels read `poses.array`, `PART_FLOATS` for each part."""

    name: str
    parts: tuple[Part, ...]
    device: Device
    poses: Port
    start: FloatArray
    """Of each part: position [m] and quaternion (x, y, z, w) as the frame starts, shape (parts, 7)."""
    end: FloatArray
    """As it ends."""
    _where: tuple[float, ...] = ()
    """Position, orientation and grip that it was last given."""
    _poses: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Those of its parts there, as `end` has them."""

    def place(self, position: ArrayLike, orientation: ArrayLike, grip: float = 0.0, *, jump: bool = False) -> None:
        """Where the tool is as the next frame ends; it comes from where it was, or, if it jumps, was there before."""
        where = (*np.asarray(position).tolist(), *np.asarray(orientation).tolist(), grip)
        if where == self._where and (self.start == self._poses).all() and (self.end == self._poses).all():
            return  # it rests
        poses = np.array([part_pose(part.joint, position, orientation, grip) for part in self.parts])
        self._where, self._poses = where, poses
        self.start[:] = poses if jump else self.end
        self.end[:] = poses
        rows = self.poses.host.reshape(len(self.parts), PART_FLOATS)
        rows[:, 0:7], rows[:, 7:14] = self.start, self.end
        for row, part, start, end in zip(rows, self.parts, self.start, self.end, strict=True):
            middle, radius = field_ball(part.field)
            row[14:17], row[17:20] = transformed(start, middle), transformed(end, middle)
            row[20] = radius


@lru_cache(maxsize=64)
def part_field(shape: PartShape, device: Device) -> DistanceField:
    """Made once for a shape and a device: a world that begins again has the same instruments."""
    return distance_field(shape.mesh, shape.spacing, shape.margin, device)


def make_tool(name: str, shapes: Sequence[PartShape], device: Device) -> JointedTool:
    """Builds the fields; open meshes are refused with the places where they are open."""
    if not shapes:
        raise InputError(f"tool {name!r} has no parts.", "Give at least one.")
    fields = [part_field(one, device) for one in shapes]
    parts = tuple(Part(s.name, f, s.joint, s.active) for s, f in zip(shapes, fields, strict=True))
    poses = device.port(len(parts) * PART_FLOATS, wp.float32)
    tool = JointedTool(name, parts, device, poses, np.zeros((len(parts), 7)), np.zeros((len(parts), 7)))
    tool.place((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), jump=True)
    return tool


def tool_distance(tool: JointedTool, points: ArrayLike, far: FarField = "exact") -> FloatArray:
    """Signed distance of each of `points`, shape (n, 3) [m], from the nearest part where it is as the frame ends."""
    asked = checked_points("points", points)
    each = [sample(p.field, inverse_transformed(pose, asked), far)[0] for p, pose in zip(tool.parts, tool.end)]  # noqa: B905
    return np.min(each, axis=0)


def part_pose(joint: Joint | None, position: ArrayLike, orientation: ArrayLike, grip: float) -> FloatArray:
    """Position [m] and quaternion of a part of a tool that is there."""
    x = np.asarray(position, dtype=np.float64)
    q = np.asarray(orientation, dtype=np.float64)
    if not (np.isfinite(x).all() and np.isfinite(q).all() and 0.5 < np.linalg.norm(q) < 2.0):
        raise InputError(
            f"pose {x.tolist()}, {q.tolist()} is not possible.", "Give a finite position [m] and a unit quaternion."
        )
    if not 0.0 <= grip <= 1.0:
        raise InputError(f"grip = {grip} is not allowed.", "It goes from 0 to 1.")
    q = q / np.linalg.norm(q)
    if joint is None:
        return np.concatenate([x, q])
    half = 0.5 * (joint.open_angle + grip * (joint.closed_angle - joint.open_angle))
    turn = np.append(math.sin(half) * np.asarray(joint.axis), math.cos(half))
    pivot = np.asarray(joint.pivot)
    return np.concatenate([x + rotated(q, pivot - rotated(turn, pivot)), multiplied(q, turn)])


def multiplied(a: FloatArray, b: FloatArray) -> FloatArray:
    """Quaternion of the rotation `b`, then `a`."""
    vector = a[3] * b[:3] + b[3] * a[:3] + cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])


def rotated(q: FloatArray, points: FloatArray) -> FloatArray:
    """Points, shape (…, 3), turned by the unit quaternion q."""
    once = cross(q[:3], points)
    return points + 2.0 * (q[3] * once + cross(q[:3], once))


def transformed(pose: FloatArray, points: FloatArray) -> FloatArray:
    """From the part's frame to the world's."""
    return pose[:3] + rotated(pose[3:], points)


def inverse_transformed(pose: FloatArray, points: FloatArray) -> FloatArray:
    """From the world's frame to the part's."""
    return rotated(pose[3:] * (-1.0, -1.0, -1.0, 1.0), points - pose[:3])


def field_ball(field: DistanceField) -> tuple[FloatArray, float]:
    """A ball that holds a part's grid, also while it turns: its middle in the part's frame, its radius [m]."""
    half = 0.5 * field.spacing * (np.array(field.dims) - 1)
    return field.origin + half, TURN_MARGIN * float(np.linalg.norm(half))


@wp.func
def pose_position(poses: wp.array(dtype=wp.float32), at: int):
    return wp.vec3(poses[at], poses[at + 1], poses[at + 2])


@wp.func
def pose_rotation(poses: wp.array(dtype=wp.float32), at: int):
    return wp.quat(poses[at + 3], poses[at + 4], poses[at + 5], poses[at + 6])


@wp.func
def near_part_ball(poses: wp.array(dtype=wp.float32), part: int, point: wp.vec3):
    """Whether the part's grid can hold `point` at any time of the frame."""
    base = part * PART_FLOATS
    a = pose_position(poses, base + PART_MIDDLE)
    way = pose_position(poses, base + PART_MIDDLE + 3) - a
    along = wp.clamp(wp.dot(point - a, way) / wp.max(wp.dot(way, way), 1.0e-20), 0.0, 1.0)
    radius = poses[base + PART_RADIUS]
    return wp.length_sq(point - a - along * way) < radius * radius


@wp.func
def ball_of_part(poses: wp.array(dtype=wp.float32), part: int) -> wp.vec4:
    """Centre and squared radius of one ball around all that `near_part_ball` says yes to, with room for rounding."""
    base = part * PART_FLOATS
    a = pose_position(poses, base + PART_MIDDLE)
    b = pose_position(poses, base + PART_MIDDLE + 3)
    centre = 0.5 * (a + b)
    radius = (poses[base + PART_RADIUS] + 0.5 * wp.length(b - a)) * 1.001
    return wp.vec4(centre[0], centre[1], centre[2], radius * radius)


@wp.func
def part_frame(poses: wp.array(dtype=wp.float32), part: int, share: float):
    """Where the part is and how it is turned when `share` of the frame has passed."""
    start = part * PART_FLOATS + PART_START
    end = part * PART_FLOATS + PART_END
    from_turn = pose_rotation(poses, start)
    to_turn = pose_rotation(poses, end)
    # Both quaternions stand for the same turn with either sign: the shorter way is meant.
    side = wp.where(wp.dot(from_turn, to_turn) < 0.0, -1.0, 1.0)
    turn = wp.normalize(from_turn * (1.0 - share) + to_turn * (side * share))
    place = pose_position(poses, start) * (1.0 - share) + pose_position(poses, end) * share
    return wp.transform(place, turn)
