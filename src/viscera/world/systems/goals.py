"""A drill: what has to be reached, and how long it took. The world adds it where a scenario has goals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viscera.timing import FRAME
from viscera.view import Goal, Measure
from viscera.world.system import Kept, Moment, System

LOOK = 8
"""Frames between two looks at the measures."""

TIME = Measure("time", "Time", "s", "Since the start or the last reset; it stops when all goals are reached.", digits=1)


def goals_clock(goals: Sequence[Goal]) -> System:
    """Counts the time until all goals are met at once; after all systems whose measures it looks at."""
    clock = np.zeros(2, dtype=np.int64)
    """Frames so far, and whether all is reached."""

    def frame(now: Moment) -> None:
        if clock[1]:
            return
        clock[0] += 1
        if clock[0] % LOOK == 0:
            values = now.measures()
            clock[1] = all(goal.met(values[goal.measure]) for goal in goals)

    kept = Kept({"clock": clock})
    return System(
        name="goals",
        frame=frame,
        save=kept.save,
        load=kept.load,
        measures=lambda: [(TIME, FRAME * int(clock[0]))],
        holds=clock,
    )
