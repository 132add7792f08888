"""The haptic loop and its link to a session: in simulated time for the logic, with real processes for their deaths."""

from __future__ import annotations

import gc
import math
import os
import signal
import struct
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from server_browser import Browser, health, running_server
from session_fake_world import FACTORY

from viscera.errors import DeviceError, InputError
from viscera.haptics.check import HOME, Clock, Wall
from viscera.haptics.coupling import CouplingParams
from viscera.haptics.device import Pose
from viscera.haptics.devices.attach import AttachedDevice
from viscera.haptics.devices.hand import HandDevice, HandParams, poke, still
from viscera.haptics.link import BINS, SIZE, Hand, Hands, Histogram, Link, Mailbox, Touch, Touches
from viscera.haptics.loop import NUDGE_S, Beat, Driven, HapticLoop, coupling_for
from viscera.haptics.mapping import Mapping
from viscera.haptics.port import GONE_S, SessionPort
from viscera.haptics.priority import SHORTEST_REST_S, SessionPriority
from viscera.haptics.process import HapticProcess, HapticSpec
from viscera.haptics.safety import FALL, JUMP_REST_S, Mode
from viscera.inputs import ToolInput, Vector3
from viscera.instruments import FASTEST_TOOL, Tool, kit
from viscera.server import messages as m
from viscera.session.replay import DEFAULT_FACTORY, replay_report
from viscera.view import ToolState
from viscera.world.state import _pack, _unpack

ZERO: Vector3 = (0.0, 0.0, 0.0)

# --- the link --------------------------------------------------------------------------------------------------------


def test_a_device_that_holds_a_tip_feels_its_force_and_the_torque_of_the_handle() -> None:
    link = Link()
    state = ToolState(0, HOME, active=True, force=(0.1, 0.2, 0.3), torque=(0.01, 0.02, 0.03))
    SessionPort(link, [HOME]).publish(1, [replace(state, handle_force=(9.0, 9.0, 9.0), handle_torque=(0.0, 0.0, 0.03))])
    touches = Touches()
    link.read_touches(touches)
    assert touches.tools[0].force == (0.1, 0.2, 0.3)
    assert touches.tools[0].torque == (0.0, 0.0, 0.03)


def test_messages_come_out_as_they_went_in() -> None:
    link, other = Link(), Hands()
    assert not link.read_hands(other)
    hands = Hands(7.5)
    hands.hands[1] = Hand(1, True, (1.0, 2.0, 3.0), (0.0, 0.6, 0.0, 0.8), 0.25, (4.0, 5.0, 6.0), Mode.LATE, 0.5)
    link.post_hands(hands)
    assert link.read_hands(other)
    assert other == hands
    touches = Touches(12, 3.25, 3.0)
    touches.tools[0] = Touch(True, (0.1, 0.2, 0.3), (1.0, 2.0, 3.0), (math.inf, 0.0, -1.0), (7.0, 8.0, 9.0), ZERO, 5.0)
    read = Touches()
    link.post_touches(touches)
    assert link.read_touches(read)
    assert read == touches
    link.set_name(1, "omega.3")
    assert (link.name(0), link.name(1)) == ("", "omega.3")


def test_a_reader_never_sees_half_a_message() -> None:
    layout = struct.Struct("40d")
    memory = memoryview(bytearray(Mailbox.size_of(layout)))
    writer, reader = Mailbox(memory, layout), Mailbox(memory, layout)
    stop = threading.Event()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def write() -> None:
        value = 0
        while not stop.is_set():
            value += 1
            writer.post([float(value)] * 40)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen: list[tuple[float, ...]] = []
        end = time.monotonic() + 10.0
        while len({values[0] for values in seen}) < 20 and time.monotonic() < end:
            seen += [values for values in (reader.read() for _ in range(2_000)) if values is not None]
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert len({values[0] for values in seen}) >= 20
    assert all(len(set(values)) == 1 for values in seen)
    assert [values[0] for values in seen] == sorted(values[0] for values in seen)


def test_a_writer_that_was_killed_in_the_middle_leaves_the_message_before() -> None:
    layout = struct.Struct("2d")
    memory = memoryview(bytearray(Mailbox.size_of(layout)))
    Mailbox(memory, layout).post([1.0, 1.0])
    numbers = memory.cast("Q")
    numbers[1 + 2 * 4] = 2  # the slot after it: its number is there, the rest is not
    assert Mailbox(memory, layout).read() == (1.0, 1.0)
    Mailbox(memory, layout).post([2.0, 2.0])  # whoever comes next goes on
    assert Mailbox(memory, layout).read() == (2.0, 2.0)


