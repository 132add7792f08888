"""Who waits for whom: a hand is held by two processes that must wake when they are due, whatever else runs.

Linux gives real-time priority to those who may have it (root, `CAP_SYS_NICE`, or an `rtprio` limit of 2 or more in
/etc/security/limits.conf). Without it everything works as well as the machine is idle.
"""

from __future__ import annotations

import os
import threading

HAPTIC_LEVEL = 2
"""The haptic loop sleeps most of the time, and comes first."""
SESSION_LEVEL = 1

TOO_SLOW = 0.9
"""A session below this real-time factor steps back: nobody feels it, and its page would starve."""
TOO_BUSY = 0.85
"""So does one whose ticks take more than this share of the time: there would be nothing left for the page."""
FAST_ENOUGH = 0.97
CALM_FRAMES = 250
"""It steps forward again after so many frames (four seconds) above this factor."""


def come_first(level: int, leave_out: tuple[str, ...] = ()) -> bool:
    """Real-time priority for the threads of this process, but for those of these names; False where the system does
    not allow it."""
    left_out = {thread.native_id for thread in threading.enumerate() if thread.name in leave_out}
    return _schedule("SCHED_RR", level, left_out)


def step_back() -> bool:
    """Ordinary priority again."""
    return _schedule("SCHED_OTHER", 0, set())


def _schedule(policy: str, level: int, left_out: set[int | None]) -> bool:
    try:
        for task in os.listdir("/proc/self/task"):
            if int(task) not in left_out:
                os.sched_setscheduler(int(task), getattr(os, policy), os.sched_param(level))
    except (AttributeError, OSError):
        return False
    return True


class SessionPriority:
    """First as long as the world keeps up and leaves room for others."""

    LEAVE_OUT = ("viscera-recorder",)
    """Compressing a checkpoint can wait."""

    def __init__(self) -> None:
        self.first = come_first(SESSION_LEVEL, self.LEAVE_OUT)
        self._possible = self.first
        self._calm = 0

    def watch(self, factor: float, load: float) -> None:
        """Once per frame, with the real-time factor (0 while that is not known) and the share of time that ticks
        take."""
        if self.first and (0.0 < factor < TOO_SLOW or load > TOO_BUSY):
            step_back()
            self.first = False
            self._calm = 0
        elif self._possible and not self.first:
            self._calm = self._calm + 1 if factor >= FAST_ENOUGH and load <= TOO_BUSY else 0
            if self._calm >= CALM_FRAMES:
                self.first = come_first(SESSION_LEVEL, self.LEAVE_OUT)
