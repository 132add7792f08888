"""The Haply driver against a service that speaks its protocol over a real socket."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from haptics_fakes.haply_service import FakeHaply

from viscera.errors import DeviceError, InputError
from viscera.haptics.device import FORCE_HOLD, SILENCE, HapticDevice
from viscera.haptics.devices.attach import AttachedDevice
from viscera.haptics.devices.catalogue import find_devices, make_device, make_devices, open_devices
from viscera.haptics.devices.haply import KEEP_ALIVE, HaplyDevice
from viscera.haptics.mapping import Mapping

PATIENCE = 5.0


def until(what: Callable[[], bool], each: Callable[[], object] = lambda: None) -> None:
    """Waits for something that another thread does."""
    deadline = time.perf_counter() + PATIENCE
    while not what():
        assert time.perf_counter() < deadline, "it did not happen"
        each()
        time.sleep(0.001)


@pytest.fixture
def service() -> Iterator[FakeHaply]:
    with FakeHaply() as fake:
        yield fake


@pytest.mark.parametrize("form", ["vector", "values"])
def test_pose_in_and_force_out_in_both_forms(form: str) -> None:
    with FakeHaply(form) as service:
        device = HaplyDevice(url=service.url)
        device.open()
        service.positions["049D"] = (0.01, -0.1, 0.2)
        service.buttons["a"] = service.buttons["c"] = True
        until(lambda: device.read().position == (0.01, -0.1, 0.2))
        pose = device.read()
        assert (pose.grip, pose.buttons, pose.oriented) == (1.0, 0b101, True)
        assert time.perf_counter() - pose.time < SILENCE
        until(lambda: service.forces.get("049D") == (0.5, -1.0, 2.0), lambda: device.write((0.5, -1.0, 2.0)))
        device.close()
        assert device.form == form
        assert service.forces["049D"] == (0.0, 0.0, 0.0), "closing lets go"
        assert not service.refused


def test_a_wrong_form_is_possible_only_when_asked_for(service: FakeHaply) -> None:
    device = HaplyDevice(url=service.url, form="values")
    device.open()
    device.write((1.0, 0.0, 0.0))
    until(lambda: bool(service.refused))
    device.close()
    with pytest.raises(InputError, match="form"):
        HaplyDevice(form="tensor")


def test_read_and_write_never_wait_for_the_socket(service: FakeHaply) -> None:
    device = HaplyDevice(url=service.url)
    device.open()
    service.silent = True
    taken: list[float] = []

    def talk() -> None:
        start = time.perf_counter()
        device.write((0.0, 0.0, 1.0))
        device.read()
        taken.append(time.perf_counter() - start)

    with pytest.raises(DeviceError, match="silent"):
        until(lambda: False, talk)
    # The driver's thread waits for an answer all that time; had the caller waited with it, each call would have.
    assert sorted(taken)[len(taken) // 2] < 0.1 * SILENCE
    device.close()


def test_the_service_is_asked_about_once_per_force(service: FakeHaply) -> None:
    device = HaplyDevice(url=service.url)
    device.open()
    before, start = service.messages, time.perf_counter()
    for _ in range(200):
        device.write((0.0, 0.0, 0.1))
        time.sleep(0.001)
    asked, taken = service.messages - before, time.perf_counter() - start
    device.close()
    # At most once per force and once per keep-alive; on a busy machine the newest of several forces is sent.
    assert 20 <= asked <= 200 + taken / KEEP_ALIVE + 5


def test_silence_is_a_lost_device(service: FakeHaply) -> None:
    device = HaplyDevice(url=service.url)
    device.open()
    service.silent = True
    with pytest.raises(DeviceError, match="silent"):
        until(lambda: device.read() is None)
    device.close()


@pytest.mark.parametrize("garbage", ["no json", '{"inverse3": [{"device_id": "049D"}]}', "[1, 2]", b"\xff\xfe"])
def test_what_cannot_be_read_is_an_error_and_no_pose(service: FakeHaply, garbage: str | bytes) -> None:
    device = HaplyDevice(url=service.url)
    device.open()
    service.garbage = garbage
    with pytest.raises(DeviceError):
        until(lambda: device.read() is None)
    device.close()


def test_a_force_that_nobody_renews_is_dropped(service: FakeHaply) -> None:
    device = HaplyDevice(url=service.url)
    device.open()
    until(lambda: service.forces.get("049D") == (0.0, 0.0, 3.0), lambda: device.write((0.0, 0.0, 3.0)))
    start = time.perf_counter()
    until(lambda: service.forces["049D"] == (0.0, 0.0, 0.0))
    # The hold and one keep-alive; the rest is leave for a busy machine.
    assert time.perf_counter() - start < FORCE_HOLD + 1.0
    device.close()


def test_a_device_that_is_unplugged_is_told_once_and_comes_back(service: FakeHaply) -> None:
    attached = AttachedDevice(HaplyDevice("049D", service.url), Mapping(), retry=0.05)
    with closing(attached):
        attached.open()
        position = service.positions.pop("049D")
        with pytest.raises(DeviceError, match="unplugged"):
            until(lambda: not attached.read().present)

        def goes_on() -> None:
            assert not attached.read().present  # and does not raise again
            attached.write((0.0, 0.0, 5.0))

        until(lambda: "no Inverse3" in attached.reason, goes_on)
        service.positions["049D"] = position
        until(lambda: attached.read().present)
        assert service.forces["049D"] == (0.0, 0.0, 0.0), "nothing that was written meanwhile arrives"
        until(lambda: service.forces["049D"] == (0.0, 0.0, 1.0), lambda: attached.write((0.0, 0.0, 1.0)))


def test_a_service_that_crashes_and_starts_again(service: FakeHaply) -> None:
    attached = AttachedDevice(HaplyDevice(url=service.url), Mapping(), retry=0.05)
    with closing(attached):
        attached.open()
        service.stop()
        told = 0

        def goes_on() -> None:
            nonlocal told
            try:
                attached.read()
            except DeviceError:
                told += 1

        until(lambda: "does not answer" in attached.reason, goes_on)
        assert told == 1
        service.start()
        until(lambda: attached.read().present)
    assert service.sessions == 2


def test_closing_while_it_is_looked_for(service: FakeHaply) -> None:
    attached = AttachedDevice(HaplyDevice(url=service.url), Mapping(), retry=0.01)
    attached.open()
    service.stop()
    with pytest.raises(DeviceError):
        until(lambda: not attached.read().present)
    attached.close()
    assert not any(thread.name == "find haply" for thread in threading.enumerate())


def test_two_at_once_each_with_its_own_force() -> None:
    with FakeHaply(ids=("049D", "04BA")) as service:
        service.positions["04BA"] = (0.03, -0.12, 0.17)
        tables = {"haply": {"options": {"url": service.url}}}
        devices = make_devices(["haply", "haply:04BA"], tables)
        assert [device.tool for device in devices] == [0, 1]
        for device in devices:
            device.place((0.0, 0.0, 0.1))
            device.open()
        assert devices[0].read().position == pytest.approx((0.0, 0.0, 0.1))
        assert devices[1].read().position == pytest.approx((0.03, 0.0, 0.1))

        def push() -> None:
            devices[0].write((1.0, 0.0, 0.0))
            devices[1].write((0.0, 2.0, 0.0))

        until(lambda: service.forces == {"049D": (1.0, 0.0, 0.0), "04BA": (0.0, 2.0, 0.0)}, push)
        for device in devices:
            device.close()
        assert service.forces == {"049D": (0.0, 0.0, 0.0), "04BA": (0.0, 0.0, 0.0)}


def test_a_grip_points_the_tool_the_way_it_points(service: FakeHaply) -> None:
    """A grip at rest points forward, along its +y; the tool's shaft (+z) then runs back to the user."""
    device = make_device("haply", {"haply": {"options": {"url": service.url}}})
    device.open()
    x, y, z, w = device.read().orientation
    shaft = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert shaft == pytest.approx((0.0, -1.0, 0.0), abs=1e-12)
    # Turned by a quarter about the vertical, it points to the left.
    service.orientation = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    until(lambda: abs(device.read().orientation[0] - x) > 0.1)
    x, y, z, w = device.read().orientation
    shaft = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    assert shaft == pytest.approx((1.0, 0.0, 0.0), abs=1e-12)
    device.close()


