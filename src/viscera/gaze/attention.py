"""A sample of gaze, a source of them, and attention: a gaze that is lost stays for a while, then is gone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

HOLD = 0.5
"""How long a lost gaze stays where it was [s]: longer than a blink, which takes 0.1 to 0.4 s."""


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


class Attention:
    """Keeps the last place while the gaze is lost, for `HOLD` seconds; after that there is none."""

    def __init__(self, hold: float = HOLD) -> None:
        self._hold = hold
        self._last: Sample | None = None
        self._seen = -math.inf

    def update(self, time: float, sample: Sample | None) -> None:
        if sample is not None and sample.valid and math.isfinite(sample.x) and math.isfinite(sample.y):
            self._last, self._seen = sample, time

    def place(self, time: float) -> tuple[float, float] | None:
        """Where to refine now; None once the gaze has been lost for too long, or was never there."""
        if self._last is None or time - self._seen > self._hold:
            return None
        return self._last.x, self._last.y
