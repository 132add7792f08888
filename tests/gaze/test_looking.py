"""A source of gaze looks at a world: through the command line, as inputs that are recorded, and when it breaks."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from session_fake_world import FakeWorld
from typer.testing import CliRunner

import viscera
from viscera.cli import app
from viscera.cli.doing import run_world
from viscera.errors import InputError
from viscera.gaze import Sample, ScanPath, Trace, write_trace
from viscera.gaze.attention import SILENT, Newest
from viscera.gaze.choosing import Chosen, check_gaze, open_source, parse_gaze
from viscera.gaze.looking import AGAIN, Looking
from viscera.gaze.rows import Sight, gaze_input, gaze_table
from viscera.inputs import Input, SetTable
from viscera.session import commands as c
from viscera.session.archive import read_recording
from viscera.session.channel import open_channel
from viscera.session.logfile import read_log
from viscera.session.loop import Loop
from viscera.session.process import SessionSpec, _Process
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import replay_report
from viscera.session.snapshot import Segment, SnapshotWriter, segment_size
from viscera.timing import FRAME
from viscera.view import Camera

CAMERA = Camera((0.7, -1.2, 0.9), (0.7, 0.2, 0.3), (0.0, 0.0, 1.0), 40.0)


def look_left_blink_look_right(file: Path) -> None:
    times = [k * FRAME for k in range(16)]
    samples = [Sample(0.3, 0.55)] * 8 + [Sample(0.0, 0.0, valid=False)] * 2 + [Sample(0.7, 0.55)] * 6
    write_trace(file, times, samples)


def test_a_trace_looks_at_a_headless_world_and_replays_bit_for_bit(tmp_path: Path) -> None:
    file = tmp_path / "eyes.csv"
    look_left_blink_look_right(file)
    told = CliRunner().invoke(
        app,
        ["run", "waves", "--headless", "--seconds", "0.24", "--device", "cpu", "--detail", "0.1", "--json",
         "--gaze", f"trace:{file}", "--out", str(tmp_path)],
    )  # fmt: skip
    assert told.exit_code == 0, told.output
    result = json.loads(told.stdout)
    recorded = next(tmp_path.glob("*.h5"))
    rows = [(tick, one.rows[0]) for tick, one in read_recording(recorded).inputs if isinstance(one, SetTable)]
    assert [tick // 16 for tick, _ in rows] == [*range(8), *range(10, 15)], "one a frame, none in the blink"
    assert rows[0][1][:3] == (0.3, 0.55, 1.0)
    assert rows[-1][1][:3] == (0.7, 0.55, 1.0)
    file.unlink()  # a replay needs no source
    again = replay_report(recorded, "cpu")
    assert again.same
    assert again.state_hash == result["state_hash"]
    again.world.close()


def test_a_model_looks_as_its_seed_says() -> None:
    pond = viscera.make("waves", device="cpu", detail=0.1)
    looking = Looking.at(pond.scene(), parse_gaze("model:3"), pond.tick)
    assert looking is not None
    path = ScanPath(3)
    for frame in range(40):
        (given,) = looking.inputs(16 * frame)
        sample = path.sample(frame * FRAME)
        assert given.rows[0][:2] == pytest.approx((sample.x, sample.y), abs=1e-12)
        assert looking.inputs(16 * frame + 1) == []
    first = looking.inputs(16 * 40)
    looking.restart(16 * 41)
    begun = ScanPath(3).sample(0.0)
    assert looking.inputs(16 * 41)[0].rows[0][:2] == pytest.approx((begun.x, begun.y), abs=1e-12)
    assert first[0].rows != looking.inputs(16 * 42)[0].rows
    pond.apply(first[0])
    pond.close()


def test_gaze_is_refused_where_it_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("webcam", "trace", "trace:", "tobii:2", "model:x", "model:-1"):
        with pytest.raises(InputError):
            parse_gaze(text)
    with pytest.raises(InputError, match="cannot be read"):
        check_gaze(f"trace:{tmp_path / 'none.csv'}")
    (tmp_path / "bad.csv").write_text("time,x,y\n0,left,1\n")
    with pytest.raises(InputError, match=r"line 2 of bad\.csv"):
        check_gaze(f"trace:{tmp_path / 'bad.csv'}")
    for name, word in (("tobii_research", "tobii"), ("pupil_labs.realtime_api.simple", "pupil"), ("pylsl", "lsl")):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InputError, match="not installed") as refused:
            check_gaze(word)
        assert "pip install" in refused.value.hint
    assert CliRunner().invoke(app, ["serve", "--gaze", "eyes"]).exit_code != 0
    with pytest.raises(InputError, match="no pointer"):
        run_world("waves", 0.016, None, "pointer", device="cpu", detail=0.1)


def test_makers_packages_are_opened_by_their_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against fakes of both packages."""
    held: dict[str, Any] = {}
    tracker = SimpleNamespace(
        subscribe_to=lambda kind, take, as_dictionary: held.update(take=take), unsubscribe_from=lambda kind, take: None
    )
    tobii = SimpleNamespace(find_all_eyetrackers=lambda: [tracker], EYETRACKER_GAZE_DATA="gaze")
    device = SimpleNamespace(
        receive_gaze_datum=lambda timeout_seconds: SimpleNamespace(x=400.0, y=300.0, worn=True), close=lambda: None
    )
    pupil = SimpleNamespace(discover_one_device=lambda max_search_duration_seconds: device)
    for name in ("pupil_labs", "pupil_labs.realtime_api"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "pupil_labs.realtime_api.simple", pupil)
    monkeypatch.setitem(sys.modules, "tobii_research", tobii)
    source = open_source(parse_gaze("tobii"))
    assert source is not None
    eye = {"gaze_point_on_display_area": (0.25, 0.5), "gaze_point_validity": 1}
    held["take"]({f"{side}_{key}": value for side in ("left", "right") for key, value in eye.items()})
    assert source.sample(0.0) == Sample(0.25, 0.5)
    other = open_source(parse_gaze("pupil"))
    assert other is not None
    assert other.sample(0.0) == Sample(0.25, 0.25)
    assert parse_gaze("tobii").surface == "screen"


