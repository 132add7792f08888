"""What each hand did since the drill began, a row a frame: what scores are made of.

It belongs to the ticks: forces are added up tick by tick, so no peak is missed, and whether the systems keep up does
not matter. A drill that has ended stops it, when its turn lands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.instruments import PRESSED
from viscera.scores.trial import HandTrace
from viscera.timing import FRAME, TICKS_PER_FRAME
from viscera.view import Instrument, ToolState

LONGEST = 20.0 * 60.0
"""What comes after this is not kept [s]; drills take minutes."""

X, Y, Z, MEAN, PEAK, ACTIVE = range(6)
"""Columns: tip [m], mean and strongest force of the frame [N], whether it was in the body (`IN_BODY`)."""
OUT, IN_BODY, AT_WORK = 0.0, 1.0, 2.0
"""At work: in the body, with its pedal or handle pressed."""


class Trace:
    """Of all tools of one filling of a world."""

    def __init__(self, instruments: Sequence[Instrument]) -> None:
        self._instruments = tuple(instruments)
        self._rows = np.zeros((round(LONGEST / FRAME), len(instruments), 6), dtype=np.float32)
        self._count = 0
        self._going = False
        self._sums = [0.0] * len(instruments)
        self._peaks = [0.0] * len(instruments)
        self._ticks = 0

    def start(self) -> None:
        self._count = self._ticks = 0
        self._going = True
        self._sums[:] = self._peaks[:] = [0.0] * len(self._sums)

    def stop(self) -> None:
        self._going = False

    def add(self, tools: Sequence[ToolState]) -> None:
        """What the tools felt in a tick."""
        if not self._going:
            return
        for number, tool in enumerate(tools):
            x, y, z = tool.force
            felt = math.sqrt(x * x + y * y + z * z)
            self._sums[number] += felt
            if felt > self._peaks[number]:
                self._peaks[number] = felt
        self._ticks += 1
        if self._ticks == TICKS_PER_FRAME:
            self._keep(tools)

    def _keep(self, tools: Sequence[ToolState]) -> None:
        self._ticks = 0
        if self._count < len(self._rows):
            for number, tool in enumerate(tools):
                mean = self._sums[number] / TICKS_PER_FRAME
                self._rows[self._count, number] = (*tool.position, mean, self._peaks[number], _presence(tool))
            self._count += 1
        self._sums[:] = self._peaks[:] = [0.0] * len(self._sums)

    def hands(self, seconds: float) -> tuple[HandTrace, ...]:
        """The whole frames of the first so many seconds, one trace per tool."""
        rows = self._rows[: min(self._count, math.floor(seconds / FRAME + 1e-6))].astype(np.float64)
        return tuple(_hand(one, rows[:, number]) for number, one in enumerate(self._instruments))

    # --- part of the state of ticks ---

    def save(self) -> dict[str, NDArray[np.float64] | NDArray[np.float32]]:
        return {
            "trace/rows": self._rows[: self._count].copy(),
            "trace/now": np.array([float(self._going), float(self._ticks), *self._sums, *self._peaks]),
        }

    def load(self, saved: Mapping[str, NDArray[np.float64] | NDArray[np.float32]]) -> None:
        self._count = len(saved["trace/rows"])
        self._rows[: self._count] = saved["trace/rows"]
        going, ticks, *rest = saved["trace/now"].tolist()
        self._going, self._ticks = bool(going), int(ticks)
        tools = len(self._instruments)
        self._sums[:], self._peaks[:] = rest[:tools], rest[tools:]


def _presence(tool: ToolState) -> float:
    if not tool.active:
        return OUT
    return AT_WORK if tool.grip >= PRESSED else IN_BODY


def _hand(instrument: Instrument, rows: NDArray[np.float64]) -> HandTrace:
    return HandTrace(
        name=instrument.name,
        label=instrument.label or instrument.name,
        dt=FRAME,
        positions=rows[:, X : Z + 1],
        mean_force=rows[:, MEAN],
        peak_force=rows[:, PEAK],
        active=rows[:, ACTIVE] > OUT,
        working=rows[:, ACTIVE] > IN_BODY,
        trocar=instrument.trocar,
    )
