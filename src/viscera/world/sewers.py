"""Instruments that sew: where needle and knot are in each tick, in every organ that can be sewn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viscera.errors import InputError
from viscera.instruments import Sews, Ties, Tool
from viscera.instruments.trocar import turned
from viscera.tissue.sewing import remove_needle, set_needle, set_tyer
from viscera.world.organ import Organ


class Sewers:
    """Of a world's tools. What needle and thread do is the tissue's state; there is nothing here to save."""

    def __init__(self, tools: Sequence[Tool], organs: Sequence[Organ]) -> None:
        self._organs = [organ for organ in organs if organ.tissue.sewing is not None]
        needles = [tool.instrument.name for tool in tools if tool.instrument.effect(Sews) is not None]
        if self._organs and len(needles) > 1:
            raise InputError(f"there are {len(needles)} needles: {', '.join(needles)}.", "Give one hand a needle.")

    def move(self, tool: Tool, slot: int) -> None:
        """Where a tool's needle or knot is in this tick, in place `slot` of the lattices."""
        sews, ties = tool.instrument.effect(Sews), tool.instrument.effect(Ties)
        for organ in self._organs:
            if sews is not None:
                across, up = turned(tool.orientation, (1.0, 0.0, 0.0)), np.array(tool.shaft)
                set_needle(
                    organ.tissue, slot, tool.tips, across, up, radius=sews.radius, pierce=sews.pierce,
                    friction=sews.friction, pressed=tool.pressed,
                )  # fmt: skip
            if ties is not None:
                set_tyer(organ.tissue, tool.tip, reach=ties.reach, pull=ties.pull, pressed=tool.pressed)

    def rest(self, tool: Tool) -> None:
        """It is out of the body."""
        ties = tool.instrument.effect(Ties)
        for organ in self._organs:
            if tool.instrument.effect(Sews) is not None:
                remove_needle(organ.tissue)
            if ties is not None:
                set_tyer(organ.tissue, tool.tip, reach=ties.reach, pull=ties.pull, pressed=False)
