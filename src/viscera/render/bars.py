"""Round bars for all that is thin and hard: instruments, the clips and pins that they leave, sutures."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.instruments.bars import MOST_BARS
from viscera.instruments.bars import Bars as ToolBars
from viscera.instruments.effects import Heats
from viscera.instruments.instrument import Instrument
from viscera.render.light import GLASS_FINISH, INSULATED_FINISH, STEEL_FINISH
from viscera.render.looks import PIN_HEAD, SUTURE, linear_hex
from viscera.view import AnyArray, Frame, Markers, Scene, Threads

FloatArray = NDArray[np.float64]

PIECE = 0.02
"""Longest piece that a bar is drawn in [m]: the box around a short piece has few pixels beside it."""
SHAFT_FROM = 0.0018
"""From this radius on a bar is the shaft, and not the working end [m]."""

# In half lengths of a marker, as the page draws it.
GAP, WIRE, RAISED, NEEDLE, HEAD = 0.3, 0.17, 0.12, 0.055, 0.2
BEND = 4
"""Pieces of the bend of a clip."""


@dataclass(frozen=True)
class Bar:
    start: FloatArray
    end: FloatArray
    radius: float
    finish: int
    colour: tuple[float, float, float] = (0.0, 0.0, 0.0)


def rotation(turn: AnyArray) -> FloatArray:
    """Of a quaternion (x, y, z, w)."""
    x, y, z, w = (np.asarray(turn, dtype=np.float64) / np.linalg.norm(turn)).tolist()
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


class Instruments:
    """The instruments of a scene as bars, where a frame has them."""

    def __init__(self, instruments: tuple[Instrument, ...]) -> None:
        self._tools = [(one, ToolBars(one)) for one in instruments]
        self._ends = np.zeros((MOST_BARS, 2, 3))

    @property
    def capacity(self) -> int:
        """Bars that there may be, cut into pieces."""
        pieces = 0
        for _, bars in self._tools:
            bars.place(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), 1.0, self._ends)
            lengths = np.linalg.norm(self._ends[: bars.count, 1] - self._ends[: bars.count, 0], axis=1)
            pieces += int(np.ceil(lengths / PIECE + 1e-9).sum()) + 2 * bars.count
        return pieces

    def of(self, frame: Frame, number: int) -> list[Bar]:
        """Of one instrument; none while it is out of the body."""
        tool = next((one for one in frame.tools if one.tool == number and one.active), None)
        if tool is None:
            return []
        instrument, bars = self._tools[number]
        bars.place(np.array(tool.position), np.array(tool.orientation), tool.grip, self._ends)
        electric = instrument.effect(Heats) is not None
        found = []
        for k in range(bars.count):
            radius = float(bars.radii[k])
            finish = INSULATED_FINISH if electric and radius >= SHAFT_FROM else STEEL_FINISH
            found.append(Bar(self._ends[k, 0].copy(), self._ends[k, 1].copy(), radius, finish))
        return found


def pieces(bar: Bar) -> list[Bar]:
    """The same bar in short pieces: their round ends lie in each other."""
    count = max(1, math.ceil(float(np.linalg.norm(bar.end - bar.start)) / PIECE))
    ends = [bar.start + (bar.end - bar.start) * (k / count) for k in range(count + 1)]
    return [Bar(a, b, bar.radius, bar.finish, bar.colour) for a, b in itertools.pairwise(ends)]


def marker_bars(markers: Markers, numbers: AnyArray) -> list[Bar]:
    """Of the markers of an array that are there."""
    if markers.look == "target":
        return []
    shape = _clip() if markers.look == "clip" else _pin()
    found: list[Bar] = []
    for row in numbers[numbers[:, 7] != 0.0]:
        turn = markers.size * rotation(row[3:7])
        place = row[:3].astype(np.float64) + (turn[:, 2] * RAISED if markers.look == "clip" else 0.0)
        found += [
            Bar(place + turn @ one.start, place + turn @ one.end, markers.size * one.radius, one.finish, one.colour)
            for one in shape
        ]
    return found


def marker_capacity(markers: Markers) -> int:
    return markers.capacity * {"clip": BEND + 2, "pin": 2, "target": 0}[markers.look]


def thread_bars(threads: Threads, points: AnyArray) -> list[Bar]:
    """Along a thread's points; it ends where one says so."""
    suture = threads.look == "suture"
    colour = tuple(linear_hex(SUTURE).tolist()) if suture else (0.0, 0.0, 0.0)
    finish = GLASS_FINISH if suture else STEEL_FINISH
    goes_on = points[:-1, 3] != 0.0
    places = points[:, :3].astype(np.float64)
    return [Bar(places[k], places[k + 1], threads.radius, finish, colour) for k in np.flatnonzero(goes_on)]


def bar_capacity(scene: Scene) -> int:
    """Bars that a scene may show at once."""
    markers = sum(marker_capacity(one) for one in scene.markers)
    return max(1, Instruments(scene.instruments).capacity + markers + sum(one.capacity for one in scene.threads))


def _clip() -> list[Bar]:
    angles = [math.pi * (k / BEND - 0.5) for k in range(BEND + 1)]
    bend = [np.array([1 - GAP + GAP * math.cos(a), GAP * math.sin(a), 0.0]) for a in angles]
    way = [np.array([-1.0, -GAP, 0.0]), *bend, np.array([-1.0, GAP, 0.0])]
    return [Bar(a, b, WIRE, STEEL_FINISH) for a, b in itertools.pairwise(way)]


def _pin() -> list[Bar]:
    head = np.array([0.0, 0.0, 1.0 - HEAD])
    colour = tuple(linear_hex(PIN_HEAD).tolist())
    needle = Bar(np.array([0.0, 0.0, -0.95]), np.array([0.0, 0.0, 0.9]), NEEDLE, STEEL_FINISH)
    return [needle, Bar(head, head, HEAD, GLASS_FINISH, colour)]
