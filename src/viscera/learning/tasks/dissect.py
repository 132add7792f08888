"""Dissect: open skin along an inked line, 5 mm deep, with a scalpel; not beside the line and not too deep."""

from __future__ import annotations

import numpy as np

from viscera.learning.arm import Limits, Space
from viscera.learning.measuring import Growth, over_organ
from viscera.learning.task import Acted, Task, Vector, Verdict
from viscera.scenarios.incision import GOALS, STRETCH
from viscera.scenarios.incision.drill import DEPTH, line_ends
from viscera.world import World


def space(world: World) -> Space:
    return over_organ(world, below=0.008, above=0.03)


class Attempt:
    def __init__(self, world: World, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        positions = world.organs[0].body.positions
        low, high = positions.min(axis=0), positions.max(axis=0)
        ends = line_ends(world.seed, low, high)
        # Where the skin is stretched, its line is farther out.
        self._ends = np.column_stack([ends * (1.0, 1.0 + STRETCH), np.full(2, float(high[2]) - DEPTH)])
        self._growth = Growth(world, ("line_opened", "astray", "deepest"))
        self._tip = space.clamped(np.asarray(world.hands[TASK.tool].instrument.home))
        self._away = self._distance()

    def _distance(self) -> float:
        """To the part of the line that comes next: it is opened from its left end on."""
        share = 0.01 * self._growth.values["line_opened"]
        return float(np.linalg.norm((1.0 - share) * self._ends[0] + share * self._ends[1] - self._tip))

    def goal(self) -> Vector:
        """Both ends of the line at its depth, and how much of it is open."""
        ends = self._space.share(self._ends).ravel()
        return np.concatenate([ends, [0.02 * self._growth.values["line_opened"] - 1.0]])

    def truth(self) -> Vector:
        values = self._growth.values
        return np.array([0.01 * values["line_opened"], 0.1 * values["astray"], 0.1 * values["deepest"]])

    def judge(self, acted: Acted) -> Verdict:
        self._tip = np.asarray(acted.tool.position)
        grown = self._growth.since()
        before, self._away = self._away, self._distance()
        done = self._growth.met(GOALS)
        features = {
            "closer": 100.0 * (before - self._away),
            "opened": grown["line_opened"],
            "astray": grown["astray"],
            "deeper": max(0.0, self._growth.values["deepest"] - 1000.0 * DEPTH - 2.0),
            "done": float(done),
            "time": 1.0,
        }
        return Verdict(features, success=done)


TASK = Task(
    name="Dissect",
    summary="Open skin along a line, 5 mm deep, with a scalpel.",
    scenario="incision",
    begin=Attempt,
    space=space,
    weights={"closer": 0.2, "opened": 0.2, "astray": -0.1, "deeper": -0.01, "done": 10.0, "time": -0.01},
    features={
        "closer": "to the part of the line that comes next since the last action [cm]",
        "opened": "since the last action [% of the line]",
        "astray": "cut far from the line since the last action [mm²]",
        "deeper": "than 7 mm is the deepest cut by so much [mm]",
        "done": "1 when 90 % are open, with less than 20 mm² astray and nothing deeper than 9 mm",
        "time": "1 each action",
    },
    activates=True,
    detail=0.5,
    ticks=16,
    most_actions=500,
    limits=Limits(pan=0.3, depth=0.1, speed=0.1),
    force_span=0.5,
    randomise={"friction": (0.1, 0.5)},
)
