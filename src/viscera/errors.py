"""Errors that a person can act on.

Every error carries what went wrong (with the field and the value), and a hint: what to do about it. The doors
(command line, server) print both and never a traceback; everything else may raise them freely.
"""

from __future__ import annotations

import numbers
import sysconfig
import traceback
from pathlib import Path
from typing import Any

_OURS = str(Path(__file__).resolve().parent)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class VisceraError(Exception):
    """Something a user can fix. `hint` says how; `exit_code` is what the command line returns for it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InputError(VisceraError):
    """A value at the border is not allowed: unknown name, out of range, not finite, wrong type."""

    exit_code = 2


class MeshError(InputError):
    """A mesh cannot be used: missing, unreadable, open, degenerate."""


class DeviceError(VisceraError):
    """The requested device is not there or cannot run viscera."""

    exit_code = 3


class StateError(VisceraError):
    """The simulated state is no longer finite; the world has stopped at `tick` in `stage`."""

    exit_code = 4

    def __init__(self, message: str, hint: str = "", *, stage: str, tick: int) -> None:
        super().__init__(message, hint)
        self.stage = stage
        self.tick = tick


class RecordingError(VisceraError):
    """A recording cannot be written or read: no permission, full disk, damaged file, other version."""

    exit_code = 5


class SessionError(VisceraError):
    """A live session could not start, or died."""

    exit_code = 6


def need_number(field: str, value: object) -> float:
    """A number from outside; refused by name where a list, a word or nothing stands in its place."""
    if not isinstance(value, numbers.Real):
        raise InputError(f"{field} = {value!r} is not a number.", "Give one number.")
    return float(value)


def need_numbers(field: str, values: Any, count: int) -> None:
    """So many of them, in a row."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != count:
        raise InputError(f"{field} = {values!r} is not possible.", f"It needs {count} numbers.")
    for number, value in enumerate(values):
        need_number(f"{field}[{number}]", value)


def users_own(error: Exception) -> InputError | None:
    """An error that a user's own code made while we ran it (a scenario's script, a system of theirs), told with file
    and line; None where none of their code was at work, so that it is a mistake of ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_library(frame.filename)]
    ours = [_is_ours(frame.filename) for frame in frames]
    # What called us first, a command or a test, is nobody's scenario.
    theirs = [frame for number, frame in enumerate(frames) if not ours[number] and any(ours[:number])]
    if not theirs:
        return None
    place = f"{theirs[-1].filename}, line {theirs[-1].lineno}"
    where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    hint = "Mend that line."
    if ours[-1]:
        hint += " VISCERA_DEBUG=1 shows what it called; if that line is right, please report it."
    what = str(error).rstrip(".")
    return InputError(f"{place}: {type(error).__name__}: {what}{where}.", hint)


def _is_ours(file: str) -> bool:
    return file.startswith(_OURS)


def _is_library(file: str) -> bool:
    return not _is_ours(file) and (file.startswith("<") or file.startswith(_LIBRARIES))
