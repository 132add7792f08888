"""A server with the fake world that attacks share, an honest browser on it, and how it gets well again."""

from __future__ import annotations

import contextlib
import functools
import logging
import tempfile
import time
from pathlib import Path

import session_fake_world
from server_browser import Browser, get, health, running_server

from soak.attack import Broken
from viscera.server import messages as m
from viscera.server.app import Server

WELL_S = 30.0
"""A server has this long to show frames again after an attack [s]."""

BY_DESIGN = ("velocity is not finite", "size = -1", "ZeroDivisionError: a mistake of ours", "disk is full")
"""What the fake world says when it is told to break."""

errors: list[str] = []
"""What uvicorn has logged as errors since they were last looked at."""


@functools.cache
def server() -> Server:
    """Runs until the process ends."""
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(record.getMessage())
    logging.getLogger("uvicorn.error").addHandler(handler)
    stack = contextlib.ExitStack()
    folder = Path(tempfile.mkdtemp(prefix="viscera-soak-"))
    found = stack.enter_context(running_server(folder, factory=session_fake_world.FACTORY))
    found.__dict__["kept"] = stack  # as long as the server
    return found


def check_well(honest: Browser) -> None:
    """Raises `Broken` unless an honest browser gets new frames soon and nothing was logged as an error."""
    if errors:
        text = errors[0]
        errors.clear()
        raise Broken(f"logged: {text}")
    found = server()
    start = time.monotonic()
    if get(found, "/api/health")[0] != 200:
        raise Broken("/api/health does not answer")
    if time.monotonic() - start > 10.0:
        raise Broken("/api/health took more than 10 s")
    tick = health(found)["tick"]
    end = time.monotonic() + WELL_S
    asked = 0.0
    while time.monotonic() < end:
        if time.monotonic() - asked > 1.0:
            asked = time.monotonic()
            _ask_to_go_on(honest, found)
        with contextlib.suppress(TimeoutError):
            message = honest.receive(0.5)
            if isinstance(message, m.FrameMessage) and message.state.tick != tick:
                return
    raise Broken(f"no new frame within {WELL_S:.0f} s: {health(found)}")


def _ask_to_go_on(honest: Browser, found: Server) -> None:
    """What a person would do who finds the session paused, slow or stopped."""
    now = health(found)
    if now["state"] in ("crashed", "ended"):
        if now["state"] == "crashed" and not any(words in now["message"] for words in BY_DESIGN):
            raise Broken(f"crashed: {now['message']}")
        honest.send(m.Choose(scenario="fake"))
        return
    for message in (
        m.SetParameter(name="work", value=0.0),
        m.SetParameter(name="break_at", value=0.0),
        m.Control(action="speed", value=1.0),
        m.Control(action="resume"),
    ):
        honest.send(message)
