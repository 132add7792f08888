"""What may happen to a session while people watch: it dies, breaks, is switched, cannot start, cannot be recorded."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import session_fake_world
from server_browser import Browser, get, health, running_server

from viscera.server import messages as m
from viscera.session.archive import read_recording
from viscera.session.replay import replay_report

FACTORY = session_fake_world.FACTORY


def logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def archives(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.h5"))


def test_live_headless_and_replay_give_the_same_world(tmp_path: Path) -> None:
    with running_server(tmp_path, seed=5, parameters={"pull": 2.0}) as server, Browser(server) as browser:
        browser.wait(m.FrameMessage)
        for sequence in range(60):
            browser.move(sequence, position=(0.0, 0.0, 0.001 * sequence))
            browser.watch(0.01)
        browser.send(m.SetParameter(name="pull", value=4.0))
        browser.wait(m.FrameMessage, lambda frame: frame.state.parameters["pull"] == 4.0)
        browser.send(m.Control(action="reset", value=6))
        browser.wait(m.SceneDescription, lambda found: found.scene.seed == 6)
        browser.move(100)
        browser.wait(m.FrameMessage, lambda frame: (browser.number, 100) in frame.state.applied)
    (archive,) = archives(tmp_path)
    assert logs(tmp_path) == []
    done = replay_report(archive, factory=FACTORY)
    assert done.same is True
    recording = done.recording
    assert (recording.header.scenario, recording.header.seed) == ("fake", 5)
    assert recording.header.parameters == {"pull": 2.0}
    headless = session_fake_world.make("fake", seed=5, parameters={"pull": 2.0})
    inputs = list(recording.inputs)
    for tick in range(recording.tick):
        while inputs and inputs[0][0] == tick:
            headless.apply(inputs.pop(0)[1])
        headless.step(1)
    assert headless.state_hash() == recording.state_hash


def test_kill_9_is_told_and_restart_goes_on_from_the_log(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, Browser(server) as browser:
        browser.wait(m.FrameMessage)
        browser.move(1, position=(0.0, 0.0, 0.03))
        browser.wait(m.FrameMessage, lambda frame: frame.state.tick > 2500, 30.0)
        pid = health(server)["session_pid"]
        killed = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        tick = 0
        while not (isinstance(message := browser.receive(), m.SessionState) and message.state == "crashed"):
            tick = message.state.tick if isinstance(message, m.FrameMessage) else tick
        assert time.monotonic() - killed < 1.0  # 0.04 s on a quiet machine
        assert "SIGKILL" in message.message
        assert "Restart" in message.message
        # The server lives, and shows who comes now what was last seen.
        with Browser(server) as late:
            assert late.wait_state("crashed").message == message.message
            assert late.wait(m.FrameMessage).state.tick >= tick
        (log,) = logs(tmp_path)
        browser.send(m.Restart())
        browser.wait_state("running")
        frame = browser.wait(m.FrameMessage)
        lost = tick - frame.state.tick
        assert lost <= 1000
        assert frame.state.tick > 1000
        assert frame.session == 2
        assert frame.state.tools[0].position == (0.0, 0.0, 0.03)
        assert health(server)["session_pid"] != pid
        assert logs(tmp_path) == [log]
    (archive,) = archives(tmp_path)
    assert replay_report(archive, factory=FACTORY).same is True


def test_a_state_that_breaks_is_told_with_stage_and_tick_and_restart_goes_back(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, Browser(server) as browser:
        browser.wait(m.FrameMessage)
        browser.send(m.SetParameter(name="break_at", value=600))
        state = browser.wait_state("crashed")
        for part in ("swing", "tick 600", "not finite", "softer", "Restart"):
            assert part in state.message
        browser.send(m.SetParameter(name="pull", value=1.0))
        assert browser.wait(m.Problem).code == "refused"
        browser.send(m.Restart())
        assert "before the state broke" in browser.wait_state("running").message
        browser.wait(m.FrameMessage, lambda frame: frame.session == 2 and frame.state.tick > 700)
    assert len(logs(tmp_path)) == 1  # what led to the failure is kept
    failed = read_recording(logs(tmp_path)[0])
    assert failed.failure is not None
    assert failed.failure.tick == 600
    assert replay_report(archives(tmp_path)[0], factory=FACTORY).same is True


def test_choose_switches_for_everyone_and_closes_the_old_recording(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, Browser(server) as first, Browser(server) as second:
        first.wait(m.FrameMessage)
        first.send(m.Choose(scenario="other", seed=8))
        for browser in (first, second):
            browser.wait_state("starting")
            scene = browser.wait(m.SceneDescription, lambda found: found.session == 2)
            assert (scene.scene.scenario, scene.scene.seed) == ("other", 8)
            assert browser.wait(m.FrameMessage).session == 2
    assert sorted(read_recording(path).header.scenario for path in archives(tmp_path)) == ["fake", "other"]


def test_detail_is_chosen_shown_and_recorded(tmp_path: Path) -> None:
    """What was asked for and what it came to; a choice of another scenario keeps what was asked for."""
    with running_server(tmp_path, detail="auto") as server, Browser(server) as browser:
        found = [browser.wait(m.SceneDescription)]
        browser.wait(m.FrameMessage)
        for session, choice in ((2, m.Choose(scenario="other")), (3, m.Choose(scenario="other", detail="2"))):
            browser.send(choice)
            found.append(browser.wait(m.SceneDescription, lambda scene, session=session: scene.session == session))
            browser.wait(m.FrameMessage, lambda frame, session=session: frame.session == session)
        for wrong in ("much", "0", "nan"):
            browser.send(m.Choose(scenario="other", detail=wrong))
            problem = browser.wait(m.Problem)
            assert (problem.code, "detail" in problem.message, bool(problem.hint)) == ("input", True, True)
    carried = session_fake_world.CARRIED
    assert [(one.detail, one.scene.detail) for one in found] == [("auto", carried), ("auto", carried), ("2", 2.0)]
    recorded = sorted(read_recording(path).header.detail for path in archives(tmp_path))
    assert recorded == [carried, carried, 2.0]


@pytest.mark.parametrize(
    ("scenario", "names"), [("never", "size = -1 is not allowed. Use a positive size."), ("bug", "ZeroDivisionError")]
)
def test_a_session_that_cannot_start_says_why_and_another_can(tmp_path: Path, scenario: str, names: str) -> None:
    with running_server(tmp_path, scenario) as server, Browser(server) as browser:
        assert names in browser.wait_state("crashed").message
        assert get(server, "/api/snapshot")[0] == 503
        browser.send(m.Restart())
        browser.wait_state("starting")
        browser.wait_state("crashed")
        browser.send(m.Choose(scenario="fake"))
        browser.wait_state("running")
        browser.wait(m.FrameMessage)


def test_progress_is_told_while_it_starts_and_it_can_be_stopped_meanwhile(tmp_path: Path) -> None:
    started = time.monotonic()
    with running_server(tmp_path, "slow_start") as server, Browser(server) as browser:
        state = browser.wait(m.SessionState, lambda found: "compiled part" in found.message and found.progress > 0.1)
        assert state.state == "starting"
        browser.send(m.Choose(scenario="fake"))
        assert browser.wait(m.Problem).code == "refused"
    assert time.monotonic() - started < 10.0
    assert logs(tmp_path) == archives(tmp_path) == []


def test_a_disk_that_gets_full_is_told_and_the_world_goes_on(tmp_path: Path) -> None:
    with running_server(tmp_path, "full_disk") as server, Browser(server) as browser:
        browser.wait(m.FrameMessage)
        state = None
        for sequence in range(1000):
            browser.move(sequence)
            message = browser.receive()
            if isinstance(message, m.SessionState) and message.notice:
                state = message
                break
        assert state is not None
        assert state.state == "running"
        assert "disk is full" in state.notice
        assert "simulation goes on" in state.notice
        tick = browser.wait(m.FrameMessage).state.tick
        browser.wait(m.FrameMessage, lambda frame: frame.state.tick > tick + 100)
    (kept,) = [*logs(tmp_path), *archives(tmp_path)]
    found = read_recording(kept)
    assert len(found.inputs) > 10
    assert replay_report(kept, factory=FACTORY).same is None


def test_a_folder_that_cannot_be_written_is_told_and_the_world_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with running_server(tmp_path / "file" / "recordings") as server, Browser(server) as browser:
        notice = browser.wait(m.SessionState, lambda found: bool(found.notice)).notice
        assert "not recorded" in notice
        assert str(tmp_path / "file" / "recordings") in notice
        assert "--out" in notice
        browser.wait(m.FrameMessage)


SERVER_SCRIPT = """
import sys
from pathlib import Path
from server_browser import SCENARIOS
from viscera.server.app import Server
from viscera.server.options import ServerOptions
from viscera.session.process import SessionSpec
import session_fake_world

