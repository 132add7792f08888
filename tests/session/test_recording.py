"""The log, the archive and the replay: the same world, whatever happened to the process, the disk or the file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import session_fake_world
from hypothesis import given, settings
from hypothesis import strategies as st

from viscera.errors import InputError, RecordingError, StateError
from viscera.inputs import Input, Reset, SetParameter, ToolInput
from viscera.session.archive import convert, read_recording
from viscera.session.hdf5 import extract
from viscera.session.logfile import Failure, RecordingHeader, from_record, pack_block, read_log
from viscera.session.recorder import (
    LARGEST_STATE,
    Recorder,
    checkpoint_interval,
    default_folder,
    in_use,
    make_header,
)
from viscera.session.replay import feed, replay, replay_report, resume

FACTORY = session_fake_world.FACTORY


def header(**other: Any) -> Any:
    return make_header("fake", other.pop("seed", 3), "fake", "a fake device", **other)


def hand(tick: int) -> list[Input]:
    """What happens before a tick: a moving tool, a parameter now and then, one reset."""
    found: list[Input] = []
    if tick % 8 == 0:
        found.append(ToolInput(0, (0.1, 0.2, 0.001 * (tick % 37)), (0.0, 0.6, 0.0, 0.8), 0.3, tick % 64 < 48))
    if tick % 100 == 50:
        found.append(SetParameter("pull", 1.0 + tick / 300))
    if tick == 333:
        found.append(Reset(77))
    return found


def record(
    folder: Path,
    ticks: int = 700,
    *,
    finish: bool = True,
    checkpoint_every: int = 200,
    flush_every: int = 100,
    hand: Callable[[int], list[Input]] = hand,
    **options: Any,
) -> tuple[Recorder, Any]:
    """A session without a clock: steps, applies, records, as the loop does."""
    world = session_fake_world.make("fake", seed=3)
    recorder = Recorder.create(folder, header(), **options)
    for tick in range(ticks):
        for one in hand(tick):
            world.apply(one)
            recorder.input(world.tick, one)
        world.step(1)
        if world.tick % flush_every == 0:
            recorder.flush(world.tick)
        if world.tick % checkpoint_every == 0:
            recorder.checkpoint(world.tick, world.save_state())
    if finish:
        recorder.finish(world.tick, world.state_hash())
    return recorder, world


# --- replay --------------------------------------------------------------------------------------------------------


def test_replay_of_log_and_archive_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    recorder, world = record(tmp_path)
    from_log = replay_report(recorder.path, factory=FACTORY)
    archive = convert(recorder.path)
    assert archive.suffix == ".h5"
    assert not recorder.path.exists()
    from_archive = replay_report(archive, factory=FACTORY)
    for done in (from_log, from_archive):
        assert done.same is True
        assert done.state_hash == world.state_hash()
        assert "bit for bit" in done.note
    assert replay(archive, factory=FACTORY).state_hash() == world.state_hash()


def test_a_world_is_made_again_in_its_detail(tmp_path: Path) -> None:
    recorder = Recorder.create(tmp_path, header(detail=0.35))
    world = session_fake_world.make("fake", seed=3, detail=0.35)
    recorder.finish(world.tick, world.state_hash())
    for path in (recorder.path, convert(recorder.path, keep_log=True)):
        assert replay_report(path, factory=FACTORY).world.detail == 0.35


def test_a_recording_from_before_detail_was_made_with_1() -> None:
    fields = msgspec.to_builtins(header())
    assert fields.pop("detail") == 1.0
    assert msgspec.convert(fields, RecordingHeader).detail == 1.0


def test_archive_and_log_hold_the_same(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path)
    log = read_recording(recorder.path)
    archive = read_recording(convert(recorder.path, keep_log=True))
    assert recorder.path.exists()
    assert archive.inputs == log.inputs
    assert archive.header == log.header
    assert (archive.tick, archive.state_hash) == (log.tick, log.state_hash)
    assert list(archive.checkpoints) == list(log.checkpoints) == [200, 400, 600]
    for tick in archive.checkpoints:
        ours, theirs = log.checkpoints[tick](), archive.checkpoints[tick]()
        assert set(ours) == set(theirs)
        for name, array in ours.items():
            assert array.dtype == theirs[name].dtype
            assert np.array_equal(array, theirs[name])


def test_from_every_checkpoint_the_end_is_the_same(tmp_path: Path) -> None:
    recorder, world = record(tmp_path)
    recording = read_recording(convert(recorder.path))
    for tick, load in recording.checkpoints.items():
        again = session_fake_world.make("fake", seed=3)
        again.load_state(load())
        assert again.tick == tick
        feed(again, recording)
        assert again.state_hash() == world.state_hash()


def test_a_changed_input_is_noticed(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path)
    other, _ = record(tmp_path, hand=lambda tick: hand(tick) if tick != 640 else [])
    assert read_log(recorder.path).state_hash != read_log(other.path).state_hash
    damaged, _ = record(tmp_path, finish=False)
    damaged.finish(700, "0" * 64)
    with pytest.raises(RecordingError, match="not the same"):
        replay(damaged.path, factory=FACTORY)
    assert replay_report(damaged.path, factory=FACTORY).same is False


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 50),
            st.one_of(
                st.builds(
                    ToolInput,
                    st.integers(-(2**31), 2**31 - 1),
                    st.tuples(*[st.floats(allow_nan=False)] * 3),
                    st.tuples(*[st.floats(allow_nan=False)] * 4),
                    st.floats(0, 1),
                    st.booleans(),
                ),
                st.builds(SetParameter, st.text("abc_µ ", min_size=1, max_size=20), st.floats(allow_nan=False)),
                st.builds(Reset, st.integers(0, 2**62)),
            ),
        ),
        max_size=20,
    )
)
def test_every_input_survives_both_files(
    tmp_path_factory: pytest.TempPathFactory, inputs: list[tuple[int, Input]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    recorder = Recorder.create(folder, header())
    for tick, one in inputs:
        recorder.input(tick, one)
    recorder.finish(51, "hash")
    assert read_recording(recorder.path).inputs == inputs
    archive = convert(recorder.path)
    # Read here and not in a process of its own, which takes a quarter of a second each time.
    assert [from_record(record) for record in extract(archive).records.records] == inputs


# --- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_torn_tail_is_dropped_wherever_it_is_torn(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path, 300, finish=False)
    recorder.close()
    whole = recorder.path.read_bytes()
    full = read_log(recorder.path)
    torn = tmp_path / "torn.log"
    for length in range(full.header_end, len(whole), 97):
        torn.write_bytes(whole[:length])
        found = read_log(torn)
        assert found.tick in (0, 100, 200, 300)
        assert found.inputs == [entry for entry in full.inputs if entry[0] < found.tick]
        assert found.valid_length + found.torn_bytes == length
    flipped = bytearray(whole)
    flipped[len(whole) - 5] ^= 1
    torn.write_bytes(flipped)
    assert read_log(torn).tick < 300 or read_log(torn).torn_bytes > 0


def test_a_killed_session_resumes_at_its_last_heartbeat_and_its_log_goes_on(tmp_path: Path) -> None:
    truth, world = record(tmp_path)
    killed, _ = record(tmp_path, 530, finish=False)
    killed.close()
    with open(killed.path, "ab") as file:
        file.write(pack_block(b"RECS", b"a block that is cut off")[:30])
    found = resume(killed.path, factory=FACTORY)
    assert found.world.tick == 500
    assert found.in_place
    assert "0.50 s" in found.note
    again = Recorder.resume(killed.path, found.keep)
    for tick in range(500, 700):
        for one in hand(tick):
            found.world.apply(one)
            again.input(found.world.tick, one)
        found.world.step(1)
    again.finish(found.world.tick, found.world.state_hash())
    assert found.world.state_hash() == world.state_hash()
    assert replay_report(killed.path, factory=FACTORY).same is True
    assert read_log(killed.path).inputs == read_log(truth.path).inputs


def test_a_state_that_broke_resumes_before_it_broke_and_keeps_the_old_log(tmp_path: Path) -> None:
    recorder, world = record(tmp_path, 450, finish=False)
    breaking = SetParameter("break_at", 460)
    world.apply(breaking)
    recorder.input(world.tick, breaking)
    with pytest.raises(StateError) as caught:
        world.step(20)
    recorder.fail(Failure(caught.value.tick, caught.value.stage, caught.value.message))
    old = recorder.path.read_bytes()
    done = replay_report(recorder.path, factory=FACTORY)
    assert done.same is True
    assert "broke as recorded" in done.note
    found = resume(recorder.path, factory=FACTORY)
    assert (found.world.tick, found.in_place) == (400, False)
    found.world.step(100)
    branch = Recorder.branch(recorder.path, found.keep)
    branch.finish(found.world.tick, found.world.state_hash())
    assert branch.path != recorder.path
    assert recorder.path.read_bytes() == old
    assert replay_report(branch.path, factory=FACTORY).same is True


def test_a_state_that_breaks_while_resuming_falls_back_to_the_checkpoint(tmp_path: Path) -> None:
    recorder, world = record(tmp_path, 440, finish=False, flush_every=10**9)
    breaking = SetParameter("break_at", 445)
    recorder.input(world.tick, breaking)
    recorder.flush(450)  # killed between the input and the report of what it did
    recorder.close()
    found = resume(recorder.path, factory=FACTORY)
    assert (found.world.tick, found.in_place) == (400, False)


def test_a_session_that_ended_is_not_resumed(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path, 50)
    with pytest.raises(RecordingError, match="nothing to resume"):
        resume(recorder.path, factory=FACTORY)


class FullDisk:
    """Writes until so many bytes are written, the last call in part, then says that there is no space."""

    def __init__(self, space: int) -> None:
        self.space = space

    def __call__(self, descriptor: int, data: memoryview) -> int:
        if self.space == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = min(self.space, len(data))
        self.space -= taken
        return os.write(descriptor, data[:taken])


@pytest.mark.parametrize("space", [1500, 4000, 20_000])
def test_a_full_disk_stops_the_recording_and_loses_nothing_that_was_written(tmp_path: Path, space: int) -> None:
    recorder, world = record(tmp_path, write=FullDisk(space))
    assert world.tick == 700
    assert "disk is full" in recorder.notice
    assert "simulation goes on" in recorder.notice
    assert str(recorder.path) in recorder.notice
    found = read_log(recorder.path)
    assert found.torn_bytes == 0
    assert not found.complete
    assert len(recorder.path.read_bytes()) <= space
    done = replay_report(recorder.path, factory=FACTORY)
    assert done.same is None
    truth = session_fake_world.make("fake", seed=3)
    for tick in range(found.tick):
        for one in hand(tick):
            truth.apply(one)
        truth.step(1)
    assert done.world.state_hash() == truth.state_hash()
    assert read_recording(convert(recorder.path)).tick == found.tick


def test_the_device_that_is_always_full(tmp_path: Path) -> None:
    """The kernel's own full disk, not ours."""
    full = os.open("/dev/full", os.O_WRONLY)
    recorder = Recorder(tmp_path / "any.log", full, 0)
    recorder.flush(1)
    recorder.close()
    assert "disk is full" in recorder.notice


