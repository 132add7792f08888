"""One coupled world: what happens in a tick and in a frame, in order. Read this first.

A tick is 1 ms: inputs take effect, tools follow their hands, tissue moves, tools feel it. A frame is 16 ticks: the
surfaces are brought up to the state of the tick that has just ended, and the systems (heat, blood, fluids; see
`system.py`) take their turn, in the order in which the scenario lists them. A scenario (viscera/scenarios) says what is
in the world; doors (Python, session, command line) only ever see this class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import Input, Reset, SetParameter, SetTable, ToolInput
from viscera.instruments import Tool, check_tool_input
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.view import AnyArray, ArraySpec, Frame, Scene, Snapshot, ToolState
from viscera.world import showing, state, stopwatch
from viscera.world.contact import Contact
from viscera.world.contents import Contents
from viscera.world.organ import Organ
from viscera.world.settings import Settings
from viscera.world.surfaces import Surfaces
from viscera.world.system import Moment, Saved, System
from viscera.world.systems.goals import goals_clock

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
        self.began = 0
        """Tick of the last reset; turns of systems that sleep some frames are counted from it."""
        self.peak_force = 0.0
        self.tools: list[ToolState] = []
        """Where each tool is and what its hand feels, as of the last tick."""
        self.entry = scenario
        self._build = build
        self._pending: list[Input] = []
        self._fill(build(seed))

    # --- time ---

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return self.tick * TICK

    def step(self, ticks: int = 1) -> None:
        """Advance by so many ticks of 1 ms."""
        for _ in range(ticks):
            self._tick()
            if self.tick % TICKS_PER_FRAME == 0:
                self._frame()

    def _tick(self) -> None:
        if self._pending:
            for one in self._pending:
                self.take(one)
            self._pending.clear()
        start = stopwatch.now()
        self.contact.move()
        for motion in self.contents.motions:
            motion.advance(TICK)
        for organ in self.contents.organs:
            organ.tissue.step()
        self.tools, strongest = self.contact.feel()
        self._stopwatch.add("tissue", start)
        self.peak_force = max(self.peak_force, strongest)
        self.tick += 1
        self._stopwatch.ticks += 1

    def _frame(self) -> None:
        self.show_organs()
        number = self.tick // TICKS_PER_FRAME - self.began // TICKS_PER_FRAME
        now = Moment(self.tick, self.contents.tools, self.measure_values, number)
        for system in self.contents.systems:
            if number % system.every == 0:
                start = stopwatch.now()
                system.frame(now)
                self._stopwatch.add(system.name, start)

    def show_organs(self) -> None:
        """Brings the organs' surfaces up to their lattices."""
        if self.contents.organs:
            start = stopwatch.now()
            self._surfaces.follow()
            self._stopwatch.add("skin", start)

    # --- inputs ---

    def apply(self, one: Input) -> None:
        """Takes effect at the start of the next tick; refused at once when it is not possible."""
        if isinstance(one, ToolInput):
            one = check_tool_input(one, len(self.contents.tools))
        elif isinstance(one, SetParameter | SetTable):
            self.settings.check(one)
        elif not isinstance(one, Reset):
            raise InputError(f"{one!r} is not an input.", "Use ToolInput, SetParameter, SetTable or Reset.")
        self._pending.append(one)

    def set_now(self, one: SetParameter) -> None:
        """Sets a parameter at once, between ticks: for making a world, not for a running one."""
        self.settings.check(one)
        self.take(one)

    def take(self, one: Input) -> None:
        """An input takes effect."""
        if isinstance(one, ToolInput):
            self.contents.tools[one.tool].take(one)
        elif isinstance(one, SetParameter):
            self.settings.set(one.name, one.value)
        elif isinstance(one, SetTable):
            self.settings.set_rows(one.name, one.rows)
        else:
            self._reset(one.seed)

    def _reset(self, seed: int) -> None:
        """A new world with the settings of the old one."""
        self.seed, self.began, self.peak_force = seed, self.tick, 0.0
        old = self.settings
        self._fill(self._build(seed))
        for name, value in old.values.items():
            self.settings.set(name, value)
        for name, rows in old.rows.items():
            self.settings.set_rows(name, rows)

    def script(self, tick: int) -> Iterable[Input]:
        """What the scenario's own hand does before this tick."""
        return self.contents.script(self, tick)

    # --- what is seen ---

    def scene(self) -> Scene:
        settings = {"parameters": self.settings.parameters, "tables": self.settings.tables}
        return showing.make_scene(self.entry, self.seed, self.detail, self.contents, self._shows, settings)

    def array_specs(self) -> dict[str, ArraySpec]:
        """Every array that a snapshot holds, with how it travels."""
        return showing.array_specs(self._shows)

    def write_arrays(self, out: dict[str, AnyArray]) -> None:
        """Fills the caller's arrays with what the last frame shows."""
        showing.write_arrays(self._shows, out)

    def frame(self) -> Frame:
        """All that a snapshot says besides its arrays."""
        return Frame(
            tick=self.tick,
            time=self.time,
            tools=self.tools,
            parameters=dict(self.settings.values),
            counts=showing.counts(self._shows),
            versions=showing.versions(self._shows),
            measures=self.measure_values(),
            tables=dict(self.settings.rows),
            stages=self.stages,
        )

    def snapshot(self) -> Snapshot:
        """The world as it is now, its surfaces brought up to date; the caller owns the copies."""
        self.show_organs()
        arrays = {name: np.zeros(spec.shape, dtype=spec.kind) for name, spec in self.array_specs().items()}
        self.write_arrays(arrays)
        return Snapshot(**vars(self.frame()), arrays=arrays)

    def measure_values(self) -> dict[str, float]:
        """What people watch, in the units that the scene states."""
        return {measure.name: value for system in self.contents.systems for measure, value in system.measures()}

    @property
    def stages(self) -> dict[str, float]:
        """Mean wall time of each part of a frame of 16 ticks [ms]."""
        return self._stopwatch.mean_ms()

    @property
    def notes(self) -> list[str]:
        """What was guessed or mended when organs were made of meshes; a user who gave one wants to know."""
        return [f"{organ.name}: {note}." for organ in self.contents.organs for note in organ.notes]

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
        return next(organ for organ in self.contents.organs if organ.name == name)

    def system(self, name: str) -> System:
        return next(system for system in self.contents.systems if system.name == name)

    # --- state ---

    def save_state(self) -> Saved:
        """Everything that changes, as arrays; `load_state` continues from it bit for bit."""
        return state.save_state(self)

    def load_state(self, saved: Saved) -> None:
        self._pending.clear()
        state.load_state(self, saved)

    def state_hash(self) -> str:
        """SHA-256 over every array of `save_state`, names and types included."""
        return state.state_hash(self.save_state())

    def close(self) -> None:
        """Lets go of the device's worker threads."""
        self.device.close()

    # --- making ---

    def _fill(self, contents: Contents) -> None:
        if contents.goals:
            contents.systems = [*contents.systems, goals_clock(contents.goals)]
        contents.check()
        self.contents = contents
        self.contact = Contact(contents.tools, contents.organs)
        self.tools = [ToolState(tool.number, position=tool.instrument.home) for tool in contents.tools]
        self.settings = Settings(self.scenario, contents)
        parts = [*(("tissue", "skin") if contents.organs else ()), *(system.name for system in contents.systems)]
        self._stopwatch = stopwatch.Stopwatch(parts)
        self._shows = showing.all_shows(contents)
        self._surfaces = Surfaces(contents.organs, self.device)
        self.show_organs()
