"""The film on a bowel's wall as a picture in the open view: the wall turns white where it is coated.

The picture is unrolled along the centreline: columns along it, rows around it, and half a turn more, so that no
triangle is cut at the seam. The film is known per triangle; a vertex has the mean of those around it, weighted by area,
and a texel what lies between the vertices of its triangle. A film of thickness h hides

    1 − exp(−h/H)

of the wall; H is tuned for appearance (suspensions of barium are as white as paint).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.anatomy.along import attach
from viscera.anatomy.colon import Centreline
from viscera.device import Device, Stage
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.queries import build_query, closest_points
from viscera.view import Surface, Texture
from viscera.water.coating import Coating
from viscera.world.system import Moment, Show, System

wp.set_module_options({"enable_backward": False})

WIDTH, HEIGHT = 512, 96
"""Texels along and around, of about 3 mm."""
TURNS = 1.5
"""Around the line, in the rows of the picture."""
EVERY = 8
"""Frames from one picture to the next: eight a second."""
HIDES = wp.constant(6.0e-5)
"""H [m]."""
WHITE = wp.constant(wp.vec3(247.0, 245.0, 238.0))
"""sRGB, of 255."""


@wp.kernel
def mean_at_vertices(
    first: int,
    # params
    unit: float,
    # in
    start: wp.array(dtype=wp.int32),
    around: wp.array(dtype=wp.int32),
    film: wp.array(dtype=wp.int32),
    area: wp.array(dtype=float),
    # out
    thickness_out: wp.array(dtype=float),
):
    """Volume on the triangles around a vertex over their area [m]."""
    i = first + wp.tid()
    volume = float(0.0)
    wide = float(0.0)
    for k in range(start[i], start[i + 1]):
        volume += unit * float(film[around[k]])
        wide += area[around[k]]
    thickness_out[i] = volume / wp.max(wide, 1.0e-12)


@wp.kernel
def paint(
    first: int,
    # in
    corners: wp.array(dtype=wp.vec3i),
    weights: wp.array(dtype=wp.vec3),
    thickness: wp.array(dtype=float),
    # out
    pixel_out: wp.array(dtype=wp.vec4ub),
):
    i = first + wp.tid()
    c = corners[i]
    w = weights[i]
    h = w[0] * thickness[c[0]] + w[1] * thickness[c[1]] + w[2] * thickness[c[2]]
    cover = 1.0 - wp.exp(-h / HIDES)
    colour = cover * WHITE
    pixel_out[i] = wp.vec4ub(
        wp.uint8(colour[0] + 0.5), wp.uint8(colour[1] + 0.5), wp.uint8(colour[2] + 0.5), wp.uint8(255.0 * cover + 0.5)
    )


@dataclass(eq=False)
class Unrolled:
    """Points of a wall along and around its centreline."""

    line: Centreline

    def corners(self, points: FloatArray, triangles: NDArray[np.integer]) -> FloatArray:
        """Of each triangle's corners: length along the line [m] and turns around it, (n, 3, 2). Turns of one triangle
        are next to each other: from the second corner on they may be a turn off."""
        held = attach(points, self.line)
        along = held.lengths + held.local[:, 2]
        turn = np.arctan2(held.local[:, 1], held.local[:, 0]) / (2.0 * math.pi) % 1.0
        found = np.stack([along, turn], axis=1)[triangles]
        apart = found[:, 1:, 1] - found[:, :1, 1]
        found[:, 1:, 1] -= np.round(apart)
        lowest = found[..., 1].min(axis=1)
        found[..., 1] -= np.floor(lowest)[:, None]  # from 0 on, below TURNS
        return found


def unrolled_surface(surface: Surface, line: Centreline) -> Surface:
    """The surface with its places in the picture."""
    assert surface.rest is not None
    found = Unrolled(line).corners(surface.rest.astype(np.float64), surface.triangles)
    u = np.clip(found[..., 0] / line.lengths[-1], 0.0, 1.0)
    v = np.clip(found[..., 1] / TURNS, 0.0, 1.0)
    return replace(surface, uv=np.stack([u, v], axis=-1).astype(np.float32))


def whitening(coating: Coating, mesh: TriangleMesh, surface: Surface, line: Centreline, device: Device) -> System:
    """The system that paints the film of a wall of this mesh onto `surface` (`unrolled_surface`)."""
    corners, weights = _texels(mesh, line, device)
    order = np.argsort(mesh.triangles.ravel(), kind="stable")
    counts = np.bincount(mesh.triangles.ravel(), minlength=len(mesh.vertices))

    def given(values: NDArray[Any], dtype: Any) -> wp.array:
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=device.warp)

    start = given(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), wp.int32)
    around = given((order // 3).astype(np.int32), wp.int32)
    thickness = wp.zeros(len(mesh.vertices), dtype=float, device=device.warp)
    pixels = wp.zeros((HEIGHT, WIDTH), dtype=wp.vec4ub, device=device.warp)
    texel = [given(corners.astype(np.int32), wp.vec3i), given(weights.astype(np.float32), wp.vec3)]
    flat = pixels.flatten()

    def record(stage: Stage) -> None:
        seen = [coating.unit, start, around, coating.film, coating.area, thickness]
        stage.launch(mean_at_vertices, len(mesh.vertices), seen)
        stage.launch(paint, WIDTH * HEIGHT, [*texel, thickness, flat])

    program = device.record(record, work=WIDTH * HEIGHT)
    texture = Texture(f"{surface.name}.film", surface.name, "ink", WIDTH, HEIGHT)

    def draw(_: Any = None) -> None:
        program.run()
        device.synchronize()

    def frame(now: Moment) -> None:
        draw()

    # The picture follows from the film, which the fluid keeps.
    return System(
        name="coat_picture", frame=frame, every=EVERY, phase=EVERY - 1, after=("barium",), load=draw,
        shows=[Show(texture, {texture.name: pixels})], holds=pixels,
    )  # fmt: skip


def _texels(mesh: TriangleMesh, line: Centreline, device: Device) -> tuple[NDArray[np.integer], FloatArray]:
    """Of each texel the vertices of the triangle of `mesh` that lies there, (n, 3), and their weights: the nearest in
    the plane of the picture, where a triangle may stand three times, a turn apart."""
    length = float(2.0 * math.pi * line.radii.mean())  # of a turn, so that both axes are in metres
    flat = Unrolled(line).corners(mesh.vertices, mesh.triangles) * (1.0, length)
    copies = np.concatenate([flat + np.array([0.0, shift * length]) for shift in (-1.0, 0.0, 1.0)])
    plane = np.concatenate([copies, np.zeros((*copies.shape[:2], 1))], axis=2)
    laid = TriangleMesh(plane.reshape(-1, 3), np.arange(3 * len(plane)).reshape(-1, 3).astype(np.int32), "unrolled")
    u, v = (np.arange(WIDTH) + 0.5) / WIDTH * line.lengths[-1], (np.arange(HEIGHT) + 0.5) / HEIGHT * TURNS * length
    at = np.zeros((HEIGHT * WIDTH, 3))
    at[:, 0], at[:, 1] = np.tile(u, HEIGHT), np.repeat(v, WIDTH)
    found = closest_points(build_query(laid, device), at)
    a, b, c = (plane[found.faces, k, :2] for k in range(3))
    whole = _cross(b - a, c - a)
    safe = np.where(np.abs(whole) > 1e-14, whole, 1.0)
    p = found.points[:, :2]
    weights = np.stack([_cross(b - p, c - p) / safe, _cross(c - p, a - p) / safe, _cross(a - p, b - p) / safe], axis=1)
    weights = np.where((np.abs(whole) > 1e-14)[:, None], np.clip(weights, 0.0, 1.0), 1.0 / 3.0)
    return mesh.triangles[found.faces % len(mesh.triangles)], weights / weights.sum(axis=1)[:, None]


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
