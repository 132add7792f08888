"""A recording that is watched is the same world at every moment, whichever way one comes there; and one may go on from
any of them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import session_fake_world
from server_browser import Browser, get, running_server
from websockets.exceptions import ConnectionClosed

from viscera.errors import RecordingError
from viscera.inputs import Reset, SetParameter, ToolInput
from viscera.server import messages as m
from viscera.session import commands as c
from viscera.session import playing
from viscera.session.archive import convert, read_recording
from viscera.session.catalogue import find, list_recordings, write_summary
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import feed, other_ground
from viscera.session.stills import MAGIC, Stills, StillWriter, stills_path
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


@pytest.mark.slow
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
    assert find(archive.parent, archive.with_suffix(".log").name) == archive, "as it was called while it ran"
    for name in ("../secret.h5", "/etc/passwd", "none.h5", archive.with_suffix(".json").name):
        with pytest.raises(RecordingError, match="is not there"):
            find(archive.parent, name)
    assert list_recordings(archive.parent / "nowhere") == []


def test_who_watches_what_another_version_recorded_is_told(archive: Path) -> None:
    recording, world = read_recording(archive), session_fake_world.make("fake", seed=3)
    assert other_ground(recording, world) == ""
    recording.header.versions["viscera"] = "0.0.1"
    recording.header.device = "cuda:3"
    told = other_ground(recording, world)
    assert told == (
        "Recorded with device cuda:3, viscera 0.0.1: what is computed here may differ from what was seen then."
    )


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
        lived = [path for path in archive.parent.glob("fake*.h5") if path != archive]
        assert any(len(Stills(path)) for path in lived), "a live session keeps pictures too"
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


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds without a checkpoint, with a still every second; another seed from 3 s on."""
    recorder = Recorder.create(tmp_path_factory.mktemp("pictured"), make_header("fake", 3, "fake"))
    world = session_fake_world.make("fake", seed=3)
    kept = StillWriter(recorder.path)
    for tick in range(6_000):
        if tick % 50 == 0:
            given: Any = Reset(4) if tick == 3_000 else ToolInput(0, (0.0, 0.0, 0.001 * (tick % 300)))
            world.apply(given)
            recorder.input(tick, given)
        world.step()
        kept.see(world)
    kept.close()
    recorder.finish(world.tick, world.state_hash())
    return convert(recorder.path)


def test_who_tries_again_while_a_jump_is_computed_begins_at_what_was_asked_for(pictured: Path) -> None:
    with running_server(pictured.parent) as server, Browser(server) as browser:
        browser.wait_state("running")
        browser.send(m.Watch(recording=pictured.name))
        browser.wait(m.SessionState, lambda state: state.state == "running" and state.watched is not None)
        browser.send(m.Control(action="pause"))
        browser.wait_state("paused")
        browser.send(m.Seek(at=5.5))
        browser.send(m.Seek(again=True))
        live = browser.wait(m.SessionState, lambda state: state.state == "running" and state.watched is None)
        assert "Goes on from" in live.message
        assert browser.wait(m.FrameMessage).state.tick >= 5_500


class Heard(Nothing):
    """What a page would see and hear, in order."""

    def __init__(self, world: Any) -> None:
        self.said: list[Any] = []
        self.seen: list[tuple[int, Any]] = []
        self._specs = world.array_specs()

    def offer(self, message: object) -> None:
        self.said.append(message)

    send = offer

    def publish(self, frame: Any, write_arrays: Any) -> None:
        arrays = {name: np.zeros(spec.shape, spec.kind) for name, spec in self._specs.items()}
        write_arrays(arrays)
        self.seen.append((frame.tick, arrays))


