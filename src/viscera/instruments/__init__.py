"""Instruments: what they are and do (`instrument`, `effects`), ready ones (`kit`), and how a hand moves one
(`tool`), through a `trocar` and within the theatre's `room`."""

from viscera.instruments.effects import (
    PRESSED,
    Clips,
    Cuts,
    Effect,
    Evacuates,
    Grasps,
    Heats,
    Marks,
    Pushes,
    Rinses,
    Sews,
    Soaks,
    Staples,
    Sucks,
    Ties,
)
from viscera.instruments.instrument import Instrument, Part
from viscera.instruments.room import Room, room_around
from viscera.instruments.tool import FASTEST_TOOL, MOST_TOOLS, Tool, check_tool_input
from viscera.instruments.trocar import felt_at_handle, tip_for

__all__ = [
    "FASTEST_TOOL",
    "MOST_TOOLS",
    "PRESSED",
    "Clips",
    "Cuts",
    "Effect",
    "Evacuates",
    "Grasps",
    "Heats",
    "Instrument",
    "Marks",
    "Part",
    "Pushes",
    "Rinses",
    "Room",
    "Sews",
    "Soaks",
    "Staples",
    "Sucks",
    "Ties",
    "Tool",
    "check_tool_input",
    "felt_at_handle",
    "room_around",
    "tip_for",
]
