"""Retract: take hold of a sheet at a marked place and lift it, as tissue is lifted out of the way.

The sheet is the gauze of the pattern cut, held in its frame; the agent's tool is the grasper.
"""

from __future__ import annotations

import numpy as np

from viscera.learning.arm import Space
from viscera.learning.task import Acted, Task, Vector, Verdict
from viscera.scenarios.pattern import HEIGHT, SIDE
from viscera.scenarios.pattern.surgeon import GRASPER
from viscera.world import World

LIFT = 0.005
"""Of the marked place: then it is retracted [m]."""
NEAR = 0.006
"""What is nearer to the mark than this is the marked place [m]."""
OFF_MIDDLE = 0.010
"""Of the mark, at most, along x and y [m]."""


def space(world: World) -> Space:
    side = 0.4 * SIDE
    return Space((-side, -side, HEIGHT - 0.004), (side, side, HEIGHT + 0.03))


class Attempt:
    def __init__(self, world: World, space: Space, rng: np.random.Generator) -> None:
        self._world, self._space = world, space
        x, y = rng.uniform(-OFF_MIDDLE, OFF_MIDDLE, 2).tolist()
        self._mark = np.array([x, y, HEIGHT])
        tissue = world.organs[0].tissue
        self._near = np.linalg.norm(tissue.rest_positions()[:, :2] - self._mark[:2], axis=1) <= NEAR
        self._begun = float(self._height())
        self._lifted = 0.0
        self._held = False
        self._tip = space.clamped(np.asarray(world.hands[GRASPER].instrument.home))
        self._away = self._distance()

    def _height(self) -> float:
        return float(self._world.organs[0].tissue.displacement()[self._near, 2].mean())

    def _distance(self) -> float:
        return float(np.linalg.norm(self._mark - self._tip))

    def goal(self) -> Vector:
        """Where the mark is, the way there, whether it is held, and how far it is lifted."""
        way = self._space.share(self._mark) - self._space.share(self._tip)
        told = [1.0 if self._held else -1.0, self._lifted / LIFT]
        return np.concatenate([self._space.share(self._mark), way, told])

    def truth(self) -> Vector:
        return np.array([self._lifted / LIFT])

    def judge(self, acted: Acted) -> Verdict:
        world = self._world
        self._tip = np.asarray(acted.tool.position)
        held = world.contact.grippers.held(world.hands[GRASPER], world.organs[0]) > 0
        took, self._held = held and not self._held, held
        before, self._away = self._away, self._distance()
        lifted = self._height() - self._begun
        rise, self._lifted = lifted - self._lifted, lifted
        done = held and lifted >= LIFT
        features = {
            "closer": 0.0 if held else 100.0 * (before - self._away),
            "grasped": float(took),
            "lifted": 1000.0 * rise if held else 0.0,
            "retracted": float(done),
            "force": acted.felt.strongest,
            "time": 1.0,
        }
        return Verdict(features, success=done)


TASK = Task(
    name="Retract",
    summary="Grasp a sheet at a marked place and lift it by 5 mm.",
    scenario="pattern",
    begin=Attempt,
    space=space,
    weights={"closer": 1.0, "grasped": 1.0, "lifted": 1.0, "retracted": 10.0, "force": -0.1, "time": -0.02},
    features={
        "closer": "to the mark since the last action, while nothing is held [cm]",
        "grasped": "1 when the jaws take hold",
        "lifted": "of the marked place since the last action, while it is held [mm]",
        "retracted": "1 when it is 5 mm up and held",
        "force": "strongest on the grasper [N]",
        "time": "1 each action",
    },
    tool=GRASPER,
    activates=True,
    detail=0.5,
    most_actions=200,
    new_world=False,
    force_span=0.5,
    randomise={"friction": (0.2, 0.6)},
)
