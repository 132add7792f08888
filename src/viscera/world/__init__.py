"""The coupled world: `world.py` says what happens in a tick and in a frame; read it first. The other files here couple
phenomena that know nothing of each other, one file per coupling."""

from viscera.world.system import LiveTable, System
from viscera.world.world import (
    TICK,
    TICKS_PER_FRAME,
    Camera,
    Contents,
    Instrument,
    LiveParameter,
    Motion,
    Organ,
    World,
)

__all__ = [
    "TICK",
    "TICKS_PER_FRAME",
    "Camera",
    "Contents",
    "Instrument",
    "LiveParameter",
    "LiveTable",
    "Motion",
    "Organ",
    "System",
    "World",
]
