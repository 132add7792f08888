"""A world in real time: ticks that wait for nobody, and what the eye sees of it, written beside them.

Surfaces and tools are of the newest frame; all that systems show is of the last turn they finished. They keep it here
when a turn ends, so that nobody reads what is being written.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from viscera.view import AnyArray, Frame
from viscera.world import showing, state
from viscera.world.beside import Beside, Work
from viscera.world.surfaces import Drawn
from viscera.world.system import Saved

if TYPE_CHECKING:
    from viscera.world.world import World

WriteArrays = Callable[[dict[str, AnyArray]], None]

THREAD = "viscera-show"

SWITCH_INTERVAL = 1e-4
"""Threads beside the ticks give the interpreter back to them at least this soon [s]; Python's default is 5 ms."""


class Live:
    """Made by `World.go_live`."""

    def __init__(self, world: World) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._world = world
        self._eye = Beside(THREAD)
        self._eye.step_back()
        self._lock = threading.Lock()
        self._wants_state = False
        self.saved: tuple[int, Saved] | None = None
        """A tick, and the state after it, once `save` has got it."""
        self.saving = False
        """Whether that tick is over, and its state is not complete yet."""
        self.refill()

    @property
    def begun(self) -> int:
        """Turns of the systems that have begun since the last reset."""
        return self._world.turns.count

    def refill(self) -> None:
        """The world holds other things now."""
        self._eye.settle()
        organs = self._world.contents.organs
        self._drawn = Drawn(organs, self._world.device) if organs else None
        names = {organ.name for organ in organs}
        # Where the organs' vertices are is drawn here; which triangles they have is for the systems to say.
        self._shows = [show.without(names) for show in self._world.shows]
        specs = showing.array_specs(self._shows)
        kept = {name for show in self._shows for name in show.arrays}
        self._arrays = {name: np.zeros(specs[name].shape, dtype=specs[name].kind) for name in kept}
        self.keep()

    def keep(self) -> None:
        """What the systems show and measure as a turn of theirs ends."""
        with self._lock:
            if self._drawn is not None:
                self._drawn.adopt()
            showing.write_arrays(self._shows, self._arrays)
            self.counts, self.versions = showing.counts(self._shows), showing.versions(self._shows)
            self.measures = dict(self._world.measure_values())
            self.drill = self._world.drill_state()

    def draw(self, publish: Callable[[WriteArrays], None], *, must: bool = False) -> bool:
        """Has `publish` called beside the ticks with what fills a snapshot's arrays, the world as it is now. False when
        the snapshot before is not done yet; with `must` it waits for that."""
        if self._eye.busy and not must:
            return False
        self._eye.wait()
        if self._drawn is not None:
            self._drawn.take()
        self._eye.start(lambda: self._show(publish))
        return True

    def label(self, frame: Frame) -> None:
        """Says in a frame that is being published what its arrays hold."""
        frame.counts, frame.versions, frame.measures = self.counts, self.versions, self.measures
        frame.drill = self.drill

    def _show(self, publish: Callable[[WriteArrays], None]) -> None:
        # No turn may end between what a frame says of its arrays and the arrays themselves.
        with self._lock:
            publish(self._write)

    def settle(self) -> None:
        """Until nothing is being drawn."""
        self._eye.settle()

    def save(self) -> None:
        """The state as of the next turn goes into `saved`; ticks do not wait for it."""
        self._wants_state, self.saved = True, None

    def after_turn(self) -> list[Work]:
        """What is to be done as the turn ends that begins now."""
        if not self._wants_state:
            return [self.keep]
        self._wants_state, self.saving = False, True
        tick, ticks = self._world.tick, state.save_ticks(self._world)

        def save() -> None:
            self.saved = (tick, ticks | state.save_systems(self._world))
            self.saving = False

        return [self.keep, save]

    def _write(self, out: dict[str, AnyArray]) -> None:
        if self._drawn is not None:
            self._drawn.follow()
            for name, vertices in self._drawn.arrays.items():
                np.copyto(out[name], vertices.numpy().reshape(out[name].shape))
        for name, array in self._arrays.items():
            rows = self.counts.get(name, len(array))
            np.copyto(out[name][:rows], array[:rows])
