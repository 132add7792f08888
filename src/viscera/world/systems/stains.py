"""Stains: what hits the cloth beside an organ, instruments and gauze stays there and is seen; gauze wipes it off.

Runs while blood is awake, and until cloth has soaked up what it got; else it takes no time and paints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from viscera.blood import stains as marks
from viscera.blood.drops.around import TOOL_COLUMNS, TOOL_ROWS, TOOL_STEP
from viscera.blood.drops.drops import Drops
from viscera.blood.stains.stains import Solid, StainParams, Stains, make_stains, step_stains
from viscera.instruments import Pushes, Soaks, Tool
from viscera.instruments.bars import parts_of
from viscera.view import Stains as StainView
from viscera.world.system import Moment, Saved, Show, System
from viscera.world.systems.resting import Rest, awake


def make_stains_around(drops: Drops, tools: Sequence[Tool], params: StainParams | None = None) -> Stains:
    """On a cloth under the organs and on these tools; before pools are made on `drops`, and anything of them is
    recorded."""
    return make_stains(drops, [_solid(tool) for tool in tools], params)


def _solid(tool: Tool) -> Solid:
    parts = parts_of(tool.instrument)
    soaks, pushes = tool.instrument.effect(Soaks), tool.instrument.effect(Pushes)
    radius = max((part.radius for part in parts), default=1.0e-3)
    if soaks is None or pushes is None:
        return Solid(len(parts), radius)
    return Solid(len(parts), pushes.radius, pushes.offset + pushes.length + pushes.radius, soaks.holds)


class Aim:
    """Where the tools' bars are, frame by frame."""

    def __init__(self, stains: Stains, tools: Sequence[Tool]) -> None:
        self.stains = stains
        self._before = [tool.end.copy() for tool in tools]
        self._active = [False] * len(tools)
        self.swab = False
        """Whether gauze is in the body."""

    def take(self, now: Moment) -> None:
        """The bars of all tools in the body, for the next step of drops and stains."""
        count, self.swab = 0, False
        for number, tool in enumerate(now.tools):
            if tool.active:
                came = not self._active[number]
                if came:
                    self._before[number][:] = tool.end
                gauze = tool.instrument.effect(Soaks) is not None
                if came and gauze:
                    marks.change_gauze(self.stains, number)
                self.swab = self.swab or gauze
                count = self._put(count, number, tool, gauze)
            self._active[number] = tool.active
            self._before[number][:] = tool.end
        self.stains.bar_count.host[0] = count

    def _put(self, count: int, number: int, tool: Tool, gauze: bool) -> int:
        for bar, part in enumerate(parts_of(tool.instrument)):
            one = self.stains.bars.host[count]
            start, end = tool.end[bar]
            one["start"], one["end"] = start, end
            one["moved"] = 0.5 * (start + end - self._before[number][bar].sum(axis=0))
            one["radius"], one["tool"], one["turn"] = part.radius, number, tool.orientation
            one["low"], one["high"] = part.start[2], part.end[2]
            one["gauze"] = int(gauze and bar == 0)
            count += 1
        return count

    def save(self) -> Saved:
        return {"before": np.array(self._before), "active": np.array(self._active, dtype=np.int64)}

    def load(self, saved: Saved) -> None:
        for kept, values in zip(self._before, saved["before"], strict=True):
            kept[:] = values
        self._active = [bool(value) for value in saved["active"]]


def staining(stains: Stains, aim: Aim, rest: Rest | None = None) -> System[Stains]:
    """After `flying` and `pooling`, before `flowing`."""
    device = stains.device
    program = device.record(lambda stage: step_stains(stage, stains), work=len(stains.cloth_pixels))

    def frame(now: Moment) -> None:
        if awake(rest) or aim.swab or stains.busy.host[0]:
            program.run()
            device.synchronize()

    def save() -> Saved:
        return marks.save(stains) | aim.save()

    def load(saved: Saved) -> None:
        marks.load(stains, saved)
        aim.load(saved)

    return System(
        name="stains",
        skins=stains.drops.surface.parts,
        after=("pools",),
        frame=frame,
        uses=(Soaks,),
        save=save,
        load=load,
        shows=_shows(stains),
        holds=stains,
    )


def _shows(stains: Stains) -> list[Show]:
    cloth, thickest = stains.view.cloth, stains.params.thickest
    corner = (float(cloth.left), float(cloth.front), float(cloth.height))
    on_cloth = StainView(
        "cloth.stains", "cloth", int(cloth.columns), int(cloth.rows), float(cloth.side), thickest, corner
    )
    gauze = tuple(max(value, -1.0) for value in stains.view.head.numpy().tolist())
    rows = len(gauze) * TOOL_ROWS
    on_tools = StainView("tools.stains", "tools", TOOL_COLUMNS, rows, float(TOOL_STEP), thickest, gauze=gauze)
    return [
        Show(on_cloth, {on_cloth.name: _bytes(stains.cloth_pixels)}),
        Show(on_tools, {on_tools.name: _bytes(stains.tool_pixels)}),
    ]


def _bytes(words: Any) -> Any:
    """The same memory as bytes."""
    return wp.array(ptr=words.ptr, dtype=wp.uint8, shape=4 * len(words), device=words.device)
