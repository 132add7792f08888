"""A device as the loop sees it: in the theatre's frame, driving one tool, and looked for again when it is lost."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

from viscera.errors import DeviceError
from viscera.haptics.device import ZERO, HapticDevice, Pose
from viscera.haptics.mapping import Mapping
from viscera.inputs import Vector3

RETRY = 1.0
"""A lost device is looked for this often [s]."""

PATIENCE = 5.0
"""`close` waits this long for an attempt to open that is under way [s]."""


LARGEST_TORQUE = 0.5
"""No device we know turns a hand harder: sigma.7 and lambda.7 have 0.4 N·m [N·m]."""


def bounded(vector: Vector3, largest: float) -> Vector3:
    """No longer than that, in the same direction; nothing if it is not finite. The loop's own limits come first; this
    is the last line before a motor."""
    length = math.hypot(*vector)
    if length <= largest:
        return vector
    if not math.isfinite(length):
        return ZERO
    x, y, z = vector
    return (x * largest / length, y * largest / length, z * largest / length)


class AttachedDevice:
    """A driver and its mapping; itself a device, in the theatre's frame.

    `read` raises `DeviceError` once when the device is lost. From then on it gives the last pose, marked as not
    present, until a thread beside the loop has opened the device again. `write` does nothing meanwhile.
    """

    def __init__(self, device: HapticDevice, mapping: Mapping, retry: float = RETRY) -> None:
        self.device = device
        self.mapping = mapping
        self.reason = ""
        """Why it is away, or was last."""
        self._retry = retry
        self._placed = mapping.place is not None
        self._last = mapping.pose_to_theatre(Pose(mapping.center, present=False))
        self._away = False
        self._stop = threading.Event()
        self._search: threading.Thread | None = None

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def tool(self) -> int:
        return self.mapping.tool

    @property
    def peak_force(self) -> float:
        """In the theatre's newtons: the device's own, over the force scale [N]."""
        return self.device.peak_force / self.mapping.force_gain

    @property
    def present(self) -> bool:
        return not self._away

    def place(self, home: Vector3) -> None:
        """Puts the middle of the device at the tool's home [m], unless the user's mapping says where it is."""
        if not self._placed:
            self.mapping = replace(self.mapping, place=home)

    def open(self) -> None:
        self._stop.clear()
        self.device.open()
        self._away = False

    def read(self) -> Pose:
        if self._away:
            return self._last
        try:
            pose = self.mapping.pose_to_theatre(self.device.read())
        except DeviceError as error:
            self._lose(error)
            raise
        self._last = pose
        return pose

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        if not self._away:
            push = bounded(self.mapping.force_to_device(force), self.device.peak_force)
            self.device.write(push, bounded(self.mapping.torque_to_device(torque), LARGEST_TORQUE))

    def close(self) -> None:
        self._stop.set()
        search = self._search
        if search is not None and search is not threading.current_thread():
            search.join(PATIENCE)
        self.device.close()

    def _lose(self, error: DeviceError) -> None:
        self._away = True
        self.reason = error.message
        self._last = replace(self._last, present=False)
        self._search = threading.Thread(target=self._find_again, name=f"find {self.name}", daemon=True)
        self._search.start()

    def _find_again(self) -> None:
        self.device.close()
        while not self._stop.wait(self._retry):
            try:
                self.device.open()
            except DeviceError as error:
                self.reason = error.message
                continue
            if self._stop.is_set():
                self.device.close()  # nobody waits for it any more
            else:
                self._away = False
            return
