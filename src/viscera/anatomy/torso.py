"""What stands around an organ in an X-ray: a trunk and a spine by rule, as plain as a phantom's.

Axes as the colon's: x to the patient's left, y to the head, z to the front; the origin is that of the colon. The trunk
is an ellipsoid of 0.42 × 0.84 × 0.25 m, a slim adult's width and depth. A vertebra is a squared-off ball of 42 × 27 ×
32 mm, one every 35 mm (lumbar ones in Gray, Anatomy of the Human Body, 1918, are of that size); processes are left out.
"""

from __future__ import annotations

import numpy as np

from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.primitives import icosphere

HALF_TRUNK = np.array([0.21, 0.42, 0.125])
"""[m]"""
HALF_VERTEBRA = np.array([0.021, 0.0135, 0.016])
"""[m]"""
PITCH = 0.035
"""From vertebra to vertebra [m]."""
SPINE = np.array([0.0, 0.11, -0.088])
"""Its middle [m]."""
VERTEBRAE = 11


def torso() -> TriangleMesh:
    """A closed trunk of 5 120 triangles."""
    ball = icosphere(1.0, 4)
    return TriangleMesh(ball.vertices * HALF_TRUNK, ball.triangles, "trunk")


def spine() -> TriangleMesh:
    """Closed vertebrae along y, 320 triangles each."""
    ball = icosphere(1.0, 2)
    one = _squared(ball.vertices) * HALF_VERTEBRA
    places = SPINE + PITCH * np.outer(np.arange(VERTEBRAE) - 0.5 * (VERTEBRAE - 1), [0.0, 1.0, 0.0])
    vertices = np.concatenate([one + place for place in places])
    triangles = np.concatenate([ball.triangles + k * len(one) for k in range(VERTEBRAE)])
    return TriangleMesh(vertices, triangles.astype(np.int32), "spine")


def _squared(points: FloatArray) -> FloatArray:
    """Points of a ball on |x|⁴ + |y|⁴ + |z|⁴ = 1, which is nearly a box."""
    return points / (np.abs(points) ** 4).sum(axis=1, keepdims=True) ** 0.25
