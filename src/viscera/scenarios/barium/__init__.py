"""Barium: an enema in the colon under X-ray. Tilt and roll the table until the wall is coated, with little dose.

After Grahn's study (chapters 2 and 8): a colon by rule, another for every seed, with haustra; suspension that is let in
at the rectum, runs where gravity takes it, and stays on the wall it touched. The C-arm has the angles of a clinic.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from viscera.inputs import Input, SetParameter
from viscera.scenarios import Scenario, Setting
from viscera.scenarios.barium.body import OPTIONS, find_body
from viscera.scenarios.barium.study import fill_up, find_lumen, make_enema, make_machine, opened
from viscera.view import Camera, Drag, Goal, Level
from viscera.water.boundary.walls import Structure
from viscera.world import Contents, World
from viscera.world.organ import point
from viscera.world.systems.barium import ROLL, TILT, filling
from viscera.world.systems.coat_picture import whitening
from viscera.world.systems.enema import Living
from viscera.world.systems.fluoroscopy import fluoroscopy
from viscera.world.systems.reading import Hidden
from viscera.xray import Xray

TABLE = Drag("the table", ROLL.name, TILT.name, 180.0)
"""By the right button in the X-ray."""

INSTRUCTIONS = """\
Hold the pedal at the X-ray (or B) and look: air in the colon is dark, bone is bright. Let go: the last picture stays.
Inject 10 to 20 mL/s until about 400 mL are in the lumen, then stop.
Tilt the table head down and roll the patient to both sides: the barium runs on and coats the wall.
Take CO₂ out, or let waves of the wall carry it on (Bowel); with the wall as a lattice it gives way to what is in it.
The course of the bowel is a table below the settings.
Drag in the X-ray to turn the C-arm, with Shift to roll and tilt the table, with Alt to slide the patient.
Three polyps stand into the lumen: gaps in the barium, bumps in the air. Click on each in the X-ray.
Coat 90 % of the wall and find all three, with less than 5 Gy·cm² and at most three misses."""

SCRIPT = (
    # tick, parameter, value
    (0, "beam", 1.0), (16, "flow", 20.0), (400, "tilt", -30.0), (8_000, "roll", 60.0), (12_000, "beam", 0.0),
    (16_000, "roll", -60.0), (20_000, "flow", 0.0), (24_000, "roll", 120.0), (32_000, "roll", -120.0),
    (40_000, "roll", 180.0), (48_000, "tilt", 30.0), (52_000, "beam", 1.0), (53_000, "primary", 30.0),
    (54_000, "beam", 0.0), (56_000, "roll", 0.0), (60_000, "drain", 25.0),
)  # fmt: skip
"""What the scenario's own hand does: fill, tilt, roll to all sides, look, drain."""


NO_LINE = (
    "The wall of this mesh is rigid: gas and waves need one line through the lumen, and it branches or has a neck that "
    "is too fine. The film on it is seen in the X-ray only."
)


def build(setting: Setting, structure: Structure = "hashed") -> Contents:
    body = find_body(setting)
    lumen = find_lumen(setting, body)
    rigid = "" if lumen.line is not None else NO_LINE
    enema = make_enema(lumen, setting, structure)
    machine = make_machine(lumen, enema, setting, body)
    mesh = lumen.mesh
    low, high = mesh.bounds
    far = 2.2 * float(np.abs(mesh.vertices).max())
    polyps = len(lumen.polyps.foot)
    hidden = Hidden(lumen.polyps.middle.copy(), lumen.polyps.foot) if polyps else None
    if enema.living is not None:
        # Beside a scan the wall is projected with every pulse.
        again = machine if body is None else None
        enema.living.bowel.on_move = lambda: _follow(enema.living, again, hidden)
    shown = opened(lumen.plain, lumen.line) if enema.living is None else enema.living.surface
    painted = []
    if lumen.line is not None:
        painted = [whitening(enema.coating, mesh, shown, lumen.line, setting.device)]

    def script(world: World, tick: int) -> Iterable[Input]:
        return [SetParameter(name, value) for at, name, value in SCRIPT if at == tick]

    return Contents(
        camera=Camera((0.0, -0.25 * far, 1.15 * far), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 40.0),
        bounds=(point(low), point(high)),
        systems=[filling(enema, rigid), *painted, fluoroscopy(machine, drags=[TABLE], hidden=hidden)],
        scenery=[] if enema.living is not None else [shown],
        levels=levels(polyps),
        script=script,
        heaviest=lambda: fill_up(lumen, enema),
    )


def levels(polyps: int) -> tuple[Level, ...]:
    """With so many polyps to find. Limits of time are our own choice: the script's hand takes a minute."""

    def goals(coated: float, dose: float, misses: float) -> tuple[Goal, ...]:
        search = (Goal("found", least=float(polyps)), Goal("misses", most=misses)) if polyps else ()
        return Goal("coated", least=coated), Goal("dose", most=dose), *search

    return (
        Level("Standard", goals(90.0, 5.0, 3.0)),
        Level("Timed", (*goals(90.0, 5.0, 3.0), Goal("time", most=600.0))),
        Level("Expert", (*goals(95.0, 3.0, 1.0), Goal("time", most=480.0))),
    )


def _follow(living: Living | None, machine: Xray | None, hidden: Hidden | None) -> None:
    """The wall has moved: its air is projected again, and polyps are where they are now."""
    if machine is not None:
        machine.aimed = False
    if living is not None and hidden is not None:
        hidden.middle[:] = living.bowel.of("polyps")


SCENARIO = Scenario(
    name="barium",
    title="Barium enema",
    summary="Let barium into a colon, tilt and roll the table, and look at it with a C-arm.",
    instructions=INSTRUCTIONS,
    build=build,
    options=OPTIONS,
    no_tissue=True,
)
