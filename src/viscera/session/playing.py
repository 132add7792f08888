"""A recording's world, taken to any moment: each input at its own tick, from the nearest state that is known."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from viscera.inputs import Input
from viscera.session.logfile import Recording, State
from viscera.session.recorder import state_size
from viscera.timing import TICKS_PER_FRAME

KEEP_TICKS = 300 * TICKS_PER_FRAME
"""Between two states that are kept on the way [ticks]."""
KEEP_MOST = 512 * 2**20
"""For all of them [bytes]."""


class Player:
    """Feeds `world`, which is at its first tick, with the inputs of `recording`."""

    def __init__(self, world: Any, recording: Recording, *, keep_most: int = KEEP_MOST) -> None:
        """With `keep_most` bytes for states that are kept on the way, so that going back is quick."""
        self.world = world
        self.recording = recording
        self._ticks = [tick for tick, _ in recording.inputs]
        self._inputs: list[Input] = [given for _, given in recording.inputs]
        self._position = 0
        self._kept: dict[int, State] = {0: world.save_state()}
        self._kept_bytes = state_size(self._kept[0])
        self._keep_most = keep_most

    def next_frame(self) -> int:
        """The tick at which the frame ends that is being played."""
        tick = self.world.tick
        return min(tick + TICKS_PER_FRAME - tick % TICKS_PER_FRAME, self.recording.tick)

    def advance(self, until: int) -> None:
        """To this tick, each input at its own; those of the last one come with the next call."""
        world = self.world
        while world.tick < until:
            while self._position < len(self._ticks) and self._ticks[self._position] <= world.tick:
                world.apply(self._inputs[self._position])
                self._position += 1
            following = self._ticks[self._position] if self._position < len(self._ticks) else until
            world.step(min(following, until) - world.tick)
        if world.tick % KEEP_TICKS == 0 and world.tick not in self._kept and self._kept_bytes < self._keep_most:
            self._kept[world.tick] = world.save_state()
            self._kept_bytes += state_size(self._kept[world.tick])

    def start_before(self, target: int) -> int:
        """Where the way to a moment begins [tick]: the latest state that is known, or the world itself."""
        here = (self.world.tick,) if self.world.tick <= target else ()
        return max(tick for tick in (*self._kept, *self.recording.checkpoints, *here) if tick <= target)

    def load_before(self, target: int) -> bool:
        """Goes to `start_before`; False where that is the world itself."""
        best = self.start_before(target)
        if best == self.world.tick:
            return False
        state = self._kept.get(best)
        self.world.load_state(state if state is not None else self.recording.checkpoints[best]())
        self._position = bisect_left(self._ticks, self.world.tick)
        return True
