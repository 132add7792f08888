"""Smoke: burn with the hook, draw the smoke away in time, and keep the view clear.

A pad of liver (or the user's own closed mesh) in a closed abdomen. The hook burns it, and what boils off and chars
hangs in the gas, dims the lamp and hides the tissue, until the evacuator has drawn it away or a vent is opened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from viscera import heat
from viscera.heat import burns
from viscera.inputs import Input, ToolInput
from viscera.instruments import kit, tip_for
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._organ import seen_from_above
from viscera.scenarios._pad import HEATING, LIVING_LIVER, STIFFNESS, VISCOSITY, above, liver_pad
from viscera.scenarios._tissue import tissue_parameters
from viscera.timing import FRAME
from viscera.tissue.materials import LIVER
from viscera.view import Goal, Level
from viscera.world import Contents, World, looking_down, trocar_beside
from viscera.world.systems.burns import burning
from viscera.world.systems.heat import heating
from viscera.world.systems.smoke import smoking
from viscera.world.systems.stiffening import stiffening

HOOK, EVACUATOR, FORCEPS = range(3)
"""What keys 1 to 3 choose."""
POWER = 40.0
"""Of the hook [W]: enough to char."""

INSTRUCTIONS = """\
Coagulate 80 mm² of the tissue and keep your view: burning tissue smokes, and the abdomen is closed.
Move the pointer over the tissue: the instrument follows its surface. Hold the left button to press its pedal.
Key 1: the hook burns. Hold it still and the tissue chars, which smokes most; keep moving and it only steams.
Key 2: the evacuator draws smoke away where its tip is: hold it into the plume, a little above the tissue (wheel).
Key 3: bipolar forceps smoke least.
Watch the measures: coagulated, view, time in haze. Settings open a vent."""

GOALS = (Goal("coagulated", least=80.0), Goal("hazy", most=5.0), Goal("view", least=90.0))
"""In mm², s, %."""
LEVELS = (
    Level("Standard", GOALS),
    Level("Timed", (*GOALS, Goal("time", most=60.0))),
    Level("Expert", (GOALS[0], Goal("hazy", most=2.0), GOALS[2], Goal("charred", most=2.0), Goal("time", most=60.0))),
)
"""What is not charred smokes little. Limits of time are our own choice: the script's hand takes some 10 s."""


def build(setting: Setting) -> Contents:
    organ = liver_pad(setting)
    camera, bounds = looking_down([organ], (0.05, -0.75, 0.95))
    trocar = trocar_beside(camera, right=0.0, near=0.35)
    instruments = [kit.hook(POWER), kit.evacuator(), kit.forceps()]
    tools = kit.hand_out(instruments, above(organ.body), LIVER.friction, apart=0.04, trocar=trocar)
    warmth = heat.make(organ.need_skin(), LIVING_LIVER, dt=HEATING * FRAME)
    burn = burns.make(warmth)
    hot = [
        heating(organ, warmth, burn, tools, every=HEATING),
        burning(organ, burn, every=HEATING),
        stiffening(organ, burn, every=HEATING),
    ]
    smoke = smoking(organ, burn, tools, setting.detail)
    top = None if setting.mesh is None else seen_from_above(organ.body.mesh)
    spot = (0.0, 0.0) if top is None else tuple(top.thickest().tolist())

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that burns along a small circle for four seconds, then draws the smoke away."""
        if tick % 10:
            return []
        turn = 2.0 * math.pi * tick / 4000.0
        x, y = spot[0] + 0.008 * math.cos(turn), spot[1] + 0.008 * math.sin(turn)
        z = organ.height(x, y, None if top is None else top.vertices)
        if tick < 4000:
            return [ToolInput(HOOK, tip_for((x, y, z - 0.0006), tools[HOOK].instrument), grip=1.0)]
        if tick == 4000:
            return [ToolInput(HOOK, (x, y, z + 0.06), active=False)]
        return [ToolInput(EVACUATOR, (x, y, z + 0.03), grip=1.0)]

    return Contents(
        organs=[organ],
        tools=tools,
        systems=[*hot, smoke],
        parameters=tissue_parameters(organ.tissue, STIFFNESS, VISCOSITY),
        camera=camera,
        bounds=bounds,
        force_scale=0.2,
        levels=LEVELS,
        script=script,
        heaviest=smoke.holds.wake,
    )


SCENARIO = Scenario(
    name="smoke",
    title="Smoke",
    summary="Burn with the hook and draw the smoke away in time: keep the view clear.",
    instructions=INSTRUCTIONS,
    build=build,
)
