"""Instruments that cut: where their edges are in each tick, in every organ that can be cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.instruments import Cuts, Tool
from viscera.tissue.blade_kernels import EDGES
from viscera.tissue.cutting import remove_edge, set_edge
from viscera.world.organ import Organ


class Cutters:
    """Of a world's tools. Whether an edge cuts follows from its tool alone, so there is nothing to save."""

    def __init__(self, tools: Sequence[Tool], organs: Sequence[Organ]) -> None:
        self._organs = [organ for organ in organs if organ.tissue.cutting is not None]
        self._edges: dict[int, list[int]] = {}
        """Numbers of each tool's edges in the lattices."""
        self._pushing: dict[int, NDArray[np.int64]] = {}
        """Its bars that are no edges."""
        taken = 0
        for tool in tools:
            cuts = tool.instrument.effect(Cuts)
            if cuts is None or not self._organs:
                continue
            if max(cuts.parts, default=-1) >= tool.bars.count or min(cuts.parts, default=0) < 0:
                raise InputError(
                    f"{tool.instrument.name} cuts with parts {cuts.parts}, but has {tool.bars.count}.",
                    "Name parts of the instrument, counted from 0.",
                )
            self._edges[tool.number] = list(range(taken, taken + len(cuts.parts)))
            self._pushing[tool.number] = np.setdiff1d(np.arange(tool.bars.count), cuts.parts)
            taken += len(cuts.parts)
        if taken > EDGES:
            raise InputError(f"the instruments have {taken} edges.", f"At most {EDGES} can cut: leave some out.")

    def move(self, tool: Tool, slot: int) -> NDArray[np.int64]:
        """Edges of a tool that cuts in this tick are put into the lattices; its bars that push."""
        cuts = tool.instrument.effect(Cuts)
        if cuts is None or tool.number not in self._edges:
            return np.arange(tool.bars.count)
        closes = tool.jaws_close if cuts.closing else True
        if not (tool.pressed and closes):
            self.rest(tool)
            return np.arange(tool.bars.count)
        for organ in self._organs:
            for edge, part in zip(self._edges[tool.number], cuts.parts, strict=True):
                set_edge(organ.tissue, edge, slot, tool.start[part], tool.end[part], need=cuts.need)
        return self._pushing[tool.number]

    def rest(self, tool: Tool) -> None:
        """None of its edges cuts."""
        for organ in self._organs:
            for edge in self._edges.get(tool.number, ()):
                remove_edge(organ.tissue, edge)
