"""One coupled world: what happens in a tick and in a frame, in order. Read this first.

A tick is 1 ms: inputs take effect, tools follow their hands, tissue moves, tools feel it. A frame is 16 ticks. As it
ends, the systems (heat, blood, fluids; see `system.py`) take their turn, in the order in which the scenario lists them,
in a thread of their own, while the next ticks run: they see the world as the frame left it. What they did to tissue is
put in force at the end of the next frame. In a live session ticks never wait for them: a turn that takes longer ends at
a later tick, which is recorded as inputs (`Behind`), so that a replay is the same world. A scenario
(viscera/scenarios) says what is in the world; doors (Python, session, command line) only ever see this class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING

from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import Input, SetParameter, ToolInput
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.view import ToolState
from viscera.waiting import wake_early
from viscera.world import filling, showing, state, stopwatch, taking
from viscera.world.contact import Contact
from viscera.world.contents import Contents
from viscera.world.doors import Doors
from viscera.world.live import Live
from viscera.world.settings import Settings
from viscera.world.system import Saved
from viscera.world.turns import Turns

if TYPE_CHECKING:
    from viscera.scenarios import Scenario


class World(Doors):
    """A scenario that runs. Make one with `viscera.make`. What is in it, and what is seen of it: doors.py."""

    def __init__(
        self, scenario: Scenario, device: Device, seed: int, build: Callable[[int], Contents], detail: float = 1.0
    ) -> None:
        self.entry, self.scenario = scenario, scenario.name
        self.device, self.seed, self.detail = device, seed, detail
        self.tick = 0
        self.due = TICKS_PER_FRAME
        """After which tick the systems are to take their next turn."""
        self.behind = False
        """Whether they were due after the last tick, and still busy."""
        self.peak_force = 0.0
        self._build = build
        self._pending = taking.Pending()
        self.skips = False
        """Whether the systems leave out the turn that is due next, as they did when this was recorded."""
        self._live = None
        self._inline = False
        self._fill(build(seed))

    def _fill(self, contents: Contents) -> None:
        self.drill, self.trace = filling.add_drill(contents, self.entry.build)
        self.contents, self.room = contents, filling.make_room(contents)
        self._steppers = filling.meet(contents)
        self.contact = Contact(contents.tools, contents.organs, contents.table)
        self.tools = [ToolState(tool.number, position=tool.instrument.home) for tool in contents.tools]
        self.settings = Settings(self.scenario, contents)
        self._stopwatch = filling.make_stopwatch(contents)
        self.shows = showing.all_shows(contents)
        self.turns = Turns(contents, self.device, self._stopwatch, self._inline)
        self.device.alone = self.device.ticks.alone = filling.while_it_lives(self._leave_alone)

    def begin_anew(self, seed: int) -> None:
        """Another filling, with the settings of this one."""
        self.wait()
        self.seed, self.peak_force = seed, 0.0
        old = self.settings
        self._fill(self._build(seed))
        self.settings.take_over(old)
        self.settings.settle()
        if self._live is not None:
            self._live.refill()

    # --- time ---

    def step(self, ticks: int = 1) -> None:
        """Advance by so many ticks of 1 ms."""
        if not isinstance(ticks, Integral):
            raise InputError(f"ticks = {ticks!r} is not a whole number.", "A second has 1000 of them.")
        for _ in range(int(ticks)):
            self.advance()
        self.wait()
        self.settings.settle()

    def advance(self) -> None:
        """One tick; systems may be at work when it returns. `wait` before you look at anything but tools."""
        self._tick()
        due = self.tick >= self.due
        self.behind = due and (self.skips or (self._live is not None and self.turns.busy))
        self.skips = False
        if due and not self.behind:
            self._begin_turn()

    def wait(self) -> None:
        """Until the systems have finished their turn; raises what they raised."""
        self.turns.wait()

    def _tick(self) -> None:
        self._pending.take_all(self)
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
        self._pending.add(taking.check(self, one))

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
        taking.take(self, one)

    def script(self, tick: int) -> Iterable[Input]:
        """What the scenario's own hand does before this tick."""
        inputs = self.contents.script(self, tick)
        if not isinstance(inputs, Iterable):
            raise InputError(
                f"the script of {self.scenario!r} gave {inputs!r} before tick {tick}.",
                "It must give a list of inputs, as [ToolInput(...)]; [] where the hand does nothing.",
            )
        return inputs

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
