"""Force Dimension omega, delta, sigma, lambda and the Novint Falcon, through their SDK and forcedimension-core.

The SDK answers at once, so the loop calls it directly. Metres and newtons; x to the user, y right, z up. The device's
own controller lets go when it is not spoken to for a while.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import time
from typing import Any

from viscera.errors import DeviceError
from viscera.haptics.device import NO_TURN, ZERO, Pose
from viscera.haptics.mapping import quaternion_of
from viscera.inputs import Vector3

PEAK_FORCES = {"omega": 12.0, "delta": 20.0, "sigma": 20.0, "lambda": 20.0, "falcon": 9.0}
"""By family, from the makers' data sheets [N]."""
UNKNOWN_PEAK_FORCE = 9.0
"""The weakest of them [N]."""

OPEN_GRIPPER = 0.025
"""Gap between thumb and finger that counts as open [m]; an omega.7 opens to about 27 mm."""

_HINT = (
    "Install the Force Dimension SDK (3.16 or newer; the variable FDSDK names its folder) and "
    "pip install 'viscera[haptics]'; switch the device on, then: viscera haptics list."
)


def load_library() -> Any:
    """The module `dhd` of forcedimension-core, which loads libdrd as it is imported."""
    said = io.StringIO()  # it writes the reason to standard error before it gives up
    try:
        with contextlib.redirect_stderr(said):
            importlib.import_module("forcedimension_core.containers")
            return importlib.import_module("forcedimension_core.dhd")
    except ModuleNotFoundError as error:
        raise DeviceError(
            f"the package forcedimension-core is not installed ({error.name}).", "pip install 'viscera[haptics]'."
        ) from error
    except (ImportError, OSError, AttributeError) as error:  # AttributeError: an SDK without a function it wants
        reason = " ".join(said.getvalue().split()) or str(error)
        raise DeviceError(f"the Force Dimension SDK cannot be loaded: {reason}", _HINT) from error


class ForceDimensionDevice:
    """One device; `which` counts those that are plugged in."""

    def __init__(self, which: str = "0") -> None:
        if not which.isdecimal():
            raise DeviceError(f"forcedimension:{which} is not there.", "Devices are counted: forcedimension:0.")
        self.name = "forcedimension" if which == "0" else f"forcedimension:{which}"
        self.model = ""
        self.peak_force = UNKNOWN_PEAK_FORCE
        self._index = int(which)
        self._dhd: Any = None
        self._id = -1
        self._wrist = self._active_wrist = self._gripper = False
        self._place = [0.0, 0.0, 0.0]
        self._frame = [[0.0] * 3 for _ in range(3)]
        self._gap = ctypes.c_double()

    def open(self) -> None:
        self.close()
        dhd = load_library()
        count = dhd.getAvailableCount()
        if count <= self._index:
            there = "none" if count <= 0 else f"only {count}"
            raise DeviceError(f"{self.name} is not there: the Force Dimension SDK sees {there}.", _HINT)
        number = dhd.openID(self._index)
        if number < 0:
            raise DeviceError(f"{self.name} cannot be opened: {dhd.errorGetLastStr()}.", _HINT)
        self._dhd, self._id = dhd, number
        try:
            self._prepare(dhd, number)
            self.read()
        except DeviceError:
            self.close()
            raise

    def _prepare(self, dhd: Any, number: int) -> None:
        containers = importlib.import_module("forcedimension_core.containers")
        self.model = dhd.getSystemName(number) or "unknown"
        self.peak_force = peak_force_of(self.model)
        self._wrist = bool(dhd.hasWrist(number))
        self._active_wrist = bool(dhd.hasActiveWrist(number))
        self._gripper = bool(dhd.hasGripper(number))
        status = containers.Status()
        self._demand(dhd, dhd.getStatus(status, number), "tell its state")
        if not status.reset:
            raise DeviceError(
                f"{self.name} ({self.model}) is not calibrated.",
                "Put its handle into the calibration pit until the light stops blinking, then try again.",
            )
        self._demand(dhd, dhd.setMaxForce(self.peak_force, number), "limit its force")
        dhd.setGravityCompensation(True, number)
        self._demand(dhd, dhd.enableForce(True, number), "push")
        self._demand(dhd, dhd.setForce(ZERO, number), "push")

    def read(self) -> Pose:
        dhd, number = self._dhd, self._id
        if dhd is None:
            raise DeviceError(f"{self.name} is not open.", "Open it first.")
        place = self._place
        if self._wrist:
            self._demand(dhd, dhd.getPositionAndOrientationFrame(place, self._frame, number), "say where it is")
            orientation = quaternion_of(self._frame)
        else:
            self._demand(dhd, dhd.getPosition(place, number), "say where it is")
            orientation = NO_TURN
        buttons = int(dhd.getButtonMask(number))
        grip = self._grip(dhd, number) if self._gripper else float(buttons & 1)
        position = (place[0], place[1], place[2])
        return Pose(position, orientation, self._wrist, grip, buttons, time.perf_counter())

    def _grip(self, dhd: Any, number: int) -> float:
        self._demand(dhd, dhd.getGripperGap(self._gap, number), "say how far it is closed")
        return min(1.0, max(0.0, 1.0 - self._gap.value / OPEN_GRIPPER))

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        dhd = self._dhd
        if dhd is None:
            return
        # A device that is gone says so at the next `read`.
        if self._active_wrist:
            dhd.setForceAndTorque(force, torque, self._id)
        else:
            dhd.setForce(force, self._id)

    def close(self) -> None:
        dhd, self._dhd = self._dhd, None
        if dhd is not None:
            dhd.setForce(ZERO, self._id)
            dhd.stop(self._id)
            dhd.close(self._id)

    def _demand(self, dhd: Any, result: int, what: str) -> None:
        """Results from 0 are good: 1 is a pose too new to ask again, 2 a motor at its limit."""
        if result < 0:
            raise DeviceError(f"{self.name} cannot {what}: {dhd.errorGetLastStr()}.", "Check cable and power.")


def peak_force_of(model: str) -> float:
    """[N]"""
    lower = model.lower()
    return next((force for family, force in PEAK_FORCES.items() if family in lower), UNKNOWN_PEAK_FORCE)
