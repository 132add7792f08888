"""Work beside the ticks: a thread that does one piece at a time, while the ticks go on.

The thread is started by the first piece, and ends when its owner is closed or forgotten.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import weakref
from collections.abc import Callable

Work = Callable[[], None]

NICE = 10
"""How far threads beside the ticks of a live world step back."""
LAST = 5.0
"""At the end of the program, how long it waits for a piece of work [s]."""

_threads: weakref.WeakKeyDictionary[threading.Thread, queue.SimpleQueue[Work | None]] = weakref.WeakKeyDictionary()
"""All that have not been forgotten, with their jobs."""


class Beside:
    """One piece of work at a time, in a thread called `name`; or, `inline`, in the caller's own before `start` returns:
    the same results without waiting for another thread to be scheduled."""

    def __init__(self, name: str, inline: bool = False) -> None:
        self.name, self._inline = name, inline
        self._jobs: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._done = threading.Event()
        self._done.set()
        self._failed: list[BaseException] = []
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        return not self._done.is_set()

    @property
    def mine(self) -> bool:
        """Whether it is this thread that asks."""
        return self._thread is threading.current_thread()

    def start(self, work: Work) -> None:
        """Does it in the thread; what was started before must be done."""
        if self._inline:
            work()
            return
        if self._thread is None:
            self._thread = threading.Thread(
                target=_do, args=(self._jobs, self._done, self._failed), name=self.name, daemon=True
            )
            self._thread.start()
            _threads[self._thread] = self._jobs
            weakref.finalize(self, self._jobs.put, None)
        self._done.clear()
        self._jobs.put(work)

    def wait(self) -> None:
        """Until it is done; raises what it raised."""
        self._done.wait()
        if self._failed:
            raise self._failed.pop()

    def settle(self) -> None:
        """Until it is done, whatever it raised."""
        self._done.wait()

    def step_back(self) -> None:
        """Whatever else runs on this machine comes first, where the system knows of it."""

        def nicer() -> None:
            with contextlib.suppress(AttributeError, OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)

        self.wait()
        self.start(nicer)
        self.wait()


def _do(jobs: queue.SimpleQueue[Work | None], done: threading.Event, failed: list[BaseException]) -> None:
    while (work := jobs.get()) is not None:
        try:
            work()
        except BaseException as error:  # handed to whoever waits for it
            failed.append(error)
        # A piece that is over must not keep its world alive.
        del work
        done.set()


@atexit.register
def _end_all() -> None:
    """Threads end before the interpreter does: one that comes back from native code when it is gone aborts the
    process."""
    for jobs in list(_threads.values()):
        jobs.put(None)
    for thread in list(_threads):
        thread.join(LAST)
