"""The finished recording: an HDF5 file that any tool can open, made from the log.

    /                     attributes: format, scenario, seed, device, versions, mesh, parameters, tick, state_hash, …
    /inputs/tools         tick, order, tool, position [m], orientation, grip, active, direct
    /inputs/parameters    tick, order, name, value
    /inputs/resets        tick, order, seed
    /checkpoints/TICK/…   the state arrays before the inputs of that tick
    /scores               one attribute per score

`order` puts the inputs of the three tables back in the order in which they were applied.
"""

from __future__ import annotations

import contextlib
import json
import os
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from viscera.errors import RecordingError
from viscera.inputs import Behind, Input, Reset, SetParameter, SetTable, ToolInput
from viscera.session.logfile import Failure, Recording, RecordingHeader, State, check_format, read_log
from viscera.session.recorder import in_use

HDF5_START = b"\x89HDF\r\n\x1a\n"

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
_BEHIND = np.dtype([("tick", "<i8"), ("order", "<i8")])


def read_recording(path: str | Path) -> Recording:
    """Reads a log or an archive; which one it is, its first bytes say."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            start = file.read(len(HDF5_START))
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}.", "Check the path and its permissions.") from error
    return _read_archive(path) if start == HDF5_START else read_log(path)


def convert(log: str | Path, *, keep_log: bool = False) -> Path:
    """Turns the log of a session that is over, however it ended, into an archive beside it; returns the archive's path.

    The archive appears only when it is whole, and only then the log goes (unless `keep_log`).
    """
    log = Path(log)
    recording = read_log(log)
    if in_use(log):
        raise RecordingError(f"{log} is still being written.", "Stop that session first.")
    path = log.with_suffix(".h5")
    partial_path = path.with_suffix(".h5.part")
    try:
        write_archive(recording, partial_path)
        os.replace(partial_path, path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            partial_path.unlink(missing_ok=True)
        raise RecordingError(f"cannot write {path}: {error}.", f"Nothing is lost: the log is still {log}.") from error
    if not keep_log:
        log.unlink(missing_ok=True)
    return path


def write_archive(recording: Recording, path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
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
        checkpoints = file.create_group("checkpoints")
        for tick, load in recording.checkpoints.items():
            group = checkpoints.create_group(str(tick))
            for name, array in load().items():
                packed: dict[str, Any] = {"compression": "gzip", "compression_opts": 1} if array.size > 64 else {}
                group.create_dataset(name, data=array, **packed)
        file.create_group("scores").attrs.update(recording.scores)


def _tables(inputs: list[tuple[int, Input]]) -> dict[str, np.ndarray]:
    tools: list[Any] = []
    parameters: list[Any] = []
    edits: list[Any] = []
    resets: list[Any] = []
    behind: list[Any] = []
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
        else:
            resets.append((tick, order, given.seed))
    return {
        "tools": np.array(tools, _TOOLS),
        "parameters": np.array(parameters, _PARAMETERS),
        "tables": np.array(edits, _TABLES),
        "resets": np.array(resets, _RESETS),
        "behind": np.array(behind, _BEHIND),
    }


def _read_archive(path: Path) -> Recording:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            attributes: dict[str, Any] = dict(file.attrs)
            check_format(path, int(attributes["format"]))
            header = RecordingHeader(
                scenario=attributes["scenario"],
                seed=int(attributes["seed"]),
                device=attributes["device"],
                device_description=attributes["device_description"],
                versions=json.loads(attributes["versions"]),
                mesh=attributes["mesh"],
                mesh_sha256=attributes["mesh_sha256"],
                file=attributes.get("file", ""),  # not in older files
                file_sha256=attributes.get("file_sha256", ""),
                parameters=json.loads(attributes["parameters"]),
                detail=float(attributes.get("detail", 1.0)),
                created=attributes["created"],
            )
            ticks = sorted(int(name) for name in cast(Any, file["checkpoints"]))
            scores: dict[str, Any] = dict(file["scores"].attrs)
            return Recording(
                path,
                header,
                inputs=_inputs(file["inputs"]),
                checkpoints={tick: partial(_load_state, path, tick) for tick in ticks},
                tick=int(attributes["tick"]),
                state_hash=attributes["state_hash"],
                scores={name: float(value) for name, value in scores.items()},
                failure=msgspec.json.decode(attributes["failure"], type=Failure | None),
            )
    except (OSError, KeyError, ValueError, TypeError, msgspec.MsgspecError) as error:
        raise RecordingError(f"{path} is not a whole recording: {error}.", "Was it copied completely?") from error


def _inputs(group: Any) -> list[tuple[int, Input]]:
    found: list[tuple[int, int, Input]] = []
    for row in group["tools"][()].tolist():
        tick, order, tool, position, orientation, grip, *flags = row  # older files have one flag
        given = ToolInput(tool, _floats(position), _floats(orientation), grip, *map(bool, flags))
        found.append((order, tick, given))
    for tick, order, name, value in group["parameters"][()].tolist():
        found.append((order, tick, SetParameter(name.decode(), value)))
    for tick, order, name, rows in group["tables"][()].tolist() if "tables" in group else []:  # not in older files
        found.append((order, tick, SetTable(name.decode(), tuple(_floats(row) for row in json.loads(rows)))))
    for tick, order, seed in group["resets"][()].tolist():
        found.append((order, tick, Reset(seed)))
    for tick, order in group["behind"][()].tolist() if "behind" in group else []:  # not in older files
        found.append((order, tick, Behind()))
    return [(tick, given) for _, tick, given in sorted(found, key=lambda entry: entry[0])]


def _floats(values: Any) -> Any:
    return tuple(float(value) for value in values)


def _load_state(path: Path, tick: int) -> State:
    import h5py

    state: State = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):  # a name with a slash, `tissue/position`, became a group
            state[name] = np.asarray(item[()])

    with h5py.File(path, "r") as file:
        cast(Any, file[f"checkpoints/{tick}"]).visititems(add)
    return state
