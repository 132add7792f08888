"""Gaze from the Lab Streaming Layer: a stream of type `Gaze` whose first two channels are x and y, 0 to 1 from the top
left of the screen; a third, where there is one, is above 0 while the eye is seen. Needs the package `pylsl` (the extra
`gaze`)."""

from __future__ import annotations

import math
from typing import Any

from viscera.errors import InputError
from viscera.gaze.attention import Newest, Sample

STREAM = "Gaze"
WAIT = 3.0
"""How long to look for a stream [s]."""


class StreamingLayer:
    """The newest sample of the first stream of this type (and name, where one is given)."""

    def __init__(self, name: str = "", *, wait: float = WAIT) -> None:
        try:
            import pylsl
        except ImportError as error:
            raise InputError("pylsl is not installed.", "Install it: pip install viscera[gaze].") from error
        found = (
            pylsl.resolve_byprop("name", name, minimum=1, timeout=wait)
            if name
            else pylsl.resolve_byprop("type", STREAM, minimum=1, timeout=wait)
        )
        if not found:
            wanted = f"named {name!r}" if name else f"of type {STREAM!r}"
            raise InputError(f"no stream {wanted} was found in {wait:g} s.", "Start the tracker's LSL bridge first.")
        if found[0].channel_count() < 2:
            raise InputError("that stream has one channel only.", "Gaze needs x and y.")
        self._inlet: Any = pylsl.StreamInlet(found[0], max_buflen=1)
        self._newest = Newest()

    def sample(self, time: float) -> Sample | None:
        """The newest there is, whatever the time: the stream is live."""
        values, _ = self._inlet.pull_chunk(timeout=0.0)
        if values:
            newest = values[-1]
            seen = len(newest) < 3 or newest[2] > 0.0
            finite = math.isfinite(newest[0]) and math.isfinite(newest[1])
            self._newest.put(Sample(float(newest[0]), float(newest[1]), bool(seen and finite)))
        return self._newest.get()

    def close(self) -> None:
        self._inlet.close_stream()
