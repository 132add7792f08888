"""Incision: open tissue along an inked line, to a depth, with a scalpel.

A piece of skin over fat (60 × 40 × 10 mm) is stretched across the line by 6 %, as skin is: what is cut gapes. A blade
takes force, more the deeper it is: about 0.3 N at 6 mm. Scissors cut what is between their jaws as they close. A hot
hook pushes cold tissue along and goes through what it has burnt. The faces of the cut ooze, and a small artery that
crosses below the line bleeds where the blade opens it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._film import pour
from viscera.scenarios.incision.blood import make_blood
from viscera.scenarios.incision.drill import DEPTH, incision_drill, line_at, line_ends, marked
from viscera.scenarios.incision.hot_hook import POWER, make_burns
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.view import Goal, Level
from viscera.world import Contents, World, block, cuttable, looking_down
from viscera.world.systems.cuts import cutting
from viscera.world.systems.ink import ink_on
from viscera.world.systems.lattice_view import lattice_picture

SPACING = 0.0025
"""[m]"""
CELLS = (24, 16, 4)
"""25 × 17 × 5 = 2 125 masses."""
TEXELS = 256

SKIN_OVER_FAT = Material(
    "skin over fat",
    young=15_000.0,
    density=1_000.0,
    poisson=0.35,
    viscous_time=2e-4,
    break_strain=0.5,
    toughness=600.0,
    friction=0.3,
    burnt_young=1.0,
    sources=(
        "young, toughness: estimated, between fat and skin, as one layer has both",
        "burnt_young: fat melts and skin shrinks, so no stiffening is modelled",
    ),
)

STRETCH = 0.06
"""Across the line. Skin at rest is under tension: cut, it gapes."""
RUBBING = 0.2
"""Coulomb's friction of the two sides of a cut, wet."""
HOME_HEIGHT = 0.03
"""Of waiting instruments above the surface [m]."""
SPEED = 0.02
"""Of the script's hand along the line [m/s]."""

INSTRUCTIONS = """\
Open the tissue along the violet line, 5 mm deep.
Move the pointer to an end of the line: the scalpel follows the surface. The wheel sets how deep it goes.
Hold the left button and draw along the line: the blade cuts while you hold it.
Key 2 takes the scissors: bring the open jaws to what is to be cut, and press to close them.
Key 3 takes the grasper: hold the left button to close it, pull with the wheel; with key 1 or 2 it stays clamped.
The cut oozes, and where the blade opens a small artery it spurts. Key 4 takes the suction, key 5 clips the artery.
Key 6 takes the hot hook: it burns while you hold the button, and goes through what it has burnt; wounds close by it.
Watch the measures: line opened, astray, deepest, bleeding. A cut that is too shallow can be drawn again."""

GOALS = (Goal("line_opened", least=90.0), Goal("astray", most=20.0), Goal("deepest", most=9.0))
"""In %, mm², mm."""

LEVELS = (
    Level("Standard", GOALS),
    Level("Timed", (*GOALS, Goal("time", most=60.0))),
    Level(
        "Expert",
        (Goal("line_opened", least=95.0), Goal("astray", most=8.0), Goal("deepest", most=8.0), Goal("time", most=30.0)),
    ),
)
"""The harder limits are our own choice."""


def build(setting: Setting) -> Contents:
    body = block(*setting.cells(CELLS, SPACING))
    positions = body.positions
    low, high = positions.min(axis=0), positions.max(axis=0)
    sides = (positions[:, 1] < low[1] + 1e-9) | (positions[:, 1] > high[1] - 1e-9)
    pulled = np.zeros_like(positions)
    pulled[:, 1] = STRETCH * positions[:, 1]
    tissue = make_lattice(
        setting.device,
        LatticeParams(
            nodes=body.nodes, spacing=body.spacing, origin=body.origin, material=SKIN_OVER_FAT,
            stiffest=SKIN_OVER_FAT.young, anchored=sides | (positions[:, 2] < low[2] + 1e-9),
            driven=sides | (positions[:, 2] < low[2] + 1e-9), drive_direction=pulled, drag=15.0,
        ),
    )  # fmt: skip
    organ = cuttable("skin", body, tissue, look="skin", texels=setting.texels(TEXELS), inside=True)
    instruments = [kit.scalpel(), kit.scissors(), kit.grasper(), kit.suction(), kit.clip_applier()]
    instruments.append(kit.cutting_hook(POWER))
    home = (0.0, 0.0, float(high[2]) + HOME_HEIGHT)
    tools = kit.hand_out(instruments, home, SKIN_OVER_FAT.friction, apart=0.04)
    burns = make_burns(organ, tools)
    blood, film = make_blood(organ, setting)
    # Wounds are put onto the surface at rest.
    tissue.set_motion(pulled, np.zeros_like(pulled))
    tissue.set_drive(1.0, 1.0)
    camera, bounds = looking_down([organ], (0.1, -0.75, 0.95))
    drawing, ink = ink_on(organ)
    ends = line_ends(setting.seed, low, high)
    ink.draw(marked(organ.need_skin(), ends))
    opening = cutting(organ)
    drill = incision_drill(organ, ends)

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that goes down at one end of the line, draws the blade along it and lifts it."""
        return draw_along(ends, float(high[2]), tick)

    return Contents(
        organs=[organ],
        tools=tools,
        systems=[opening, drill, *burns, *blood, drawing, lattice_picture(organ)],
        levels=LEVELS,
        camera=camera,
        bounds=bounds,
        force_scale=0.02,
        rubbing=RUBBING,
        script=script,
        heaviest=lambda: pour(organ, film),
    )


def draw_along(ends: NDArray[np.float64], top: float, tick: int) -> list[ToolInput]:
    """What a steady hand does before this tick, every 8 ms."""
    down, ticks = 400, round(float(np.linalg.norm(ends[1] - ends[0])) / SPEED * 1000.0)
    if tick % 8:
        return []
    share = min(max((tick - down) / ticks, 0.0), 1.0)
    x, y = line_at(ends, share).tolist()
    depth = DEPTH + 0.001
    if tick < down:
        height = 0.02 - (0.02 + depth) * min(tick / (down - 100.0), 1.0)
    else:
        height = -depth if share < 1.0 else 0.03
    # Where the skin is stretched, its line is farther out.
    return [ToolInput(0, (x, y * (1.0 + STRETCH), top + height), grip=1.0 if share < 1.0 else 0.0)]


SCENARIO = Scenario(
    name="incision",
    title="Incision",
    summary="Open tissue along a line with a scalpel, deep enough and no deeper.",
    instructions=INSTRUCTIONS,
    build=build,
    takes_mesh=False,
)
