"""Waiting until a moment, to a few microseconds: sleep most of the way, look at the clock for the rest.

A sleep ends late, by 60 µs on a quiet machine and by some 400 µs in a virtual one. How late is learned while it runs:
the wait ends its sleep as much earlier as the latest sleep of the last second or so was late. Looking at the clock
takes a core, so that is allowed only where there are cores to spare, and for a real-time thread never for so long that
Linux would stop it for using its core all the time (95 %, `sched_rt_runtime_us`).

Where other threads want the core too, `wake_early` brings a thread that sleeps most of the time before those that work
through: since version 6.12 Linux lets a thread ask for short slices of time, and whoever asks for less goes first.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable

LEAST_SPIN = 60e-6
"""Always spent looking at the clock [s]."""

MOST_SPIN = 900e-6
"""With cores to spare [s]: almost all of a tick."""

MOST_REAL_TIME_SPIN = 450e-6
"""The same for a thread of real-time priority [s]."""

SPARE_CORES = 4
"""From so many cores on there are some to spare: session, haptic loop, server and page want one each."""

MARGIN = 1.25
"""Over what was learned."""

FORGET = 0.999
"""Per wait: what was learned halves in 0.7 s of a thousand waits a second."""


SHORT_SLICE_NS = 300_000
"""What a thread that must wake on time asks for [ns]; usual are 1 to 3 ms."""
_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""Numbers of Linux's system call `sched_setattr`, which Python has no name for."""


class _Attributes(ctypes.Structure):
    """`struct sched_attr`, first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def wake_early() -> bool:
    """This thread, of ordinary priority, asks for short slices; False where the system knows none. Threads that it
    starts later take after it."""
    number = _SET_ATTRIBUTES.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    wanted = _Attributes(size=ctypes.sizeof(_Attributes), nice=nice, runtime=SHORT_SLICE_NS)
    return ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, ctypes.byref(wanted), 0) == 0


def spare_cores() -> bool:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores >= SPARE_CORES


def most_spin() -> float:
    """How long this thread may look at the clock [s]; it must have its priority by now."""
    if not spare_cores():
        return LEAST_SPIN
    policy = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else 0
    return MOST_REAL_TIME_SPIN if policy in _REAL_TIME else MOST_SPIN


_REAL_TIME = tuple(getattr(os, name) for name in ("SCHED_FIFO", "SCHED_RR") if hasattr(os, name))


class Waiter:
    """Waits for one thread. `clock` is in seconds, `sleep` takes them."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
        most: float | None = None,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._most = most_spin() if most is None else most
        self.spin = LEAST_SPIN
        """How long before the moment the sleep should end [s]."""
        self._late = 0.0

    def until(self, due: float) -> float:
        """Returns at `due` or, when that is past, at once; gives back the time [s]."""
        clock = self._clock
        now = clock()
        if due - now > self.spin:
            self._sleep(due - now - self.spin)
            woken = clock()
            self._late = max(woken - (due - self.spin), FORGET * self._late)
            self.spin = min(self._most, max(LEAST_SPIN, MARGIN * self._late))
        while (now := clock()) < due:
            pass
        return now