def test_histograms_know_their_percentiles() -> None:
    histogram = Histogram(memoryview(bytearray(Histogram.SIZE)))
    assert histogram.summary().count == 0
    for index in range(10_000):
        histogram.add(1e-3 if index < 9_950 else 5e-3 if index < 9_999 else 0.5)
    summary = histogram.summary()
    assert summary.count == 10_000
    assert summary.p50_ms == pytest.approx(1.0, abs=0.01)
    assert summary.p99_ms == pytest.approx(1.0, abs=0.01)
    assert summary.p999_ms == pytest.approx(5.0, abs=0.01)
    assert summary.longest_ms == pytest.approx(500.0)
    assert summary.within_2ms == pytest.approx(0.995)
    assert histogram.counts()[BINS - 1] == 1
    histogram.clear()
    assert histogram.summary().count == 0


def test_the_link_is_small() -> None:
    assert SIZE < 2**18


# --- the loop on simulated time --------------------------------------------------------------------------------------


class Table:
    """A hand, its loop and a wall, a millisecond at a time. `session` is None while nobody ticks."""

    def __init__(self, device: HandDevice | None = None, stiffness: float = 500.0) -> None:
        self.clock, self.link = Clock(), Link()
        self.device = device or HandDevice(still((0.0, 0.0, -0.004)), period=1e-3)
        self.device.open()
        self.driven = Driven(self.device, 0)
        self.loop = HapticLoop([self.driven], self.link, self.clock)
        self.forces: list[float] = []
        self.begin(stiffness)

    def begin(self, stiffness: float = 500.0) -> None:
        """A new session."""
        self.wall: Wall | None = Wall(stiffness)
        self.port = SessionPort(self.link, [HOME], self.clock)

    def run(self, seconds: float, spoil: Callable[[ToolState], ToolState] | None = None) -> float:
        for _ in range(round(seconds * 1000)):
            self.loop.cycle()
            self.forces.append(math.hypot(*self.driven.guard.force))
            self.clock.now += 0.4e-3
            if self.wall is not None:
                self.wall.step(self.port.take())
                if spoil is not None:
                    self.wall.tools[0] = spoil(self.wall.tools[0])
                self.port.publish(self.wall.tick, self.wall.tools)
            self.clock.now += 0.6e-3
        return self.forces[-1]

    def steps(self, last: int) -> list[float]:
        forces = self.forces[-last - 1 :]
        return [b - a for a, b in pairwise(forces)]

    def pressed(self) -> Table:
        """The hand presses into the floor until it is at rest there."""
        assert self.run(1.5) == pytest.approx(500.0 * -self.device.position[2], rel=0.01)
        assert self.forces[-1] > 0.5
        return self


def test_a_killed_world_is_let_go_of_and_the_next_one_comes_back_without_a_kick() -> None:
    table = Table().pressed()
    before = table.forces[-1]
    table.wall = None
    table.run(0.003)
    assert table.forces[-1] == 0.0
    table.run(0.5)
    assert table.driven.guard.mode is Mode.STALLED
    deep = table.device.position[2]
    assert deep < -0.0035  # nothing holds the hand up any more
    table.begin()
    table.run(0.05)
    assert table.forces[-1] < 0.2 * before
    table.run(1.5)
    assert table.driven.guard.mode is Mode.RUNNING
    assert table.forces[-1] == pytest.approx(before, rel=0.05)
    assert max(table.steps(1550)) < 0.05  # N per ms; the slew limit is 1
    assert table.link.counters()["stalls"] >= 1


def test_a_force_that_is_not_a_number_is_not_felt_and_leaves_nothing_behind() -> None:
    def spoil(tool: ToolState) -> ToolState:
        return replace(tool, force=(math.nan, 0.0, 1.0))

    table = Table().pressed()
    before = table.forces[-1]
    table.run(0.003, spoil)
    assert table.forces[-1] == 0.0
    assert table.driven.guard.mode is Mode.BROKEN
    table.run(0.2)
    assert table.forces[-1] == pytest.approx(before, rel=0.05)
    assert math.isfinite(table.driven.tank.level)


