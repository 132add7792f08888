"""The coupled world: `world.py` says what happens in a tick and in a frame; read it first. `systems/` has one
phenomenon per file; `system.py` says what a system is."""

from viscera.world.contents import Contents, Motion, looking_down, trocar_beside
from viscera.world.organ import (
    Body,
    Organ,
    block,
    cuttable,
    fill,
    load_organ,
    make_organ,
    on_the_table,
    organ,
    surface_height,
)
from viscera.world.system import Field, LiveParameter, LiveTable, Moment, Show, System
from viscera.world.world import World

__all__ = [
    "Body",
    "Contents",
    "Field",
    "LiveParameter",
    "LiveTable",
    "Moment",
    "Motion",
    "Organ",
    "Show",
    "System",
    "World",
    "block",
    "cuttable",
    "fill",
    "load_organ",
    "looking_down",
    "make_organ",
    "on_the_table",
    "organ",
    "surface_height",
    "trocar_beside",
]
