"""The real-time loop and its parts: pace, commands, channels; in one process, with the fake world."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from session_fake_world import FACTORY, WALL, FakeWorld

from viscera.errors import SessionError
from viscera.inputs import ToolInput
from viscera.session import commands as c
from viscera.session.channel import PIPE_BUF, ChannelClosed, open_channel
from viscera.session.clock import MAX_BACKLOG_S, Pacer, RealTimeFactor
from viscera.session.logfile import read_log
from viscera.session.loop import Loop
from viscera.session.process import SessionSpec, _Process
from viscera.session.recorder import Recorder, make_header
from viscera.session.snapshot import Segment, SnapshotReader, SnapshotWriter, segment_size
from viscera.timing import TICK
from viscera.view import Frame

# --- the clock -------------------------------------------------------------------------------------------------------


def test_ticks_keep_to_the_wall_clock() -> None:
    pacer = Pacer()
    start = time.perf_counter()
    for _ in range(200):
        pacer.wait()
    taken = time.perf_counter() - start
    # Never early; late by what a busy machine makes one wait.
    assert 200 * TICK <= taken + 1e-4 < 200 * TICK + 1.0


def test_after_a_stall_only_a_little_is_made_up() -> None:
    pacer = Pacer()
    pacer.wait()
    time.sleep(0.3)
    start = time.perf_counter()
    for _ in range(100):
        pacer.wait()
    taken = time.perf_counter() - start
    assert taken > 100 * TICK - MAX_BACKLOG_S - 2 * TICK


def test_slow_motion() -> None:
    pacer = Pacer(speed=0.1)
    start = time.perf_counter()
    for _ in range(10):
        pacer.wait()
    assert time.perf_counter() - start > 0.099


def test_real_time_factor_leaves_pauses_out() -> None:
    factor = RealTimeFactor()
    assert factor.value() == 0.0
    for frame in range(100):
        factor.add(frame * 0.032, frame * 16)
    assert factor.value() == pytest.approx(0.5)
    factor.pause()
    for frame in range(100):
        factor.add(1000.0 + frame * 0.016, frame * 16)
    assert factor.value() == pytest.approx(1.0)
    factor.add(1001.6, 0)
    assert factor.value() == pytest.approx(1.0)  # a reset is no step back in time


# --- channels --------------------------------------------------------------------------------------------------------


def test_messages_arrive_in_order_and_a_full_queue_says_so() -> None:
    sender, receiver = open_channel(c.Command)
    sent = 0
    while sender.offer(c.SetValue(1, "name", float(sent))):
        sent += 1
    assert sent > 500
    found: list[Any] = []
    while len(found) < sent:
        found += receiver.take()
    assert [command.value for command in found] == list(range(sent))
    assert receiver.take() == []
    assert sender.offer(c.Stop())
    with pytest.raises(SessionError, match="too large"):
        sender.offer(c.SetValue(1, "x" * PIPE_BUF, 1.0))


def test_a_large_message_goes_through_in_pieces() -> None:
    sender, receiver = open_channel(c.Report)
    report = c.SceneChanged(b"x" * 3_000_000)
    thread = threading.Thread(target=sender.send, args=(report,))
    thread.start()
    found: list[Any] = []
    while not found:
        receiver.wait(5.0)
        found = receiver.take()
    thread.join()
    assert found == [report]


def test_each_end_notices_that_the_other_is_gone() -> None:
    sender, receiver = open_channel(c.Command)
    sender.offer(c.Pause())
    sender.close()
    assert receiver.take() == [c.Pause()]
    with pytest.raises(ChannelClosed):
        receiver.take()
    sender, receiver = open_channel(c.Command)
    receiver.close()
    with pytest.raises(ChannelClosed):
        sender.offer(c.Pause())


# --- the loop --------------------------------------------------------------------------------------------------------


class Running:
    """A loop in a thread, with both channels in the hands of the test."""

    def __init__(self, folder: Path, **parameters: float) -> None:
        self.world = FakeWorld("fake", 0, parameters)
        specs = self.world.array_specs()
        segment = Segment()
        segment.resize(segment_size(specs))
        self.commands, commands = open_channel(c.Command)
        reports, self.reports = open_channel(c.Report)
        self.recorder = Recorder.create(folder, make_header("fake", 0, "fake"))
        self.reader = SnapshotReader(segment, specs)
        self.loop = Loop(self.world, commands, reports, SnapshotWriter(segment, specs), self.recorder)
        self.thread = threading.Thread(target=self.loop.run)

    def __enter__(self) -> Running:
        self.thread.start()
        until(lambda: self.reader.read() is not None)
        return self

    def __exit__(self, *exception: object) -> None:
        self.commands.offer(c.Stop())
        self.thread.join(10.0)
        self.recorder.finish(self.world.tick, self.world.state_hash())

    def heard(self, kind: type) -> list[Any]:
        return [report for report in self.reports.take() if isinstance(report, kind)]

    def header(self) -> Frame:
        found = self.reader.read()
        assert found is not None
        return found[1]

    def pause(self) -> int:
        """Pauses and waits until it has; the tick it stands at."""
        self.reports.take()
        self.commands.offer(c.Pause())
        until(lambda: any(report.paused for report in self.heard(c.Pace)))
        return self.world.tick


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def pose(sequence: int, z: float, client: int = 1, tool: int = 0) -> c.MoveTool:
    return c.MoveTool(client, sequence, ToolInput(tool, (0.0, 0.0, z)))


def test_of_several_poses_in_a_tick_the_newest_is_applied_and_recorded(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        at = running.pause()
        for sequence in range(50):
            running.commands.offer(pose(sequence, 0.001 * sequence))
        running.commands.offer(c.StepFrame())
        until(lambda: running.header().tick == at + 16)
        assert running.header().applied == [(1, 49)]
    recorded = read_log(running.recorder.path).inputs
    assert len(recorded) == 1
    assert recorded[0][1].position == (0.0, 0.0, 0.049)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_pose_outside_the_theatre_is_brought_to_its_wall_and_recorded_there(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        at = running.pause()
        running.commands.offer(pose(7, 50.0))
        running.commands.offer(c.StepFrame())
        until(lambda: running.header().tick == at + 16)
        assert running.header().applied == [(1, 7)]
        assert running.heard(c.Refused) == []
    _, given = read_log(running.recorder.path).inputs[0]
    assert isinstance(given, ToolInput)
    assert given.position == (0.0, 0.0, WALL)


def test_parameters_are_applied_in_order_and_shown_while_paused(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.pause()
        for value in (1.0, 2.0, 3.0):
            running.commands.offer(c.SetValue(1, "pull", value))
        until(lambda: running.header().parameters["pull"] == 3.0)
    recorded = [one for _, one in read_log(running.recorder.path).inputs]
    assert [one.value for one in recorded] == [1.0, 2.0, 3.0]  # pyright: ignore[reportAttributeAccessIssue]


def test_what_the_world_refuses_is_told_and_not_recorded(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        for value in (99.0, 98.0):  # of several at once each browser is told one
            running.commands.offer(c.SetValue(4, "pull", value))
        running.commands.offer(c.SetValue(5, "colour", 1.0))
        refused: list[Any] = []
        until(lambda: bool(refused.extend(running.heard(c.Refused)) or len(refused) > 1))
    assert [report.client for report in refused] == [4, 5]
    assert "pull = 99.0" in refused[0].message
    assert read_log(running.recorder.path).inputs == []


def test_a_slow_world_slows_down_and_skips_nothing(tmp_path: Path) -> None:
    with Running(tmp_path, work=3.0) as running:
        until(lambda: running.header().tick >= 160)
        assert 0.0 < running.header().real_time_factor < 0.4
        assert running.header().tick % 16 == 0
    assert read_log(running.recorder.path).tick == running.world.tick


def test_pauses_fall_between_frames_and_steps_are_whole_frames(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        for _ in range(3):
            time.sleep(0.037)
            at = running.pause()
            assert at % 16 == 0
            running.commands.offer(c.StepFrame())
            running.commands.offer(c.StepFrame())
            until(lambda at=at: running.header().tick == at + 32)
            time.sleep(0.03)
            assert running.world.tick == at + 32
            running.commands.offer(c.Resume())


def test_a_reset_while_paused_is_seen(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.commands.offer(pose(1, 5.0))
        until(lambda: running.world.tick > 100)
        running.commands.offer(c.Pause())
        running.commands.offer(c.ResetWorld(1, 9))
        until(lambda: bool(running.heard(c.SceneChanged)))
        running.pause()
        assert running.world.seed == 9
        assert running.world.tick % 16 == 0
        at = running.world.tick
        running.commands.offer(c.ResetWorld(1, None))
        until(lambda: running.header().tick == at + 16)
        assert running.world.seed == 9


def test_a_forgotten_browser_is_not_echoed(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.commands.offer(pose(5, 0.0, client=7))
        until(lambda: running.header().applied == [(7, 5)])
        running.commands.offer(c.Forget(7))
        until(lambda: running.header().applied == [])


def test_a_browser_that_dies_while_it_presses_lets_go(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.commands.offer(pose(5, 0.0, client=7))
        until(lambda: running.header().tools[0].active)
        running.commands.offer(c.Forget(8))
        running.commands.offer(c.Forget(7))
        until(lambda: not running.header().tools[0].active)


def test_checkpoints_wait_until_something_was_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("loop", "recorder"):
        monkeypatch.setattr(f"viscera.session.{module}.CHECKPOINT_S", 0.05)
    monkeypatch.setattr("viscera.session.loop.IDLE_CHECKPOINTS", 1000)
    with Running(tmp_path) as running:
        until(lambda: running.world.tick > 200)
        touched_at = running.pause()
        running.commands.offer(c.SetValue(1, "pull", 2.0))
        running.commands.offer(c.Resume())
        until(lambda: running.world.tick > touched_at + 200)
    recording = read_log(running.recorder.path)
    assert len(recording.checkpoints) == 1
    assert min(recording.checkpoints) > touched_at


def test_ticks_leave_nothing_behind_in_memory(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.loop._pacer.wait = time.perf_counter  # as fast as it goes
    for _ in range(500):
        running.loop._tick()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(2000):
        running.loop._take_commands()
        running.loop._tick()
        running.reports.take()
    gc.collect()
    grown = tracemalloc.take_snapshot().compare_to(before, "filename")
    tracemalloc.stop()
    running.recorder.close()
    # One object kept per tick would be more than 60 kB; what remains is tracemalloc's own.
    ours = [entry for entry in grown if "viscera" in entry.traceback[0].filename]
    assert sum(entry.size_diff for entry in ours) < 20_000


def test_the_loop_ends_when_the_server_is_gone(tmp_path: Path) -> None:
    running = Running(tmp_path)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            running.loop.run()
        except ChannelClosed as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.05)
    running.commands.close()
    thread.join(5.0)
    running.recorder.close()
    assert len(ended) == 1


def test_commands_on_the_heels_of_begin_are_not_lost(tmp_path: Path) -> None:
    """The server tells browsers that the session runs when it sends `Begin`; a quick hand answers at once."""
    commands, their_commands = open_channel(c.Command)
    their_reports, reports = open_channel(c.Report)
    segment = Segment()
    spec = SessionSpec("fake", factory=FACTORY, recordings=tmp_path)
    specs = FakeWorld("fake", 0, {}).array_specs()
    segment.resize(segment_size(specs))
    process = _Process(spec, their_commands, their_reports, segment)
    process._make_world()
    for command in (c.Begin(), pose(3, 0.01), c.Pause()):
        commands.offer(command)
    loop = process._begin()
    assert isinstance(loop, Loop)
    assert process.recorder is not None
    loop._tick()
    found = loop._applied
    process.recorder.close()
    assert found == {1: 3}
    assert loop._paused
    assert any(isinstance(report, c.Ready) for report in reports.take())


def test_what_the_world_warns_of_is_told_once(tmp_path: Path) -> None:
    with Running(tmp_path / "log") as running:
        running.reports.take()
        told: list[c.Notice] = []

        def heard() -> int:
            told.extend(running.heard(c.Notice))
            return len(told)

        running.world.warning = "There is no room left."
        until(lambda: heard() > 0)
        running.world.warning = ""
        until(lambda: heard() > 1)
    assert [notice.text for notice in told] == ["There is no room left.", ""]
