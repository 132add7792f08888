"""Eye trackers of two makers, through their packages: Tobii (`tobii_research`), Pupil Labs (`pupil_labs.realtime_api`).

Neither is installed with us: their licences are the user's to accept. Both give places on a surface, 0 to 1; Tobii from
the top left of its screen, Pupil Labs in pixels of the scene camera, whose size comes with the frame.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

from viscera.errors import InputError
from viscera.gaze.attention import Newest, Sample


class Tobii:
    """The first Tobii screen tracker that is found."""

    def __init__(self, package: Any = None) -> None:
        research = package or _package("tobii_research", "pip install tobii-research")
        trackers = research.find_all_eyetrackers()
        if not trackers:
            raise InputError("no Tobii tracker was found.", "Plug it in, and calibrate it with Tobii's own program.")
        self._tracker, self._kind = trackers[0], research.EYETRACKER_GAZE_DATA
        self._newest = Newest()
        self._tracker.subscribe_to(self._kind, self._take, as_dictionary=True)

    def _take(self, data: dict[str, Any]) -> None:
        """Called by Tobii's thread. The mean of the eyes that are seen."""
        seen = [
            data[f"{eye}_gaze_point_on_display_area"]
            for eye in ("left", "right")
            if data[f"{eye}_gaze_point_validity"] and all(map(math.isfinite, data[f"{eye}_gaze_point_on_display_area"]))
        ]
        if seen:
            self._newest.put(Sample(sum(p[0] for p in seen) / len(seen), sum(p[1] for p in seen) / len(seen)))
            return
        last = self._newest.get()
        if last is not None:
            self._newest.put(Sample(last.x, last.y, valid=False))

    def sample(self, time: float) -> Sample | None:
        return self._newest.get()

    def close(self) -> None:
        self._tracker.unsubscribe_from(self._kind, self._take)


class PupilLabs:
    """The first Pupil Labs device in the network."""

    def __init__(self, package: Any = None, *, size: tuple[int, int] = (1600, 1200), wait: float = 5.0) -> None:
        """`size` of the scene camera's picture in pixels (Neon: 1600 × 1200, Invisible: 1088 × 1080)."""
        simple = package or _package("pupil_labs.realtime_api.simple", "pip install pupil-labs-realtime-api")
        self._device = simple.discover_one_device(max_search_duration_seconds=wait)
        if self._device is None:
            raise InputError("no Pupil Labs device was found.", "Start the Companion app in the same network.")
        self._size = size
        self._newest = Newest()

    def sample(self, time: float) -> Sample | None:
        newest = self._device.receive_gaze_datum(timeout_seconds=0.0)
        if newest is not None:
            width, height = self._size
            self._newest.put(Sample(newest.x / width, newest.y / height, bool(newest.worn)))
        return self._newest.get()

    def close(self) -> None:
        self._device.close()


def _package(name: str, install: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"the package {name} is not installed.", f"Install it: {install}.") from error
