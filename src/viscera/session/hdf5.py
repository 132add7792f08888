"""HDF5, where it can do no harm.

The library crashes where the disk is full, and may hang or take all memory where a file is damaged or made to harm. So
it writes through `_Disk`, which takes everything and tells afterwards; and it reads in a process of its own
(`python -m viscera.session.hdf5 FILE [TICK]`), which has a time and a memory limit and answers in MessagePack, of
which every field is checked by whoever asked (`archive.py`).
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np

from viscera.inputs import Behind, EndDrill, Input, Reset, SetParameter, SetTable, StartDrill, ToolInput
from viscera.session.logfile import (
    Failure,
    Last,
    Recording,
    RecordingHeader,
    Records,
    State,
    TrialRecord,
    pack_state,
    to_record,
)

USER_BLOCK = 512
"""Bytes before the HDF5 file proper, which HDF5 leaves to the user; ours holds a digest of the rest."""

MEMORY = 8 * 2**30
"""That reading may take [bytes]."""

_TOOLS = np.dtype(
    [
        ("tick", "<i8"),
        ("order", "<i8"),
        ("tool", "<i4"),
        ("position", "<f8", (3,)),
        ("orientation", "<f8", (4,)),
        ("grip", "<f8"),
        ("active", "?"),
        ("direct", "?"),
    ]
)
_PARAMETERS = np.dtype([("tick", "<i8"), ("order", "<i8"), ("name", "S64"), ("value", "<f8")])
_TABLES = np.dtype([("tick", "<i8"), ("order", "<i8"), ("name", "S64"), ("rows", "S4096")])
_RESETS = np.dtype([("tick", "<i8"), ("order", "<i8"), ("seed", "<i8")])
_DRILLS = np.dtype(
    [("tick", "<i8"), ("order", "<i8"), ("what", "S16"), ("level", "<i4"), ("seed", "<i8"), ("certainty", "<f8")]
)
"""What is `start` or how it ends; a seed of −1 is none."""
_BEHIND = np.dtype([("tick", "<i8"), ("order", "<i8")])


class Extract(msgspec.Struct):
    """What is in an archive but for its states."""

    header: RecordingHeader
    records: Records
    checkpoints: list[int]
    last: Last
    trials: list[TrialRecord] = []


class _Disk:
    """A file that never fails: what there is no room for is kept in memory, and `check` says so. HDF5 ends in a crash
    when a write fails while it closes a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._place = 0
        self._size = 0
        self._error: OSError | None = None
        self._kept: list[tuple[int, bytes]] = []

    def check(self) -> None:
        """Raises what went wrong so far."""
        if self._error is not None:
            raise self._error

    def write(self, data: Any) -> int:
        data = bytes(data)
        if self._error is None:
            try:
                done = 0
                while done < len(data):
                    done += os.pwrite(self._file.fileno(), data[done:], self._place + done)
            except OSError as error:
                self._error = error
        if self._error is not None:
            self._kept.append((self._place, data))
        self._place += len(data)
        self._size = max(self._size, self._place)
        return len(data)

    def readinto(self, out: Any) -> int:
        view = memoryview(out).cast("B")
        data = bytearray(len(view))
        found = os.pread(self._file.fileno(), len(view), self._place)
        data[: len(found)] = found
        for place, kept in self._kept:
            low, high = max(place, self._place), min(place + len(kept), self._place + len(view))
            if low < high:
                data[low - self._place : high - self._place] = kept[low - place : high - place]
        view[:] = data
        self._place += len(view)
        return len(view)

    def read(self, size: int) -> bytes:
        data = bytearray(size)
        self.readinto(data)
        return bytes(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def truncate(self, size: int | None = None) -> int:
        self._size = self._place if size is None else size
        if self._error is None:
            try:
                os.ftruncate(self._file.fileno(), self._size)
            except OSError as error:
                self._error = error
        return self._size

    def flush(self) -> None:
        """All is with the system already."""


def write_archive(recording: Recording, out: BinaryIO) -> None:
    """Into an empty file, from its `USER_BLOCK`th byte on. Raises `OSError` where there is no room."""
    import h5py

    disk = _Disk(out)
    with h5py.File(disk, "w", userblock_size=USER_BLOCK) as file:
        header = recording.header
        file.attrs.update(
            format=header.format,
            scenario=header.scenario,
            seed=header.seed,
            device=header.device,
            device_description=header.device_description,
            versions=json.dumps(header.versions),
            mesh=header.mesh,
            mesh_sha256=header.mesh_sha256,
            file=header.file,
            file_sha256=header.file_sha256,
            options=json.dumps(header.options),
            options_sha256=json.dumps(header.options_sha256),
            parameters=json.dumps(header.parameters),
            detail=header.detail,
            created=header.created,
            tick=recording.tick,
            state_hash=recording.state_hash,
            failure=msgspec.json.encode(recording.failure).decode(),
        )
        inputs = file.create_group("inputs")
        for name, table in _tables(recording.inputs).items():
            inputs.create_dataset(name, data=table, compression="gzip" if len(table) else None)
        disk.check()
        checkpoints = file.create_group("checkpoints")
        for tick, load in recording.checkpoints.items():
            group = checkpoints.create_group(str(tick))
            for name, array in load().items():
                packed: dict[str, Any] = {"compression": "gzip", "compression_opts": 1} if array.size > 64 else {}
                group.create_dataset(name, data=array, **packed)
            disk.check()
        file.create_group("scores").attrs.update(recording.scores)
        trials = file.create_group("trials")
        for number, trial in enumerate(recording.trials):
            trials.attrs[f"{number:04d}"] = msgspec.json.encode(trial).decode()
    disk.check()


def _tables(inputs: list[tuple[int, Input]]) -> dict[str, np.ndarray]:
    tools: list[Any] = []
    parameters: list[Any] = []
    edits: list[Any] = []
    resets: list[Any] = []
    behind: list[Any] = []
    drills: list[Any] = []
    for order, (tick, given) in enumerate(inputs):
        if isinstance(given, ToolInput):
            flags = (given.grip, given.active, given.direct)
            tools.append((tick, order, given.tool, given.position, given.orientation, *flags))
        elif isinstance(given, SetParameter):
            parameters.append((tick, order, given.name.encode(), given.value))
        elif isinstance(given, SetTable):
            edits.append((tick, order, given.name.encode(), json.dumps(given.rows).encode()))
        elif isinstance(given, Behind):
            behind.append((tick, order))
        elif isinstance(given, StartDrill):
            drills.append((tick, order, b"start", given.level, -1 if given.seed is None else given.seed, 1.0))
        elif isinstance(given, EndDrill):
            drills.append((tick, order, given.how.encode(), 0, -1, given.certainty))
        else:
            resets.append((tick, order, given.seed))
    return {
        "tools": np.array(tools, _TOOLS),
        "parameters": np.array(parameters, _PARAMETERS),
        "tables": np.array(edits, _TABLES),
        "resets": np.array(resets, _RESETS),
        "behind": np.array(behind, _BEHIND),
        "drills": np.array(drills, _DRILLS),
    }


def extract(path: Path) -> Extract:
    """All of an archive but its states; raises whatever HDF5 raises."""
    import h5py

    with h5py.File(path, "r") as file:
        attributes: dict[str, Any] = dict(file.attrs)
        header = RecordingHeader(
            format=int(attributes["format"]),
            scenario=str(attributes["scenario"]),
            seed=int(attributes["seed"]),
            device=str(attributes["device"]),
            device_description=str(attributes["device_description"]),
            versions=json.loads(attributes["versions"]),
            mesh=str(attributes["mesh"]),
            mesh_sha256=str(attributes["mesh_sha256"]),
            file=str(attributes["file"]),
            file_sha256=str(attributes["file_sha256"]),
            options=json.loads(attributes.get("options", "{}")),
            options_sha256=json.loads(attributes.get("options_sha256", "{}")),
            parameters=json.loads(attributes["parameters"]),
            detail=float(attributes["detail"]),
            created=str(attributes["created"]),
        )
        tick = int(attributes["tick"])
        scores: dict[str, Any] = dict(cast(Any, file["scores"]).attrs)
        failure = msgspec.json.decode(attributes["failure"], type=Failure | None)
        last = Last(tick, str(attributes["state_hash"]), {name: float(one) for name, one in scores.items()}, failure)
        records = [to_record(tick, given) for tick, given in _inputs(file["inputs"])]
        ticks = sorted(int(name) for name in cast(Any, file["checkpoints"]))
        kept = sorted(dict(cast(Any, file["trials"]).attrs).items()) if "trials" in file else []
        trials = [msgspec.json.decode(text, type=TrialRecord) for _, text in kept]
        return Extract(header, Records(tick, records), ticks, last, trials)


def _inputs(group: Any) -> list[tuple[int, Input]]:
    found: list[tuple[int, int, Input]] = []
    for row in group["tools"][()].tolist():
        tick, order, tool, position, orientation, grip, *flags = row
        given = ToolInput(tool, _floats(position), _floats(orientation), grip, *map(bool, flags))
        found.append((order, tick, given))
    for tick, order, name, value in group["parameters"][()].tolist():
        found.append((order, tick, SetParameter(name.decode(), value)))
    for tick, order, name, rows in group["tables"][()].tolist():
        found.append((order, tick, SetTable(name.decode(), tuple(_floats(row) for row in json.loads(rows)))))
    for tick, order, seed in group["resets"][()].tolist():
        found.append((order, tick, Reset(seed)))
    for tick, order in group["behind"][()].tolist():
        found.append((order, tick, Behind()))
    drills = group["drills"][()].tolist() if "drills" in group else []  # older archives have none
    for tick, order, what, level, seed, certainty in drills:
        given = (
            StartDrill(level, None if seed < 0 else seed) if what == b"start" else EndDrill(what.decode(), certainty)
        )
        found.append((order, tick, given))
    return [(tick, given) for _, tick, given in sorted(found, key=lambda entry: entry[0])]


def _floats(values: Any) -> Any:
    return tuple(float(value) for value in values)


def load_state(path: Path, tick: int) -> State:
    """A checkpoint of an archive."""
    import h5py

    state: State = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):  # a name with a slash, `tissue/position`, became a group
            state[name] = np.asarray(item[()])

    with h5py.File(path, "r") as file:
        cast(Any, file[f"checkpoints/{tick}"]).visititems(add)
    return state


def main(path: str, tick: str | None = None) -> int:
    """Entry point of the process that reads: the answer on standard output, or why there is none on standard error."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        if tick is None:
            answer = msgspec.msgpack.encode(extract(Path(path)))
        else:
            answer = pack_state(int(tick), load_state(Path(path), int(tick)))
    except Exception as error:
        print(f"{type(error).__name__}: {error}"[:300], file=sys.stderr)
        return 1
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
