"""The smoke scenario as puffs, of which so many live as the setting says, spread over the tissue and over their ages.
`viscera serve verify/scenes/many_puffs.py`; verify/page_smoke.py measures the page with few and with the most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viscera.scenarios import Scenario, Setting
from viscera.scenarios.smoke import build as build_smoke
from viscera.view import Parameter
from viscera.world import Contents
from viscera.world.system import LiveParameter, Moment, System
from viscera.world.systems.puffs import AGE, FLOATS, LIFE, MOST_PUFFS, PHASE, PLACE, RISE, UNITS
from viscera.world.systems.smoke import Smoke

UNITS_EACH = 4_000_000
"""Of a puff: 0.4 mg of smoke, so that few are seen and many fill the view."""


class Crowd:
    """Before the smoke in a frame: puts as many puffs as are wanted where they would be."""

    def __init__(self, smoke: Smoke) -> None:
        self.smoke = smoke
        self.wanted = 4
        rng = np.random.default_rng(1)
        low, high = smoke.organ.body.mesh.bounds
        self.rows = np.zeros((MOST_PUFFS, FLOATS), dtype=np.float32)
        self.rows[:, PLACE : PLACE + 2] = rng.uniform(low[:2], high[:2], (MOST_PUFFS, 2))
        self.rows[:, PLACE + 2] = high[2]
        self.rows[:, AGE] = np.linspace(0.0, 0.95 * LIFE, MOST_PUFFS)[rng.permutation(MOST_PUFFS)]
        self.rows[:, PLACE + 2] += RISE * self.rows[:, AGE]
        self.rows[:, UNITS] = UNITS_EACH
        self.rows[:, PHASE : PHASE + 3] = rng.uniform(0.0, 6.28, (MOST_PUFFS, 3))

    def frame(self, now: Moment) -> None:
        puffs = self.smoke.puffs
        self.rows[:, PHASE : PHASE + 3] += 0.05  # they tremble on
        puffs.rows.host.reshape(MOST_PUFFS, FLOATS)[:] = self.rows
        puffs.count.host[0] = self.wanted
        self.smoke._set_model(1.0)
        self.smoke.wake()

    def want(self, value: float) -> None:
        self.wanted = round(value)


def build(setting: Setting) -> Contents:
    contents = build_smoke(setting)
    smoke: Smoke = contents.systems[-1].holds
    crowd = Crowd(smoke)
    wanted = Parameter("puffs", "Puffs", "", 0.0, float(MOST_PUFFS), 4.0, "That live.")
    system = System(name="crowd", frame=crowd.frame, parameters=[LiveParameter(wanted, crowd.want)])
    return replace(contents, systems=[*contents.systems[:-1], system, contents.systems[-1]])


SCENARIO = Scenario("many_puffs", build, takes_mesh=False)
