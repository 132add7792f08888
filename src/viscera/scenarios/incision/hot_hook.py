"""The hot hook of an incision: what it has burnt through, it cuts.

Skin over fat does not stiffen by burning, so the lattice takes no more substeps for it. Tissue that is as warm as the
body, and not burnt, costs nothing.
"""

from __future__ import annotations

from viscera.heat.burn import make_burn
from viscera.heat.conduction import STILL_AIR, HeatParams, make_heat
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
    heat = make_heat(organ.need_skin(), HeatParams(air_transfer=STILL_AIR), HEATING * FRAME)
    burn = make_burn(heat)
    warmth = heating(organ, heat, burn, tools, every=HEATING)
    # Of the generator's settings only its power: the rest belongs to cautery.
    warmth.parameters = warmth.parameters[:1]
    scorching = burning(organ, burn, every=HEATING)
    burnt = stiffening(organ, burn, every=HEATING)
    return [warmth, scorching, burnt, burnt_cutting(organ, burnt.holds)]
