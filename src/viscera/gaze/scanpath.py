"""A seeded model of how people look at a picture: fixations, and saccades between them.

Fixations last some 0.33 s (gamma distributed, 0.1 to 1 s), as when people look at scenes (Henderson 2003,
doi:10.1016/j.tics.2003.09.006: about 330 ms). A saccade over an angle A lasts (Carpenter 1988: the main sequence)

    D = 2.2 ms/° · A + 21 ms

and follows the smoothest course (minimum jerk), whose highest speed is 1.875 A/D: 440 °/s at 10°, where people reach
300 to 500 °/s (Bahill, Clark and Stark 1975, doi:10.1016/0025-5564(75)90075-9). While it fixates the eye trembles and
drifts by a tenth of a degree. Where the next fixation is, is chosen by `pick`; without, anywhere in the middle of the
view. Everything follows from the seed.

It stands in for the seven participants of Elmasdotter §4.3, who were to look wherever they liked on the water.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from viscera.errors import InputError
from viscera.gaze.attention import Sample

HEIGHT_DEGREES = 27.0
"""Angle that the view's height is seen under: 29 cm from 60 cm away, a common screen."""
FIXATION_MEAN, FIXATION_SHAPE = 0.33, 4.0
"""[s], and the gamma distribution's shape."""
SHORTEST, LONGEST = 0.1, 1.0
"""Fixations [s]."""
PER_DEGREE, LEAST = 2.2e-3, 21e-3
"""Of a saccade's duration [s/°], [s]."""
TREMOR = 0.1
"""[°]"""

Place = tuple[float, float]


class ScanPath:
    """One person's gaze. Times must not go back."""

    def __init__(
        self, seed: int, aspect: float = 16.0 / 9.0, pick: Callable[[np.random.Generator], Place] | None = None
    ):
        """`pick` gives the place of the next fixation, 0 to 1 from the top left; it is called as a saccade begins."""
        if not (math.isfinite(aspect) and aspect > 0.0):
            raise InputError(f"aspect = {aspect} is not possible.", "Give width over height, above 0.")
        self._rng = np.random.default_rng([1789, seed])
        self._aspect = aspect
        self._pick = pick or _anywhere
        self._from = self._to = np.asarray(self._pick(self._rng), dtype=np.float64)
        self._begins = 0.0
        self._lands = 0.0
        self._leaves = self._fixation()
        self.fixations: list[float] = []
        """How long each fixation so far has lasted [s]."""
        self.saccades: list[tuple[float, float]] = []
        """Angle [°] and duration [s] of each saccade so far."""

    def sample(self, time: float) -> Sample:
        while time >= self._leaves:
            self._jump()
        done = 1.0 if time >= self._lands else (time - self._begins) / (self._lands - self._begins)
        # Minimum jerk: at rest at both ends.
        share = done**3 * (10.0 - 15.0 * done + 6.0 * done**2)
        place = self._from + share * (self._to - self._from)
        tremble = self._tremble(time) if done >= 1.0 else np.zeros(2)
        x, y = place + tremble
        return Sample(float(x), float(y))

    def close(self) -> None:
        """Nothing to let go of."""

    def _jump(self) -> None:
        self.fixations.append(self._leaves - self._lands)
        self._from, self._to = self._to, np.asarray(self._pick(self._rng), dtype=np.float64)
        way = (self._to - self._from) * (self._aspect, 1.0)
        angle = HEIGHT_DEGREES * float(np.hypot(*way))
        lasts = PER_DEGREE * angle + LEAST
        self.saccades.append((angle, lasts))
        self._begins = self._leaves
        self._lands = self._begins + lasts
        self._leaves = self._lands + self._fixation()

    def _fixation(self) -> float:
        drawn = self._rng.gamma(FIXATION_SHAPE, FIXATION_MEAN / FIXATION_SHAPE)
        return float(min(max(drawn, SHORTEST), LONGEST))

    def _tremble(self, time: float) -> np.ndarray:
        """Slow drift and tremor, a function of time alone: it does not depend on how often one asks."""
        angle = np.array([math.sin(31.0 * time) + math.sin(7.3 * time), math.cos(27.0 * time) + math.sin(5.1 * time)])
        return 0.5 * TREMOR / HEIGHT_DEGREES * angle / (self._aspect, 1.0)


def _anywhere(rng: np.random.Generator) -> Place:
    """In the middle of the view, where people look first."""
    x, y = np.clip(rng.normal(0.5, 0.15, 2), 0.05, 0.95)
    return float(x), float(y)


def seven(aspect: float, pick: Callable[[np.random.Generator], Place] | None = None) -> list[ScanPath]:
    """As many as looked in the source's study."""
    return [ScanPath(seed, aspect, pick) for seed in range(7)]
