"""Real time: one tick per millisecond of wall clock, as near as an ordinary operating system allows."""

from __future__ import annotations

import time

import numpy as np

from viscera.timing import TICK
from viscera.waiting import Waiter

MAX_BACKLOG_S = 0.03
"""After a stall the world runs faster than real time until it has made up this much, not more [s]."""

WINDOW = 32
"""Frames over which the real-time factor is taken."""


class Pacer:
    """Holds a loop of ticks to the wall clock. No tick is ever skipped: a world that is too slow falls behind."""

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self._waiter = Waiter()
        self.due = 0.0
        """When the next tick should begin [s of `time.perf_counter`]."""
        self.restart()

    def restart(self) -> None:
        """Begins anew from now: after a pause, or with another speed."""
        self.due = time.perf_counter()

    def wait(self) -> float:
        """Call after each tick; returns when the next one is due. Gives back the time [s]."""
        self.due += TICK / self.speed
        now = time.perf_counter()
        left = self.due - now
        if left <= 0.0:
            if left < -MAX_BACKLOG_S:
                self.due = now - MAX_BACKLOG_S
            return now
        return self._waiter.until(self.due)


class RealTimeFactor:
    """Simulated seconds per second of wall clock over the last frames, pauses left out."""

    def __init__(self) -> None:
        self._wall = np.zeros(WINDOW)
        self._simulated = np.zeros(WINDOW)
        self._count = 0
        self._last: tuple[float, int] | None = None

    def pause(self) -> None:
        """The time until the next `add` does not count."""
        self._last = None

    def add(self, now: float, tick: int) -> None:
        """The world had made `tick` ticks at `now` [s]; after a reset it counts from 0 again."""
        if self._last is not None and tick >= self._last[1]:
            index = self._count % WINDOW
            self._wall[index] = now - self._last[0]
            self._simulated[index] = (tick - self._last[1]) * TICK
            self._count += 1
        self._last = (now, tick)

    def value(self) -> float:
        wall = float(self._wall.sum())
        return float(self._simulated.sum()) / wall if wall > 0.0 else 0.0