def test_no_room_for_the_header_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="disk is full") as caught:
        Recorder.create(tmp_path, header(), write=FullDisk(10))
    assert "--out" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_no_permission_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RecordingError, match="not a directory"):
        Recorder.create(tmp_path / "file" / "recordings", header())

    def forbidden(descriptor: int, data: memoryview) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(RecordingError, match="permission denied"):
        Recorder.create(tmp_path, header(), write=forbidden)
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        with pytest.raises(RecordingError, match="permission denied"):
            Recorder.create(locked, header())


def test_an_archive_that_cannot_be_written_leaves_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _ = record(tmp_path, 100)

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("viscera.session.archive.write_archive", full)
    with pytest.raises(RecordingError, match="No space left") as caught:
        convert(recorder.path)
    assert str(recorder.path) in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == [recorder.path.name]


def test_a_log_in_use_is_left_alone(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path, 100, finish=False)
    assert in_use(recorder.path)
    with pytest.raises(RecordingError, match="another session"):
        Recorder.resume(recorder.path, 0)
    with pytest.raises(RecordingError, match="still being written"):
        convert(recorder.path)
    recorder.close()
    assert not in_use(recorder.path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a viscera log"),
        (b"something else entirely", "not a viscera log"),
        (b"VISCERALOG2\n", "no readable header"),
        (b"VISCERALOG1\n", "not a viscera log"),
        (b"\x89HDF\r\n\x1a\n and then nothing", "no digest"),
        (b"VISCERA ARCHIVE\nsha256 " + b"0" * 2000, "damaged"),
    ],
)
def test_files_that_are_no_recordings(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=message):
        read_recording(path)
    with pytest.raises(RecordingError, match="cannot read"):
        read_recording(tmp_path / "missing.h5")


