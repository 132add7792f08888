"""Systems beside the ticks: what they see, when what they did takes effect, and that a replay is the same world."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from viscera import headless
from viscera.device import Device
from viscera.errors import DeviceError, StateError
from viscera.inputs import Behind, Input, SetParameter, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting, make
from viscera.session.logfile import read_log
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import feed
from viscera.timing import TICKS_PER_FRAME
from viscera.tissue.materials import SOFT_TISSUE
from viscera.view import Measure, Parameter
from viscera.world import Contents, Organ, World, block, looking_down, organ
from viscera.world.system import Kept, LiveParameter, Moment, System

TURNS = Measure("turns", "Turns", "", "")
SLOW = 0.05
"""What a slow turn takes [s]: three frames."""


def softening(pad: Organ, wait: Callable[[], None]) -> System:
    """Each turn makes the springs a little softer, the more the deeper the tissue is pushed: it reads and writes the
    lattice, so any slip in time changes all bits."""
    counted = np.zeros(1, dtype=np.int64)
    rate = np.full(1, 0.01)
    due = np.zeros(1, dtype=np.bool_)
    springs = pad.shadow.tissue.constants.stiffness

    def frame(now: Moment) -> None:
        wait()
        deepest = float(np.abs(pad.shadow.displacement.numpy()).max())
        tip = 1.0 + now.tools[0].tip[2]
        springs.assign((springs.numpy() * np.float16(1.0 - rate[0] * (0.1 + 20.0 * deepest) / tip)).astype(np.float16))
        counted[0] += 1
        due[0] = True

    def land() -> None:
        if due[0]:
            pad.shadow.land()
            due[0] = False

    def set_rate(value: float) -> None:
        rate[0] = value

    kept = Kept({"springs": springs, "counted": counted, "due": due, "rate": rate})
    return System(
        name="softening",
        frame=frame,
        lands=land,
        save=kept.save,
        load=kept.load,
        measures=lambda: [(TURNS, float(counted[0]))],
        parameters=[LiveParameter(Parameter("rate", "Rate", "", 0.0, 0.1, 0.01, ""), set_rate)],
    )


def scenario(wait: Callable[[], None] = lambda: None) -> Scenario:
    def build(setting: Setting) -> Contents:
        body = block((8, 8, 4), 0.006)
        below = body.nodes[:, 2] == 0
        pad = organ("pad", body, setting.device, material=SOFT_TISSUE, anchored=below, poisson=0.25, viscous_time=2e-4)
        tools = kit.hand_out([kit.probe(0.012)], (0.0, 0.0, 0.06))
        camera, bounds = looking_down([pad], (0.1, -0.8, 0.8))
        return Contents(organs=[pad], tools=tools, systems=[softening(pad, wait)], camera=camera, bounds=bounds)

    return Scenario("softening", build)


def press(tick: int) -> list[Input]:
    depth = 0.008 * np.sin(np.pi * tick / 400.0)
    given: list[Input] = [ToolInput(0, (0.001, 0.0, 0.036 - float(depth)))] if tick % 10 == 0 else []
    return [*given, SetParameter("rate", 0.02)] if tick == 133 else given


def test_stepping_and_advancing_are_the_same_world(cpu: Device) -> None:
    hashes = set()
    for cores, together in ((1, True), (2, True), (2, False), (1, False)):
        world = make(scenario(), device="cpu", cores=cores)
        for tick in range(300):
            for one in press(tick):
                world.apply(one)
            (world.advance if together else world.step)()
        hashes.add(world.state_hash())
        world.close()
    assert len(hashes) == 1


def test_what_a_turn_did_is_in_force_one_frame_later() -> None:
    world = make(scenario(), device="cpu")
    fresh = world.organs[0].tissue.constants.stiffness.numpy().copy()
    world.step(2 * TICKS_PER_FRAME - 1)
    assert world.measure_values()["turns"] == 1.0
    assert np.array_equal(world.organs[0].tissue.constants.stiffness.numpy(), fresh)
    world.step()
    now = world.organs[0].tissue.constants.stiffness.numpy()
    assert (now[fresh > 0] < fresh[fresh > 0]).all()


def test_a_turn_sees_the_end_of_its_frame_however_far_the_ticks_have_gone() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(20.0)

    world = make(scenario(wait), device="cpu")
    world.apply(ToolInput(0, (0.0, 0.0, 0.03)))
    for _ in range(TICKS_PER_FRAME):
        world.advance()
    then = world.organs[0].shadow.displacement.numpy().copy()
    tip = world.hands[0].tip.copy()
    assert begun.wait(20.0)
    for _ in range(TICKS_PER_FRAME - 1):
        world.advance()
    assert np.array_equal(world.organs[0].shadow.displacement.numpy(), then)
    assert not np.array_equal(world.hands[0].tip, tip)
    go_on.set()
    world.wait()


def begins(late: range, ticks: int = 80) -> list[int]:
    """After which ticks turns begin when none may after those in `late`."""
    world, found = make(scenario(), device="cpu"), []
    for tick in range(1, ticks + 1):
        if tick in late:
            world.apply(Behind())
        before = world.turns.count
        world.advance()
        found += [tick] * (world.turns.count - before)
    world.wait()
    world.close()
    return found


def test_a_late_turn_begins_as_soon_as_it_can_and_the_next_ones_make_up_for_it() -> None:
    assert begins(range(0)) == [16, 32, 48, 64, 80]
    assert begins(range(16, 21)) == [21, 32, 48, 64, 80]
    # What is a frame late or more is lost: two turns never begin after one tick.
    assert begins(range(16, 42)) == [42, 43, 59, 75]


def run_live(world: World, ticks: int, recorder: Recorder) -> list[int]:
    """As a session does: ticks after which the systems were due and still busy."""
    live = world.go_live()
    behind = []
    for tick in range(ticks):
        for one in press(tick):
            world.apply(one)
            recorder.input(tick, one)
        world.advance()
        time.sleep(0.0005)
        if world.behind:
            behind.append(world.tick)
            recorder.input(world.tick - 1, Behind())
        if tick == 170:
            live.save()
        if live.saved is not None:
            recorder.checkpoint(*live.saved)
            live.saved = None
    return behind


@pytest.fixture
def slow_now_and_then() -> Callable[[], None]:
    turns = [0]

    def wait() -> None:
        turns[0] += 1
        if turns[0] % 4 == 2:
            time.sleep(SLOW)

    return wait


def test_a_live_run_whose_systems_fell_behind_is_replayed_and_resumed_bit_for_bit(
    slow_now_and_then: Callable[[], None], tmp_path: Path
) -> None:
    world = make(scenario(slow_now_and_then), device="cpu")
    recorder = Recorder.create(tmp_path, make_header("softening", 0, "cpu"))
    behind = run_live(world, 480, recorder)
    assert len(behind) >= 3, "the systems were to be slow"
    world.wait()
    assert world.measure_values()["turns"] < 30
    truth = world.state_hash()
    recorder.finish(world.tick, truth)
    world.close()
    recording = read_log(recorder.path)
    assert len(recording.checkpoints) == 1
    for cores in (1, 2):
        again = make(scenario(), device="cpu", cores=cores)
        feed(again, recording)
        assert again.state_hash() == truth
        again.close()
    resumed = make(scenario(), device="cpu")
    [tick] = recording.checkpoints
    resumed.load_state(recording.checkpoints[tick]())
    assert resumed.tick == tick
    feed(resumed, recording)
    assert resumed.state_hash() == truth


def test_ticks_do_not_wait_for_a_slow_turn() -> None:
    longest = 0.4
    world = make(scenario(lambda: time.sleep(longest)), device="cpu")
    world.step(TICKS_PER_FRAME)
    world.go_live()
    start = time.perf_counter()
    for _ in range(4 * TICKS_PER_FRAME):
        world.advance()
    fast = time.perf_counter() - start
    world.wait()
    assert world.turns.count < 5
    # Four turns alone would take 1.6 s.
    assert fast < 3.0 * longest


def test_what_a_turn_raises_is_raised_where_it_is_waited_for() -> None:
    def broken() -> None:
        raise StateError("it broke.", "Mend it.", stage="softening", tick=16)

    world = make(scenario(broken), device="cpu")
    for _ in range(TICKS_PER_FRAME):
        world.advance()
    with pytest.raises(StateError, match="it broke"):
        world.wait()
    with pytest.raises(StateError, match="it broke"):
        world.step(TICKS_PER_FRAME)


def test_a_program_is_not_recorded_beside_the_ticks() -> None:
    made: list[World] = []

    def record() -> None:
        made[0].device.record(lambda stage: None)

    world = make(scenario(record), device="cpu")
    made.append(world)
    with pytest.raises(DeviceError, match="records a program while the world runs"):
        world.step(TICKS_PER_FRAME)


def test_a_headless_run_is_the_same_on_one_core_and_on_two() -> None:
    hashes = set()
    for cores in (1, 2):
        world = make("cautery", device="cpu", cores=cores)
        result = headless.run_headless(world, 0.4, lambda tick, world=world: world.script(tick))
        hashes.add(result.state_hash)
        world.close()
    assert len(hashes) == 1
