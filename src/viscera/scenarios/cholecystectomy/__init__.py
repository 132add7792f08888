"""Cholecystectomy: take out a gall bladder, from the first cut to the last drop.

Liver, gall bladder, cystic duct and artery, common duct, fat and peritoneum are one lattice of nine materials, so that
what joins them is cut, torn and burnt like any other tissue. Tubes carry blood and bile; smoke fills the closed
abdomen. Whatever goes wrong goes wrong by itself; only the judging is written down (judge.py). docs/operation.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from viscera.heat import burns
from viscera.instruments import Clips, Cuts, Instrument, kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._film import pour
from viscera.scenarios._pad import HEATING, LIVING_LIVER
from viscera.scenarios.cholecystectomy import body as parts
from viscera.scenarios.cholecystectomy.body import Field, make_field
from viscera.scenarios.cholecystectomy.eyes import Eyes
from viscera.scenarios.cholecystectomy.fluids import make_fluids
from viscera.scenarios.cholecystectomy.judge import judging
from viscera.scenarios.cholecystectomy.materials import materials_of
from viscera.scenarios.cholecystectomy.patient import HALF_WIDTH, draw_patient
from viscera.scenarios.cholecystectomy.scenery import around
from viscera.scenarios.cholecystectomy.steps import operation
from viscera.scenarios.cholecystectomy.surgeon import (
    BIPOLAR,
    CLIPS,
    EVACUATOR,
    GRASPER,
    HOOK,
    IRRIGATOR,
    SCISSORS,
    SUCTION,
    Surgeon,
)
from viscera.timing import FRAME
from viscera.tissue.burning import with_burn_headroom
from viscera.tissue.lattice import make_lattice
from viscera.tissue.params import LatticeParams
from viscera.units import STANDARD_GRAVITY
from viscera.view import Goal, Level
from viscera.world import Contents, Organ, cuttable, looking_down
from viscera.world.systems.burns import burning
from viscera.world.systems.burnt_cuts import burnt_cutting
from viscera.world.systems.cuts import cutting
from viscera.world.systems.heat import heating, make_heat_on
from viscera.world.systems.scope import scope, through_trocar
from viscera.world.systems.smoke import smoking
from viscera.world.systems.stiffening import stiffening
from viscera.world.systems.tint import Colour, tinting

SPACING = 0.003
"""Of the masses at detail 1 [m]."""
TEXELS = 256
LINKS = 1_800
"""That may be cut and drawn."""
OUTSIDE = 4_500
"""Points of the uncut surface, at most, at detail 1: patients differ."""
SMOKE_DETAIL = 0.3
"""Of smoke's cells, against its own scenario."""
RUBBING, TABLE = 0.2, -0.002
"""Friction of tissue on tissue, and what lies below the liver [m]."""
DRAG = 15.0
"""[1/s]"""
HOLDING, WORKING, FRONT = (0.10, -0.05, 0.23), (-0.17, -0.12, 0.060), (-0.03, -0.12, 0.20)
"""Trocars of the hand that holds, of hook and forceps, which work along the gall bladder, and of all that goes across
[m]."""
SCOPE_TROCAR = 0.28
"""How far the scope's trocar is from the middle of the field [m]."""
HOOK_POWER = 5.0
"""That goes into the walls of the cut [W]. Of the 30 W that a generator gives, cutting current spends most on boiling
what it parts: some 64 mm³/s at 2.5 J/mm³ for a foot of 4 mm at 2 cm/s would take more than all of it."""
CLIP_REACH = 0.006
"""From the tips of the applier to the middle of a tube [m]; medium-large clips are 9 mm long."""
CLIP_HOLD = 3.0 * 20.0 / 255.0
"""Force at which a clip slips off a tube [N]: 3 N, as on arteries, times how much softer tubes are here than in tables
(materials.py)."""
CUTTING_CURRENT = 0.04
"""Share of the toughness that a wire under current needs, over a blade pressed straight in: it boils what it touches.
Estimated."""

