"""StopBleeding: find the open vessels under the blood and coagulate them with the forceps, losing little blood."""

from __future__ import annotations

import numpy as np

from viscera.learning.arm import Limits, Space
from viscera.learning.besides import Batching, VesselsToClose
from viscera.learning.measuring import Growth, nearest, over_organ
from viscera.learning.task import Acted, Task, Vector, Verdict
from viscera.scenarios.bleeding import FORCEPS
from viscera.world import World

VESSELS = 2
"""An artery and a vein; the duct between them is tight."""


LEFT_OUT = (
    "heat", "burns", "stiffening", "smoke", "wounds", "rest", "drops", "pools", "stains", "film", "ledger",
    "film_picture", "gauze", "dressing",
)  # fmt: skip
"""Systems that a batch does not run as they are."""


def space(world: World) -> Space:
    return over_organ(world, below=0.02, above=0.03)


class Attempt:
    def __init__(self, world: World, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        self._vessels = world.system("wounds").holds
        self._growth = Growth(world, ("open_vessels", "blood_lost", "charred"))
        self._tip = space.clamped(np.asarray(world.hands[FORCEPS].instrument.home))
        self._away = nearest(self._tip, self._open())

    def _open(self) -> Vector:
        places, is_open = self._vessels.places()
        return places[:VESSELS][is_open[:VESSELS]]

    def goal(self) -> Vector:
        """Of both vessels where it is and whether it is open; where it bleeds can be seen."""
        places, is_open = self._vessels.places()
        rows = [[*self._space.share(places[k]), 1.0 if is_open[k] else -1.0] for k in range(VESSELS)]
        return np.asarray(rows).ravel()

    def truth(self) -> Vector:
        values = self._growth.values
        return np.array([values["open_vessels"], values["blood_lost"], values["charred"]])

    def judge(self, acted: Acted) -> Verdict:
        self._tip = np.asarray(acted.tool.position)
        grown = self._growth.since()
        before, self._away = self._away, nearest(self._tip, self._open())
        closed = -grown["open_vessels"]
        done = self._growth.values["open_vessels"] == 0.0
        features = {
            "closer": 0.0 if closed else 100.0 * (before - self._away),
            "closed": closed,
            "blood": grown["blood_lost"],
            "charred": grown["charred"],
            "stopped": float(done),
            "time": 1.0,
        }
        return Verdict(features, success=done)


TASK = Task(
    name="StopBleeding",
    summary="Coagulate both open vessels with the forceps, and lose little blood.",
    scenario="bleeding",
    begin=Attempt,
    space=space,
    weights={"closer": 0.5, "closed": 5.0, "blood": -1.0, "charred": -0.1, "stopped": 10.0, "time": -0.01},
    features={
        "closer": "to the nearest open vessel since the last action [cm]",
        "closed": "vessels closed since the last action",
        "blood": "lost since the last action [mL]",
        "charred": "since the last action [mm²]",
        "stopped": "1 when no vessel is open",
        "time": "1 each action",
    },
    tool=FORCEPS,
    activates=True,
    detail=0.5,
    ticks=48,
    most_actions=300,
    batches=Batching(("forceps",), LEFT_OUT, VesselsToClose),
    limits=Limits(pan=0.5, depth=0.1, speed=0.1),
    force_span=0.5,
    randomise={
        "stiffness": (2.0, 6.0),
        "pressure": (60.0, 140.0),
        "heart_rate": (50.0, 120.0),
        "friction": (0.02, 0.2),
    },
)
