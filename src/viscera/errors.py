"""Errors that a person can act on.

Every error carries what went wrong (with the field and the value), and a hint: what to do about it. The doors
(command line, server) print both and never a traceback; everything else may raise them freely.
"""

from __future__ import annotations


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
