"""Python's garbage collection, kept out of what must be in time.

A collection of everything looks at every object that there is: 200 ms with a world, its programs and recordings in
memory, in whatever thread happens to make the object that brings it about. A loop that makes no cycles sets aside what
is there when it begins, and collects the little that others have left at moments of its own: often what is new, and
what has lasted once a minute.
"""

from __future__ import annotations

import gc
import time
from types import TracebackType

EACH = 5.0
"""Between two collections [s]."""
ALL = 12
"""Every so many of them looks also at what others have left over."""


class Collecting:
    """As a context: none comes by itself within it, and `look` makes those that are due."""

    def __init__(self) -> None:
        self._last, self._count = time.perf_counter(), 0

    def __enter__(self) -> Collecting:
        gc.collect()
        gc.freeze()
        gc.disable()
        self._last, self._count = time.perf_counter(), 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.enable()
        gc.unfreeze()

    def look(self, now: float) -> None:
        """Between two rounds of a loop: collects when it is time."""
        if now - self._last >= EACH:
            self._last, self._count = now, self._count + 1
            gc.collect(2 if self._count % ALL == 0 else 1)
