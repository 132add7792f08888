"""Logs and archives that were damaged, or made to do harm: read and replayed, or refused in words."""

from __future__ import annotations

import functools
import hashlib
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import h5py
import msgspec
import session_fake_world

from soak.attack import Attack, Broken, Case, changed, nasty, pack, unpack
from viscera.errors import RecordingError, VisceraError
from viscera.inputs import Behind, Reset, SetParameter, SetTable, ToolInput
from viscera.session.archive import ARCHIVE_START, convert, read_recording
from viscera.session.hdf5 import USER_BLOCK
from viscera.session.logfile import BLOCK_HEAD, MAGIC, pack_block
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import replay_report

LONGEST_REPLAY = 3000
"""Ticks; what is longer is only read."""


@functools.cache
def _good() -> tuple[bytes, bytes]:
    """A log and the archive of it."""
    with tempfile.TemporaryDirectory() as folder:
        world = session_fake_world.make("fake", seed=3)
        recorder = Recorder.create(Path(folder), make_header("fake", 3, "fake", parameters={"pull": 2.0}))
        world.apply(SetParameter("pull", 2.0))
        for tick in range(200):
            given = [ToolInput(0, (0.0, 0.0, 0.001 * (tick % 9)))] if tick % 5 == 0 else []
            if tick == 60:
                given += [SetParameter("pull", 3.0), SetTable("stages", ((2.0,), (3.0,))), Reset(9)]
            for one in given:
                world.apply(one)
                recorder.input(tick, one)
            if tick % 16 == 15:
                recorder.input(tick, Behind())
            world.step(1)
            if tick % 50 == 49:
                recorder.flush(world.tick)
                recorder.checkpoint(world.tick, world.save_state())
        recorder.finish(world.tick, world.state_hash())
        archive = convert(recorder.path, keep_log=True)
        return recorder.path.read_bytes(), archive.read_bytes()


def _rewritten_log(chance: random.Random) -> bytes:
    """Blocks with good checksums and bad content."""
    log, place, out = _good()[0], len(MAGIC), MAGIC
    while place < len(log):
        kind, length, _, _ = BLOCK_HEAD.unpack_from(log, place)
        payload = log[place + BLOCK_HEAD.size : place + BLOCK_HEAD.size + length]
        place += BLOCK_HEAD.size + length
        if chance.random() < 0.3:
            if kind == b"CKPT" or chance.random() < 0.3:
                payload = changed(chance, payload)
            else:
                payload = msgspec.msgpack.encode(_tampered(chance, msgspec.msgpack.decode(payload)))
            kind = chance.choice((kind, kind, kind, b"RECS", b"LAST", b"NONE"))
        out += pack_block(kind, payload) * chance.choice((1, 1, 1, 1, 0, 2))
    return out


def _tampered(chance: random.Random, value: Any) -> Any:
    """The same with one thing in it that nobody expects, however deep."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        at: Any = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        copy[at] = _tampered(chance, copy[at])
        return copy
    return nasty(chance)


def draw(chance: random.Random, small: bool) -> Case:
    way = chance.choice(("log", "log", "rewritten", "archive", "sealed", "forged"))
    log, archive = _good()
    if way == "log":
        return {"data": pack(changed(chance, log))}
    if way == "rewritten":
        return {"data": pack(_rewritten_log(chance))}
    if way == "archive":
        return {"data": pack(changed(chance, archive))}
    if way == "sealed":  # damaged, with a good digest
        return {"data": pack(_sealed(archive[:USER_BLOCK] + changed(chance, archive[USER_BLOCK:])))}
    return {"data": pack(_forged(chance, archive))}


def _sealed(data: bytes) -> bytes:
    digest = hashlib.sha256(data[USER_BLOCK:]).hexdigest().encode()
    return (ARCHIVE_START + digest + b"\n").ljust(USER_BLOCK, b"\0") + data[USER_BLOCK:]


def _forged(chance: random.Random, archive: bytes) -> bytes:
    """HDF5 that is whole, with attributes of other kinds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forged.h5"
        path.write_bytes(archive)
        with h5py.File(path, "r+") as file:
            for name in chance.sample(list(file.attrs), 2):
                value = nasty(chance)
                try:
                    file.attrs[name] = json.dumps(value) if isinstance(value, dict) or value is None else value
                except (TypeError, ValueError, OverflowError):
                    continue  # HDF5 has no such value; what was there is gone already
        return _sealed(path.read_bytes())


def attempt(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        path.write_bytes(unpack(case["data"]))
        try:
            found = read_recording(path)
            for load in list(found.checkpoints.values())[:2]:
                try:
                    load()
                except RecordingError:
                    continue
            if found.tick > LONGEST_REPLAY or found.header.file or found.header.mesh:
                return
            done = replay_report(path, factory=session_fake_world.FACTORY)
        except VisceraError:
            return
        if done.same is True and found.damage:
            raise Broken("a damaged log counts as the same as recorded")


ATTACK = Attack("recordings", "damaged, tampered and forged logs and archives", draw, attempt, patience=150.0)
