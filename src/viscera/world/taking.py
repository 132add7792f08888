"""Inputs of a world: which are possible, which of them wait for the next tick, and what each of them does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viscera.errors import InputError
from viscera.inputs import Behind, EndDrill, Input, Reset, SetParameter, SetTable, StartDrill, ToolInput
from viscera.instruments import check_tool_input
from viscera.world.systems.drill import check_drill_input, check_seed

if TYPE_CHECKING:
    from viscera.world.world import World


class Pending:
    """Inputs that wait for the next tick, in the order in which they came."""

    def __init__(self) -> None:
        self._inputs: list[Input] = []

    def add(self, one: Input) -> None:
        """Of several resets before one tick, or several values of one setting, the newest alone is worth its time: a
        reset keeps settings, and makes all else anew."""
        self._inputs = [earlier for earlier in self._inputs if not _supersedes(one, earlier)]
        self._inputs.append(one)

    def clear(self) -> None:
        self._inputs.clear()

    def take_all(self, world: World) -> None:
        """They take effect."""
        if self._inputs:
            for one in self._inputs:
                take(world, one)
            self._inputs.clear()


def check(world: World, one: Input) -> Input:
    """Refuses what is not possible in this world; a pose comes back with what it lacked."""
    if isinstance(one, ToolInput):
        return check_tool_input(one, len(world.contents.tools), world.room)
    if isinstance(one, SetParameter | SetTable):
        world.settings.check(one)
    elif isinstance(one, StartDrill | EndDrill):
        check_drill_input(one, world.scenario, world.drill)
    elif isinstance(one, Reset):
        check_seed(one.seed)
    elif not isinstance(one, Behind):
        raise InputError(
            f"{one!r} is not an input.", "Use ToolInput, SetParameter, SetTable, StartDrill, EndDrill or Reset."
        )
    return one


def take(world: World, one: Input) -> None:
    """An input takes effect, between two ticks."""
    if isinstance(one, ToolInput):
        world.contents.tools[one.tool].take(one)
    elif isinstance(one, SetParameter):
        world.settings.set(one.name, one.value)
    elif isinstance(one, SetTable):
        world.settings.set_rows(one.name, one.rows)
    elif isinstance(one, Behind):
        world.skips = True
    elif isinstance(one, StartDrill):
        _start_drill(world, one)
    elif isinstance(one, EndDrill):
        _end_drill(world, one)
    else:
        world.begin_anew(one.seed)


def _start_drill(world: World, one: StartDrill) -> None:
    if one.seed is not None:
        world.begin_anew(one.seed)
    drill, tick = world.drill, world.tick
    if drill is None:
        return  # another seed may have made a world without one
    for name, value in drill.levels[one.level].settings.items():
        world.settings.set(name, value)
    world.settings.with_next_turn(world.contents.begins)
    world.settings.with_next_turn(lambda: drill.start(one.level, tick))
    world.trace.start()


def _end_drill(world: World, one: EndDrill) -> None:
    drill = world.drill
    if drill is not None:
        wish = drill.give_up if one.how == "given_up" else lambda: drill.declare(one.certainty)
        world.settings.with_next_turn(wish)


def _supersedes(one: Input, earlier: Input) -> bool:
    if isinstance(one, SetParameter):
        return isinstance(earlier, SetParameter) and earlier.name == one.name
    if isinstance(one, SetTable):
        return isinstance(earlier, SetTable) and earlier.name == one.name
    if isinstance(one, StartDrill) and one.seed is not None:
        return isinstance(earlier, Reset | StartDrill | EndDrill)
    return isinstance(one, Reset) and isinstance(earlier, Reset)
