"""Run a world without a window, as fast as it goes, and say what came out."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viscera.errors import InputError, RecordingError, StateError, need_number
from viscera.gaze.choosing import Chosen
from viscera.gaze.looking import Looking
from viscera.inputs import Input, SetTable, StartDrill
from viscera.scores import Score, score
from viscera.timing import TICK, TICKS_PER_FRAME

if TYPE_CHECKING:
    from viscera.session.recorder import Recorder
    from viscera.world import World

LONGEST = 24 * 3600.0
"""Longest headless run [s], so that a slip of the finger does not run for a year."""

Progress = Callable[[str, float], None]

Hand = Callable[[int], Iterable[Input]]
"""What moves the tools: given the tick that comes next, what is done before it. `World.script` is a scenario's own."""


@dataclass(frozen=True)
class Result:
    """What one line of `viscera run --headless --json` says."""

    scenario: str
    device: str
    seed: int
    detail: float
    """Times the scenario's own numbers of masses, texels and particles."""
    steps: int
    """Ticks of 1 ms."""
    seconds: float
    """Simulated [s]."""
    real_time_factor: float
    """Simulated time over wall time; 1 or more keeps up with the hand."""
    stages: dict[str, float]
    """Mean time per frame of 16 ticks [ms]; all but `tissue` runs beside the ticks."""
    ticks: dict[str, float]
    """Of the last ticks, one by one: median, percentiles, worst [ms], and the share that took more than 2 ms."""
    peak_force: float
    """[N]"""
    measures: dict[str, float]
    """What people watch, at the end, in the units that the scenario states."""
    goals: dict[str, bool]
    """Of a drill: by measure, whether its goal is met at the end."""
    drill: dict[str, Any] | None
    """How the drill went, as `view.DrillState` has it; None where there is none."""
    score: dict[str, Any] | None
    """Of a drill that has ended: its score, number by number; None before."""
    state_hash: str
    units: dict[str, Any]
    """Of the numbers above, by the same keys; without a unit, an empty text."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def tick_count(seconds: float) -> int:
    """How many ticks `seconds` are; whole ticks, at least one."""
    if not math.isfinite(need_number("seconds", seconds)) or not TICK <= seconds <= LONGEST:
        raise InputError(
            f"seconds = {seconds:g} is not possible.",
            f"Allowed is {TICK:g} to {LONGEST:.0f} seconds of simulated time.",
        )
    return round(seconds / TICK)


def run_headless(
    world: World,
    seconds: float,
    hand: Hand | None = None,
    record: Callable[[int, Input], None] | None = None,
    progress: Progress | None = None,
    after: Callable[[World], None] | None = None,
) -> Result:
    """Advance `world` by `seconds` [s]. `hand` moves the tools; `record` gets each input with its tick, and `after` is
    called after every tick."""
    ticks = tick_count(seconds)
    _start_drill(world, hand, record)
    first = world.tick
    start_time = world.time
    start = time.perf_counter()
    for tick in range(first, first + ticks):
        if hand is not None:
            for one in hand(tick):
                world.apply(one)
                if record is not None:
                    record(tick, one)
        world.advance()
        if after is not None:
            after(world)
        if progress is not None and (tick - first) % (4 * TICKS_PER_FRAME) == 0:
            progress(f"{world.time:.2f} s simulated", (tick - first + 1) / ticks)
    state_hash = world.state_hash()  # waits for the device, so the wall time below is honest
    wall = time.perf_counter() - start
    simulated = world.time - start_time
    measures, drill, trial = world.measure_values(), world.drill_state(), world.trial()
    told = None if trial is None else score(trial)
    return Result(
        scenario=world.scenario,
        device=world.device.name,
        seed=world.seed,
        detail=world.detail,
        steps=ticks,
        seconds=simulated,
        real_time_factor=simulated / wall if wall > 0 else math.inf,
        stages=dict(world.stages),
        ticks=asdict(world.tick_times),
        peak_force=float(world.peak_force),
        measures=measures,
        goals={goal.measure: goal.met(measures[goal.measure]) for goal in world.contents.goals},
        drill=None if drill is None else asdict(drill),
        score=None if told is None else told.as_json(),
        state_hash=state_hash,
        units=_units(world, told),
    )


def _units(world: World, told: Score | None) -> dict[str, Any]:
    measures = {measure.name: measure.unit for system in world.systems for measure, _ in system.measures()}
    return {
        "seconds": "s",
        "stages": dict.fromkeys(world.stages, "ms per frame"),
        "ticks": {"p50": "ms", "p99": "ms", "p99_9": "ms", "worst": "ms", "late": ""},
        "peak_force": "N",
        "measures": measures,
        "drill": {"time": "s", "off": "m"},
        "score": {} if told is None else {row.name: row.unit for row in told.rows},
    }


def _start_drill(world: World, hand: Hand | None, record: Callable[[int, Input], None] | None) -> None:
    """A hand starts the drill that waits for it."""
    drill = world.drill_state()
    if hand is not None and drill is not None and drill.phase == "waiting":
        start = StartDrill()
        world.apply(start)
        if record is not None:
            record(world.tick, start)


class _Checkpoints:
    """Whole states now and then, as those of a live session, so that whoever watches the recording can jump in it."""

    def __init__(self, recorder: Recorder) -> None:
        from viscera.session.recorder import CHECKPOINT_S

        self._recorder, self._due = recorder, CHECKPOINT_S

    def see(self, world: World) -> None:
        from viscera.session.recorder import checkpoint_interval, state_size

        if world.time >= self._due:
            state = world.save_state()
            self._recorder.checkpoint(world.tick, state)
            self._due = world.time + checkpoint_interval(state_size(state))


def record_headless(
    world: World, seconds: float, hand: Hand | None, out: Path, made_with: dict[str, Any], progress: Progress | None
) -> tuple[Result, Path]:
    """As `run_headless`, and leave a recording and `result.json` in the folder `out`. `made_with` are the arguments of
    `viscera.make` that a replay needs again."""
    from viscera.session.archive import convert
    from viscera.session.logfile import Failure, trial_record
    from viscera.session.recorder import Recorder, make_header
    from viscera.session.stills import StillWriter

    header = make_header(
        world.source,
        world.seed,
        world.device.name,
        world.device.description,
        made_with.get("mesh"),
        made_with.get("parameters"),
        world.detail,
        made_with.get("options"),
    )
    recorder = Recorder.create(out, header)
    stills, checkpoints = StillWriter(recorder.path), _Checkpoints(recorder)

    def keep(world: World) -> None:
        checkpoints.see(world)
        stills.see(world)

    try:
        result = run_headless(world, seconds, hand, recorder.input, progress, keep)
    except StateError as error:
        recorder.fail(Failure(error.tick, error.stage, error.message))
        raise
    finally:
        stills.close()
    trial = world.trial()
    told = None if trial is None else score(trial)
    if told is not None:
        recorder.trial(trial_record(world.tick, told))
    recorder.finish(world.tick, result.state_hash, {} if told is None else told.values())
    if recorder.notice:
        raise RecordingError(recorder.notice)
    try:
        (out / "result.json").write_text(json.dumps(result.as_json(), indent=1) + "\n")
    except OSError as error:
        raise RecordingError(
            f"Cannot write {out / 'result.json'}: {error.strerror}.", "Choose another --out."
        ) from error
    return result, convert(recorder.path)


def gaze_hand(world: World, chosen: Chosen) -> tuple[Looking, Callable[[int], list[Input]]]:
    """A hand for a run without a window: the scenario's own, whose gaze is this source's instead. The world's camera
    fills a view of 16 to 9."""
    if chosen.kind == "pointer":
        raise InputError("a headless run has no pointer.", "Leave --headless out, or take another --gaze.")
    looking = Looking.at(world.scene(), chosen, world.tick)
    if looking is None:
        raise InputError(f"{world.scenario} takes no gaze.", "Leave --gaze out, or take dambreak, waves, …")

    def hand(tick: int) -> list[Input]:
        own = [one for one in world.script(tick) if not (isinstance(one, SetTable) and one.name == looking.table)]
        return [*own, *looking.inputs(tick)]

    return looking, hand
