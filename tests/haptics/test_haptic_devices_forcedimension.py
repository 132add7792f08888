"""The Force Dimension driver against a stand-in SDK built from C, which the real forcedimension-core loads."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from haptics_fakes.build import build_libdrd, doubles, fresh_import, need

from viscera.errors import DeviceError
from viscera.haptics.devices.attach import AttachedDevice
from viscera.haptics.devices.catalogue import find_devices, make_device, make_devices, open_devices
from viscera.haptics.devices.forcedimension import OPEN_GRIPPER, ForceDimensionDevice, peak_force_of
from viscera.haptics.mapping import Mapping

STRAIGHT = np.eye(3)
PATIENCE = 5.0


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("forcedimension")
    return folder, build_libdrd(folder)


@pytest.fixture
def sdk(kit: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in with an omega.3 plugged in and calibrated."""
    folder, library = kit
    monkeypatch.setenv("FDSDK", str(folder))
    library.fake_reset()
    library.fake_plug(0, 1)
    with fresh_import("forcedimension_core"):
        yield library
    library.fake_reset()


def pushed(sdk: Any, index: int = 0) -> tuple[tuple[float, ...], tuple[float, ...]]:
    force, torque = (ctypes.c_double * 3)(), (ctypes.c_double * 3)()
    sdk.fake_force(index, force, torque)
    return tuple(force), tuple(torque)


def until(what: Callable[[], bool], each: Callable[[], object] = lambda: None) -> None:
    deadline = time.perf_counter() + PATIENCE
    while not what():
        assert time.perf_counter() < deadline, "it did not happen"
        each()
        time.sleep(0.001)


def test_x_to_the_user_becomes_y_away_from_him(sdk: Any) -> None:
    device = make_device("forcedimension")
    device.place((0.0, 0.0, 0.1))
    device.open()
    # 10 mm to the user, 20 mm right, 30 mm up.
    sdk.fake_move(0, doubles((0.01, 0.02, 0.03)), doubles(STRAIGHT.ravel()), 0.0, 0b1)
    pose = device.read()
    assert pose.position == pytest.approx((0.02, -0.01, 0.13))
    assert (pose.grip, pose.buttons, pose.oriented) == (1.0, 1, False)
    assert pose.orientation == (0.0, 0.0, 0.0, 1.0), "an omega.3 cannot turn; the tool is held upright"
    device.write((1.0, 2.0, 3.0))
    assert pushed(sdk) == ((-2.0, 1.0, 3.0), (0.0, 0.0, 0.0))
    device.close()


def test_force_is_limited_twice(sdk: Any) -> None:
    device = make_device("forcedimension")
    device.open()
    assert sdk.fake_limit(0) == 12.0 == device.peak_force, "the SDK is told the omega's limit"
    device.write((0.0, 0.0, 500.0))
    assert pushed(sdk)[0] == pytest.approx((0.0, 0.0, 12.0))
    device.write((0.0, math.nan, 0.0))
    assert pushed(sdk)[0] == (0.0, 0.0, 0.0)
    device.close()


def test_a_wrist_turns_the_tool_and_is_turned(sdk: Any) -> None:
    sdk.fake_plug(1, 1)
    device = make_device("forcedimension:1")
    device.open()
    assert device.peak_force == 20.0
    # A handle at rest points away from the user, so the tool's shaft runs to him.
    x, y, z, w = device.read().orientation
    shaft = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert shaft == pytest.approx((0.0, -1.0, 0.0), abs=1e-12)
    # Turned by 90° about the vertical it points to the left; half closed.
    quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    sdk.fake_move(1, doubles((0, 0, 0)), doubles(np.ravel(quarter)), 0.5 * OPEN_GRIPPER, 0)
    pose = device.read()
    x, y, z, w = pose.orientation
    shaft = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert shaft == pytest.approx((1.0, 0.0, 0.0), abs=1e-12)
    assert pose.grip == pytest.approx(0.5)
    device.write((0.0, 0.0, 1.0), (0.1, 0.0, 0.0))
    assert pushed(sdk, 1) == ((0.0, 0.0, 1.0), (0.0, 0.1, 0.0))
    device.close()


def test_closing_lets_go_and_opening_again_works(sdk: Any) -> None:
    device = ForceDimensionDevice()
    for _ in range(2):
        device.open()
        device.write((1.0, 0.0, 0.0))
        device.close()
        device.close()
        assert pushed(sdk)[0] == (0.0, 0.0, 0.0)
        assert sdk.fake_is_braked(0)
        assert not sdk.fake_is_open(0)
        device.write((1.0, 0.0, 0.0))  # dropped
        with pytest.raises(DeviceError, match="not open"):
            device.read()


def test_unplugged_is_told_once_and_plugging_in_brings_it_back(sdk: Any) -> None:
    attached = AttachedDevice(ForceDimensionDevice(), Mapping(), retry=0.05)
    with closing(attached):
        attached.open()
        attached.write((1.0, 0.0, 0.0))
        sdk.fake_unplug(0)
        with pytest.raises(DeviceError, match="communication error"):
            attached.read()

        def goes_on() -> None:
            assert not attached.read().present
            attached.write((5.0, 0.0, 0.0))

        until(lambda: "sees none" in attached.reason, goes_on)
        sdk.fake_plug(0, 1)
        until(lambda: attached.read().present)
        assert pushed(sdk)[0] == (0.0, 0.0, 0.0)


def test_two_at_once(sdk: Any) -> None:
    sdk.fake_plug(1, 1)
    devices = make_devices(["forcedimension", "forcedimension:1"])
    assert [device.tool for device in devices] == [0, 1]
    for device in devices:
        device.open()
    devices[0].write((0.0, 0.0, 1.0))
    devices[1].write((0.0, 0.0, 2.0))
    assert (pushed(sdk, 0)[0][2], pushed(sdk, 1)[0][2]) == (1.0, 2.0)
    for device in devices:
        device.close()


def test_not_calibrated_is_refused_with_what_to_do(sdk: Any) -> None:
    sdk.fake_plug(0, 0)
    with pytest.raises(DeviceError, match="calibration pit"):
        ForceDimensionDevice().open()
    assert not sdk.fake_is_open(0)


def test_none_there_is_a_sentence_and_the_pointer(sdk: Any) -> None:
    assert next(one for one in find_devices() if one.name == "forcedimension").present
    sdk.fake_reset()
    assert not next(one for one in find_devices() if one.name == "forcedimension").present
    devices, sentences = open_devices(["forcedimension"])
    assert devices[0].name == "pointer"
    assert "sees none" in sentences[0]
    with pytest.raises(DeviceError, match="counted"):
        ForceDimensionDevice("left")


def test_without_the_sdk_it_says_what_to_install() -> None:
    """In a process of its own, where no stand-in is loaded."""
    need("forcedimension_core", "forcedimension-core")
    script = (
        "from viscera.haptics.devices.forcedimension import ForceDimensionDevice\n"
        "try: ForceDimensionDevice().open()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    clean = {name: value for name, value in os.environ.items() if name not in ("FDSDK", "FORCEDIM_SDK")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=clean, check=True)
    if "cannot be loaded" not in done.stdout:
        pytest.skip("the Force Dimension SDK is installed here")
    assert done.stdout.startswith("DeviceError the Force Dimension SDK cannot be loaded: Could not find libdrd")
    assert done.stderr == ""


def test_peak_forces_by_family() -> None:
    assert [peak_force_of(name) for name in ("omega.7 right", "DELTA.3", "Novint Falcon", "?")] == [
        12.0,
        20.0,
        9.0,
        9.0,
    ]
