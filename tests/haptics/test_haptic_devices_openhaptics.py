"""The OpenHaptics driver against a stand-in libHD built from C, which the real pyOpenHaptics loads."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from haptics_fakes.build import build_libhd, doubles, fresh_import, need

from viscera.errors import DeviceError
from viscera.haptics.device import FORCE_HOLD
from viscera.haptics.devices.attach import AttachedDevice
from viscera.haptics.devices.catalogue import find_devices, make_device, make_devices
from viscera.haptics.devices.openhaptics import DEFAULT_DEVICE, OpenHapticsDevice
from viscera.haptics.mapping import Mapping

COMMUNICATION_ERROR = 0x0302
WARM_MOTORS = 0x0200
PATIENCE = 5.0


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build_libhd(tmp_path_factory.mktemp("openhaptics"))


@pytest.fixture
def hd(library: Any) -> Iterator[Any]:
    """The stand-in with one device plugged in."""
    library.fake_reset()
    library.fake_plug(0, DEFAULT_DEVICE.encode())
    with fresh_import("pyOpenHaptics"):
        yield library
    library.fake_reset()


def until(what: Callable[[], bool], each: Callable[[], object] = lambda: None) -> None:
    deadline = time.perf_counter() + PATIENCE
    while not what():
        assert time.perf_counter() < deadline, "it did not happen"
        each()
        time.sleep(0.001)


def force(hd: Any, index: int = 0) -> tuple[float, ...]:
    out = (ctypes.c_double * 3)()
    hd.fake_force(index, out)
    return tuple(out)


def place(
    hd: Any, millimetres: tuple[float, float, float], rotation: Any = None, buttons: int = 0, index: int = 0
) -> None:
    """The matrix as OpenHaptics has it: four columns, millimetres."""
    matrix = np.eye(4)
    matrix[:3, :3] = np.eye(3) if rotation is None else rotation
    matrix[:3, 3] = millimetres
    hd.fake_move(index, doubles(matrix.T.ravel()), buttons)


def test_millimetres_and_y_up_become_metres_and_z_up(hd: Any) -> None:
    device = make_device("touch")
    device.place((0.0, 0.0, 0.1))
    device.open()
    assert device.device.peak_force == 3.5, "the device is believed"
    # 10 mm right, 20 mm up, 30 mm to the user.
    place(hd, (10.0, 20.0, 30.0), buttons=0b10)
    until(lambda: device.read().buttons == 0b10)
    pose = device.read()
    assert pose.position == pytest.approx((0.01, -0.03, 0.12))
    assert pose.oriented
    # What pushes up in the theatre pushes along the device's +y, away from the user along its −z.
    until(lambda: force(hd) == (0.5, 1.5, -1.0), lambda: device.write((0.5, 1.0, 1.5)))
    device.close()
    assert hd.fake_calls_outside_frame() == 0


def test_the_stylus_points_the_tool(hd: Any) -> None:
    """The stylus at rest points away from the user; tilted down, the tool's shaft rises to the user."""
    device = make_device("touch")
    device.open()
    angle = math.radians(-30.0)
    tilt = [[1, 0, 0], [0, math.cos(angle), -math.sin(angle)], [0, math.sin(angle), math.cos(angle)]]
    place(hd, (0.0, 0.0, 0.0), tilt, buttons=1)
    until(lambda: device.read().buttons == 1)
    x, y, z, w = device.read().orientation
    shaft = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert shaft == pytest.approx((0.0, -math.cos(angle), 0.5), abs=1e-12)
    assert device.read().grip == 1.0
    device.close()


def test_the_servo_calls_a_thousand_times_a_second_and_the_newest_counts(hd: Any) -> None:
    device = OpenHapticsDevice()
    device.open()
    first, start = hd.fake_frames(0), time.perf_counter()
    while time.perf_counter() - start < 0.5:
        device.write((0.0, 1.0, 0.0))
        device.read()
        time.sleep(0.001)
    rate = (hd.fake_frames(0) - first) / (time.perf_counter() - start)
    device.close()
    # The stand-in sleeps a millisecond between calls, so it stays below 1000; a driver that held the servo up would
    # show far less, and a busy machine somewhat less.
    assert 50.0 < rate <= 1000.0
    assert device.warnings == 0


def test_closing_lets_go_and_opening_again_works(hd: Any) -> None:
    device = OpenHapticsDevice()
    for _ in range(3):
        device.open()
        until(lambda: force(hd) == (0.0, 2.0, 0.0), lambda: device.write((0.0, 2.0, 0.0)))
        device.close()
        device.close()
        assert force(hd) == (0.0, 0.0, 0.0)
        assert not hd.fake_is_open(0)
        assert not hd.fake_is_running()
        with pytest.raises(DeviceError, match="not open"):
            device.read()


