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
from dataclasses import dataclass, field, replace
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
from viscera.haptics.safety import FALL, SLEW_TIME_S, Mode

AREA = "feel"


FAULT_S = 0.02
"""How long a world says something wrong [s]."""
LEAP = 1.0
"""How far a hand or a tool jumps [m]."""
PRESSED = 0.002
"""How deep the hand of a trace is in the wall before it jumps [m]: 1 N on 500 N/m, 4 N on a hard one."""
LOOK_S = 0.5
"""For how long after a jump the force is looked at [s]."""


def tick_wall(link: Link, stiffness: float, nan_after: float, leap_after: float) -> None:
    """A world in a process of its own, to be stopped and killed. After `nan_after` [s] its force is no number, and
    after `leap_after` its tool is a metre above where it is, for 20 ms each."""
    come_first(SESSION_LEVEL)
    wall, port, beat = Wall(stiffness), SessionPort(link, [HOME]), Beat()
    start = time.perf_counter()
    while True:
        wall.step(port.take())
        passed, tool = time.perf_counter() - start, wall.tools[0]
        if nan_after <= passed < nan_after + FAULT_S:
            tool = replace(tool, force=(math.nan, 0.0, 0.0))
        if leap_after <= passed < leap_after + FAULT_S:
            tool = replace(tool, position=(tool.position[0], tool.position[1], tool.position[2] + LEAP))
        port.publish(wall.tick, [tool])
        beat.wait()


@contextlib.contextmanager
def walled(
    link: Link, stiffness: float = 500.0, nan_after: float = math.inf, leap_after: float = math.inf
) -> Iterator[BaseProcess]:
    process = multiprocessing.get_context("spawn").Process(
        target=tick_wall, args=(link, stiffness, nan_after, leap_after), daemon=True
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
    modes: list[int] = field(default_factory=list)
    """Of the guard."""

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
                self.modes.append(hands.hands[0].mode)
                self.forces.append(math.hypot(*hands.hands[0].force))
                self.times.append(hands.time)
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

    def around(self, mode: Mode, seconds: float = 20.0) -> tuple[float, float]:
        """Waits for the next cycle in that mode and `LOOK_S` more: the strongest force from 1 s before it (on a
        busy machine there are stalls) to 5 ms after it, within which a peak falls, and later than that [N]."""
        begun, end = len(self.times), time.monotonic() + seconds
        while mode not in self.modes[begun:]:
            if time.monotonic() > end:
                raise RuntimeError(f"{mode.name} was not noticed")
            time.sleep(1e-3)
        first = self.times[self.modes.index(mode, begun)]
        time.sleep(LOOK_S)
        rows = [(t - first, f) for t, f in zip(self.times, self.forces, strict=False)]
        if max((f for t, f in rows if -1.0 < t < 0.0), default=0.0) < 0.5:
            raise RuntimeError(f"the hand did not press before {mode.name}")
        return max(f for t, f in rows if -1.0 < t < 5e-3), max(f for t, f in rows if 5e-3 <= t < LOOK_S)

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
    jump_pressed: float = 0.0
    """Strongest force around a jump of a pressing hand: what it was pressed with before [N]."""
    jump_peak: float = 0.0
    """And after it."""
    leap_pressed: float = 0.0
    """The same for a tool that jumps under a pressing hand and comes back."""
    leap_peak: float = 0.0
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
    found.jump_pressed, found.jump_peak = _jump()
    found.leap_pressed, found.leap_peak = _leap()
    found.hard_peak, found.hard_rise = _hard()
    return found


@contextlib.contextmanager
def _pressing(stiffness: float, jump_after: float = math.inf, leap_after: float = math.inf) -> Iterator[Watch]:
    """A hand presses into a wall by a trace, and may jump a metre deeper; the world's tool may jump as well [s]."""
    times = np.arange(0.0, 12.0, 1e-3)
    table = np.zeros((len(times), len(COLUMNS)))
    table[:, 0] = times
    table[:, 7] = 1.0
    table[:, 3] = np.interp(times, [2.0, 3.0], [0.01, -PRESSED]) - np.where(times < jump_after, 0.0, LEAP)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jump.npz"
        save_trace(Trace(table, False), path)
        with (
            HapticProcess(HapticSpec((f"trace:{path}",))) as haptic,
            Watch(haptic.link) as watch,
            walled(haptic.link, stiffness, leap_after=leap_after),
        ):
            _steady(watch)
            yield watch


def _jump() -> tuple[float, float]:
    """Strongest force around and after a jump of a metre into the wall [N]. Felt as it is, that would be 500 N: every
    cycle that believes it adds what the slew limit allows."""
    with _pressing(500.0, jump_after=8.0) as watch:
        return watch.around(Mode.JUMPED)


def _leap() -> tuple[float, float]:
    """The same where the world's tool is a metre above the hand for 20 ms, on 10⁶ N/m; it is felt again along a ramp,
    which is looked at as well [N]."""
    with _pressing(1e6, leap_after=7.0) as watch:
        return watch.around(Mode.CATCHING_UP)


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
    worst = max(found.peak, found.hard_peak)
    detail = f"10⁶ N/m: {found.hard_peak:.2f} N"
    return Measured(worst, "N", worst <= PEAK, detail)


PRESS = 500.0 * PRESSED, 2000.0 * PRESSED
"""What the trace presses with before a hand or a tool jumps [N]: on 500 N/m, and on a wall felt as 2 000."""


@figure(
    area=AREA,
    claim="a hand or a tool that jumps a metre under pressure adds no force, and the hand's own is gone",
    bound="≤ 1 % more, then 0 N",
)
def jumps() -> Measured:
    found = faults()
    more = max(found.jump_pressed / PRESS[0], found.leap_pressed / PRESS[1], found.leap_peak / PRESS[1]) - 1.0
    detail = (
        f"hand: {found.jump_pressed:.3f} N before, {found.jump_peak:.3f} N in the {LOOK_S:g} s after; tool, for 20 ms "
        f"on 10⁶ N/m: {found.leap_pressed:.3f} N before, at most {found.leap_peak:.3f} N as it comes back"
    )
    return Measured(100 * more, "% more", more <= 0.01 and found.jump_peak == 0.0, detail)


@figure(area=AREA, claim="and rises no faster than peak per 10 ms: no kick", bound=f"≤ {RISE:g} N/s")
def fault_rise() -> Measured:
    found = faults()
    worst = max(found.rise, found.hard_rise)
    detail = f"10⁶ N/m: {found.hard_rise:.0f} N/s; falls are {FALL:g} times as fast, faults at once"
    return Measured(worst, "N/s", worst <= RISE * (1 + 1e-6), detail)
