"""Disks that get full: as a session records, and as its archive is written. Real ones (tmpfs) where we are root."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import session_fake_world
from server_browser import Browser, health

from soak.attack import Attack, Broken, Case
from soak.attacks.kills import Elsewhere
from viscera.server import messages as m
from viscera.session.logfile import read_log
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import replay_report

CONVERT = """
import sys
from pathlib import Path
from viscera.errors import RecordingError
from viscera.session.archive import convert
if int(sys.argv[2]):
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    convert(Path(sys.argv[1]))
except RecordingError as error:
    sys.exit(5)
"""


def draw(chance: random.Random, small: bool) -> Case:
    way = "archive" if small else chance.choice(("archive", "archive", "session"))
    return {"way": way, "room": chance.randrange(0, 1_200_000), "seed": chance.randrange(2**31)}


@contextlib.contextmanager
def _disk(size: int) -> Iterator[tuple[Path, bool]]:
    """A folder with room for `size` bytes where the system lets us make one, and whether it did."""
    with tempfile.TemporaryDirectory() as folder:
        pages = max(1, size // 4096)
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={4096 * pages}", "soak", folder], capture_output=True, check=False
        )
        try:
            yield Path(folder), made.returncode == 0
        finally:
            if made.returncode == 0:
                subprocess.run(["umount", "-l", folder], check=True)


def attempt(case: Case) -> None:
    (_archive if case["way"] == "archive" else _session)(case)


def _archive(case: Case) -> None:
    """The log fits, and so many bytes of the archive."""
    with tempfile.TemporaryDirectory() as folder:
        log = _noisy(Path(folder), case["seed"])
        size = log.stat().st_size
        with _disk(size + 8192 + case["room"]) as (disk, real):
            copy = disk / log.name
            copy.write_bytes(log.read_bytes())
            limit = "0" if real else str(case["room"])
            command = [sys.executable, "-c", CONVERT, str(copy), limit]
            code = subprocess.run(command, capture_output=True, timeout=60, check=False).returncode
            left = sorted(path.suffix for path in disk.iterdir())
            if (code, left) not in ((0, [".h5"]), (5, [".log"])):
                raise Broken(f"code {code}, and there is {left}")
            if code == 5 and read_log(copy).tick != 600:
                raise Broken("the log has lost something")


def _noisy(folder: Path, seed: int) -> Path:
    world = session_fake_world.make("fake", seed=3)
    recorder = Recorder.create(folder, make_header("fake", 3, "fake"))
    noise = np.random.default_rng(seed)
    for tick in range(1, 6):
        state = {f"part {n}": noise.integers(0, 2**31, 4_000) for n in range(8)}
        recorder.checkpoint(100 * tick, {**world.save_state(), **state})
    recorder.finish(600, "")
    return recorder.path


def _session(case: Case) -> None:
    """A session that records until the disk is full goes on, says so, and ends as it should."""
    with _disk(20_000 + case["room"] // 20) as (disk, real):
        there: Any = Elsewhere(disk, "fake" if real else "full_disk")
        try:
            with Browser(there) as browser:
                for sequence in range(1500):
                    browser.move(sequence, position=(0.0, 0.0, 1e-5 * sequence))
                    if sequence % 10 == 0:
                        browser.watch(0.01)
                browser.wait(m.FrameMessage, seconds=20.0)
                now = health(there)
        finally:
            there.end()
        if now["state"] != "running":
            raise Broken(f"the session is {now['state']}: {now['message']}")
        if list(disk.glob("*.part")):
            raise Broken("half an archive is left")
        for path in [*disk.glob("*.log"), *disk.glob("*.h5")]:
            done = replay_report(path, factory=session_fake_world.FACTORY)
            if done.same is False or done.recording.damage:
                raise Broken(f"{path.name}: {done.note}")


ATTACK = Attack("disks", "disks that get full, of every size", draw, attempt, patience=150.0)
