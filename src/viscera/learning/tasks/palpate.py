"""Palpate: find the hard nodule by force. The agent presses where it likes and says where the nodule is by closing its
handle, once, while it touches the tissue.

What it has felt so far is kept for it: stiffness (force over depth) in each field of a coarse map, and where it was the
stiffest. Where the nodule is, it is never told; the reward while it learns is (`closer`).
"""

from __future__ import annotations

import numpy as np

from viscera.learning.arm import Limits, Space
from viscera.learning.besides import Batching
from viscera.learning.task import Acted, Task, Vector, Verdict
from viscera.scenarios.palpation import FOUND_WITHIN, NODULES, PROBE_RADIUS, middle
from viscera.world import World

DEPTH = 0.008
"""To which the probe may press [m]: there the nodule is felt as twice the force."""
ABOVE = 0.004
"""The tissue that the probe may go [m]: enough to leave it."""
RIM = 0.1
"""Of the tissue is left out on each side, as a share of it."""
FIELDS = 5
"""Of the map along each side."""
TOUCHES = 0.03
"""Below this force nothing is touched [N]."""
SHALLOWEST_PUSH = 0.002
"""What is pressed less deep than this says little about stiffness [m]."""
SOFT = 40.0
"""Force over depth where there is no nodule, about [N/m]; over it, stiffness is told as a share of this, less 1."""


def space(world: World) -> Space:
    body = world.organs[0].body
    low, high = body.positions.min(axis=0), body.positions.max(axis=0)
    rim = RIM * (high - low)
    top = float(high[2]) + PROBE_RADIUS
    return Space(
        (float(low[0] + rim[0]), float(low[1] + rim[1]), top - DEPTH),
        (float(high[0] - rim[0]), float(high[1] - rim[1]), top + ABOVE),
    )


class Attempt:
    def __init__(self, world: World, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        nodule = list(NODULES.values())[round(world.settings.values["difficulty"])]
        self._middle = middle(world.seed, world.organs[0].body.positions, nodule)
        self._top = float(world.organs[0].body.positions[:, 2].max()) + PROBE_RADIUS
        """Of the probe's middle when it touches [m]."""
        self._map = np.zeros((FIELDS, FIELDS))
        self._hardest = np.zeros(3)
        """Where, as shares of the workspace, and how stiff [N/m]."""
        self._now = self._depth = 0.0
        home = space.clamped(np.asarray(world.hands[TASK.tool].instrument.home))
        self._here = space.share(home)[:2]
        self._away = self._aside(home)

    def _aside(self, tip: Vector) -> float:
        return float(np.linalg.norm((tip - self._middle)[:2]))

    def goal(self) -> Vector:
        """The way to the stiffest place so far, by how much it was stiffer than what was felt elsewhere, how deep the
        probe is; then stiffness: there, now, and the map of it; −1 where nothing was felt."""
        way = self._hardest[:2] - self._here if self._hardest[2] > 0.0 else np.zeros(2)
        stiff = np.array([self._hardest[2], self._now, *self._map.ravel()])
        return np.concatenate([way, [self._contrast(), self._depth / DEPTH], stiff / SOFT - 1.0])

    def _contrast(self) -> float:
        """Stiffness of the stiffest place over the mean of the fields that were felt, less 1: how certain it is that
        something hard is there."""
        felt = self._map[self._map > 0.0]
        return float(self._hardest[2] / felt.mean()) - 1.0 if len(felt) else 0.0

    def truth(self) -> Vector:
        return self._space.share(self._middle)[:2]

    def _remember(self, tip: Vector, force: float) -> None:
        depth = self._top - float(tip[2])
        stiff = force / depth if depth > SHALLOWEST_PUSH else 0.0
        self._now, self._depth = stiff, depth
        self._here = share = self._space.share(tip)[:2]
        i, j = np.clip(np.floor(0.5 * (share + 1.0) * FIELDS), 0, FIELDS - 1).astype(int).tolist()
        self._map[i, j] = max(self._map[i, j], stiff)
        if stiff > self._hardest[2]:
            self._hardest[:] = (*share, stiff)

    def judge(self, acted: Acted) -> Verdict:
        tip = np.asarray(acted.tool.position)
        # Up is the way the tissue pushes back; sideways it is friction.
        force = max(0.0, float(acted.felt.mean[2]))
        known, certain = int((self._map > 0.0).sum()), self._contrast()
        self._remember(tip, force)
        before, self._away = self._away, self._aside(tip)
        says_so = acted.closed and force > TOUCHES
        right = says_so and self._away <= FOUND_WITHIN
        features = {
            "closer": 100.0 * (before - self._away),
            "explored": float((self._map > 0.0).sum() - known),
            "certain": self._contrast() - certain,
            "found": float(right),
            "wrong": float(says_so and not right),
            "time": 1.0,
        }
        return Verdict(features, success=right, failed=says_so and not right)


TASK = Task(
    name="Palpate",
    summary="Find the hidden nodule by pressing, and say where it is.",
    scenario="palpation",
    begin=Attempt,
    space=space,
    weights={"closer": 2.0, "explored": 0.1, "certain": 1.0, "found": 10.0, "wrong": -2.0, "time": -0.02},
    features={
        "closer": "to over the nodule since the last action [cm]; the agent is not told where that is",
        "explored": "fields of the map that were touched for the first time",
        "certain": "growth of the stiffest place over the mean of what was felt, less 1, since the last action",
        "found": "1 when the agent says “here” within 10 mm of over its middle",
        "wrong": "1 when it says so elsewhere",
        "time": "1 each action",
    },
    activates=True,
    detail=0.2,
    batches=Batching(),
    ticks=10,
    most_actions=150,
    limits=Limits(pan=2.0, depth=0.4, speed=0.4, dead_zone=0.75),
    force_span=0.5,
    randomise={"stiffness": (2.0, 5.0), "friction": (0.02, 0.2)},
)