def test_a_hand_that_jumps_keeps_its_tool_where_it_was() -> None:
    table = Table().pressed()
    tool = table.driven.sent
    table.device.position[0] += 1.0
    table.device.way = still((1.0, 0.0, -0.004))
    table.device._goal = (1.0, 0.0, -0.004)
    table.run(0.5 * JUMP_REST_S)
    assert table.driven.guard.mode is Mode.JUMPED
    assert table.forces[-1] == 0.0
    assert table.driven.sent == tool
    # It stays there: the tool follows at a hand's speed, and is felt once it has come.
    table.run(1.0)
    assert table.forces[-1] == 0.0
    assert table.driven.guard.mode is Mode.CATCHING_UP
    table.run(2.0)
    assert table.driven.guard.mode is Mode.RUNNING
    assert table.forces[-1] > 0.5
    assert max(table.steps(3000)) <= table.device.peak_force / 10 + 1e-9


def test_a_hand_that_jumps_deeper_while_it_presses_feels_nothing_at_once() -> None:
    table = Table().pressed()
    table.device.position[2] -= 1.0
    table.device.way = still((0.0, 0.0, -1.004))
    table.device._goal = (0.0, 0.0, -1.004)
    assert table.run(0.001) == 0.0
    assert table.driven.guard.mode is Mode.JUMPED
    table.run(0.5)
    assert max(table.forces[-500:]) == 0.0


@pytest.mark.parametrize("stiffness", [500.0, 1e6])
@pytest.mark.parametrize("way", [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0)], ids=["out", "in", "aside"])
def test_a_world_whose_tool_jumps_a_metre_does_not_push(stiffness: float, way: Vector3) -> None:
    """Outwards is the worst of them: the hand would be a metre deep in the wall that the tool touches there."""

    def spoil(tool: ToolState) -> ToolState:
        x, y, z = tool.position
        return replace(tool, position=(x + way[0], y + way[1], z + way[2]))

    # A hand that does not give: nothing moves, so nothing can be learnt about the wall afterwards.
    firm = HandParams(stiffness=1e5, damping=500.0)
    table = Table(HandDevice(poke(HOME[2] + 0.002, HOME, hold=9.0), firm, period=1e-3), stiffness)
    before = table.run(2.5)
    assert before == pytest.approx(min(stiffness, 2000.0) * 0.002, rel=0.03)
    table.run(0.2, spoil)
    # A tick is felt a cycle later, and a peak falls within 2.5 ms.
    assert set(table.forces[-196:]) == {0.0}
    assert table.driven.guard.mode is Mode.CATCHING_UP
    assert math.dist(table.driven.sent, table.device.position) < 1e-9
    table.run(2.0)
    assert table.forces[-1] == pytest.approx(before, rel=0.01)
    assert max(table.forces[-2200:]) <= before * 1.01
    assert max(table.steps(2200)) <= table.device.peak_force / 10 + 1e-9


def test_a_touch_that_jumps_a_metre_and_stays_hard_does_not_push() -> None:
    """As above, with a session that keeps saying 10⁶ N/m, which our own estimate does not after a jump."""
    clock, link = Clock(), Link()
    driven = Driven(HandDevice(still((0.0, 0.0, -1e-3)), period=1e-3), 0)
    loop, touches, forces = HapticLoop([driven], link, clock), Touches(), []

    def run(cycles: int, height: float) -> None:
        for _ in range(cycles):
            clock.now += 1e-3
            touches.tick, touches.time = touches.tick + 1, clock.now - 2e-4
            touches.tools[0] = Touch(True, ZERO, (0.0, 0.0, height), (0.0, 0.0, 1.0), ZERO, (0.0, 0.0, 1.0), 1e6)
            link.post_touches(touches)
            loop.cycle()
            forces.append(math.hypot(*driven.guard.force))

    run(1000, 0.0)
    before = forces[-1]
    assert before > 0.1
    run(300, 1.0)
    assert max(forces[-300:]) <= before
    assert set(forces[-296:]) == {0.0}
    assert driven.guard.mode is Mode.CATCHING_UP