INSTRUCTIONS = """\
Take out the gall bladder, the green sac on the liver. Its duct and artery run in the yellow fold on the left.
Key 1, grasper: hold the button on the sac, lift with the wheel; keep the button and press 2: it stays clamped.
Key 2, hook: press D over the field, so that it keeps its depth; E or Q until its foot points down. The wheel \
brings it in: hold the button and draw it through the fold beside duct and artery, never across: free both.
Critical view: fold and lower bed are free, and two tubes (or three) are all that goes to the sac.
Key 3, clips: two on each tube. Key 4, scissors: cut between the two. The green duct at the far left stays whole.
Key 2 again: part the sac from its bed, lifting it as you go. Key 5, bipolar: stop what oozes.
Key 6 sucks, key 7 rinses, key 8 draws smoke away. Then take the sac with the grasper and carry it out, 4 cm up.
A cut artery spurts, a nicked sac leaks bile: clip it, or suck and go on. Every patient (seed) is another.
Look around with the right button. The lens fogs at first: wipe it (Settings, Scope). To move a clamped grasper: 1, D, \
pointer and wheel, then the key of another instrument."""

SAFE = (
    Goal("critical_view", least=1.0), Goal("secured", least=100.0), Goal("freed", least=100.0),
    Goal("taken_out", least=1.0), Goal("common_hurt", most=25.0),
)  # fmt: skip

LEVELS = (
    Level("Standard", (*SAFE, Goal("blood_lost", most=20.0), Goal("bile_spilt", most=5.0))),
    Level(
        "Careful",
        (
            *SAFE, Goal("blood_lost", most=5.0), Goal("bile_spilt", most=1.0), Goal("duct_burn", most=50.0),
            Goal("bleeding", most=0.5), Goal("liver_cut", most=150.0),
        ),
    ),
    Level(
        "Expert",
        (
            *SAFE, Goal("blood_lost", most=2.0), Goal("bile_spilt", most=0.1), Goal("duct_burn", most=20.0),
            Goal("bleeding", most=0.5), Goal("liver_cut", most=80.0), Goal("time", most=600.0),
        ),
        settings={"pressure": 140.0},
    ),
)  # fmt: skip
"""Limits are our own choice. Expert's patient has a high blood pressure."""

COLOURS: dict[int, tuple[Colour, Colour]] = {
    parts.WALL: ((0.42, 0.50, 0.36), (0.55, 0.50, 0.36)),
    parts.LUMEN: ((0.40, 0.40, 0.12), (0.40, 0.36, 0.10)),
    parts.BED: ((0.72, 0.47, 0.40), (0.74, 0.45, 0.38)),
    parts.FAT: ((0.84, 0.64, 0.28), (0.80, 0.58, 0.25)),
    parts.PERITONEUM: ((0.86, 0.70, 0.38), (0.80, 0.58, 0.25)),
    parts.DUCT: ((0.72, 0.69, 0.42), (0.62, 0.60, 0.34)),
    parts.COMMON: ((0.48, 0.56, 0.34), (0.48, 0.52, 0.26)),
    parts.ARTERY: ((0.80, 0.34, 0.25), (0.62, 0.10, 0.10)),
}
"""Of the outside and of cut faces; liver keeps its own look."""


def hook() -> Instrument:
    """A monopolar hook under cutting current: foot and wire part tissue while the pedal is down."""
    one = kit.hook(HOOK_POWER)
    effects = (*one.effects, Cuts(parts=(0, 1), need=CUTTING_CURRENT))
    return replace(one, effects=effects, action="coagulate and cut")


def clip_applier() -> Instrument:
    """For clips of 9 mm, which reach around a duct and what lies on it."""
    one = kit.clip_applier()
    clips = Clips(reach=CLIP_REACH, hold=CLIP_HOLD)
    effects = tuple(clips if isinstance(effect, Clips) else effect for effect in one.effects)
    return replace(one, effects=effects)


