"""Walls in closed form: plane, sphere, cylinder and box, turned any way, around the fluid or in it, still or moving.

In a shape's own frame, φ is the exact signed distance, negative inside, with p the point, r the radius, b half sizes:

    plane      φ = z                       solid below; the plane has no other side
    sphere     φ = |p| − r
    box        q = |p| − b,                φ = |max(q, 0)| + min(max(q_x, q_y, q_z), 0)
    cylinder   the same in 2D with q = (√(x² + y²) − r, |z| − half length), the axis along z

A vessel holds the fluid inside (distance −φ), an obstacle keeps it outside (distance φ). A shape moves with velocity v
and turns with ω about its centre c; its wall at x moves with v + ω × (x − c).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.water.boundary.nearest import Nearest

wp.set_module_options({"enable_backward": False})

Kind = Literal["plane", "sphere", "box", "cylinder"]
KINDS: dict[str, int] = {"plane": 0, "sphere": 1, "box": 2, "cylinder": 3}
SIZES = {"plane": 0, "sphere": 1, "box": 3, "cylinder": 2}
"""How many sizes each kind has."""

PLANE, SPHERE, BOX, CYLINDER = (wp.constant(KINDS[k]) for k in ("plane", "sphere", "box", "cylinder"))


@dataclass(frozen=True)
class Shape:
    """A wall by formula. `size`: sphere (radius,), box its three whole sides, cylinder (radius, length), plane ()."""

    kind: Kind
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m]"""
    size: tuple[float, ...] = ()
    """[m]"""
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """From the shape's frame to the world: a rotation vector, axis times angle [rad]."""
    fluid_inside: bool = False
    """A vessel holds the fluid, an obstacle keeps it out. A plane's fluid is on its +z side."""
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m/s]"""
    spin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Angular velocity [rad/s]"""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"shape {self.kind!r} is not known.", f"Allowed are {', '.join(KINDS)}.")
        if len(self.size) != SIZES[self.kind] or not all(math.isfinite(s) and s > 0.0 for s in self.size):
            raise InputError(
                f"size = {self.size} is not possible for a {self.kind}.",
                f"Give {SIZES[self.kind]} finite lengths above 0, in metres.",
            )
        for name in ("centre", "turn", "velocity", "spin"):
            values = getattr(self, name)
            if len(values) != 3 or not all(map(math.isfinite, values)):
                raise InputError(f"{name} = {values} is not possible.", "Give three finite numbers.")
        if self.kind == "plane" and self.fluid_inside:
            raise InputError("a plane has no inside.", "Turn it over: its fluid is on its +z side.")

    @property
    def rotation(self) -> NDArray[np.float64]:
        """Matrix of `turn` (Rodrigues)."""
        angle = float(np.linalg.norm(self.turn))
        if angle == 0.0:
            return np.eye(3)
        x, y, z = np.asarray(self.turn) / angle
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross


def plane(point: Sequence[float], normal: Sequence[float]) -> Shape:
    """The wall through `point` [m] with the fluid on the side to which `normal` points."""
    n = np.asarray(normal, dtype=np.float64)
    length = float(np.linalg.norm(n))
    if not (math.isfinite(length) and length > 0.0):
        raise InputError(f"normal = {tuple(normal)} is not possible.", "Give a direction.")
    n = n / length
    axis = np.cross([0.0, 0.0, 1.0], n)
    sine = float(np.linalg.norm(axis))
    axis = axis / sine if sine > 1e-12 else np.array([1.0, 0.0, 0.0])
    turn = math.atan2(sine, float(n[2])) * axis
    return Shape("plane", _three(point), turn=_three(turn))


def shape_distance(shape: Shape, points: ArrayLike) -> NDArray[np.float64]:
    """From each of `points`, shape (n, 3), to the wall, negative on the wrong side [m]; float64, at time 0."""
    local = (np.asarray(points, dtype=np.float64) - np.asarray(shape.centre)) @ shape.rotation
    if shape.kind == "plane":
        return local[:, 2]
    if shape.kind == "sphere":
        phi = np.linalg.norm(local, axis=1) - shape.size[0]
    else:
        if shape.kind == "box":
            q = np.abs(local) - 0.5 * np.asarray(shape.size)
        else:
            across = np.hypot(local[:, 0], local[:, 1]) - shape.size[0]
            q = np.stack([across, np.abs(local[:, 2]) - 0.5 * shape.size[1]], axis=1)
        phi = np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)
    return -phi if shape.fluid_inside else phi


def _three(values: ArrayLike) -> tuple[float, float, float]:
    x, y, z = (float(v) for v in np.asarray(values, dtype=np.float64))
    return x, y, z


# --- on the device -------------------------------------------------------------------------------------------------


@wp.struct
class ShapeNow:
    """A shape where it is now."""

    kind: int
    side: float
    """1: the fluid is outside; -1: inside."""
    half: wp.vec3
    """Radius and half length, or half sides [m]."""
    pose: wp.transform
    velocity: wp.vec3
    spin: wp.vec3


