"""PatternCut: cut a printed circle out of gauze with scissors, near its line."""

from __future__ import annotations

import math

import numpy as np

from viscera.learning.arm import Space
from viscera.learning.measuring import Growth
from viscera.learning.task import Acted, Task, Vector, Verdict
from viscera.scenarios.pattern import GOALS, HEIGHT, SIDE, STRETCH
from viscera.scenarios.pattern.drill import RADIUS, SECTORS
from viscera.scenarios.pattern.surgeon import SCISSORS
from viscera.world import World

DEEP = 0.006
"""Of the tips below the gauze when they cut, as a practised hand holds them [m]."""


def space(world: World) -> Space:
    side = 0.45 * SIDE
    return Space((-side, -side, HEIGHT - 0.012), (side, side, HEIGHT + 0.03))


class Attempt:
    def __init__(self, world: World, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        self._drill = world.system("drill").holds
        self._growth = Growth(world, ("circle_cut", "off_line", "pieces"))
        self._tip = space.clamped(np.asarray(world.hands[SCISSORS].instrument.home))
        self._away = self._distance()

    def _next(self) -> Vector:
        """Where the nearest uncut piece of the line is [m]."""
        sectors = np.flatnonzero(~self._drill.cut)
        angle = 2.0 * math.pi * ((sectors + 0.5) / SECTORS - 0.5)
        far = RADIUS * (1.0 + STRETCH)
        places = np.stack([far * np.cos(angle), far * np.sin(angle), np.full(len(angle), HEIGHT - DEEP)], axis=1)
        if len(places) == 0:
            return self._tip
        return places[np.argmin(np.linalg.norm(places[:, :2] - self._tip[:2], axis=1))]

    def _distance(self) -> float:
        return float(np.linalg.norm(self._next() - self._tip))

    def goal(self) -> Vector:
        """Where the line is to be cut next, the way there, and how much of it is cut."""
        there = self._space.share(self._next())
        share = 0.02 * self._growth.values["circle_cut"] - 1.0
        return np.concatenate([there, there - self._space.share(self._tip), [share]])

    def truth(self) -> Vector:
        """Which sectors are cut."""
        return np.where(self._drill.cut, 1.0, -1.0)

    def judge(self, acted: Acted) -> Verdict:
        self._tip = np.asarray(acted.tool.position)
        grown = self._growth.since()
        before, self._away = self._away, self._distance()
        done = self._growth.met(GOALS)
        features = {
            "closer": 0.0 if grown["circle_cut"] else 100.0 * (before - self._away),
            "cut": grown["circle_cut"],
            "off_line": grown["off_line"],
            "done": float(done),
            "force": acted.felt.strongest,
            "time": 1.0,
        }
        return Verdict(features, success=done)


TASK = Task(
    name="PatternCut",
    summary="Cut the printed circle out of the gauze, with scissors.",
    scenario="pattern",
    begin=Attempt,
    space=space,
    weights={"closer": 0.2, "cut": 0.5, "off_line": -0.1, "done": 20.0, "force": -0.05, "time": -0.01},
    features={
        "closer": "to the nearest uncut piece of the line since the last action [cm]",
        "cut": "of the circle since the last action [%]",
        "off_line": "area between cut and line since the last action [mm²]",
        "done": "1 when 95 % are cut, the disc is free and less than 60 mm² are off the line",
        "force": "strongest on the scissors [N]",
        "time": "1 each action",
    },
    tool=SCISSORS,
    activates=True,
    detail=0.5,
    most_actions=800,
    new_world=False,
    force_span=0.5,
    randomise={"friction": (0.2, 0.6)},
)
