"""Coagulate: take the hook along a drawn line with the pedal down, white and not black."""

from __future__ import annotations

import numpy as np

from viscera.instruments import tip_for
from viscera.learning.arm import Limits, Space
from viscera.learning.besides import Batching, LineToBurn
from viscera.learning.measuring import Growth, over_organ
from viscera.learning.task import Acted, Task, Vector, Verdict
from viscera.scenarios.cautery import GOALS
from viscera.scenarios.cautery.drill import line_points
from viscera.world import World

TOLD = 12
"""Points of the line that the agent is told."""


def space(world: World) -> Space:
    return over_organ(world, below=0.02, above=0.03)


class Attempt:
    def __init__(self, world: World, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        organ = world.organs[0]
        points = line_points(organ.body, world.seed, count=TOLD)
        hook = world.hands[TASK.tool].instrument
        # Where the tip must be, so that the foot of the hook lies on the line.
        self._line = np.array([tip_for((x, y, organ.height(x, y)), hook) for x, y in points.tolist()])
        self._growth = Growth(world, ("line_done", "charred", "astray"))
        self._tip = space.clamped(np.asarray(hook.home))
        self._away = self._distance()

    def _distance(self) -> float:
        """To the part of the line that comes next: it is done from its left end on."""
        done = int(0.01 * self._growth.values["line_done"] * TOLD)
        return float(np.linalg.norm(self._line[min(done, TOLD - 1)] - self._tip))

    def goal(self) -> Vector:
        """The line, and how much of it is done."""
        line = self._space.share(self._line).ravel()
        return np.concatenate([line, [0.02 * self._growth.values["line_done"] - 1.0]])

    def truth(self) -> Vector:
        values = self._growth.values
        return np.array([0.01 * values["line_done"], values["charred"], 0.1 * values["astray"]])

    def judge(self, acted: Acted) -> Verdict:
        self._tip = np.asarray(acted.tool.position)
        grown = self._growth.since()
        before, self._away = self._away, self._distance()
        done = self._growth.met(GOALS)
        features = {
            "closer": 100.0 * (before - self._away),
            "line": grown["line_done"],
            "charred": grown["charred"],
            "astray": grown["astray"],
            "done": float(done),
            "time": 1.0,
        }
        return Verdict(features, success=done)


TASK = Task(
    name="Coagulate",
    summary="Coagulate a drawn line with the hook, without charring and without straying.",
    scenario="cautery",
    begin=Attempt,
    space=space,
    weights={"closer": 0.1, "line": 0.1, "charred": -1.0, "astray": -0.1, "done": 10.0, "time": -0.01},
    features={
        "closer": "to the part of the line that comes next since the last action [cm]",
        "line": "coagulated since the last action [% of it]",
        "charred": "since the last action [mm²]",
        "astray": "coagulated far from the line since the last action [mm²]",
        "done": "1 when 90 % are done with next to nothing charred or astray",
        "time": "1 each action",
    },
    activates=True,
    detail=0.5,
    ticks=48,
    most_actions=400,
    batches=Batching(("hook",), ("heat", "burns", "stiffening", "smoke", "drill"), LineToBurn),
    limits=Limits(pan=0.2, depth=0.05, speed=0.05),
    force_span=0.5,
    randomise={"stiffness": (2.0, 6.0), "friction": (0.02, 0.2)},
)
