"""The append-only log of a session: what is in it, block by block, and how it is read back.

    VISCERALOG1\\n | block | block | …
    block = kind (4 bytes) | length (u32) | CRC-32 of the payload (u32) | payload

Kinds: `HEAD` once, first; `RECS` about once a second, with the inputs since the last one and the tick reached; `CKPT`
a whole state (its tick, then compressed); `LAST` at the end. Payloads are MessagePack. A block that was cut short or
damaged ends the log: everything before it counts, nothing after it does. So a killed process loses at most the second
it had not yet written.
"""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, get_type_hints

import msgspec
import numpy as np

from viscera.errors import RecordingError
from viscera.inputs import Behind, Input, Reset, SetParameter, SetTable, ToolInput

FORMAT = 1
MAGIC = b"VISCERALOG1\n"
BLOCK_HEAD = struct.Struct("<4sII")
CHECKPOINT_TICK = struct.Struct("<Q")

State = dict[str, np.ndarray]


class RecordingHeader(msgspec.Struct, kw_only=True):
    """What has to be the same for a replay to be the same."""

    format: int = FORMAT
    scenario: str
    seed: int
    device: str
    """`cpu`, `cuda:0`."""
    device_description: str = ""
    versions: dict[str, str]
    mesh: str = ""
    """Path of the user's mesh; empty when there is none."""
    mesh_sha256: str = ""
    file: str = ""
    """Path of the user's scenario file; empty for a scenario of the package."""
    file_sha256: str = ""
    parameters: dict[str, float]
    """Given when the world was made."""
    detail: float = 1.0
    """Times the scenario's own counts; older recordings have none, and were made with 1."""
    created: str
    """ISO 8601, with the time zone."""


KINDS: dict[str, type[Input]] = {"t": ToolInput, "p": SetParameter, "a": SetTable, "r": Reset, "b": Behind}
"""How each kind of input is marked in a log."""
_MARKS = {kind: mark for mark, kind in KINDS.items()}
_FIELDS = {kind: [field.name for field in dataclasses.fields(kind)] for kind in KINDS.values()}
_TYPES: dict[type[Input], Any] = {kind: tuple[tuple(get_type_hints(kind).values())] for kind in KINDS.values()}

Record = list[Any]
"""Mark, tick, and the fields of the input in their order. Fields at the end that have defaults may be missing."""


class Records(msgspec.Struct, array_like=True):
    """The heartbeat: the world reached `tick`, and these inputs were applied since the last one."""

    tick: int
    records: list[Record]