def test_a_hand_is_as_fast_as_it_is_when_cycles_are_late() -> None:
    """0.1 m/s, every third cycle 3 ms long: dividing by three periods would say 0.167 m/s."""
    driven, now = Driven(HandDevice(still(), period=1e-3), 0), 1.0
    found = []
    for cycle in range(30):
        now += 3e-3 if cycle % 3 == 0 else 1e-3
        found.append(driven._speed(now, (0.0, 0.05 * now, -0.1 * now)))
    assert found[:3] == [ZERO] * 3  # nothing is known yet
    for speed in found[3:]:
        assert speed == pytest.approx((0.0, 0.05, -0.1))
    # After a stall, and at the same moment twice, nothing is said.
    assert driven._speed(now + 0.1, ZERO) == ZERO
    same = Driven(HandDevice(still(), period=1e-3), 0)
    assert [same._speed(1.0, (float(x), 0.0, 0.0)) for x in range(6)] == [ZERO] * 6


def test_a_floor_of_a_million_newtons_per_metre_is_bounded_and_quiet() -> None:
    table = Table(HandDevice(poke(0.03, HOME, seconds=0.5, hold=5.0), period=1e-3), stiffness=1e6)
    table.run(2.0)
    peak = table.device.peak_force
    assert max(table.forces) <= peak
    assert max(table.steps(1999)) <= peak / 10 + 1e-9
    assert -min(table.steps(1999)) <= FALL * peak / 10 + 1e-9
    rest = table.forces[-300:]
    assert max(rest) - min(rest) < 0.01
    # The hand is 2 mm in, the tool rests on the floor.
    assert table.device.position[2] < -0.001
    assert table.driven.sent[2] > -2e-5


def test_contact_that_comes_back_is_no_kick() -> None:
    """The floor vanishes under a pressing hand for a while, and is there again, 4 mm above it."""

    def gone(tool: ToolState) -> ToolState:
        return replace(tool, force=ZERO)

    table = Table().pressed()
    table.run(0.5, gone)
    assert table.forces[-1] == 0.0
    table.run(0.3)
    # Energy decides: nothing was put in, so the hand is lifted slowly if at all.
    assert max(table.steps(300)) <= table.device.peak_force / 10 + 1e-9
    assert abs(table.device.velocity[2]) < 0.1


def test_a_device_that_is_lost_takes_its_tool_out() -> None:
    class Flaky(HandDevice):
        gone = False

        def read(self) -> Pose:
            if self.gone:
                raise DeviceError("unplugged.")
            return super().read()

    device = Flaky(still((0.0, 0.0, -0.004)), period=1e-3)
    table = Table(device).pressed()
    assert table.port.holds(0)
    assert table.wall is not None
    device.gone = True
    table.run(0.002)
    assert table.forces[-1] == 0.0
    table.run(0.01)
    assert not table.port.holds(0)
    assert not table.wall.tools[0].active
    (state,) = table.port.states()
    assert (state.device, state.present, state.mode) == ("hand", False, "absent")
    device.gone = False
    table.run(1.5)
    assert table.forces[-1] > 0.5


def test_two_hands_feel_their_own_tools_and_not_each_others_faults() -> None:
    clock, link = Clock(), Link()
    devices = [HandDevice(still((x, 0.0, 0.0)), period=1e-3) for x in (0.0, 0.1)]
    loop = HapticLoop([Driven(device, tool) for tool, device in enumerate(devices)], link, clock)
    touches, hands = Touches(), Hands()

    def run(cycles: int, second: float) -> None:
        for _ in range(cycles):
            clock.now += 1e-3
            touches.tick, touches.time = touches.tick + 1, clock.now - 2e-4
            for tool, size in enumerate((0.4, second)):
                place = devices[tool].position[0]
                touches.tools[tool] = Touch(True, position=(place, 0.0, 0.0), force=(0.0, 0.0, size))
            link.post_touches(touches)
            loop.cycle()

    run(800, 0.8)
    assert [round(device.force[2], 3) for device in devices] == [0.4, 0.8]
    link.read_hands(hands)
    assert [hand.tool for hand in hands.hands] == [0, 1]
    run(1, math.nan)
    assert devices[0].force[2] == pytest.approx(0.4)
    assert devices[1].force == ZERO


def test_limits_are_meant_for_the_hand_whatever_the_scale() -> None:
    """A tool that moves half as far as the hand: the hand feels s·f = 1/4 of a stiffness, so four times as much may be
    felt of the theatre's; power is kept, so energies stay."""
    device = AttachedDevice(HandDevice(still()), Mapping(scale=0.5))
    scaled, plain = coupling_for(device), CouplingParams()
    assert scaled.stiffest == pytest.approx(4 * plain.stiffest)
    assert scaled.budget == pytest.approx(plain.budget)
    stronger = coupling_for(AttachedDevice(HandDevice(still()), Mapping(force_scale=2.0)))
    assert stronger.stiffest == pytest.approx(plain.stiffest / 2)
    assert stronger.most == pytest.approx(plain.most / 2)


