"""What scenarios with soft tissue share: what a user may change about it."""

from __future__ import annotations

from viscera.tissue.lattice import Tissue
from viscera.units import KILOPASCAL, MILLI, STANDARD_GRAVITY
from viscera.view import ADVANCED, Parameter
from viscera.world.system import LiveParameter

TISSUE = "Tissue"
"""Heading of the settings of what the organ is made of."""

DRAG = Parameter(
    "drag",
    "Damping",
    "1/s",
    0.0,
    60.0,
    15.0,
    "Drag against the surroundings: how soon swinging dies away.",
    group=ADVANCED,
)
GRAVITY = Parameter(
    "gravity",
    "Gravity",
    "g",
    0.0,
    2.0,
    0.0,
    "In units of 9.81 m/s². The tissue was shaped without it, so it sags when you raise it.",
    group=ADVANCED,
)


def tissue_parameters(tissue: Tissue, stiffness: Parameter, viscosity: Parameter) -> list[LiveParameter]:
    """What a user may change about a tissue: stiffness [kPa], viscosity [ms], damping and gravity."""
    return [
        LiveParameter(stiffness, tissue=lambda value: tissue.set_young(value * KILOPASCAL)),
        LiveParameter(viscosity, tissue=lambda value: tissue.set_viscous_time(value * MILLI)),
        LiveParameter(DRAG, tissue=tissue.set_drag),
        LiveParameter(GRAVITY, tissue=lambda value: tissue.set_gravity((0.0, 0.0, -value * STANDARD_GRAVITY))),
    ]
