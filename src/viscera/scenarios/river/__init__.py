"""River: 3 000 particles of water run over a landscape, and around a ball that the hand holds into the stream.

After Grahn's river (Figure 8.3). The landscape is by rule and as large as a garden bed, 2.4 m; every seed winds another
way. A spring feeds it, what reaches the lower end has left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from viscera.anatomy.landscape import Landscape, landscape
from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios.river.spring import Spring, flood, make_spring
from viscera.timing import TICKS_PER_FRAME
from viscera.units import LITRE
from viscera.view import Camera, Parameter, Surface
from viscera.world import Contents, World
from viscera.world.organ import point
from viscera.world.system import LiveParameter
from viscera.world.systems.water import swirling

SIZE = (2.4, 1.4)
"""Of the landscape [m]."""
EDGE = 0.036
"""Of its triangles [m]; gives about 5 900."""
BALL_RADIUS = 0.07
"""[m]"""
HOME_HEIGHT = 0.3
"""Of the waiting ball above the bed [m]."""
SHADED_SPEED = 2.0
"""Particles this fast have the brightest shade [m/s]."""
SPRING = Spring(capacity=3_000, spacing=0.026, sound=6.0)
"""As many particles as in Grahn's picture, together 53 litres. 99 % of the water runs slower than 1.7 m/s here and is
at most 8 % too dense. The speed of sound is tuned: 12 steps per frame."""

FLOW = Parameter("flow", "Spring", "L/s", 0.0, 15.0, 9.0, "Water that the spring gives until the bed holds 53 litres.")

INSTRUCTIONS = """\
Watch the spring fill the bed: the water winds down, over the fall and out at the end.
Move the pointer over the landscape: the ball follows its surface and the water flows around it.
Dam the river with the ball, and let it go.
Change the spring's flow. Every seed winds another way."""


def build(setting: Setting) -> Contents:
    place = landscape(SIZE, EDGE, setting.seed)
    mesh = place.mesh
    rest = mesh.vertices.astype(np.float32)
    ground = Surface("landscape", "earth", mesh.triangles, "landscape", len(mesh.vertices), rest=rest)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    x, y = _dip(place)
    home = (x, y, float(place.height(np.array(x), np.array(y))) + HOME_HEIGHT)
    tools = kit.hand_out([kit.ball(BALL_RADIUS)], home, friction=0.0)
    spring = replace(SPRING, capacity=setting.count(SPRING.capacity), spacing=setting.length(SPRING.spacing))
    stream, set_flow = make_spring(place, spring, tools, setting.device)
    camera = Camera(
        (1.3 * SIZE[0], -0.75 * SIZE[1], 0.68 * SIZE[0]), (0.5 * SIZE[0], 0.02, 0.05), (0.0, 0.0, 1.0), 40.0
    )

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that dips the ball into the middle of the stream every four seconds."""
        if tick % TICKS_PER_FRAME:
            return []
        x, y, z = home
        lift = HOME_HEIGHT * max(0.0, math.sin(2.0 * math.pi * tick / 4000.0))
        return [ToolInput(0, (x, y, z - HOME_HEIGHT + BALL_RADIUS + lift))]

    return Contents(
        tools=tools,
        parameters=[LiveParameter(FLOW, lambda value: set_flow(value * LITRE))],
        camera=camera,
        bounds=(point(low), point(high)),
        systems=[swirling(stream, tools, fastest=SHADED_SPEED)],
        scenery=[ground],
        script=script,
        heaviest=lambda: flood(place, spring, stream),
    )


def _dip(place: Landscape) -> tuple[float, float]:
    """Where the hand begins: over the river, a fifth of its way down."""
    x = 0.2 * place.length
    return x, float(place.middle(np.array(x)))


SCENARIO = Scenario(
    name="river",
    title="River",
    summary="Water runs from a spring over a landscape; hold a ball into the stream.",
    instructions=INSTRUCTIONS,
    build=build,
    takes_mesh=False,
    no_tissue=True,
)
