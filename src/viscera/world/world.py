"""One coupled world: what happens in a tick and in a frame, in order. Read this first.

A tick is 1 ms: inputs take effect, tools follow their hands, tissue moves, tools feel it. A frame is 16 ticks. As it
ends, the systems (heat, blood, fluids; see `system.py`) take their turn, in the order in which the scenario lists them,
in a thread of their own, while the next ticks run: they see the world as the frame left it. What they did to tissue is
put in force at the end of the next frame. In a live session ticks never wait for them: a turn that takes longer ends at
a later tick, which is recorded as inputs (`Behind`), so that a replay is the same world. A scenario
(viscera/scenarios) says what is in the world; doors (Python, session, command line) only ever see this class.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import Behind, EndDrill, Input, Reset, SetParameter, SetTable, StartDrill, ToolInput
from viscera.instruments import Tool, check_tool_input, room_around
from viscera.scores.trial import Trial
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.tissue.lattice import Tissue
from viscera.tissue.meeting import Meeting, make_meeting
from viscera.view import AnyArray, ArraySpec, DrillState, Frame, Scene, Snapshot, TickTimes, ToolState
from viscera.waiting import wake_early
from viscera.world import showing, state, stopwatch
from viscera.world.contact import Contact
from viscera.world.contents import Contents
from viscera.world.live import Live
from viscera.world.names import part_called
from viscera.world.organ import Organ
from viscera.world.settings import Settings
from viscera.world.system import Saved, System
from viscera.world.systems.drill import Drill, check_drill_input
from viscera.world.trace import Trace
from viscera.world.turns import Turns

if TYPE_CHECKING:
    from viscera.scenarios import Scenario


class World:
    """A scenario that runs. Make one with `viscera.make`."""

    def __init__(
        self, scenario: Scenario, device: Device, seed: int, build: Callable[[int], Contents], detail: float = 1.0
    ) -> None:
        self.scenario = scenario.name
        self.device = device
        self.seed = seed
        self.detail = detail
        """Times the scenario's stated numbers of masses, texels and particles."""
        self.tick = 0
        self.due = TICKS_PER_FRAME
        """After which tick the systems are to take their next turn."""
        self.behind = False
        """Whether they were due after the last tick, and still busy."""
        self.peak_force = 0.0
        self.tools: list[ToolState] = []
        """Where each tool is and what its hand feels, as of the last tick."""
        self.entry = scenario
        self._build = build
        self._pending: list[Input] = []
        self._skips = False
        self._live: Live | None = None
        self._inline = False
        self._fill(build(seed))

    # --- time ---

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return self.tick * TICK

    def step(self, ticks: int = 1) -> None:
        """Advance by so many ticks of 1 ms."""
        for _ in range(ticks):
            self.advance()
        self.wait()
        self.settings.settle()

    def advance(self) -> None:
        """One tick; systems may be at work when it returns. `wait` before you look at anything but tools."""
        self._tick()
        due = self.tick >= self.due
        self.behind = due and (self._skips or (self._live is not None and self.turns.busy))
        self._skips = False
        if due and not self.behind:
            self._begin_turn()

    def wait(self) -> None:
        """Until the systems have finished their turn; raises what they raised."""
        self.turns.wait()

    def _tick(self) -> None:
        if self._pending:
            for one in self._pending:
                self.take(one)
            self._pending.clear()
        start = stopwatch.now()
        self.contact.move()
        for motion in self.contents.motions:
            motion.advance(TICK)
        for lattice in self._steppers:
            lattice.step()
        self.tools, strongest = self.contact.feel()
        self.trace.add(self.tools)
        self._stopwatch.add("tissue", start)
        self.peak_force = max(self.peak_force, strongest)
        self.tick += 1
        self._stopwatch.tick(start)

    def _begin_turn(self) -> None:
        # One that begins late may be made up for by shorter ones that follow; a whole frame is lost for good.
        self.due = max(self.due + TICKS_PER_FRAME, self.tick + 1)
        after = list if self._live is None else self._live.after_turn
        self.turns.begin(self.tick, self.tools, self.settings.take_due(), after)

    def go_live(self) -> Live:
        """From now on ticks do not wait for the systems, and come from this thread."""
        self.wait()
        self.turns.step_back()
        self._live = Live(self)
        wake_early()
        return self._live

    def take_turns_inline(self) -> None:
        """Systems take their turns in the thread that steps, and no core works beside it: for many worlds side by side.
        The world stays the same, bit for bit."""
        self.wait()
        self._inline = True
        self.turns.take_inline()

    def _leave_alone(self) -> None:
        """Nothing may be launched while a program is recorded."""
        self.turns.leave_alone()
        if self._live is not None:
            self._live.settle()

    # --- inputs ---

    def apply(self, one: Input) -> None:
        """Takes effect at the start of the next tick; refused at once when it is not possible."""
        if isinstance(one, ToolInput):
            one = check_tool_input(one, len(self.contents.tools), self.room)
        elif isinstance(one, SetParameter | SetTable):
            self.settings.check(one)
        elif isinstance(one, StartDrill | EndDrill):
            check_drill_input(one, self.scenario, self.drill)
        elif not isinstance(one, Reset | Behind):
            raise InputError(
                f"{one!r} is not an input.", "Use ToolInput, SetParameter, SetTable, StartDrill, EndDrill or Reset."
            )
        self._pending = [earlier for earlier in self._pending if not _supersedes(one, earlier)]
        self._pending.append(one)

    def forget_inputs(self) -> None:
        """Those that have not taken effect yet."""
        self._pending.clear()

    def within(self, one: ToolInput) -> ToolInput:
        """A hand's pose brought into the theatre: for hands that cannot know where it ends, as a pointer's."""
        return replace(one, position=self.room.clamped(one.position))

    def set_now(self, one: SetParameter) -> None:
        """Sets a parameter at once, between ticks: for making a world, not for a running one."""
        self.settings.check(one)
        self.take(one)
        self.settings.settle()

    def take(self, one: Input) -> None:
        """An input takes effect."""
        if isinstance(one, ToolInput):
            self.contents.tools[one.tool].take(one)
        elif isinstance(one, SetParameter):
            self.settings.set(one.name, one.value)
        elif isinstance(one, SetTable):
            self.settings.set_rows(one.name, one.rows)
        elif isinstance(one, Behind):
            self._skips = True
        elif isinstance(one, StartDrill):
            self._start_drill(one)
        elif isinstance(one, EndDrill):
            self._end_drill(one)
        else:
            self._reset(one.seed)

    def _start_drill(self, one: StartDrill) -> None:
        if one.seed is not None:
            self._reset(one.seed)
        drill, tick = self.drill, self.tick
        if drill is None:
            return  # another seed may have made a world without one
        for name, value in drill.levels[one.level].settings.items():
            self.settings.set(name, value)
        self.settings.with_next_turn(lambda: drill.start(one.level, tick))
        self.trace.start()

    def _end_drill(self, one: EndDrill) -> None:
        drill = self.drill
        if drill is not None:
            wish = drill.give_up if one.how == "given_up" else lambda: drill.declare(one.certainty)
            self.settings.with_next_turn(wish)

    def _reset(self, seed: int) -> None:
        """A new world with the settings of the old one."""
        self.wait()
        self.seed, self.peak_force = seed, 0.0
        old = self.settings
        self._fill(self._build(seed))
        self.settings.take_over(old)
        self.settings.settle()
        if self._live is not None:
            self._live.refill()

    def script(self, tick: int) -> Iterable[Input]:
        """What the scenario's own hand does before this tick."""
        inputs = self.contents.script(self, tick)
        if not isinstance(inputs, Iterable):
            raise InputError(
                f"the script of {self.scenario!r} gave {inputs!r} before tick {tick}.",
                "It must give a list of inputs, as [ToolInput(...)]; [] where the hand does nothing.",
            )
        return inputs

    # --- what is seen ---

    def scene(self) -> Scene:
        settings = {"parameters": self.settings.parameters, "tables": self.settings.tables}
        return showing.make_scene(self.entry, self.seed, self.detail, self.contents, self.shows, settings)

    def array_specs(self) -> dict[str, ArraySpec]:
        """Every array that a snapshot holds, with how it travels."""
        return showing.array_specs(self.shows)

    def write_arrays(self, out: dict[str, AnyArray]) -> None:
        """Fills the caller's arrays with what the last frame shows."""
        showing.write_arrays(self.shows, out)

    def frame(self) -> Frame:
        """All that a snapshot says besides its arrays. Live, what systems show is of the last turn they finished."""
        kept = self._live
        if kept is None:
            self.wait()
        return Frame(
            tick=self.tick,
            time=self.time,
            tools=self.tools,
            parameters=dict(self.settings.values),
            counts=showing.counts(self.shows) if kept is None else kept.counts,
            versions=showing.versions(self.shows) if kept is None else kept.versions,
            measures=self.measure_values() if kept is None else kept.measures,
            drill=self.drill_state() if kept is None else kept.drill,
            tables=dict(self.settings.rows),
            stages=self.stages,
            ticks=self._stopwatch.tick_times(),
        )

    def show_now(self) -> None:
        """Brings surfaces up to date with the tissue, for `write_arrays`; between two ticks."""
        self.turns.show_now()

    def snapshot(self) -> Snapshot:
        """The world as it is now, its surfaces brought up to date; the caller owns the copies."""
        self.show_now()
        arrays = {name: np.zeros(spec.shape, dtype=spec.kind) for name, spec in self.array_specs().items()}
        self.write_arrays(arrays)
        return Snapshot(**vars(self.frame()), arrays=arrays)

    def measure_values(self) -> dict[str, float]:
        """What people watch, in the units that the scene states; `wait` before, live see `Live.measures`."""
        return dict(self.turns.measures())

    def drill_state(self) -> DrillState | None:
        """How far the drill is, where there is one; `wait` before."""
        return None if self.drill is None else self.drill.state()

    def trial(self) -> Trial | None:
        """What there is to score, once the drill has ended; `wait` before."""
        if self.drill is None or self.drill.running:
            return None
        told = self.drill.state()
        return (
            None
            if told.phase == "waiting"
            else self.drill.trial(self.entry.name, self.seed, self.trace.hands(told.time))
        )

    @property
    def stages(self) -> dict[str, float]:
        """Mean wall time of each part of a frame of 16 ticks [ms]; all but `tissue` runs beside the ticks."""
        return self._stopwatch.mean_ms()

    @property
    def tick_times(self) -> TickTimes:
        """Of the last ticks, one by one."""
        return self._stopwatch.tick_times()

    @property
    def notes(self) -> list[str]:
        """What was guessed or mended when organs were made of meshes; a user who gave one wants to know."""
        return [f"{organ.name}: {note}." for organ in self.contents.organs for note in organ.notes]

    @property
    def warning(self) -> str:
        """What people should know though it goes on; empty as a rule."""
        return " ".join(filter(None, (system.warns() for system in self.contents.systems)))

    # --- what is in it ---

    @property
    def source(self) -> str:
        """What `viscera.make` takes to make it again: the scenario's name, or the path of its file."""
        return self.scenario if self.entry.file is None else str(self.entry.file)

    @property
    def organs(self) -> list[Organ]:
        return list(self.contents.organs)

    @property
    def systems(self) -> list[System]:
        return list(self.contents.systems)

    @property
    def hands(self) -> list[Tool]:
        return list(self.contents.tools)

    def organ(self, name: str) -> Organ:
        return part_called(name, "organ", self.contents.organs)

    def system(self, name: str) -> System:
        return part_called(name, "system", self.contents.systems)

    # --- state ---

    def save_state(self) -> Saved:
        """Everything that changes, as arrays; `load_state` continues from it bit for bit."""
        self.wait()
        self.settings.settle()
        return state.save_ticks(self) | state.save_systems(self)

    def load_state(self, saved: Saved) -> None:
        self.wait()
        self.forget_inputs()
        state.load_state(self, saved)

    def state_hash(self) -> str:
        """SHA-256 over every array of `save_state`, names and types included."""
        return state.state_hash(self.save_state())

    def close(self) -> None:
        """Lets go of the device's worker threads."""
        self._leave_alone()
        self.device.close()

    # --- making ---

    def _fill(self, contents: Contents) -> None:
        levels = contents.all_levels()
        self.drill = Drill(levels, contents.systems) if levels else None
        """What there is to do here, and how far it is; None where there is no drill."""
        contents.check(self.entry.build)
        self.trace = Trace([tool.instrument for tool in contents.tools])
        """What the hands did since the drill began."""
        if self.drill is not None:
            self.drill.when_over = self.trace.stop
            contents.systems = [*contents.systems, self.drill.system()]
        self.contents = contents
        self.room = room_around(contents.bounds, [tool.instrument.home for tool in contents.tools])
        for tool in contents.tools:
            tool.room = self.room
        self._steppers = self._meet(contents)
        self.contact = Contact(contents.tools, contents.organs, contents.table)
        self.tools = [ToolState(tool.number, position=tool.instrument.home) for tool in contents.tools]
        self.settings = Settings(self.scenario, contents)
        parts = [*(("tissue", "skin") if contents.organs else ()), *(system.name for system in contents.systems)]
        self._stopwatch = stopwatch.Stopwatch(parts)
        self.shows = showing.all_shows(contents)
        """Everything that is seen, in the order of the scene."""
        self.turns = Turns(contents, self.device, self._stopwatch, self._inline)
        self.device.alone = self.device.ticks.alone = _while_it_lives(self._leave_alone)

    @staticmethod
    def _meet(contents: Contents) -> Sequence[Meeting | Tissue]:
        """What is stepped: each lattice for itself, or all of them together where they meet."""
        organs = contents.organs
        if contents.rubbing is None:
            return [organ.tissue for organ in organs]
        meeting = make_meeting([organ.tissue for organ in organs], friction=contents.rubbing, table=contents.table)
        for organ, pieces in zip(organs, meeting.pieces, strict=True):
            organ.meeting, organ.pieces = meeting, pieces
        return [meeting]


def _while_it_lives(method: Callable[[], None]) -> Callable[[], None]:
    """Calls it for as long as its object is there. A device outlives the world that it was made for: shapes of
    instruments are kept with it."""
    weak = weakref.WeakMethod(method)

    def call() -> None:
        found = weak()
        if found is not None:
            found()

    return call


def _supersedes(one: Input, earlier: Input) -> bool:
    """Of several resets before one tick, or several values of one setting, the newest alone is worth its time: a reset
    keeps settings, and makes all else anew."""
    if isinstance(one, SetParameter):
        return isinstance(earlier, SetParameter) and earlier.name == one.name
    if isinstance(one, SetTable):
        return isinstance(earlier, SetTable) and earlier.name == one.name
    if isinstance(one, StartDrill) and one.seed is not None:
        return isinstance(earlier, Reset | StartDrill | EndDrill)
    return isinstance(one, Reset) and isinstance(earlier, Reset)
