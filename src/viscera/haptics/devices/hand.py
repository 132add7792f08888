"""A simulated hand that holds a device: it follows a way of its own and gives when it is pushed.

    m ẍ = k (p − x) + b (ṗ − ẋ) + F − R,   |R| ≤ R₀ on each axis, against ẋ

x is where the device is, p where the hand means to be, F what the device pushes, R the dry friction of its joints. m is
the hand and the moving parts together. The numbers are of the order of what is measured (a whole arm: 0.55 kg,
6.5 N·s/m, 135 N/m, doi:10.1038/srep18004, figure 3; ours is a lighter hand with a firmer grip). They are for testing a
loop and say nothing about people.

Within a step p moves in a straight line and F stays, so the step is solved exactly and no error of ours adds or takes
energy: a hand that trembles does so because of the loop. R is what stops the hand by the end of the step, or R₀ where
that is less, so it takes energy and never gives any.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.haptics.device import NO_TURN, ZERO, Pose
from viscera.inputs import Vector3

Way = Callable[[float], Vector3]
"""Where the hand means to be [m] at a time [s]."""

STEP = 0.00025
"""[s]; in one of these the way is a straight line."""

LONGEST_PAUSE = 0.05
"""A loop that was away for longer finds a hand that waited [s]."""


@dataclass(frozen=True)
class HandParams:
    mass: float = 0.15
    """Hand and moving parts of the device [kg]."""
    stiffness: float = 400.0
    """Of the grip [N/m]; 0 for a device that nobody holds."""
    damping: float = 6.0
    """Of the grip and the device [N·s/m]."""
    resolution: float = 0.0
    """Steps of the device's encoders [m]; 0 for ideal ones. A Touch has 0.055 mm."""
    friction: float = 0.0
    """R₀, dry friction of the device [N]; 0 for an ideal one."""
    peak_force: float = 10.0
    """[N]"""

    def __post_init__(self) -> None:
        for name in ("mass", "stiffness", "damping", "resolution", "friction"):
            value, smallest = getattr(self, name), 1e-4 if name == "mass" else 0.0
            if not (math.isfinite(value) and value >= smallest):
                raise InputError(f"{name} = {value!r} is not allowed.", f"It is at least {smallest:g}.")


class HandDevice:
    """A hand on its way. With a `period` [s] each `read` is that much later, for tests; without one the wall clock
    counts, for a live loop."""

    def __init__(self, way: Way, params: HandParams | None = None, period: float | None = None) -> None:
        self.name = "hand"
        self.params = params or HandParams()
        self.peak_force = self.params.peak_force
        self.way = way
        self.time = 0.0
        """On the way [s]."""
        self.position = list(way(0.0))
        """[m]"""
        self.velocity = [0.0, 0.0, 0.0]
        """[m/s]"""
        self.force: Vector3 = ZERO
        """What the device pushes [N]."""
        self.work = 0.0
        """What the device has done to the hand since it was opened [J]. A passive device gives back no more than it
        was given: never more than zero once it is where it started."""
        self._period = period
        self._transition = _transition(self.params)
        self._goal = way(0.0)
        self._clock = 0.0
        self._rest = 0.0

    def open(self) -> None:
        self.time = self.work = self._rest = 0.0
        self._goal = self.way(0.0)
        self.position[:] = self._goal
        self.velocity[:] = ZERO
        self.force = ZERO
        self._clock = time.perf_counter()

    def read(self) -> Pose:
        now = time.perf_counter()
        passed = self._period if self._period is not None else min(now - self._clock, LONGEST_PAUSE)
        self._clock = now
        self._rest += passed
        while self._rest >= STEP * (1.0 - 1e-9):
            self._rest -= STEP
            self._step()
        x, y, z = self.position
        step = self.params.resolution
        if step > 0.0:
            x, y, z = (round(value / step) * step for value in (x, y, z))
        return Pose((x, y, z), NO_TURN, time=now)

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        self.force = force

    def close(self) -> None:
        self.force = ZERO

    @property
    def energy(self) -> float:
        """Kinetic, and stored in the grip [J]."""
        speed = sum(v * v for v in self.velocity)
        stretch = sum((x - p) ** 2 for x, p in zip(self.position, self._goal, strict=True))
        return 0.5 * self.params.mass * speed + 0.5 * self.params.stiffness * stretch

    def _step(self) -> None:
        (a, b, c), (d, e, f) = self._transition
        self.time += STEP
        most = self.params.friction
        before, self._goal = self._goal, self.way(self.time)
        for axis in range(3):
            goal, push = self._goal[axis], self.force[axis]
            pace = (goal - before[axis]) / STEP
            off = self.position[axis] - before[axis]
            drift = self.velocity[axis] - pace
            total = push
            if most > 0.0:
                free = pace + d * off + e * drift + f * push
                total -= max(-most, min(most, free / f))
            moved = goal + a * off + b * drift + c * total
            self.work += push * (moved - self.position[axis])
            self.position[axis] = moved
            self.velocity[axis] = pace + d * off + e * drift + f * total


def _transition(params: HandParams) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """How one step changes (distance from the way, its rate), given (distance, rate, push): the exponential of the
    equation's matrix."""
    k, b, m = params.stiffness, params.damping, params.mass
    matrix = np.array([[0.0, 1.0, 0.0], [-k / m, -b / m, 1.0 / m], [0.0, 0.0, 0.0]]) * STEP
    (p, q, r), (s, t, u) = _exponential(matrix)[:2].tolist()
    return (p, q, r), (s, t, u)


def _exponential(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """By its series, on a fraction of the matrix so small that 12 terms fill a double; then squared back."""
    halvings = max(0, math.ceil(math.log2(max(float(np.abs(matrix).sum()), 1e-300))) + 4)
    fraction = matrix / 2.0**halvings
    result = term = np.eye(len(matrix))
    for order in range(1, 13):
        term = term @ fraction / order
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result


# --- ways ----------------------------------------------------------------------------------------------------------


def still(point: Vector3 = ZERO) -> Way:
    """A hand that stays [m]."""
    return lambda _time: point


def poke(
    depth: float,
    start: Vector3 = ZERO,
    direction: Vector3 = (0.0, 0.0, -1.0),
    seconds: float = 1.0,
    hold: float = 1.0,
    repeat: bool = True,
) -> Way:
    """Goes `depth` [m] that way in `seconds`, holds for `hold` [s], comes back as it went, waits as long."""
    length = math.hypot(*direction)
    if not length > 0.0 or not seconds > 0.0:
        raise InputError(f"poke({direction=}, {seconds=}) is not allowed.", "It needs a direction and a time.")
    unit = tuple(part / length for part in direction)
    whole = 2.0 * (seconds + hold)

    def way(moment: float) -> Vector3:
        t = moment % whole if repeat else min(moment, whole)
        if t < seconds:
            share = smooth(t / seconds)
        elif t < seconds + hold:
            share = 1.0
        else:
            share = 1.0 - smooth(min(1.0, (t - seconds - hold) / seconds))
        reach = depth * share
        return (start[0] + reach * unit[0], start[1] + reach * unit[1], start[2] + reach * unit[2])

    return way


def smooth(share: float) -> float:
    """From 0 to 1 with the least jerk, as hands move (Flash and Hogan 1985, doi:10.1523/JNEUROSCI.05-07-01688.1985)."""
    return share**3 * (10.0 - 15.0 * share + 6.0 * share * share)
