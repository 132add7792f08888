"""Spurt: an artery cut through on a sheet of tissue over Perlin noise spurts with the heart, splashes, runs down and
fills the hollows. Press on it, suck the pools dry, clip it.

What Andersson's demo shows (§3.2, figure 4.2: blood that squirts out of a surface of hills, at most 400 drops at a
time), with pressure, volume and pools that add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from viscera.blood import drops as sprays
from viscera.blood.drops import DropParams, Drops
from viscera.blood.film import BLOOD, SALINE, FilmParams
from viscera.blood.wounds import VesselParams, set_opening, set_vessel, vessel_mmhg
from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._film import WATCHED, bleed, make_blood, pour, spill
from viscera.scenarios._pad import HOME_HEIGHT
from viscera.skin import make_skin
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import LIVER
from viscera.tissue.params import LatticeParams
from viscera.units import MILLIMETRE, MINUTE
from viscera.view import Goal, Level, Parameter
from viscera.world import Body, Contents, Organ, fill, looking_down, make_organ, trocar_beside
from viscera.world.system import LiveParameter
from viscera.world.systems.wounds import Vessels, Wound

MASSES = 2_000
TEXELS = 512
PARTICLES, DROPS = 5_000, 2_048
FILM = FilmParams(fluids=(BLOOD, SALINE), clot_rate=1.0 / 120.0, dilution=2.0, hysteresis=DropParams().hysteresis)
ANCHORED = 0.004
"""Up to here it holds fast to the table [m]."""
SWAB = 4.0e-3
"""Radius of the gauze that presses and wipes [m]."""
POISSON, VISCOUS_TIME = 0.35, 2e-4
PULSE_PART = 0.67
"""Diastolic over systolic pressure, as 120/80."""
DIAMETER, FEED = 1.0, 30.0
"""Of the artery, and of what feeds it [mm]."""
HIGH = 0.5
"""And among the higher half of the ground there."""
MARGIN = 0.5
"""The artery is within this part of the sheet's half sides from the middle."""

PRESSURE = Parameter(
    "pressure", "Systolic pressure", "mmHg", 0.0, 160.0, 36.0, "In the artery; diastolic is two thirds of it."
)
HEART_RATE = Parameter("heart_rate", "Heart rate", "1/min", 40.0, 160.0, 72.0, "Beats per minute.")
OPENING = Parameter("opening", "Opening", "mm", 0.05, 0.3, 0.2, "Radius of the hole in the artery.")
BOUNCE = Parameter("bounce", "Bounce", "m/s", 0.2, 5.0, 1.0, "Speed against tissue above which drops bounce.")
DRAG = Parameter("drag", "Air drag", "%", 0.0, 100.0, 100.0, "Of a ball in still air.")

PRESS, SUCTION, IRRIGATOR, CLIPS = range(4)
"""What keys 1 to 4 choose."""

INSTRUCTIONS = """\
An artery is open on a hill and spurts with the heart. Stop it, and suck the hollows dry.
Key 1: the swab presses. Hold it on the artery and turn the wheel to press deeper: the spurt dies as you press harder.
It soaks up blood and wipes stains off cloth and instruments, until it is full; choose it again for a fresh one.
Key 2: hold the left button over a pool to suck it off. Key 3 rinses with saline.
Key 4: the clip applier closes the artery under its tip for good.
It is done once the hollows are dry and nothing has bled for five seconds."""

GOALS = (Goal("open_vessels", most=0.0), Goal("blood_lost", most=6.0), Goal("pooled", most=0.05), WATCHED)
"""In mL."""
LEVELS = (
    Level("Standard", GOALS, {"pressure": PRESSURE.default, "heart_rate": HEART_RATE.default}),
    Level("Timed", (*GOALS, Goal("time", most=60.0)), {"pressure": PRESSURE.default, "heart_rate": HEART_RATE.default}),
    Level(
        "Expert",
        (*GOALS, Goal("bleeding_time", most=15.0), Goal("time", most=60.0)),
        {"pressure": 60.0, "heart_rate": 100.0},
    ),
)
"""A heart that beats harder and faster. Limits of time are our own choice."""