def test_a_haptic_process_that_says_nothing_lets_go_of_its_tools() -> None:
    table = Table().pressed()
    table.clock.now += GONE_S
    (given,) = table.port.take()
    assert (given.tool, given.active) == (0, False)
    assert table.port.take() == []
    assert not table.port.holds(0)


def test_a_pose_is_taken_once_and_directly() -> None:
    table = Table().pressed()
    (given,) = [one for one in table.port.take() if one.active] or [None]
    assert given is None  # the wall has taken it
    table.loop.cycle()
    (given,) = table.port.take()
    assert given.direct
    assert given.position == table.driven.sent


def test_cycles_leave_nothing_behind_in_memory() -> None:
    """The collector is off while the loop runs, so nothing may need it."""
    table = Table()
    table.run(0.5)
    gc.disable()
    tracemalloc.start()
    try:
        before = tracemalloc.take_snapshot()
        table.forces.clear()
        table.run(2.0)
        table.forces.clear()
        grown = tracemalloc.take_snapshot().compare_to(before, "filename")
    finally:
        tracemalloc.stop()
        gc.enable()
    ours = [entry for entry in grown if "viscera" in entry.traceback[0].filename]
    # One object kept per cycle would be more than 60 kB.
    assert sum(entry.size_diff for entry in ours) < 10_000


def test_a_direct_hand_has_no_lag_and_a_checkpoint_knows() -> None:
    probe = kit.probe(0.005).at(HOME)
    near = (0.0, 0.0, HOME[2] - 4e-4)
    tips = {}
    for direct in (False, True):
        tool, copy = Tool(0, probe), Tool(0, probe)
        tool.take(ToolInput(0, near, direct=direct))
        _unpack(copy, _pack(tool))
        for one in (tool, copy):
            one.follow(1e-3)
        assert (tool.tip == copy.tip).all()
        tips[direct] = float(tool.tip[2])
    assert tips[True] == near[2]
    assert tips[False] > near[2] + 1e-4
    # However it is held, it is no faster than a hand.
    tool.take(ToolInput(0, (1.0, 0.0, near[2]), direct=True))
    tool.follow(1e-3)
    assert tool.tip[0] == pytest.approx(FASTEST_TOOL * 1e-3)


def test_the_beat_moves_behind_the_tick() -> None:
    """Latency is a tick and a bit when cycles come just after ticks, nearly two when they come just before."""
    table = Table()
    table.run(0.1)
    link_time = table.clock.now - 0.6e-3
    for age, sign in ((0.05e-3, 1), (0.2e-3, 1), (0.4e-3, -1), (0.9e-3, 1)):
        table.clock.now = link_time + age
        table.loop.cycle()
        error = table.loop.phase_error()
        assert abs(error) <= 0.5e-3 + 1e-12
        assert error * sign > 0.0
    table.clock.now = link_time + 0.5
    table.loop.cycle()
    assert table.loop.phase_error() == 0.0  # nobody ticks
    now = [0.0]

    def clock() -> float:
        now[0] += 1e-6
        return now[0]

    beat = Beat(clock)
    beat.nudge(1.0)
    beat.wait()
    assert now[0] == pytest.approx(1e-3 + NUDGE_S, abs=1e-5)


def test_a_missed_beat_is_missed() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1e-6
        return now[0]

    beat = Beat(clock)
    now[0] = 0.0305
    beat.wait()
    assert now[0] < 0.0306  # at once, and then a millisecond apart again
    before = now[0]
    beat.wait()
    assert now[0] - before == pytest.approx(1e-3, abs=1e-4)


def test_a_session_steps_back_when_it_leaves_nothing_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr("viscera.haptics.priority.come_first", lambda *_: bool(done.append("first")) or True)
    monkeypatch.setattr("viscera.haptics.priority.step_back", lambda: done.append("back"))
    used, now = [0.0], [0.0]
    priority = SessionPriority(0.0, lambda: used[0])
    priority._cores = 2

    def run(seconds: float, load: float) -> None:
        for _ in range(round(seconds * 62.5)):
            now[0] += 0.016
            used[0] += 0.016 * 2 * load
            priority.watch(now[0])

    run(10.0, 0.6)
    assert done == ["first"]
    run(1.5, 0.95)
    assert done == ["first", "back"]
    run(SHORTEST_REST_S + 1.5, 0.95)  # tries again, in vain
    assert done == ["first", "back", "first", "back"]
    run(2 * SHORTEST_REST_S - 1.0, 0.3)
    assert len(done) == 4  # and rests for longer
    run(30.0, 0.3)
    assert done == ["first", "back", "first", "back", "first"]


