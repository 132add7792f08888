"""How long each part of a frame takes, and each tick."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from viscera.timing import TICKS_PER_FRAME
from viscera.view import TickTimes

now = time.perf_counter

REMEMBERED = 8192
"""Ticks whose times are told."""
LOOK = 500
"""Ticks between two looks at them."""
LATE = 2e-3
"""A tick that takes longer has its force cut: a hand must not be pushed by what is over [s]."""


class Stopwatch:
    """Wall time of the parts that a world has, mean per frame; and of the last ticks, one by one."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._total = dict.fromkeys(parts, 0.0)
        self._ticks = np.zeros(REMEMBERED)
        self.ticks = 0
        self._told = TickTimes()
        self._told_at = 0

    def add(self, part: str, since: float) -> None:
        """The part has run since then, as `now` said."""
        if part in self._total:
            self._total[part] += now() - since

    def tick(self, since: float) -> None:
        """A tick has run since then."""
        self._ticks[self.ticks % REMEMBERED] = now() - since
        self.ticks += 1

    def mean_ms(self) -> dict[str, float]:
        frames = max(self.ticks / TICKS_PER_FRAME, 1e-9)
        return {name: 1e3 * seconds / frames for name, seconds in self._total.items()}

    def tick_times(self) -> TickTimes:
        """Of the last ticks, looked at now and then: sorting them takes as long as a tick."""
        if self._told_at > 0 and self.ticks - self._told_at < LOOK:
            return self._told
        last = self._ticks[: min(self.ticks, REMEMBERED)]
        if not len(last):
            return self._told
        p50, p99, p999 = np.percentile(last, [50.0, 99.0, 99.9]).tolist()
        late = float((last > LATE).mean())
        self._told = TickTimes(1e3 * p50, 1e3 * p99, 1e3 * p999, 1e3 * float(last.max()), late)
        self._told_at = self.ticks
        return self._told
