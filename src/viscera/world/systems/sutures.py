"""Needle and thread as they are seen and counted; what they do to tissue is part of its ticks (tissue/sewing.py)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.instruments import Sews, Ties
from viscera.tissue import thread_kernels
from viscera.tissue.sewing import NEEDLE_ARC, need_sewing
from viscera.tissue.thread_kernels import HOLES, POINTS, TAIL
from viscera.units import MILLI
from viscera.view import Measure, Threads
from viscera.world.organ import Organ
from viscera.world.system import Moment, Show, System

KNOT = 9
"""Points of the small coil that stands for a knot or bead."""
KNOT_RADIUS = 0.5e-3
"""[m]"""
DRAWN_RADIUS = 0.25e-3
"""Of the thread as it is drawn [m]: 3-0 is about that thick in diameter; as a radius it is seen from a camera's
distance. Tuned for appearance."""
NEEDLE_POINTS, NEEDLE_RADIUS = 16, 0.35e-3

STITCHES = Measure("stitches", "Stitches", "", "Tied with a knot.", digits=0)
LEFT = Measure("thread_left", "Thread left", "mm", "On the needle; less than 30 mm makes no stitch.", digits=0)
TENSION = Measure("tension", "Tension", "N", "In the thread, where it is highest.", digits=2)
NO_THREAD = Measure("no_thread", "No thread", "", "Bites for which there was no thread or no room.", digits=0)

COUNT, FIRST = int(thread_kernels.COUNT), int(thread_kernels.FIRST)
FREE, INSIDE, CLOSING = int(thread_kernels.FREE), int(thread_kernels.INSIDE), int(thread_kernels.CLOSING)


class Sutures:
    """What is seen of an organ's threads."""

    def __init__(self, organ: Organ) -> None:
        if organ.tissue.sewing is None:
            raise InputError(f"{organ.name} cannot be sewn.", "Call `viscera.tissue.sewing.let_sew` on its tissue.")
        self.organ, self._threads = organ, need_sewing(organ.tissue).threads
        self._hand = need_sewing(organ.tissue).hand
        self._origin = np.asarray(organ.tissue.params.origin)
        capacity = HOLES * (POINTS + KNOT + 2) + POINTS + 2 * KNOT
        self.thread = np.zeros((capacity, 4), dtype=np.float32)
        """As `view.Threads` has it."""
        self.needle = np.zeros((NEEDLE_POINTS, 4), dtype=np.float32)
        self._seen = np.zeros(2, dtype=np.int64)
        """Points of each that are there."""
        self.land()
        self.draw()

    def land(self) -> None:
        """As of now, between two ticks."""
        threads = self._threads
        self.counts, self.numbers = threads.counts.numpy().copy(), threads.numbers.numpy().copy()
        self.kind, self.start = threads.kind.numpy().copy(), threads.start.numpy().copy()
        self.tension, self.at = threads.tension.numpy().copy(), threads.at.numpy() + self._origin
        self.point = (threads.point.numpy() + self._origin).reshape(-1, POINTS, 3)
        self._holds = self._hand.host.copy()

    def frame(self, now: Moment) -> None:
        self.draw()

    def draw(self) -> None:
        count, first = int(self.counts[COUNT]), int(self.counts[FIRST])
        runs, hole = [], 0
        while hole < first:
            end = next(k for k in range(hole, first) if self.kind[k] == CLOSING)
            runs.append([*self._through(hole, end), self.at[hole], *coil(self.at[hole])])
            hole = end + 1
        if self._holds[0] > 0.0 or count > first:
            runs.append(self._on_needle(first, count))
        self._seen[0] = fill(self.thread, [np.array(run) for run in runs])
        self._seen[1] = fill(self.needle, [self._arc()] if self._holds[0] > 0.0 else [])

    def _through(self, first: int, last: int) -> list[NDArray[np.float64]]:
        """Points of the thread from one hole to the end of what leads on from another."""
        found = []
        for hole in range(first, last + 1):
            found.append(self.at[hole])
            if self.kind[hole] > INSIDE:
                found += list(self.point[hole])
        return found

    def _on_needle(self, first: int, count: int) -> list[NDArray[np.float64]]:
        """From the bead at its end to the needle."""
        holes = [k for k in range(first, count) if self.kind[k] != FREE]
        tail = list(self.point[TAIL][::-1])
        found = [*coil(tail[0]), *tail]
        if holes:
            found += self._through(holes[0], holes[-1])
        if self._holds[0] > 0.0 and (not holes or self.kind[holes[-1]] != CLOSING):
            found.append(self._arc()[-1])
        return found

    def _arc(self) -> NDArray[np.float64]:
        """The needle from its point to the thread."""
        angle = self.numbers[int(thread_kernels.ANGLE)] - np.linspace(0.0, NEEDLE_ARC, NEEDLE_POINTS)[:, None]
        middle, across, up = self._holds[6:9] + self._origin, self._holds[9:12], self._holds[12:15]
        return middle - self._holds[15] * (np.cos(angle) * across + np.sin(angle) * up)

    def measures(self) -> list[tuple[Measure, float]]:
        holes = slice(0, int(self.counts[COUNT]))
        return [
            (STITCHES, float(self.counts[int(thread_kernels.KNOTS)])),
            (LEFT, float(self.numbers[int(thread_kernels.LEFT)]) / MILLI),
            (TENSION, float(self.tension[holes].max(initial=0.0))),
            (NO_THREAD, float(self.counts[int(thread_kernels.REFUSED)])),
        ]

    def loaded(self) -> None:
        self.land()
        self.draw()

    def system(self) -> System[Sutures]:
        name = self.organ.name
        thread = Threads(f"{name}.thread", "suture", DRAWN_RADIUS, len(self.thread))
        needle = Threads(f"{name}.needle", "wire", NEEDLE_RADIUS, len(self.needle))
        return System(
            name=f"{name}.sutures",
            frame=self.frame,
            lands=self.land,
            uses=(Sews, Ties),
            load=lambda saved: self.loaded(),
            shows=[
                Show(thread, {thread.name: self.thread}, lambda: {thread.name: int(self._seen[0])}),
                Show(needle, {needle.name: self.needle}, lambda: {needle.name: int(self._seen[1])}),
            ],
            measures=self.measures,
            holds=self,
        )


def coil(place: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """A small coil about a point, drawn as a knot."""
    angle = np.linspace(0.0, 4.0 * np.pi, KNOT)
    around = np.stack([np.cos(angle), np.sin(angle), np.linspace(-0.6, 0.6, KNOT)], axis=1)
    return list(place + KNOT_RADIUS * around + (0.0, 0.0, KNOT_RADIUS))


def fill(out: NDArray[np.float32], runs: list[NDArray[np.float64]]) -> int:
    """Points of all runs one after the other, as `Threads` has them; how many."""
    count = 0
    for run in runs:
        kept = run[: len(out) - count]
        out[count : count + len(kept), :3] = kept
        out[count : count + len(kept), 3] = 1.0
        count += len(kept)
        if len(kept):
            out[count - 1, 3] = 0.0
    return count


def sewing(organ: Organ) -> System[Sutures]:
    """After `cutting` in the order of a frame; `let_sew` comes before."""
    return Sutures(organ).system()
