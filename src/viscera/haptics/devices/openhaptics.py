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
LAST_CALL = 0.5
"""So long it may take to call for the last time; a servo that hangs is not waited for any longer [s]."""

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

    def take_error(self) -> tuple[int, int]:
        """The oldest error that nobody has looked at and the device it is about; (0, …) when there is none."""
        error = self.hd._get_error()  # `get_error` of the package fails on errors it does not know
        return int(error.errorCode), int(error.hHD)

    def forget_errors(self) -> None:
        for _ in range(100):
            if self.take_error()[0] == self.define.HD_SUCCESS:
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
    """What libHD has once per process: its thread, "the current device", the list of errors."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held while a device is the current one."""
        self.links: dict[int, _Link] = {}
        """By handle, while they are served."""
        self.kept: list[_Link] = []
        """Calls that libHD may still make are never thrown away."""
        self._starting = threading.Lock()
        """Not `lock`: stopping waits for the thread, which may wait for that."""

    def add(self, link: _Link) -> None:
        with self._starting:
            idle = not self.links
            self.links[link.handle] = link
            self.kept = [one for one in self.kept if not one.done.is_set()] + [link]
            link.library.callback.hdAsyncSheduler(link.callback)
            if idle:
                link.library.hd.start_scheduler()

    def remove(self, link: _Link) -> None:
        with self._starting:
            self.links.pop(link.handle, None)
            if not self.links:
                link.library.hd.stop_scheduler()


_servo = _Servo()


class _Link:
    """What libHD's thread does for one device while it is open."""

    def __init__(self, library: _Library, name: str, handle: int) -> None:
        self.library = library
        self.handle = handle
        self.pose: Pose | None = None
        self.error: DeviceError | None = None
        self.warnings = 0
        self.force = ZERO
        self.written = 0.0
        self.stopping = False
        self.done = threading.Event()
        """No call comes any more."""
        self.callback = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p)(self._serve)
        self._name = name

    def _serve(self, _data: int | None) -> int:
        """In libHD's thread, a thousand times a second. Never raises: libHD could not tell anybody."""
        last = self.stopping  # looked at once: a call that is the last one is also the one that lets go
        try:
            with _servo.lock:
                self._exchange(last)
        except Exception as error:
            what = f"{self._name} failed: {type(error).__name__} {error}."
            self.error = DeviceError(what, "This is a bug; please report it.")
        if last or self.error is not None:
            self.done.set()
            return int(self.library.define.HD_CALLBACK_DONE)
        return int(self.library.define.HD_CALLBACK_CONTINUE)

    def _exchange(self, last: bool) -> None:
        hd = self.library.hd
        now = time.perf_counter()
        hd.begin_frame(self.handle)
        matrix = hd.get_transform()
        buttons = int(hd.get_buttons())
        held = now - self.written <= FORCE_HOLD and not last
        hd.set_force(self.force if held else ZERO)
        hd.end_frame(self.handle)
        code, handle = self.library.take_error()
        if code != self.library.define.HD_SUCCESS:
            _servo.links.get(handle, self).complain(code)
        if self.error is None:
            self.pose = _pose_of(matrix, buttons, now)

    def complain(self, code: int) -> None:
        if code in _DEVICE_ERRORS:
            self.error = DeviceError(f"{self._name} was lost (OpenHaptics error 0x{code:04x}).", "Check its cable.")
        else:
            self.warnings += 1


class OpenHapticsDevice:
    """One device; `which` is its name in the vendor's setup tool."""

    def __init__(self, which: str = DEFAULT_DEVICE) -> None:
        self.name = "touch" if which == DEFAULT_DEVICE else f"touch:{which}"
        self.model = ""
        self.peak_force = PEAK_FORCE
        self._which = which
        self._lock = threading.Lock()
        self._link: _Link | None = None

    @property
    def warnings(self) -> int:
        """How often libHD complained of something that passes, such as warm motors."""
        return 0 if self._link is None else self._link.warnings

    def open(self) -> None:
        self.close()
        library = load_library()
        link = _Link(library, self.name, self._init(library))
        with _servo.lock:
            library.hd._lib_hd.hdMakeCurrentDevice(link.handle)
            self.model = str(library.hd.get_model())
            self.peak_force = _nominal_force(library)
            # The package's `enable_force` does this and prints.
            library.hd._lib_hd.hdEnable(library.define.HD_FORCE_OUTPUT)
            library.forget_errors()
        _servo.add(link)
        self._link = link
        deadline = time.perf_counter() + FIRST_POSE
        while link.pose is None and link.error is None and time.perf_counter() < deadline:
            time.sleep(0.001)
        if link.pose is None:
            self.close()
            raise link.error or DeviceError(f"{self.name} sends no pose.", "Unplug it, plug it in, try again.")

    def _init(self, library: _Library) -> int:
        library.forget_errors()
        handle = library.hd.init_device(self._which)
        code, _ = library.take_error()
        if handle in (None, library.define.HD_INVALID_HANDLE) or code in _DEVICE_ERRORS:
            raise DeviceError(f"OpenHaptics finds no device called {self._which!r} (error 0x{code:04x}).", _HINT)
        return int(handle)

    def read(self) -> Pose:
        link = self._link
        if link is None or (link.pose is None and link.error is None):
            raise DeviceError(f"{self.name} is not open.", "Open it first.")
        if link.error is not None:
            raise link.error
        pose = link.pose
        if pose is None or time.perf_counter() - pose.time > SILENCE:
            raise DeviceError(f"{self.name} has been silent for {SILENCE:g} s.", "Check its cable.")
        return pose

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        link = self._link
        if link is not None:
            link.force = force
            link.written = time.perf_counter()

    def close(self) -> None:
        with self._lock:
            link, self._link = self._link, None
        if link is None:
            return
        # One more call sets the force to zero and takes itself off the list.
        link.stopping = True
        link.done.wait(LAST_CALL)
        _servo.remove(link)
        link.library.hd.close_device(link.handle)


def _nominal_force(library: _Library) -> float:
    value = float(library.hd._get_doublev(library.define.HD_NOMINAL_MAX_FORCE, ctypes.c_double).value)
    return value if 0.1 <= value <= 100.0 else PEAK_FORCE


def _pose_of(matrix: Any, buttons: int, now: float) -> Pose:
    right, up, back, place = (tuple(column) for column in matrix)
    rows = tuple(zip(right[:3], up[:3], back[:3], strict=True))
    position = (place[0] * MILLI, place[1] * MILLI, place[2] * MILLI)
    return Pose(position, quaternion_of(rows), True, float(buttons & 1), buttons, now)
