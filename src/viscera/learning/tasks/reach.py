"""Reach: bring the tip to a place in space above the tissue, without pushing on it."""

from __future__ import annotations

import numpy as np

from viscera.learning.arm import Limits, Space
from viscera.learning.besides import Batching
from viscera.learning.task import Acted, Task, Vector, Verdict
from viscera.world import World

WITHIN = 0.005
"""Of the target: then it is reached [m]."""
HIGH = 0.05
"""Of the workspace above the tissue [m]."""


def space(world: World) -> Space:
    """Over the tissue, down to where the probe touches it."""
    body = world.organs[0].body
    low, high = body.positions.min(axis=0), body.positions.max(axis=0)
    return Space(
        (float(low[0]), float(low[1]), float(high[2])), (float(high[0]), float(high[1]), float(high[2]) + HIGH)
    )


class Attempt:
    def __init__(self, world: World, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        self._target = space.at(rng.uniform(-0.9, 0.9, 3))
        self._tip = space.clamped(np.asarray(world.hands[TASK.tool].instrument.home))
        self._away = self._distance()

    def _distance(self) -> float:
        return float(np.linalg.norm(self._target - self._tip))

    def goal(self) -> Vector:
        """Where the target is, and the way there."""
        return np.concatenate(
            [self._space.share(self._target), self._space.share(self._target) - self._space.share(self._tip)]
        )

    def truth(self) -> Vector:
        return self._space.share(self._target)

    def judge(self, acted: Acted) -> Verdict:
        self._tip = np.asarray(acted.tool.position)
        before, self._away = self._away, self._distance()
        there = self._away <= WITHIN
        features = {
            "closer": 100.0 * (before - self._away),
            "reached": float(there),
            "force": acted.felt.strongest,
            "effort": acted.effort,
            "time": 1.0,
        }
        return Verdict(features, success=there)


TASK = Task(
    name="Reach",
    summary="Bring the probe to a place above the tissue.",
    scenario="palpation",
    begin=Attempt,
    space=space,
    weights={"closer": 1.0, "reached": 10.0, "force": -0.1, "effort": -0.01, "time": -0.02},
    features={
        "closer": "to the target since the last action [cm]",
        "reached": "1 when the tip is within 5 mm of it",
        "force": "strongest on the probe [N]",
        "effort": "length of the action over the longest",
        "time": "1 each action",
    },
    detail=0.1,
    ticks=8,
    most_actions=100,
    new_world=False,
    batches=Batching(),
    limits=Limits(pan=2.5, depth=0.5, speed=0.5),
    randomise={"stiffness": (1.0, 6.0), "friction": (0.02, 0.2)},
)
