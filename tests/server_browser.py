"""What the server's tests share: a server in a thread, and browsers without pictures."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
import session_fake_world
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from viscera.inputs import ToolInput
from viscera.server import messages as m
from viscera.server.app import Server
from viscera.server.encode import read_message
from viscera.server.options import ServerOptions
from viscera.session.process import SessionSpec

SCENARIOS = [
    m.ScenarioInfo(name=name, title=name, summary="") for name in ("fake", "other", "never", "bug", "full_disk", "big")
]

Kind = TypeVar("Kind")


@contextlib.contextmanager
def running_server(folder: Path, scenario: str = "fake", **options: Any) -> Iterator[Server]:
    """A server on a free port with the fake world; `options` are those of `SessionSpec` and `Server`."""
    for_server = {
        name: options.pop(name)
        for name in ("host", "token", "public", "static", "port", "trainer_token", "database")
        if name in options
    }
    options.setdefault("factory", session_fake_world.FACTORY)
    spec = SessionSpec(scenario, recordings=folder, **options)
    static = {"static": for_server.pop("static")} if "static" in for_server else {}
    server = Server(spec, SCENARIOS, ServerOptions(**{"port": 0, **for_server}), **static)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert server.wait_until_ready(10.0)
        yield server
    finally:
        server.stop()
        thread.join(30.0)
        assert not thread.is_alive(), "the server did not stop"


class Browser:
    """A browser that greets, and answers frames if it is asked to wait for them."""

    def __init__(
        self,
        server: Server,
        *,
        greet: bool = True,
        acknowledge: bool = True,
        query: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.acknowledge = acknowledge
        self.frames = 0
        self.newest: m.FrameMessage | None = None
        address = f"ws://127.0.0.1:{server.port}/ws?{urlencode(query or {})}"
        self._stack = contextlib.ExitStack()
        self.socket: ClientConnection = self._stack.enter_context(
            connect(address, compression=None, max_size=None, open_timeout=10, close_timeout=1, **options)
        )
        self.number = 0
        if greet:
            self.send(m.Hello(protocol=m.PROTOCOL))
            self.number = self.wait(m.Welcome).client

    def send(self, message: Any) -> None:
        self.socket.send(msgspec.msgpack.encode(message))

    def receive(self, seconds: float = 10.0) -> Any:
        data = self.socket.recv(timeout=seconds)
        assert isinstance(data, bytes)
        message = read_message(data)
        if isinstance(message, m.FrameMessage):
            self.frames += 1
            self.newest = message
            if self.acknowledge:
                with contextlib.suppress(ConnectionClosed):  # there may be more to read after the last frame
                    self.send(m.FrameAck(number=message.number))
        return message

    def wait(self, kind: type[Kind], test: Callable[[Kind], bool] = lambda found: True, seconds: float = 15.0) -> Kind:
        """The next message of a kind that passes the test; all others are read and forgotten."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                message = self.receive(max(0.01, end - time.monotonic()))
                if isinstance(message, kind) and test(message):
                    return message
        raise AssertionError(f"no {kind.__name__} within {seconds} s")

    def wait_state(self, state: str, seconds: float = 15.0) -> m.SessionState:
        return self.wait(m.SessionState, lambda found: found.state == state, seconds)

    def move(self, sequence: int, **other: Any) -> None:
        pose = {
            "position": (0.0, 0.0, 0.01),
            "orientation": (0.0, 0.0, 0.0, 1.0),
            "grip": 0.0,
            "active": True,
            "tool": 0,
        }
        self.send(m.Tool(sequence=sequence, input=ToolInput(**{**pose, **other})))

    def watch(self, seconds: float) -> int:
        """Reads for a while; returns how many frames came."""
        end = time.monotonic() + seconds
        before = self.frames
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                self.receive(left)
        return self.frames - before

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def get(server: Server, path: str, **headers: str) -> tuple[int, Any, bytes]:
    """Status, headers and body of a request; redirects are not followed."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def health(server: Server) -> dict[str, Any]:
    return json.loads(get(server, "/api/health")[2])
