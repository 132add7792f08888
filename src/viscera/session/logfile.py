"""The append-only log of a session: what is in it, block by block, and how it is read back.

    VISCERALOG2\\n | block | block | …
    block = kind (4 bytes) | length (u32) | CRC-32 of the payload (u32) | CRC-32 of these twelve bytes (u32) | payload

Kinds: `HEAD` once, first; `RECS` about once a second, with the inputs since the last one and the tick reached; `CKPT`
a whole state (its tick, then compressed); `DRIL` a trial that ended, with its score; `LAST` at the end. Payloads are
MessagePack. A block that was cut short or
damaged ends the log: everything before it counts, nothing after it does. So a killed process loses at most the second
it had not yet written. Which of the two it was, the checksum of the head tells: one that is whole names more than is
there, or something else than is there.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import os
import stat
import struct
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, get_type_hints

import msgspec
import numpy as np

from viscera.errors import RecordingError
from viscera.inputs import Behind, EndDrill, Input, Reset, SetParameter, SetTable, StartDrill, ToolInput
from viscera.scores import Score

FORMAT = 2
MAGIC = b"VISCERALOG2\n"
BLOCK_HEAD = struct.Struct("<4sIII")
CHECKPOINT_TICK = struct.Struct("<Q")

LONGEST_BLOCK = 2**30
"""No session writes a longer one [bytes]."""

LARGEST_UNPACKED = 2**30
"""That a checkpoint may unpack to [bytes]; sessions keep none above 128 MiB."""

LAST_TICK = 10**9
"""Eleven days; a recording that says it is longer was not made by a session."""

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
    options: dict[str, str] = {}
    """What else the scenario was built with; older recordings have none."""
    options_sha256: dict[str, str] = {}
    """Of those that are files or folders."""
    parameters: dict[str, float]
    """Given when the world was made."""
    detail: float = 1.0
    """Times the scenario's own counts; older recordings have none, and were made with 1."""
    created: str
    """ISO 8601, with the time zone."""


KINDS: dict[str, type[Input]] = {
    "t": ToolInput,
    "p": SetParameter,
    "a": SetTable,
    "r": Reset,
    "s": StartDrill,
    "e": EndDrill,
    "b": Behind,
}
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


class TrialRecord(msgspec.Struct):
    """A trial that ended, and its score."""

    tick: int
    """At which it was scored."""
    seed: int
    level: str
    outcome: str
    passed: bool
    time: float
    """[s]"""
    values: dict[str, float]
    """Of the score, by name (`scores.Score.values`)."""
    advice: str
    id: str = ""
    """One of a kind: a database that has it already does not take it again."""
    trainee: str = ""
    """Key of whoever began it, which a database of trainees knows; empty: nobody's."""
    ended: str = ""
    """When, ISO 8601, UTC."""
    summary: str = ""
    """What of the score a list shows."""


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
    trials: list[TrialRecord] = field(default_factory=list)
    """That ended while it was recorded."""
    failure: Failure | None = None
    header_end: int = 0
    """Of a log: bytes up to the end of the header."""
    valid_length: int = 0
    """Of a log: bytes before the first damaged block."""
    torn_bytes: int = 0
    """Of a log: bytes that were dropped."""
    damage: str = ""
    """Of a log: what is wrong with it where the dropped bytes begin; empty where it is whole or was just cut off."""
    checkpoint_ends: dict[int, int] = field(default_factory=dict)
    """Of a log: where the block of each checkpoint ends."""

    @property
    def complete(self) -> bool:
        return bool(self.state_hash)