def shape_now(shape: Shape) -> ShapeNow:
    """As kernels take it."""
    one = ShapeNow()
    one.kind = KINDS[shape.kind]
    one.side = -1.0 if shape.fluid_inside else 1.0
    size = list(shape.size) + [0.0] * (3 - len(shape.size))
    if shape.kind == "box":
        size = [0.5 * s for s in size]
    if shape.kind == "cylinder":
        size[1] *= 0.5
    one.half = wp.vec3(*size)
    angle = float(np.linalg.norm(shape.turn))
    axis = wp.vec3(*(t / angle for t in shape.turn)) if angle > 0.0 else wp.vec3(1.0, 0.0, 0.0)
    one.pose = wp.transform(wp.vec3(*shape.centre), wp.quat_from_axis_angle(axis, angle))
    one.velocity = wp.vec3(*shape.velocity)
    one.spin = wp.vec3(*shape.spin)
    return one


@wp.func
def box_slope(p: wp.vec3, half: wp.vec3) -> wp.vec4:
    """Gradient and value of a box' φ."""
    qx = wp.abs(p[0]) - half[0]
    qy = wp.abs(p[1]) - half[1]
    qz = wp.abs(p[2]) - half[2]
    away = wp.vec3(wp.max(qx, 0.0), wp.max(qy, 0.0), wp.max(qz, 0.0))
    far = wp.length(away)
    slope = wp.vec3(0.0, 0.0, 0.0)
    phi = far
    if far > 0.0:
        slope = away / far
    else:
        phi = wp.max(qx, wp.max(qy, qz))
        if qx == phi:
            slope = wp.vec3(1.0, 0.0, 0.0)
        elif qy == phi:
            slope = wp.vec3(0.0, 1.0, 0.0)
        else:
            slope = wp.vec3(0.0, 0.0, 1.0)
    return wp.vec4(
        slope[0] * wp.where(p[0] < 0.0, -1.0, 1.0),
        slope[1] * wp.where(p[1] < 0.0, -1.0, 1.0),
        slope[2] * wp.where(p[2] < 0.0, -1.0, 1.0),
        phi,
    )


@wp.func
def shape_slope(kind: int, half: wp.vec3, p: wp.vec3) -> wp.vec4:
    """Gradient and value of φ at `p` in the shape's frame."""
    if kind == PLANE:
        return wp.vec4(0.0, 0.0, 1.0, p[2])
    if kind == BOX:
        return box_slope(p, half)
    if kind == SPHERE:
        far = wp.length(p)
        out = wp.vec3(0.0, 0.0, 1.0)
        if far > 0.0:
            out = p / far
        return wp.vec4(out[0], out[1], out[2], far - half[0])
    # A cylinder is a box in the half plane of its axis; about the axis nothing changes.
    across = wp.sqrt(p[0] * p[0] + p[1] * p[1])
    out = wp.vec3(1.0, 0.0, 0.0)
    if across > 0.0:
        out = wp.vec3(p[0] / across, p[1] / across, 0.0)
    flat = box_slope(wp.vec3(across, 0.0, p[2]), wp.vec3(half[0], 1.0e6, half[1]))
    return wp.vec4(flat[0] * out[0], flat[0] * out[1], flat[2], flat[3])


@wp.func
def shapes_away(shapes: wp.array(dtype=ShapeNow), count: int, point: wp.vec3) -> float:
    """Distance to the nearest of them [m]."""
    away = float(1.0e6)
    for s in range(count):
        local = wp.transform_point(wp.transform_inverse(shapes[s].pose), point)
        slope = shape_slope(shapes[s].kind, shapes[s].half, local)
        away = wp.min(away, shapes[s].side * slope[3])
    return away


@wp.func
def nearest_shape(shapes: wp.array(dtype=ShapeNow), count: int, point: wp.vec3, best: Nearest) -> Nearest:
    """`best`, or a shape that is nearer."""
    found = best
    for s in range(count):
        shape = shapes[s]
        local = wp.transform_point(wp.transform_inverse(shape.pose), point)
        slope = shape_slope(shape.kind, shape.half, local)
        distance = shape.side * slope[3]
        if distance < found.distance:
            if found.face >= 0:
                found.solid_normal = found.normal
                found.solid_velocity = found.velocity
            out = wp.vec3(slope[0], slope[1], slope[2])
            found.distance = distance
            found.normal = shape.side * wp.transform_vector(shape.pose, out)
            found.face = -1
            centre = wp.transform_get_translation(shape.pose)
            found.velocity = shape.velocity + wp.cross(shape.spin, point - distance * found.normal - centre)
        found.free = wp.min(found.free, distance)
    return found


@wp.func
def shape_speed(shape: ShapeNow) -> float:
    """No place of its wall is faster [m/s]. A plane that turns is as fast as one likes."""
    arm = wp.length(shape.half)
    if shape.kind == PLANE:
        arm = 1.0e6
    if shape.kind == SPHERE:
        arm = 0.0
    return wp.length(shape.velocity) + arm * wp.length(shape.spin)


@wp.func
def moved_shape(shape: ShapeNow, dt: float) -> ShapeNow:
    """Where it is `dt` [s] later."""
    after = shape
    centre = wp.transform_get_translation(shape.pose) + dt * shape.velocity
    turned = wp.transform_get_rotation(shape.pose)
    rate = wp.length(shape.spin)
    if rate > 0.0:
        turned = wp.normalize(wp.quat_from_axis_angle(shape.spin / rate, rate * dt) * turned)
    after.pose = wp.transform(centre, turned)
    return after
