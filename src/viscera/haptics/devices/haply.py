"""Haply Inverse3 and Minverse, through Haply's Inverse Service on a WebSocket (JSON, format 3.1 and newer).

On connecting, the service sends an inventory of what is plugged in. After that it answers each message with exactly one
state of all devices, so a force is sent even when it is zero. Metres and newtons; x right, y forward, z up. Source:
docs.haply.co, Inverse SDK, "WebSocket Protocol" and "Simulation Channel".

A thread of its own talks to the service: `write` leaves the newest force for it and wakes it, `read` takes the newest
pose it has left.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from viscera.errors import DeviceError, InputError
from viscera.haptics.device import FORCE_HOLD, NO_TURN, SILENCE, ZERO, Pose
from viscera.haptics.devices.websocket import JsonChannel
from viscera.inputs import Quaternion, Vector3

ADDRESS = "ws://localhost:10001"
PEAK_FORCE = 10.0
"""Of an Inverse3, about [N]."""

PATIENCE = 2.0
"""For connecting and for the inventory [s]."""
KEEP_ALIVE = 0.005
"""A state is asked for this often even when nobody writes a force [s]."""

_GRIPS = ("wireless_verse_grip", "verse_grip", "custom_verse_grip")
_HINT = "Start the Haply Inverse Service (or the Haply Hub) and plug the device in; then: viscera haptics list."


class HaplyDevice:
    """One Inverse3. `which` is its place in the inventory or its id ("049D"); `form` is how the service wants a force:
    "vector", "values" (older services), or "auto" to tell by the inventory."""

    def __init__(self, which: str = "0", url: str = ADDRESS, form: str = "auto") -> None:
        if form not in ("auto", "vector", "values"):
            raise InputError(f"form = {form!r} is not allowed.", "Use auto, vector or values.")
        self.name = "haply" if which == "0" else f"haply:{which}"
        self.peak_force = PEAK_FORCE
        self.device_id = ""
        self.form = form
        """As it is spoken once the device is open."""
        self._which = which
        self._url = url
        self._asked_form = form
        self._index = 0
        self._lock = threading.Lock()
        self._link: _Link | None = None

    def open(self) -> None:
        self.close()
        channel = _connect(self._url)
        try:
            inventory = channel.receive(time.perf_counter() + PATIENCE)
            found = [one for one in _entries(inventory, "inverse3") if one.get("device_id")]
            self._index, self.device_id = self._choose(found)
            if self._asked_form == "auto":
                self.form = force_form(inventory)
            link = _Link(channel, self.name, self.device_id, self._index, self.form)
            link.exchange(ZERO)  # the first state shows that it answers
        except DeviceError:
            channel.close()
            raise
        link.start()
        with self._lock:
            self._link = link

    def _choose(self, found: list[dict[str, Any]]) -> tuple[int, str]:
        ids = [str(one["device_id"]) for one in found]
        if not ids:
            raise DeviceError(f"the Haply service at {self._url} runs, but no Inverse3 is plugged in.", _HINT)
        if self._which in ids:
            return ids.index(self._which), self._which
        if self._which.isdecimal() and int(self._which) < len(ids):
            return int(self._which), ids[int(self._which)]
        raise DeviceError(
            f"Haply device {self._which!r} is not there.",
            f"There are {', '.join(ids)}, also called 0 to {len(ids) - 1}.",
        )

    def read(self) -> Pose:
        link = self._link
        if link is None:
            raise DeviceError(f"{self.name} is not open.", "Open it first.")
        if link.error is not None:
            raise link.error
        pose = link.pose
        if time.perf_counter() - pose.time > SILENCE:
            raise DeviceError(f"{self.name} has been silent for {SILENCE:g} s.", _HINT)
        return pose

    def write(self, force: Vector3, torque: Vector3 = ZERO) -> None:
        link = self._link
        if link is not None:
            link.push(force)

    def close(self) -> None:
        with self._lock:
            link, self._link = self._link, None
        if link is not None:
            link.stop()


def force_form(inventory: dict[str, Any]) -> str:
    """How this service wants a force. Services from 3.5 number their sessions and tell a control mode; those before
    tell a plain mode, and read "values"."""
    states = [one.get("state", {}) for one in _entries(inventory, "inverse3")]
    old = "session_id" not in inventory and any("mode" in state for state in states)
    return "values" if old else "vector"


class _Link:
    """The thread that exchanges forces for states, and what it last heard."""

    def __init__(self, channel: JsonChannel, name: str, device_id: str, index: int, form: str) -> None:
        self.error: DeviceError | None = None
        self.pose = Pose(ZERO)
        self._channel = channel
        self._name = name
        self._device_id = device_id
        self._index = index
        self._form = form
        self._force = ZERO
        self._written = 0.0
        self._news = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"{name} link", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def push(self, force: Vector3) -> None:
        self._force = force
        self._written = time.perf_counter()
        self._news.set()

    def stop(self) -> None:
        self._stopping = True
        self._news.set()
        self._thread.join(PATIENCE)

    def exchange(self, force: Vector3) -> None:
        x, y, z = force
        command = {"set_cursor_force": {self._form: {"x": x, "y": y, "z": z}}}
        self._channel.send({"inverse3": [{"device_id": self._device_id, "commands": command}]})
        state = self._channel.receive(time.perf_counter() + SILENCE)
        self.pose = self._pose_in(state, time.perf_counter())

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._news.wait(KEEP_ALIVE)
                self._news.clear()
                held = time.perf_counter() - self._written <= FORCE_HOLD
                self.exchange(self._force if held else ZERO)
            self.exchange(ZERO)
        except DeviceError as error:
            self.error = error
        finally:
            self._channel.close()

    def _pose_in(self, message: dict[str, Any], now: float) -> Pose:
        found = [one for one in _entries(message, "inverse3") if one.get("device_id") == self._device_id]
        if not found:
            raise DeviceError(f"{self._name} (Inverse3 {self._device_id}) was unplugged.", _HINT)
        try:
            position = _vector(found[0]["state"]["cursor_position"])
            grip = self._grip_in(message)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DeviceError(
                f"the Haply service sent a state that cannot be read: {type(error).__name__} {error}.",
                "Is it format 3.1 or newer (port 10001)?",
            ) from error
        if grip is None:
            return Pose(position, time=now)
        orientation, buttons, pressed = grip
        return Pose(position, orientation, True, pressed, buttons, now)

    def _grip_in(self, message: dict[str, Any]) -> tuple[Quaternion, int, float] | None:
        """Orientation, buttons and how far it is pressed, of the grip at our place; None if there is none."""
        grips = [one for kind in _GRIPS for one in _entries(message, kind)]
        if self._index >= len(grips):
            return None
        state = grips[self._index].get("state", {})
        q = state.get("orientation", {})
        orientation = (float(q["x"]), float(q["y"]), float(q["z"]), float(q["w"])) if q else NO_TURN
        named = state.get("buttons", {"a": state.get("button", False)})
        buttons = sum(1 << bit for bit, name in enumerate("abc") if named.get(name))
        return orientation, buttons, float(buttons & 1)


def _connect(url: str) -> JsonChannel:
    return JsonChannel(url, "the Haply service", _HINT, PATIENCE)


def list_haply(url: str = ADDRESS) -> list[str]:
    """Ids of the devices that the service knows; `DeviceError` when there is no service."""
    channel = _connect(url)
    try:
        inventory = channel.receive(time.perf_counter() + PATIENCE)
    finally:
        channel.close()
    return [str(one["device_id"]) for one in _entries(inventory, "inverse3") if one.get("device_id")]


def _entries(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    found = message.get(kind)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _vector(value: dict[str, Any]) -> Vector3:
    return (float(value["x"]), float(value["y"]), float(value["z"]))
