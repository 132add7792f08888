"""The haptic loop: a thousand times a second, read each device, couple it to the newest tick, limit, write.

It shares nothing with the world but the link, so a world that is slow, stuck or gone costs it nothing: it goes on, and
its guard lets go of the hand. `cycle` is one round on any clock; `run` holds it to the wall clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from viscera.collecting import Collecting
from viscera.errors import DeviceError
from viscera.haptics.coupling import PERIOD, Coupled, CouplingParams, EnergyTank, couple
from viscera.haptics.device import HapticDevice, Pose
from viscera.haptics.link import TOOLS, ZERO, Hands, Link, Touches
from viscera.haptics.safety import JUMP_LEAST, LATE_WINDOW_S, LOOP_STALL_S, STALL_S, Guard, Mode, Situation, limits_for
from viscera.inputs import Vector3
from viscera.waiting import Waiter

AFTER_TICK_S = 0.25e-3
"""A cycle comes this long after a tick is done; ticks come a little early or late [s]."""

NUDGE_S = 20e-6
"""The beat moves towards that by at most this much in a cycle [s]."""

SPEED_CYCLES = 3
"""A hand's speed is taken over so many cycles: a device's steps are coarse, and a millisecond is short."""

_COUNTED = {Mode.STALLED: "stalls", Mode.LATE: "fades", Mode.JUMPED: "jumps", Mode.BROKEN: "breaks"}
_BLIND = (Mode.JUMPED, Mode.BROKEN)
"""While its pose is not to be believed, a hand's tool stays where it was."""
_COUPLED = (Mode.RUNNING, Mode.LATE, Mode.CATCHING_UP)
"""While there is a touch to believe, the tool is where the coupling ends; otherwise it is where the hand is."""


class Driven:
    """One device and the tool it drives. Arithmetic is in the theatre's frame."""

    def __init__(self, device: HapticDevice, tool: int, params: CouplingParams | None = None) -> None:
        self.device = device
        self.tool = tool
        self.params = params or coupling_for(device)
        self.guard = Guard(limits_for(device.peak_force))
        self.tank = EnergyTank(self.params)
        self.position = ZERO
        """Of the hand [m]."""
        self.sent = ZERO
        """Where its tool was told to be [m]."""
        self.pose = Pose(ZERO, present=False)
        self._coupled = Coupled()
        self._seen = Situation()
        self._home: Vector3 | None = None
        self._past: list[tuple[float, Vector3]] = [(0.0, ZERO)] * SPEED_CYCLES
        """Of the last cycles: when [s], and where the hand was [m]."""
        self._cycles = 0

    def step(self, now: float, dt: float, touches: Touches) -> None:
        """Reads, couples, limits and writes. `dt` is the time since the last cycle [s]."""
        touch = touches.tools[self.tool]
        if touches.tick >= 0 and touch.home != self._home:
            self._place(touch.home)
        pose = self._read()
        x = pose.position
        moved = (x[0] - self.position[0], x[1] - self.position[1], x[2] - self.position[2])
        if dt <= LOOP_STALL_S and math.hypot(*moved) < JUMP_LEAST:
            self.tank.book(self.guard.force, moved, dt, self._coupled.stored)
        couple(self.params, touch, x, self._speed(now, x), self._coupled)
        seen, guard = self._seen, self.guard
        seen.now, seen.present, seen.position = now, pose.present, x
        seen.tick, seen.tick_time, seen.active = touches.tick, touches.time, touch.active
        seen.tool, seen.sent = touch.position, self.sent
        share = self.tank.share(self._coupled.stored, self._coupled.leaving)
        fx, fy, fz = self._coupled.force
        guard.step(seen, (share * fx, share * fy, share * fz), touch.torque)
        self._write()
        self.position = x
        if guard.away_s > LATE_WINDOW_S:
            self.tank.settle()
        if pose.present and guard.mode not in _BLIND:
            self.sent = self._coupled.tool if guard.mode in _COUPLED else x

    def let_go(self) -> None:
        self.guard.force = self.guard.torque = ZERO
        self._write()

    def _read(self) -> Pose:
        try:
            self.pose = self.device.read()
        except DeviceError:
            self.pose = replace(self.pose, present=False)
        return self.pose

    def _write(self) -> None:
        try:
            self.device.write(self.guard.force, self.guard.torque)
        except DeviceError:
            self.pose = replace(self.pose, present=False)

    def _place(self, home: Vector3) -> None:
        """Another world: its tool waits elsewhere, and that is where the middle of the device is put."""
        self._home = home
        place = getattr(self.device, "place", None)
        if place is not None:
            place(home)

    def _speed(self, now: float, x: Vector3) -> Vector3:
        """Over the time that passed, which is not SPEED_CYCLES periods where a cycle was late."""
        place = self._cycles % SPEED_CYCLES
        then, past = self._past[place]
        self._past[place] = (now, x)
        self._cycles += 1
        span = now - then
        if self._cycles <= SPEED_CYCLES or not 0.0 < span <= SPEED_CYCLES * LOOP_STALL_S:
            return ZERO
        rate = 1.0 / span
        return (rate * (x[0] - past[0]), rate * (x[1] - past[1]), rate * (x[2] - past[2]))