class Still:
    """Looks at one place."""

    def sample(self, time: float) -> Sample | None:
        return Sample(0.75, 0.75)

    def close(self) -> None: ...


class Broken:
    """A device whose cable is pulled after the first sample."""

    def __init__(self) -> None:
        self.asked = 0

    def sample(self, time: float) -> Sample | None:
        self.asked += 1
        if 2 <= self.asked < 4:
            raise OSError("the cable was pulled")
        return Sample(0.4, 0.5) if self.asked < 6 else Sample(1e9, 0.5)

    def close(self) -> None: ...


def test_a_source_that_breaks_is_asked_again_and_says_why() -> None:
    broken = Broken()
    looking = Looking("gaze", Chosen("tobii"), CAMERA, reopen=lambda: broken)
    assert len(looking.inputs(0)) == 1
    assert looking.problem == ""
    assert looking.inputs(16) == []
    assert "the cable was pulled" in looking.problem
    assert looking.inputs(32) == []
    assert broken.asked == 2, "not before a second is over"
    ticks = range(16 * (AGAIN // 16), 4 * AGAIN, 16)
    assert sum(len(looking.inputs(tick)) for tick in ticks) == 2, "seen again, then far beside the view"
    assert "not seen" in looking.problem


def test_a_silent_device_has_lost_the_eye() -> None:
    now = [0.0]
    newest = Newest(lambda: now[0])
    assert newest.get() is None
    newest.put(Sample(0.2, 0.3))
    now[0] = 0.9 * SILENT
    assert newest.get() == Sample(0.2, 0.3)
    now[0] = 1.1 * SILENT
    assert newest.get() == Sample(0.2, 0.3, valid=False)


def test_places_of_a_screen_are_found_in_the_window() -> None:
    """The page's picture is the right lower quarter of the screen: the middle of it is at three quarters."""
    corners = [gaze_input(CAMERA, 1.5, x, x).rows[0] for x in (-1.0, 1.0)]
    looking = Looking("gaze", Chosen("tobii"), CAMERA, reopen=Still)
    looking.see(corners)
    (given,) = looking.inputs(0)
    np.testing.assert_allclose(given.rows[0], gaze_input(CAMERA, 1.5, 0.5, 0.5).rows[0], atol=1e-12)
    looking.see(corners[:1])  # its pointer
    assert looking.inputs(16)[0].rows == given.rows
    with pytest.raises(InputError, match="no sight"):
        looking.see([corners[0], corners[1][:5]])
    assert Sight.through(CAMERA).row(0.2, 0.7, valid=True)[:3] == pytest.approx((0.2, 0.7, 1.0))


def test_a_world_that_asks_for_no_gaze_gets_none() -> None:
    pond = viscera.make("waves", device="cpu", detail=0.1)
    scene = pond.scene()
    assert Looking.at(scene, parse_gaze("pointer")) is None
    assert Looking.at(replace(scene, tables=()), parse_gaze("model")) is None
    pond.close()


class Watched(FakeWorld):
    """Asks for gaze."""

    def __init__(self) -> None:
        super().__init__("fake", 0, {})
        self.looks: list[tuple[int, SetTable]] = []

    def apply(self, given: Input) -> None:
        if isinstance(given, SetTable):
            self.looks.append((self.tick, given))
        else:
            super().apply(given)


def test_a_session_asks_the_source_once_a_frame_and_records_it(tmp_path: Path) -> None:
    """The page's pointer does not count, its view does; the server hears whose gaze it is, and begins anew with it."""
    world = Watched()
    specs = world.array_specs()
    segment = Segment()
    segment.resize(segment_size(specs))
    _, commands = channel = open_channel(c.Command)
    reports, heard = open_channel(c.Report)
    recorder = Recorder.create(tmp_path, make_header("fake", 0, "fake"))
    times, samples = (0.0, 2 * FRAME, 4 * FRAME), (Sample(0.75, 0.75), Sample(0.5, 0.5), Sample(0.5, 0.5))
    looking = Looking("gaze", Chosen("trace", "eyes.csv"), CAMERA, reopen=lambda: Trace(times, samples))
    loop = Loop(world, commands, reports, SnapshotWriter(segment, specs), recorder, looking=looking)
    corners = tuple(gaze_input(CAMERA, 1.5, x, x).rows[0] for x in (-1.0, 1.0))
    loop.obey(c.SetRows(1, "gaze", corners))
    loop.obey(c.SetRows(1, "gaze", corners[:1]))
    for _ in range(40):
        loop._tick()
    assert [tick for tick, _ in world.looks] == [0, 16, 32]
    assert [given.rows[0][:3] for _, given in world.looks] == [(0.5, 0.5, 1.0), (0.5, 0.5, 1.0), (0.0, 0.0, 1.0)]
    loop.obey(c.ResetWorld(1, None))
    for _ in range(100):
        loop._tick()
    places = [given.rows[0][0] for _, given in world.looks[3:]]
    assert places == [0.5, 0.5, 0.0, 0.0], "the trace begins again at tick 40, and is over after its last sample"
    told = [one for one in heard.take() if isinstance(one, c.Gaze)]
    assert told[0] == c.Gaze("recorded gaze of eyes.csv", "view", True, "")
    recorder.finish(world.tick, world.state_hash())
    found = [(tick, one) for tick, one in read_log(recorder.path).inputs if isinstance(one, SetTable)]
    assert found == world.looks
    channel[0].close()


def test_a_source_that_cannot_be_opened_leaves_the_pointer_and_says_so(tmp_path: Path) -> None:
    reports, heard = open_channel(c.Report)
    spec = SessionSpec("fake", gaze=f"trace:{tmp_path / 'gone.csv'}")
    process = _Process(spec, open_channel(c.Command)[1], reports, Segment())
    process.world = FakeWorld("fake", 0, {})
    scene = replace(process.world.scene(), tables=(gaze_table(CAMERA),))
    assert process._open_gaze(scene) is None
    (told,) = heard.take()
    assert isinstance(told, c.Gaze)
    assert not told.counts
    assert "cannot be read" in told.problem
    assert process._open_gaze(process.world.scene()) is None
    (told,) = heard.take()
    assert isinstance(told, c.Notice)
    assert "takes no gaze" in told.text


def test_a_real_stream_looks_at_a_world() -> None:
    """Lab Streaming Layer, by the word of the command line; when the stream ends the eye is lost."""
    pylsl = pytest.importorskip("pylsl")
    name = f"viscera-test-{time.time_ns()}"
    outlet = pylsl.StreamOutlet(pylsl.StreamInfo(name, "Gaze", 3, 0, "float32", name))
    chosen = parse_gaze(f"lsl:{name}")
    looking = Looking("gaze", chosen, CAMERA, reopen=lambda: open_source(chosen))
    given: list[SetTable] = []
    until = time.monotonic() + 10.0
    while not given and time.monotonic() < until:
        outlet.push_sample([0.25, 0.75, 1.0])
        time.sleep(0.02)
        given = looking.inputs(0)
    assert given[0].rows[0][:3] == (0.25, 0.75, 1.0)
    time.sleep(1.5 * SILENT)
    assert looking.inputs(0) == []
    looking.close()
