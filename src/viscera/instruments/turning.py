"""How a tool follows a hand that turns: products of quaternions, and turns as axis times angle."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Quaternion


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
    sine = math.sqrt(float(way @ way))
    return way * (2.0 * math.atan2(sine, abs(w)) / sine) if sine > 0.0 else way


def turned_by(held: NDArray[np.float64], way: NDArray[np.float64]) -> NDArray[np.float64]:
    """A unit quaternion after a turn of axis times angle [rad]."""
    angle = math.sqrt(float(way @ way))
    if angle == 0.0:
        return held.copy()
    x, y, z = (way * (math.sin(0.5 * angle) / angle)).tolist()
    a, b, c, d = held.tolist()
    turned = np.array(product((x, y, z, math.cos(0.5 * angle)), (a, b, c, d)))
    return turned / math.sqrt(float(turned @ turned))
