"""A search: something is hidden in an organ, and whoever thinks to have found it sticks a pin there.

The instrument with the effect `Marks` sticks one pin per press of its handle. Pins stay, and move with the tissue. No
pin says whether it is right: that is told when the hand says "here it is" of the last one (see `drill.py`). Then, and
when a drill ends in any other way, what was hidden is shown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.instruments import MOST_TOOLS, Marks, Tool
from viscera.timing import TICK
from viscera.view import Markers, Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, Show, System

PINS = 16
"""That are seen; the next one takes the place of the oldest."""
PIN_SIZE = 7.0e-3
"""Half the length of a pin [m]."""
COME = 1.0e-3
"""A tool as near as this to its hand is where the hand wants it: a pin does not stick on the way there [m]."""
STANDS = 2.0e-3
"""Slower than this a tool that is not there is held back by what it pushes against: it will not come nearer [m/s]. One
that is on its way, `COME` or more from its hand, is ten times as fast and faster."""

FOUND = Measure(
    "found", "Found", "", "The pin of which you say “here it is” stands over what is hidden.", digits=0, yes_no=True
)
NUMBER = Measure("pins", "Pins", "", "That were stuck so far.", digits=0, grows=True)


def has_come(tool: Tool) -> bool:
    """Whether a tool is where its hand wants it, or as near as tissue lets it come."""
    if np.linalg.norm(tool.hand - tool.tip) < COME:
        return True
    return bool(np.linalg.norm(tool.tips[1] - tool.tips[0]) < STANDS * TICK)


class Search:
    """What is hidden, and the pins. `hide` puts it elsewhere and takes the pins out."""

    def __init__(self, organ: Organ, target: NDArray[np.float64], within: float) -> None:
        """`target` is the middle of what is hidden, in the organ at rest; a pin finds it `within` so much aside [m]."""
        self._organ, self._target, self._within = organ, np.array(target), within
        self._rest = organ.body.mesh.vertices
        self._normals = _vertex_normals(self._rest, organ.body.mesh.triangles)
        self._shown = np.zeros((PINS, 8), dtype=np.float32)
        """As `Markers` has it."""
        self._vertex = np.full(PINS, -1, dtype=np.int64)
        """Of the surface, in which each pin sticks; −1 where there is none."""
        self._count = np.zeros(3, dtype=np.int64)
        """Pins so far, whether the last one was declared and right, whether what is hidden is shown."""
        self._middle = np.zeros((1, 8), dtype=np.float32)
        """As `Markers` has it: what is hidden, once it is shown."""
        self._over = _nearest(self._rest, self._target)
        """Of the surface, the vertex nearest to what is hidden: it moves along with it."""
        self._down = np.zeros(MOST_TOOLS, dtype=np.bool_)
        """Whether each tool has had its pin for this press of its handle."""

    def hide(self, target: NDArray[np.float64]) -> None:
        if np.array_equal(target, self._target):
            return
        self._target[:] = target
        self._over = _nearest(self._rest, self._target)
        self._middle[:] = 0.0
        self._vertex[:] = -1
        self._shown[:] = 0.0
        self._count[:] = 0

    def aside(self, vertex: int) -> float:
        """How far from over the hidden thing a vertex of the surface lies, across the normal there [m]."""
        way, normal = self._target - self._rest[vertex], self._normals[vertex]
        return float(np.linalg.norm(way - (way @ normal) * normal))

    def declare(self) -> float | None:
        """Here it is: how far the last pin stands from over what is hidden [m]; None where there is none."""
        if self._count[0] == 0:
            return None
        off = self.aside(int(self._vertex[int(self._count[0] - 1) % PINS]))
        self._count[1] = off <= self._within
        return off

    def reveal(self) -> None:
        self._count[2] = 1
        self._follow()

    def frame(self, now: Moment) -> None:
        pressed = now.using(Marks)
        numbers = [tool.number for tool, _ in pressed]
        self._down &= np.isin(np.arange(MOST_TOOLS), numbers)
        for tool, marks in pressed:
            if not self._down[tool.number] and has_come(tool):
                self._down[tool.number] = True
                self._stick(tool.tip, marks.reach)
        self._follow()

    def _stick(self, tip: NDArray[np.float64], reach: float) -> None:
        distance = np.linalg.norm(self._organ.vertices.numpy() - tip, axis=1)
        vertex = int(distance.argmin())
        if distance[vertex] > reach:
            return
        place = int(self._count[0]) % PINS
        self._vertex[place] = vertex
        self._shown[place, 3:7] = _upright(self._normals[vertex])
        self._shown[place, 7] = 1.0
        self._count[0] += 1

    def _follow(self) -> None:
        stuck = self._vertex >= 0
        if stuck.any():
            self._shown[stuck, :3] = self._organ.vertices.numpy()[self._vertex[stuck]]
        if self._count[2]:
            moved = self._organ.vertices.numpy()[self._over] - self._rest[self._over]
            self._middle[0] = (*(self._target + moved), 0.0, 0.0, 0.0, 1.0, 1.0)

    def system(self) -> System[Search]:
        pins = {"pins": self._shown, "vertex": self._vertex, "count": self._count, "down": self._down}
        kept = Kept(pins | {"middle": self._middle})
        look = Markers(f"{self._organ.name}.pins", "pin", PIN_SIZE, PINS)
        target = Markers(f"{self._organ.name}.hidden", "target", self._within, 1)
        return System(
            name="search",
            frame=self.frame,
            uses=(Marks,),
            save=kept.save,
            load=kept.load,
            shows=[Show(look, {look.name: self._shown}), Show(target, {target.name: self._middle})],
            measures=lambda: [(FOUND, float(self._count[1])), (NUMBER, float(self._count[0]))],
            hides=self,
            holds=self,
        )


def _nearest(vertices: NDArray[np.float64], target: NDArray[np.float64]) -> int:
    """The vertex of a surface that is nearest to a place inside."""
    return int(np.linalg.norm(vertices - target, axis=1).argmin())


def _vertex_normals(vertices: NDArray[np.float64], triangles: NDArray[np.int32]) -> NDArray[np.float64]:
    """Unit length, towards the outside."""
    a, b, c = (vertices[triangles[:, corner]] for corner in range(3))
    faces = np.cross(b - a, c - a)
    total = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(total, triangles[:, corner], faces)
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-30)


def _upright(normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """The shortest turn of +z to a normal, as x, y, z, w."""
    turn = np.array([-normal[1], normal[0], 0.0, 1.0 + normal[2]])
    length = np.linalg.norm(turn)
    return turn / length if length > 1e-9 else np.array([1.0, 0.0, 0.0, 0.0])
