"""A sample of gaze, a source of them, and attention: a gaze that is lost stays for a while, then is gone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

HOLD = 0.5
"""How long a lost gaze stays where it was [s]: longer than a blink, which takes 0.1 to 0.4 s."""
SILENT = 0.2
"""A device that has said nothing for so long has lost the eye [s]: slow trackers give 30 samples a second."""


@dataclass(frozen=True)
class Sample:
    """Where the eye looks at a moment."""

    x: float
    y: float
    """0 to 1 from the top left of the view; beyond that, beside it."""
    valid: bool = True
    """False while the tracker does not see the eye."""


class Source(Protocol):
    """What gives gaze. `sample` is called with times that never go back."""

    def sample(self, time: float) -> Sample | None:
        """At this time since the start [s]; None where nothing is known yet."""

    def close(self) -> None:
        """Lets go of the device."""


class Newest:
    """What a device said last. It counts as lost once the device has been silent for `SILENT` seconds: one whose cable
    was pulled must not look at the same place for ever. May be filled from another thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: tuple[Sample, float] | None = None

    def put(self, sample: Sample) -> None:
        self._held = sample, self._clock()

    def get(self) -> Sample | None:
        """None before the first."""
        held = self._held
        if held is None:
            return None
        sample, when = held
        return sample if self._clock() - when <= SILENT else replace(sample, valid=False)


class Attention:
    """Keeps the last place while the gaze is lost, for `HOLD` seconds; after that there is none."""

    def __init__(self, hold: float = HOLD) -> None:
        self._hold = hold
        self.seen = np.array([0.0, 0.0, -np.inf])
        """Last place where the gaze was valid, and when [s]: all that there is to save."""

    def update(self, time: float, sample: Sample | None) -> None:
        if sample is not None and sample.valid and math.isfinite(sample.x) and math.isfinite(sample.y):
            self.seen[:] = sample.x, sample.y, time

    def place(self, time: float) -> tuple[float, float] | None:
        """Where to refine now; None once the gaze has been lost for too long, or was never there."""
        x, y, when = (float(value) for value in self.seen)
        return (x, y) if time - when <= self._hold else None
