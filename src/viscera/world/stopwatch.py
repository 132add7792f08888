"""How long each part of a frame takes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from viscera.timing import TICKS_PER_FRAME

now = time.perf_counter


class Stopwatch:
    """Wall time of the parts that a world has, mean per frame."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._total = dict.fromkeys(parts, 0.0)
        self.ticks = 0

    def add(self, part: str, since: float) -> None:
        """The part has run since then, as `now` said."""
        if part in self._total:
            self._total[part] += now() - since

    def mean_ms(self) -> dict[str, float]:
        frames = max(self.ticks / TICKS_PER_FRAME, 1e-9)
        return {name: 1e3 * seconds / frames for name, seconds in self._total.items()}
