"""What bleeds in an incision: the faces of the cut, and a small artery that crosses below the line."""

from __future__ import annotations

import numpy as np

from viscera.blood.drops.drops import make_drops
from viscera.blood.film.params import BLOOD, SALINE, FilmParams
from viscera.blood.wounds.vessels import VESSELS, vessel_mmhg
from viscera.blood.wounds.wounds import make_wounds
from viscera.scenarios import Setting
from viscera.scenarios._film import FINEST, finer_film
from viscera.timing import FRAME
from viscera.world import Organ
from viscera.world.system import System
from viscera.world.systems.cut_vessels import cut_vessel
from viscera.world.systems.drops import flying
from viscera.world.systems.film import flowing, make_film_on
from viscera.world.systems.film_picture import painting
from viscera.world.systems.ledger import accounting
from viscera.world.systems.ooze import oozing
from viscera.world.systems.wounds import Wound, bleeding

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


def make_blood(organ: Organ, setting: Setting) -> list[System]:
    """In the order of a frame, after `cutting`; the seed says where the artery crosses. On the organ at rest."""
    low, high = organ.body.mesh.bounds
    x = float(np.random.default_rng([setting.seed, 1]).uniform(0.25, 0.75) * (high[0] - low[0]) + low[0])
    # From one side to the other, below the middle of the line.
    line = np.linspace([x, -REACH, high[2] - BELOW], [x, REACH, high[2] - BELOW], PIECES + 1)
    fluids, finer = finer_film(FILM, setting.detail), min(setting.detail, FINEST)
    film = make_film_on(organ, fluids, round(finer * PARTICLES))
    assert film.surface is not None
    drops = make_drops(film.surface, fluids, film.state, None, FRAME, round(finer * DROPS))
    wounds = make_wounds(film.surface, fluids, film.state, dt=FRAME, drops=drops.state)
    tops = [(x, float(y), organ.height(x, float(y))) for y in 0.5 * (line[:-1, 1] + line[1:, 1])]
    waiting = [Wound(tops[0], OOZE, OOZE_OPENING, oozes=True)] * OOZING
    bleeders = bleeding(organ, wounds, [Wound(top, ARTERY, OPENING) for top in tops] + waiting)
    return [
        cut_vessel(organ, bleeders.holds, line),
        oozing(organ, bleeders.holds, range(PIECES, PIECES + OOZING)),
        bleeders,
        flying(organ.name, drops),
        flowing(film),
        accounting(film, wounds, drops),
        painting(organ, film),
    ]
