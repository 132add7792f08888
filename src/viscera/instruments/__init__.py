"""Instruments: what they are and do (`instrument`, `effects`), ready ones (`kit`), and how a hand moves one
(`tool`)."""

from viscera.instruments.effects import PRESSED, Clips, Effect, Heats, Pushes, Rinses, Sucks
from viscera.instruments.instrument import Instrument, Part
from viscera.instruments.tool import FASTEST_TOOL, Tool, check_tool_input

__all__ = [
    "FASTEST_TOOL",
    "PRESSED",
    "Clips",
    "Effect",
    "Heats",
    "Instrument",
    "Part",
    "Pushes",
    "Rinses",
    "Sucks",
    "Tool",
    "check_tool_input",
]
