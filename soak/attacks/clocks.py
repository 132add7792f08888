"""Clocks that jump: a computer that slept (all processes stopped and continued), and a date that goes back."""

from __future__ import annotations

import datetime
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from server_browser import Browser, health

from soak.attack import Attack, Broken, Case
from soak.attacks.kills import Elsewhere
from viscera.server import messages as m
from viscera.session import recorder
from viscera.session.archive import read_recording
from viscera.session.recorder import Recorder, make_header


def draw(chance: random.Random, small: bool) -> Case:
    if small or chance.random() < 0.3:
        return {"steps": [chance.choice((0, 0, 1, -1, 3600, -(10**9))) for _ in range(10)]}
    return {"sleep": chance.choice((0.2, 1.0, 4.0)), "paused": chance.random() < 0.3}


def attempt(case: Case) -> None:
    if "sleep" in case:
        _sleep(case)
    else:
        _dates(case["steps"])


def _dates(jumps: list[int]) -> None:
    """Every recording has a file of its own, whatever the date says."""
    now = datetime.datetime(2026, 3, 29, 1, 59, 59)

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime.datetime:
            return now.astimezone(tz) if tz else now

    kept = recorder.datetime.datetime
    recorder.datetime.datetime = Clock
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number, jump in enumerate(jumps):
                now += datetime.timedelta(seconds=jump)
                made = Recorder.create(Path(folder), make_header("fake", number, "fake"))
                made.finish(1, "hash")
            seeds = sorted(read_recording(path).header.seed for path in Path(folder).glob("*.log"))
            if seeds != list(range(len(jumps))):
                raise Broken(f"of {len(jumps)} recordings there are {seeds}")
    finally:
        recorder.datetime.datetime = kept


def _sleep(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        there: Any = Elsewhere(Path(folder))
        try:
            with Browser(there) as browser:
                browser.wait(m.FrameMessage, seconds=30.0)
                if case["paused"]:
                    browser.send(m.Control(action="pause"))
                    browser.wait_state("paused")
                before = health(there)
                os.killpg(there.process.pid, signal.SIGSTOP)
                time.sleep(case["sleep"])
                os.killpg(there.process.pid, signal.SIGCONT)
                browser.watch(1.0)
                after = health(there)
        finally:
            os.killpg(there.process.pid, signal.SIGCONT)
            there.end()
    if after["state"] != before["state"]:
        raise Broken(f"{before['state']} has become {after['state']}: {after['message']}")
    if case["paused"] != (after["tick"] == before["tick"]):
        raise Broken(f"tick {before['tick']} has become {after['tick']}")
    if after["tick"] - before["tick"] > 2500:
        raise Broken(f"{after['tick'] - before['tick']} ticks in the second after {case['sleep']} s of sleep")


ATTACK = Attack("clocks", "sleep, and dates that jump", draw, attempt, patience=120.0)