if __name__ == "__main__":
    spec = SessionSpec("fake", recordings=Path(sys.argv[1]), factory=session_fake_world.FACTORY)
    server = Server(spec, SCENARIOS, ServerOptions(port=0))
    server.run(lambda url: print(server.port, flush=True))
"""


class Elsewhere:
    """A server in a process of its own, as a person starts it."""

    def __init__(self, folder: Path) -> None:
        script = folder / "serve.py"
        script.write_text(SERVER_SCRIPT)
        # Before what is there already, so that the sources under test are the same in all processes.
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())


def wait_until_gone(pid: int, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_when_the_server_goes_the_session_closes_its_recording_and_goes_too(
    tmp_path: Path, way: signal.Signals
) -> None:
    elsewhere: Any = Elsewhere(tmp_path)
    with Browser(elsewhere) as browser:
        browser.wait(m.FrameMessage)
        pid = health(elsewhere)["session_pid"]
        if way == signal.SIGINT:
            os.killpg(elsewhere.process.pid, way)  # as Ctrl-C in a terminal does, to all of them
        else:
            elsewhere.process.send_signal(way)
        with contextlib.suppress(Exception):
            browser.watch(1.0)
        elsewhere.process.wait(20.0)
        wait_until_gone(pid)
    (archive,) = archives(tmp_path)
    assert replay_report(archive, factory=FACTORY).same is True


def test_exact_snapshots_are_there_for_programs(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, Browser(server) as browser:
        browser.wait(m.FrameMessage)
        status, headers, body = get(server, "/api/snapshot")
        assert status == 200
        assert headers["Content-Type"] == "application/vnd.msgpack"
        found = msgspec.msgpack.decode(body, type=m.ExactSnapshot)
        assert found.arrays[0].components == 3
        assert len(found.arrays[0].data) == 12 * found.arrays[0].count
