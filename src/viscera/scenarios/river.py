"""River: 3 000 particles of water run over a landscape, and around a ball that the hand holds into the stream.

After Grahn's river (Figure 8.3). The landscape is by rule and as large as a garden bed, 2.4 m; every seed winds another
way. A spring feeds it, what reaches the lower end has left.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable

import numpy as np

from viscera.anatomy.landscape import Landscape, landscape
from viscera.inputs import Input, ToolInput
from viscera.instruments import Tool
from viscera.scenarios import Scenario, Setting
from viscera.view import Camera, Instrument, Parameter, Surface
from viscera.world import Contents, LiveParameter, World
from viscera.world.river import LITRES, River, RiverParams

SIZE = (2.4, 1.4)
"""Of the landscape [m]."""
EDGE = 0.036
"""Of its triangles [m]; gives about 5 900."""
PARTICLES = 3_000
"""As in Grahn's picture."""
SPACING = 0.026
"""Of the particles [m]: together 53 litres."""
SOUND = 6.0
"""[m/s]; 99 % of the water runs slower than 1.7 m/s here and is at most 8 % too dense. Tuned: 12 steps per frame."""
BALL_RADIUS = 0.07
"""[m]"""
HOME_HEIGHT = 0.3
"""Of the waiting ball above the bed [m]."""

FLOW = Parameter("flow", "Spring", "L/s", 0.0, 15.0, 9.0, "Water that the spring gives until the bed holds 53 litres.")

INSTRUCTIONS = """\
Watch the spring fill the bed: the water winds down, over the fall and out at the end.
Move the pointer over the landscape: the ball follows its surface and the water flows around it.
Dam the river with the ball, and let it go.
Change the spring's flow. Every seed winds another way."""


def modules() -> list[types.ModuleType]:
    from viscera.neighbors import ordering
    from viscera.water import density, emitter, forces, native
    from viscera.water.boundary import contacts, triangles_hashed, vessel, walls
    from viscera.world import river

    return [contacts, density, emitter, forces, native, ordering, river, triangles_hashed, vessel, walls]


def build(setting: Setting) -> Contents:
    place = landscape(SIZE, EDGE, setting.seed)
    mesh = place.mesh
    ground = Surface(
        "landscape",
        "earth",
        mesh.triangles,
        "landscape",
        len(mesh.vertices),
        rest=mesh.vertices.astype(np.float32),
    )
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    x, y = _dip(place)
    home = (x, y, float(place.height(np.array(x), np.array(y))) + HOME_HEIGHT)
    ball = Instrument("ball", "sphere", BALL_RADIUS, 0.0, home)
    river = River(place, setting.device, RiverParams(PARTICLES, SPACING, SOUND), ball)
    camera = Camera(
        (1.3 * SIZE[0], -0.75 * SIZE[1], 0.68 * SIZE[0]), (0.5 * SIZE[0], 0.02, 0.05), (0.0, 0.0, 1.0), 40.0
    )
    return Contents(
        organs=[],
        tools=[Tool(0, ball, friction=0.0)],
        parameters=[LiveParameter(FLOW, lambda world, value: river.set_flow(value / LITRES))],
        camera=camera,
        bounds=(
            (float(low[0]), float(low[1]), float(low[2])),
            (float(high[0]), float(high[1]), float(high[2])),
        ),
        systems=[river],
        scenery=[ground],
    )


def script(world: World, tick: int) -> Iterable[Input]:
    """A hand that dips the ball into the middle of the stream every four seconds."""
    if tick % 16:
        return []
    x, y, home = world.scene().instruments[0].home
    lift = HOME_HEIGHT * max(0.0, math.sin(2.0 * math.pi * tick / 4000.0))
    return [ToolInput(0, (x, y, home - HOME_HEIGHT + BALL_RADIUS + lift))]


def _dip(place: Landscape) -> tuple[float, float]:
    """Where the hand begins: over the river, a fifth of its way down."""
    x = 0.2 * place.length
    return x, float(place.middle(np.array(x)))


SCENARIO = Scenario(
    name="river",
    title="River",
    summary="Water runs from a spring over a landscape; hold a ball into the stream.",
    instructions=INSTRUCTIONS,
    modules=modules,
    build=build,
    script=script,
)