def build(setting: Setting) -> Contents:
    organ = _sheet(setting)
    camera, bounds = looking_down([organ], (0.05, -0.9, 0.8))
    middle = (0.0, 0.0, float(organ.body.positions[:, 2].max()) + HOME_HEIGHT)
    instruments = [kit.swab(SWAB), kit.suction(), kit.irrigator(), kit.clip_applier()]
    tools = kit.hand_out(instruments, middle, LIVER.friction, trocar=trocar_beside(camera))
    artery = Wound(on_a_hill(organ.body), _vessel(PRESSURE.default), OPENING.default * MILLIMETRE)
    blood = make_blood(organ, FILM, setting.detail, PARTICLES, DROPS)
    bleeding = bleed(blood, [artery], tools)
    return Contents(
        organs=[organ],
        tools=tools,
        systems=bleeding.systems,
        parameters=_parameters(bleeding.vessels, blood.drops),
        camera=camera,
        bounds=bounds,
        force_scale=0.1,
        levels=LEVELS,
        begins=lambda: spill(organ, blood.film, [artery], setting.seed),
        script=lambda world, tick: script(organ, artery, tick),
        heaviest=lambda: pour(organ, blood.film),
    )


def _parameters(vessels: Vessels, drops: Drops) -> list[LiveParameter]:
    wounds = vessels.wounds

    def beats(value: float) -> None:
        vessels.heart_rate = value / MINUTE

    return [
        LiveParameter(PRESSURE, lambda value: set_vessel(wounds, 0, _vessel(value))),
        LiveParameter(HEART_RATE, beats),
        LiveParameter(OPENING, lambda value: set_opening(wounds, 0, value * MILLIMETRE)),
        LiveParameter(BOUNCE, lambda value: sprays.set(drops, replace(drops.params, bounce_speed=value))),
        LiveParameter(DRAG, lambda value: sprays.set(drops, replace(drops.params, drag=0.01 * value))),
    ]


def _vessel(systolic: float) -> VesselParams:
    return vessel_mmhg(systolic, PULSE_PART * systolic, DIAMETER, FEED)


def _sheet(setting: Setting) -> Organ:
    body = _body(setting.seed, setting.count(MASSES))
    params = LatticeParams(
        nodes=body.nodes,
        spacing=body.spacing,
        origin=body.origin,
        anchored=body.positions[:, 2] <= ANCHORED,
        material=LIVER,
        stiffest=LIVER.young,
        poisson=POISSON,
        viscous_time=VISCOUS_TIME,
    )
    tissue = make_lattice(setting.device, params)
    skin = make_skin(body.mesh, width=setting.texels(TEXELS), device=setting.device)
    return make_organ("sheet", "tissue", body, tissue, skin)


@cache
def _body(seed: int, masses: int) -> Body:
    from viscera.anatomy import sheet

    return fill(sheet(seed=seed).mesh, masses)


def on_a_hill(body: Body) -> tuple[float, float, float]:
    """The middle of the most level triangle on the hills near the middle [m]: what spurts there comes down near it."""
    centres, up = body.mesh.corners.mean(axis=1), body.mesh.face_vectors[:, 2] > 0.0
    low, high = body.mesh.bounds
    near = np.all(np.abs(centres[:, :2] - 0.5 * (low + high)[:2]) < MARGIN * 0.5 * (high - low)[:2], axis=1)
    chosen = np.flatnonzero(up & near)
    chosen = chosen[centres[chosen, 2] >= np.quantile(centres[chosen, 2], HIGH)]
    level = body.mesh.face_vectors[chosen, 2] / np.linalg.norm(body.mesh.face_vectors[chosen], axis=1)
    x, y, z = centres[chosen[np.argmax(level)]].tolist()
    return x, y, z


def script(organ: Organ, artery: Wound, tick: int) -> Iterable[Input]:
    """A hand that lets it spurt for two seconds, presses on it for one, sucks around it for one, and clips it."""
    if tick % 10 or tick < 2000:
        return []
    x, y, _ = artery.point
    z = organ.height(x, y)
    if tick < 3000:
        return [ToolInput(PRESS, (x, y, z - 0.004 * min(1.0, (tick - 2000) / 400.0)))]
    if tick == 3000:
        return [ToolInput(PRESS, (x, y, z + 0.05), active=False)]
    if tick < 4000:
        turn = 2.0 * math.pi * tick / 500.0
        return [ToolInput(SUCTION, (x + 0.01 * math.cos(turn), y + 0.01 * math.sin(turn), z - 0.001), grip=1.0)]
    if tick == 4000:
        return [ToolInput(SUCTION, (x, y, z + 0.05), active=False)]
    return [ToolInput(CLIPS, (x, y, z + 0.001), grip=1.0)]


SCENARIO = Scenario(
    name="spurt",
    title="Spurt",
    summary="An artery spurts, splashes and fills the hollows; press on it, suck, clip it.",
    instructions=INSTRUCTIONS,
    build=build,
    takes_mesh=False,
)
