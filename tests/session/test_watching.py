"""A recording that is watched is the same world at every moment, whichever way one comes there; and one may go on from
any of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import session_fake_world
from server_browser import Browser, get, running_server

from viscera.errors import RecordingError
from viscera.inputs import SetParameter, ToolInput
from viscera.server import messages as m
from viscera.session import commands as c
from viscera.session import playing
from viscera.session.archive import convert, read_recording
from viscera.session.catalogue import find, list_recordings, write_summary
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import feed
from viscera.session.watching import Watching

LENGTH = 2_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of the fake world with a hand that moves, and one checkpoint."""
    folder = tmp_path_factory.mktemp("recordings")
    recorder = Recorder.create(folder, make_header("fake", 3, "fake"))
    world = session_fake_world.make("fake", seed=3)
    for tick in range(LENGTH):
        if tick == 960:
            recorder.checkpoint(tick, world.save_state())
        if tick % 50 == 0:
            given = ToolInput(0, (0.0, 0.0, 0.001 * (tick % 300)))
            world.apply(given)
            recorder.input(tick, given)
        if tick == 700:
            world.apply(SetParameter("pull", 5.0))
            recorder.input(tick, SetParameter("pull", 5.0))
        world.step()
    recorder.finish(world.tick, world.state_hash())
    path = convert(recorder.path)
    write_summary(path)
    return path


def hash_at(archive: Path, tick: int) -> str:
    world = session_fake_world.make("fake", seed=3)
    feed(world, read_recording(archive), until=tick)
    return world.state_hash()


class Nothing:
    """Commands that never come, reports that nobody hears, pictures that nobody sees."""

    shown = 0

    def take(self) -> list[Any]:
        return []

    def wait(self, seconds: float) -> None:
        pass

    def offer(self, message: object) -> None:
        pass

    send = offer

    def publish(self, frame: object, write_arrays: object) -> None:
        self.shown += 1


def test_every_moment_is_the_same_from_wherever_one_jumps(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "KEEP_TICKS", 320)
    nothing: Any = Nothing()
    recording = read_recording(archive)
    player = Watching(session_fake_world.make("fake", seed=3), recording, nothing, nothing, nothing)
    for tick in (640, 160, 1_999, 970, 961, 0, 1_280, 1_279):
        player.obey(c.Seek(tick))
        player._jump()
        assert player.world.tick == tick
        assert player.world.state_hash() == hash_at(archive, tick), f"at {tick}"
    player.obey(c.Seek(10**6))
    player._jump()
    assert player.world.state_hash() == recording.state_hash


def test_recordings_are_listed_and_nothing_outside_their_folder_is_found(archive: Path) -> None:
    (found,) = list_recordings(archive.parent)
    assert (found.name, found.scenario, found.seed, found.seconds, found.complete) == (
        archive.name,
        "fake",
        3,
        2.0,
        True,
    )
    assert find(archive.parent, archive.name) == archive
    for name in ("../secret.h5", "/etc/passwd", "none.h5", archive.with_suffix(".json").name):
        with pytest.raises(RecordingError, match="is not there"):
            find(archive.parent, name)
    assert list_recordings(archive.parent / "nowhere") == []


def test_a_page_watches_jumps_and_tries_again_from_there(archive: Path) -> None:
    with running_server(archive.parent) as server, Browser(server) as browser:
        browser.wait_state("running")
        assert archive.name in str(get(server, "/api/recordings")[2])
        browser.send(m.Watch(recording="none.h5"))
        assert "is not there" in browser.wait(m.Problem).message
        browser.send(m.Watch(recording=archive.name, at=0.5))
        shown = browser.wait(m.SessionState, lambda state: state.watched is not None).watched
        assert shown is not None
        assert (shown.recording, shown.seconds) == (archive.name, 2.0)
        browser.wait(m.FrameMessage, lambda frame: frame.state.tick >= 500)
        browser.send(m.Control(action="pause"))
        browser.wait_state("paused")
        browser.send(m.Seek(at=1.28))
        browser.wait(m.FrameMessage, lambda frame: frame.state.tick == 1_280)
        browser.send(m.Control(action="speed", value=8.0))
        browser.wait(m.SessionState, lambda state: state.speed == 8.0)
        browser.send(m.Seek(again=True))
        live = browser.wait(m.SessionState, lambda state: state.state == "running" and state.watched is None)
        assert "Goes on from" in live.message
        browser.wait(m.FrameMessage, lambda frame: frame.state.tick > 1_280)
        log = next(path for path in archive.parent.glob("*.log") if read_recording(path).inputs)
        copied = [entry for entry in read_recording(archive).inputs if entry[0] <= 1_280]
        end = time.monotonic() + 10.0
        while len(read_recording(log).inputs) < len(copied) and time.monotonic() < end:
            time.sleep(0.1)
        assert read_recording(log).inputs[: len(copied)] == copied, "the new recording begins as the old one"
