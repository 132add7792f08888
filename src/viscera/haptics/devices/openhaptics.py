"""3D Systems Touch, Touch X and the PHANTOM devices, through OpenHaptics (`libHD`) and the package pyOpenHaptics.

libHD has a servo thread of its own that calls back a thousand times a second; only in such a call may a device be read
and pushed. Our call leaves the newest pose for `read` and takes the newest force that `write` left. Millimetres and
newtons; x right, y up, z to the user. The pose is a 4 × 4 matrix, columns first (OpenGL).

Of pyOpenHaptics 1.0 we use the calls, and not its `HapticDevice` and `hd_callback`: these print, serve only the device
that happens to be current, and stop for good at the first warning, such as warm motors.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from viscera.errors import DeviceError
from viscera.haptics.device import FORCE_HOLD, SILENCE, ZERO, Pose
from viscera.haptics.mapping import quaternion_of
from viscera.inputs import Vector3
from viscera.units import MILLI

DEFAULT_DEVICE = "Default Device"
"""As the vendor's setup tool calls the only device."""

PEAK_FORCE = 3.3
"""Of a Touch [N]; a device that says otherwise is believed."""

FIRST_POSE = 1.0
"""So long the servo may take to call for the first time [s]."""

_HINT = (
    "Install OpenHaptics and the Touch driver of 3D Systems and pip install 'viscera[haptics]'; "
    "run the vendor's setup tool once, then: viscera haptics list."
)

# Errors of libHD by hundreds; those of the force (warm motors, too fast) pass, those of the device do not.
_DEVICE_ERRORS = range(0x0300, 0x0400)


@dataclass(frozen=True)
class _Library:
    """The parts of pyOpenHaptics."""

    hd: Any
    define: Any
    callback: Any

    def take_error(self) -> int:
        """The oldest error that nobody has looked at; 0 when there is none."""
        return int(self.hd._get_error().errorCode)  # `get_error` of the package fails on errors it does not know

    def forget_errors(self) -> None:
        for _ in range(100):
            if self.take_error() == self.define.HD_SUCCESS:
                return


def load_library() -> _Library:
    """pyOpenHaptics, which loads libHD as it is imported."""
    try:
        return _Library(
            *(importlib.import_module(f"pyOpenHaptics.{name}") for name in ("hd", "hd_define", "hd_callback"))
        )
    except ImportError as error:
        raise DeviceError("the package pyOpenHaptics is not installed.", "pip install 'viscera[haptics]'.") from error
    except (OSError, NameError) as error:  # NameError: it knows no library for this system
        raise DeviceError(f"OpenHaptics is not installed: libHD cannot be loaded ({error}).", _HINT) from error


