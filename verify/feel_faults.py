"""What a hand feels when something breaks: nothing, soon, and no kick when it is well again.

A world in a process of its own is stopped, killed and made to send no numbers under the simulated hand of a real
haptic process; everything that was written to the hand is looked at.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from verify.framework import Measured, figure
from viscera.haptics.check import HOME, Wall
from viscera.haptics.devices.hand import HandParams
from viscera.haptics.devices.trace import COLUMNS, Trace, save_trace
from viscera.haptics.link import Hands, Link, Touches
from viscera.haptics.loop import Beat
from viscera.haptics.port import SessionPort
from viscera.haptics.priority import SESSION_LEVEL, come_first
from viscera.haptics.process import HapticProcess, HapticSpec
from viscera.haptics.safety import FALL, SLEW_TIME_S

AREA = "feel"


def tick_wall(link: Link, stiffness: float, nan_after: float) -> None:
    """A world in a process of its own, to be stopped and killed. After `nan_after` [s] its force is no number for
    20 ms."""
    come_first(SESSION_LEVEL)
    wall, port, beat = Wall(stiffness), SessionPort(link, [HOME]), Beat()
    start = time.perf_counter()
    while True:
        wall.step(port.take())
        if nan_after <= time.perf_counter() - start < nan_after + 0.02:
            wall.tools[0].force = (math.nan, 0.0, 0.0)
        port.publish(wall.tick, wall.tools)
        beat.wait()


@contextlib.contextmanager
def walled(link: Link, stiffness: float = 500.0, nan_after: float = math.inf) -> Iterator[BaseProcess]:
    process = multiprocessing.get_context("spawn").Process(
        target=tick_wall, args=(link, stiffness, nan_after), daemon=True
    )
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


@dataclass
class Watch:
    """Everything that was written to the hand while it was watched."""

    link: Link
    times: list[float] = field(default_factory=list)
    """[s]"""
    forces: list[float] = field(default_factory=list)
    """[N]"""

    def __enter__(self) -> Watch:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        hands = Hands()
        while not self._stop.is_set():
            if self.link.read_hands(hands) and (not self.times or hands.time > self.times[-1]):
                self.times.append(hands.time)
                self.forces.append(math.hypot(*hands.hands[0].force))
            time.sleep(1e-4)

    def zero_after(self, moment: float, until: float = math.inf) -> float:
        """From then to the first cycle after which nothing was felt until `until` [s]."""
        rows = [(t, f) for t, f in zip(self.times, self.forces, strict=True) if moment < t < until]
        zero_at = math.inf
        for t, f in reversed(rows):
            if f > 0.0:
                break
            zero_at = t
        return zero_at - moment

    def since(self, moment: float) -> float:
        """Strongest force after then [N]."""
        return max((f for t, f in zip(self.times, self.forces, strict=True) if t > moment), default=0.0)

    def fastest_rise(self) -> float:
        """[N/s]; a look that missed cycles sees their sum, over their time."""
        times, forces = np.array(self.times), np.array(self.forces)
        return float(np.max(np.diff(forces) / np.maximum(np.diff(times), 1e-3)))


@dataclass
class Faults:
    """What became of the force."""

    stall_ms: float = 0.0
    kill_ms: float = 0.0
    nan_ms: float = 0.0
    peak: float = 0.0
    rise: float = 0.0
    """[N/s]"""
    came_back: bool = False
    jump_peak: float = 0.0
    hard_peak: float = 0.0
    hard_rise: float = 0.0


def last_tick(link: Link) -> float:
    touches = Touches()
    link.read_touches(touches)
    return touches.time


def _steady(watch: Watch, seconds: float = 20.0) -> None:
    """Until the hand presses into the wall and nothing is held back."""
    hands, end = Hands(), time.monotonic() + seconds
    while time.monotonic() < end:
        watch.link.read_hands(hands)
        if hands.hands[0].gain == 1.0 and watch.forces and watch.forces[-1] > 0.5:
            return
        time.sleep(0.005)
    raise RuntimeError("the hand never felt the wall")


@cache
def faults() -> Faults:
    found = Faults()
    with HapticProcess(HapticSpec(("hand",))) as haptic, Watch(haptic.link) as watch:
        link = haptic.link
        with walled(link) as world:
            _steady(watch)
            assert world.pid is not None
            os.kill(world.pid, signal.SIGSTOP)
            time.sleep(0.2)
            found.stall_ms = 1e3 * (watch.zero_after(last_tick(link)) - 1e-3)  # the next tick was due 1 ms later
            os.kill(world.pid, signal.SIGCONT)
            _steady(watch)
            os.kill(world.pid, signal.SIGKILL)
            time.sleep(0.2)
            found.kill_ms = 1e3 * (watch.zero_after(last_tick(link)) - 1e-3)
        with walled(link, nan_after=6.0):
            _steady(watch)
            found.came_back = True
            before = link.counters()["breaks"]
            end = time.monotonic() + 10.0
            while link.counters()["breaks"] == before and time.monotonic() < end:
                time.sleep(1e-3)
            broken = time.perf_counter()
            time.sleep(0.05)
            found.nan_ms = 1e3 * watch.zero_after(broken - 2e-3, broken + 0.01)
        found.peak, found.rise = watch.since(0.0), watch.fastest_rise()
    found.jump_peak = _jump()
    found.hard_peak, found.hard_rise = _hard()
    return found


def _jump() -> float:
    """Strongest force within 50 ms after the hand jumped a metre deep, by a trace that does it [N]."""
    times = np.arange(0.0, 6.0, 1e-3)
    table = np.zeros((len(times), len(COLUMNS)))
    table[:, 0] = times
    table[:, 7] = 1.0
    table[:, 3] = np.where(times < 4.0, 0.01, -1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jump.npz"
        save_trace(Trace(table, False), path)
        with HapticProcess(HapticSpec((f"trace:{path}",))) as haptic, Watch(haptic.link) as watch, walled(haptic.link):
            end = time.monotonic() + 10.0
            while haptic.link.counters()["jumps"] == 0 and time.monotonic() < end:
                time.sleep(1e-3)
            jumped = time.perf_counter()
            time.sleep(0.5)
            if haptic.link.counters()["jumps"] == 0:
                raise RuntimeError("the jump was not noticed")
            return watch.since(jumped - 2e-3)


def _hard() -> tuple[float, float]:
    """Strongest force [N] and fastest rise [N/s] on a wall of 10⁶ N/m."""
    with HapticProcess(HapticSpec(("hand",))) as haptic, Watch(haptic.link) as watch, walled(haptic.link, 1e6):
        _steady(watch)
        time.sleep(4.0)  # a whole poke
        return watch.since(0.0), watch.fastest_rise()


PEAK = HandParams().peak_force
RISE = PEAK / SLEW_TIME_S


@figure(area=AREA, claim="a stalled world: force is zero after the missed tick", bound="≤ 2 ms", needs=["quiet"])
def stalled_world() -> Measured:
    found = faults()
    return Measured(found.stall_ms, "ms", found.stall_ms <= 2.0, "SIGSTOP; haptic process and world are real processes")


@figure(area=AREA, claim="a world killed with kill -9: the same", bound="≤ 2 ms", needs=["quiet"])
def killed_world() -> Measured:
    found = faults()
    detail = f"the next world is {'felt again' if found.came_back else 'NOT felt'}"
    return Measured(found.kill_ms, "ms", found.kill_ms <= 2.0 and found.came_back, detail)


@figure(area=AREA, claim="a force that is not a number: zero", bound="≤ 2 ms", needs=["quiet"])
def no_number() -> Measured:
    found = faults()
    return Measured(found.nan_ms, "ms", found.nan_ms <= 2.0, "20 ms of NaN from a pressed wall")


@figure(area=AREA, claim="over all faults and returns the force stays within the device's peak", bound=f"≤ {PEAK:g} N")
def fault_peak() -> Measured:
    found = faults()
    worst = max(found.peak, found.hard_peak, found.jump_peak)
    detail = f"10⁶ N/m: {found.hard_peak:.2f} N; hand jumps 1 m: {found.jump_peak:.2f} N"
    return Measured(worst, "N", worst <= PEAK and found.jump_peak == 0.0, detail)


@figure(area=AREA, claim="and rises no faster than peak per 10 ms: no kick", bound=f"≤ {RISE:g} N/s")
def fault_rise() -> Measured:
    found = faults()
    worst = max(found.rise, found.hard_rise)
    detail = f"10⁶ N/m: {found.hard_rise:.0f} N/s; falls are {FALL:g} times as fast, faults at once"
    return Measured(worst, "N/s", worst <= RISE * (1 + 1e-6), detail)