def test_a_jump_shows_the_stored_picture_first_and_then_the_computed_one(pictured: Path) -> None:
    world = session_fake_world.make("fake", seed=3)
    heard: Any = Heard(world)
    player = Watching(world, read_recording(pictured), heard, heard, heard)
    player.obey(c.Seek(5_500))
    player._jump()
    (first, stored), (last, computed) = heard.seen[0], heard.seen[-1]
    assert (first, last, world.tick) == (5_008, 5_500, 5_500), "the second's picture, and then the very moment"
    sources = [one for one in heard.said if isinstance(one, c.Source)]
    assert sources[0] == c.Source(True, 0.0)
    assert sources[-1] == c.Source(False, 1.0)
    scenes = [one for one in heard.said if isinstance(one, c.SceneChanged)]
    assert len(scenes) == 2, "that of the other seed with the picture, and the world's own again"
    truth = session_fake_world.make("fake", seed=3)
    feed(truth, read_recording(pictured), until=5_008)
    for name, array in truth.snapshot().arrays.items():
        assert (stored[name] == array).all(), "what is stored is what a replay sees"
    assert not (stored["points"] == computed["points"]).all()


def test_a_jump_nearby_needs_no_stored_picture(pictured: Path) -> None:
    world = session_fake_world.make("fake", seed=3)
    heard: Any = Heard(world)
    player = Watching(world, read_recording(pictured), heard, heard, heard)
    player.obey(c.Seek(1_200))
    player._jump()
    assert not any(isinstance(one, c.Source) for one in heard.said)
    assert heard.seen[-1][0] == 1_200


def test_stills_that_are_torn_or_of_another_file_are_left_out(pictured: Path, tmp_path: Path) -> None:
    copy = tmp_path / "torn.h5"
    whole = stills_path(pictured).read_bytes()
    assert len(Stills(pictured)) == 7
    stills_path(copy).write_bytes(whole[:-5])
    assert len(Stills(copy)) == 6
    broken = bytearray(whole)
    broken[len(whole) - 40 : len(whole) - 20] = bytes(20)
    stills_path(copy).write_bytes(bytes(broken))
    assert Stills(copy).load(6) is None
    for other in (b"something else", whole.replace(MAGIC, b"viscera stills 6\n")):
        stills_path(copy).write_bytes(other)
        assert len(Stills(copy)) == 0
    assert len(Stills(tmp_path / "none.h5")) == 0
    # A recording that goes on at 2.5 s forgets what came after.
    stills_path(copy).write_bytes(whole)
    StillWriter(copy, keep_until=2_500).close()
    assert [Stills(copy).tick(k) for k in range(len(Stills(copy)))] == [16, 1_008, 2_000]


def test_a_second_recording_is_watched_in_a_room_of_its_own(archive: Path) -> None:
    with running_server(archive.parent) as server, Browser(server) as live:
        live.wait_state("running")
        with pytest.raises(ConnectionClosed, match="is not there"):
            Browser(server, query={"room": "beside", "watch": "../secret.h5"})
        with Browser(server, query={"room": "beside", "watch": archive.name}) as beside:
            shown = beside.wait(m.SessionState, lambda state: state.watched is not None).watched
            assert shown is not None
            assert shown.recording == archive.name
            beside.send(m.Control(action="pause"))
            beside.wait_state("paused")
            beside.send(m.Seek(at=0.64))
            beside.wait(m.FrameMessage, lambda frame: frame.state.tick == 640)
            # The world next door goes on as if nobody were here, with an instrument that nobody took.
            live.wait(m.FrameMessage, lambda frame: frame.state.tick > 700)
            live.move(1)
            live.wait(m.FrameMessage, lambda frame: (live.number, 1) in frame.state.applied)


@pytest.mark.slow
def test_a_film_is_asked_for_watched_over_and_said_to_have_failed(archive: Path) -> None:
    """The world of these tests is none that a film can be made of, which is told; tests/render has films that can."""
    with running_server(archive.parent) as server, Browser(server) as browser:
        browser.wait_state("running")
        address = f"/api/film?recording={archive.name}"
        assert json.loads(get(server, address)[2])["state"] == "none"
        assert get(server, f"{address}&file=1")[0] == 404
        assert get(server, "/api/film?recording=../secret.h5")[0] == 404
        browser.send(m.Film(recording="none.h5"))
        assert "is not there" in browser.wait(m.Problem).message
        browser.send(m.Film(recording=archive.name))
        told: dict[str, Any] = {}
        for _ in range(300):
            told = json.loads(get(server, address)[2])
            if told["state"] == "failed":
                break
            time.sleep(0.1)
        assert told["state"] == "failed"
        assert "fake" in told["message"]
