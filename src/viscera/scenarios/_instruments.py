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
