"""Which recordings there are, and what is in each, without reading all of them: a small JSON beside each archive."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from viscera.errors import RecordingError, VisceraError
from viscera.session.archive import read_recording
from viscera.session.logfile import Recording, TrialRecord
from viscera.timing import TICK

MOST = 100
"""Recordings that are listed, the newest first."""
MOST_READ = 10
"""Of those without a summary, so many are read to make one; the rest waits for the next time."""


class Summary(msgspec.Struct):
    name: str
    """Of the file."""
    scenario: str
    seed: int
    created: str
    """ISO 8601, with the time zone."""
    seconds: float
    complete: bool
    """Whether its session ended by itself."""
    trials: list[TrialRecord]


def summarise(recording: Recording) -> Summary:
    header = recording.header
    return Summary(
        name=recording.path.name,
        scenario=header.scenario,
        seed=header.seed,
        created=header.created,
        seconds=recording.tick * TICK,
        complete=recording.complete,
        trials=recording.trials,
    )


def write_summary(archive: Path) -> None:
    """Beside an archive that was just made; a list can do without, so what goes wrong is let go."""
    with contextlib.suppress(OSError, VisceraError):
        found = summarise(read_recording(archive))
        archive.with_suffix(".json").write_bytes(msgspec.json.encode(found))


def list_recordings(folder: Path) -> list[Summary]:
    """The newest first. Logs of sessions that run or died are in it too."""
    if not folder.is_dir():
        return []
    files = [path for path in folder.iterdir() if path.suffix in (".h5", ".log")]
    files.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    found: list[Summary] = []
    read = 0
    for path in files[:MOST]:
        summary = _read_summary(path)
        if summary is None and read < MOST_READ:
            read += 1
            with contextlib.suppress(VisceraError, OSError):
                summary = summarise(read_recording(path))
        if summary is not None:
            found.append(summary)
    return found


def all_trials(folder: Path) -> Iterator[tuple[Path, str, TrialRecord]]:
    """Every trial that recordings of this folder have, with its file and the scenario; of those that cannot be read,
    none. Archives say it in the small file beside them, so only logs that were left over are read."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in paths:
        if path.suffix not in (".h5", ".log"):
            continue
        summary = _read_summary(path)
        if summary is None:
            try:
                summary = summarise(read_recording(path))
            except (VisceraError, OSError, ImportError):
                continue
            if path.suffix == ".h5":
                with contextlib.suppress(OSError):
                    path.with_suffix(".json").write_bytes(msgspec.json.encode(summary))
        for trial in summary.trials:
            yield path, summary.scenario, trial


def _read_summary(path: Path) -> Summary | None:
    if path.suffix != ".h5":
        return None
    try:
        return msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=Summary)
    except (OSError, msgspec.MsgspecError):
        return None


def find(folder: Path, name: str) -> Path:
    """The recording of this name in the folder; nothing outside it. A log that has become an archive is found by either
    name."""
    path = folder / name
    if Path(name).name == name and path.suffix in (".h5", ".log"):
        for there in (path, path.with_suffix(".h5"), path.with_suffix(".log")):
            if there.is_file():
                return there
    raise RecordingError(f"recording {name[:200]!r} is not there.", "Choose one of the list.")
