"""Bleeding: find the vessel under the blood, stop it with current or a clip, rinse and suck, and lose little blood.

A pad of liver (or the user's own closed mesh) bleeds from vessels that the seed puts somewhere on its upper side: a
small artery that beats with the heart, and a vein that wells up. Blood runs down, gathers in the furrow and drips onto
the cloth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viscera import heat
from viscera.blood.drops import DropParams
from viscera.blood.wounds import VesselParams, vessel_mmhg
from viscera.heat import burns
from viscera.inputs import Input, ToolInput
from viscera.instruments import Tool, kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._film import FINEST, WATCHED, Blood, bleed, make_blood, pour, spill
from viscera.scenarios._organ import Top, seen_from_above
from viscera.scenarios._pad import HEATING, LIVING_LIVER, STIFFNESS, VISCOSITY, above, liver_pad
from viscera.scenarios._tissue import tissue_parameters
from viscera.scenarios.bleeding.dressing import Dressing
from viscera.scenarios.bleeding.settings import (
    BILE_DUCT,
    BILE_OPENING,
    FILM,
    dressing_parameters,
    patient_parameters,
)
from viscera.timing import FRAME
from viscera.tissue.materials import LIVER
from viscera.view import Goal, Level
from viscera.world import Body, Contents, Organ, System, looking_down, trocar_beside
from viscera.world.system import LiveParameter
from viscera.world.systems.burns import burning
from viscera.world.systems.gauze import Gauze, covering
from viscera.world.systems.heat import heating
from viscera.world.systems.ink import ink_on
from viscera.world.systems.smoke import smoking
from viscera.world.systems.stiffening import stiffening
from viscera.world.systems.wounds import Wound

PARTICLES = 5_000
"""Of blood and saline on the organ, 0.2 to 0.4 µL each: 1 to 2 mL. Chosen for two cores."""
DROPS = 2_048
"""In the air at once."""
RINSING = DropParams(jet_volume=0.4e-9)
"""Saline comes in drops of 0.4 µL, twice a particle of blood, so that rinsing takes half as many [m³]."""
POWER = 25.0
"""Of the forceps [W]."""

SUCTION, IRRIGATOR, FORCEPS, CLIPS, SWAB = range(5)
"""What keys 1 to 5 choose."""

SMALL_ARTERY = vessel_mmhg(70.0, 45.0, 0.5, 30.0)
SMALL_VEIN = vessel_mmhg(9.0, 7.0, 1.2, 60.0)
"""Of the size that a surgeon coagulates rather than ties."""
ARTERY_OPENING, VEIN_OPENING = 0.11e-3, 0.16e-3
"""Radii of the openings [m]: a nick."""
APART = 0.25
"""Distance of artery and vein over the organ's length."""
ASIDE = 11.0e-3
"""From the artery to the middle of the gauze, towards the middle of the organ [m]."""

INSTRUCTIONS = """\
Somewhere under the blood two vessels are open. Find them, stop them, and lose as little blood as you can.
Move the pointer over the organ: the instrument follows its surface. Hold the left button to use it.
Key 1: suction takes the blood away. Key 2: the irrigator rinses with saline.
Key 3: bipolar forceps coagulate: hold them on a vessel until it turns white and stops.
Key 4: the clip applier closes a vessel under its tip at once, and leaves a clip there.
Key 5: the swab soaks up blood, presses on a vessel, and wipes stains off cloth and instruments.
Watch the measures: blood lost, bleeding now, open vessels.
It is done once both vessels are closed, the organ is dry and nothing has bled for five seconds.
Settings put a gauze beside the artery, cut the organ across its middle, or let bile leak between the vessels."""


GOALS = (
    Goal("open_vessels", most=0.0), Goal("blood_lost", most=8.0), Goal("on_organ", most=0.15), WATCHED,
)  # fmt: skip
"""In mL: what both vessels lose in a minute; sucked dry but for what clings."""

LEVELS = (
    Level("Standard", GOALS),
    Level("Timed", (*GOALS, Goal("time", most=120.0))),
    Level("Expert", (GOALS[0], Goal("blood_lost", most=4.0), *GOALS[2:], Goal("time", most=60.0))),
)
"""The harder limits are our own choice."""


