"""Which hand held which instrument, from when each was in the body.

A world knows instruments, not hands. A hand that takes an instrument in holds it until it is out again, so what comes
in while the first hand is busy is held by the second, and so on: the fewest hands that can have done it, the first
free one first. An instrument that is left in the body keeps its hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from viscera.scores.trial import HandTrace

ORDINALS = ("First hand", "Second hand", "Third hand", "Fourth hand")


def by_hand(traces: Sequence[HandTrace]) -> list[list[HandTrace]]:
    """For each hand that was used, what it did with each instrument: the traces, active only while it held them."""
    if not traces:
        return []
    active = np.stack([trace.active for trace in traces])
    held = np.zeros(active.shape, dtype=np.int64)  # number of the hand, from 1; 0: none
    changes = 1 + np.flatnonzero(np.any(np.diff(active, axis=1), axis=0))
    before = np.zeros(len(traces), dtype=np.int64)
    for begin, end in pairwise([0, *changes.tolist(), active.shape[1]]):
        now = active[:, begin] if end > begin else np.zeros_like(before, dtype=np.bool_)
        before = np.where(now, before, 0)
        for tool in np.flatnonzero(now & (before == 0)):
            busy = set(before.tolist())
            before[tool] = next(hand for hand in range(1, len(traces) + 1) if hand not in busy)
        held[:, begin:end] = before[:, None]
    found = []
    for hand in range(1, int(held.max(initial=0)) + 1):
        mine = [replace(trace, active=held[tool] == hand) for tool, trace in enumerate(traces)]
        found.append([trace for trace in mine if trace.active.any()])
    return found
