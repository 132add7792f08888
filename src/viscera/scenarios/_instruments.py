"""Instruments that several scenarios hand out: how they look and what of them touches tissue."""

from __future__ import annotations

from viscera.geometry.tools import FOOT, JAW, JAW_GAP, JAW_OPENING, SHAFT_RADIUS, WIRE_HEIGHT, WIRE_RADIUS
from viscera.inputs import Vector3
from viscera.view import Instrument, Part

SHAFT_LENGTH = 0.28
"""Of a laparoscopic instrument, as far as it is seen [m]."""

TOUCH = 2.0e-3
"""Radius of the round end that pushes tissue: the metal itself is too thin for the lattice to feel [m]."""


def _shaft(height: float) -> Part:
    return Part((0.0, 0.0, height), (0.0, 0.0, height + SHAFT_LENGTH), SHAFT_RADIUS)


def hook(home: Vector3) -> Instrument:
    """A monopolar L-hook, as `geometry.tools.monopolar_hook` has it."""
    foot = Part((FOOT, 0.0, WIRE_RADIUS), (0.0, 0.0, WIRE_RADIUS), WIRE_RADIUS)
    wire = Part((0.0, 0.0, WIRE_RADIUS), (0.0, 0.0, WIRE_HEIGHT), WIRE_RADIUS)
    return Instrument(
        "hook",
        "sphere",
        TOUCH,
        0.0,
        home,
        offset=TOUCH,
        label="Monopolar hook",
        action="coagulate",
        parts=(foot, wire, _shaft(WIRE_HEIGHT)),
    )


def forceps(home: Vector3) -> Instrument:
    """Bipolar forceps, as `geometry.tools.bipolar_forceps` has them."""
    thick, _, long = JAW
    jaws = [
        Part((0.5 * side * (thick + JAW_GAP), 0.0, long), (0.5 * side * (thick + JAW_GAP), 0.0, 0.5 * thick),
             0.5 * thick, swing=-side * JAW_OPENING)
        for side in (-1.0, 1.0)
    ]  # fmt: skip
    return Instrument(
        "forceps",
        "sphere",
        TOUCH,
        0.0,
        home,
        offset=TOUCH,
        label="Bipolar forceps",
        action="coagulate",
        parts=(*jaws, _shaft(long)),
    )


TUBE = (2.0e-3, 2.5e-3)
"""Radius of a nozzle's end and of its shaft [m]."""
TUBE_END = 0.012
"""Length of the narrower end [m]."""


def _tube(name: str, label: str, action: str, home: Vector3) -> Instrument:
    end = Part((0.0, 0.0, 0.0), (0.0, 0.0, TUBE_END), TUBE[0])
    shaft = Part((0.0, 0.0, TUBE_END), (0.0, 0.0, TUBE_END + SHAFT_LENGTH), TUBE[1])
    return Instrument(
        name, "sphere", TOUCH, 0.0, home, offset=TOUCH, label=label, action=action, parts=(end, shaft)
    )  # fmt: skip


def suction(home: Vector3) -> Instrument:
    return _tube("suction", "Suction", "suck", home)


def irrigator(home: Vector3) -> Instrument:
    return _tube("irrigator", "Irrigator", "rinse", home)


CLIP_JAW = (0.75e-3, 0.7e-3, 0.011, 0.42)
"""Of a clip applier's jaws: how far from the middle, radius and length [m], and how far each stands open [rad]: 4 mm at
the tip, so that closing is seen."""


def clip_applier(home: Vector3) -> Instrument:
    """Two short jaws that close over a vessel."""
    apart, radius, long, opening = CLIP_JAW
    jaws = [
        Part((side * apart, 0.0, long), (side * apart, 0.0, radius), radius, swing=-side * opening)
        for side in (-1.0, 1.0)
    ]
    shaft = _shaft(long)
    return Instrument(
        "clips", "sphere", TOUCH, 0.0, home, offset=TOUCH, label="Clip applier", action="clip", parts=(*jaws, shaft)
    )  # fmt: skip
