"""Blood, bile and saline of the operation, in the order of a frame: what tubes carry, what leaves, where it goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viscera.blood.film import BILE, BLOOD, SALINE, Film, FilmParams
from viscera.blood.wounds import VESSELS, VesselParams, set_vessel, vessel_mmhg
from viscera.scenarios import Setting
from viscera.scenarios._film import make_blood
from viscera.scenarios.cholecystectomy import body
from viscera.scenarios.cholecystectomy.body import Field
from viscera.scenarios.cholecystectomy.patient import Patient
from viscera.tissue.burning import Burning
from viscera.units import MMHG
from viscera.view import Parameter
from viscera.world import Organ
from viscera.world.system import LiveParameter, System
from viscera.world.systems.lumen import lumen_of
from viscera.world.systems.ooze import oozing
from viscera.world.systems.tubes import Tube, Tubes, tubes_through
from viscera.world.systems.wounds import Openings, Wound, bleeding

PARTICLES, DROPS = 4_000, 800
FILM = FilmParams(fluids=(BLOOD, BILE, SALINE), clot_rate=1.0 / 90.0, dilution=1.0)
HOLES, OOZING = 6, 40
"""In the gall bladder's wall, and places of cut faces that ooze, at most."""
ARTERY_OPENING = 0.15e-3
"""Radius of a cystic artery when it is cut [m]: it contracts."""
ARTERY_WIDTH, ARTERY_FEED = 1.0, 30.0
"""Of a cystic artery, and of what feeds it [mm]."""
PULSE_PART = 0.67
"""Diastolic over systolic pressure."""
SECRETION = VesselParams(10.0 * MMHG, 10.0 * MMHG, radius=0.3e-3, feed_length=0.3, density=1_010.0, viscosity=1.0e-3)
"""What feeds the common duct: so narrow and long that it gives 0.8 mL/min, as a liver makes bile."""
BILE_VOLUME = 6.0e-6
"""In the gall bladder [m³]."""
FULL = VesselParams(3.0 * MMHG, 3.0 * MMHG, radius=1.5e-3, feed_length=0.02, density=1_010.0, viscosity=2.0e-3)
"""The gall bladder while it is full; pressure between meals is a few mmHg."""
OOZE = VESSELS["capillary bed"]
OOZE_OPENING, INFLAMED_OPENING = 0.035e-3, 0.05e-3
"""All of such a vessel [m]; an inflamed bed bleeds more."""

PRESSURE = Parameter(
    "pressure", "Systolic pressure", "mmHg", 60.0, 180.0, 110.0, "In the arteries; diastolic is two thirds of it."
)


@dataclass(frozen=True, eq=False)
class Fluids:
    before: list[System]
    """What runs in tubes: before the judge in the order of a frame."""
    after: list[System]
    film: Film
    tubes: Tubes
    parameters: list[LiveParameter]


def make_fluids(organ: Organ, setting: Setting, patient: Patient, field: Field, burning: Burning) -> Fluids:
    """On the organ at rest, after `stiffening` was made."""
    blood = make_blood(organ, FILM, setting.detail, PARTICLES, DROPS)
    tubes = tubes_of(patient, field)
    # Their places are those of cuts, once there are some.
    openings, aside = Openings(), _aside(organ)
    ends = openings.add(_waiting(aside, tube, end) for tube in tubes for end in (0, 1))
    holes = openings.add([Wound(aside, FULL, NARROW, "bile")] * HOLES)
    wide = INFLAMED_OPENING if patient.inflamed else OOZE_OPENING
    faces = openings.add([Wound(aside, OOZE, wide, oozes=True)] * OOZING)
    bleeders = bleeding(organ, blood.wounds, openings.all, clips=False)
    through = tubes_through(organ, bleeders.holds, tubes, ends, burning)
    lumen = lumen_of(
        organ, bleeders.holds, np.flatnonzero(field.material_of == body.LUMEN), holes,
        volume=BILE_VOLUME, full=FULL, fed=(through.holds.wound(CYSTIC_DUCT, 1),),
    )  # fmt: skip
    weeping = oozing(organ, bleeders.holds, faces)
    bleeders.holds.shown()

    def press(value: float) -> None:
        for number, tube in enumerate(tubes):
            if tube.fluid == "blood":
                set_vessel(blood.wounds, through.holds.wound(number, 0), artery(value))

    return Fluids(
        before=[through, lumen, weeping],
        after=blood.systems(bleeders),
        film=blood.film,
        tubes=through.holds,
        parameters=[LiveParameter(PRESSURE, press)],
    )


CYSTIC_DUCT = 0
"""Number of the tube that the gall bladder feeds."""
NARROW = 0.1e-3
"""Of an opening before it is one [m]."""


def artery(systolic: float) -> VesselParams:
    """A cystic artery under so much pressure [mmHg]."""
    return vessel_mmhg(systolic, PULSE_PART * systolic, ARTERY_WIDTH, ARTERY_FEED)


def tubes_of(patient: Patient, field: Field) -> list[Tube]:
    """Cystic duct, common duct, arteries."""
    wide = SECRETION.radius
    found = [
        Tube("cystic duct", patient.duct, field.tubes[0], wide, "bile", start=SECRETION, end=FULL),
        Tube("common duct", patient.common, field.tubes[1], wide, "bile", start=SECRETION, end=SECRETION),
    ]
    for line, masses in zip(patient.arteries, field.tubes[2:], strict=True):
        found.append(Tube("cystic artery", line, masses, ARTERY_OPENING, start=artery(PRESSURE.default)))
    return found


def _waiting(place: tuple[float, float, float], tube: Tube, end: int) -> Wound:
    vessel = (tube.start if end == 0 else tube.end) or tube.start
    assert vessel is not None
    return Wound(place, vessel, tube.radius, tube.fluid)


def _aside(organ: Organ) -> tuple[float, float, float]:
    """A place of the underside in a corner, where nothing ever happens."""
    centres = organ.body.mesh.corners.mean(axis=1)
    x, y, z = centres[np.argmin(centres @ np.array([1.0, 1.0, 4.0]))].tolist()
    return x, y, z