def test_closing_in_the_middle_of_a_call_lets_go_too(hd: Any) -> None:
    """The call that was under way has taken the force already; the one after it must still come."""
    device = OpenHapticsDevice()
    device.open()
    link = device._link
    assert link is not None
    end_frame = link.library.hd.end_frame
    threads: list[threading.Thread] = []

    def close_before_the_end(handle: int) -> None:
        if not threads and force(hd) == (0.0, 2.0, 0.0):
            thread = threading.Thread(target=device.close)
            thread.start()
            threads.append(thread)
            while not link.stopping:
                time.sleep(0.0001)
        end_frame(handle)

    link.library.hd.end_frame = close_before_the_end
    until(lambda: bool(threads), lambda: device.write((0.0, 2.0, 0.0)))
    threads[0].join(PATIENCE)
    assert force(hd) == (0.0, 0.0, 0.0)


def test_a_force_that_nobody_renews_is_dropped(hd: Any) -> None:
    device = OpenHapticsDevice()
    device.open()
    until(lambda: force(hd) == (0.0, 2.0, 0.0), lambda: device.write((0.0, 2.0, 0.0)))
    start = time.perf_counter()
    until(lambda: force(hd) == (0.0, 0.0, 0.0))
    assert time.perf_counter() - start < FORCE_HOLD + 1.0, "the hold, and leave for a busy machine"
    device.close()


def test_warm_motors_are_counted_and_not_the_end(hd: Any) -> None:
    device = OpenHapticsDevice()
    device.open()
    hd.fake_warn(0, WARM_MOTORS)
    until(lambda: device.warnings > 5, device.read)
    hd.fake_warn(0, 0)
    until(lambda: force(hd) == (0.0, 1.0, 0.0), lambda: device.write((0.0, 1.0, 0.0)))
    device.close()


def test_unplugged_is_told_once_and_plugging_in_brings_it_back(hd: Any) -> None:
    attached = AttachedDevice(OpenHapticsDevice(), Mapping(), retry=0.05)
    with closing(attached):
        attached.open()
        hd.fake_unplug(0, COMMUNICATION_ERROR)
        with pytest.raises(DeviceError, match=r"lost.*0302"):
            until(lambda: not attached.read().present)

        def goes_on() -> None:
            assert not attached.read().present
            attached.write((0.0, 3.0, 0.0))

        until(lambda: "finds no device" in attached.reason, goes_on)
        hd.fake_plug(0, DEFAULT_DEVICE.encode())
        until(lambda: attached.read().present)
        assert force(hd) == (0.0, 0.0, 0.0)


def test_a_servo_that_hangs_is_a_lost_device(hd: Any) -> None:
    device = OpenHapticsDevice()
    device.open()
    hd.fake_freeze(1)
    with pytest.raises(DeviceError, match="silent"):
        until(lambda: device.read() is None)
    device.close()


def test_two_at_once_each_with_its_own_pose_and_force(hd: Any) -> None:
    hd.fake_plug(1, b"Left Device")
    devices = make_devices(
        ["touch", "touch:Left Device"], {"touch:Left Device": {"scale": 0.5, "place": [0.0, 0.0, 0.0]}}
    )
    for device in devices:
        device.open()
    place(hd, (10.0, 0.0, 0.0), buttons=1)
    place(hd, (-10.0, 0.0, 0.0), buttons=1, index=1)
    until(lambda: all(device.read().buttons == 1 for device in devices))
    assert [device.read().position[0] for device in devices] == pytest.approx([0.01, -0.005])

    def push() -> None:
        devices[0].write((1.0, 0.0, 0.0))
        devices[1].write((2.0, 0.0, 0.0))

    until(lambda: (force(hd, 0)[0], force(hd, 1)[0]) == (1.0, 1.0), push)
    devices[0].close()
    assert hd.fake_is_running(), "the other one still needs the servo"
    assert devices[1].read().present
    devices[1].close()
    assert not hd.fake_is_running()
    assert hd.fake_calls_outside_frame() == 0


def test_a_device_that_is_not_there_is_a_sentence(hd: Any) -> None:
    with pytest.raises(DeviceError, match="no device called 'Right Device'"):
        OpenHapticsDevice("Right Device").open()
    assert next(one for one in find_devices() if one.name == "touch").present
    hd.fake_reset()
    missing = next(one for one in find_devices() if one.name == "touch")
    assert not missing.present
    assert "setup tool" in missing.sentence


def test_without_libhd_it_says_what_to_install() -> None:
    """In a process of its own, where no stand-in is loaded."""
    need("pyOpenHaptics", "pyOpenHaptics")
    script = (
        "from viscera.haptics.devices.openhaptics import OpenHapticsDevice\n"
        "try: OpenHapticsDevice().open()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=True)
    if "libHD" not in done.stdout:
        pytest.skip("OpenHaptics is installed here")
    assert done.stdout.startswith("DeviceError OpenHaptics is not installed")
    assert "Install OpenHaptics" in done.stdout
