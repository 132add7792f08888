"""What bleeds in an incision: the faces of the cut, and a small artery that crosses below the line."""

from __future__ import annotations

import numpy as np

from viscera.blood.film import BLOOD, SALINE, Film, FilmParams
from viscera.blood.wounds import VESSELS, vessel_mmhg
from viscera.scenarios import Setting
from viscera.scenarios._film import make_blood as blood_on
from viscera.world import Organ
from viscera.world.system import System
from viscera.world.systems.cut_vessels import cut_vessel
from viscera.world.systems.ooze import oozing
from viscera.world.systems.wounds import Openings, Wound, bleeding

PARTICLES, DROPS = 3_000, 500
FILM = FilmParams(fluids=(BLOOD, SALINE), clot_rate=1.0 / 90.0)
ARTERY = vessel_mmhg(60.0, 45.0, 0.3, 20.0)
"""A small artery of the skin: pressures of an arteriole (blood/wounds/vessels.py), 0.3 mm wide."""
OPENING = 0.1e-3
"""Radius of its lumen when it is cut [m]: a small artery contracts."""
PIECES = 5
"""Of the artery, each with a wound of its own."""
REACH = 0.012
"""Of the artery to either side of the line [m]."""
BELOW = 0.003
"""The surface [m]: less than the line is to be opened."""
OOZING = 40
"""Places that may ooze; the line, opened to its depth, has some forty."""
OOZE = VESSELS["capillary bed"]
OOZE_OPENING = 0.05e-3
"""All of such a vessel [m]: 0.06 mL/min each at first."""


def make_blood(organ: Organ, setting: Setting) -> tuple[list[System], Film]:
    """In the order of a frame, after `cutting`; the seed says where the artery crosses. On the organ at rest. And the
    film."""
    low, high = organ.body.mesh.bounds
    x = float(np.random.default_rng([setting.seed, 1]).uniform(0.25, 0.75) * (high[0] - low[0]) + low[0])
    # From one side to the other, below the middle of the line.
    line = np.linspace([x, -REACH, high[2] - BELOW], [x, REACH, high[2] - BELOW], PIECES + 1)
    blood = blood_on(organ, FILM, setting.detail, PARTICLES, DROPS)
    tops = [(x, float(y), organ.height(x, float(y))) for y in 0.5 * (line[:-1, 1] + line[1:, 1])]
    openings = Openings()
    pieces = openings.add(Wound(top, ARTERY, OPENING) for top in tops)
    faces = openings.add([Wound(tops[0], OOZE, OOZE_OPENING, oozes=True)] * OOZING)
    bleeders = bleeding(organ, blood.wounds, openings.all)
    systems = [
        cut_vessel(organ, bleeders.holds, line, pieces),
        oozing(organ, bleeders.holds, faces),
        *blood.systems(bleeders),
    ]
    return systems, blood.film
