"""A hand that works for as long as it is measured: it goes on where a scenario's own script has done its work.

Scripts show what a scenario is for, and most of them are done after some seconds; a minute of which fifty seconds are
rest says nothing about a minute of work. This hand takes the instruments in turn, all but those that only mark. Each
comes down somewhere on the upper side of the organ, is drawn over it a little below the surface with its handle
pressed (electrodes burn, suction sucks, blades cut, jaws open and close), and leaves again. The way is worked out
before anything is measured.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import ToolInput, Vector3
from viscera.instruments import Clips, Cuts, Grasps, Marks, Pushes, Tool, tip_for
from viscera.scenarios._organ import seen_from_above
from viscera.timing import TICK
from viscera.world import World

EACH = 8
"""Ticks between two inputs, as from a page."""
ABOVE = 0.02
"""Over the surface, before and after a stroke [m]."""
DEEP, DEEP_CUT = 0.0015, 0.003
"""Under the surface at rest, of instruments that press and of those that cut [m]."""
DOWN, DRAWN, UP = 400, 2_400, 200
"""Ticks that a stroke goes down, along and up."""
SPEED = 0.015
"""Along the surface [m/s]."""
JAWS = 400
"""Ticks in which jaws close and open once."""
PLACES = 12
"""Of a stroke, at which the surface's height is looked up."""
TRIES = 50
"""For a stroke that ends on the organ."""
STROKE = DOWN + DRAWN + UP


class WorkingHand:
    """In worlds with an organ and an instrument that touches it; elsewhere it does nothing."""

    def __init__(self, world: World, begin: int, ticks: int) -> None:
        """Plans strokes from the tick `begin` on, for so many `ticks`."""
        tools = [tool for tool in world.hands if _works(tool)] if world.organs else []
        count = -(-ticks // STROKE) if tools else 0
        rng = np.random.default_rng(world.seed)
        self._begins = [begin + number * STROKE for number in range(count)]
        ways = _ways(world, rng, count)
        self._strokes = [(tools[number % len(tools)], way) for number, way in enumerate(ways)]

    @property
    def works(self) -> bool:
        """Whether there is anything for it to do in this world."""
        return bool(self._strokes)

    def inputs(self, tick: int) -> list[ToolInput]:
        """What it does before this tick."""
        if tick % EACH or not self._begins or tick < self._begins[0]:
            return []
        number = bisect_right(self._begins, tick) - 1
        tool, way = self._strokes[number]
        since = tick - self._begins[number]
        if since >= STROKE - EACH:
            return [ToolInput(tool.number, tool.instrument.home, active=False)]
        place = _along(way, (since - DOWN) / DRAWN)
        deep = DEEP if tool.instrument.effect(Cuts) is None else DEEP_CUT
        high = max(1.0 - since / DOWN, (since - DOWN - DRAWN) / UP, 0.0)
        place[2] += high * ABOVE - (1.0 - high) * deep
        at: Vector3 = (float(place[0]), float(place[1]), float(place[2]))
        grip = _grip(tool, since - DOWN) if DOWN <= since < DOWN + DRAWN else 0.0
        return [ToolInput(tool.number, tip_for(at, tool.instrument), grip=grip)]


def _works(tool: Tool) -> bool:
    return tool.instrument.effect(Pushes) is not None and tool.instrument.effect(Marks) is None


def _grip(tool: Tool, since: int) -> float:
    """Of the handle, so many ticks after the stroke met the surface."""
    cuts = tool.instrument.effect(Cuts)
    if (cuts is not None and cuts.closing) or tool.instrument.effect(Grasps) is not None:
        return min(1.0, 2.0 * (since % JAWS) / JAWS)
    if tool.instrument.effect(Clips) is not None:
        return 1.0 if since > DRAWN // 2 else 0.0  # one clip a stroke
    return 1.0


def _along(way: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    at = min(max(share, 0.0), 1.0) * (len(way) - 1)
    low = min(int(at), len(way) - 2)
    return way[low] + (at - low) * (way[low + 1] - way[low])


def _ways(world: World, rng: np.random.Generator, count: int) -> list[NDArray[np.float64]]:
    """Over the upper sides of the organs in turn, at rest: places of shape (PLACES, 3) [m]."""
    if not count:
        return []
    tops = [seen_from_above(organ.body.mesh) for organ in world.organs]
    length = SPEED * TICK * DRAWN
    found = []
    for number in range(count):
        organ, top = world.organs[number % len(tops)], tops[number % len(tops)]
        ends = _stroke(top.places, length, rng)
        places = np.linspace(*ends, PLACES)
        heights = [organ.height(x, y, top.vertices) for x, y in places]
        found.append(np.column_stack([places, heights]))
    return found


def _stroke(
    places: NDArray[np.float64], length: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two of these places about so far apart, or as far as there are."""
    best = (places[0], places[0])
    for _ in range(TRIES):
        start = places[rng.integers(len(places))]
        off = np.linalg.norm(places - start, axis=1)
        end = places[int(np.argmin(np.abs(off - length)))]
        if abs(np.linalg.norm(end - start) - length) < abs(np.linalg.norm(best[1] - best[0]) - length):
            best = (start, end)
            if np.linalg.norm(end - start) > 0.9 * length and rng.random() < 0.5:
                break
    return best
