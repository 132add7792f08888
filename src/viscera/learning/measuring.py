"""How much a world's measures have grown since the last action, and spaces over organs: what most tasks need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viscera.learning.arm import Space
from viscera.learning.task import Vector
from viscera.view import Goal
from viscera.world import World


class Growth:
    """Of some measures of a world."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._world, self._names = world, tuple(names)
        self.values = self._look()

    def _look(self) -> dict[str, float]:
        now = self._world.measure_values()
        return {name: now[name] for name in self._names}

    def since(self) -> dict[str, float]:
        """By how much each has grown since this was asked last."""
        before, self.values = self.values, self._look()
        return {name: self.values[name] - before[name] for name in self._names}

    def met(self, goals: Sequence[Goal]) -> bool:
        """Whether these goals are met, of those that are about its measures."""
        mine = [goal for goal in goals if goal.measure in self.values]
        return all(goal.met(self.values[goal.measure]) for goal in mine)


def over_organ(world: World, below: float, above: float, rim: float = 0.05) -> Space:
    """Over an organ, from so far below its highest place to so far above [m], without a rim of such a share."""
    body = world.organs[0].body
    low, high = body.positions.min(axis=0), body.positions.max(axis=0)
    off = rim * (high - low)
    return Space(
        (float(low[0] + off[0]), float(low[1] + off[1]), float(high[2]) - below),
        (float(high[0] - off[0]), float(high[1] - off[1]), float(high[2]) + above),
    )


def nearest(tip: Vector, places: Vector) -> float:
    """From a tip to the nearest of some places, shape (n, 3) [m]; 0 where there are none."""
    return float(np.linalg.norm(places - tip, axis=1).min()) if len(places) else 0.0
