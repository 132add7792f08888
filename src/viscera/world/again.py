"""A world that begins again and again: for learning, where an episode takes seconds and is one of thousands.

Building a world takes a tenth of a second to seconds. `Again` keeps the first state of one that was just made and puts
it back into the same arrays, so that it is, bit for bit, the world that would be built. That works where every system
is back at its first state when that is loaded (`System.rewinds`), and for another seed where the scenario says how it
takes one (`Contents.reseed`); else the world is built again.
"""

from __future__ import annotations

from collections.abc import Mapping

from viscera.inputs import Reset, SetParameter
from viscera.view import ToolState
from viscera.world import state
from viscera.world.world import World


class Again:
    """Of a world that has not run yet."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._values = dict(world.settings.values)
        self._first = world.save_state()

    @property
    def rewinds(self) -> bool:
        """Whether the same seed takes no building, as the world is now."""
        return all(system.rewinds() for system in self._world.contents.systems)

    def begin(self, seed: int, parameters: Mapping[str, float] | None = None) -> None:
        """The world as `viscera.make` makes it with this seed and these settings, at tick 0."""
        world = self._world
        changed = dict(parameters or {})
        for name, value in changed.items():
            world.settings.check(SetParameter(name, value))
        world.wait()
        world.forget_inputs()
        if self.rewinds and (seed == world.seed or world.contents.reseed is not None):
            self._rewind(seed)
        else:
            world.take(Reset(seed))
            world.tick = 0
            for name, value in self._values.items():
                world.settings.set(name, value)
            world.settings.settle()
            self._first = world.save_state()
        for name, value in changed.items():
            world.set_now(SetParameter(name, value))

    def _rewind(self, seed: int) -> None:
        world = self._world
        world.contact.clear()
        state.put_back(world, self._first)
        tools = world.contents.tools
        world.tools = [ToolState(tool.number, position=tool.instrument.home) for tool in tools]
        if seed == world.seed:
            return
        assert world.contents.reseed is not None
        world.contents.reseed(seed)
        world.seed = seed
        for name, value in self._values.items():
            world.settings.set(name, value)
        world.settings.settle()
        self._first = world.save_state()
