"""Anonymous shared memory that is handed to a process while that is being spawned.

It has no name: it is a memory file whose descriptor travels. So no resource tracker can unlink it under a reader, and
nothing is left behind when all processes are killed.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from multiprocessing import reduction
from typing import Any


class Segment:
    """A piece of memory that several processes see. Whoever makes it gives it its size."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = _anonymous_file() if descriptor is None else descriptor
        self._memory: mmap.mmap | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (reduction.DupFd(self._descriptor),)

    def resize(self, size: int) -> None:
        """Gives the memory its size [bytes]; only its maker does that, once, before anyone maps it."""
        os.ftruncate(self._descriptor, size)

    def map(self, size: int) -> memoryview:
        if self._memory is None:
            self._memory = mmap.mmap(self._descriptor, size)
        return memoryview(self._memory)

    def close(self) -> None:
        """Lets go of the descriptor. The mapping goes when the last array in it goes."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._memory = None


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("viscera")
    with tempfile.TemporaryFile(prefix="viscera") as file:
        return os.dup(file.fileno())


def _attach(handed: Any) -> Segment:
    return Segment(handed.detach())
