"""What every haptic device can do, whoever built it: say where the hand is, push it, be opened and closed.

A driver speaks SI in the device's own axes (millimetres and the like stay inside it). `mapping.Mapping` turns that into
the theatre's frame, right-handed with z up; `devices.attach.AttachedDevice` is a driver with its mapping, so the loop
sees the theatre's frame only. `read` and `write` are called a thousand times a second and never wait for a transport.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from viscera.inputs import Quaternion, Vector3

ZERO: Vector3 = (0.0, 0.0, 0.0)
NO_TURN: Quaternion = (0.0, 0.0, 0.0, 1.0)

FORCE_HOLD = 0.02
"""A driver with a thread of its own drops a force that was not written anew for this long [s]. A loop that hangs must
not leave a hand pushed; 20 ms bridge the pauses of an ordinary operating system."""

SILENCE = 0.1
"""A device that has said nothing for this long is gone [s]."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Where a hand holds its device."""

    position: Vector3
    """[m]"""
    orientation: Quaternion = NO_TURN
    """x, y, z, w; unit length."""
    oriented: bool = False
    """Whether the orientation was measured. A device that cannot say how it is turned leaves that to its mapping."""
    grip: float = 0.0
    """How far the handle is pressed, 0 to 1."""
    buttons: int = 0
    """Bit n is button n."""
    time: float = 0.0
    """When it was measured [s of `time.perf_counter`]."""
    present: bool = True
    """False while the device is away: the pose is the last one known, and no force may follow from it."""


@runtime_checkable
class HapticDevice(Protocol):
    """A device, or something that stands in for one."""

    @property
    def name(self) -> str:
        """As the user knows it: "touch", "haply"."""
        ...

    @property
    def peak_force(self) -> float:
        """What it can push for a moment [N]. For a pointer: what may be shown."""
        ...

    def open(self) -> None:
        """Raises `DeviceError` with a sentence that says what is missing. May take seconds."""
        ...

    def read(self) -> Pose:
        """The newest pose. Raises `DeviceError` when the device is gone; `open` may bring it back."""
        ...

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        """Pushes the hand with this force [N] and torque [N·m] until the next call. A device that cannot turn the
        hand drops the torque; one that is gone drops both."""
        ...

    def close(self) -> None:
        """Force off, device free. May be called at any time, and twice."""
        ...
