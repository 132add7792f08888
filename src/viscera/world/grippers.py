"""Instruments that grasp: where their jaws are in each tick, in every organ, and what keeps them from closing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.instruments import PRESSED, Grasps, Tool
from viscera.tissue.grasp_kernels import JAWS
from viscera.tissue.grasping import Mouth, let_grasp, need_grasping, open_jaws, set_jaws, stops
from viscera.world.organ import Organ


class Grippers:
    """Of a world's tools. What they hold is in the lattices, so there is nothing to save."""

    def __init__(self, tools: Sequence[Tool], organs: Sequence[Organ]) -> None:
        self._organs = organs
        self._jaw: dict[int, int] = {}
        """The pair of jaws in the lattices that each tool is."""
        self._mouth: dict[int, Mouth] = {}
        self._effect: dict[int, Grasps] = {}
        self._closed: dict[int, float] = {}
        self._besides: dict[int, NDArray[np.int64]] = {}
        """Bars of each that are no jaws."""
        for tool in tools:
            grasps = tool.instrument.effect(Grasps)
            if grasps is None or not organs:
                continue
            self._mouth[tool.number] = mouth_of(tool, grasps)
            self._jaw[tool.number], self._effect[tool.number] = len(self._jaw), grasps
            self._besides[tool.number] = np.setdiff1d(np.arange(tool.bars.count), grasps.parts)
        if len(self._jaw) > JAWS:
            raise InputError(f"{len(self._jaw)} instruments grasp.", f"At most {JAWS} can: leave some out.")
        if self._jaw:
            for organ in organs:
                let_grasp(organ.tissue)

    def before(self, tool: Tool) -> None:
        """Before a tool moves: whether its jaws may close further."""
        if tool.number in self._jaw:
            jaw, grip = self._jaw[tool.number], self._effect[tool.number].grip
            tool.blocked = any(stops(organ.tissue, jaw, grip) for organ in self._organs)
            self._closed[tool.number] = tool.jaws

    def move(self, tool: Tool, slot: int) -> None:
        """After a tool has moved: its jaws are put into the lattices."""
        if tool.number not in self._jaw:
            return
        if not tool.pressed:
            self.rest(tool)
            return
        jaw, grasps = self._jaw[tool.number], self._effect[tool.number]
        frames = mouth_frames(tool, grasps)
        closed = (self._closed[tool.number], tool.jaws)
        for organ in self._organs:
            set_jaws(
                organ.tissue, jaw, slot, self._mouth[tool.number], frames, closed,
                grip=grasps.grip, friction=grasps.friction, takes=closed[1] > closed[0],
            )  # fmt: skip

    def rest(self, tool: Tool) -> None:
        """It holds nothing."""
        if tool.number in self._jaw:
            tool.blocked = False
            for organ in self._organs:
                open_jaws(organ.tissue, self._jaw[tool.number])

    def held(self, tool: Tool, organ: Organ) -> int:
        """Masses of an organ that a tool holds."""
        return need_grasping(organ.tissue).held(self._jaw[tool.number]) if tool.number in self._jaw else 0

    def pushing(self, tool: Tool, organ: Organ, bars: slice | NDArray[np.int64]) -> slice | NDArray[np.int64]:
        """Of the bars that would push, those that do in this organ: jaws that hold it, or close to take it, do not."""
        if tool.number not in self._jaw:
            return bars
        takes = tool.pressed and tool.jaws > self._closed[tool.number]
        if not takes and self.held(tool, organ) == 0:
            return bars
        return self._besides[tool.number]

    def shown_grip(self, tool: Tool) -> float:
        """Of a tool that holds something: how far its jaws could close."""
        if any(self.held(tool, organ) for organ in self._organs):
            return max(PRESSED, min(tool.grip, tool.jaws))
        return tool.grip


def mouth_of(tool: Tool, grasps: Grasps) -> Mouth:
    """From the instrument's parts."""
    instrument = tool.instrument
    one, other = grasps.parts
    if not (min(one, other) >= 0 and max(one, other) < len(instrument.parts) and one != other):
        raise InputError(
            f"{instrument.name} grasps with parts {grasps.parts}, but has {len(instrument.parts)}.",
            "Name two parts of the instrument, counted from 0.",
        )
    left, right = instrument.parts[one], instrument.parts[other]
    gap = 0.5 * float(np.linalg.norm(np.subtract(right.start, left.start)))
    if gap == 0.0 or left.swing == 0.0 or right.swing == 0.0:
        raise InputError(
            f"{instrument.name}: parts {grasps.parts} are no jaws.",
            "Give both a `swing`, and starts that lie apart from each other, as kit.grasper has.",
        )
    return Mouth(0.5 * (left.start[2] + right.start[2]), grasps.width, gap, abs(left.swing))


def mouth_frames(tool: Tool, grasps: Grasps) -> NDArray[np.float64]:
    """Tip, unit vector from jaw to jaw and from the tip to the hinge, as the tick starts and ends, shape (2, 3, 3)."""
    found = np.empty((2, 3, 3))
    for row, bars, tip in zip(found, (tool.start, tool.end), tool.tips, strict=True):
        left, right = bars[grasps.parts[0], 0], bars[grasps.parts[1], 0]
        across, up = right - left, 0.5 * (left + right) - tip
        row[0] = tip
        row[1] = across / math.sqrt(float(across @ across))
        row[2] = up / math.sqrt(float(up @ up))
    return found