def test_without_a_grip_the_tool_is_held_upright() -> None:
    with FakeHaply(grip=False) as service:
        device: HapticDevice = make_device("haply", {"haply": {"options": {"url": service.url}}})
        device.open()
        pose = device.read()
        assert not pose.oriented
        assert pose.orientation == (0.0, 0.0, 0.0, 1.0)
        device.close()


def test_finding_tells_which_are_there() -> None:
    with FakeHaply(ids=("049D", "04BA")) as service:
        found = find_devices({"haply": {"options": {"url": service.url}}})
        names = [one.name for one in found if one.present]
        assert {"haply:049D", "haply:04BA", "pointer", "hand"} <= set(names)
        with pytest.raises(DeviceError, match=r"'04FF' is not there.*049D, 04BA"):
            HaplyDevice("04FF", service.url).open()


@pytest.mark.parametrize("ids", [(), None])
def test_none_there_is_a_sentence_and_the_pointer(ids: tuple[str, ...] | None) -> None:
    """No device at a running service, and no service at all."""
    with FakeHaply(ids=ids or ()) as service:
        if ids is None:
            service.stop()
        devices, sentences = open_devices(["haply"], {"haply": {"tool": 1, "options": {"url": service.url}}})
        assert [(device.name, device.tool) for device in devices] == [("pointer", 1)]
        assert ("no Inverse3" if ids == () else "does not answer") in sentences[0]
        assert "pointer is used instead" in sentences[0]


def test_something_else_at_that_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        def answer() -> None:
            connection, _ = other.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(DeviceError, match="Haply service"):
            HaplyDevice(url=f"ws://127.0.0.1:{port}").open()
    for url in ("http://localhost:1", "ws://", "ws://localhost:notaport"):
        with pytest.raises(InputError, match="url"):
            HaplyDevice(url=url).open()
