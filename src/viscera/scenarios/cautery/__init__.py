"""Cautery: coagulate tissue along a drawn line, white and not black, with a monopolar hook or bipolar forceps.

A pad of liver (96 × 72 × 28 mm, or the user's own closed mesh) lies before the surgeon with a line in violet ink on it.
What is burnt is decided by how long and how hard: 30 W into a square millimetre boil it at once and char it within two
seconds, a hook that moves on in time leaves a white line.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from viscera import heat
from viscera.heat import burns
from viscera.inputs import Input, ToolInput
from viscera.instruments import kit, tip_for
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._organ import seen_from_above
from viscera.scenarios._pad import HEATING, LIVING_LIVER, STIFFNESS, VISCOSITY, above, liver_pad
from viscera.scenarios._tissue import tissue_parameters
from viscera.scenarios.cautery.drill import burn_drill, line_points, marked
from viscera.timing import FRAME, TICK
from viscera.tissue.materials import LIVER
from viscera.view import Goal, Level
from viscera.world import Contents, World, looking_down, trocar_beside
from viscera.world.systems.burns import burning
from viscera.world.systems.heat import heating
from viscera.world.systems.ink import ink_on
from viscera.world.systems.smoke import smoking
from viscera.world.systems.stiffening import stiffening

INSTRUCTIONS = """\
Coagulate the violet line until it is white, without turning anything black.
Move the pointer over the tissue: the instrument follows its surface.
Hold the left button to press the pedal: current flows while you hold it. Keep moving.
Keys 1 and 2, or the buttons below, choose the hook or the forceps; the wheel goes deeper.
Watch the measures: line done, charred, astray. T shows the temperature.
Too black? Move faster or lower the generator's power. Held still, the hook chars within two seconds."""


GOALS = (Goal("line_done", least=90.0), Goal("charred", most=0.5), Goal("astray", most=10.0))
"""In %, mm², mm². A hand at 8 mm/s with 30 W reaches 99 %, none and none."""

LEVELS = (
    Level("Standard", GOALS),
    Level("Timed", (*GOALS, Goal("time", most=60.0))),
    Level(
        "Expert",
        (Goal("line_done", least=95.0), Goal("charred", most=0.2), Goal("astray", most=4.0), Goal("time", most=30.0)),
    ),
)
"""Limits of time are our own choice: the script's hand takes about 10 s."""

SPEED = 0.008
"""Of the script's hand along the line [m/s]."""


def build(setting: Setting) -> Contents:
    organ = liver_pad(setting)
    camera, bounds = looking_down([organ], (0.05, -0.75, 0.95))
    # From the surgeon's side, so that the foot of the hook lies level along the line.
    trocar = trocar_beside(camera, right=0.0, near=0.35)
    tools = kit.hand_out([kit.hook(), kit.forceps()], above(organ.body), LIVER.friction, apart=0.04, trocar=trocar)
    warmth = heat.make(organ.need_skin(), LIVING_LIVER, dt=HEATING * FRAME)
    burn = burns.make(warmth)
    drawing, ink = ink_on(organ)
    top = None if setting.mesh is None else seen_from_above(organ.body.mesh)
    points = line_points(organ.body, setting.seed, top)
    hot = [
        heating(organ, warmth, burn, tools, every=HEATING),
        burning(organ, burn, every=HEATING),
        stiffening(organ, burn, every=HEATING),
    ]
    smoke = smoking(organ, burn, tools, setting.detail)
    systems = [
        *hot,
        smoke,
        drawing,
        burn_drill(organ, burn, ink, *marked(organ.need_skin(), points, top)),
    ]
    lengths = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that takes the hook along the line at 8 mm/s with the pedal down, every 10 ms."""
        if tick % 10:
            return []
        way = min(SPEED * TICK * tick, float(lengths[-1]))
        x, y = (float(np.interp(way, lengths, column)) for column in points.T)
        # Of the surface at rest: the hook presses it down, and would follow it ever deeper.
        z = organ.height(x, y, None if top is None else top.vertices)
        # The foot of the hook, 4 mm along x, is taken along by its middle.
        tip = tip_for((x, y, z - 0.0006), tools[0].instrument)
        return [ToolInput(0, tip, grip=1.0 if way < lengths[-1] else 0.0)]

    return Contents(
        organs=[organ],
        tools=tools,
        systems=systems,
        parameters=tissue_parameters(organ.tissue, STIFFNESS, VISCOSITY),
        camera=camera,
        bounds=bounds,
        force_scale=0.2,
        levels=LEVELS,
        script=script,
        heaviest=smoke.holds.wake,
    )


SCENARIO = Scenario(
    name="cautery",
    title="Cautery",
    summary="Coagulate tissue along a drawn line with hook or forceps: white, not black.",
    instructions=INSTRUCTIONS,
    build=build,
)
