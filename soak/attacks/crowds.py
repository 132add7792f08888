"""Browsers that are many, slow or silent, beside one that is honest."""

from __future__ import annotations

import contextlib
import random
import socket
import time

import msgspec
from server_browser import Browser
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from soak.attack import Attack, Broken, Case
from soak.attacks.serving import check_well, server
from viscera.server import messages as m

HEAD = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
KEY = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"

FEWEST_FRAMES = 5
"""In a second, to the honest one; 62 on a quiet machine, and there may be 60 others."""

PATIENCE_S = 10.0
"""Until it has had a good second: other programs may use the machine [s]."""

WAYS = {
    "silent": b"",
    "half a line": b"GET / HT",
    "half a handshake": HEAD + KEY,
    "no greeting": HEAD + KEY + b"\r\n",
    "long line": HEAD + KEY + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
    "no http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "gone at once": b"",
    "deaf": b"",
    "never answers": b"",
}


def draw(chance: random.Random, small: bool) -> Case:
    most = 30 if small else 200
    ways = [way for way in WAYS for _ in range(chance.choice((0, 1, 5, chance.randrange(most) // 4)))]
    chance.shuffle(ways)
    return {"steps": ways[:most] or ["silent"]}


def attempt(case: Case) -> None:
    found = server()
    with Browser(found) as honest, contextlib.ExitStack() as stack:
        honest.wait(m.FrameMessage)
        for way in case["steps"]:
            with contextlib.suppress(OSError, TimeoutError, ConnectionClosed, InvalidHandshake):
                _come(way, stack)
        best = 0
        end = time.monotonic() + PATIENCE_S
        while best < FEWEST_FRAMES and time.monotonic() < end:
            best = max(best, honest.watch(1.0))
        if best < FEWEST_FRAMES:
            raise Broken(f"the honest browser got {best} frames in the best second of {PATIENCE_S:.0f}")
        check_well(honest)


def _come(way: str, stack: contextlib.ExitStack) -> None:
    if way in ("deaf", "never answers"):
        browser = stack.enter_context(Browser(server(), acknowledge=False))
        stack.callback(_hang_up, browser.socket.socket)
        if way == "deaf":
            browser.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            for number in range(50):  # frames come and nobody reads them
                browser.socket.send(msgspec.msgpack.encode(m.FrameAck(number=10**6 + number)))
        return
    line = stack.enter_context(socket.create_connection(("127.0.0.1", server().port), timeout=5.0))
    line.sendall(WAYS[way])
    if way == "gone at once":
        line.close()


def _hang_up(line: socket.socket) -> None:
    """Without a word: who is deaf does not hear the answer to a goodbye either."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


ATTACK = Attack("crowds", "many, slow, silent, deaf and half connections", draw, attempt, patience=180.0)
