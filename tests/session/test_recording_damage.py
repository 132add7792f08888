"""Recordings that a full disk, a flipped bit or somebody with bad intentions has got at."""

from __future__ import annotations

import errno
import hashlib
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import session_fake_world
from hypothesis import given, settings
from hypothesis import strategies as st
from test_recording import FACTORY, record

from viscera.errors import RecordingError
from viscera.session import archive, hdf5
from viscera.session.archive import ARCHIVE_START, convert, read_recording
from viscera.session.hdf5 import USER_BLOCK, write_archive
from viscera.session.logfile import BLOCK_HEAD, read_log
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import make_world, replay, replay_report, resume

CONVERT = """
import resource, sys
from pathlib import Path
from viscera.errors import RecordingError
from viscera.session.archive import convert
size = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
try:
    convert(Path(sys.argv[1]))
except RecordingError as error:
    print(error)
    sys.exit(5)
"""


def noisy(folder: Path) -> Recorder:
    """A recording that does not compress: some checkpoints of noise."""
    world = session_fake_world.make("fake", seed=3)
    recorder = Recorder.create(folder, make_header("fake", 3, "fake"))
    noise = np.random.default_rng(0)
    for tick in range(1, 6):
        state = {f"part {n}": noise.integers(0, 2**31, 5_000) for n in range(8)}
        recorder.checkpoint(100 * tick, {**world.save_state(), **state})
    recorder.finish(600, "hash")
    return recorder


@pytest.mark.parametrize("room", [0, 700, 100_000, 700_000])
def test_a_disk_that_is_full_at_the_end_is_told_and_the_log_stays(tmp_path: Path, room: int) -> None:
    """The system's own limit, in a process of its own: HDF5 used to take the process with it."""
    recorder = noisy(tmp_path)
    command = [sys.executable, "-c", CONVERT, str(recorder.path), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Nothing is lost" in done.stdout) == (5, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [recorder.path.name]
    assert read_log(recorder.path).tick == 600


def test_what_a_full_disk_did_not_take_is_read_back_by_hdf5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that HDF5 never sees a failure: the file in its eyes is whole, at whatever byte the room ends."""
    recording = read_log(noisy(tmp_path).path)
    write = os.pwrite
    for room in range(0, 200_000, 40_000):

        def full(descriptor: int, data: bytes, place: int, room: int = room) -> int:
            if place + len(data) > room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(descriptor, data, place)

        monkeypatch.setattr(hdf5.os, "pwrite", full)
        with open(tmp_path / "out", "w+b") as file, pytest.raises(OSError, match="No space left"):
            write_archive(recording, file)
        monkeypatch.setattr(hdf5.os, "pwrite", write)


def test_a_flipped_bit_is_told_apart_from_a_log_that_was_cut_off(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path, 700)
    whole = recorder.path.read_bytes()
    header_end = read_log(recorder.path).header_end
    changed = tmp_path / "changed.log"
    for place in range(header_end, len(whole), 211):
        data = bytearray(whole)
        data[place] ^= 4
        changed.write_bytes(data)
        found = read_log(changed)
        assert found.damage
        assert found.torn_bytes > 0
        assert found.valid_length <= place
        changed.write_bytes(whole[:place])
        assert read_log(changed).damage == ""
    data = bytearray(whole)
    data[len(whole) // 2] ^= 4
    changed.write_bytes(data)
    done = replay_report(changed, factory=FACTORY)
    assert done.same is None
    for part in ("damaged at byte", f"{done.recording.torn_bytes} bytes", "are lost"):
        assert part in done.note
    with pytest.raises(RecordingError, match="are lost"):
        replay(changed, factory=FACTORY)


def test_what_is_damaged_is_kept_when_others_go_on_from_it(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path, 700)
    data = bytearray(recorder.path.read_bytes())
    data[len(data) // 2] ^= 1
    recorder.path.write_bytes(data)
    resumed = resume(recorder.path, factory=FACTORY)
    assert not resumed.in_place
    assert "are lost" in resumed.note
    convert(recorder.path)
    assert recorder.path.read_bytes() == data


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_archive_that_was_changed_anywhere_is_refused_before_hdf5_sees_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "archives"
    if not folder.exists():
        folder.mkdir()
        convert(record(folder, 300)[0].path)
    (whole,) = folder.glob("*.h5")
    content = bytearray(whole.read_bytes())
    places = st.integers(0, len(content) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4, unique=True)):
        content[place] ^= data.draw(st.integers(1, 255))
    changed = folder / "changed"
    changed.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "_ask", lambda *anything: pytest.fail("HDF5 has seen it"))
        with pytest.raises(RecordingError):
            read_recording(changed)


def forged(path: Path, change: Any) -> Path:
    """An archive that somebody changed and gave a good digest."""
    with h5py.File(path, "r+") as file:
        change(file)
    content = path.read_bytes()
    seal = ARCHIVE_START + hashlib.sha256(content[USER_BLOCK:]).hexdigest().encode() + b"\n"
    path.write_bytes(seal.ljust(USER_BLOCK, b"\0") + content[USER_BLOCK:])
    return path


FORGERIES = {
    "tick": lambda file: file.attrs.update(tick=10**15),
    "negative seed": lambda file: file.attrs.update(seed=-4),
    "large seed": lambda file: file.attrs.update(seed=np.uint64(2**63 + 1)),
    "detail": lambda file: file.attrs.update(detail=np.nan),
    "no number": lambda file: file.attrs.update(tick="soon"),
    "list": lambda file: file.attrs.update(scenario=np.arange(5), parameters="[1, 2]"),
    "versions": lambda file: file.attrs.update(versions='{"viscera": 3}'),
    "no inputs": lambda file: file.__delitem__("inputs"),
    "no checkpoints": lambda file: file.__delitem__("checkpoints"),
    "memory": lambda file: (
        file["inputs"].__delitem__("behind"),
        file["inputs"].create_dataset("behind", (10**12,), [("tick", "<i8"), ("order", "<i8")], chunks=(10**4,)),
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_an_archive_with_a_good_digest_and_bad_content_is_refused(tmp_path: Path, name: str) -> None:
    path = forged(convert(record(tmp_path, 100)[0].path), FORGERIES[name])
    with pytest.raises(RecordingError):
        read_recording(path)


def test_an_archive_that_takes_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = convert(record(tmp_path, 100)[0].path)
    monkeypatch.setattr(archive, "READ_S", 0.01)
    with pytest.raises(RecordingError, match="within"):
        read_recording(path)


def test_pipes_and_devices_are_no_recordings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(RecordingError, match="no file"):
            read_recording(path)
    for mesh in ("/dev/zero", str(tmp_path / "pipe")):
        recorder = Recorder.create(tmp_path, make_header("fake", 0, "fake"))
        recorder.close()
        found = read_log(recorder.path)
        found.header.mesh, found.header.mesh_sha256 = mesh, "0" * 64
        with pytest.raises(RecordingError, match="no file"):
            make_world(found, factory=FACTORY)


def test_a_block_that_promises_four_gigabytes_is_not_believed(tmp_path: Path) -> None:
    recorder, _ = record(tmp_path, 100)
    head = BLOCK_HEAD.pack(b"RECS", 2**32 - 1, 0, 0)[:-4]
    with open(recorder.path, "ab") as file:
        file.write(head + struct.pack("<I", zlib.crc32(head)))
    found = read_log(recorder.path)
    assert found.damage
    assert found.torn_bytes == BLOCK_HEAD.size
