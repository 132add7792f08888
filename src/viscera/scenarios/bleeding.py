"""Bleeding: find the vessel under the blood, stop it with current or a clip, rinse and suck, and lose little blood.

A pad of liver (or the user's own closed mesh) bleeds from vessels that the seed puts somewhere on its upper side: a
small artery that beats with the heart, and a vein that wells up. Blood runs down, gathers in the furrow and drips onto
the cloth.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viscera.blood.film.film import set_film
from viscera.blood.film.params import BILE, BLOOD, SALINE, FilmParams
from viscera.blood.wounds.vessels import DISCHARGE, VesselParams, vessel_mmhg
from viscera.blood.wounds.wounds import WoundParams, set_vessel, set_wounds
from viscera.geometry.tools import bipolar_forceps
from viscera.heat.electrode import ElectrodeParams
from viscera.inputs import Input, ToolInput
from viscera.instruments import Tool
from viscera.scenarios import Scenario, Setting
from viscera.scenarios import cautery as burning
from viscera.scenarios._dressing import Dressing
from viscera.scenarios._instruments import clip_applier, forceps, irrigator, suction
from viscera.scenarios._organ import Body, looking_down, make_organ, tissue_parameters
from viscera.scenarios.cautery import STAGES, STIFFNESS, VISCOSITY, check_table, liver_body, surface_height
from viscera.skin import make_skin
from viscera.tissue.materials import LIVER
from viscera.units import MILLILITRE
from viscera.view import ADVANCED, Goal, Parameter
from viscera.world import Contents, LiveParameter, LiveTable, World
from viscera.world.bleeding import Bleeding, Wound
from viscera.world.cautery import Cautery, Energised

TEXELS = 512
PARTICLES = 5_000
"""Of blood and saline on the organ, 0.2 to 0.4 µL each: 1 to 2 mL. Chosen for two cores."""

SUCTION, IRRIGATOR, FORCEPS, CLIPS = range(4)

FILM = FilmParams(fluids=(BLOOD, BILE, SALINE), dilution=2.0, clot_rate=1.0 / 90.0, dissolve_rate=0.4)
"""Blood at rest is half clotted after a minute; saline thins it within a second and dissolves clots in a few."""

SMALL_ARTERY = vessel_mmhg(70.0, 45.0, 0.5, 30.0)
SMALL_VEIN = vessel_mmhg(9.0, 7.0, 1.2, 60.0)
"""Of the size that a surgeon coagulates rather than ties."""
ARTERY_OPENING, VEIN_OPENING = 0.11e-3, 0.16e-3
"""Radii of the openings [m]: a nick."""

BILE_DUCT = VesselParams(0.0, 0.0, 1.0e-3, density=BILE.density)
BILE_OPENING = 0.8e-3
"""A torn duct, wide enough to well up instead of spurting; its pressure follows from the leak that is asked for."""
ASIDE = 11.0e-3
"""From the artery to the middle of the gauze, towards the middle of the organ [m]."""

HOME_HEIGHT = 0.04
"""Of waiting instruments above the surface [m]."""

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
POWER = replace(burning.POWER, default=25.0)

INSTRUCTIONS = """\
Somewhere under the blood two vessels are open. Find them, stop them, and lose as little blood as you can.
Move the pointer over the organ: the instrument follows its surface. Hold the left button to use it.
Key 1: suction takes the blood away. Key 2: the irrigator rinses with saline.
Key 3: bipolar forceps coagulate: hold them on a vessel until it turns white and stops.
Key 4: the clip applier closes a vessel under its tip at once, and leaves a clip there.
Watch the measures: blood lost, bleeding now, open vessels.
Settings put a gauze beside the artery, cut the organ across its middle, or let bile leak between the vessels."""


GOALS = (Goal("open_vessels", most=0.0), Goal("blood_lost", most=8.0), Goal("on_organ", most=0.3))
"""In mL: what both vessels lose in a minute; sucked dry but for what clings."""


def modules() -> list[types.ModuleType]:
    from viscera.blood import balance, gauze
    from viscera.blood.drops import kernels as drop_kernels
    from viscera.blood.drops import landing
    from viscera.blood.drops import tools as drop_tools
    from viscera.blood.film import kernels, mixing, native, order, surface
    from viscera.blood.picture import finish
    from viscera.blood.picture import kernels as picture_kernels
    from viscera.blood.wounds import kernels as wound_kernels
    from viscera.neighbors import cells, ordering
    from viscera.world import bleeding

    film = [
        balance,
        drop_kernels,
        drop_tools,
        kernels,
        mixing,
        native,
        order,
        surface,
        gauze,
        finish,
        picture_kernels,
        landing,
    ]
    return [*burning.modules(), *film, wound_kernels, cells, ordering, bleeding]


def build(setting: Setting) -> Contents:
    body = liver_body(setting)
    tissue = burning.make_tissue(setting.device, body)
    skin = make_skin(body.mesh, width=TEXELS, device=setting.device)
    organ = make_organ("pad", "liver", body, tissue, skin)
    top = float(body.positions[:, 2].max()) + HOME_HEIGHT
    makers = (suction, irrigator, forceps, clip_applier)
    tools = [
        Tool(number, make((0.02 * (number - 1.5), 0.0, top)), friction=LIVER.friction)
        for number, make in enumerate(makers)
    ]
    cautery = Cautery(
        organ,
        [Energised(FORCEPS, bipolar_forceps(), ElectrodeParams(power=25.0, reach=1.5e-3, bipolar=True))],
        burning.LIVING_LIVER,
        every=2,
    )
    vessels = open_vessels(body, setting.seed)
    blood = Bleeding(
        organ,
        [*vessels, bile_duct(body, vessels)],
        FILM,
        PARTICLES,
        coagulation=cautery.burn.burn_level,
        suction=SUCTION,
        nozzle=IRRIGATOR,
        clips=CLIPS,
    )
    dressing = Dressing(blood, skin, beside(body, vessels[0]))
    camera, bounds = looking_down(body, (0.05, -0.75, 0.95))
    return Contents(
        organs=[organ],
        tools=tools,
        parameters=[
            *_blood_parameters(blood),
            LiveParameter(GAUZE, lambda world, value: dressing.set_gauze(round(value))),
            LiveParameter(INCISION, lambda world, value: dressing.set_incision(round(value))),
            LiveParameter(POWER, lambda world, value: cautery.set_power(value)),
            *tissue_parameters(STIFFNESS, VISCOSITY),
        ],
        camera=camera,
        bounds=bounds,
        systems=[cautery, blood, dressing],
        goals=GOALS,
        tables=[LiveTable(STAGES, lambda world, rows: None, check_table)],
    )


def open_vessels(body: Body, seed: int) -> list[Wound]:
    """An artery and a vein, where the seed puts them on the upper side, off the rim and apart."""
    rng = np.random.default_rng(seed)
    low, high = body.mesh.bounds
    size = high - low
    while True:
        share = rng.uniform(0.28, 0.72, size=(2, 2))
        places = low[:2] + share * size[:2]
        if np.linalg.norm(places[0] - places[1]) > 0.25 * size[0]:
            break
    kinds: list[tuple[VesselParams, float]] = [(SMALL_ARTERY, ARTERY_OPENING), (SMALL_VEIN, VEIN_OPENING)]
    wounds = []
    for place, (vessel, opening) in zip(places, kinds, strict=True):
        x, y, z = _on_top(body, place)
        wounds.append(Wound((x, y, z), vessel, opening))
    return wounds


def bile_duct(body: Body, vessels: list[Wound]) -> Wound:
    """A torn duct halfway between the vessels; tight until the parameter says otherwise."""
    middle = np.mean([vessel.point[:2] for vessel in vessels], axis=0)
    return Wound(_on_top(body, middle), BILE_DUCT, BILE_OPENING, "bile")


def beside(body: Body, wound: Wound) -> NDArray[np.float64]:
    """A place `ASIDE` of a wound towards the middle of the organ, on the table [m]."""
    low, high = body.mesh.bounds
    way = 0.5 * (low + high)[:2] - wound.point[:2]
    return np.asarray(wound.point[:2]) + ASIDE * way / max(float(np.linalg.norm(way)), 1e-9)


def leaking(rate: float) -> VesselParams:
    """The duct with the pressure that gives `rate` [m³/s]: Δp = R Q + K Q², see `blood.wounds.vessels`."""
    k = BILE_DUCT.density / (2.0 * (DISCHARGE * math.pi * BILE_OPENING**2) ** 2)
    pressure = BILE_DUCT.resistance * rate + k * rate**2
    return replace(BILE_DUCT, systolic=pressure, diastolic=pressure)


def _on_top(body: Body, place: NDArray[np.float64]) -> tuple[float, float, float]:
    """The middle of the upper triangle nearest to this place of the table [m]."""
    centres = body.mesh.corners.mean(axis=1)
    upper = np.flatnonzero(body.mesh.face_vectors[:, 2] > 0.0)
    x, y, z = centres[upper[np.argmin(np.linalg.norm(centres[upper, :2] - place, axis=1))]].tolist()
    return x, y, z


def _blood_parameters(blood: Bleeding) -> list[LiveParameter]:
    usual = blood.wounds.vessels[:-1]
    duct = len(usual)

    def set_pressure(world: World, value: float) -> None:
        share = 0.01 * value
        for number, vessel in enumerate(usual):
            now = replace(vessel, systolic=share * vessel.systolic, diastolic=share * vessel.diastolic)
            set_vessel(blood.wounds, number, now)

    def set_rate(world: World, value: float) -> None:
        blood.heart_rate = value / 60.0

    def set_clotting(world: World, value: float) -> None:
        set_film(blood.film, replace(blood.film.params, clot_rate=0.01 * value * FILM.clot_rate))
        time = 0.0 if value == 0.0 else WoundParams().clot_time / (0.01 * value)
        set_wounds(blood.wounds, replace(blood.wounds.params, clot_time=time))

    def change(**fields: float) -> None:
        set_film(blood.film, replace(blood.film.params, **fields))

    def set_leak(world: World, value: float) -> None:
        set_vessel(blood.wounds, duct, leaking(value * MILLILITRE / 60.0))

    def set_traction(world: World, value: float) -> None:
        fluids = (replace(BLOOD, traction=value), *FILM.fluids[1:])
        set_film(blood.film, replace(blood.film.params, fluids=fluids))

    return [
        LiveParameter(PRESSURE, set_pressure),
        LiveParameter(HEART_RATE, set_rate),
        LiveParameter(CLOTTING, set_clotting),
        LiveParameter(DILUTION, lambda world, value: change(dilution=value)),
        LiveParameter(DISSOLVING, lambda world, value: change(dissolve_rate=value)),
        LiveParameter(SEPARATION, lambda world, value: change(separation=value)),
        LiveParameter(BILE_LEAK, set_leak),
        LiveParameter(LIFETIME, lambda world, value: change(lifetime=value)),
        LiveParameter(POOLING, lambda world, value: change(pooling=0.01 * value)),
        LiveParameter(TRACTION, set_traction),
    ]


def script(world: World, tick: int) -> Iterable[Input]:
    """A hand that lets it bleed for two seconds, sucks over the first vessel for two, then holds the forceps on it."""
    if tick % 10:
        return []
    wound = open_vessels(burning.liver_body(None), world.seed)[0]
    x, y, _ = wound.point
    z = surface_height(np.asarray(world.organs[0].vertices.numpy(), dtype=np.float32), x, y)
    if tick < 2000:
        return []
    if tick < 4000:
        turn = 2.0 * math.pi * tick / 500.0
        return [ToolInput(SUCTION, (x + 0.005 * math.cos(turn), y + 0.005 * math.sin(turn), z + 0.001), grip=1.0)]
    if tick == 4000:
        return [ToolInput(SUCTION, (x, y, z + 0.04), active=False)]
    return [ToolInput(FORCEPS, (x, y, z - 0.0005), grip=1.0)]


SCENARIO = Scenario(
    name="bleeding",
    title="Bleeding",
    summary="Find the open vessels under the blood, seal them, rinse and suck; lose little blood.",
    instructions=INSTRUCTIONS,
    modules=modules,
    build=build,
    script=script,
)
