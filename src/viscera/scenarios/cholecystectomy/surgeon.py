"""Scripted surgeons for runs without a window: strokes one after the other, each aimed at the tissue as it lies then.

They look before each stroke where the tissue is, and then move their hands. They know the anatomy. `operation` is the
order of the textbook: hold, free the triangle, clip, cut, free the bed, dry, take out. `clumsiness` cuts first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.embedding import embed
from viscera.inputs import Input, Quaternion, ToolInput, Vector3
from viscera.instruments import Instrument, tip_for
from viscera.instruments.trocar import shaft_of, through_trocar, turned
from viscera.scenarios.cholecystectomy.patient import Line, Patient
from viscera.timing import TICK
from viscera.world import Organ, World

GRASPER, HOOK, CLIPS, SCISSORS, BIPOLAR, SUCTION, IRRIGATOR, EVACUATOR = range(8)
"""What keys 1 to 8 choose."""

EACH = 8
"""Ticks between two inputs of a hand."""
COMES = 184
"""Ticks in which an instrument comes to above where it begins, and as many in which it goes down."""
CLOSES = 160
"""Ticks that jaws are given to close."""
ABOVE, BACK = 0.015, 0.030
"""How far above it comes first, or how far back along its shaft [m]."""
DOWN, ACROSS = (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)
"""Where a hook's foot points to, or the plane of the jaws lies."""
ASIDE = 0.0034
"""How far beside a tube the fold is parted [m]: in the cells next to it."""
BEYOND = np.array([0.0, 0.006, -0.003])
"""From a tube to the tips of scissors that cut it [m]: on, along their shaft."""
DEEPER = 0.0008
"""How far below the middle of the fold the middle of the hook's foot goes [m]."""
BED_PLANE = 0.0085
"""Height in which the gall bladder is parted from its bed [m]."""
STRIPS = (-0.0085, -0.0053, -0.0021, 0.0011, 0.0043, 0.0075)
"""Of the bed, along y [m]: closer than a hook's foot is long."""


@dataclass(frozen=True, eq=False)
class Stroke:
    """One movement of one instrument."""

    tool: int
    path: NDArray[np.float64]
    """Places in the tissue at rest that what acts of it passes [m], shape (points, 3)."""
    seconds: float
    """From the first to the last place."""
    side: Vector3 = ACROSS
    """Where the instrument's x axis is turned to, as far as its shaft lets it."""
    pressed: bool = True
    """From the first place on; else it is pressed at the last one."""
    ahead: bool = False
    """Whether it comes along its shaft, as open jaws do; else from above."""
    steady: bool = False
    """Whether it goes by the places at rest: beside what does not move."""
    pull: Vector3 = (0.0, 0.0, 0.0)
    """How far the grasper is by the end of it from where it took hold [m]."""

    @property
    def ticks(self) -> int:
        return 2 * COMES + EACH * math.ceil(self.seconds / TICK / EACH) + CLOSES


class Surgeon:
    """Does these strokes, one after the other."""

    def __init__(self, organ: Organ, strokes: Iterable[Stroke]) -> None:
        self._organ = organ
        self.strokes = list(strokes)
        self.begins = np.cumsum([0] + [stroke.ticks for stroke in self.strokes])
        """Tick at which each begins, and at which all is done."""
        self._now, self._places = -1, np.zeros((0, 3))

    @property
    def ticks(self) -> int:
        """That it takes."""
        return int(self.begins[-1])

    def script(self, world: World, tick: int) -> list[Input]:
        if tick % EACH or tick >= self.ticks:
            return []
        number = int(np.searchsorted(self.begins, tick, side="right")) - 1
        stroke = self.strokes[number]
        found: list[Input] = []
        if number != self._now:
            self._now, self._places = number, self._see(stroke)
            before = self.strokes[number - 1] if number else stroke
            if before.tool not in (stroke.tool, GRASPER):
                found.append(ToolInput(before.tool, world.hands[before.tool].instrument.home, active=False))
        held = self._held(number, tick - int(self.begins[number]))
        return [*found, *held, self._input(world, stroke, tick - int(self.begins[number]))]

    def _see(self, stroke: Stroke) -> NDArray[np.float64]:
        """Where the places of a stroke are now [m]."""
        if stroke.steady:
            return stroke.path
        body = self._organ.body
        held = embed(stroke.path, body.nodes, body.origin, body.spacing)
        moved = np.asarray(self._organ.tissue.displacement())
        return stroke.path + np.einsum("pc,pca->pa", held.weights.astype(np.float64), moved[held.indices])

    def _input(self, world: World, stroke: Stroke, t: int) -> ToolInput:
        """What the working hand does, t ticks after its stroke began."""
        there = 2 * COMES + (CLOSES if stroke.tool == GRASPER else 0)
        share = min(max((t - there) * TICK / stroke.seconds, 0.0), 1.0)
        place = along_path(self._places, share)
        if stroke.tool == GRASPER:
            place = place + share * np.array(stroke.pull)
        if t < COMES:
            place = place + self._back(world.hands[stroke.tool].instrument, place, stroke)
        pressed = t >= 2 * COMES if stroke.pressed else t >= stroke.ticks - CLOSES
        x, y, z = place.tolist()
        instrument = world.hands[stroke.tool].instrument
        turn = turned_to(stroke.side, (x, y, z), instrument)
        tip = tip_for((x, y, z), instrument, turn)
        return ToolInput(stroke.tool, tip, turn, grip=1.0 if pressed else 0.0)

    @staticmethod
    def _back(instrument: Instrument, place: NDArray[np.float64], stroke: Stroke) -> NDArray[np.float64]:
        """From where an instrument begins to where it comes from [m]."""
        if stroke.ahead and instrument.trocar is not None:
            return BACK * np.array(shaft_of(place, instrument.trocar))
        return np.array([0.0, 0.0, ABOVE])

    def _held(self, number: int, t: int) -> list[ToolInput]:
        """The grasper stays clamped, and goes on pulling as the strokes say."""
        mine = [k for k in range(number) if self.strokes[k].tool == GRASPER]
        if not mine or self.strokes[number].tool == GRASPER:
            return []
        share = min(t / (2 * COMES), 1.0)
        pull = (1.0 - share) * np.array(self.strokes[number - 1].pull) + share * np.array(self.strokes[number].pull)
        x, y, z = (self.strokes[mine[-1]].path[-1] + pull).tolist()
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


