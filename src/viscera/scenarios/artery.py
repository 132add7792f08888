"""Artery: clip a vessel, pull it with the grasper, and cut it behind the clip, so that it stays dry.

A vessel in its sheath (12 mm thick, 56 mm long) is held at both ends; blood comes from the left. Cut through, it bleeds
there with the pulse, unless a clip closes it nearer to its supply (Etheredge, Kunst and Sanders 2013, figure 3: an
artery is grasped, pulled and cut; there nothing bleeds).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from viscera.blood.film import BLOOD, SALINE, FilmParams
from viscera.blood.wounds import vessel_mmhg
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.primitives import capsule
from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._artery import artery_drill
from viscera.scenarios._film import make_blood, pour
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.units import STANDARD_GRAVITY
from viscera.view import Goal, Level
from viscera.world import Contents, World, cuttable, fill, looking_down
from viscera.world.systems.cut_vessels import cut_vessel
from viscera.world.systems.cuts import cutting
from viscera.world.systems.lattice_view import lattice_picture
from viscera.world.systems.wounds import Wound, bleeding

RADIUS, LENGTH, HEIGHT = 0.006, 0.044, 0.016
"""Of the sheath, of its straight part, and of its axis over the table [m]."""
MASSES = 1_000
HELD = 0.021
"""Farther from the middle than this it holds fast [m]."""
STRETCH = 0.1
"""Along it: arteries are stretched in the body, and draw back when they are cut."""
PIECES = 9
"""Of the vessel within, each with a wound of its own."""
TEXELS = 256
PARTICLES, DROPS = 4_000, 1_000
FILM = FilmParams(fluids=(BLOOD, SALINE), clot_rate=1.0 / 90.0)

SHEATH = Material(
    "vessel in its sheath",
    young=25_000.0,
    density=1_060.0,
    poisson=0.35,
    viscous_time=2e-4,
    break_strain=0.6,
    toughness=150.0,
    sources=(
        "young: estimated; the wall alone has 630 kPa, its sheath of fat and loose tissue some kPa",
        "toughness: estimated, between fat and artery",
    ),
)

VESSEL = vessel_mmhg(90.0, 60.0, 0.6, 30.0)
"""A small artery, as a cystic one is."""
OPENING = 0.12e-3
"""Radius of the lumen when it is cut [m]: a small artery contracts."""

RUBBING = 0.2
"""Coulomb's friction of wet tissue on tissue."""
TABLE = 0.0
"""Where what is cut off comes to lie [m]."""

SCALPEL, SCISSORS, CLIPS, SUCTION, GRASPER = range(5)
"""What keys 1 to 5 choose."""

INSTRUCTIONS = """\
Blood comes from the left. Clip the vessel, pull it up with the grasper, and cut it through to the right of the clip.
Key 3 takes the clip applier: move over the left part of the vessel and click.
Key 5 takes the grasper: move over the right part, hold the left button to close it, and pull with the wheel.
Hold the button and press 1 or 2: the grasper stays clamped. Key 5 takes it up again, a click opens it.
Key 2 takes the scissors: bring the open jaws over the vessel, the wheel goes deeper, press to close them.
Key 1 takes the scalpel: hold the left button and draw it across. Key 4 takes the suction.
Cut without a clip it bleeds until you clip it, between the cut and its supply."""

GOALS = (
    Goal("behind_clip", least=1.0), Goal("pulled", least=0.3), Goal("vessel_cut", least=1.0),
    Goal("blood_lost", most=0.5),
)  # fmt: skip
"""Clipped and pulled before it was cut, and less than half a millilitre lost."""
LEVELS = (
    Level("Standard", GOALS),
    Level("Timed", (*GOALS, Goal("time", most=90.0))),
    Level(
        "Expert",
        (
            GOALS[0], Goal("pulled", least=0.3, most=1.2), GOALS[2], Goal("bleeding_time", most=0.0),
            Goal("time", most=45.0),
        ),
    ),
)  # fmt: skip
"""An expert's vessel never bleeds, and is pulled with no more than what the literature calls safe for grasped tissue
(scores/force.py). Limits of time are our own choice."""