def build(setting: Setting) -> Contents:
    organ = liver_pad(setting)
    instruments = [kit.suction(), kit.irrigator(), kit.forceps(POWER), kit.clip_applier(), kit.swab()]
    camera, bounds = looking_down([organ], (0.05, -0.75, 0.95))
    tools = kit.hand_out(instruments, above(organ.body), LIVER.friction, trocar=trocar_beside(camera))
    warmth = heat.make(organ.need_skin(), LIVING_LIVER, dt=HEATING * FRAME)
    burn = burns.make(warmth)
    hot = [
        # Of the generator's settings only its power: the rest belongs to the drill of cautery.
        heating(organ, warmth, burn, tools, every=HEATING, settings=("power",)),
        burning(organ, burn, every=HEATING),
        stiffening(organ, burn, every=HEATING),
        smoking(organ, burn, tools, setting.detail),
    ]
    top = None if setting.mesh is None else seen_from_above(organ.body.mesh)
    vessels = open_vessels(organ.body, setting.seed, top)
    finer = min(setting.detail, FINEST)
    rinsing = replace(RINSING, jet_volume=RINSING.jet_volume / finer)
    blood = make_blood(organ, FILM, setting.detail, PARTICLES, DROPS, rinsing)
    systems, parameters = dress(blood, vessels, tools, top)
    return Contents(
        organs=[organ],
        tools=tools,
        systems=[*hot, *systems],
        parameters=[*parameters, *tissue_parameters(organ.tissue, STIFFNESS, VISCOSITY)],
        camera=camera,
        bounds=bounds,
        force_scale=0.2,
        levels=LEVELS,
        begins=lambda: spill(organ, blood.film, vessels, setting.seed),
        script=lambda world, tick: script(organ, vessels[0], tick, top),
        heaviest=lambda: pour(organ, blood.film),
    )


def dress(
    blood: Blood, vessels: list[Wound], tools: list[Tool], top: Top | None
) -> tuple[list[System], list[LiveParameter]]:
    """All that has to do with blood and what is laid on it, in the order of a frame, and its settings."""
    organ = blood.organ
    bleeding = bleed(blood, [*vessels, bile_duct(organ.body, vessels, top)], tools)
    drawing, ink = ink_on(organ)
    gauze = Gauze(organ, blood.film, bleeding.image, ink, beside(organ.body, vessels[0], top))
    dressing = Dressing(organ, blood.wounds, gauze, ink, None if top is None else top.longest_line)
    systems = [*bleeding.systems, drawing, covering(gauze), dressing.system()]
    return systems, [*patient_parameters(bleeding.vessels, blood.film), *dressing_parameters(gauze, dressing)]


def open_vessels(body: Body, seed: int, top: Top | None = None) -> list[Wound]:
    """An artery and a vein, where the seed puts them on the upper side, off the rim and apart; on a user's organ where
    there is room (`top`)."""
    places = _apart(body, seed) if top is None else _with_room(top, seed)
    kinds: list[tuple[VesselParams, float]] = [(SMALL_ARTERY, ARTERY_OPENING), (SMALL_VEIN, VEIN_OPENING)]
    wounds = []
    for place, (vessel, opening) in zip(places, kinds, strict=True):
        wounds.append(Wound(_on_top(body, place, top), vessel, opening))
    return wounds


def _apart(body: Body, seed: int) -> NDArray[np.float64]:
    """Two places of the table over our own pad [m]."""
    rng = np.random.default_rng(seed)
    low, high = body.mesh.bounds
    size = high - low
    while True:
        share = rng.uniform(0.28, 0.72, size=(2, 2))
        places = low[:2] + share * size[:2]
        if np.linalg.norm(places[0] - places[1]) > APART * size[0]:
            return places


def _with_room(top: Top, seed: int) -> NDArray[np.float64]:
    """Two places of the table over a user's organ [m]."""
    artery = top.places[np.random.default_rng(seed).integers(len(top.places))]
    return np.stack([artery, top.nearest(artery, APART * float(top.mesh.size[:2].max()))])


def bile_duct(body: Body, vessels: list[Wound], top: Top | None = None) -> Wound:
    """A torn duct halfway between the vessels; tight until the parameter says otherwise."""
    middle = np.mean([vessel.point[:2] for vessel in vessels], axis=0)
    if top is not None:
        middle = top.nearest(middle)
    return Wound(_on_top(body, middle, top), BILE_DUCT, BILE_OPENING, "bile")


def beside(body: Body, wound: Wound, top: Top | None = None) -> NDArray[np.float64]:
    """A place `ASIDE` of a wound towards the middle of the organ, on the table [m]; on a user's organ, where there is
    room."""
    if top is not None:
        return top.nearest(wound.point[:2], ASIDE)
    low, high = body.mesh.bounds
    way = 0.5 * (low + high)[:2] - wound.point[:2]
    return np.asarray(wound.point[:2]) + ASIDE * way / max(float(np.linalg.norm(way)), 1e-9)


def _on_top(body: Body, place: NDArray[np.float64], top: Top | None) -> tuple[float, float, float]:
    """The middle of the upper triangle nearest to this place of the table [m]."""
    if top is not None:
        return top.on_surface(place)
    centres = body.mesh.corners.mean(axis=1)
    upper = np.flatnonzero(body.mesh.face_vectors[:, 2] > 0.0)
    x, y, z = centres[upper[np.argmin(np.linalg.norm(centres[upper, :2] - place, axis=1))]].tolist()
    return x, y, z


def script(organ: Organ, wound: Wound, tick: int, top: Top | None = None) -> Iterable[Input]:
    """A hand that lets it bleed for two seconds, sucks over the first vessel for two, then holds the forceps on it."""
    if tick % 10:
        return []
    x, y, _ = wound.point
    # Of the surface at rest: the forceps press it down, and would follow it ever deeper.
    z = organ.height(x, y, None if top is None else top.vertices)
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
    build=build,
)
