"""A drill waits until it is started, ends in one of five ways, and keeps what was measured then. It is recorded as
inputs, so a replay gives the same drill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import EndDrill, Input, SetParameter, StartDrill
from viscera.instruments import kit
from viscera.scenarios import Scenario, make
from viscera.scores import Score
from viscera.session.archive import convert, read_recording
from viscera.session.recorder import Recorder, make_header
from viscera.session.replay import feed
from viscera.timing import TICKS_PER_FRAME
from viscera.view import Camera, DrillState, Goal, Level, Measure, Parameter, ToolState
from viscera.world import Contents, LiveParameter, Moment, System, World
from viscera.world.systems.drill import LOOK, Drill
from viscera.world.trace import Trace

LINE = Measure("line", "Line", "%", "Done.")
BLACK = Measure("black", "Black", "mm²", "Never falls.", grows=True)
MIST = Measure("mist", "Mist", "%", "Comes and goes.")
GOALS = (Goal("line", least=90.0), Goal("black", most=0.5), Goal("mist", most=5.0))


class Bench:
    """A drill on numbers that a test sets."""

    def __init__(self, *levels: Level, hidden: float | None = None) -> None:
        self.values = {"line": 0.0, "black": 0.0, "mist": 0.0}
        self.shown = False
        self.marked = hidden
        measures = lambda: [(one, self.values[one.name]) for one in (LINE, BLACK, MIST)]  # noqa: E731
        numbers = System(name="numbers", measures=measures, hides=self if hidden is not None else None)
        self.drill = Drill(levels or (Level("Standard", GOALS),), [numbers])
        self.tick = 0

    def declare(self) -> float | None:
        return None if self.marked == 0.0 else self.marked

    def reveal(self) -> None:
        self.shown = True

    def run(self, frames: int = LOOK) -> DrillState:
        for _ in range(frames):
            self.tick += 16
            now = Moment(self.tick, (), lambda: {**self.values, "time": self.drill.time})
            self.drill.frame(now)
        return self.drill.state()


def started(bench: Bench) -> Bench:
    bench.run(100)
    bench.drill.start(0, bench.tick)
    return bench


def test_a_drill_waits_until_it_is_started_and_its_clock_runs_from_there() -> None:
    bench = Bench()
    bench.values["line"] = 100.0
    waiting = bench.run(100)
    assert (waiting.phase, waiting.outcome, waiting.time) == ("waiting", "", 0.0)
    bench.drill.start(0, bench.tick)
    assert bench.run(3).time == pytest.approx(0.048)


def test_it_is_met_when_all_goals_are_met_at_once_and_the_result_stays() -> None:
    bench = started(Bench())
    bench.values.update(line=95.0, mist=9.0)
    assert bench.run().phase == "running"
    bench.values["mist"] = 5.0
    ended = bench.run()
    assert (ended.phase, ended.outcome, ended.failed) == ("ended", "met", ())
    assert ended.time == pytest.approx(0.016 * 2 * LOOK)
    bench.values.update(line=1.0, black=8.0, mist=99.0)
    assert bench.run(100) == ended
    assert ended.result == {"line": 95.0, "black": 0.0, "mist": 5.0, "time": ended.time}


def test_what_only_grows_fails_at_once_and_what_comes_and_goes_does_not() -> None:
    bench = started(Bench())
    bench.values["mist"] = 50.0
    assert bench.run(50).phase == "running"
    bench.values["black"] = 0.6
    ended = bench.run()
    assert (ended.outcome, ended.failed) == ("failed", ("black",))


def test_what_lasts_is_added_up_and_what_never_falls_is_scored() -> None:
    """Two looks of bleeding, one of them with a clear view; then dry and dim. What goals ask for is not told twice."""
    values = {"bleeding": 3.0, "view": 100.0, "lost": 0.5, "white": 4.0}
    measures = [
        Measure("bleeding", "Bleeding", "mL/min", "Now."),
        Measure("view", "View", "%", "Now."),
        Measure("lost", "Lost", "mL", "So far.", grows=True),
        Measure("white", "White", "mm²", "Now.", better="as it is"),
    ]
    system = System(name="numbers", measures=lambda: [(one, values[one.name]) for one in measures])
    drill = Drill((Level("Standard", (Goal("white", least=9.0),)), Level("Fast", (Goal("lost", most=9.0),))), [system])
    told = drill.system()

    def run(frames: int) -> None:
        for _ in range(frames):
            now = Moment(0, (), lambda: values | {one.name: value for one, value in told.measures()})
            drill.frame(now)

    drill.start(0, 0)
    run(LOOK)
    values["view"] = 79.0
    run(LOOK)
    values["bleeding"] = 0.04
    run(LOOK)
    look = 0.016 * LOOK
    assert {one.name: value for one, value in told.measures()} == pytest.approx(
        {"time": 0.0, "bleeding_time": 2.0 * look, "obscured": 2.0 * look}
    )
    saved = told.save()
    drill.give_up()
    run(1)
    trial = drill.trial("numbers", 0, lambda _: ())
    assert trial is not None
    lasted = {"lost": 0.5, "bleeding_time": 2.0 * look, "obscured": 2.0 * look}
    assert {one.name: one.value for one in trial.others} == pytest.approx(lasted)
    assert {one.better for one in trial.others} == {"less"}
    told.load({name: array for name, array in saved.items() if name != "seconds"})
    assert drill.state().phase == "running", "a state of before it was added up can be gone on from"
    drill.start(1, 0)
    drill.give_up()
    run(1)
    again = drill.trial("numbers", 0, lambda _: ())
    assert again is not None
    others = again.others
    assert {one.name for one in others} == {"white", "bleeding_time", "obscured"}
    assert others[0].better == "", "neither more nor less is better"


def test_a_vessel_is_stopped_once_it_has_stayed_closed_and_dry_for_a_while() -> None:
    """A vessel that a swab presses on is dry and open, and does not count; one that bleeds again begins anew."""
    values = {"bleeding": 3.0, "open_vessels": 1.0}
    measures = [Measure("bleeding", "Bleeding", "mL/min", "Now."), Measure("open_vessels", "Open", "", "Now.")]
    system = System(name="numbers", measures=lambda: [(one, values[one.name]) for one in measures])
    look = 0.016 * LOOK
    drill = Drill((Level("Standard", (Goal("open_vessels", most=0.0), Goal("dry", least=3.0 * look))),), [system])
    told = drill.system()

    def looks(count: int) -> DrillState:
        for _ in range(count * LOOK):
            drill.frame(Moment(0, (), lambda: values | {one.name: value for one, value in told.measures()}))
        return drill.state()

    def dry() -> float:
        return {one.name: value for one, value in told.measures()}["dry"]

    drill.start(0, 0)
    looks(1)
    values["bleeding"] = 0.0
    looks(9)
    assert dry() == 0.0
    values["open_vessels"] = 0.0
    looks(2)
    assert dry() == pytest.approx(2.0 * look)
    saved = {name: array.copy() for name, array in told.save().items()}
    values["bleeding"] = 0.1
    assert looks(1).phase == "running"
    assert dry() == 0.0
    values["bleeding"] = 0.0
    assert looks(2).phase == "running"
    assert looks(1).outcome == "met"
    told.load(saved)
    assert dry() == pytest.approx(2.0 * look)
    assert looks(1).outcome == "met"
    drill.start(0, 0)
    assert dry() == 0.0


def test_a_drill_that_does_not_ask_for_it_keeps_no_such_clock() -> None:
    bleeding = Measure("bleeding", "Bleeding", "mL/min", "Now.")
    system = System(name="numbers", measures=lambda: [(bleeding, 0.0)])
    told = Drill((Level("Standard", (Goal("bleeding", most=0.0),)),), [system]).system()
    assert "dry" not in told.save()
    assert [one.name for one, _ in told.measures()] == ["time", "bleeding_time"]


def test_time_may_be_a_goal_and_runs_out() -> None:
    bench = started(Bench(Level("Timed", (GOALS[0], Goal("time", most=1.0)))))
    ended = bench.run(100)
    assert (ended.outcome, ended.failed) == ("failed", ("time",))
    assert 1.0 < ended.time <= 1.0 + 0.016 * LOOK


def test_it_can_be_given_up_once_it_runs() -> None:
    bench = Bench(hidden=0.004)
    bench.drill.give_up()
    assert bench.run().phase == "waiting"
    bench.drill.start(0, bench.tick)
    bench.drill.give_up()
    ended = bench.run(1)
    assert (ended.outcome, ended.certainty, bench.shown) == ("given_up", None, True)


@pytest.mark.parametrize(("line", "outcome"), [(100.0, "found"), (0.0, "missed")])
def test_here_it_is_ends_it_with_how_far_off_and_how_sure(line: float, outcome: str) -> None:
    bench = started(Bench(hidden=0.0))
    bench.drill.declare(0.5)
    assert bench.run(1).phase == "running", "nothing is marked yet"
    bench.marked, bench.values["line"] = 0.004, line
    bench.drill.declare(0.75)
    ended = bench.run(1)
    assert (ended.outcome, ended.off, ended.certainty) == (outcome, 0.004, 0.75)
    assert bench.shown


# --- in a world ---


def build(setting: object) -> Contents:
    """A number that grows by 1 a frame, times a parameter."""
    level = [0.0]
    rate = [1.0]
    system = System(
        name="growth",
        frame=lambda now: level.__setitem__(0, level[0] + rate[0]),
        save=dict,
        measures=lambda: [(LINE, level[0])],
    )
    parameter = Parameter("rate", "Rate", "", 0.0, 10.0, 1.0, "Per frame.")
    return Contents(
        systems=[system],
        parameters=[LiveParameter(parameter, lambda value: rate.__setitem__(0, value))],
        levels=[Level("Slow", (Goal("line", least=40.0),)), Level("Fast", (Goal("line", least=90.0),), {"rate": 5.0})],
        camera=Camera((0.0, -1.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0),
        bounds=((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)),
    )


@pytest.fixture(scope="module")
def world(cpu: Device) -> World:
    return make(Scenario("growing", build), device=cpu)


def ended(world: World, given: Callable[[Input], None]) -> DrillState:
    given(StartDrill(1, world.seed + 1))
    world.step(640)
    state = world.drill_state()
    assert state is not None
    return state


def test_a_start_with_a_seed_makes_the_world_anew_with_the_level_s_settings(world: World) -> None:
    world.step(1600)
    seed = world.seed
    state = ended(world, world.apply)
    assert (state.outcome, state.level, world.seed) == ("met", 1, seed + 1)
    assert world.settings.values["rate"] == 5.0
    assert state.result["line"] == pytest.approx(120.0), "5 a frame until the third look: the world began anew"
    world.apply(SetParameter("rate", 1.0))


def test_inputs_that_cannot_be_are_refused(world: World) -> None:
    for given, words in (
        (StartDrill(2), "level = 2 is not there.*0 .Slow., 1 .Fast."),
        (StartDrill(0, -1), "seed = -1"),
        (EndDrill("found"), "nothing is hidden in growing"),
        (EndDrill("given_up", 2.0), "certainty = 2.0"),
    ):
        with pytest.raises(InputError, match=words):
            world.apply(given)


def test_a_drill_is_recorded_as_inputs_and_replayed_bit_for_bit(world: World, tmp_path: Path) -> None:
    recorder = Recorder.create(tmp_path, make_header("growing", 7, "cpu"))

    def record(one: Input) -> None:
        world.apply(one)
        recorder.input(world.tick - first, one)

    world.apply(StartDrill(0, 7))
    world.step(16 - world.tick % 16)
    first = world.tick
    state = ended(world, record)
    record(StartDrill(0, None))
    world.step(32)
    record(EndDrill("given_up"))
    world.step(16)
    after = world.drill_state()
    assert after is not None
    assert after.outcome == "given_up"
    assert after.time == pytest.approx(0.048)
    recorder.finish(world.tick - first, "some hash")
    again = read_recording(convert(recorder.path))
    assert [one for _, one in again.inputs] == [StartDrill(1, 8), StartDrill(0), EndDrill("given_up")]
    other = make(Scenario("growing", build), device=world.device, seed=7)
    feed(other, again, until=640)
    assert other.drill_state() == state
    scores: list[Score] = []
    feed(other, again, scored=scores.append)
    assert other.drill_state() == after
    assert [one.outcome for one in scores] == ["met", "given_up"]
    assert scores[0].values() == {"time": state.time, "line": 120.0}


def test_the_trace_tells_a_hand_at_work_from_one_that_waits_and_one_that_is_out() -> None:
    trace = Trace([kit.hook()])
    trace.start()
    for active, grip in ((True, 0.0), (True, 1.0), (False, 1.0)):
        for _ in range(TICKS_PER_FRAME):
            trace.add([ToolState(0, grip=grip, active=active)])
    again = Trace([kit.hook()])
    again.load(trace.save())
    for one in (trace, again):
        (seen,) = one.hands(seconds=1.0)
        assert seen.active.tolist() == [True, True, False]
        assert seen.working is not None
        assert seen.working.tolist() == [False, True, False]