def coupling_for(device: HapticDevice) -> CouplingParams:
    """The coupling's limits are meant for the hand; motion and force scales carry them into the theatre."""
    params = CouplingParams()
    mapping = getattr(device, "mapping", None)
    if mapping is None:
        return params
    energy = mapping.scale / mapping.force_gain
    return replace(
        params,
        stiffest=params.stiffest / mapping.stiffness_gain,
        budget=params.budget * energy,
        most=params.most * energy,
        power=params.power * energy,
    )


class HapticLoop:
    """All devices of this machine against whichever session runs."""

    def __init__(
        self,
        driven: Sequence[Driven],
        link: Link,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.driven = list(driven[:TOOLS])
        self._link = link
        self._clock = clock
        self._hands = Hands()
        self._touches = Touches()
        self._modes = [Mode.ABSENT] * TOOLS
        self._last: float | None = None
        self._tick = -1
        self._age = math.inf
        """Of the newest tick when the last cycle began [s]."""
        for place, one in enumerate(self.driven):
            link.set_name(place, one.device.name)

    def cycle(self) -> None:
        link = self._link
        now = self._clock()
        dt = now - self._last if self._last is not None else PERIOD
        if self._last is not None:
            link.period.add(dt)
        self._last = now
        touches = self._touches
        link.read_touches(touches)
        self._age = now - touches.time
        for one in self.driven:
            one.step(now, dt, touches)
        self._post(now)
        done = self._clock()
        if touches.tick != self._tick and touches.hand_time > 0.0:
            link.latency.add(done - touches.hand_time)
        self._tick = touches.tick
        link.work.add(done - now)
        link.count("cycles")

    def phase_error(self) -> float:
        """How much later the last cycle should have come [s]: a cycle that comes shortly after a tick feels it a
        millisecond earlier than one that comes shortly before the next."""
        age = self._age
        if not 0.0 <= age < STALL_S:
            return 0.0
        return (AFTER_TICK_S - age + 0.5 * PERIOD) % PERIOD - 0.5 * PERIOD

    def _post(self, now: float) -> None:
        for place, (one, hand) in enumerate(zip(self.driven, self._hands.hands, strict=False)):
            mode = one.guard.mode
            # Before the first tick is seen, nobody knows where in the theatre the device is.
            hand.tool, hand.present = one.tool, one.pose.present and self._touches.tick >= 0
            hand.position, hand.orientation, hand.grip = one.sent, one.pose.orientation, one.pose.grip
            hand.force, hand.mode, hand.gain = one.guard.force, mode, one.guard.gain
            if mode is not self._modes[place]:
                self._modes[place] = mode
                if mode in _COUNTED:
                    self._link.count(_COUNTED[mode])
        self._hands.time = now
        self._link.post_hands(self._hands)

    def run(self, stopping: Callable[[], bool]) -> None:
        """A cycle per millisecond until `stopping`; ends with no force."""
        with Collecting():  # a cycle leaves no reference cycles behind
            try:
                beat = Beat(self._clock)
                while not stopping():
                    self.cycle()
                    beat.nudge(self.phase_error())
                    beat.wait()
            finally:
                for one in self.driven:
                    one.let_go()


class Beat:
    """A thousand times a second, as near as an ordinary operating system allows. A beat that is missed is missed."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._due = clock()
        self._waiter = Waiter(clock)

    def nudge(self, seconds: float) -> None:
        """Moves all beats to come a little towards being that much later."""
        self._due += max(-NUDGE_S, min(NUDGE_S, seconds))

    def wait(self) -> None:
        """Until the next millisecond begins."""
        self._due += PERIOD
        now = self._clock()
        if self._due - now < -PERIOD:
            self._due = now
        self._waiter.until(self._due)
