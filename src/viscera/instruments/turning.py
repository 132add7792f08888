"""How a tool follows a hand that turns: products of quaternions, and turns as axis times angle."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Quaternion


def dot(a: Sequence[float] | NDArray[np.float64], b: Sequence[float] | NDArray[np.float64]) -> float:
    """a·b of three numbers each, summed up in their order. NumPy's own product may fuse a product into a sum on one
    processor and not on another; this has the same bits everywhere, in kernels too (batch/turns.py)."""
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def product(a: Quaternion, b: Quaternion) -> Quaternion:
    """The turn b followed by the turn a."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def between(held: NDArray[np.float64], asked: NDArray[np.float64]) -> NDArray[np.float64]:
    """The shortest turn from one to the other: axis times angle [rad]."""
    a, b, c, d = held.tolist()
    x, y, z, w = asked.tolist()
    x, y, z, w = product((x, y, z, w), (-a, -b, -c, d))
    way = np.array((x, y, z) if w >= 0.0 else (-x, -y, -z))
    sine = math.sqrt(dot(way, way))
    return way * (2.0 * math.atan2(sine, abs(w)) / sine) if sine > 0.0 else way


def turned_by(held: NDArray[np.float64], way: NDArray[np.float64]) -> NDArray[np.float64]:
    """A unit quaternion after a turn of axis times angle [rad]."""
    angle = math.sqrt(dot(way, way))
    if angle == 0.0:
        return held.copy()
    x, y, z = (way * (math.sin(0.5 * angle) / angle)).tolist()
    a, b, c, d = held.tolist()
    turned = product((x, y, z, math.cos(0.5 * angle)), (a, b, c, d))
    return np.array(turned) / math.sqrt(dot(turned, turned) + turned[3] * turned[3])
