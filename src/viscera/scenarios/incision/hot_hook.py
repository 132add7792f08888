"""The hot hook of an incision: what it has burnt through, it cuts.

Skin over fat does not stiffen by burning, so the lattice takes no more substeps for it. Tissue that is as warm as the
body, and not burnt, costs nothing.
"""

from __future__ import annotations

from viscera import heat
from viscera.heat import burns
from viscera.instruments import Tool
from viscera.timing import FRAME
from viscera.world import Organ
from viscera.world.system import System
from viscera.world.systems.burns import burning
from viscera.world.systems.burnt_cuts import burnt_cutting
from viscera.world.systems.heat import heating
from viscera.world.systems.stiffening import stiffening

HEATING = 2
"""Heat is stepped in every second frame."""
POWER = 40.0
"""Of the hook [W]."""


def make_burns(organ: Organ, tools: list[Tool]) -> list[System]:
    """In the order of a frame, after `cutting`."""
    warmth = heat.make(organ.need_skin(), heat.HeatParams(air_transfer=heat.STILL_AIR), dt=HEATING * FRAME)
    burn = burns.make(warmth)
    # Of the generator's settings only its power: the rest belongs to cautery.
    hot = heating(organ, warmth, burn, tools, every=HEATING, settings=("power",))
    scorched = burning(organ, burn, every=HEATING)
    stiff = stiffening(organ, burn, every=HEATING)
    return [hot, scorched, stiff, burnt_cutting(organ, stiff.holds)]