class _Servo:
    """libHD has one servo thread per process; it runs while any device is open."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._users = 0

    def start(self, library: _Library) -> None:
        with self.lock:
            self._users += 1
            if self._users == 1:
                library.hd.start_scheduler()

    def stop(self, library: _Library) -> None:
        with self.lock:
            self._users -= 1
            if self._users == 0:
                library.hd.stop_scheduler()


_servo = _Servo()


class OpenHapticsDevice:
    """One device; `which` is its name in the vendor's setup tool."""

    def __init__(self, which: str = DEFAULT_DEVICE) -> None:
        self.name = "touch" if which == DEFAULT_DEVICE else f"touch:{which}"
        self.model = ""
        self.peak_force = PEAK_FORCE
        self.warnings = 0
        """How often libHD complained of something that passes, such as warm motors."""
        self._which = which
        self._library: _Library | None = None
        self._handle = 0
        self._pose: Pose | None = None
        self._error: DeviceError | None = None
        self._force = ZERO
        self._written = 0.0
        self._stopping = False
        self._stopped = threading.Event()
        self._callback: Any = None
        self._lock = threading.Lock()

    def open(self) -> None:
        self.close()
        library = load_library()
        with _servo.lock:  # libHD speaks of "the current device" and has one list of errors
            self._handle = self._init(library)
            self.model = str(library.hd.get_model())
            self.peak_force = self._nominal_force(library)
            # The package's `enable_force` does this and prints.
            library.hd._lib_hd.hdEnable(library.define.HD_FORCE_OUTPUT)
            library.forget_errors()
            self._pose, self._error, self._force = None, None, ZERO
            self._stopping = False
            self._stopped.clear()
            self._callback = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p)(lambda _data: self._serve(library))
            self._library = library
            library.callback.hdAsyncSheduler(self._callback)
            _servo.start(library)
        deadline = time.perf_counter() + FIRST_POSE
        while self._pose is None and self._error is None and time.perf_counter() < deadline:
            time.sleep(0.001)
        if self._pose is None:
            error = self._error or DeviceError(f"{self.name} sends no pose.", "Unplug it, plug it in, try again.")
            self.close()
            raise error

    def _init(self, library: _Library) -> int:
        library.forget_errors()
        handle = library.hd.init_device(self._which)
        error = library.take_error()
        if handle in (None, library.define.HD_INVALID_HANDLE) or error != library.define.HD_SUCCESS:
            raise DeviceError(f"OpenHaptics finds no device called {self._which!r} (error 0x{error:04x}).", _HINT)
        return int(handle)

    def _nominal_force(self, library: _Library) -> float:
        value = float(library.hd._get_doublev(library.define.HD_NOMINAL_MAX_FORCE, ctypes.c_double).value)
        return value if 0.1 <= value <= 100.0 else PEAK_FORCE

    def _serve(self, library: _Library) -> int:
        """In the servo thread, a thousand times a second. Never raises: libHD could not tell anybody."""
        try:
            return self._exchange(library)
        except Exception as error:
            self._error = DeviceError(
                f"{self.name} failed: {type(error).__name__} {error}.", "This is a bug; report it."
            )
            self._stopped.set()
            return int(library.define.HD_CALLBACK_DONE)

    def _exchange(self, library: _Library) -> int:
        hd, define = library.hd, library.define
        now = time.perf_counter()
        hd.begin_frame(self._handle)
        matrix = hd.get_transform()
        buttons = int(hd.get_buttons())
        held = now - self._written <= FORCE_HOLD and not self._stopping
        hd.set_force(self._force if held else ZERO)
        hd.end_frame(self._handle)
        error = library.take_error()
        if error in _DEVICE_ERRORS:
            self._error = DeviceError(f"{self.name} was lost (OpenHaptics error 0x{error:04x}).", "Check its cable.")
        elif error != define.HD_SUCCESS:
            self.warnings += 1
        if self._error is None:
            self._pose = _pose_of(matrix, buttons, now)
        if self._stopping or self._error is not None:
            self._stopped.set()
            return int(define.HD_CALLBACK_DONE)
        return int(define.HD_CALLBACK_CONTINUE)

    def read(self) -> Pose:
        if self._error is not None:
            raise self._error
        pose = self._pose
        if pose is None:
            raise DeviceError(f"{self.name} is not open.", "Open it first.")
        if time.perf_counter() - pose.time > SILENCE:
            raise DeviceError(f"{self.name} has been silent for {SILENCE:g} s.", "Check its cable.")
        return pose

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        self._force = force
        self._written = time.perf_counter()

    def close(self) -> None:
        with self._lock:
            library, self._library = self._library, None
            if library is None:
                return
            # One more call sets the force to zero and takes itself off the list.
            self._stopping = True
            self._stopped.wait(SILENCE)
            with _servo.lock:
                _servo.stop(library)
                library.hd.close_device(self._handle)
                library.forget_errors()
            self._pose = None
            self._force = ZERO


def _pose_of(matrix: Any, buttons: int, now: float) -> Pose:
    right, up, back, place = (tuple(column) for column in matrix)
    rows = tuple(zip(right[:3], up[:3], back[:3], strict=True))
    position = (place[0] * MILLI, place[1] * MILLI, place[2] * MILLI)
    return Pose(position, quaternion_of(rows), True, float(buttons & 1), buttons, now)