def test_another_format_and_another_mesh_are_refused(tmp_path: Path) -> None:
    newer = header()
    newer.format = 3
    recorder = Recorder.create(tmp_path, newer)
    recorder.finish(1, "hash")
    with pytest.raises(RecordingError, match="format 3"):
        read_recording(recorder.path)
    mesh = tmp_path / "organ.stl"
    mesh.write_bytes(b"one mesh")
    recorder = Recorder.create(tmp_path, header(mesh=mesh))
    recorder.finish(1, "hash")
    mesh.write_bytes(b"another mesh")
    with pytest.raises(RecordingError, match=r"organ\.stl"):
        replay_report(recorder.path, factory=FACTORY)


def test_a_recording_cannot_name_the_code_that_makes_its_world(tmp_path: Path) -> None:
    recorder = Recorder.create(tmp_path, make_header("os:system", 0, "cpu"))
    recorder.finish(1, "hash")
    with pytest.raises(InputError, match="os:system"):
        replay_report(recorder.path)


def test_folders_and_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "viscera" / "recordings"
    monkeypatch.setenv("XDG_DATA_HOME", "relative is ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_folder() == tmp_path / "home" / ".local" / "share" / "viscera" / "recordings"
    assert checkpoint_interval(1000) < checkpoint_interval(100_000_000) < checkpoint_interval(LARGEST_STATE + 1)
