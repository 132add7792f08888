"""Traces and the simulated hand: devices without hardware."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from viscera.errors import InputError, RecordingError
from viscera.haptics.device import HapticDevice, Pose
from viscera.haptics.devices import catalogue
from viscera.haptics.devices.catalogue import make_device
from viscera.haptics.devices.hand import LONGEST_PAUSE, STEP, HandDevice, HandParams, poke, smooth, still
from viscera.haptics.devices.pointer import PointerDevice
from viscera.haptics.devices.trace import Trace, TraceDevice, TraceRecorder, load_trace, save_trace
from viscera.inputs import ToolInput

# --- traces --------------------------------------------------------------------------------------------------------


def some_trace(rows: int = 50, oriented: bool = True) -> Trace:
    generator = np.random.default_rng(4)
    table = np.zeros((rows, 13))
    table[:, 0] = np.cumsum(generator.uniform(0.0005, 0.002, rows))
    table[:, 1:4] = np.cumsum(generator.normal(0.0, 1e-4, (rows, 3)), axis=0)
    turns = np.cumsum(generator.normal(0.0, 0.01, (rows, 4)), axis=0) + np.array([0.0, 0.0, 0.0, 1.0])
    table[:, 4:8] = turns / np.linalg.norm(turns, axis=1)[:, None] if oriented else [0.0, 0.0, 0.0, 1.0]
    table[:, 8] = generator.uniform(0.0, 1.0, rows)
    table[:, 9] = generator.integers(0, 4, rows)
    table[:, 10:13] = generator.normal(0.0, 1.0, (rows, 3))
    return Trace(table, oriented)


@pytest.mark.parametrize("ending", ["csv", "npz", "h5"])
@pytest.mark.parametrize("oriented", [True, False])
def test_a_trace_survives_its_file(tmp_path: Path, ending: str, oriented: bool) -> None:
    trace = some_trace(oriented=oriented)
    path = tmp_path / f"poke.{ending}"
    save_trace(trace, path)
    loaded = load_trace(path)
    # CSV keeps twelve digits.
    assert loaded.table == pytest.approx(trace.table, rel=5e-12 if ending == "csv" else 1e-15, abs=1e-15)
    assert loaded.oriented == oriented


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_trace_plays_at_its_own_pace(tmp_path: Path) -> None:
    path = tmp_path / "line.csv"
    path.write_text("time,x,y,z\n5.0,0,0,0\n5.1,0.01,0,0\n5.3,0.01,0.02,0\n")
    clock = Clock()
    device = TraceDevice(path, clock=clock)
    device.open()
    seen = []
    for clock.now in (100.0, 100.05, 100.1, 100.2, 100.3, 100.4):
        pose = device.read()
        seen.append((*pose.position[:2], pose.present))
    assert [point[2] for point in seen] == [True] * 5 + [False]
    assert np.array([point[:2] for point in seen]) == pytest.approx(
        np.array([(0, 0), (0.005, 0), (0.01, 0), (0.01, 0.01), (0.01, 0.02), (0.01, 0.02)]), abs=1e-12
    )
    again = TraceDevice(path, repeat=True, clock=clock)
    again.open()
    clock.now += 0.35
    assert again.read().position == pytest.approx((0.005, 0.0, 0.0))
    clock.now += 0.3
    assert again.read().position == pytest.approx((0.005, 0.0, 0.0))
    assert again.read().present


def test_turns_in_between_go_the_shorter_way() -> None:
    table = np.zeros((2, 13))
    table[:, 0] = (0.0, 1.0)
    half = math.sqrt(0.5)
    table[:, 4:8] = [(0.0, 0.0, 0.0, 1.0), (0.0, 0.0, -half, -half)]  # a quarter turn, written with the other sign
    clock = Clock()
    device = TraceDevice(Trace(table, True), clock=clock)
    device.open()
    clock.now += 0.5
    assert device.read().orientation == pytest.approx((0.0, 0.0, math.sin(math.pi / 8), math.cos(math.pi / 8)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time,x,y\n0,0,0\n", "no position"),
        ("x,y,z\n0,0,0\n", "no time"),
        ("time,x,y,z\n", "empty"),
        ("", "no time"),
        ("time,x,y,z\n0,0,0,0\n0,1,1,1\n", "time does not grow after row 1"),
        ("time,x,y,z\n0,0,0,0\n1,nan,1,1\n", "not finite in row 2"),
        ("time,x,y,z\n0,0,0\n", "3 columns below 4 names"),
        ("time,x,y,z\n0,0,zero,0\n", "cannot be read"),
        ("time,x,y,z,qx,qy,qz,qw\n0,0,0,0,0,0,0,0\n", "unit quaternion in row 1"),
        ("time,time,x,y,z\n0,0,0,0,0\n", "twice"),
    ],
)
def test_a_bad_trace_says_where(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        load_trace(path)


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    for name in ("missing.csv", "missing.npz", "missing.h5"):
        with pytest.raises(InputError, match="not there"):
            load_trace(tmp_path / name)
    for name in ("broken.npz", "broken.h5", "broken.hdf5"):
        (tmp_path / name).write_bytes(b"not at all")
        with pytest.raises(InputError, match="cannot be read"):
            load_trace(tmp_path / name)
    with pytest.raises(InputError, match="ends in"):
        load_trace(tmp_path / "poke.xlsx")
    with pytest.raises(RecordingError, match="cannot be written"):
        save_trace(some_trace(), tmp_path / "nowhere" / "poke.csv")


def test_a_recorder_keeps_what_passes(tmp_path: Path) -> None:
    hand = HandDevice(poke(0.01, seconds=0.02, hold=0.0), period=0.001)
    recorder = TraceRecorder(hand, seconds=5.0)
    assert isinstance(recorder, HapticDevice)
    with pytest.raises(RecordingError, match="no pose"):
        recorder.trace()
    recorder.open()
    passed = []
    for number in range(20):
        pose = recorder.read()
        passed.append(pose)
        recorder.write((0.0, 0.0, 0.1 * number))
    recorder.close()
    trace = recorder.trace()
    assert trace.position == pytest.approx(np.array([pose.position for pose in passed]))
    assert trace.time == pytest.approx(np.array([pose.time - passed[0].time for pose in passed]))
    assert trace.force[:, 2] == pytest.approx(0.1 * np.arange(20))
    path = tmp_path / "poke.npz"
    save_trace(trace, path)
    played = make_device(f"trace:{path}")
    played.open()
    assert played.read().position == pytest.approx(passed[0].position, abs=1e-3)
    assert played.mapping.place == (0.0, 0.0, 0.0), "a trace is in the theatre's frame already"


def test_a_recorder_stops_when_it_is_full() -> None:
    recorder = TraceRecorder(PointerDevice(), seconds=0.05, rate=100.0)
    pointer = recorder.device
    assert isinstance(pointer, PointerDevice)
    for number in range(100):
        pointer.take(ToolInput(0, (0.001 * number, 0.0, 0.0)))
        recorder.read()
    assert recorder.full
    assert len(recorder.trace().time) < 40
    nobody = TraceRecorder(PointerDevice(), seconds=0.02)
    nobody.open()
    while not nobody.full:
        nobody.read()
        time.sleep(0.001)
    with pytest.raises(RecordingError, match="no pose"):
        nobody.trace()
    for seconds in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="seconds"):
            TraceRecorder(PointerDevice(), seconds)


# --- hand ----------------------------------------------------------------------------------------------------------


def test_a_pushed_hand_gives_as_far_as_its_grip_is_soft() -> None:
    """At rest k x = F."""
    hand = HandDevice(still(), HandParams(stiffness=400.0), period=0.001)
    hand.open()
    hand.write((0.0, 0.0, 2.0))
    for _ in range(1000):
        hand.read()
    # The slowest mode dies as exp(−b t / 2m) = exp(−20 t): nothing is left after a second.
    assert hand.position == pytest.approx([0.0, 0.0, 2.0 / 400.0], rel=1e-8)


def test_a_hand_that_is_let_go_swings_as_the_equation_says() -> None:
    """x(t) = (F/k) e^(−γt) (cos ωt + (γ/ω) sin ωt), γ = b/2m, ω² = k/m − γ²; the step is exact."""
    params = HandParams(mass=0.2, stiffness=500.0, damping=3.0)
    hand = HandDevice(still(), params, period=0.001)
    hand.open()
    hand.position[0] = 0.01
    gamma = params.damping / (2.0 * params.mass)
    omega = math.sqrt(params.stiffness / params.mass - gamma**2)
    for tick in range(1, 300):
        x = hand.read().position[0]
        t = 0.001 * tick
        expected = 0.01 * math.exp(-gamma * t) * (math.cos(omega * t) + gamma / omega * math.sin(omega * t))
        assert x == pytest.approx(expected, abs=1e-13)


def test_without_damping_no_energy_is_made_or_lost() -> None:
    hand = HandDevice(still(), HandParams(stiffness=2000.0, damping=0.0), period=0.001)
    hand.open()
    hand.position[1] = 0.02
    before = hand.energy
    for _ in range(5000):
        hand.read()
    assert hand.energy == pytest.approx(before, rel=1e-9)
    # What a force does is what the energy grows by.
    for tick in range(1000):
        hand.write((0.0, math.sin(0.01 * tick), 0.3))
        hand.read()
    assert hand.energy - before == pytest.approx(hand.work, abs=1e-9 * hand.energy)


def test_a_hand_goes_its_way_when_nothing_is_in_it() -> None:
    """On a straight line there is no lag; on a bend it is about the acceleration times m/k."""
    hand = HandDevice(poke(0.03, seconds=0.5, hold=0.2), period=0.001)
    hand.open()
    worst = 0.0
    for _ in range(1400):
        pose = hand.read()
        worst = max(worst, abs(pose.position[2] - hand.way(hand.time)[2]))
    # The largest acceleration of a least-jerk way is 5.77 d/T²; twice that share of m/k for the swing it starts.
    assert worst < 2.0 * 5.78 * 0.03 / 0.5**2 * hand.params.mass / hand.params.stiffness
    assert hand.time == pytest.approx(1.4)
    assert hand.position == pytest.approx([0.0, 0.0, 0.0], abs=1e-4)


def test_ways() -> None:
    way = poke(0.02, start=(0.0, 0.0, 0.1), direction=(0.0, 0.0, -2.0), seconds=1.0, hold=0.5)
    heights = [way(t)[2] for t in (0.0, 0.5, 1.0, 1.4, 1.5, 2.0, 2.5, 2.9, 3.0)]
    assert heights == pytest.approx([0.1, 0.09, 0.08, 0.08, 0.08, 0.09, 0.1, 0.1, 0.1])
    assert poke(0.02, repeat=False)(100.0) == (0.0, 0.0, 0.0)
    assert (smooth(0.0), smooth(0.5), smooth(1.0)) == (0.0, 0.5, 1.0)
    with pytest.raises(InputError, match="direction"):
        poke(0.02, direction=(0.0, 0.0, 0.0))


def test_encoders_have_steps() -> None:
    hand = HandDevice(still((0.00013, 0.0, 0.0)), HandParams(resolution=0.00005), period=0.001)
    hand.open()
    assert hand.read().position[0] == pytest.approx(0.00015)


def test_dry_friction_holds_and_stops() -> None:
    """Held up to R₀; above it a hand on a spring of k comes to rest within R₀/k, and a free one slows by R₀/m."""
    grip = HandParams(stiffness=100.0, friction=0.1)
    hand = HandDevice(still(), grip, period=0.001)
    hand.open()
    hand.write((0.1, 0.0, -0.09))
    for _ in range(100):
        hand.read()
    assert max(map(abs, hand.position)) < 1e-12
    assert hand.work == pytest.approx(0.0, abs=1e-12)
    hand.write((0.5, 0.0, 0.0))
    for _ in range(1000):
        hand.read()
    assert abs(hand.velocity[0]) < 1e-12
    assert abs(hand.position[0] - 0.5 / 100.0) <= 0.1 / 100.0 + 1e-9
    free = HandDevice(still(), HandParams(mass=0.1, stiffness=0.0, damping=0.0, friction=0.2), period=0.001)
    free.open()
    free.velocity[1] = 0.1
    for _ in range(20):
        free.read()
    assert free.velocity[1] == pytest.approx(0.1 - 0.02 * 0.2 / 0.1)
    for _ in range(100):
        free.read()
    assert abs(free.velocity[1]) < 1e-12
    assert free.position[1] == pytest.approx(0.1**2 / (2 * 0.2 / 0.1))


def test_a_live_hand_keeps_to_the_wall_clock() -> None:
    hand = make_device("hand").device
    assert isinstance(hand, HandDevice)
    hand.open()
    moments = [hand.read().time]
    before = hand.time
    while moments[-1] - moments[0] < 0.1:
        time.sleep(0.001)
        moments.append(hand.read().time)
    # A pause longer than that is one in which the hand waited.
    passed = sum(min(b - a, LONGEST_PAUSE) for a, b in pairwise(moments))
    assert hand.time - before == pytest.approx(passed, abs=2.0 * STEP)


@pytest.mark.parametrize(
    "wrong", [{"mass": 0.0}, {"stiffness": -1.0}, {"damping": math.nan}, {"resolution": -1e-3}, {"friction": -0.1}]
)
def test_hands_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        HandParams(**wrong)
    with pytest.raises(InputError):
        make_device("hand", {"hand": {"options": wrong}})


def test_options_reach_the_driver() -> None:
    device = make_device("hand", {"hand": {"options": {"stiffness": 123.0, "depth": 0.01}}}).device
    assert isinstance(device, HandDevice)
    assert device.params.stiffness == 123.0
    assert device.way(1.0) == (0.0, 0.0, -0.01)
    assert catalogue.POKE_DEPTH > 0.04, "deeper than a home is high"


def test_a_pose_is_plain_and_small() -> None:
    pose = Pose((0.0, 0.0, 0.0))
    assert not hasattr(pose, "__dict__")
    with pytest.raises(AttributeError):
        pose.grip = 1.0  # pyright: ignore[reportAttributeAccessIssue]