# --- real processes --------------------------------------------------------------------------------------------------


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def hand_of(link: Link) -> Hand:
    hands = Hands()
    link.read_hands(hands)
    return hands.hands[0]


def test_a_session_is_killed_under_a_hand_and_comes_back(tmp_path: Path) -> None:
    """kill -9: no force at once, none while it is gone, and force again after Restart; then the same bits in replay."""
    with HapticProcess(HapticSpec(("hand",), report=tmp_path / "haptics.json")) as haptic:
        assert haptic.names == ["hand"]
        link = haptic.link
        with running_server(tmp_path, factory=FACTORY, haptics=link) as server, Browser(server) as browser:
            frame = browser.wait(
                m.FrameMessage, lambda frame: bool(frame.state.haptics) and frame.state.haptics[0].present
            )
            assert frame.state.haptics[0].device == "hand"
            # On a busy machine ticks are late and little of the force gets through; some of it must.
            wait_for(lambda: hand_of(link).force[2] > 0.01)
            # A pointer over the page does not tear the tool out of the hand.
            browser.move(1, position=(0.0, 0.0, 1.0))
            browser.watch(0.1)
            os.kill(health(server)["session_pid"], signal.SIGKILL)
            browser.wait_state("crashed")
            # Its own process lets go. On a busy machine the news of the crash may come before its next cycle.
            wait_for(lambda: Mode(hand_of(link).mode) is Mode.STALLED)
            assert hand_of(link).force == ZERO
            stalls = link.counters()["stalls"]
            time.sleep(0.1)
            assert hand_of(link).force == ZERO
            assert link.counters()["stalls"] == stalls
            browser.send(m.Restart())
            browser.wait_state("running", 60.0)
            wait_for(lambda: hand_of(link).force[2] > 0.01)
    assert (tmp_path / "haptics.json").is_file()
    (archive,) = tmp_path.glob("*.h5")
    done = replay_report(archive, factory=FACTORY)
    assert done.same is True
    inputs = [given for _, given in done.recording.inputs]
    assert len(inputs) > 100
    assert all(getattr(given, "direct", False) for given in inputs)


@pytest.mark.slow
def test_live_with_a_hand_is_the_same_world_replayed(tmp_path: Path) -> None:
    options = {"factory": DEFAULT_FACTORY, "device": "cpu", "seed": 3}
    with HapticProcess(HapticSpec(("hand",))) as haptic:  # noqa: SIM117
        with running_server(tmp_path, "palpation", haptics=haptic.link, **options) as server:
            with Browser(server) as browser:
                browser.wait(
                    m.FrameMessage, lambda frame: math.hypot(*frame.state.tools[0].force) > 0.05, seconds=120.0
                )
                browser.watch(0.5)
    (archive,) = tmp_path.glob("*.h5")
    done = replay_report(archive)
    assert done.same is True
    assert done.world.peak_force > 0.05
    done.world.close()


def test_the_haptic_process_ends_with_whoever_made_it() -> None:
    haptic = HapticProcess(HapticSpec(("hand",)))
    haptic.start()
    process = haptic._process
    assert process is not None
    wait_for(lambda: haptic.link.counters()["cycles"] > 10)
    assert haptic._pipe is not None
    haptic._pipe.close()  # as the system does when the maker is killed
    process.join(10.0)
    assert process.exitcode == 0
    haptic._pipe = None
    haptic.stop()


def test_without_a_device_there_is_a_sentence_and_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    haptic = HapticProcess(HapticSpec(("haply",)))
    haptic.start()
    assert haptic.names == []
    (sentence,) = haptic.sentences
    assert "haply" in sentence
    assert "pointer" in sentence
    assert haptic.pid is None


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="not known"):
        HapticProcess(HapticSpec(("theremin",))).start()
    with pytest.raises(InputError, match="too many"):
        HapticProcess(HapticSpec(("hand", "haply", "touch")))
