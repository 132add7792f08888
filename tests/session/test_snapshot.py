"""Snapshots in shared memory: whole or not at all, the newest wins, nobody waits, nothing is left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import Any

import numpy as np
import pytest

from viscera.errors import SessionError
from viscera.session.snapshot import (
    HEADER_SPACE,
    SLOTS,
    Segment,
    SnapshotReader,
    SnapshotWriter,
    segment_size,
)
from viscera.view import ArraySpec, Frame, ToolState

SPECS = {
    "surface": ArraySpec((3000, 3), "f4", "points"),
    "paint": ArraySpec((64, 64, 4), "u1", "tiles"),
    "drops": ArraySpec((7, 3), "f4", "points"),
    "none": ArraySpec((0, 3), "f4", "points"),
}


def make_segment() -> Segment:
    segment = Segment()
    segment.resize(segment_size(SPECS))
    return segment


def frame(tick: int, **other: Any) -> Frame:
    fields: dict[str, Any] = {"tools": [ToolState(0, (1.0, 2.0, 3.0), active=True)], "parameters": {"a": 1.5}}
    return Frame(tick=tick, time=tick * 0.001, **{**fields, **other})


def fill(value: float, out: dict[str, np.ndarray]) -> None:
    for array in out.values():
        array[:] = value


def test_what_is_written_is_read() -> None:
    segment = make_segment()
    writer, reader = SnapshotWriter(segment, SPECS), SnapshotReader(segment, SPECS)
    assert reader.read() is None
    for tick in range(1, 2 * SLOTS + 1):
        writer.publish(frame(tick, applied=[(3, tick)]), lambda out, tick=tick: fill(tick, out))
        found = reader.read()
        assert found is not None
        number, head, _, arrays = found
        assert (number, head.tick, head.applied) == (tick, tick, [(3, tick)])
        assert head.tools[0].position == (1.0, 2.0, 3.0)
        assert {name: (a.shape, a.dtype.str[1:]) for name, a in arrays.items()} == {
            name: (spec.shape, spec.kind) for name, spec in SPECS.items()
        }
        assert np.all(arrays["surface"] == tick)
        assert np.all(arrays["drops"] == tick)


def test_numbers_of_numpy_are_numbers() -> None:
    segment = make_segment()
    writer, reader = SnapshotWriter(segment, SPECS), SnapshotReader(segment, SPECS)
    writer.publish(frame(1, stages={"tissue": np.float32(0.5)}), lambda out: fill(0.0, out))
    found = reader.read()
    assert found is not None
    assert found[1].stages == {"tissue": 0.5}


def test_a_copy_that_was_overtaken_is_not_given_out() -> None:
    """A reader that is so slow that the writer comes round again must notice it, and take a newer one."""
    segment = make_segment()
    writer, reader = SnapshotWriter(segment, SPECS), SnapshotReader(segment, SPECS)
    writer.publish(frame(1), lambda out: fill(1.0, out))
    fences = 0

    def overtake() -> None:
        nonlocal fences
        fences += 1
        if fences == 1:  # between the choice of a slot and the copy of it
            for tick in range(2, SLOTS + 2):
                writer.publish(frame(tick), lambda out, tick=tick: fill(tick, out))

    reader._shared.fence = overtake
    found = reader.read()
    assert found is not None
    assert found[0] == SLOTS + 1
    assert np.all(found.arrays["surface"] == SLOTS + 1)


def test_a_write_that_has_begun_is_not_seen() -> None:
    segment = make_segment()
    writer, reader = SnapshotWriter(segment, SPECS), SnapshotReader(segment, SPECS)
    writer.publish(frame(1), lambda out: fill(1.0, out))

    def look(out: dict[str, np.ndarray]) -> None:
        fill(2.0, out)
        found = reader.read()
        assert found is not None
        assert found[0] == 1
        assert np.all(found.arrays["surface"] == 1.0)

    writer.publish(frame(2), look)


def test_a_header_that_is_too_large_is_refused() -> None:
    writer = SnapshotWriter(make_segment(), SPECS)
    stages = {f"stage {index}": 1.0 for index in range(HEADER_SPACE // 10)}
    with pytest.raises(SessionError, match="arrays takes"):
        writer.publish(frame(1, stages=stages), lambda out: None)


def write_until_killed(segment: Segment) -> None:
    writer = SnapshotWriter(segment, SPECS)
    tick = 0
    while True:
        tick += 1
        writer.publish(frame(tick), lambda out, tick=tick: fill(tick, out))


def test_another_process_writes_is_killed_and_the_last_snapshot_stays() -> None:
    segment = make_segment()
    reader = SnapshotReader(segment, SPECS)
    writer = multiprocessing.get_context("spawn").Process(target=write_until_killed, args=(segment,), daemon=True)
    names = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    writer.start()
    end = time.monotonic() + 10.0
    while reader.read() is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    seen = []
    for _ in range(1000):
        found = reader.read()
        if found is not None:  # flat out, the writer may overtake a reader eight times in a row
            number, head, _, arrays = found
            assert head.tick == number
            assert np.all(arrays["surface"] == np.float32(number))
            assert np.all(arrays["drops"] == np.float32(number))
            seen.append(number)
    assert len(seen) > 100
    assert seen == sorted(seen)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(5.0)
    assert reader.read() is not None
    if names:
        assert not {name for name in os.listdir("/dev/shm") if "viscera" in name} - names
