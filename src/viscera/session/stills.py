"""Pictures of a recording, one a second, as they were seen: a jump shows one at once, while the world is computed.

A file beside the recording, of blocks `kind | tick | length | data`: a scene (as it went to the browsers), and stills
of it: a frame and its arrays, compressed. Half a block at the end, of a session that was killed, is left out. The
inputs of the recording are the truth; stills can be thrown away. Those of another `PROTOCOL` count as none: the page of
today could not read them.
"""

from __future__ import annotations

import contextlib
import os
import queue
import struct
import threading
import time
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec
import numpy as np

from viscera.session.wire import PROTOCOL, pack
from viscera.timing import TICKS_PER_FRAME
from viscera.view import AnyArray, Frame

SUFFIX = ".stills"
MAGIC = f"viscera stills {PROTOCOL}\n".encode()
BLOCK = struct.Struct("<4sIQ")
"""Kind, tick, bytes that follow."""

EVERY = 1_000
"""Between two stills [ticks]."""
RATE = 300_000
"""Large worlds have fewer, so that they write no more than this [bytes per simulated second]."""
MOST_WAITING = 4
"""Stills that may wait for the disk; more are left out."""
LARGEST = 256 * 2**20
"""Of a still that is read [bytes]: more is damage."""

Kind = Literal[b"SCEN", b"STIL"]


class _Still(msgspec.Struct, array_like=True):
    frame: bytes
    arrays: dict[str, bytes]


@dataclass(frozen=True)
class Still:
    """What was seen at a moment."""

    frame: Frame
    arrays: dict[str, bytes]

    def write_arrays(self, out: dict[str, AnyArray]) -> None:
        """As `World.write_arrays`: of arrays that are not full, as many rows as there are."""
        for name, data in self.arrays.items():
            if name in out:
                values = np.frombuffer(data, dtype=out[name].dtype).reshape(-1, *out[name].shape[1:])
                out[name][: len(values)] = values[: len(out[name])]


def stills_path(recording: Path) -> Path:
    return recording.with_suffix(SUFFIX)


class StillWriter:
    """Compresses and writes in a thread of its own, which steps back for all others. Whatever goes wrong ends the
    stills, nothing else."""

    def __init__(self, recording: Path, keep_until: int = -1) -> None:
        """With `keep_until`, stills up to that tick stay: the recording goes on from there."""
        self._path = stills_path(recording)
        self._due = 0
        self._seed: int | None = None
        self._room: dict[str, AnyArray] = {}
        self._queue: queue.Queue[tuple[Kind, int, Any] | None] = queue.Queue()
        self._keep_until = keep_until
        self._encode = msgspec.msgpack.Encoder(enc_hook=lambda value: value.item()).encode
        self._thread = threading.Thread(target=self._work, name="viscera-stills", daemon=True)
        self._thread.start()

    def scene(self, tick: int, packed: bytes) -> None:
        """What the next stills are of."""
        self._queue.put((b"SCEN", tick, packed))
        self._due = min(self._due, tick)

    def see(self, world: Any) -> None:
        """Keeps what a world shows after a tick, if it is time, with the scene that it is of; waits for the disk."""
        if world.tick % TICKS_PER_FRAME or world.tick < self._due:
            return
        while self._queue.qsize() >= MOST_WAITING:
            time.sleep(0.001)
        if world.seed != self._seed:
            self._seed = world.seed
            self.scene(world.tick, pack(world.scene()))
            self._room = {name: np.zeros(spec.shape, spec.kind) for name, spec in world.array_specs().items()}
        world.show_now()
        world.write_arrays(self._room)
        self.take(world.frame(), self._room)

    def due(self, tick: int) -> bool:
        return tick >= self._due and self._queue.qsize() < MOST_WAITING

    def take(self, frame: Frame, arrays: dict[str, AnyArray]) -> None:
        """Keeps what is seen now; the arrays are copied before it returns."""
        self._due = max(self._due, (frame.tick // EVERY + 1) * EVERY)
        copies = {name: array[: frame.counts.get(name, len(array))].tobytes() for name, array in arrays.items()}
        self._queue.put((b"STIL", frame.tick, _Still(self._encode(frame), copies)))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        try:
            with self._open() as file:
                while (item := self._queue.get()) is not None:
                    kind, tick, what = item
                    data = what if kind == b"SCEN" else zlib.compress(msgspec.msgpack.encode(what), 1)
                    file.write(BLOCK.pack(kind, tick, len(data)) + data)
                    file.flush()
                    if kind == b"STIL":
                        self._due = max(self._due, tick + round(1000.0 * len(data) / RATE))
        except OSError:
            while self._queue.get() is not None:  # the disk is full or gone; the recording says so itself
                pass

    def _open(self) -> BinaryIO:
        if self._keep_until < 0 or not _blocks(self._path):
            self._path.write_bytes(MAGIC)
        end = len(MAGIC)
        for kind, tick, start, length in _blocks(self._path):
            if kind == b"STIL" and tick > self._keep_until:
                break
            end = start + length
        os.truncate(self._path, end)
        return open(self._path, "ab")


def _blocks(path: Path) -> list[tuple[bytes, int, int, int]]:
    """Kind, tick, first byte and length of each whole block."""
    found: list[tuple[bytes, int, int, int]] = []
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(len(MAGIC)) != MAGIC:
                return []
            while len(head := file.read(BLOCK.size)) == BLOCK.size:
                kind, tick, length = BLOCK.unpack(head)
                start = file.tell()
                if start + length > size or length > LARGEST:
                    break
                found.append((kind, tick, start, length))
                file.seek(length, os.SEEK_CUR)
    except OSError:
        return []
    return found


class Stills:
    """The stills of a recording; none where it has none."""

    def __init__(self, recording: Path) -> None:
        self._path = stills_path(recording)
        self._ticks: list[int] = []
        self._places: list[tuple[int, int, int]] = []
        """Of each still: its first byte and length, and the number of its scene."""
        self._scenes: list[tuple[int, int]] = []
        for kind, tick, start, length in _blocks(self._path):
            if kind == b"SCEN":
                self._scenes.append((start, length))
            elif kind == b"STIL" and self._scenes and (not self._ticks or tick > self._ticks[-1]):
                self._ticks.append(tick)
                self._places.append((start, length, len(self._scenes) - 1))

    def __len__(self) -> int:
        return len(self._ticks)

    def find(self, tick: int) -> int | None:
        """The number of the last still at or before a tick, if it is near enough to stand for it."""
        # A frame is up to 16 ticks after the second that it stands for.
        number = bisect_right(self._ticks, tick + 16) - 1
        return number if number >= 0 and tick - self._ticks[number] < 2 * EVERY else None

    def tick(self, number: int) -> int:
        return self._ticks[number]

    def scene_of(self, number: int) -> int:
        """Numbered from 0."""
        return self._places[number][2]

    def scene(self, number: int) -> bytes:
        return self._read(*self._scenes[number])

    def load(self, number: int) -> Still | None:
        """None where it is damaged."""
        start, length, _ = self._places[number]
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(self._read(start, length), LARGEST)
            told = msgspec.msgpack.decode(data, type=_Still)
            return Still(msgspec.msgpack.decode(told.frame, type=Frame), told.arrays)
        except (OSError, zlib.error, msgspec.MsgspecError):
            return None

    def _read(self, start: int, length: int) -> bytes:
        with open(self._path, "rb") as file:
            file.seek(start)
            return file.read(length)
