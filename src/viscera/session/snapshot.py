"""Snapshots of a running world in shared memory: three slots, no locks, the newest wins.

A slot is `before | header | arrays | after`. The writer takes the slot after the newest one, stores its number in
`before`, writes, stores the same number in `after`, and only then makes it the newest. A reader copies the newest slot
and keeps the copy if both numbers still are what it asked for: the writer has to publish two more frames before it
touches that slot, so a reader that is torn was very slow, and just tries again. Nobody ever waits for anybody.

The memory has no name (`memory.Segment`): its descriptor is handed to the session when that is spawned.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from viscera.errors import SessionError
from viscera.memory import Segment
from viscera.view import AnyArray, ArraySpec, Frame

SLOTS = 3
HEADER_SPACE = 32 * 1024
"""Room for the header of a slot [bytes]; tools, parameters and stages of a large scenario take a tenth of it."""

READ_ATTEMPTS = 8
_LINE = 64
"""Everything starts at a multiple of a cache line [bytes]."""

ArraySpecs = dict[str, ArraySpec]


class _Slot:
    def __init__(self, memory: memoryview, start: int, specs: ArraySpecs) -> None:
        self.before = np.frombuffer(memory, np.uint64, 1, start)
        self.header_length = np.frombuffer(memory, np.uint64, 1, start + 8)
        self.header = memory[start + _LINE : start + _LINE + HEADER_SPACE]
        self.arrays: dict[str, AnyArray] = {}
        place = start + _LINE + HEADER_SPACE
        for name, spec in specs.items():
            self.arrays[name] = np.frombuffer(memory, spec.kind, math.prod(spec.shape), place).reshape(spec.shape)
            place += _array_size(spec)
        self.after = np.frombuffer(memory, np.uint64, 1, place)


def segment_size(specs: ArraySpecs) -> int:
    """Bytes that a segment needs for these arrays."""
    return _LINE + SLOTS * _slot_size(specs)


def _slot_size(specs: ArraySpecs) -> int:
    return _LINE + HEADER_SPACE + sum(map(_array_size, specs.values())) + _LINE


def _array_size(spec: ArraySpec) -> int:
    return -(-math.prod(spec.shape) * np.dtype(spec.kind).itemsize // _LINE) * _LINE


class _Shared:
    """What writer and reader see alike."""

    def __init__(self, segment: Segment, specs: ArraySpecs) -> None:
        memory = segment.map(segment_size(specs))
        self.newest = np.frombuffer(memory, np.uint64, 1, 0)
        size = _slot_size(specs)
        self.slots = [_Slot(memory, _LINE + index * size, specs) for index in range(SLOTS)]
        self._lock = threading.Lock()

    def fence(self) -> None:
        """Stores before it are seen before stores after it. Taking a free lock is the memory barrier Python has;
        x86 needs none between stores, ARM does."""
        self._lock.acquire()
        self._lock.release()


class SnapshotWriter:
    def __init__(self, segment: Segment, specs: ArraySpecs) -> None:
        self._shared = _Shared(segment, specs)
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
        self.number = 0
        """Of the newest snapshot; they count from 1."""

    def publish(self, frame: Frame, write_arrays: Callable[[dict[str, AnyArray]], None]) -> None:
        """Makes a new snapshot the newest; `write_arrays` fills the arrays it is given, in place."""
        data = self._encoder.encode(frame)
        if len(data) > HEADER_SPACE:
            raise SessionError(
                f"a frame without its arrays takes {len(data)} bytes; {HEADER_SPACE} are allowed.",
                "The scenario has too many tools, parameters or stages.",
            )
        shared = self._shared
        number = self.number + 1
        slot = shared.slots[number % SLOTS]
        slot.before[0] = number
        shared.fence()
        slot.header[: len(data)] = data
        slot.header_length[0] = len(data)
        write_arrays(slot.arrays)
        shared.fence()
        slot.after[0] = number
        shared.fence()
        shared.newest[0] = number
        self.number = number


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item()


class SharedSnapshot(NamedTuple):
    """What a reader got."""

    number: int
    """They count from 1."""
    frame: Frame
    packed: bytes
    """The frame as MessagePack, as it goes on to browsers."""
    arrays: dict[str, AnyArray]


class SnapshotReader:
    def __init__(self, segment: Segment, specs: ArraySpecs) -> None:
        self._shared = _Shared(segment, specs)
        self._decoder = msgspec.msgpack.Decoder(Frame)

    def read(self) -> SharedSnapshot | None:
        """The newest snapshot, as copies; None while there is none that holds still."""
        shared = self._shared
        for _ in range(READ_ATTEMPTS):
            number = int(shared.newest[0])
            if number == 0:
                return None
            shared.fence()
            slot = shared.slots[number % SLOTS]
            header = bytes(slot.header[: min(int(slot.header_length[0]), HEADER_SPACE)])
            arrays = {name: array.copy() for name, array in slot.arrays.items()}
            shared.fence()
            if int(slot.before[0]) == number and int(slot.after[0]) == number:
                return SharedSnapshot(number, self._decoder.decode(header), header, arrays)
        return None