def operation(patient: Patient) -> Iterator[Stroke]:
    """A whole operation, as it should be."""
    light, more, most = (0.002, 0.0, 0.005), (0.002, 0.0, 0.008), (0.004, 0.0, 0.014)
    yield Stroke(GRASPER, np.array([[0.016, 0.0, 0.0270]]), 1.0, steady=True, pull=light)
    tubes = [patient.duct, *patient.arteries]
    for path in around(patient):
        yield Stroke(HOOK, path - np.array([0.0, 0.0, DEEPER]), 1.5, DOWN, pull=light)
    yield from bed(-0.0100, 0.0045, 1.2, more)
    for line in tubes:
        for share in (0.35, 0.7):
            yield Stroke(CLIPS, along_path(line, share)[None], 0.1, pressed=False, pull=light)
    for line in tubes:
        across = along_path(line, 0.52)[None] + BEYOND
        yield Stroke(SCISSORS, across, 0.1, DOWN, pressed=False, ahead=True, pull=light)
    yield from bed(0.0015, 0.0340, 2.4, most)
    dry = np.array([[-0.005, 0.0, 0.0075], [0.030, 0.0, 0.0075]])
    yield Stroke(SUCTION, dry, 2.0, steady=True, pull=(0.01, 0.0, 0.055))


def clumsiness(patient: Patient) -> Iterator[Stroke]:
    """Cuts the artery before there is a clip, and goes into the gall bladder with the hook."""
    across = along_path(patient.arteries[0], 0.5)[None] + BEYOND
    yield Stroke(SCISSORS, across, 0.1, DOWN, pressed=False, ahead=True)
    yield Stroke(HOOK, np.array([[0.002, 0.0, 0.0240], [0.022, 0.0, 0.0240]]), 1.5, DOWN)


def around(patient: Patient) -> Iterator[NDArray[np.float64]]:
    """Ways through the fold on either side of the duct and of each artery; one between two arteries."""
    yield np.concatenate([beside(patient.duct, -1.0), [(-0.0100, -0.0085, 0.0185), (0.0060, -0.0125, 0.0190)]])
    yield beside(patient.duct, 1.0)
    yield beside(patient.arteries[0], -1.0)
    for one, other in itertools.pairwise(patient.arteries):
        yield 0.5 * (beside(one, 1.0) + beside(other, -1.0))
    last = beside(patient.arteries[-1], 1.0)
    yield np.concatenate([last, [(0.0065, 0.0125, last[-1, 2])]])


def beside(line: Line, side: float) -> NDArray[np.float64]:
    """A way along a tube through the fold, beside it, from its feeding end to the gall bladder."""
    points = np.array([along_path(line, float(share)) for share in np.linspace(0.15, 0.9, 8)])
    way = np.gradient(points, axis=0)
    across = np.stack([-way[:, 1], way[:, 0], np.zeros(len(way))], axis=1)
    return points + side * ASIDE * across / np.linalg.norm(across, axis=1, keepdims=True)


def bed(start: float, end: float, seconds: float, pull: Vector3) -> Iterator[Stroke]:
    """Ways along the bed, from the neck to the fundus, one beside the other."""
    for y in STRIPS:
        path = np.array([[start, y, BED_PLANE], [end, y, BED_PLANE]])
        yield Stroke(HOOK, path, seconds, ahead=True, steady=True, pull=pull)
