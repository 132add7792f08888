"""The systems' turns: one a frame, in a thread of their own, while the next ticks run.

A turn sees the world as the frame left it: shadows of the lattices, copies of the tools, settings as they were. What it
did to tissue lands between two ticks, as the next turn begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from viscera.device import Device
from viscera.errors import DeviceError
from viscera.view import ToolState
from viscera.world import stopwatch
from viscera.world.beside import Beside, Work
from viscera.world.contents import Contents
from viscera.world.surfaces import Surfaces
from viscera.world.system import Moment

THREAD = "viscera-frame"


class Turns:
    """Of the systems of one filling of a world; a reset makes another."""

    def __init__(self, contents: Contents, device: Device, watch: stopwatch.Stopwatch, inline: bool = False) -> None:
        self._contents, self._watch = contents, watch
        self._thread = Beside(THREAD, inline)
        self._surfaces = Surfaces(contents.organs, device)
        self.count = 0
        """Turns so far."""
        self._surfaces.follow()

    @property
    def busy(self) -> bool:
        return self._thread.busy

    def begin(self, tick: int, felt: Sequence[ToolState], changes: list[Work], after: Callable[[], list[Work]]) -> None:
        """The one before lands, and the next one begins with `changes` of settings. `after` is asked when it has
        landed, and gives what is to be done as the next one ends."""
        self.wait()
        for system in self._contents.systems:
            if system.lands is not None:
                system.lands()
        self._surfaces.take()
        self.count += 1
        now = Moment(tick, [tool.copy() for tool in self._contents.tools], self.measures, self.count, felt)
        then = after()
        self._thread.start(lambda: self._take(now, changes, then))

    def wait(self) -> None:
        """Until the turn that has begun is over; raises what it raised."""
        self._thread.wait()

    def show_now(self) -> None:
        """The organs' surfaces as the lattices are now, between two ticks."""
        self.wait()
        self._surfaces.take()
        self._surfaces.follow()

    def measures(self) -> Mapping[str, float]:
        """What people watch, in the units that the scene states."""
        return {measure.name: value for system in self._contents.systems for measure, value in system.measures()}

    def take_inline(self) -> None:
        """From now on in the thread that begins them."""
        self._thread = Beside(THREAD, inline=True)

    def step_back(self) -> None:
        """Others on this machine come first."""
        self._thread.step_back()

    def leave_alone(self) -> None:
        """Until nothing is launched here: a program is about to be recorded, and would swallow it."""
        if self._thread.mine:
            raise DeviceError("a system records a program while the world runs.", "Record it when the system is made.")
        self._thread.settle()

    def _take(self, now: Moment, changes: list[Work], then: list[Work]) -> None:
        for change in changes:
            change()
        if self._contents.organs:
            start = stopwatch.now()
            self._surfaces.follow()
            self._watch.add("skin", start)
        for system in self._contents.systems:
            if now.frame % system.every == system.phase:
                start = stopwatch.now()
                try:
                    system.frame(now)
                except Exception as error:
                    error.add_note(f"in system {system.name!r}, in the frame after tick {now.tick}")
                    raise
                self._watch.add(system.name, start)
        for work in then:
            work()
