"""Who waits for whom: a hand is held by two processes that must wake when they are due, whatever else runs.

Linux gives real-time priority to those who may have it (root, `CAP_SYS_NICE`, or an `rtprio` limit of 2 or more in
/etc/security/limits.conf). Without it everything works as well as the machine is idle.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from viscera.waiting import wake_early

HAPTIC_LEVEL = 2
"""The haptic loop sleeps most of the time, and comes first."""
SESSION_LEVEL = 1

TOO_BUSY = 0.85
"""A session that takes more than this share of all cores steps back: its page would starve."""
LOOK_S = 1.0
"""How often that is looked at [s]."""
SHORTEST_REST_S, LONGEST_REST_S = 4.0, 64.0
"""It comes first again after a rest that doubles each time [s]."""


def come_first(level: int, leave_out: tuple[str, ...] = ()) -> bool:
    """Real-time priority for the threads of this process, but for those whose names begin so; False where the system
    does not allow it."""
    left_out = {thread.native_id for thread in threading.enumerate() if thread.name.startswith(leave_out)}
    return _schedule("SCHED_RR", level, left_out)


def step_back() -> bool:
    """Ordinary priority again; the thread that asks still wakes before the others."""
    done = _schedule("SCHED_OTHER", 0, set())
    wake_early()
    return done


def _schedule(policy: str, level: int, left_out: set[int | None]) -> bool:
    try:
        for task in os.listdir("/proc/self/task"):
            if int(task) not in left_out:
                os.sched_setscheduler(int(task), getattr(os, policy), os.sched_param(level))
    except (AttributeError, OSError):
        return False
    return True


class SessionPriority:
    """First as long as there is something left for others."""

    LEAVE_OUT = ("viscera-recorder", "viscera-frame", "viscera-show")
    """Compressing a checkpoint can wait, and so can blood and the picture."""

    def __init__(self, now: float, used: Callable[[], float] = time.process_time) -> None:
        """`used` tells how much processor time this process has used [s]."""
        self._used = used
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._rest_s = SHORTEST_REST_S
        self._rest_until = 0.0
        self._come_first(now)
        self._possible = self.first

    def watch(self, now: float) -> None:
        """Once per frame, with the time [s]."""
        if self.first:
            if now - self._since >= LOOK_S:
                self._look(now)
        elif self._possible and now >= self._rest_until:
            self._come_first(now)

    def _look(self, now: float) -> None:
        used = self._used()
        load = (used - self._before) / ((now - self._since) * self._cores)
        self._since, self._before = now, used
        if load > TOO_BUSY:
            step_back()
            self.first = False
            self._rest_until = now + self._rest_s
            self._rest_s = min(2.0 * self._rest_s, LONGEST_REST_S)

    def _come_first(self, now: float) -> None:
        self.first = come_first(SESSION_LEVEL, self.LEAVE_OUT)
        self._since, self._before = now, self._used()