class StateArray(msgspec.Struct, array_like=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes


class Failure(msgspec.Struct):
    """Why a session stopped by itself."""

    tick: int
    stage: str
    message: str


class Last(msgspec.Struct):
    tick: int
    state_hash: str = ""
    scores: dict[str, float] = {}
    failure: Failure | None = None


@dataclass
class Recording:
    """A log or an archive, read back."""

    path: Path
    header: RecordingHeader
    inputs: list[tuple[int, Input]] = field(default_factory=list)
    """(tick, input): applied when the world had made that many ticks."""
    checkpoints: dict[int, Callable[[], State]] = field(default_factory=dict)
    """State at a tick, before the inputs of that tick; read from the file when it is called for."""
    tick: int = 0
    """How far it goes."""
    state_hash: str = ""
    """At `tick`; empty when the session did not end by itself."""
    scores: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    header_end: int = 0
    """Of a log: bytes up to the end of the header."""
    valid_length: int = 0
    """Of a log: bytes before the first damaged block."""
    torn_bytes: int = 0
    """Of a log: bytes that were dropped."""
    checkpoint_ends: dict[int, int] = field(default_factory=dict)
    """Of a log: where the block of each checkpoint ends."""

    @property
    def complete(self) -> bool:
        return bool(self.state_hash)


def to_record(tick: int, given: Input) -> Record:
    return [_MARKS[type(given)], tick, *(getattr(given, name) for name in _FIELDS[type(given)])]


def from_record(record: Record) -> tuple[int, Input]:
    """Tick and input; raises `msgspec.ValidationError` for what is neither."""
    mark, tick, *values = record
    if mark not in KINDS or not isinstance(tick, int):
        raise msgspec.ValidationError(f"{mark!r} at {tick!r} is no input")
    kind = KINDS[mark]
    given = [getattr(field, "default", None) for field in dataclasses.fields(kind)]
    given[: len(values)] = values
    return tick, kind(*msgspec.convert(given, _TYPES[kind]))


def pack_block(kind: bytes, payload: bytes) -> bytes:
    return BLOCK_HEAD.pack(kind, len(payload), zlib.crc32(payload)) + payload


def pack_state(tick: int, state: State) -> bytes:
    arrays = []
    for name, array in state.items():
        array = np.asarray(array)
        arrays.append(StateArray(name, array.dtype.str, array.shape, array.tobytes()))
    # Much of a state never changes; the quickest level finds that, without the interpreter's lock.
    return CHECKPOINT_TICK.pack(tick) + zlib.compress(msgspec.msgpack.encode(arrays), 1)


def _load_state(path: Path, place: int, length: int) -> State:
    with open(path, "rb") as file:
        file.seek(place)
        packed = zlib.decompress(file.read(length))
    return {
        entry.name: np.frombuffer(entry.data, np.dtype(entry.dtype)).reshape(entry.shape).copy()
        for entry in msgspec.msgpack.decode(packed, type=list[StateArray])
    }


def read_log(path: Path) -> Recording:
    """Reads a log up to its first damaged block. Raises `RecordingError` when there is no readable header."""
    try:
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise RecordingError(f"{path} is not a viscera log.", "Give a .log or .h5 file that a session wrote.")
            recording: Recording | None = None
            for kind, payload, end in _blocks(file):
                recording = _add_block(recording, path, kind, payload, end)
                recording.valid_length = end
            size = file.seek(0, 2)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}.", "Check the path and its permissions.") from error
    except (msgspec.MsgspecError, struct.error, ValueError, TypeError) as error:
        raise RecordingError(
            f"{path} cannot be understood: {error}.", "Another version of viscera wrote it."
        ) from error
    if recording is None:
        raise RecordingError(f"{path} has no readable header.", "The session died before it began; start a new one.")
    recording.torn_bytes = size - recording.valid_length
    return recording


def _blocks(file: BinaryIO) -> Iterator[tuple[bytes, bytes, int]]:
    """(kind, payload, end in the file) of every whole block."""
    while len(head := file.read(BLOCK_HEAD.size)) == BLOCK_HEAD.size:
        kind, length, checksum = BLOCK_HEAD.unpack(head)
        payload = file.read(length)
        if len(payload) < length or zlib.crc32(payload) != checksum:
            return
        yield kind, payload, file.tell()


def _add_block(recording: Recording | None, path: Path, kind: bytes, payload: bytes, end: int) -> Recording:
    if recording is None:
        if kind != b"HEAD":
            raise RecordingError(f"{path} does not begin with a header.", "It was not written by a session.")
        header = msgspec.msgpack.decode(payload, type=RecordingHeader)
        check_format(path, header.format)
        return Recording(path, header, header_end=end)
    if kind == b"RECS":
        records = msgspec.msgpack.decode(payload, type=Records)
        recording.inputs += [from_record(record) for record in records.records]
        recording.tick = max(recording.tick, records.tick)
    elif kind == b"CKPT":
        (tick,) = CHECKPOINT_TICK.unpack_from(payload)
        length = len(payload) - CHECKPOINT_TICK.size
        recording.checkpoints[tick] = partial(_load_state, path, end - length, length)
        recording.checkpoint_ends[tick] = end
        recording.tick = max(recording.tick, tick)
    elif kind == b"LAST":
        last = msgspec.msgpack.decode(payload, type=Last)
        recording.tick = max(recording.tick, last.tick)
        recording.state_hash, recording.scores, recording.failure = last.state_hash, last.scores, last.failure
    else:
        raise RecordingError(f"{path} has a block of unknown kind {kind!r}.", "A newer viscera wrote it; update.")
    return recording


def check_format(path: Path, found: int) -> None:
    if found != FORMAT:
        raise RecordingError(
            f"{path} has format {found}; this viscera reads format {FORMAT}.",
            "Use the version that recorded it.",
        )