def build(setting: Setting) -> Contents:
    body = fill(lying(capsule(RADIUS, LENGTH, 48)), setting.count(MASSES))
    held = np.abs(body.positions[:, 0]) > HELD
    pulled = np.zeros_like(body.positions)
    pulled[:, 0] = STRETCH * body.positions[:, 0]
    params = LatticeParams(
        nodes=body.nodes, spacing=body.spacing, origin=body.origin, anchored=held, material=SHEATH,
        stiffest=SHEATH.young, drag=15.0, driven=held, drive_direction=pulled,
    )  # fmt: skip
    tissue = make_lattice(setting.device, params)
    organ = cuttable("artery", body, tissue, look="vessel", texels=setting.texels(TEXELS), inside=True)
    camera, bounds = looking_down([organ], (0.1, -0.9, 1.0))
    home = (0.0, 0.0, HEIGHT + RADIUS + 0.03)
    instruments = [kit.scalpel(), kit.scissors(), kit.clip_applier(), kit.suction(), kit.grasper()]
    line = np.linspace([-0.018, 0.0, HEIGHT], [0.018, 0.0, HEIGHT], PIECES + 1)
    blood = make_blood(organ, FILM, setting.detail, PARTICLES, DROPS)
    centres = organ.body.mesh.corners.mean(axis=1)
    tops = [_above(centres, 0.5 * (line[k] + line[k + 1])) for k in range(PIECES)]
    bleeders = bleeding(organ, blood.wounds, [Wound(top, VESSEL, OPENING) for top in tops])
    # Wounds are put onto the surface at rest.
    tissue.set_motion(pulled, np.zeros_like(pulled))
    tissue.set_drive(1.0, 1.0)
    tissue.set_gravity((0.0, 0.0, -STANDARD_GRAVITY))
    vessel = cut_vessel(organ, bleeders.holds, line)
    systems = [
        cutting(organ),
        vessel,
        artery_drill(vessel.holds, bleeders.holds),
        *blood.systems(bleeders),
        lattice_picture(organ),
    ]
    return Contents(
        organs=[organ],
        tools=kit.hand_out(instruments, home, SHEATH.friction),
        systems=systems,
        levels=LEVELS,
        camera=camera,
        bounds=bounds,
        force_scale=0.05,
        rubbing=RUBBING,
        table=TABLE,
        script=script,
        heaviest=lambda: pour(organ, blood.film),
    )


def lying(mesh: TriangleMesh) -> TriangleMesh:
    """Along x instead of z, over the table."""
    turned = mesh.vertices[:, [2, 0, 1]] + np.array([0.0, 0.0, HEIGHT])
    return TriangleMesh(turned, mesh.triangles, "artery")


def _above(centres: np.ndarray, point: np.ndarray) -> tuple[float, float, float]:
    """The middle of the triangle nearest to the top of the sheath over a point."""
    top = point + np.array([0.0, 0.0, RADIUS])
    x, y, z = centres[np.argmin(np.linalg.norm(centres - top, axis=1))].tolist()
    return x, y, z


def script(world: World, tick: int) -> Iterable[Input]:
    """A hand that clips the vessel, pulls it up to the right of the clip and leaves the grasper there, and draws the
    scalpel across between the two."""
    if tick % 8:
        return []
    if tick < 400:
        return [ToolInput(CLIPS, (-0.008, 0.0, HEIGHT + RADIUS), grip=1.0 if tick > 300 else 0.0)]
    if tick == 400:
        return [ToolInput(CLIPS, (-0.008, 0.0, HEIGHT + 0.03), active=False)]
    if tick < 1000:
        lift = 0.00002 * min(max(tick - 700, 0), 200)
        return [ToolInput(GRASPER, (0.012, 0.0, HEIGHT + 0.003 + lift), grip=1.0 if tick > 600 else 0.0)]
    if tick < 2000:
        y = -0.015 + 0.00003 * (tick - 1000)
        return [ToolInput(SCALPEL, (0.001, y, HEIGHT - RADIUS - 0.002), grip=1.0)]
    return [ToolInput(SCALPEL, (0.001, 0.02, HEIGHT + 0.03), active=False)] if tick == 2000 else []


SCENARIO = Scenario(
    name="artery",
    title="Artery",
    summary="Clip a vessel, pull it and cut it behind the clip; unclipped it bleeds.",
    instructions=INSTRUCTIONS,
    build=build,
    takes_mesh=False,
)