def trial_record(tick: int, found: Score, trainee: str = "") -> TrialRecord:
    """Of a trial that has ended now."""
    ended = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return TrialRecord(
        tick, found.seed, found.level, found.outcome, found.passed, found.time, found.values(), found.advice,
        id=str(uuid.uuid4()), trainee=trainee, ended=ended, summary=found.summary(),
    )  # fmt: skip


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
    head = BLOCK_HEAD.pack(kind, len(payload), zlib.crc32(payload), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def pack_state(tick: int, state: State) -> bytes:
    arrays = []
    for name, array in state.items():
        array = np.asarray(array)
        arrays.append(StateArray(name, array.dtype.str, array.shape, array.tobytes()))
    # Much of a state never changes; the quickest level finds that, without the interpreter's lock.
    return CHECKPOINT_TICK.pack(tick) + zlib.compress(msgspec.msgpack.encode(arrays), 1)


def unpack_state(path: Path, packed: bytes) -> State:
    """What `pack_state` has packed, without its tick."""
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(packed, LARGEST_UNPACKED)
        if not unpacking.eof:
            raise ValueError("it does not end")
        return {
            entry.name: np.frombuffer(entry.data, np.dtype(entry.dtype)).reshape(entry.shape).copy()
            for entry in msgspec.msgpack.decode(plain, type=list[StateArray])
        }
    except (zlib.error, msgspec.MsgspecError, ValueError, TypeError) as error:
        raise RecordingError(f"{path} has a checkpoint that cannot be read: {error}.", "Replay it instead.") from error


def _load_state(path: Path, place: int, length: int) -> State:
    with open(path, "rb") as file:
        file.seek(place)
        return unpack_state(path, file.read(length))


def open_recording(path: Path) -> BinaryIO:
    """A file to read; a pipe or a device, which may have no end, is refused."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise RecordingError(f"{path} is no file.", "Give a .log or .h5 file that a session wrote.")
        return open(path, "rb")
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}.", "Check the path and its permissions.") from error


def read_log(path: Path) -> Recording:
    """Reads a log up to its first damaged block. Raises `RecordingError` when there is no readable header."""
    recording: Recording | None = None
    damage = ""
    try:
        with open_recording(path) as file:
            magic = file.read(len(MAGIC))
            if magic != MAGIC:
                older = "An older viscera wrote it; use that one." if magic.startswith(MAGIC[:10]) else ""
                hint = older or "Give a .log or .h5 file that a session wrote."
                raise RecordingError(f"{path} is not a viscera log.", hint)
            while (block := _next_block(file)) is not None:
                if isinstance(block, str):
                    damage = block
                    break
                recording = _add_block(recording, path, *block)
                recording.valid_length = block[2]
            size = file.seek(0, 2)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}.", "Check the path and its permissions.") from error
    except (msgspec.MsgspecError, struct.error, ValueError, TypeError) as error:
        raise RecordingError(
            f"{path} cannot be understood: {error}.", "Another version of viscera wrote it."
        ) from error
    if recording is None:
        raise RecordingError(
            f"{path} has no readable header.", damage or "The session died before it began; start a new one."
        )
    recording.torn_bytes = size - recording.valid_length
    recording.damage = damage
    check_recording(recording)
    return recording


def _next_block(file: BinaryIO) -> tuple[bytes, bytes, int] | str | None:
    """Kind, payload and end in the file of the next block; None at the end, also of a log that was cut off; in words
    what is wrong where a block is damaged."""
    place = file.tell()
    head = file.read(BLOCK_HEAD.size)
    if len(head) < BLOCK_HEAD.size:
        return None
    kind, length, checksum, head_checksum = BLOCK_HEAD.unpack(head)
    if zlib.crc32(head[:-4]) != head_checksum or length > LONGEST_BLOCK:
        return f"It is damaged at byte {place}: there is no block."
    payload = file.read(length)
    if len(payload) < length:
        return None
    if zlib.crc32(payload) != checksum:
        return f"It is damaged at byte {place}: the checksum of a block of {length} bytes is wrong."
    return kind, payload, file.tell()


def check_recording(recording: Recording) -> None:
    """Refuses numbers that no session writes, and that would keep a replay busy for ever."""
    header = recording.header
    for name, value, most in (
        ("seed", header.seed, 2**63 - 1),
        ("tick", recording.tick, LAST_TICK),
        *(("tick of an input", tick, LAST_TICK) for tick, _ in recording.inputs),
        *(("tick of a checkpoint", tick, LAST_TICK) for tick in recording.checkpoints),
    ):
        if not 0 <= value <= most:
            raise RecordingError(f"{recording.path}: {name} = {value} is not possible.", f"Allowed are 0 to {most}.")
    if not (math.isfinite(header.detail) and header.detail > 0.0):
        raise RecordingError(f"{recording.path}: detail = {header.detail} is not possible.", "It is a number above 0.")


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
    elif kind == b"DRIL":
        recording.trials.append(msgspec.msgpack.decode(payload, type=TrialRecord))
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
