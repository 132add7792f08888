"""The eye that looks at particles: projection to the screen, and back.

A point p maps to clip space, and from there to the screen (Grahn 6.3, 6.4; Müller, Schirm and Duthaler 2007),

    [x', y', z', w]ᵀ = P [p, 1]ᵀ,      x_p = W (½ + ½ x'/w),   y_p = H (½ + ½ y'/w),   z_p = z',

where z_p is not divided by w, so it grows linearly with distance. A ball of radius r has there the radii

    r_p = ½ r W |P₁| / w    on the screen      (6.5, with the ½ that is missing there),
    r_z = r |P₃|            in depth           (6.6, where r is left unscaled),

with |P_k| the norm of the first three numbers of row k. With Q = P⁻¹ the way back is

    [p, 1]ᵀ = Q [(−1 + 2x_p/W) w, (−1 + 2y_p/H) w, z_p, w]ᵀ      (6.8, where Q is missing),
    w = (1 − Q₄₃ z_p) / (Q₄₁ (−1 + 2x_p/W) + Q₄₂ (−1 + 2y_p/H) + Q₄₄)      (6.9).

A ball in perspective is not a circle with half an ellipsoid: at distance d in the middle of the picture, its outline is
larger than r_p by the share (r/d)²/2, and the points of (6.6) lie inside it by up to 0.385 r²/d (where h = 1/√3).
Screen coordinates grow rightwards and upwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.view import Camera

wp.set_module_options({"enable_backward": False})

FloatArray = NDArray[np.float64]

MOST_PIXELS = 16_384
"""Along one side of a picture."""

FAR = wp.constant(wp.int32(2147483647))
"""Depth key of a place that nothing covers; no finite depth has it."""


@dataclass(frozen=True)
class Lens:
    """A camera and the picture it makes."""

    camera: Camera
    width: int
    """[pixel]"""
    height: int
    """[pixel]"""
    near: float = 0.005
    """What is nearer than this is not drawn [m]."""
    far: float = 10.0
    """Scale of depth [m]; what is farther is still drawn."""

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            if not 2 <= getattr(self, name) <= MOST_PIXELS:
                raise InputError(f"{name} = {getattr(self, name)} is not possible.", f"It must be 2 to {MOST_PIXELS}.")
        if not (math.isfinite(self.far) and 0.0 < self.near < self.far):
            raise InputError(f"near = {self.near} and far = {self.far} are not possible.", "It must be 0 < near < far.")
        if not 0.0 < self.camera.field_of_view < 180.0:
            raise InputError(f"field_of_view = {self.camera.field_of_view} is not possible.", "0 to 180 degrees.")
        forward = np.subtract(self.camera.target, self.camera.position)
        if not np.linalg.norm(np.cross(forward, self.camera.up)) > 0.0:
            raise InputError("the camera looks along its own up, or nowhere.", "Move its target or turn its up.")

    @cached_property
    def axes(self) -> FloatArray:
        """Rows: right, up and back of the camera, in the world."""
        back = np.subtract(self.camera.position, self.camera.target).astype(np.float64)
        right = np.cross(self.camera.up, back)
        frame = np.stack([right, np.cross(back, right), back])
        return np.asarray(frame / np.linalg.norm(frame, axis=1, keepdims=True), dtype=np.float64)

    @property
    def focal(self) -> float:
        """Size on the screen of one metre at a distance of one metre [pixel]."""
        return 0.5 * self.height / math.tan(math.radians(0.5 * self.camera.field_of_view))

    @cached_property
    def matrix(self) -> FloatArray:
        """P: world to clip space, as OpenGL has it."""
        view = np.eye(4)
        view[:3, :3] = self.axes
        view[:3, 3] = -self.axes @ np.asarray(self.camera.position, dtype=np.float64)
        n, f = self.near, self.far
        clip = np.zeros((4, 4))
        clip[0, 0] = 2.0 * self.focal / self.width
        clip[1, 1] = 2.0 * self.focal / self.height
        clip[2, 2:] = -(f + n) / (f - n), -2.0 * f * n / (f - n)
        clip[3, 2] = -1.0
        return np.asarray(clip @ view, dtype=np.float64)

    @cached_property
    def inverse(self) -> FloatArray:
        """Q = P⁻¹."""
        return np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)

    @property
    def depth_scale(self) -> float:
        """|P₃|: depth per metre."""
        return float(np.linalg.norm(self.matrix[2, :3]))

    def project(self, points: NDArray[np.floating]) -> FloatArray:
        """x_p, y_p [pixel] and z_p of points (n, 3), as (n, 3)."""
        clip = np.asarray(points, dtype=np.float64) @ self.matrix[:, :3].T + self.matrix[:, 3]
        share = 0.5 + 0.5 * clip[:, :2] / clip[:, 3:]
        return np.column_stack([share * (self.width, self.height), clip[:, 2]])

    def unproject(self, screen: FloatArray) -> FloatArray:
        """The points whose `project` is `screen` (n, 3)."""
        q = self.inverse
        side = -1.0 + 2.0 * screen[:, :2] / (self.width, self.height)
        w = (1.0 - q[3, 2] * screen[:, 2]) / (side @ q[3, :2] + q[3, 3])
        clip = np.column_stack([side * w[:, None], screen[:, 2], w])
        return (clip @ q.T)[:, :3]

    def directions(self) -> FloatArray:
        """Of the rays through the middles of the pixels, with length 1 along the camera's axis; (height, width, 3),
        the first row at the bottom."""
        x = (np.arange(self.width) + 0.5 - 0.5 * self.width) / self.focal
        y = (np.arange(self.height) + 0.5 - 0.5 * self.height) / self.focal
        right, up, back = self.axes
        return np.asarray(x[None, :, None] * right + y[:, None, None] * up - back, dtype=np.float64)


@wp.struct
class LensView:
    """A lens as kernels read it; it lives in an array, so that the eye may move while programs run."""

    matrix: wp.mat44
    inverse: wp.mat44
    width: float
    height: float
    near: float
    screen_scale: float
    """½ W |P₁| [pixel]."""
    depth_scale: float
    """|P₃|."""
    focal: float
    """[pixel]"""
    eye: wp.vec3
    right: wp.vec3
    up: wp.vec3
    back: wp.vec3


def make_lens_array(lens: Lens, device: Device) -> Any:
    """An array with the one `LensView` of `lens`."""
    array = wp.zeros(1, dtype=LensView, device=device.warp)
    write_lens(lens, array)
    return array


def write_lens(lens: Lens, array: Any) -> None:
    """The eye moves; its picture keeps its size."""
    view: Any = LensView()
    view.matrix = wp.mat44(*lens.matrix.ravel().tolist())
    view.inverse = wp.mat44(*lens.inverse.ravel().tolist())
    view.width, view.height, view.near = float(lens.width), float(lens.height), lens.near
    view.screen_scale = 0.5 * lens.width * float(np.linalg.norm(lens.matrix[0, :3]))
    view.depth_scale = lens.depth_scale
    view.focal = lens.focal
    view.eye = wp.vec3(*lens.camera.position)
    view.right, view.up, view.back = (wp.vec3(*row.tolist()) for row in lens.axes)
    wp.copy(array, wp.array([view], dtype=LensView, device=array.device))


@wp.func
def depth_key(z: float) -> int:
    """An integer that is ordered as z is, negative numbers included; its own inverse on the bits."""
    bits = wp.cast(z, wp.int32)
    return bits ^ ((bits >> 31) & 2147483647)


@wp.func
def key_depth(key: int) -> float:
    return wp.cast(key ^ ((key >> 31) & 2147483647), wp.float32)


@wp.func
def to_world(lens: LensView, screen: wp.vec3) -> wp.vec3:
    """(6.8) and (6.9)."""
    x = -1.0 + 2.0 * screen[0] / lens.width
    y = -1.0 + 2.0 * screen[1] / lens.height
    z = screen[2]
    q = lens.inverse
    w = (1.0 - q[3, 2] * z) / (q[3, 0] * x + q[3, 1] * y + q[3, 3])
    point = q * wp.vec4(x * w, y * w, z, w)
    return wp.vec3(point[0], point[1], point[2])


@wp.kernel
def project_particles(
    first: int,
    # params
    radius: float,
    # in
    lens: wp.array(dtype=LensView),
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    # out
    projected_out: wp.array(dtype=wp.vec4),
):
    """(6.3) to (6.5): x_p, y_p, z_p, r_p. What is not there, not finite or behind the eye gets r_p = 0."""
    i = first + wp.tid()
    result = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if i < count[0]:
        p = position[i]
        eye = lens[0]
        clip = eye.matrix * wp.vec4(p[0], p[1], p[2], 1.0)
        w = clip[3]
        if wp.isfinite(p[0]) and wp.isfinite(p[1]) and wp.isfinite(p[2]) and w > eye.near + radius:
            x = eye.width * (0.5 + 0.5 * clip[0] / w)
            y = eye.height * (0.5 + 0.5 * clip[1] / w)
            result = wp.vec4(x, y, clip[2], radius * eye.screen_scale / w)
    projected_out[i] = result


def launch_on_rows(stage: Stage, kernel: Any, count: int, rows: int, args: Sequence[Any]) -> None:
    """Runs `kernel` on all elements 0 … count-1 on every core, each core writing its own rows of the picture: Warp's
    atomics on cpu are safe within one core only. The kernel takes `row_first` and `row_end` as its first arguments."""
    first, end = rows * stage.core // stage.cores, rows * (stage.core + 1) // stage.cores
    if end > first and count > 0:
        wp.launch(kernel, dim=count, inputs=[first, end, *args], device=stage.device.warp)
    stage.once(_meet)


def _meet() -> None:
    """Nothing to do but to wait for the other cores."""
