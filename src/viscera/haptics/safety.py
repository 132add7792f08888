"""The last gate before a hand: what may go wrong behind it, and what the hand then feels. Always on.

| what happens | what the hand feels |
| --- | --- |
| a force or pose that is not finite | nothing, at once |
| no new tick for 2 ms: a world that is stuck, was killed, is paused | nothing, at once |
| the device is away, or the hand jumps farther than a hand can | nothing, at once |
| the tool is not where the hand is: brought in just now, or outrun | nothing, as soon as the slew limit allows |
| ticks come at less than 0.9 of real time for 100 ms | the force fades out, and comes back when they do |
| any force above what the device is for | the device's peak, in the same direction |
| any rise faster than peak per 10 ms, any fall faster than peak per 2.5 ms | the change at that rate |

After each interruption the force comes back from zero along a ramp, the longer the longer it was away, so neither a
contact nor a session that returns is a blow. "At once" is exempt from the slew limit: a force is never held up on its
way to nothing.

`Guard` is plain arithmetic on what it is given, times included, so all of this is tested without hardware.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from viscera.haptics.link import ZERO
from viscera.inputs import Vector3

STALL_S = 2e-3
"""A world that has not ticked for this long stands still [s]."""

LOOP_STALL_S = 5e-3
"""Nor may the haptic loop itself stand still for longer than this without beginning anew [s]."""

LATE_FACTOR = 0.9
"""Real-time factor below which force fades out."""
RECOVERED_FACTOR = 0.95
"""And above which it comes back."""
LATE_WINDOW_S = 0.1
"""Over which the factor is taken [s]."""
FADE_OUT_S = 0.1
FADE_IN_S = 0.3

FASTEST_HAND = 5.0
"""A hand moves at up to about 3 m/s; what is faster is a jump [m/s]."""
JUMP_LEAST = 0.01
"""And a step smaller than this is none, however short the time it took [m]."""
JUMP_REST_S = 0.05
"""After a jump nothing is believed for this long [s]."""

CATCH_UP = 0.01
"""A tool farther than this from where it was told to be has yet to come [m]."""

SHORTEST_RAMP_S = 0.02
LONGEST_RAMP_S = 0.5
RAMP_PER_ABSENCE = 5.0
"""The ramp after an interruption takes this many times as long as it lasted, within the two bounds above."""

SLEW_TIME_S = 0.01
"""Zero to peak takes at least this long [s]."""

FALL = 4.0
"""And peak to zero this many times less: a force that is held up on its way down gives the hand energy."""

LONGEST_STEP_S = 2e-3
"""A late cycle may change the force by no more than this much time allows [s]."""


class Mode(IntEnum):
    """Why the force is what it is."""

    RUNNING = 0
    ABSENT = 1
    """No session has ticked yet, or the device is away."""
    STALLED = 2
    BROKEN = 3
    JUMPED = 4
    CATCHING_UP = 5
    LATE = 6
    """Fading out, or faded."""


@dataclass(frozen=True)
class Limits:
    peak: float
    """[N]"""
    slew: float
    """[N/s]"""
    peak_torque: float = 0.1
    """[N·m]"""


def limits_for(peak_force: float) -> Limits:
    """Limits for a device that can push with `peak_force` [N]."""
    peak = peak_force if math.isfinite(peak_force) and peak_force > 0.0 else 0.0
    return Limits(peak, peak / SLEW_TIME_S)


@dataclass(slots=True)
class Situation:
    """What a cycle of the haptic loop knows about one hand."""

    now: float = 0.0
    """[s]"""
    present: bool = False
    """Whether the device is there."""
    position: Vector3 = ZERO
    """Of the hand [m]."""
    tick: int = -1
    """Newest of the session; -1 before the first."""
    tick_time: float = 0.0
    """When it was done [s]."""
    active: bool = False
    """Whether the world has a tool in this hand."""
    tool: Vector3 = ZERO
    """Where that was in the newest tick [m]."""
    sent: Vector3 = ZERO
    """Where it was last told to be [m]."""


class Guard:
    """Turns wanted forces into safe ones, cycle by cycle. One per device."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.mode = Mode.ABSENT
        self.force = ZERO
        self.torque = ZERO
        self.ramp = 0.0
        """How far the force has come back after an interruption, 0 to 1."""
        self.fade = 1.0
        """How much of it a late world leaves, 0 to 1."""
        self.away_s = 0.0
        """How long the force has been cut off by now [s]."""
        self._ramp_s = LONGEST_RAMP_S
        self._cut_since: float | None = -math.inf
        """Since when there is no force; None while there is."""
        self._last: float | None = None
        self._position = ZERO
        self._jump_until = -math.inf
        self._pulse = _Pulse()

    @property
    def gain(self) -> float:
        """Share of the wanted force that is let through, 0 to 1."""
        return self.ramp * self.fade

    def step(self, seen: Situation, wanted: Vector3, torque: Vector3 = ZERO) -> None:
        """One cycle: `force` and `torque` become what may be written now."""
        gap = seen.now - self._last if self._last is not None else 0.0
        dt = min(max(gap, 0.0), LONGEST_STEP_S)
        fault = self._fault(seen, wanted, torque, gap)
        self._last = seen.now
        self._pulse.add(seen.now, seen.tick)
        if fault is not None and fault is not Mode.CATCHING_UP:
            self._cut(fault, seen.now)
            return
        self._come_back(seen.now, dt)
        if fault is Mode.CATCHING_UP:
            self.mode, self.ramp = fault, 0.0
            self._ramp_s = max(self._ramp_s, 5 * SHORTEST_RAMP_S)
        self.force = _slew(self.force, _scaled(wanted, self.limits.peak, self.gain), self.limits.slew * dt)
        slew_torque = self.limits.peak_torque / SLEW_TIME_S * dt
        self.torque = _slew(self.torque, _scaled(torque, self.limits.peak_torque, self.gain), slew_torque)

    def _fault(self, seen: Situation, wanted: Vector3, torque: Vector3, gap: float) -> Mode | None:
        if not all(map(math.isfinite, (*seen.position, *seen.tool, *wanted, *torque))):
            return Mode.BROKEN
        if not seen.present or seen.tick < 0:
            return Mode.ABSENT
        moved = math.dist(seen.position, self._position)
        self._position = seen.position
        trusted = self._cut_since is None or self.mode is Mode.JUMPED
        if trusted and moved > max(JUMP_LEAST, FASTEST_HAND * gap):
            self._jump_until = seen.now + JUMP_REST_S
        if seen.now < self._jump_until:
            return Mode.JUMPED
        if seen.now - seen.tick_time > STALL_S or gap > LOOP_STALL_S:
            return Mode.STALLED
        if not seen.active or math.dist(seen.sent, seen.tool) > CATCH_UP:
            return Mode.CATCHING_UP
        return None

    def _cut(self, fault: Mode, now: float) -> None:
        """Nothing, at once."""
        if self._cut_since is None:
            self._cut_since = now
        self.away_s = now - self._cut_since
        self.mode = fault
        self.ramp = 0.0
        self.force = self.torque = ZERO

    def _come_back(self, now: float, dt: float) -> None:
        if self._cut_since is not None:
            away = now - self._cut_since
            self._ramp_s = min(LONGEST_RAMP_S, max(SHORTEST_RAMP_S, RAMP_PER_ABSENCE * away))
            if away > LATE_WINDOW_S:
                self._pulse.forget()  # a pause is not lateness
            self._cut_since = None
            self.away_s = 0.0
        self.ramp = min(1.0, self.ramp + dt / self._ramp_s)
        factor = self._pulse.factor(now)
        if factor < LATE_FACTOR or (self.mode is Mode.LATE and factor < RECOVERED_FACTOR):
            self.fade = max(0.0, self.fade - dt / FADE_OUT_S)
            self.mode = Mode.LATE
        else:
            self.fade = min(1.0, self.fade + dt / FADE_IN_S)
            self.mode = Mode.RUNNING


