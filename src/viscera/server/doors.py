"""Who stands in the doors: how many connections there may be, from one address and in all, and how long one may be
silent.

A connection costs a file descriptor whether or not anybody speaks on it. So whoever connects has `REQUEST_S` to make a
request, one address off loopback has `MAX_PER_ADDRESS` connections, and where all places are taken the connection that
has been silent longest makes room for the next one. Nobody who speaks is sent away for somebody who does not.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from viscera.server.closing import LingeringProtocol
from viscera.server.guard import is_loopback

REQUEST_S = 10.0
"""A connection has this long to say what it wants, from its first byte or its beginning [s]."""

MAX_CONNECTIONS = 128
"""In all: 64 browsers and the requests of as many."""

MAX_PER_ADDRESS = 32
"""From one address off loopback. All that comes through a proxy on this machine comes from loopback."""

LONGEST_LINE = 8192
MOST_LINES = 128
"""Of a handshake, as `websockets` reads it [bytes]."""

COMPLAIN_S = 60.0
"""Between two lines in the log about the same trouble [s]."""


class Doors:
    """The connections of one server."""

    def __init__(self) -> None:
        self._from = Counter[str]()
        self._open: dict[asyncio.Protocol, str] = {}
        self._silent: dict[asyncio.Protocol, asyncio.Transport] = {}
        """Those that have not asked for anything yet, the oldest first."""
        self._complained = -COMPLAIN_S

    def enter(self, who: asyncio.Protocol, transport: asyncio.Transport, address: str) -> bool:
        """Lets a new connection in; False where there is no room for it."""
        if self._from[address] >= MAX_PER_ADDRESS and not is_loopback(address):
            return False
        if len(self._open) >= MAX_CONNECTIONS:
            if not self._silent:
                return False
            oldest, line = next(iter(self._silent.items()))
            self.leave(oldest)
            line.abort()
        self._open[who] = address
        self._from[address] += 1
        self._silent[who] = transport
        return True

    def heard(self, who: asyncio.Protocol) -> None:
        self._silent.pop(who, None)

    def leave(self, who: asyncio.Protocol) -> None:
        self._silent.pop(who, None)
        address = self._open.pop(who, None)
        if address is not None:
            self._from[address] -= 1
            if not self._from[address]:
                del self._from[address]

    def complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What the event loop says of trouble. Where descriptors have run out it says so for every connection that
        waits, again and again: one sentence a minute does."""
        if "out of system resource" not in context.get("message", ""):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._complained >= COMPLAIN_S:
            self._complained = time.monotonic()
            print("viscera: no file can be opened any more (ulimit -n); new connections wait.", file=sys.stderr)


class AskingProtocol(H11Protocol):
    """Uvicorn's HTTP protocol, with doors."""

    doors: Doors
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if not self.doors.enter(self, transport, self.client[0] if self.client else ""):
            self._answer(503, "Too many connections are open. Close some, or try again in a moment.")
            return
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        if self._patience is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_request()  # the next request on a line that is kept
        before = self.scope
        super().data_received(data)
        if self.scope is not before:
            self._stop_waiting()
            self.doors.heard(self)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        first = len(event.method) + len(event.target) + len(b"  HTTP/1.1")
        lines = [first, *(len(name) + len(b": ") + len(value) for name, value in self.headers)]
        if max(lines) + len(b"\r\n") > LONGEST_LINE or len(lines) > MOST_LINES:
            self._answer(431, f"A line of this request is longer than {LONGEST_LINE} bytes, or there are too many.")
            return
        self._stop_waiting()
        self.doors.leave(self)  # the socket enters in its own name
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.doors.leave(self)
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        self._patience = self.loop.call_later(REQUEST_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        self._answer(408, f"Nothing was asked for within {REQUEST_S:.0f} s.")

    def _answer(self, status: int, text: str) -> None:
        """The last words on this line. By hand: the parser may be in the middle of something."""
        body = text.encode()
        head = f"HTTP/1.1 {status} {STATUS_PHRASES[status].decode()}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        self.transport.close()


class AskedSocket(LingeringProtocol):
    """The WebSocket that a request has become, with doors."""

    doors: Doors

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.doors.enter(self, transport, self.client[0] if self.client else "")
        self.doors.heard(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.doors.leave(self)
        super().connection_lost(exc)


def protocols(doors: Doors) -> dict[str, Any]:
    """What `uvicorn.Config` needs to use these doors."""
    shared = {"doors": doors}
    return {"http": type("Asking", (AskingProtocol,), shared), "ws": type("Asked", (AskedSocket,), shared)}
