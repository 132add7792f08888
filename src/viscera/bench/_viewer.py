"""The other side of bench/buffering.py: a process that looks at a lattice 60 times a second. NumPy alone."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

REFRESH = 1.0 / 60.0
"""Of the display [s]."""
SLOTS = 3
STEPS = 65535
"""Of a coordinate across the box."""

LOCKED_FOR_THE_FRAME = "single buffer, locked until the display has it"
LOCKED_WHILE_READ = "single buffer, locked while it is read"
LOCK_FREE = "three buffers, no lock"


@dataclass
class Shared:
    """Memory that both processes see. Each slot is one state of the lattice; `newest` counts the states, `before` and
    `after` hold the number of the one in each slot, as in session/snapshot.py."""

    values: Any
    """SLOTS × count float32"""
    numbers: Any
    """newest, before × SLOTS, after × SLOTS"""
    lock: Any
    door: Any
    """Whoever waits for the lock holds this, so that the other cannot take the lock twice in a row."""

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """The lock, in the order of asking."""
        with self.door:
            self.lock.acquire()
        try:
            yield
        finally:
            self.lock.release()

    def slots(self) -> NDArray[np.float32]:
        return np.frombuffer(self.values, dtype=np.float32).reshape(SLOTS, -1)

    def counts(self) -> NDArray[np.uint64]:
        return np.frombuffer(self.numbers, dtype=np.uint64)


@dataclass
class View:
    """What is to be looked at, and how."""

    mode: str
    places: int
    place_of_mass: NDArray[np.int32]
    rest: NDArray[np.float32]


def look(shared: Shared, commands: Connection) -> None:
    """Serves one `View` after the other: says "ready", looks until told to stop, and answers with its frames/s."""
    browser = _Browser()
    while (view := commands.recv()) is not None:
        slots = shared.slots()[:, : 3 * view.places]
        commands.send("ready")
        start, frames = time.perf_counter(), 0
        while not commands.poll():
            due = start + (frames + 1) * REFRESH
            browser.receive(_frame(shared, slots, view, due))
            frames += 1
            if view.mode != LOCKED_FOR_THE_FRAME:
                _wait_until(due)
        commands.recv()
        commands.send(frames / (time.perf_counter() - start))


def _frame(shared: Shared, slots: NDArray[np.float32], view: View, due: float) -> bytes:
    if view.mode == LOCK_FREE:
        counts = shared.counts()
        while True:
            number = int(counts[0])
            slot = number % SLOTS
            # A copy first: physics comes back to this slot after two more ticks, sooner than a frame is made.
            copy = slots[slot].copy()
            if counts[1 + slot] == number == counts[1 + SLOTS + slot]:
                return encode(copy, view)
    with shared.holding():
        data = encode(slots[0], view)
        if view.mode == LOCKED_FOR_THE_FRAME:
            _wait_until(due)
    return data


def encode(position: NDArray[np.float32], view: View) -> bytes:
    """What the server does for every frame: positions of all masses in 16 bits per coordinate of their box."""
    points = view.rest + position.reshape(3, -1)[:, view.place_of_mass].T
    low = points.min(axis=0).astype(np.float64)
    high = np.maximum(points.max(axis=0).astype(np.float64), low + 1e-6)
    return np.rint((points - low) * (STEPS / (high - low))).astype("<u2").tobytes()


def _wait_until(due: float) -> None:
    time.sleep(max(0.0, due - time.perf_counter()))


class _Browser:
    """Takes each frame through a socket of this machine, as a page would."""

    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)
        self._buffer = bytearray(1 << 18)

    def receive(self, data: bytes) -> None:
        left = memoryview(data)
        waiting = len(data)
        while waiting:
            with contextlib.suppress(BlockingIOError):
                left = left[self._near.send(left) :] if len(left) else left
            waiting -= self._far.recv_into(self._buffer)