class _Pulse:
    """How fast the world ticks: simulated over wall time, over the last 100 ms."""

    _SLOTS = 20

    def __init__(self) -> None:
        self._times = [0.0] * self._SLOTS
        self._ticks = [0] * self._SLOTS
        self._count = 0

    def forget(self) -> None:
        self._count = 0

    def add(self, now: float, tick: int) -> None:
        count, slots = self._count, self._SLOTS
        if count and tick < self._ticks[(count - 1) % slots]:
            self.forget()  # another session
        elif count and now - self._times[(count - 1) % slots] < LATE_WINDOW_S / slots:
            return
        place = self._count % slots
        self._times[place], self._ticks[place] = now, tick
        self._count += 1

    def factor(self, now: float) -> float:
        """1 until the world was watched for long enough."""
        if self._count < self._SLOTS:
            return 1.0
        oldest, newest = self._count % self._SLOTS, (self._count - 1) % self._SLOTS
        wall = self._times[newest] - self._times[oldest]
        return 1e-3 * (self._ticks[newest] - self._ticks[oldest]) / wall if wall > 0.0 else 1.0


def _scaled(wanted: Vector3, peak: float, gain: float) -> Vector3:
    """`wanted`, no longer than `peak`, times `gain`."""
    length = math.hypot(*wanted)
    factor = gain if length <= peak else gain * peak / length
    return (wanted[0] * factor, wanted[1] * factor, wanted[2] * factor)


def _slew(old: Vector3, new: Vector3, most: float) -> Vector3:
    """From `old` towards `new` by at most `most`, or FALL times that on the way down."""
    if math.hypot(*new) < math.hypot(*old):
        most *= FALL
    change = (new[0] - old[0], new[1] - old[1], new[2] - old[2])
    length = math.hypot(*change)
    if length <= most:
        return new
    share = most / length
    return (old[0] + share * change[0], old[1] + share * change[1], old[2] + share * change[2])
