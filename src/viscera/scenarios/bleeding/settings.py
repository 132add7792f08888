"""What a user may change about the patient, the blood and the dressing."""

from __future__ import annotations

import math
from dataclasses import replace

from viscera.blood.film.film import Film, set_film
from viscera.blood.film.params import BILE, BLOOD, SALINE, FilmParams
from viscera.blood.wounds.vessels import DISCHARGE, VesselParams
from viscera.blood.wounds.wounds import WoundParams, set_vessel, set_wounds
from viscera.scenarios.bleeding.dressing import Dressing
from viscera.timing import FRAME
from viscera.units import MILLILITRE
from viscera.view import ADVANCED, Parameter
from viscera.world.system import LiveParameter
from viscera.world.systems.gauze import Gauze
from viscera.world.systems.wounds import Vessels

STEPS = 6
"""Of the film in a frame. A puddle of 1 000 particles comes to rest with 6 as with 8 (0.05 mm/s after 4 s, as wide
within 0.1 %); with 5 it keeps trembling at 1.3 mm/s, with 4 at 12."""

FILM = FilmParams(fluids=(BLOOD, BILE, SALINE), dt=FRAME / STEPS, dilution=2.0, clot_rate=1.0 / 90.0, dissolve_rate=0.4)
"""Blood at rest is half clotted after a minute; saline thins it within a second and dissolves clots in a few."""

BILE_DUCT = VesselParams(0.0, 0.0, 1.0e-3, density=BILE.density)
BILE_OPENING = 0.8e-3
"""A torn duct, wide enough to well up instead of spurting; its pressure follows from the leak that is asked for."""

PATIENT, DRESSING = "Patient", "Dressing"
"""Headings of the settings."""

PRESSURE = Parameter(
    "pressure",
    "Blood pressure",
    "%",
    20.0,
    160.0,
    100.0,
    "Against normal; bleeding follows the pressure.",
    group=PATIENT,
)
HEART_RATE = Parameter("heart_rate", "Heart rate", "1/min", 40.0, 160.0, 72.0, "Beats per minute.", group=PATIENT)
CLOTTING = Parameter(
    "clotting",
    "Clotting",
    "%",
    0.0,
    300.0,
    100.0,
    "How fast resting blood clots, against normal; 0 is a haemophiliac.",
    group=PATIENT,
)
DILUTION = Parameter("dilution", "Mixing", "1/s", 0.0, 5.0, 2.0, "How fast fluids that touch mix.", group=ADVANCED)
DISSOLVING = Parameter(
    "dissolving",
    "Clots dissolve",
    "1/s",
    0.0,
    4.0,
    FILM.dissolve_rate,
    "How fast saline around a clot dissolves it.",
    group=ADVANCED,
)
SEPARATION = Parameter(
    "separation",
    "Separation",
    "m/s²",
    0.0,
    80.0,
    FILM.separation,
    "How hard bile and blood push each other away.",
    group=ADVANCED,
)
BILE_LEAK = Parameter(
    "bile_leak", "Bile leak", "mL/min", 0.0, 20.0, 0.0, "Out of a torn duct between the vessels.", group=PATIENT
)
GAUZE = Parameter(
    "gauze",
    "Gauze",
    "",
    0.0,
    2.0,
    0.0,
    "On the organ beside the artery; it keeps blood out, at once or after soaking.",
    choices=("None", "Tight", "Soaks first"),
    group=DRESSING,
)
INCISION = Parameter(
    "incision",
    "Incision",
    "",
    0.0,
    2.0,
    0.0,
    "Across the middle of the organ; it holds blood up, or drains it.",
    choices=("None", "Holds up", "Drains"),
    group=DRESSING,
)
LIFETIME = Parameter(
    "lifetime",
    "Lifetime",
    "s",
    0.0,
    120.0,
    0.0,
    "After which blood on the organ is taken away by itself; 0 is never.",
    group=ADVANCED,
)
TRACTION = Parameter(
    "traction",
    "Stickiness",
    "1/s",
    30.0,
    400.0,
    BLOOD.traction,
    "How much the surface holds the blood back.",
    group=ADVANCED,
)
POOLING = Parameter(
    "pooling",
    "Pooling",
    "%",
    0.0,
    100.0,
    100.0 * FILM.pooling,
    "How much blood on two surfaces that face each other across a narrow gap (a fold, two organs) acts as one film: "
    "0 not at all, 100 as on one surface. Elsewhere it changes nothing.",
    group=ADVANCED,
)


def patient_parameters(bleeding: Vessels, film: Film) -> list[LiveParameter]:
    """The last wound is the bile duct, all others are vessels."""
    wounds = bleeding.wounds
    usual = wounds.vessels[:-1]
    finer = film.params.separation / FILM.separation
    """Of pressures of the film, see `finer_film`."""

    def set_pressure(value: float) -> None:
        share = 0.01 * value
        for number, vessel in enumerate(usual):
            now = replace(vessel, systolic=share * vessel.systolic, diastolic=share * vessel.diastolic)
            set_vessel(wounds, number, now)

    def set_rate(value: float) -> None:
        bleeding.heart_rate = value / 60.0

    def set_clotting(value: float) -> None:
        change(clot_rate=0.01 * value * FILM.clot_rate)
        time = 0.0 if value == 0.0 else WoundParams().clot_time / (0.01 * value)
        set_wounds(wounds, replace(wounds.params, clot_time=time))

    def change(**fields: float) -> None:
        set_film(film, replace(film.params, **fields))

    def set_leak(value: float) -> None:
        set_vessel(wounds, len(usual), leaking(value * MILLILITRE / 60.0))

    def set_traction(value: float) -> None:
        blood, *others = film.params.fluids
        fluids = (replace(blood, traction=value), *others)
        set_film(film, replace(film.params, fluids=fluids))

    return [
        LiveParameter(PRESSURE, set_pressure),
        LiveParameter(HEART_RATE, set_rate),
        LiveParameter(CLOTTING, set_clotting),
        LiveParameter(DILUTION, lambda value: change(dilution=value)),
        LiveParameter(DISSOLVING, lambda value: change(dissolve_rate=value)),
        LiveParameter(SEPARATION, lambda value: change(separation=finer * value)),
        LiveParameter(BILE_LEAK, set_leak),
        LiveParameter(LIFETIME, lambda value: change(lifetime=value)),
        LiveParameter(POOLING, lambda value: change(pooling=0.01 * value)),
        LiveParameter(TRACTION, set_traction),
    ]


def dressing_parameters(gauze: Gauze, dressing: Dressing) -> list[LiveParameter]:
    return [
        LiveParameter(GAUZE, lambda value: gauze.lay(round(value))),
        LiveParameter(INCISION, lambda value: dressing.set_incision(round(value))),
    ]


def leaking(rate: float) -> VesselParams:
    """The duct with the pressure that gives `rate` [m³/s]: Δp = R Q + K Q², see `blood.wounds.vessels`."""
    k = BILE_DUCT.density / (2.0 * (DISCHARGE * math.pi * BILE_OPENING**2) ** 2)
    pressure = BILE_DUCT.resistance * rate + k * rate**2
    return replace(BILE_DUCT, systolic=pressure, diastolic=pressure)
