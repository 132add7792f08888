"""Kill -9 of any process in the middle of a trial: nothing of it is lost but the last second, and what had ended is
kept, once. Real servers, each in a process of its own, and a real world."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

import pytest
from server_browser import Browser

from viscera.inputs import StartDrill
from viscera.server import messages as m
from viscera.session.archive import read_recording
from viscera.session.replay import feed, make_world, replay_report
from viscera.training.database import open_database
from viscera.training.store import KeptTrial, Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]

SEED = 3
LOST = 1.0
"""The most that a killed process may lose [s]."""
PATIENCE = 240.0
"""A machine that others use is slow [s]."""
DIES = """
import os, signal, sys
from viscera.training.store import Store
Store.keep = lambda *given, **named: os.kill(os.getpid(), signal.SIGKILL)
from viscera.cli import app
sys.argv[0] = "viscera"
app()
"""
"""A server that is killed when a trial has ended, and before it is in the database."""


class Server:
    """In a process of its own. `port` and `url` are known once it answers."""

    def __init__(self, folder: Path, database: str, *, dies: bool = False, trainer: str = "") -> None:
        how = ["-c", DIES] if dies else ["-m", "viscera"]
        command = [sys.executable, *how, "serve", "palpation", "--port", "0", "--seed", str(SEED), "--detail", "0.3"]
        command += ["--device", "cpu", "--cores", "1", "--out", str(folder), "--database", database]
        command += ["--trainer-token", trainer] if trainer else []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = next(found.group() for line in self.process.stdout if (found := re.search(r"http://\S+", line)))
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])

    def health(self) -> dict[str, Any]:
        return json.loads(urlopen(f"{self.url}api/health", timeout=20).read())

    def enter(self, trainee: str, code: str = "", *, trainer: str = "") -> tuple[str, dict[str, Any]]:
        """The cookie, and what was answered."""
        body = json.dumps({"trainer": trainer} if trainer else {"trainee": trainee, "code": code}).encode()
        asked = Request(f"{self.url}training/enter", body, {"Content-Type": "application/json"})
        with urlopen(asked, timeout=30) as answer:
            return answer.headers["Set-Cookie"].split(";")[0], json.loads(answer.read())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


@contextlib.contextmanager
def serving(folder: Path, database: str, **how: Any) -> Iterator[Server]:
    server = Server(folder, database, **how)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def trainee(server: Server, cookie: str) -> Iterator[Browser]:
    """A browser of somebody who has entered, with a world that runs."""
    there: Any = SimpleNamespace(port=server.port)
    with Browser(there, additional_headers={"Cookie": cookie}) as browser:
        browser.wait(m.FrameMessage, seconds=PATIENCE)
        yield browser


def begin(browser: Browser, seconds: float = 2.5) -> m.FrameMessage:
    """A drill that runs for so long [s], with a hand that moves; the newest picture of it."""
    browser.send(m.Drill(action="start", level=0, seed=SEED))
    number = 0

    def runs(frame: m.FrameMessage) -> bool:
        nonlocal number
        number += 1
        browser.move(number, position=(0.0001 * (number % 200), 0.0, 0.03))
        drill = frame.state.drill
        return drill is not None and drill.phase == "running" and drill.time > seconds

    return browser.wait(m.FrameMessage, runs, seconds=PATIENCE)


def eventually(ask: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := ask():
            return found
        time.sleep(0.2)
    raise AssertionError("it never came")


def kept(database: str) -> list[KeptTrial]:
    store = Store(open_database(database))
    try:
        return store.trials()
    finally:
        store.close()


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'trials.sqlite'}"


def test_a_session_that_is_killed_in_a_drill_goes_on_with_it(tmp_path: Path, database: str) -> None:
    folder = tmp_path / "recordings"
    with serving(folder, database) as server:
        cookie, told = server.enter("Ada")
        assert told["trainee"] == "Ada"
        with trainee(server, cookie) as browser:
            before = begin(browser)
            os.kill(server.health()["session_pid"], signal.SIGKILL)
            browser.wait_state("crashed", PATIENCE)
            browser.send(m.Restart())
            browser.wait(m.SceneDescription, seconds=PATIENCE)
            after = browser.wait(m.FrameMessage, seconds=PATIENCE).state
            assert after.drill is not None
            assert before.state.drill is not None
            assert after.drill.phase == "running"
            assert after.drill.time > before.state.drill.time - LOST
            browser.send(m.Drill(action="give_up"))
            score = browser.wait(m.TrialScore, seconds=PATIENCE).score
            assert score.values()["time"] >= after.drill.time
            standing = browser.wait(m.Standing, seconds=PATIENCE)
            assert (standing.trainee, standing.trials) == ("Ada", 1), "it is still hers"
    (trial,) = kept(database)
    assert trial.values == pytest.approx(score.values())
    (archive,) = folder.glob("*.h5")
    done = replay_report(archive)
    assert done.same
    assert [one.values() for one in done.scores] == [one.values for one in done.recording.trials], "nothing is missing"


def test_a_server_that_is_killed_in_a_drill_leaves_all_of_it(tmp_path: Path, database: str) -> None:
    folder = tmp_path / "recordings"
    with serving(folder, database) as server:
        with trainee(server, server.enter("Ada")[0]) as browser:
            before = begin(browser)
            server.kill()
        (archive,) = eventually(lambda: list(folder.glob("*.h5")))
    recording = read_recording(archive)
    assert recording.tick > before.state.tick - 1000.0 * LOST
    assert StartDrill(0, SEED) in [one for _, one in recording.inputs]
    world = make_world(recording)
    feed(world, recording)
    state = world.drill_state()
    world.close()
    assert before.state.drill is not None
    assert (state.phase, state.time > before.state.drill.time - LOST) == ("running", True)
    assert kept(database) == []


def test_a_trial_that_a_killed_server_had_not_kept_is_kept_at_the_next_start(tmp_path: Path, database: str) -> None:
    folder = tmp_path / "recordings"
    with serving(folder, database, dies=True) as server:
        cookie, told = server.enter("Ada")
        with trainee(server, cookie) as browser:
            begin(browser, 1.0)
            browser.send(m.Drill(action="give_up"))
            server.process.wait(PATIENCE)
        assert server.process.returncode == -signal.SIGKILL
    eventually(lambda: list(folder.glob("*.h5")))
    assert kept(database) == [], "it died before"
    for _ in range(2):
        with serving(folder, database) as server:
            eventually(lambda: kept(database))
            assert server.enter("Ada", told["code"])[1]["trainee"] == "Ada"
    (trial,) = kept(database)
    (recording,) = [read_recording(path) for path in folder.glob("*.h5") if read_recording(path).trials]
    (record,) = recording.trials
    assert (trial.trainee, trial.id, trial.outcome) == ("Ada", record.id, "given_up")
    assert trial.values == pytest.approx(record.values)


def test_two_servers_share_a_database_and_a_folder(tmp_path: Path, database: str) -> None:
    """Both begin at once, on a database that is not there yet; a name is one person's on both."""
    folder = tmp_path / "recordings"
    trials = 3
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(serving(folder, database)) for _ in range(2)]
        names = ("Ada", "Grace")
        entered = [server.enter(name) for server, name in zip(both, names, strict=True)]
        other, _ = both[1].enter("Ada", entered[0][1]["code"])
        assert other
        browsers = [
            stack.enter_context(trainee(server, cookie)) for server, (cookie, _) in zip(both, entered, strict=True)
        ]
        for number in range(1, trials + 1):
            for browser in browsers:
                browser.send(m.Drill(action="start", level=0, seed=number))
            for browser in browsers:
                browser.wait(
                    m.FrameMessage,
                    lambda frame: frame.state.drill is not None and frame.state.drill.phase == "running",
                    seconds=PATIENCE,
                )
                browser.send(m.Drill(action="give_up"))
            for browser, name in zip(browsers, names, strict=True):
                standing = browser.wait(m.Standing, seconds=PATIENCE)
                assert (standing.trainee, standing.trials) == (name, number)
    found = kept(database)
    assert len({trial.id for trial in found}) == len(found) == 2 * trials
    for name in names:
        mine = [trial for trial in found if trial.trainee == name]
        assert [trial.seed for trial in mine] == [1, 2, 3]
        assert all(trial.values["time"] == trial.time for trial in mine)
