"""Scripted surgeons for runs without a window: strokes one after the other, each chosen when the one before is over.

They look where the tissue is and which springs are left (eyes.py), and then move their hands. `operation` is the order
of the textbook: hold, free the triangle, clip, cut, free the bed, dry, take out. `clumsiness` cuts first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.embedding import embed
from viscera.inputs import Input, Quaternion, ToolInput, Vector3
from viscera.instruments import Instrument, tip_for
from viscera.instruments.trocar import shaft_of, through_trocar, turned
from viscera.scenarios.cholecystectomy.eyes import Eyes, Springs
from viscera.scenarios.cholecystectomy.patient import Patient
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
BACK = 0.020
"""How far back along its shaft an instrument comes from [m]."""
DOWN, ACROSS = (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)
"""Where a hook's foot points to, or the plane of the jaws lies."""
SPEED = 0.02
"""Of a hook through tissue [m/s]."""
FREED = 0.25
"""Share of what is to be parted that may stay."""
ROUNDS = 4
"""At most, along all rows that are to be parted."""
BEYOND = 0.007
"""From a tube on, along the shaft, to the tips of scissors that cut it [m]."""
TRIES, SNIPS = 6, 2
"""To cut a tube through, and how many of them with scissors."""
LIGHT, MORE, MOST = (0.002, 0.0, 0.004), (0.002, 0.0, 0.007), (0.004, 0.0, 0.012)
"""How far the grasper pulls [m]."""
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
        return 2 * COMES + EACH * math.ceil(self.seconds / TICK / EACH) + closes


class Surgeon:
    """Does these strokes, one after the other."""

    def __init__(self, strokes: Iterator[Stroke]) -> None:
        self._strokes = strokes
        self.now: Stroke | None = None
        self.count = 0
        """Strokes so far."""
        self.done = False
        self._begun, self._pulled, self._holds = 0, (0.0, 0.0, 0.0), False

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
        if t < COMES and instrument.trocar is not None:
            place = place + BACK * np.array(shaft_of(place, instrument.trocar))
        pressed = t >= 2 * COMES if stroke.pressed else t >= stroke.ticks - CLOSES
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


# --- what is done ---


def operation(eyes: Eyes, scissors: Instrument) -> Iterator[Stroke]:
    """A whole operation, as it should be."""
    yield Stroke(GRASPER, np.array([TAKES_AT]), 1.0, pull=LIGHT)
    yield from sever(eyes, eyes.ties(), DOWN, LIGHT)
    yield from sever(eyes, eyes.bed(up_to=0.003), ACROSS, MORE)
    for _, line in eyes.tubes():
        for share in (0.3, 0.68):
            yield Stroke(CLIPS, seen(eyes, along_path(line, share)), 0.1, pressed=False, pull=LIGHT)
    for number, _ in eyes.tubes():
        yield from cut_tube(eyes, scissors, number, LIGHT)
    yield from sever(eyes, eyes.sides(), DOWN, MORE, share=0.0)
    yield from sever(eyes, eyes.bed(), ACROSS, MOST, share=0.0)
    dry = np.array([[-0.005, 0.0, 0.0085], [0.030, 0.0, 0.0085]])
    yield Stroke(SUCTION, dry, 1.5, pull=MOST)
    yield Stroke(EVACUATOR, np.array([[0.0, -0.01, 0.05]]), 1.0, pull=(0.01, 0.0, 0.055))


def clumsiness(eyes: Eyes, scissors: Instrument) -> Iterator[Stroke]:
    """Cuts the artery before there is a clip, and goes into the gall bladder with the hook."""
    yield from cut_tube(eyes, scissors, 2, (0.0, 0.0, 0.0))
    yield Stroke(HOOK, np.array([[0.002, 0.0, 0.0240], [0.022, 0.0, 0.0240]]), 1.0, DOWN)


def seen(eyes: Eyes, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where a place of the tissue at rest is now [m], shape (1, 3)."""
    body = eyes.organ.body
    held = embed(place[None], body.nodes, body.origin, body.spacing)
    moved = np.asarray(eyes.organ.tissue.displacement())
    return place[None] + np.einsum("pc,pca->pa", held.weights.astype(np.float64), moved[held.indices])


def sever(eyes: Eyes, rows: list[Springs], side: Vector3, pull: Vector3, share: float = FREED) -> Iterator[Stroke]:
    """Hook strokes along rows of springs, in rounds, until no more than this share of each row is left."""
    first = [int(row.sum()) for row in rows]
    for _ in range(ROUNDS):
        for row, count in zip(rows, first, strict=True):
            left = row & eyes.left()
            if int(left.sum()) <= share * count:
                continue
            if share == 0.0 and eyes.is_free():
                return
            path = eyes.path(left)
            seconds = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum()) / SPEED
            yield Stroke(HOOK, path, seconds, side, pull=pull)


def cut_tube(eyes: Eyes, scissors: Instrument, number: int, pull: Vector3) -> Iterator[Stroke]:
    """Scissors across the middle of a tube, twice at most; what then still holds is parted by the hook."""
    assert scissors.trocar is not None
    line = dict(eyes.tubes())[number]
    for attempt in range(TRIES):
        if eyes.is_cut(number):
            return
        place = seen(eyes, along_path(line, 0.52))
        if attempt < SNIPS:
            on = -BEYOND * (1.0 + 0.5 * attempt) * np.array(shaft_of(place[0], scissors.trocar))
            yield Stroke(SCISSORS, place + on, 0.1, DOWN, pressed=False, pull=pull)
        else:
            height = (0.001, -0.001)[attempt % 2]
            path = place + np.array([[0.0, -0.005, height], [0.0, 0.005, height]])
            yield Stroke(HOOK, path, 0.4, DOWN, pull=pull)


def paths_beside(patient: Patient, aside: float = 0.0034) -> Iterator[NDArray[np.float64]]:
    """Ways through the fold on either side of the duct and of each artery, at rest [m]: for whoever points at them."""
    for line in (patient.duct, *patient.arteries):
        points = np.array([along_path(line, float(share)) for share in np.linspace(0.15, 0.9, 8)])
        way = np.gradient(points, axis=0)
        across = np.stack([-way[:, 1], way[:, 0], np.zeros(len(way))], axis=1)
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        yield points - aside * across
        yield points + aside * across
