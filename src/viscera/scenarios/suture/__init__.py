"""Suture: close a slit in skin with a stitch and a knot, through two marks.

A piece of skin (50 × 40 × 10 mm) is stretched across a slit of 20 mm, so that it gapes. A needle on a thread of 150 mm
goes in at one mark and comes out at the other; the knot draws the lips together. The drill is the fifth of the
Fundamentals of Laparoscopic Surgery (FLS), suturing with a knot: 112 s and 1 mm from the marks are what it asks of the
proficient (Ritter and Scott, Surg. Innov. 14, 2007, doi 10.1177/1553350607302329).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios.suture.drill import marked, slit_ends, suture_drill
from viscera.scores.table import FORMS
from viscera.tissue.clamping import let_clamp
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.sewing import let_sew
from viscera.tissue.slits import open_slit
from viscera.view import Goal, Level
from viscera.world import Contents, World, block, cuttable, looking_down
from viscera.world.systems.clamps import clamping
from viscera.world.systems.cuts import cutting
from viscera.world.systems.ink import ink_on
from viscera.world.systems.lattice_view import lattice_picture
from viscera.world.systems.sutures import sewing

SPACING = 0.0025
"""[m]"""
CELLS = (20, 16, 4)
"""21 × 17 × 5 = 1 785 masses."""
TEXELS = 512
DEPTH = 0.006
"""Of the slit [m]."""
STRETCH = 0.08
"""Across the slit."""
THREAD = 0.15
"""[m]; as FLS gives."""
PULL = 0.25
"""How hard the knot is drawn, at most [N]: about what closes the slit."""
RUBBING = 0.2
"""Coulomb's friction of lip on lip, wet."""
HOME_HEIGHT = 0.03
"""Of waiting instruments above the surface [m]."""

SKIN = Material(
    "skin to sew",
    young=60_000.0,
    density=1_000.0,
    poisson=0.35,
    viscous_time=1e-4,
    break_strain=1.5,
    toughness=1_700.0,
    friction=0.3,
    sources=("young: skin at small strain has 20 to 200 kPa (Diridollou et al. 2000: 129 kPa)",),
)

NEEDLE, KNOT, STAPLER, SCALPEL = range(4)
"""What keys 1 to 4 choose."""

INSTRUCTIONS = """\
Close the slit with a stitch through the two violet marks, and a knot.
Move the pointer onto the slit between the marks: the needle stands across it. Keys Q and E turn it.
Hold the left button: the needle turns, goes in at one mark and comes out at the other. Let go: it is drawn through.
Let go before its point is out, and it goes back; nothing has happened.
Key 2 takes the knot tyer: put it on the slit and hold the left button. It draws the lips together. Let go: it is tied.
The needle keeps what is left of the thread for further stitches.
Key 3 takes a stapler: click on the slit, and a staple holds its lips. The drill asks for a stitch, though."""

GOALS = (
    Goal("stitches", least=1.0), Goal("gap", most=1.0), Goal("off_target", most=1.0), Goal("cut_more", most=10.0),
)  # fmt: skip
"""A knot; gap and distance from the marks in mm; what is cut or torn besides in mm², where the slit has 120."""

FLS = FORMS["suture"]
LEVELS = (
    Level("Standard", (*GOALS, Goal("time", most=FLS.cut_off))),
    Level("Proficient", (*GOALS, Goal("time", most=FLS.proficient))),
)
"""600 s, after which MISTELS gives nothing, and the 112 s that FLS asks of the proficient."""


def build(setting: Setting) -> Contents:
    body = block(*setting.cells(CELLS, SPACING))
    low, high = body.positions.min(axis=0), body.positions.max(axis=0)
    sides = (body.positions[:, 0] < low[0] + 1e-9) | (body.positions[:, 0] > high[0] - 1e-9)
    held = sides | (body.positions[:, 2] < low[2] + 1e-9)
    pulled = np.zeros_like(body.positions)
    pulled[:, 0] = STRETCH * body.positions[:, 0]
    params = LatticeParams(
        nodes=body.nodes, spacing=body.spacing, origin=body.origin, material=SKIN, stiffest=SKIN.young, anchored=held,
        driven=held, drive_direction=pulled, drag=20.0,
    )  # fmt: skip
    tissue = make_lattice(setting.device, params)
    organ = cuttable("skin", body, tissue, look="skin", texels=setting.texels(TEXELS))
    ends = slit_ends(setting.seed)
    top = float(high[2])
    first, last = (np.array([[x, y, top - DEPTH], [x, y, top + 0.002]]) for x, y in ends.tolist())
    open_slit(tissue, first, last)
    let_sew(tissue, THREAD)
    let_clamp(tissue)
    tissue.set_motion(pulled, np.zeros_like(pulled))
    tissue.set_drive(1.0, 1.0)
    drawing, ink = ink_on(organ)
    ink.draw(marked(organ.need_skin(), ends))
    camera, bounds = looking_down([organ], (0.04, -0.6, 0.8))
    home = (0.0, 0.0, top + HOME_HEIGHT)
    instruments = [kit.needle_holder(), kit.knot_tyer(PULL), kit.stapler(), kit.scalpel()]
    opening, sutures = cutting(organ), sewing(organ)
    drill = suture_drill(organ, opening.holds, sutures.holds, ends)
    middle = ends.mean(axis=0)

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that takes one bite in the middle of the slit, and ties it."""
        return sew(float(middle[0]), float(middle[1]), top, tick)

    return Contents(
        organs=[organ],
        tools=kit.hand_out(instruments, home, SKIN.friction, apart=0.03),
        systems=[
            opening,
            sutures,
            clamping(organ),
            drill,
            drawing,
            lattice_picture(organ),
        ],
        levels=LEVELS,
        camera=camera,
        bounds=bounds,
        force_scale=0.02,
        rubbing=RUBBING,
        script=script,
    )


BITE, DRAWN, LIFTED, TIED = 400, 1700, 2600, 4200
"""Ticks at which the script's hand presses the needle, lets it go, takes the knot tyer, and lets that go."""


def sew(x: float, y: float, top: float, tick: int) -> list[ToolInput]:
    """What a steady hand does before this tick, every 8 ms."""
    if tick % 8:
        return []
    if tick < LIFTED:
        height = kit.NEEDLE_HEIGHT if tick < DRAWN + 400 else 0.02
        return [ToolInput(NEEDLE, (x, y, top + height), grip=1.0 if BITE <= tick < DRAWN else 0.0)]
    if tick == LIFTED:
        return [ToolInput(NEEDLE, (x, y, top + 0.03), active=False)]
    if tick < TIED + 200:
        return [ToolInput(KNOT, (x, y, top + 0.004), grip=1.0 if LIFTED + 300 <= tick < TIED else 0.0)]
    return [ToolInput(KNOT, (x, y, top + 0.03), active=False)]


SCENARIO = Scenario(
    name="suture",
    title="Suture",
    summary="Close a slit in skin with needle, thread and a knot.",
    instructions=INSTRUCTIONS,
    build=build,
    takes_mesh=False,
)
