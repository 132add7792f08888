"""Mapping, the pointer, what every device shares, and the catalogue of devices."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viscera.errors import DeviceError, InputError
from viscera.haptics.device import HapticDevice, Pose
from viscera.haptics.devices.attach import AttachedDevice, bounded
from viscera.haptics.devices.catalogue import KINDS, find_devices, make_device, make_devices, mapping_for, open_devices
from viscera.haptics.devices.pointer import PointerDevice
from viscera.haptics.mapping import Mapping, load_mappings, mapping_file, product, quaternion_of
from viscera.inputs import ToolInput

AXES = [("x", "y", "z"), ("x", "-z", "y"), ("y", "-x", "z"), ("-x", "-y", "z"), ("z", "x", "y"), ("-z", "-x", "y")]

numbers = st.floats(-0.5, 0.5)
points = st.tuples(numbers, numbers, numbers)
mappings = st.builds(
    Mapping,
    axes=st.sampled_from(AXES),
    turn=st.floats(-180.0, 180.0),
    scale=st.floats(0.1, 10.0),
    force_scale=st.none() | st.floats(0.1, 10.0),
    center=points,
    place=points,
    handle=st.sampled_from(AXES),
)


def matrix_of(q: Any) -> Any:
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


# --- mapping -------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(mappings, points)
def test_there_and_back_is_where_it_was(mapping: Mapping, point: Any) -> None:
    there = mapping.point_to_theatre(point)
    # A few roundings of numbers of order ten, over a scale of at least 0.1.
    assert mapping.point_to_device(there) == pytest.approx(point, abs=1e-13)
    assert mapping.point_to_theatre(mapping.center) == pytest.approx(mapping.place, abs=1e-13)


@settings(deadline=None)
@given(mappings)
def test_the_hand_is_never_mirrored(mapping: Mapping) -> None:
    assert np.linalg.det(mapping.rotation) == pytest.approx(1.0)
    assert mapping.rotation @ mapping.rotation.T == pytest.approx(np.eye(3), abs=1e-14)
    right, forward, up = (
        np.subtract(mapping.point_to_theatre(end), mapping.point_to_theatre((0.0, 0.0, 0.0))) / mapping.scale
        for end in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    assert np.cross(right, forward) == pytest.approx(up, abs=1e-13)


@settings(deadline=None)
@given(mappings, points, points)
def test_power_is_scaled_by_the_ratio_and_kept_by_default(mapping: Mapping, force: Any, step: Any) -> None:
    """F_device · v_device = (f/s) F_theatre · v_theatre; f = s unless the user says otherwise."""
    start = np.array(mapping.point_to_theatre((0.0, 0.0, 0.0)))
    moved = np.array(mapping.point_to_theatre(step)) - start
    at_hand = float(np.dot(mapping.force_to_device(force), step))
    at_tool = float(np.dot(force, moved))
    ratio = mapping.force_gain / mapping.scale
    assert at_hand == pytest.approx(ratio * at_tool, abs=1e-12)
    if mapping.force_scale is None:
        assert at_hand == pytest.approx(at_tool, abs=1e-12)
        assert np.linalg.norm(mapping.torque_to_device(force)) == pytest.approx(np.linalg.norm(force))


@settings(deadline=None)
@given(mappings, points)
def test_a_spring_feels_as_stiff_as_the_mapping_says(mapping: Mapping, step: Any) -> None:
    there, start = mapping.point_to_theatre(step), mapping.point_to_theatre((0.0, 0.0, 0.0))
    x, y, z = (-1000.0 * (a - b) for a, b in zip(there, start, strict=True))
    felt = mapping.force_to_device((x, y, z))
    assert felt == pytest.approx([-1000.0 * mapping.stiffness_gain * part for part in step], rel=1e-9, abs=1e-8)


@settings(deadline=None)
@given(mappings, st.tuples(numbers, numbers, numbers, st.floats(0.1, 1.0)))
def test_the_handle_turns_as_its_frame_does(mapping: Mapping, raw: Any) -> None:
    """R_tool = A R_device H, against matrices."""
    turn = tuple(part / math.hypot(*raw) for part in raw)
    assert len(turn) == 4
    handle = np.array(Mapping(axes=mapping.handle).rotation).T
    expected = mapping.rotation @ matrix_of(turn) @ handle
    assert matrix_of(mapping.turn_to_theatre(turn)) == pytest.approx(expected, abs=1e-12)
    assert math.hypot(*mapping.turn_to_theatre(turn)) == pytest.approx(1.0)


@settings(deadline=None)
@given(st.tuples(numbers, numbers, numbers, numbers).filter(lambda q: math.hypot(*q) > 0.1))
def test_quaternion_of_a_matrix(raw: Any) -> None:
    q = np.array(raw) / math.hypot(*raw)
    assert matrix_of(quaternion_of(matrix_of(q))) == pytest.approx(matrix_of(q), abs=1e-12)
    assert quaternion_of(np.eye(3)) == (0.0, 0.0, 0.0, 1.0)
    assert product((0.0, 0.0, 0.0, 1.0), tuple(q.tolist())) == tuple(q.tolist())


@pytest.mark.parametrize("name", ["touch", "forcedimension", "haply"])
def test_every_device_at_rest_holds_its_tool_alike(name: str) -> None:
    """Right is right, up is up, and a handle that points away from the user makes a shaft that runs to him. From the
    makers' manuals: what is right, forward and up in each device's own frame, and where a handle points."""
    manuals = {
        "touch": ((1, 0, 0), (0, 0, -1), (0, 1, 0), (0, 0, -1)),
        "forcedimension": ((0, 1, 0), (-1, 0, 0), (0, 0, 1), (-1, 0, 0)),
        "haply": ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 0)),
    }
    mapping = mapping_for(name)
    right, forward, up, pointing = (mapping.rotation @ np.array(axis) for axis in manuals[name])
    assert (right.tolist(), forward.tolist(), up.tolist()) == ([1, 0, 0], [0, 1, 0], [0, 0, 1])
    tool = matrix_of(mapping.turn_to_theatre((0.0, 0.0, 0.0, 1.0)))
    assert tool @ [0, 0, 1] == pytest.approx(-pointing, abs=1e-14)
    assert tool @ [0, 1, 0] == pytest.approx([0, 0, 1], abs=1e-14), "its y is up"


def test_a_mapping_file_changes_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "haptics.toml"
    file.write_text(
        """
        [touch]
        scale = 0.5
        center = [0.0, 0.02, 0]
        [touch."options"]
        ["touch:Left Device"]
        tool = 1
        turn = 90
        [haply.options]
        url = "ws://robot:10001"
        """
    )
    tables = load_mappings(file)
    first, second = mapping_for("touch", tables), mapping_for("touch:Left Device", tables)
    assert (first.scale, first.force_gain, first.tool, first.center) == (0.5, 0.5, 0, (0.0, 0.02, 0))
    assert first.axes == KINDS["touch"].mapping.axes, "what it does not name stays"
    assert (second.scale, second.tool) == (0.5, 1)
    # The device's right is the theatre's forward once it stands turned by a quarter.
    assert second.point_to_theatre((0.01, 0.02, 0.0)) == pytest.approx((0.0, 0.005, 0.0))
    assert mapping_for("haply", tables).options == {"url": "ws://robot:10001"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[touch]\naxes = ["x", "y", "-z"]', "mirrors"),
        ('[touch]\naxes = ["x", "x", "z"]', "each of x, y and z once"),
        ('[touch]\naxes = ["x", "up", "z"]', "three axes"),
        ('[touch]\naxes = ["x", "y"]', "list of 3"),
        ('[touch]\naxes = "xyz"', "list of 3"),
        ('[touch]\nhandle = ["-x", "y", "z"]', "mirrors"),
        ("[touch]\nscale = 0", "scale = 0 is not allowed"),
        ("[touch]\nscale = nan", "scale = nan"),
        ("[touch]\nforce_scale = 1000.0", "0.01 to 100"),
        ("[touch]\ncenter = [0.0, inf, 0.0]", "center"),
        ("[touch]\nplace = [0.0, 'a', 0.0]", "place"),
        ("[touch]\nrest = [0.0, 0.0, 0.0, 2.0]", "unit quaternion"),
        ("[touch]\ntool = -1", "tool = -1"),
        ("[touch]\ntool = 1.5", "tool = 1.5"),
        ("[touch]\nspeed = 1", r"\[touch\] speed is not known"),
        ("[touch]\noptions = 3", "options"),
        ("[haply.options]\nport = 3", "not allowed"),
        ("scale = 2", "outside a table"),
        ("[touch", "not TOML"),
        ("[tuch]\nscale = 1", "Did you mean touch"),
    ],
)
def test_a_wrong_mapping_file_says_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "haptics.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=says):
        make_devices(["touch", "haply"], load_mappings(file))


def test_where_the_mapping_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_mappings() == {}
    with pytest.raises(InputError, match="cannot be read"):
        load_mappings(tmp_path / "other.toml")
    mapping_file().parent.mkdir()
    mapping_file().write_text("[hand]\nscale = 2.0")
    assert mapping_for("hand", load_mappings()).scale == 2.0


# --- attached ------------------------------------------------------------------------------------------------------


def test_the_loop_sees_the_theatre_only() -> None:
    pointer = PointerDevice()
    attached = AttachedDevice(pointer, Mapping(axes=("x", "-z", "y"), scale=0.5, tool=1))
    assert isinstance(pointer, HapticDevice)
    assert isinstance(attached, HapticDevice)
    attached.place((9.0, 9.0, 9.0))
    attached.place((0.0, 0.0, 0.2))  # another world, where the tool waits elsewhere
    attached.open()
    assert not attached.read().present
    pointer.take(ToolInput(1, (0.02, 0.04, 0.06), grip=0.25))
    pose = attached.read()
    assert pose.position == pytest.approx((0.01, -0.03, 0.22))
    assert (pose.grip, pose.present) == (0.25, True)
    attached.write((2.0, 0.0, 4.0))
    assert pointer.force == pytest.approx((1.0, 2.0, 0.0))
    assert attached.peak_force == 2.0 * pointer.peak_force
    pointer.take(ToolInput(1, (0.0, 0.0, 0.0), active=False))
    assert not attached.read().present
    attached.close()
    assert pointer.force == (0.0, 0.0, 0.0)
    said = AttachedDevice(pointer, Mapping(place=(0.0, 0.0, 0.3)))
    said.place((9.0, 9.0, 9.0))
    assert said.mapping.place == (0.0, 0.0, 0.3), "the user's word stands"


@settings(deadline=None)
@given(st.tuples(*[st.floats(-1e3, 1e3)] * 3), st.floats(0.1, 20.0))
def test_the_last_line_before_a_motor(vector: Any, largest: float) -> None:
    result = bounded(vector, largest)
    assert math.hypot(*result) <= largest * (1.0 + 1e-12)
    assert np.cross(result, vector) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    if math.hypot(*vector) <= largest:
        assert result == vector


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_pushes_nothing(bad: float) -> None:
    for place in range(3):
        vector = [1.0, 1.0, 1.0]
        vector[place] = bad
        assert bounded((vector[0], vector[1], vector[2]), 5.0) == (0.0, 0.0, 0.0)


def test_opening_that_fails_at_first_is_the_callers_business() -> None:
    class Missing(PointerDevice):
        def open(self) -> None:
            raise DeviceError("nothing here.")

    with pytest.raises(DeviceError, match="nothing here"):
        AttachedDevice(Missing(), Mapping()).open()


class Loose(PointerDevice):
    """Works while it is plugged in."""

    plugged = True
    opened = 0
    written = 0

    def open(self) -> None:
        if not self.plugged:
            raise DeviceError("it is out.")
        self.opened += 1

    def read(self) -> Pose:
        if not self.plugged:
            raise DeviceError("it was pulled out.")
        return Pose((0.01, 0.0, 0.0))

    def write(self, force: Any, torque: Any = (0.0, 0.0, 0.0)) -> None:
        self.written += 1


def test_a_lost_device_is_told_once_left_alone_and_found_again() -> None:
    loose = Loose()
    attached = AttachedDevice(loose, Mapping(), retry=0.01)
    attached.open()
    attached.read()
    attached.write((1.0, 0.0, 0.0))
    loose.plugged = False
    with pytest.raises(DeviceError, match="pulled out"):
        attached.read()
    deadline = time.perf_counter() + 5.0
    while attached.reason != "it is out.":
        pose = attached.read()
        attached.write((1.0, 0.0, 0.0))
        assert (pose.present, pose.position) == (False, (0.01, 0.0, 0.0))
        assert time.perf_counter() < deadline
        time.sleep(0.001)
    assert loose.written == 1
    assert not attached.present
    loose.plugged = True
    while not attached.read().present:
        assert time.perf_counter() < deadline
        time.sleep(0.001)
    attached.write((1.0, 0.0, 0.0))
    assert (loose.written, loose.opened) == (2, 2)
    attached.close()


# --- catalogue -----------------------------------------------------------------------------------------------------


def test_every_missing_device_has_a_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without any: no packages, nobody at the port."""
    for package in ("pyOpenHaptics", "forcedimension_core"):
        for module in [name for name in sys.modules if name.startswith(f"{package}.")]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, package, None)  # importing it fails
    found = {one.name: one for one in find_devices({"haply": {"options": {"url": "ws://127.0.0.1:1"}}})}
    assert {name for name, one in found.items() if one.present} == {"pointer", "trace", "hand"}
    for name in ("touch", "forcedimension"):
        assert "viscera[haptics]" in found[name].sentence
    assert "does not answer at ws://127.0.0.1:1" in found["haply"].sentence
    devices, sentences = open_devices(["touch", "forcedimension"])
    assert [(device.name, device.tool) for device in devices] == [("pointer", 0), ("pointer", 1)]
    assert all("The page's pointer is used instead." in sentence for sentence in sentences)


def test_names_of_devices() -> None:
    with pytest.raises(InputError, match="Did you mean haply"):
        make_device("haptly")
    with pytest.raises(InputError, match="There are touch"):
        make_device("lightsaber")
    with pytest.raises(InputError, match="needs a file"):
        make_device("trace")
    with pytest.raises(InputError, match="both drive tool 0"):
        make_devices(["hand", "pointer"], {"hand": {"tool": 0}, "pointer": {"tool": 0}})
    with pytest.raises(InputError, match="twice"):
        make_devices(["haply", "haply:0"])
    assert [one.tool for one in make_devices(["hand", "pointer"], {"hand": {"tool": 1}, "pointer": {"tool": 0}})] == [
        1,
        0,
    ]
    assert set(KINDS) == {"touch", "forcedimension", "haply", "pointer", "trace", "hand"}


def test_importing_the_catalogue_needs_numpy_alone() -> None:
    script = (
        "import sys, json; before = set(sys.modules); import viscera.haptics.devices.catalogue; "
        "print(json.dumps([m for m in ('websockets', 'h5py', 'pyOpenHaptics', 'forcedimension_core', 'warp', 'msgspec')"
        " if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