def instruments() -> list[Instrument]:
    """As keys 1 to 8 choose them."""
    found: dict[int, Instrument] = {
        GRASPER: kit.grasper().through(HOLDING), HOOK: hook().through(WORKING),
        CLIPS: clip_applier(), SCISSORS: kit.scissors(), BIPOLAR: kit.forceps().through(WORKING),
        SUCTION: kit.suction(), IRRIGATOR: kit.irrigator(), EVACUATOR: kit.evacuator(),
    }  # fmt: skip
    return [one if one.trocar is not None else one.through(FRONT) for _, one in sorted(found.items())]


def build(setting: Setting) -> Contents:
    patient = draw_patient(setting.seed)
    field = _field(setting.seed, setting.length(SPACING))
    organ = _organ(setting, field)
    camera, bounds = looking_down([organ], (-0.08, -0.72, 0.78))
    home = (0.0, -0.05, 0.07)
    tools = kit.hand_out(instruments(), home, 0.1, apart=0.012)
    warmth = make_heat_on(organ, LIVING_LIVER, dt=HEATING * FRAME)
    burn = burns.make(warmth)
    opening = cutting(organ)
    hot, scorched = heating(organ, warmth, burn, tools, every=HEATING), burning(organ, burn, every=HEATING)
    stiff = stiffening(organ, burn, every=HEATING)
    springs = stiff.holds
    smoke = smoking(organ, burn, tools, SMOKE_DETAIL * setting.detail)
    fluids = make_fluids(organ, setting, patient, field, springs)
    organ.tissue.set_gravity((0.0, 0.0, -STANDARD_GRAVITY))
    eyes = Eyes(organ, patient, field, fluids.tubes)

    def heaviest() -> None:
        smoke.holds.wake()
        pour(organ, fluids.film)

    return Contents(
        organs=[organ],
        tools=tools,
        systems=[
            opening,
            hot,
            scorched,
            stiff,
            burnt_cutting(organ, springs),
            *fluids.before,
            judging(organ, field, fluids.tubes, springs),
            *fluids.after,
            smoke,
            scope(),
            tinting(organ, COLOURS),
        ],
        parameters=fluids.parameters,
        levels=LEVELS,
        camera=through_trocar(camera, SCOPE_TROCAR),
        bounds=bounds,
        force_scale=0.02,
        rubbing=RUBBING,
        table=TABLE,
        scenery=around(),
        script=Surgeon(operation(eyes, tools[SCISSORS].instrument)).script,
        heaviest=heaviest,
    )


def _organ(setting: Setting, field: Field) -> Organ:
    """All of it in one lattice: the liver's underside and the ends of the common duct hold fast."""
    made = materials_of(draw_patient(setting.seed))
    at, h = field.body.positions, field.body.spacing
    ends = (field.material_of == parts.COMMON) & (np.abs(at[:, 1]) > HALF_WIDTH - 0.5 * h)
    params = LatticeParams(
        nodes=field.body.nodes, spacing=h, origin=field.body.origin, anchored=(at[:, 2] < 0.5 * h) | ends,
        material=made[0], further=made[1:], material_of=field.material_of, stiffest=made[0].young, drag=DRAG,
    )  # fmt: skip
    tissue = make_lattice(setting.device, with_burn_headroom(params))
    texels = setting.texels(TEXELS)
    # Surfaces, the drawn one and those of cuts, have more points by the two thirds of what volumes have.
    finer = setting.detail ** (2.0 / 3.0)
    return cuttable(
        "field", field.body, tissue, look="liver", texels=texels, room=round(LINKS * finer), inside=True,
        outside=round(OUTSIDE * finer),
    )  # fmt: skip


@cache
def _field(seed: int, spacing: float) -> Field:
    return make_field(draw_patient(seed), spacing)


SCENARIO = Scenario(
    name="cholecystectomy",
    title="Gall-bladder removal",
    summary="A whole operation: free duct and artery, clip, cut, dissect, stop the bleeding, take it out.",
    instructions=INSTRUCTIONS,
    build=build,
    takes_mesh=False,
)
