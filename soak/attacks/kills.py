"""Processes that are killed, stopped or asked to end at any moment: nothing hangs, and recordings replay bit for
bit."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import session_fake_world
from server_browser import Browser, health
from websockets.exceptions import ConnectionClosed

from soak.attack import Attack, Broken, Case
from viscera.errors import RecordingError
from viscera.server import messages as m
from viscera.session.replay import replay_report

SCRIPT = """
import sys
from pathlib import Path
from server_browser import SCENARIOS
from viscera.server.app import Server
from viscera.server.options import ServerOptions
from viscera.session.process import SessionSpec
import session_fake_world

if __name__ == "__main__":
    spec = SessionSpec(sys.argv[2], recordings=Path(sys.argv[1]), factory=session_fake_world.FACTORY)
    server = Server(spec, SCENARIOS, ServerOptions(port=0))
    server.run(lambda url: print(server.port, flush=True))
"""

END_S = 30.0
"""A server that was asked to end has this long [s]."""


class Elsewhere:
    """A server in a process of its own, as a person starts it."""

    def __init__(self, folder: Path, scenario: str = "fake") -> None:
        script = folder / "serve.py"
        script.write_text(SCRIPT)
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(folder), scenario], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def end(self, way: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(way)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise Broken(f"the server did not end within {END_S:.0f} s of {way.name}") from None


def draw(chance: random.Random, small: bool) -> Case:
    ways = ("kill session", "stop session", "end session", "break", "reset", "choose", "move", "move", "wait")
    steps = [
        {"do": chance.choice(ways), "wait": chance.choice((0.0, 0.02, 0.1, 0.4))}
        for _ in range(chance.choice((1, 2) if small else (1, 3, 6)))
    ]
    return {"steps": steps, "end": chance.choice(("SIGTERM", "SIGINT", "SIGKILL"))}


def attempt(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        there: Any = Elsewhere(folder)
        session = 0
        try:
            with Browser(there) as browser:
                browser.wait(m.FrameMessage, seconds=30.0)
                for number, step in enumerate(case["steps"]):
                    _do(there, browser, step["do"], number)
                    browser.watch(step["wait"])
                session = health(there)["session_pid"] or 0
        except ConnectionClosed as error:
            raise Broken(f"the line was closed: {error}") from error
        finally:
            there.end(signal.Signals[case["end"]])
        _wait_until_gone(session)
        _check(folder)


def _do(there: Any, browser: Browser, what: str, number: int) -> None:
    pid = health(there)["session_pid"]
    if what == "move":
        for sequence in range(20):
            browser.move(100 * number + sequence, position=(0.0, 0.0, 0.001 * sequence))
    elif what == "reset":
        browser.send(m.Control(action="reset", value=number))
    elif what == "choose":
        browser.send(m.Choose(scenario="other", seed=number))
    elif what == "break":
        # A session that is just starting refuses it: again, until it is taken.
        _come_back(there, browser, m.SetParameter(name="break_at", value=1.0))
    elif what == "stop session" and pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            browser.watch(0.3)
            os.kill(pid, signal.SIGCONT)
    elif what in ("kill session", "end session") and pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if what == "kill session" else signal.SIGTERM)
        _come_back(there, browser)


def _come_back(there: Any, browser: Browser, wish: m.SetParameter | None = None) -> None:
    """Restart, as a person does who sees that the session has stopped; `wish` is what stops it."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        if wish is not None:
            browser.send(wish)
        state = health(there)["state"]
        if state in ("crashed", "ended"):
            browser.send(m.Restart())
            browser.wait_state("running", 30.0)
            return
        browser.watch(0.05 if wish is None else 0.5)
    raise Broken(f"a session that was ended is still {health(there)}")


def _wait_until_gone(pid: int, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while pid and time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.02)
    if pid:
        raise Broken(f"the session {pid} outlives its server")


def _check(folder: Path) -> None:
    if list(folder.glob("*.part")):
        raise Broken("half an archive is left")
    for path in [*folder.glob("*.log"), *folder.glob("*.h5")]:
        try:
            done = replay_report(path, factory=session_fake_world.FACTORY)
        except RecordingError as error:
            if "no readable header" in str(error):
                continue  # killed as it began
            raise
        if done.same is False or done.recording.damage:
            raise Broken(f"{path.name}: {done.note}")


ATTACK = Attack("kills", "sessions and servers killed, stopped, ended, broken", draw, attempt, patience=200.0)
