"""How the session is, in words for the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from viscera.server import messages as m
from viscera.timing import TICK

_encode = msgspec.msgpack.Encoder().encode

State = Literal["starting", "running", "paused", "stalled", "crashed", "ended"]


@dataclass
class Status:
    """What `SessionState` tells."""

    state: State = "starting"
    message: str = ""
    progress: float = 0.0
    speed: float = 1.0
    notice: str = ""
    notes: tuple[str, ...] = ()
    gaze: m.GazeSource | None = None

    def change(self, state: State | None, message: str | None) -> None:
        """None leaves it as it is; a new state without a message has none."""
        if state is not None:
            if state != self.state and message is None:
                message = ""
            self.state = state
        if message is not None:
            self.message = message.strip()

    def encoded(self, **told: Any) -> bytes:
        """With what else the page is told: viewers, and whose hand it is."""
        return _encode(
            m.SessionState(
                state=self.state,
                message=self.message,
                progress=self.progress,
                speed=self.speed,
                notice=self.notice,
                notes=list(self.notes),
                gaze=self.gaze,
                **told,
            )
        )


def at_time(tick: int) -> str:
    """As part of a sentence; nothing where no tick is known."""
    return f" at {tick * TICK:.1f} s" if tick else ""


def advice(log: str, kept: int | None) -> str:
    """What Restart does after a session has stopped. `log` is its recording, if any; `kept` the tick at which that
    stopped, where it did before the session."""
    if log and kept is not None:
        until = f"{kept / 1000:.1f} s"
        return f"Press Restart to go on from its recording, which ends at {until}; what came after is lost."
    if log:
        return "Press Restart to go on from its recording; at most the last second is lost."
    return "Press Restart to begin again."
