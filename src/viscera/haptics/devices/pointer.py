"""The page's pointer as a device: it says where the hand is, and its force can only be shown.

It is always there, so it is what a session falls back to.
"""

from __future__ import annotations

import time

from viscera.haptics.device import ZERO, Pose
from viscera.inputs import ToolInput, Vector3

SHOWN_FORCE = 10.0
"""No motor limits a pointer; a picture of more than this says nothing new [N]."""


class PointerDevice:
    """Give it what the page sends with `take`. Its axes are the theatre's."""

    def __init__(self) -> None:
        self.name = "pointer"
        self.peak_force = SHOWN_FORCE
        self.force: Vector3 = ZERO
        """What the page should show [N]."""
        self._pose = Pose(ZERO, present=False)

    def open(self) -> None:
        pass

    def take(self, given: ToolInput) -> None:
        """The hand in the page has moved."""
        self._pose = Pose(
            given.position, given.orientation, True, given.grip, 0, time.perf_counter(), present=given.active
        )

    def read(self) -> Pose:
        return self._pose

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        self.force = force

    def close(self) -> None:
        self.force = ZERO
        self._pose = Pose(self._pose.position, present=False)
