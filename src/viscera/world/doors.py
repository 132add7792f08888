"""What of a world can be looked at from outside: what is seen and measured, and what is in it. Nothing here changes it;
`World` adds time, inputs and state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from viscera.instruments import Room, Tool
from viscera.scores.trial import Trial
from viscera.timing import TICK
from viscera.view import AnyArray, ArraySpec, DrillState, Frame, Scene, Snapshot, TickTimes, ToolState
from viscera.world import showing
from viscera.world.contact import Contact
from viscera.world.contents import Contents
from viscera.world.live import Live
from viscera.world.names import part_called
from viscera.world.organ import Organ
from viscera.world.settings import Settings
from viscera.world.stopwatch import Stopwatch
from viscera.world.system import Held, Show, System, that_holds
from viscera.world.systems.drill import Drill
from viscera.world.trace import Trace
from viscera.world.turns import Turns

if TYPE_CHECKING:
    from viscera.scenarios import Scenario


class Doors:
    """Of a world. Its parts are made anew at each reset."""

    entry: Scenario
    scenario: str
    """Its name."""
    seed: int
    detail: float
    """Times the scenario's stated numbers of masses, texels and particles."""
    contents: Contents
    drill: Drill | None
    """What there is to do here, and how far it is; None where there is no drill."""
    trace: Trace
    """What the hands did since the drill began."""
    room: Room
    """The theatre, in which tools stay."""
    contact: Contact
    settings: Settings
    shows: list[Show]
    """Everything that is seen, in the order of the scene."""
    turns: Turns
    tick: int
    """Ticks of 1 ms so far."""
    tools: list[ToolState]
    """Where each tool is and what its hand feels, as of the last tick."""
    _live: Live | None
    _stopwatch: Stopwatch

    # --- what is seen and told ---

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return self.tick * TICK

    def scene(self) -> Scene:
        """What there is to see and to set, for as long as the world is not begun anew."""
        return showing.make_scene(self)

    def array_specs(self) -> dict[str, ArraySpec]:
        """Every array that a snapshot holds, with how it travels."""
        return showing.array_specs(self.shows)

    def write_arrays(self, out: dict[str, AnyArray]) -> None:
        """Fills the caller's arrays with what the last frame shows."""
        showing.write_arrays(self.shows, out)

    def show_now(self) -> None:
        """Brings surfaces up to date with the tissue, for `write_arrays`; between two ticks."""
        self.turns.show_now()

    def frame(self) -> Frame:
        """All that a snapshot says besides its arrays. Live, what systems show is of the last turn they finished."""
        return showing.make_frame(self, self._live)

    def snapshot(self) -> Snapshot:
        """The world as it is now, its surfaces brought up to date; the caller owns the copies."""
        return showing.make_snapshot(self)

    def measure_values(self) -> dict[str, float]:
        """What people watch, in the units that the scene states; `wait` before, live see `Live.measures`."""
        return dict(self.turns.measures())

    def drill_state(self) -> DrillState | None:
        """How far the drill is, where there is one; `wait` before."""
        return None if self.drill is None else self.drill.state()

    def trial(self) -> Trial | None:
        """What there is to score, once the drill has ended; `wait` before."""
        return None if self.drill is None else self.drill.trial(self.entry.name, self.seed, self.trace.hands)

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

    @overload
    def system(self, name: str) -> System[Any]: ...

    @overload
    def system(self, name: str, holds: type[Held]) -> System[Held]: ...

    def system(self, name: str, holds: type[Any] = object) -> System[Any]:
        """By its name; with `holds`, the type of what it is about, a type checker knows `system.holds` too, and a
        system that is about something else is refused."""
        return that_holds(holds, part_called(name, "system", self.contents.systems))
