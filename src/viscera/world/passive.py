"""A hand gets back no more work than it put in, while its tool touches tissue.

Points of a surface that a thin bar meets from the side go along the surface's own normal (tissue/touch_kernels.py), so
a bar that is drawn sideways presses tissue down without being held back in full; lifted, it would be pushed harder than
it was pressed. The cure is that of haptic devices (Hannaford and Ryu 2002, time-domain passivity control). Over one
contact, from the tick in which a tool first feels something to the one in which it feels nothing, let

    E = Σ −(F·Δx + M·Δθ)

be what the hand put in and did not get back yet, and E_most the most that was. The hand feels force and torque times

    g = min(1, E / (ε·E_most)),

so that E never falls below 0: the last ε of what was put in is given back more and more weakly. What tissue does is not
changed. Jaws that hold tissue may be drawn by it, whoever stretched it before: they feel all of it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Vector3
from viscera.instruments import Tool
from viscera.instruments.turning import dot

LAST = 0.15
"""ε: the share of the work that is given back more and more weakly."""
LEAST = 1.0e-7
"""A contact that never took this much work is felt as it is [J]: a pulse under a hand that rests."""


class Passive:
    """Of one tool."""

    def __init__(self) -> None:
        self.state = np.zeros(6)
        """E and E_most [J], and how the tool was turned a tick ago (a quaternion, 0 before its first). Part of the
        world's state."""

    def rest(self) -> None:
        """The tool is out of the body."""
        self.state[:] = 0.0

    def share(self, tool: Tool, force: Vector3, torque: Vector3, *, holds: bool) -> float:
        """g of this tick, for what tissue does to the tool in it."""
        way, turn = tool.tips[1] - tool.tips[0], _turned(self.state[2:], tool.orientation)
        self.state[2:] = tool.orientation
        if holds or not (any(force) or any(torque)):
            self.state[:2] = 0.0
            return 1.0
        work = -dot(force, way) - dot(torque, turn)
        energy, most = float(self.state[0]), float(self.state[1])
        share = 1.0 if most < LEAST else min(1.0, energy / (LAST * most))
        if work < 0.0 and energy > 0.0:
            share = min(share, energy / -work)
        energy += share * work
        self.state[0] = energy if most < LEAST else max(energy, 0.0)
        self.state[1] = max(most, energy)
        return share


def _turned(before: NDArray[np.float64], now: NDArray[np.float64]) -> Vector3:
    """Axis times angle of a small turn [rad]."""
    x, y, z, w = before.tolist()
    a, b, c, d = now.tolist()
    twice = math.copysign(2.0, w * d + x * a + y * b + z * c)
    return (
        twice * (w * a - x * d + y * c - z * b),
        twice * (w * b - y * d + z * a - x * c),
        twice * (w * c - z * d + x * b - y * a),
    )
