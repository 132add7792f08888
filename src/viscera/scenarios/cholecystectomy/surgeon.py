"""Scripted surgeons for runs without a window: strokes one after the other, each chosen when the one before is over.

They look where the tissue is and which springs are left (eyes.py), and then move their hands. What they do, and in
which order, is in steps.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Input, Quaternion, ToolInput, Vector3
from viscera.instruments import Instrument, tip_for
from viscera.instruments.trocar import shaft_of, through_trocar, turned
from viscera.timing import TICK
from viscera.world import World

GRASPER, HOOK, CLIPS, SCISSORS, BIPOLAR, SUCTION, IRRIGATOR, EVACUATOR = range(8)
"""What keys 1 to 8 choose."""

EACH = 8
"""Ticks between two inputs of a hand."""
COMES = 184
"""Ticks in which an instrument comes to where it begins from, and as many in which it goes there."""
CLOSES = 160
"""Ticks that jaws are given to close."""
LEAVES = 120
"""Ticks in which jaws that have closed go back before they open again: opened in tissue they would drag it along."""
BACK = 0.020
"""How far back along its shaft an instrument comes from [m]."""
DOWN, ACROSS = (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)
"""Where a hook's foot points to, or to which sides jaws open."""
TAKES_AT = (0.016, 0.0, 0.0270)
"""Where it takes the gall bladder, at rest [m]."""


@dataclass(frozen=True, eq=False)
class Stroke:
    """One movement of one instrument."""

    tool: int
    path: NDArray[np.float64]
    """Places that what acts of it passes [m], shape (points, 3)."""
    seconds: float
    """From the first to the last place."""
    side: Vector3 = ACROSS
    """Where the instrument's x axis is turned to, as far as its shaft lets it."""
    pressed: bool = True
    """From the first place on; else it is pressed at the last one."""
    pull: Vector3 = (0.0, 0.0, 0.0)
    """How far the grasper is by the end of it from where it took hold [m]."""

    @property
    def ticks(self) -> int:
        closes = 0 if self.pressed and self.tool != GRASPER else CLOSES
        leaves = 0 if self.pressed else LEAVES
        return 2 * COMES + EACH * math.ceil(self.seconds / TICK / EACH) + closes + leaves


class Surgeon:
    """Does these strokes, one after the other."""

    def __init__(self, strokes: Iterator[Stroke], pull: Vector3 | None = None) -> None:
        """`pull` is how far a grasper that holds already has pulled [m]."""
        self._strokes = strokes
        self.now: Stroke | None = None
        self.count = 0
        """Strokes so far."""
        self.done = False
        self._begun, self._pulled, self._holds = 0, pull or (0.0, 0.0, 0.0), pull is not None

    def script(self, world: World, tick: int) -> list[Input]:
        if tick % EACH or self.done:
            return []
        found: list[Input] = []
        if self.now is None or tick - self._begun >= self.now.ticks:
            found += self._next(world, tick)
        if self.now is None:
            return found
        t = tick - self._begun
        return [*found, *self._held(t), self._input(world, self.now, t)]

    def _next(self, world: World, tick: int) -> list[Input]:
        before, self.now = self.now, next(self._strokes, None)
        self._begun, self.count = tick, self.count + 1
        self.done = self.now is None
        if before is None:
            return []
        self._pulled, self._holds = before.pull, self._holds or before.tool == GRASPER
        if before.tool == GRASPER or (self.now is not None and self.now.tool == before.tool):
            return []
        return [ToolInput(before.tool, world.hands[before.tool].instrument.home, active=False)]

    def _input(self, world: World, stroke: Stroke, t: int) -> ToolInput:
        """What the working hand does, t ticks after its stroke began."""
        there = 2 * COMES + (CLOSES if stroke.tool == GRASPER else 0)
        share = min(max((t - there) * TICK / stroke.seconds, 0.0), 1.0)
        place = along_path(stroke.path, share)
        instrument = world.hands[stroke.tool].instrument
        if stroke.tool == GRASPER:
            place = place + share * np.array(stroke.pull)
        leaves = not stroke.pressed and t >= stroke.ticks - LEAVES
        if (t < COMES or leaves) and instrument.trocar is not None:
            place = place + BACK * np.array(shaft_of(place, instrument.trocar))
        pressed = t >= 2 * COMES if stroke.pressed else t >= stroke.ticks - CLOSES - LEAVES
        x, y, z = place.tolist()
        turn = turned_to(stroke.side, (x, y, z), instrument)
        return ToolInput(stroke.tool, tip_for((x, y, z), instrument, turn), turn, grip=1.0 if pressed else 0.0)

    def _held(self, t: int) -> list[ToolInput]:
        """The grasper stays clamped, and goes on pulling as the strokes say."""
        assert self.now is not None
        if not self._holds:
            return []
        share = min(t / (2 * COMES), 1.0)
        pull = (1.0 - share) * np.array(self._pulled) + share * np.array(self.now.pull)
        x, y, z = (np.array(TAKES_AT) + pull).tolist()
        return [ToolInput(GRASPER, (x, y, z), grip=1.0)]


def turned_to(side: Vector3, place: Vector3, instrument: Instrument) -> Quaternion:
    """How to hold an instrument at a place so that its x axis looks to that side, as far as its trocar allows."""
    held = np.array([0.0, 0.0, 0.0, 1.0])
    if instrument.trocar is not None:
        through_trocar(held, np.array(place), instrument.trocar)
    ahead, beside = (float(turned(held, axis) @ np.array(side)) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    spin = math.atan2(beside, ahead)
    return (0.0, 0.0, math.sin(0.5 * spin), math.cos(0.5 * spin))


def along_path(path: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """The place at this share of a path's length [m]."""
    if len(path) == 1:
        return path[0]
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    return np.array([np.interp(share * lengths[-1], lengths, path[:, a]) for a in range(3)])
