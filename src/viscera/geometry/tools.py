"""Ready instruments for cautery, as closed meshes in the tool's frame: tip at the origin, shaft along +z.

Sizes are those of common 5 mm laparoscopic instruments, rounded; estimated from catalogues' drawings, no standard.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.parts import Joint, PartShape
from viscera.geometry.primitives import rounded_slab

WIRE_RADIUS = 0.5e-3
"""Of the hook [m]."""
FOOT = 4.0e-3
"""How far the hook reaches sideways, from the wire's axis to the end of the foot's [m]."""
BEND = 1.0e-3
"""Radius of its bend [m]."""
WIRE_HEIGHT = 10.0e-3
"""Of bare wire above the tip [m]."""
SHAFT_RADIUS = 2.5e-3
SHAFT_LENGTH = 40.0e-3
"""The part of the insulated shaft that comes near tissue [m]."""

JAW = (1.4e-3, 3.0e-3, 14.0e-3)
"""Thickness, width, length of a jaw [m]."""
JAW_EDGE = 0.5e-3
"""Its rounding [m]."""
JAW_GAP = 0.3e-3
"""Between closed jaws [m]."""
JAW_OPENING = math.radians(14.0)
"""Of each jaw [rad]."""

HOOK_SPACING, HOOK_MARGIN = 0.125e-3, 1.5e-3
JAW_SPACING, JAW_MARGIN = 0.25e-3, 4.0e-3
SHAFT_SPACING, SHAFT_MARGIN = 0.5e-3, 1.0e-3
"""Of the distance fields [m]; an electrode may reach as far as its margin."""


def tube(path: ArrayLike, radius: float, segments: int = 24, name: str = "tube") -> TriangleMesh:
    """A round wire along `path`, shape (points, 3), with half spheres at its ends; closed."""
    points = np.asarray(path, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 2 or not np.isfinite(points).all():
        raise InputError(f"path has shape {points.shape}.", "Give two or more finite points x, y, z [m].")
    if not (math.isfinite(radius) and radius > 0.0):
        raise InputError(f"radius = {radius} is not possible.", "It must be a finite number above 0.")
    steps = np.diff(points, axis=0)
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    if not (length > 0.0).all():
        raise InputError("path stands still between two points.", "Leave out repeated points.")
    units = steps / length
    tangents = np.concatenate([units[:1], units[:-1] + units[1:], units[-1:]])
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    centres, along, radii = _with_caps(points, tangents, radius, max(2, segments // 4))
    rings = _rings(centres, along, radii, segments)
    vertices = np.concatenate([[points[0] - radius * tangents[0]], rings, [points[-1] + radius * tangents[-1]]])
    return TriangleMesh(vertices, _ring_triangles(len(centres), segments), name)


def _with_caps(
    points: FloatArray, tangents: FloatArray, radius: float, cap: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Centre, direction and radius of every ring, from one pole to the other, poles left out."""
    angle = 0.5 * math.pi * np.arange(1, cap) / cap
    low = points[0] - radius * np.cos(angle)[:, None] * tangents[0]
    high = points[-1] + radius * np.sin(angle)[:, None] * tangents[-1]
    ends = [np.repeat(tangents[i][None], cap - 1, axis=0) for i in (0, -1)]
    return (
        np.concatenate([low, points, high]),
        np.concatenate([ends[0], tangents, ends[1]]),
        np.concatenate([radius * np.sin(angle), np.full(len(points), radius), radius * np.cos(angle)]),
    )


def _rings(centres: FloatArray, tangents: FloatArray, radii: FloatArray, segments: int) -> FloatArray:
    angle = 2.0 * math.pi * np.arange(segments) / segments
    normal = np.cross(tangents[0], np.eye(3)[np.argmin(np.abs(tangents[0]))])
    rings = []
    for centre, tangent, radius in zip(centres, tangents, radii, strict=True):
        # Carried along without twisting: what the direction's turn makes it lean is taken off.
        normal = normal - (normal @ tangent) * tangent
        normal /= np.linalg.norm(normal)
        across = np.cross(tangent, normal)
        rings.append(centre + radius * (np.cos(angle)[:, None] * normal + np.sin(angle)[:, None] * across))
    return np.concatenate(rings)


def _ring_triangles(rings: int, segments: int) -> np.ndarray:
    here = np.arange(segments)
    there = (here + 1) % segments
    row = 1 + segments * np.arange(rings - 1)[:, None]
    a, b, c, d = (np.ravel(row + k) for k in (here, there, segments + there, segments + here))
    last, pole = 1 + segments * (rings - 1), 1 + segments * rings
    parts = [
        (np.zeros(segments, dtype=np.int64), 1 + there, 1 + here),
        (a, b, c),
        (a, c, d),
        (last + here, last + there, np.full(segments, pole)),
    ]
    return np.concatenate([np.stack(p, axis=1) for p in parts])


@cache
def monopolar_hook() -> tuple[PartShape, ...]:
    """An L of bare wire below an insulated shaft. The foot lies along +x, its underside in the plane z = 0."""
    turn = np.linspace(0.0, 0.5 * math.pi, 9)[:, None]
    bend = np.array([[BEND, 0.0, BEND + WIRE_RADIUS]]) - BEND * (
        np.sin(turn) * np.array([[1.0, 0.0, 0.0]]) + np.cos(turn) * np.array([[0.0, 0.0, 1.0]])
    )
    foot = np.stack([np.linspace(FOOT, BEND, 7)[:-1], np.zeros(6), np.full(6, WIRE_RADIUS)], axis=1)
    wire_z = np.linspace(BEND + WIRE_RADIUS, WIRE_HEIGHT, 10)[1:]
    wire = np.stack([np.zeros(9), np.zeros(9), wire_z], axis=1)
    hook = tube(np.concatenate([foot, bend, wire]), WIRE_RADIUS, name="hook")
    return (PartShape("hook", hook, HOOK_SPACING, HOOK_MARGIN, active=True), _shaft(WIRE_HEIGHT))


@cache
def bipolar_forceps() -> tuple[PartShape, ...]:
    """Two flat jaws on hinges below an insulated shaft: they close towards the plane x = 0 and end at z = 0."""
    thick, _, long = JAW
    shapes = []
    for name, side in (("left jaw", -1.0), ("right jaw", 1.0)):
        centre = (side * 0.5 * (thick + JAW_GAP), 0.0, 0.5 * long)
        mesh = rounded_slab(JAW, JAW_EDGE, (6, 10, 30), centre)
        mesh = TriangleMesh(mesh.vertices, mesh.triangles, name)
        # Turning about +y by a positive angle takes what lies below the pivot to −x.
        joint = Joint((0.0, 0.0, long), (0.0, 1.0, 0.0), -side * JAW_OPENING)
        shapes.append(PartShape(name, mesh, JAW_SPACING, JAW_MARGIN, joint, active=True))
    return (*shapes, _shaft(long))


def _shaft(height: float) -> PartShape:
    z = np.linspace(height + SHAFT_RADIUS, height + SHAFT_LENGTH, 16)
    mesh = tube(np.stack([0.0 * z, 0.0 * z, z], axis=1), SHAFT_RADIUS, name="shaft")
    return PartShape("shaft", mesh, SHAFT_SPACING, SHAFT_MARGIN)
