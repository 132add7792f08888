"""Writes the log of a session while it runs, without ever holding the session up.

Inputs collect in memory; once a second they go, as one block with a checksum, to a thread that writes them. The thread
owns the file: a slow disk delays the recording, not the world. A disk that is full or gone ends the recording with a
notice; what was written stays readable, and the world goes on.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import hashlib
import math
import os
import platform
import queue
import threading
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

import msgspec
import numpy as np

from viscera import __version__
from viscera.errors import RecordingError
from viscera.inputs import Input
from viscera.session.logfile import (
    MAGIC,
    Failure,
    Last,
    Record,
    RecordingHeader,
    Records,
    State,
    TrialRecord,
    pack_block,
    pack_state,
    to_record,
)
from viscera.timing import TICK

FLUSH_S = 1.0
"""Between two blocks of inputs, and so the most that a killed session loses [s]. The loop flushes a little earlier."""

CHECKPOINT_S = 10.0
"""Shortest time between two checkpoints [s]; a restart has at most that much to compute again, for a small world."""

IDLE_CHECKPOINTS = 6
"""While nobody touches anything, only one in so many checkpoints is written."""

CHECKPOINT_RATE = 200_000
"""Checkpoints of large worlds are rarer, so that they write no more than this [bytes/s]."""

MAX_PENDING = 256 * 2**20
"""Data that may wait for the disk; a disk that is so far behind counts as broken [bytes]."""

LARGEST_STATE = 128 * 2**20
"""Of a checkpoint; a larger world is restarted from its first tick [bytes]."""

WriteFunction = Callable[[int, memoryview], int]


def default_folder() -> Path:
    """Where recordings go unless told otherwise: the XDG data folder of the user."""
    base = os.environ.get("XDG_DATA_HOME", "")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "share"
    return root / "viscera" / "recordings"


def make_header(
    scenario: str,
    seed: int,
    device: str,
    device_description: str = "",
    mesh: str | Path | None = None,
    parameters: dict[str, float] | None = None,
    detail: float = 1.0,
    options: Mapping[str, str | int | Path] | None = None,
) -> RecordingHeader:
    """A header for a world made with these arguments, here and now."""
    file = Path(scenario).resolve() if scenario.endswith(".py") else None
    given = {name: str(value) for name, value in (options or {}).items()}
    there = {name: Path(text) for name, text in given.items() if not text.isdecimal() and Path(text).exists()}
    return RecordingHeader(
        scenario=scenario if file is None else file.stem,
        file="" if file is None else str(file),
        file_sha256="" if file is None else hash_file(file),
        seed=seed,
        device=device,
        device_description=device_description,
        versions=versions(),
        mesh=str(Path(mesh).resolve()) if mesh else "",
        mesh_sha256=hash_file(Path(mesh)) if mesh else "",
        options=given | {name: str(path.resolve()) for name, path in there.items()},
        options_sha256={name: hash_path(path) for name, path in there.items()},
        parameters=dict(parameters or {}),
        detail=detail,
        created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    )


def versions() -> dict[str, str]:
    """Versions that the bits of a world depend on."""
    try:
        warp = metadata.version("warp-lang")
    except metadata.PackageNotFoundError:
        warp = "unknown"
    return {
        "viscera": __version__,
        "warp": warp,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def hash_file(path: Path) -> str:
    try:
        if not path.is_file():
            raise RecordingError(f"cannot read {path}: it is no file.", "Check the path.")
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}.", "Check the path.") from error


def hash_path(path: Path) -> str:
    """Of a file; or of all files in a folder, by name."""
    if not path.is_dir():
        return hash_file(path)
    digest = hashlib.sha256()
    for one in sorted(path.iterdir()):
        if one.is_file():
            digest.update(f"{one.name} {hash_file(one)}\n".encode())
    return digest.hexdigest()


class Recorder:
    """An open log. `create` begins one, `resume` goes on with one; `notice` is not empty once writing has failed."""

    def __init__(self, path: Path, descriptor: int, length: int, write: WriteFunction = os.write) -> None:
        self.path = path
        self.notice = ""
        self.kept_tick = 0
        """Inputs up to this tick are in the file."""
        self._descriptor = descriptor
        self._length = length
        self._write_some = write
        self._records: list[Record] = []
        self.touched = False
        """Whether there was any input since the last checkpoint."""
        self._pending = 0
        self._queue: queue.SimpleQueue[tuple[bytes, Callable[[], bytes], int] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_blocks, name="viscera-recorder", daemon=True)
        self._thread.start()

    @staticmethod
    def create(folder: Path, header: RecordingHeader, write: WriteFunction = os.write) -> Recorder:
        """Begins a log in `folder`, which is made if need be. Raises `RecordingError` when that is not possible."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
            # A scenario of the user's own is known by its path.
            path, descriptor = _create_file(folder, f"{Path(header.scenario).stem}-{stamp}")
        except OSError as error:
            raise _cannot_record(folder, error) from error
        try:
            start = MAGIC + pack_block(b"HEAD", msgspec.msgpack.encode(header))
            _write_all(write, descriptor, start)
        except OSError as error:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise _cannot_record(folder, error) from error
        return Recorder(path, descriptor, len(start), write)

    @staticmethod
    def resume(path: Path, length: int, write: WriteFunction = os.write) -> Recorder:
        """Goes on with the log at `path` after its first `length` bytes; what follows them is dropped."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            _lock(path, descriptor)
            os.ftruncate(descriptor, length)
            os.lseek(descriptor, length, os.SEEK_SET)
        except OSError as error:
            raise _cannot_record(path, error) from error
        return Recorder(path, descriptor, length, write)

    @staticmethod
    def branch(path: Path, length: int, write: WriteFunction = os.write) -> Recorder:
        """Goes on with a copy of the first `length` bytes of the log at `path`, which stays as it is."""
        try:
            with open(path, "rb") as source:
                start = source.read(length)
            copy, descriptor = _create_file(path.parent, f"{path.stem}-resumed")
            _write_all(write, descriptor, start)
        except OSError as error:
            raise _cannot_record(path, error) from error
        return Recorder(copy, descriptor, length, write)

    def input(self, tick: int, given: Input) -> None:
        """`given` was applied when the world had made `tick` ticks."""
        if not self.notice:
            self._records.append(to_record(tick, given))
            self.touched = True

    def flush(self, tick: int) -> None:
        """The world has reached `tick`; everything so far goes to the file."""
        records, self._records = self._records, []
        self._write_records(tick, records)

    def _write_records(self, tick: int, records: list[Record]) -> None:
        block = Records(tick, records)
        self._hand_over(b"RECS", lambda: msgspec.msgpack.encode(block), 64 * len(block.records), tick)

    def checkpoint(self, tick: int, state: State) -> None:
        """Keeps a whole state, of before the inputs of `tick`, which may be some frames ago. The arrays must not change
        afterwards."""
        size = state_size(state)
        self.touched = False
        if size <= LARGEST_STATE:
            later = next((place for place, record in enumerate(self._records) if record[1] >= tick), len(self._records))
            self._write_records(tick, self._records[:later])
            self._records = self._records[later:]
            self._hand_over(b"CKPT", lambda: pack_state(tick, state), size)

    def trial(self, record: TrialRecord) -> None:
        """A trial has ended."""
        self._hand_over(b"DRIL", lambda: msgspec.msgpack.encode(record), 0)

    def fail(self, failure: Failure) -> None:
        """The session stopped by itself; the log keeps why."""
        self.flush(failure.tick)
        self._hand_over(b"LAST", lambda: msgspec.msgpack.encode(Last(failure.tick, failure=failure)), 0)
        self.close()

    def finish(self, tick: int, state_hash: str, scores: dict[str, float] | None = None) -> None:
        """The session ended as it should, with this state."""
        self.flush(tick)
        self._hand_over(b"LAST", lambda: msgspec.msgpack.encode(Last(tick, state_hash, scores or {})), 0)
        self.close()

    def close(self) -> None:
        """Waits until everything is written and closes the file."""
        self._queue.put(None)
        self._thread.join()

    def _hand_over(self, kind: bytes, payload: Callable[[], bytes], size: int, tick: int = 0) -> None:
        if self.notice:
            return
        if self._pending > MAX_PENDING:
            self._give_up("the disk does not keep up")
            return
        self._pending += size
        self._queue.put((kind, payload, tick))

    def _write_blocks(self) -> None:
        while (item := self._queue.get()) is not None:
            if self.notice:
                continue
            kind, payload, tick = item
            try:
                block = pack_block(kind, payload())
                _write_all(self._write_some, self._descriptor, block)
                self._length += len(block)
                self.kept_tick = max(self.kept_tick, tick)
            except OSError as error:
                self._give_up(_reason(error))
            if self._queue.empty():
                self._pending = 0
        os.close(self._descriptor)

    def _give_up(self, reason: str) -> None:
        self.notice = (
            f"Recording stopped at {self.kept_tick * TICK:.1f} s: {reason}. The simulation goes on; what was recorded"
            f" until then is kept in {self.path}."
            " Make room on the disk and start a new session to record again."
        )
        self._records = []
        with contextlib.suppress(OSError):
            # Half a block at the end would do no harm, but a reader would call the log damaged.
            os.ftruncate(self._descriptor, self._length)


def state_size(state: State) -> int:
    return sum(np.asarray(array).nbytes for array in state.values())


def checkpoint_interval(size: int) -> float:
    """Time between checkpoints of states of `size` bytes [s]."""
    return max(CHECKPOINT_S, size / CHECKPOINT_RATE) if size <= LARGEST_STATE else math.inf


def _create_file(folder: Path, name: str) -> tuple[Path, int]:
    """A new file `name.log`, or `name-2.log` and so on, when that is taken; locked by this process."""
    for number in range(1, 1000):
        path = folder / (f"{name}.log" if number == 1 else f"{name}-{number}.log")
        if path.with_suffix(".h5").exists():
            continue
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
        _lock(path, descriptor)
        return path, descriptor
    raise OSError(f"a thousand files called {name} exist already")


def _lock(path: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise RecordingError(f"{path} is being written by another session.", "Stop that one first.") from error
    except OSError:
        pass  # a file system without locks; sessions name their logs apart anyway


def in_use(path: Path) -> bool:
    """Whether a session is writing the log at `path`."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def _write_all(write: WriteFunction, descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[write(descriptor, rest) :]


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "the disk is full"
    return (error.strerror or str(error)).lower()


def _cannot_record(place: Path, error: OSError) -> RecordingError:
    return RecordingError(
        f"cannot record to {place}: {_reason(error)}.",
        "Choose a folder you may write to (--out DIR), or free some space.",
    )
