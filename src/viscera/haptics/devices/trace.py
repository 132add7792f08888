"""A recorded trace as a device, and a recorder that makes one of any device.

A trace is a table of times [s] and poses: `time, x, y, z` [m], and where they are known `qx, qy, qz, qw`, `grip`,
`buttons`, and the force that was rendered `fx, fy, fz` [N]. As CSV these are the columns; as NPZ and HDF5 they are the
arrays `time (n)`, `position (n, 3)`, `orientation (n, 4)`, `grip (n)`, `buttons (n)`, `force (n, 3)`. Traces that we
record are in the theatre's frame.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError, RecordingError
from viscera.haptics.device import NO_TURN, ZERO, HapticDevice, Pose
from viscera.inputs import Quaternion, Vector3

Array = NDArray[np.float64]

COLUMNS = ("time", "x", "y", "z", "qx", "qy", "qz", "qw", "grip", "buttons", "fx", "fy", "fz")
_WIDTHS = {"time": 1, "position": 3, "orientation": 4, "grip": 1, "buttons": 1, "force": 3}
_FIRST_COLUMN = {"time": 0, "position": 1, "orientation": 4, "grip": 8, "buttons": 9, "force": 10}
_ENDINGS = (".csv", ".npz", ".h5", ".hdf5")

HELD_FORCE = 10.0
"""A trace cannot be pushed, so any force will do [N]."""


@dataclass(frozen=True)
class Trace:
    """Poses over time; `table` has the columns of `COLUMNS`, sorted by time."""

    table: Array
    oriented: bool

    @property
    def time(self) -> Array:
        return self.table[:, 0]

    @property
    def position(self) -> Array:
        return self.table[:, 1:4]

    @property
    def orientation(self) -> Array:
        return self.table[:, 4:8]

    @property
    def force(self) -> Array:
        return self.table[:, 10:13]

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.time[-1] - self.time[0])


class TraceDevice:
    """Plays a trace in real time from when it is opened; the force it is given is kept and not felt."""

    def __init__(
        self, trace: Trace | Path | str, repeat: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.trace = trace if isinstance(trace, Trace) else load_trace(Path(trace))
        self.name = "trace" if isinstance(trace, Trace) else f"trace:{trace}"
        self.peak_force = HELD_FORCE
        self.force: Vector3 = ZERO
        self._repeat = repeat
        self._clock = clock
        self._start = clock()
        self._row = 0

    def open(self) -> None:
        self._start = self._clock()
        self._row = 0

    def read(self) -> Pose:
        """Between two rows in proportion; after the last one the hand is gone."""
        now = self._clock()
        table, times = self.trace.table, self.trace.time
        passed = now - self._start
        if self._repeat and self.trace.duration > 0.0:
            passed %= self.trace.duration
        moment = float(times[0]) + passed
        if moment < times[self._row]:
            self._row = 0
        while self._row + 1 < len(table) and times[self._row + 1] <= moment:
            self._row += 1
        row = table[self._row].tolist()
        if self._row + 1 == len(table):
            return self._pose(row, now, present=moment <= times[-1])
        after = table[self._row + 1].tolist()
        share = (moment - row[0]) / (after[0] - row[0])
        mixed = [a + share * (b - a) for a, b in zip(row, after, strict=True)]
        mixed[4:8] = _between(row[4:8], after[4:8], share)
        mixed[9] = row[9]
        return self._pose(mixed, now, present=True)

    def _pose(self, row: list[float], now: float, present: bool) -> Pose:
        _, x, y, z, qx, qy, qz, qw, grip, buttons = row[:10]
        return Pose((x, y, z), (qx, qy, qz, qw), self.trace.oriented, grip, int(buttons), now, present)

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        self.force = force

    def close(self) -> None:
        self.force = ZERO


class TraceRecorder:
    """A device that passes everything through and keeps it, for so many seconds from when it is opened."""

    def __init__(self, device: HapticDevice, seconds: float, rate: float = 1000.0) -> None:
        if not (math.isfinite(seconds) and seconds > 0.0):
            raise InputError(f"seconds = {seconds!r} is not allowed.", "Give a time above 0.")
        self.device = device
        self._table = np.zeros((math.ceil(seconds * rate * 1.05) + 16, len(COLUMNS)))
        self._count = 0
        self._oriented = False
        self._until = math.inf
        self._seconds = seconds

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def peak_force(self) -> float:
        return self.device.peak_force

    @property
    def full(self) -> bool:
        return self._count == len(self._table) or time.perf_counter() >= self._until

    def open(self) -> None:
        self.device.open()
        self._until = time.perf_counter() + self._seconds

    def read(self) -> Pose:
        pose = self.device.read()
        if pose.present and not self.full:
            self._oriented = self._oriented or pose.oriented
            # A pose that is asked for twice before it is measured anew is one row.
            if self._count == 0 or pose.time > self._table[self._count - 1, 0]:
                self._table[self._count, :10] = (pose.time, *pose.position, *pose.orientation, pose.grip, pose.buttons)
                self._count += 1
        return pose

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        if self._count and not self.full:
            self._table[self._count - 1, 10:13] = force
        self.device.write(force, torque)

    def close(self) -> None:
        self.device.close()

    def trace(self) -> Trace:
        """What was kept, its time from 0."""
        if self._count == 0:
            raise RecordingError(f"{self.name} has sent no pose.", "Is a hand at the device?")
        table = self._table[: self._count].copy()
        table[:, 0] -= table[0, 0]
        return Trace(table, self._oriented)


def _between(first: list[float], second: list[float], share: float) -> Quaternion:
    """The shorter way from one turn to another; rows are a millisecond apart, so a straight line will do."""
    sign = 1.0 if sum(a * b for a, b in zip(first, second, strict=True)) >= 0.0 else -1.0
    x, y, z, w = (a + share * (sign * b - a) for a, b in zip(first, second, strict=True))
    length = math.sqrt(x * x + y * y + z * z + w * w) or 1.0
    return (x / length, y / length, z / length, w / length)


# --- files ---------------------------------------------------------------------------------------------------------


def save_trace(trace: Trace, path: Path) -> None:
    """The ending says how: .csv, .npz, .h5 or .hdf5."""
    ending = _ending(path)
    arrays = {name: trace.table[:, _slice(name)] for name in _WIDTHS if trace.oriented or name != "orientation"}
    try:
        if ending == ".csv":
            names = [one for name in arrays for one in COLUMNS[_slice(name)]]
            np.savetxt(
                path, np.hstack(list(arrays.values())), "%.12g", delimiter=",", header=",".join(names), comments=""
            )
        elif ending == ".npz":
            named: dict[str, Any] = {name: _flat(array) for name, array in arrays.items()}
            np.savez_compressed(path, **named)
        else:
            import h5py

            with h5py.File(path, "w") as file:
                for name, array in arrays.items():
                    file.create_dataset(name, data=_flat(array), compression="gzip")
    except OSError as error:
        raise RecordingError(f"the trace {path} cannot be written: {error}.", "Choose another place.") from error


def load_trace(path: Path) -> Trace:
    ending = _ending(path)
    try:
        arrays = {".csv": _read_csv, ".npz": _read_npz}.get(ending, _read_hdf5)(path)
    except FileNotFoundError as error:
        raise InputError(f"the trace {path} is not there.", "Check its path.") from error
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(f"the trace {path} cannot be read: {error}.", "It is damaged, or not a trace.") from error
    return _checked(arrays, path)


def _checked(arrays: dict[str, Array], path: Path) -> Trace:
    for name in ("time", "position"):
        if name not in arrays:
            raise InputError(f"the trace {path} has no {name}.", "It needs time, x, y, z.")
    rows = len(arrays["time"])
    if rows == 0:
        raise InputError(f"the trace {path} is empty.", "Record it again.")
    table = np.zeros((rows, len(COLUMNS)))
    table[:, 4:8] = NO_TURN
    for name, array in arrays.items():
        if array.size != rows * _WIDTHS[name]:
            raise InputError(f"the trace {path}: {name} has shape {array.shape} for {rows} times.", "Mend the file.")
        table[:, _slice(name)] = array.reshape(rows, _WIDTHS[name])
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise InputError(f"the trace {path} is not finite in row {row + 1}.", "Mend or remove that row.")
    backwards = np.flatnonzero(np.diff(table[:, 0]) <= 0.0)
    if len(backwards):
        raise InputError(f"the trace {path}: time does not grow after row {int(backwards[0]) + 1}.", "Sort it by time.")
    lengths = np.linalg.norm(table[:, 4:8], axis=1)
    if (np.abs(lengths - 1.0) > 0.01).any():
        row = int(np.flatnonzero(np.abs(lengths - 1.0) > 0.01)[0])
        raise InputError(f"the trace {path}: no unit quaternion in row {row + 1}.", "Give qx, qy, qz, qw of length 1.")
    table[:, 4:8] /= lengths[:, None]
    return Trace(table, "orientation" in arrays)


def _read_csv(path: Path) -> dict[str, Array]:
    with path.open(encoding="utf-8") as file:
        names = [name.strip() for name in file.readline().lstrip("#").split(",")]
        if len(set(names)) != len(names):
            raise ValueError(f"a column is there twice in {names}")
        lines = file.read().splitlines()
    values = np.loadtxt(lines, delimiter=",", ndmin=2) if any(lines) else np.zeros((0, len(names)))
    if values.shape[1] != len(names):
        raise ValueError(f"{values.shape[1]} columns below {len(names)} names")
    found: dict[str, Array] = {}
    for name in _WIDTHS:
        wanted = COLUMNS[_slice(name)]
        if all(one in names for one in wanted):
            found[name] = values[:, [names.index(one) for one in wanted]]
    return found


def _read_npz(path: Path) -> dict[str, Array]:
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name], dtype=np.float64) for name in _WIDTHS if name in file}
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error


def _read_hdf5(path: Path) -> dict[str, Array]:
    import h5py

    if not path.exists():
        raise FileNotFoundError(path)
    with h5py.File(path, "r") as file:
        data: Any = file
        return {name: np.asarray(data[name], dtype=np.float64) for name in _WIDTHS if name in data}


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(f"{path} is not a trace.", f"Its name ends in {', '.join(_ENDINGS)}.")
    return ending


def _slice(name: str) -> slice:
    first = _FIRST_COLUMN[name]
    return slice(first, first + _WIDTHS[name])


def _flat(array: Array) -> Array:
    return array[:, 0] if array.shape[1] == 1 else array
