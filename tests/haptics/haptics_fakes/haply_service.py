"""A stand-in for Haply's Inverse Service: an inventory on connecting, then exactly one state per message, over a real
socket. As the service it is told to be, it speaks `vector` (3.5) or `values` (3.1), and obeys that form alone."""

from __future__ import annotations

import json
import threading
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

Vector = tuple[float, float, float]


class FakeHaply:
    """A service on a free port. Everything that is public may be changed while it runs."""

    def __init__(self, form: str = "vector", ids: tuple[str, ...] = ("049D",), grip: bool = True) -> None:
        self.form = form
        self.positions: dict[str, Vector] = dict.fromkeys(ids, (0.0, -0.12, 0.17))
        """Of what is plugged in [m]."""
        self.forces: dict[str, Vector] = {}
        """As last commanded [N]."""
        self.orientation = (0.0, 0.0, 0.0, 1.0)
        self.buttons: dict[str, bool] = {"a": False, "b": False, "c": False}
        self.grip = grip
        self.silent = False
        self.garbage: str | bytes | None = None
        """Sent instead of a state."""
        self.refused: list[str] = []
        """Commands that were not understood."""
        self.messages = 0
        self.sessions = 0
        self._connections: set[ServerConnection] = set()
        self._server: Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self._port}"

    def start(self) -> FakeHaply:
        """On a free port the first time, on the same one again afterwards."""
        self._server = serve(self._talk, "127.0.0.1", self._port, compression=None)
        self._port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server = None
        self.drop()

    def drop(self) -> None:
        """Closes every connection, as a service that crashes."""
        for connection in list(self._connections):
            connection.socket.close()

    def __enter__(self) -> FakeHaply:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _talk(self, connection: ServerConnection) -> None:
        self._connections.add(connection)
        self.sessions += 1
        try:
            connection.send(json.dumps(self._inventory()))
            for message in connection:
                self.messages += 1
                self._obey(json.loads(message))
                if not self.silent:
                    connection.send(self.garbage if self.garbage is not None else json.dumps(self._state()))
        except (ConnectionClosed, OSError):
            pass
        finally:
            self._connections.discard(connection)

    def _obey(self, message: dict[str, Any]) -> None:
        for one in message.get("inverse3", []):
            command = one["commands"]["set_cursor_force"]
            if set(command) != {self.form}:
                self.refused.append(json.dumps(command))
                continue
            vector = command[self.form]
            self.forces[one["device_id"]] = (vector["x"], vector["y"], vector["z"])

    def _inventory(self) -> dict[str, Any]:
        message = self._state()
        for one in message["inverse3"]:
            one["config"] = {"type": "inverse3", "handedness": "right", "gravity_compensation": {"enabled": True}}
        if self.form == "vector":
            message["session_id"] = self.sessions
        return message

    def _state(self) -> dict[str, Any]:
        mode = {"control_mode": "idle", "control_domain": "cartesian"} if self.form == "vector" else {"mode": "idle"}
        message: dict[str, Any] = {
            "inverse3": [
                {
                    "device_id": one,
                    "state": {"cursor_position": _named(position), "cursor_velocity": _named((0.0, 0.0, 0.0)), **mode},
                    "status": {"calibrated": True, "in_use": True, "power_supply": True, "ready": True},
                }
                for one, position in self.positions.items()
            ],
            "verse_grip": [],
            "wireless_verse_grip": [],
        }
        if self.grip:
            x, y, z, w = self.orientation
            turned = {"x": x, "y": y, "z": z, "w": w}
            message["wireless_verse_grip"] = [
                {"device_id": "61548", "state": {"orientation": turned, "buttons": dict(self.buttons)}}
            ]
        return message


def _named(vector: Vector) -> dict[str, float]:
    return dict(zip("xyz", vector, strict=True))
