"""A drill: what has to be reached, and how long it took. The world adds it where a scenario has goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.params import TICK
from viscera.view import Goal, Measure, Particles, Texture

if TYPE_CHECKING:
    from viscera.world.world import World

LOOK = 8
"""Frames between two looks at the measures."""

TIME = Measure("time", "Time", "s", "Since the start or the last reset; it stops when all goals are reached.", digits=1)


class Drill:
    """Counts the time until all goals are met at once. A system of a world, after all whose measures it looks at."""

    name = "goals"

    def __init__(self, goals: Sequence[Goal], ticks_per_frame: int) -> None:
        self._goals = goals
        self._frame = TICK * ticks_per_frame
        self._state = np.zeros(2, dtype=np.int64)
        """Frames so far, and whether all is reached."""

    @property
    def finished(self) -> bool:
        return bool(self._state[1])

    def frame(self, world: World) -> None:
        if self._state[1]:
            return
        self._state[0] += 1
        if self._state[0] % LOOK == 0:
            values = world.measure_values()
            self._state[1] = all(goal.met(values[goal.measure]) for goal in self._goals)

    def arrays(self) -> dict[str, Any]:
        return {"clock": self._state}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._state[:] = arrays["clock"]

    def textures(self) -> list[tuple[Texture, Any]]:
        return []

    def particles(self) -> list[tuple[Particles, Any, int]]:
        return []

    def measures(self) -> list[tuple[Measure, float]]:
        return [(TIME, self._frame * int(self._state[0]))]
