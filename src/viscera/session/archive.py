"""The finished recording: an HDF5 file that any tool can open, made from the log.

    /                     attributes: format, scenario, seed, device, versions, mesh, parameters, tick, state_hash, …
    /inputs/tools         tick, order, tool, position [m], orientation, grip, active, direct
    /inputs/parameters    tick, order, name, value
    /inputs/resets        tick, order, seed
    /inputs/tables        tick, order, name, rows
    /inputs/behind        tick, order
    /inputs/drills        tick, order, what (start, given_up, found), level, seed (−1: none), certainty
    /checkpoints/TICK/…   the state arrays before the inputs of that tick
    /scores               one attribute per number of the last trial's score
    /trials               one attribute per trial that ended: JSON, with its score

`order` puts the inputs of the tables back in the order in which they were applied. The first 512 bytes, which HDF5
skips, hold a digest of the rest: a damaged file is refused before HDF5 sees it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from viscera.errors import RecordingError
from viscera.session.hdf5 import USER_BLOCK, Extract, write_archive
from viscera.session.logfile import (
    CHECKPOINT_TICK,
    Recording,
    State,
    check_recording,
    from_record,
    open_recording,
    read_log,
    unpack_state,
)
from viscera.session.recorder import in_use

ARCHIVE_START = b"VISCERA ARCHIVE\nsha256 "
HDF5_START = b"\x89HDF\r\n\x1a\n"

READ_S = 120.0
"""Reading an archive takes at most this long [s]; an hour of palpation takes a second."""


def read_recording(path: str | Path) -> Recording:
    """Reads a log or an archive; which one it is, its first bytes say."""
    path = Path(path)
    with open_recording(path) as file:
        start = file.read(len(ARCHIVE_START))
    if start.startswith(HDF5_START):
        raise RecordingError(f"{path} has no digest.", "An older viscera wrote it; use that one.")
    return _read_archive(path) if start == ARCHIVE_START else read_log(path)


def convert(log: str | Path, *, keep_log: bool = False) -> Path:
    """Turns the log of a session that is over, however it ended, into an archive beside it; returns the archive's path.

    The archive appears only when it is whole, and only then the log goes (unless `keep_log`, or it is damaged: what is
    left of it is more than the archive has).
    """
    log = Path(log)
    recording = read_log(log)
    if in_use(log):
        raise RecordingError(f"{log} is still being written.", "Stop that session first.")
    path = log.with_suffix(".h5")
    partial_path = path.with_suffix(".h5.part")
    try:
        with open(partial_path, "w+b") as file:
            write_archive(recording, file)
            os.pwrite(file.fileno(), _seal(file), 0)
            os.fsync(file.fileno())  # some disks say only now that they are full
        os.replace(partial_path, path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            partial_path.unlink(missing_ok=True)
        raise RecordingError(f"cannot write {path}: {error}.", f"Nothing is lost: the log is still {log}.") from error
    if not keep_log and not recording.damage:
        log.unlink(missing_ok=True)
    return path


def _seal(file: BinaryIO) -> bytes:
    """The user block of an archive: a digest of all that follows it."""
    file.seek(USER_BLOCK)
    digest = hashlib.sha256()
    while piece := file.read(2**20):
        digest.update(piece)
    return (ARCHIVE_START + digest.hexdigest().encode() + b"\n").ljust(USER_BLOCK, b"\0")


def _read_archive(path: Path) -> Recording:
    with open_recording(path) as file:
        if file.read(USER_BLOCK) != _seal(file):
            raise RecordingError(
                f"{path} is damaged: its digest is not that of what it holds.", "Copy it again, or use another copy."
            )
    try:
        found = msgspec.msgpack.decode(_ask(path), type=Extract)
        inputs = [from_record(record) for record in found.records.records]
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _not_ours(path, error) from error
    recording = Recording(
        path,
        found.header,
        inputs=inputs,
        checkpoints={tick: partial(_load_state, path, tick) for tick in found.checkpoints},
        tick=found.last.tick,
        state_hash=found.last.state_hash,
        scores=found.last.scores,
        failure=found.last.failure,
        trials=found.trials,
    )
    check_recording(recording)
    return recording


def _load_state(path: Path, tick: int) -> State:
    return unpack_state(path, _ask(path, str(tick))[CHECKPOINT_TICK.size :])


def _ask(path: Path, *arguments: str) -> bytes:
    """What the process that reads HDF5 answers."""
    command = [sys.executable, "-m", "viscera.session.hdf5", str(path), *arguments]
    # The sources that run here, whatever the folder is in which somebody has started us.
    here = str(Path(__file__).parents[2])
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=READ_S, check=False, env={**os.environ, "PYTHONPATH": paths}
        )
    except subprocess.TimeoutExpired:
        raise _not_ours(path, f"it cannot be read within {READ_S:.0f} s") from None
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip().splitlines()
        raise _not_ours(path, why[-1] if why else f"reading it ended with {done.returncode}")
    return done.stdout


def _not_ours(path: Path, why: object) -> RecordingError:
    return RecordingError(f"{path} is not a whole recording: {why}.", "Was it written by viscera?")
