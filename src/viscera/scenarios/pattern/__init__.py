"""Pattern: cut a printed circle out of a sheet of gauze, with grasper and scissors.

The pattern cut of the Fundamentals of Laparoscopic Surgery (Peters and others, Surgery 135, 2004): a circle of 50 mm on
gauze of 100 mm that is held at its edge, cut out within 2 mm of its line. Here gauze and circle are smaller (56 and 36
mm) and the sheet is one cell thick (2 mm), as fine as the lattice can be at 1 kHz on two cores.
"""

from __future__ import annotations

import math

import numpy as np

from viscera.geometry.primitives import rounded_slab
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios.pattern.drill import marked, pattern_drill
from viscera.scenarios.pattern.surgeon import Surgeon
from viscera.scores.table import FORMS
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.units import STANDARD_GRAVITY
from viscera.view import Goal, Level
from viscera.world import Contents, cuttable, looking_down
from viscera.world.organ import Body
from viscera.world.systems.cuts import cutting
from viscera.world.systems.ink import ink_on

SIDE, CELLS = 0.056, 28
"""Of the sheet [m], and its cells along a side; one is its thickness: 29 × 29 × 2 = 1 682 masses."""
HEIGHT = 0.02
"""Of the sheet over the table [m]."""
TEXELS = 512
ROOM = 2_400
"""Links that may be cut: some four times those of the circle."""

GAUZE = Material(
    "gauze",
    young=30_000.0,
    density=800.0,
    poisson=0.25,
    viscous_time=2e-4,
    break_strain=2.0,
    toughness=60.0,
    friction=0.4,
    sources=("all: estimated; chosen so that the sheet hangs through by some millimetres, and gives way to scissors",),
)

STRETCH = 0.03
"""Of the sheet in its frame."""
HOME_HEIGHT = 0.03
"""Of waiting instruments above the sheet [m]."""

INSTRUCTIONS = """\
Cut the violet circle out of the gauze, no farther than 2 mm from its line.
Key 2 takes the grasper: move inside the circle, hold the left button to close it, and lift with the wheel a little.
Hold the button and press 1: the grasper stays clamped. Key 2 takes it up again, a click opens it.
Scissors: bring the open jaws over the line, turn them along it with Q and E, go deeper with the wheel, press to close.
Draw them out with the wheel before you go on; or move the pointer off the picture, and they are out.
Cut once around. Watch the measures: circle cut, off the line, pieces."""

GOALS = (Goal("circle_cut", least=95.0), Goal("pieces", least=2.0), Goal("off_line", most=60.0))
"""In %, pieces and mm²: cut all around, so that the disc is free."""

FLS = FORMS["pattern"]
LEVELS = (
    Level("Standard", (*GOALS, Goal("time", most=FLS.cut_off))),
    Level("Proficient", (*GOALS, Goal("time", most=FLS.proficient))),
)
"""300 s, after which MISTELS gives nothing, and the 98 s that FLS asks of the proficient."""


def build(setting: Setting) -> Contents:
    body = sheet(max(12, round(CELLS * math.sqrt(setting.detail))))
    low, high = body.nodes.min(axis=0), body.nodes.max(axis=0)
    edge = ((body.nodes[:, :2] == low[:2]) | (body.nodes[:, :2] == high[:2])).any(axis=1)
    pulled = STRETCH * body.positions * np.array([1.0, 1.0, 0.0])
    tissue = make_lattice(
        setting.device,
        LatticeParams(
            nodes=body.nodes, spacing=body.spacing, origin=body.origin, material=GAUZE, stiffest=GAUZE.young,
            anchored=edge, driven=edge, drive_direction=pulled, drag=20.0,
        ),
    )  # fmt: skip
    organ = cuttable("gauze", body, tissue, look="gauze", texels=setting.texels(TEXELS), room=ROOM)
    tissue.set_motion(pulled, np.zeros_like(pulled))
    tissue.set_drive(1.0, 1.0)
    tissue.set_gravity((0.0, 0.0, -STANDARD_GRAVITY))
    camera, bounds = looking_down([organ], (0.1, -0.75, 0.95))
    home = (0.0, 0.0, HEIGHT + SIDE / CELLS + HOME_HEIGHT)
    drawing, ink = ink_on(organ)
    ink.draw(marked(organ.need_skin()))
    surgeon = Surgeon(tissue, HEIGHT, STRETCH)
    return Contents(
        organs=[organ],
        tools=kit.hand_out([kit.scissors(), kit.grasper()], home, GAUZE.friction, apart=0.04),
        systems=[cutting(organ), pattern_drill(organ), drawing],
        levels=LEVELS,
        camera=camera,
        bounds=bounds,
        force_scale=0.05,
        rubbing=GAUZE.friction,
        table=0.0,
        script=lambda world, tick: surgeon.script(tick),
    )


def sheet(cells: int) -> Body:
    """Gauze of so many cells along a side and one of thickness, over the origin."""
    spacing = SIDE / cells
    size = np.array([SIDE, SIDE, spacing])
    axes = [np.arange(count + 1, dtype=np.int32) for count in (cells, cells, 1)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    mesh = rounded_slab(size, centre=(0.0, 0.0, HEIGHT + 0.5 * float(size[2])), edge_radius=0.2 * spacing)
    return Body(mesh, nodes, (-0.5 * SIDE, -0.5 * SIDE, HEIGHT), spacing)


SCENARIO = Scenario(
    name="pattern",
    title="Pattern cut",
    summary="Cut a printed circle out of a sheet of gauze, with grasper and scissors.",
    instructions=INSTRUCTIONS,
    build=build,
    takes_mesh=False,
)
