"""The last gate before a hand, on an injected clock: whatever comes in, what goes out is bounded, slow to rise and
quick to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viscera.haptics.safety import (
    CATCH_UP,
    FALL,
    JUMP_REST_S,
    LATE_WINDOW_S,
    LONGEST_RAMP_S,
    LONGEST_STEP_S,
    SHORTEST_RAMP_S,
    STALL_S,
    Guard,
    Mode,
    Situation,
    limits_for,
)
from viscera.inputs import Vector3

PEAK = 3.3
UP: Vector3 = (0.0, 0.0, 2.0)
ZERO: Vector3 = (0.0, 0.0, 0.0)
NAN = math.nan


@dataclass
class Bench:
    """A guard, a hand that rests, and a world that ticks half a millisecond before each cycle unless told not to."""

    guard: Guard = field(default_factory=lambda: Guard(limits_for(PEAK)))
    seen: Situation = field(default_factory=lambda: Situation(present=True, active=True))
    ticks: bool = True
    forces: list[float] = field(default_factory=list)

    def run(self, seconds: float, wanted: Vector3 = UP, torque: Vector3 = ZERO) -> float:
        """Cycles of 1 ms; the size of the last force [N]."""
        for _ in range(round(seconds * 1000)):
            self.seen.now += 1e-3
            if self.ticks:
                self.tick(0.5e-3)
            self.cycle(wanted, torque)
        return self.forces[-1]

    def tick(self, ago: float = 0.0) -> None:
        self.seen.tick += 1
        self.seen.tick_time = self.seen.now - ago

    def cycle(self, wanted: Vector3 = UP, torque: Vector3 = ZERO) -> float:
        self.guard.step(self.seen, wanted, torque)
        self.forces.append(math.hypot(*self.guard.force))
        return self.forces[-1]

    def settle(self) -> Bench:
        assert self.run(LONGEST_RAMP_S + 0.2) == pytest.approx(2.0)
        return self


def test_a_force_passes_once_the_world_ticks() -> None:
    bench = Bench()
    bench.settle()
    assert bench.guard.mode is Mode.RUNNING
    assert bench.guard.gain == 1.0
    assert bench.guard.force == pytest.approx(UP)


@pytest.mark.parametrize(
    "bad", [(NAN, 0.0, 0.0), (math.inf, 0.0, 0.0), (0.0, -math.inf, 1.0), (NAN, NAN, NAN)], ids=str
)
def test_what_is_not_a_number_is_not_felt(bad: Vector3) -> None:
    for kind in ("force", "torque", "hand", "tool"):
        bench = Bench().settle()
        if kind in ("hand", "tool"):
            setattr(bench.seen, "position" if kind == "hand" else "tool", bad)
        assert bench.run(0.001, bad if kind == "force" else UP, bad if kind == "torque" else ZERO) == 0.0
        assert bench.guard.torque == ZERO
        assert bench.guard.mode is Mode.BROKEN
        bench.seen.position = bench.seen.tool = ZERO
        # Nothing of it stays behind, and it comes back along a ramp.
        assert bench.run(0.002) < 0.4
        bench.settle()


@pytest.mark.parametrize("phase", [0.0, 0.2e-3, 0.5e-3, 0.999e-3])
def test_a_world_that_stalls_is_let_go_of_within_2_ms(phase: float) -> None:
    """The next tick is due 1 ms after the last one; 2 ms after that the hand feels nothing, whatever the phase."""
    bench = Bench().settle()
    bench.seen.now += 1e-3 - phase
    bench.tick()  # the last one
    last = bench.seen.now
    bench.seen.now += phase
    zero_at = math.inf
    while bench.seen.now < last + 0.01:
        felt = bench.cycle()
        if bench.seen.now - last <= STALL_S:
            assert felt > 0.0
        if felt == 0.0:
            zero_at = min(zero_at, bench.seen.now)
        bench.seen.now += 1e-3
    assert zero_at - (last + 1e-3) <= 2e-3 + 1e-9
    assert bench.guard.mode is Mode.STALLED
    assert set(bench.forces[-6:]) == {0.0}


def test_the_loop_itself_may_not_stand_still() -> None:
    bench = Bench().settle()
    bench.seen.now += 0.02
    bench.tick()
    assert bench.cycle() == 0.0
    assert bench.guard.mode is Mode.STALLED


@pytest.mark.parametrize("away", [0.003, 0.02, 0.05, 2.0])
def test_it_comes_back_from_nothing_the_slower_the_longer_it_was_away(away: float) -> None:
    bench = Bench().settle()
    bench.ticks = False
    bench.run(away + 0.003)
    bench.ticks = True
    bench.forces.clear()
    bench.run(1.0)
    ramp = min(LONGEST_RAMP_S, max(SHORTEST_RAMP_S, 5.0 * away))
    half = next(index for index, force in enumerate(bench.forces) if force >= 1.0) * 1e-3
    # A stall of 20 or 50 ms makes the world late as well, which takes up to 0.2 s more.
    assert 0.4 * ramp < half < 0.75 * ramp + (0.2 if 0.01 < away < LATE_WINDOW_S else 0.02)
    assert bench.forces[0] <= 2.0 * 1e-3 / SHORTEST_RAMP_S + 1e-9
    assert bench.forces[-1] == pytest.approx(2.0)
    steps = [b - a for a, b in pairwise(bench.forces)]
    assert max(steps) <= 2.0 * 1e-3 / SHORTEST_RAMP_S + 1e-9


def test_a_hand_that_jumps_a_metre_feels_nothing() -> None:
    bench = Bench().settle()
    bench.seen.position = bench.seen.sent = (1.0, 0.0, 0.0)
    assert bench.run(0.001, (1000.0, 0.0, 0.0)) == 0.0
    assert bench.guard.mode is Mode.JUMPED
    bench.seen.position = bench.seen.sent = ZERO  # it was a slip of the device
    assert bench.run(JUMP_REST_S - 0.002) == 0.0
    bench.settle()


def test_a_hand_that_moves_as_hands_do_is_no_jump() -> None:
    bench = Bench().settle()
    for _ in range(100):
        x = bench.seen.position[0] + 0.003  # 3 m/s
        bench.seen.position = bench.seen.sent = bench.seen.tool = (x, 0.0, 0.0)
        assert bench.run(0.001) == pytest.approx(2.0)


def test_a_tool_that_has_yet_to_come_is_not_felt() -> None:
    bench = Bench().settle()
    bench.seen.sent = (0.0, 0.0, 2 * CATCH_UP)
    bench.run(0.01)
    assert bench.guard.mode is Mode.CATCHING_UP
    assert bench.forces[-1] == 0.0
    assert max(abs(b - a) for a, b in pairwise(bench.forces[-11:])) <= FALL * PEAK / 10 + 1e-9
    bench.seen.sent = ZERO
    assert bench.run(0.005) < 0.2
    bench.settle()


def test_a_late_world_fades_and_returns() -> None:
    """Ticks at 0.8 of real time, none of them 2 ms late: too slow to be true, so the force goes, gently."""
    bench = Bench().settle()
    bench.ticks = False
    begun = len(bench.forces)
    for cycle in range(500):
        bench.seen.now += 1e-3
        if cycle % 5:
            bench.tick(0.5e-3)
        bench.cycle()
    assert bench.guard.mode is Mode.LATE
    assert bench.forces[-1] == 0.0
    faded = next(index for index in range(begun, len(bench.forces)) if bench.forces[index] == 0.0) - begun
    assert LATE_WINDOW_S * 1000 * 0.8 < faded < 300
    steps = [a - b for a, b in pairwise(bench.forces[begun:])]
    assert max(steps) < 0.05
    bench.ticks = True
    bench.run(0.6)
    assert bench.guard.mode is Mode.RUNNING
    assert bench.forces[-1] == pytest.approx(2.0)


def test_a_world_that_stutters_does_not_buzz() -> None:
    """A tick every 3 ms: each of them is a stall and a return. What gets through is a tenth at first, then nothing."""
    bench = Bench().settle()
    bench.ticks = False
    felt = []
    for cycle in range(1000):
        bench.seen.now += 1e-3
        if cycle % 3 == 0:
            bench.tick()
        felt.append(bench.cycle())
    assert max(felt[10:]) <= 0.3
    assert max(felt[300:]) == 0.0


def test_before_any_session_and_without_a_device_there_is_no_force() -> None:
    bench = Bench()
    bench.ticks = False
    assert bench.run(0.1) == 0.0
    assert bench.guard.mode is Mode.ABSENT
    bench = Bench().settle()
    bench.seen.present = False
    assert bench.run(0.001) == 0.0
    bench.seen.active, bench.seen.present = False, True
    assert bench.run(0.6) == 0.0  # the world has no tool in this hand


def test_a_device_without_motors_is_never_pushed() -> None:
    for peak in (0.0, -1.0, NAN, math.inf):
        guard = Guard(limits_for(peak))
        bench = Bench(guard)
        assert bench.run(1.0) == 0.0


@dataclass(frozen=True)
class Moment:
    wanted: Vector3
    gap: float
    ticked: bool
    jumped: bool
    present: bool


any_number = st.one_of(
    st.floats(-20.0, 20.0), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 1e6, -1e9, 1e308])
)
moments = st.builds(
    Moment,
    wanted=st.tuples(any_number, any_number, any_number),
    gap=st.sampled_from([1e-3, 1e-3, 1e-3, 0.0, 5e-4, 3e-3, 0.02, 1.0]),
    ticked=st.sampled_from([True, True, True, False]),
    jumped=st.sampled_from([False] * 9 + [True]),
    present=st.sampled_from([True] * 9 + [False]),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(moments, min_size=1, max_size=60))
def test_whatever_happens_the_force_is_finite_bounded_and_slow_to_rise(story: list[Moment]) -> None:
    bench = Bench().settle()
    limits = bench.guard.limits
    before = bench.guard.force
    for moment in story:
        bench.seen.now += moment.gap
        bench.seen.present = moment.present
        if moment.ticked:
            bench.tick()
        if moment.jumped:
            bench.seen.position = bench.seen.sent = bench.seen.tool = (bench.seen.position[0] + 1.0, 0.0, 0.0)
        felt = bench.cycle(moment.wanted, moment.wanted)
        force = bench.guard.force
        assert all(map(math.isfinite, (*force, *bench.guard.torque)))
        assert felt <= limits.peak + 1e-9
        assert math.hypot(*bench.guard.torque) <= limits.peak_torque + 1e-9
        if felt > 0.0:  # to nothing it may go at once
            most = limits.slew * min(moment.gap, LONGEST_STEP_S)
            assert math.dist(force, before) <= FALL * most + 1e-9
            assert felt - math.hypot(*before) <= most + 1e-9
        before = force
