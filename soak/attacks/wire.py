"""What a browser may send: whole messages with something wrong in them, bytes, text, floods, half handshakes."""

from __future__ import annotations

import contextlib
import math
import random
import time
from typing import Any

import msgspec
from server_browser import Browser, get
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from soak.attack import Attack, Broken, Case, changed, nasty, pack, unpack
from soak.attacks.serving import check_well, server
from viscera.server import messages as m


def _message(chance: random.Random) -> dict[str, Any]:
    """One that could be sent, or nearly."""
    number = chance.choice((0.0, 1.0, -1.0, 1e9, math.nan, chance.random()))
    vector = [chance.uniform(-0.2, 0.2) for _ in range(3)]
    return chance.choice(
        [
            {"type": "hello", "protocol": chance.choice((m.PROTOCOL, 0, -1))},
            {"type": "tool", "sequence": chance.randrange(2**40), "input": {"tool": chance.randrange(-1, 3),
             "position": vector, "orientation": [0, 0, 0, 1], "grip": number, "active": True, "direct": True}},
            {"type": "set_parameter", "name": chance.choice(("pull", "work", "break_at", "x")), "value": number},
            {"type": "set_table", "name": "stages", "rows": [[chance.randrange(10)] * chance.choice((1, 2, 600))] * 2},
            {"type": "control", "value": number,
             "action": chance.choice(("pause", "resume", "step", "reset", "speed"))},
            {"type": "choose", "scenario": chance.choice(("fake", "other", "never", "bug", "big", "none")),
             "seed": chance.randrange(100), "detail": chance.choice(("", "auto", "2", "x"))},
            {"type": "restart"},
            {"type": "frame_ack", "number": chance.choice((0, -1, 2**62, 5))},
            {"type": "ping", "client_time": number},
        ]
    )  # fmt: skip


def _step(chance: random.Random) -> dict[str, Any]:
    way = chance.random()
    if way < 0.04:
        return {"text": "x" * chance.choice((0, 1, 5000))}
    if way < 0.08:
        return {"raw": pack(chance.randbytes(chance.choice((1, 10, 300))))}
    if way < 0.12:
        return {"new": chance.choice(("", "no greeting", "https://example.com", "null"))}
    if way < 0.16:
        return {"path": chance.choice(("/", "/api/snapshot", "/%00", "/..%2f..", "/assets/" + "x" * 9000, "/ws", "//"))}
    message = _message(chance)
    if way < 0.5:
        part = message["input"] if "input" in message and chance.random() < 0.7 else message
        name = chance.choice(list(part))
        if chance.random() < 0.2:
            del part[name]
        else:
            part[name] = nasty(chance)
    data = msgspec.msgpack.encode(message)
    if way > 0.9:
        data = changed(chance, data)
    return {"send": pack(data), "times": chance.choice((1,) * 20 + (20, 600))}


def draw(chance: random.Random, small: bool) -> Case:
    return {"steps": [_step(chance) for _ in range(chance.choice((1, 5, 20) if small else (1, 10, 60, 200)))]}


def attempt(case: Case) -> None:
    with Browser(server()) as honest, contextlib.ExitStack() as stack:
        browser = stack.enter_context(Browser(server()))
        for step in case["steps"]:
            try:
                browser = _do(browser, step, stack)
            except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError):
                browser = stack.enter_context(Browser(server()))
        check_well(honest)


def _do(browser: Browser, step: dict[str, Any], stack: contextlib.ExitStack) -> Browser:
    if "new" in step:
        origin = step["new"] if step["new"].startswith(("http", "null")) else None
        found = stack.enter_context(Browser(server(), greet=step["new"] != "no greeting", origin=origin))
        if origin:
            raise Broken(f"origin {origin} was let in")
        return found
    if "path" in step:
        status = get(server(), step["path"])[0]
        if status >= 500 and status != 503:
            raise Broken(f"{step['path'][:50]} answers {status}")
    elif "text" in step:
        browser.socket.send(step["text"])
    elif "raw" in step:
        browser.socket.socket.sendall(unpack(step["raw"]))
        time.sleep(0.01)
    else:
        for _ in range(step["times"]):
            browser.socket.send(unpack(step["send"]))
    with contextlib.suppress(TimeoutError):
        browser.receive(0.001)
    return browser


ATTACK = Attack("wire", "messages, bytes, floods, paths, origins", draw, attempt, patience=120.0)
