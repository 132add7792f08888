"""The agent's hand: from an action to a tool.

Two controls, both rates as shares −1 … 1 of stated limits, held over one action:

    trocar      pan and tilt of the shaft about the trocar, spin about the shaft, depth of the tip below the trocar
    cartesian   the tip along x, y and z, and spin

With d = (sin pan · cos tilt, sin tilt, −cos pan · cos tilt) the tip is at trocar + depth · d: pan and tilt 0 hang
straight down. The tip stays in the task's workspace: pan, tilt and depth are those of the tip that was brought back
into it. Where the tool is pressed, the last number of an action is its activation: above the dead zone the handle
closes, below minus the dead zone it opens, between both it stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.inputs import ToolInput, Vector3
from viscera.instruments.trocar import SHALLOWEST, deepest, through_trocar

Control = Literal["trocar", "cartesian"]
CONTROLS: tuple[Control, ...] = ("trocar", "cartesian")

MOST_SPIN = math.pi
"""To either side [rad]."""
SPREAD = 0.5 * math.pi
"""Pan and tilt are told to the agent as shares of this [rad]."""


@dataclass(frozen=True)
class Limits:
    """What an action of 1 does in a second."""

    pan: float = 1.0
    """And tilt [rad/s]: 0.2 m below the trocar, 0.2 m/s."""
    spin: float = 3.0
    """[rad/s]"""
    depth: float = 0.2
    """[m/s]"""
    speed: float = 0.2
    """Along each axis, cartesian [m/s]."""
    dead_zone: float = 0.25
    """Of the activation."""


@dataclass(frozen=True)
class Space:
    """A box in which the tip works [m]."""

    low: Vector3
    high: Vector3

    def clamped(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(point, self.low, self.high)

    def share(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """−1 … 1 from wall to wall."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        return 2.0 * (point - low) / (high - low) - 1.0

    def at(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """The place of such a share [m]."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        return low + 0.5 * (share + 1.0) * (high - low)


class Arm:
    """One tool, moved by actions. Where it is wanted; tissue may keep the tool elsewhere."""

    def __init__(
        self,
        tool: int,
        control: Control,
        limits: Limits,
        space: Space,
        trocar: Vector3,
        length: float,
        activates: bool,
    ) -> None:
        if control not in CONTROLS:
            raise InputError(f"control = {control!r} is not known.", f"There are: {', '.join(CONTROLS)}.")
        self.tool, self.control, self.limits, self.space = tool, control, limits, space
        self.trocar, self._deepest, self.activates = trocar, deepest(length), activates
        self.tip = np.zeros(3)
        self.spin = 0.0
        self.closed = False

    @property
    def size(self) -> int:
        """Numbers in an action."""
        return 4 + int(self.activates)

    def place(self, tip: NDArray[np.float64], spin: float = 0.0) -> None:
        """Begins there, open."""
        self.tip[:] = self.space.clamped(tip)
        self.spin, self.closed = spin, False

    @property
    def pose(self) -> tuple[float, float, float, float]:
        """Pan, tilt, spin [rad] and depth [m]."""
        way = self.tip - self.trocar
        depth = float(np.linalg.norm(way))
        x, y, z = (way / max(depth, 1e-9)).tolist()
        return math.atan2(x, -z), math.asin(min(max(y, -1.0), 1.0)), self.spin, depth

    def state(self) -> NDArray[np.float64]:
        """Pan, tilt, spin, depth, tip and whether it is closed, all about −1 … 1; eight numbers."""
        pan, tilt, spin, depth = self.pose
        reach = 2.0 * (depth - SHALLOWEST) / (self._deepest - SHALLOWEST) - 1.0
        turned = (pan / SPREAD, tilt / SPREAD, spin / MOST_SPIN, reach)
        return np.array([*turned, *self.space.share(self.tip), 1.0 if self.closed else -1.0])

    def move(self, action: NDArray[np.float64], seconds: float) -> None:
        """What an action of so many seconds does."""
        a, b, c, d = np.clip(action[:4], -1.0, 1.0).tolist()
        most = self.limits
        if self.control == "trocar":
            pan, tilt, _, depth = self.pose
            pan, tilt = pan + a * most.pan * seconds, tilt + b * most.pan * seconds
            depth = min(max(depth + d * most.depth * seconds, SHALLOWEST), self._deepest)
            way = (math.sin(pan) * math.cos(tilt), math.sin(tilt), -math.cos(pan) * math.cos(tilt))
            self.tip[:] = self.space.clamped(np.asarray(self.trocar) + depth * np.asarray(way))
            turn = c
        else:
            self.tip[:] = self.space.clamped(self.tip + most.speed * seconds * np.array([a, b, c]))
            turn = d
        self.spin = min(max(self.spin + turn * most.spin * seconds, -MOST_SPIN), MOST_SPIN)
        if self.activates and abs(float(action[4])) > most.dead_zone:
            self.closed = float(action[4]) > 0.0

    def input(self) -> ToolInput:
        """What the hand tells the world."""
        turn = np.array([0.0, 0.0, math.sin(0.5 * self.spin), math.cos(0.5 * self.spin)])
        if self.control == "trocar":
            through_trocar(turn, self.tip, self.trocar)
        x, y, z = self.tip.tolist()
        qx, qy, qz, qw = turn.tolist()
        return ToolInput(self.tool, (x, y, z), (qx, qy, qz, qw), grip=1.0 if self.closed else 0.0)
