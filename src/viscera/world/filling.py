"""What a world makes of its contents before it runs: once when it is made, and again at each reset."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from viscera.instruments import Room, room_around
from viscera.tissue.lattice import Tissue
from viscera.tissue.meeting import Meeting, make_meeting
from viscera.world.contents import Contents
from viscera.world.stopwatch import Stopwatch
from viscera.world.systems.drill import Drill
from viscera.world.trace import Trace


def add_drill(contents: Contents, build: Callable[..., Contents]) -> tuple[Drill | None, Trace]:
    """Checks the contents, and adds the drill that their goals ask for as their last system."""
    contents.name_systems()
    levels = contents.all_levels()
    drill = Drill(levels, contents.systems) if levels else None
    contents.check(build)
    trace = Trace([tool.instrument for tool in contents.tools])
    if drill is not None:
        drill.when_over = trace.stop
        contents.systems = [*contents.systems, drill.system()]
    return drill, trace


def make_room(contents: Contents) -> Room:
    """The theatre, in which all tools stay."""
    room = room_around(contents.bounds, [tool.instrument.home for tool in contents.tools])
    for tool in contents.tools:
        tool.room = room
    return room


def meet(contents: Contents) -> Sequence[Meeting | Tissue]:
    """What is stepped: each lattice for itself, or all of them together where they meet."""
    organs = contents.organs
    if contents.rubbing is None:
        return [organ.tissue for organ in organs]
    meeting = make_meeting([organ.tissue for organ in organs], friction=contents.rubbing, table=contents.table)
    for organ, pieces in zip(organs, meeting.pieces, strict=True):
        organ.meeting, organ.pieces = meeting, pieces
    return [meeting]


def make_stopwatch(contents: Contents) -> Stopwatch:
    """Of ticks, of surfaces that follow, and of each system."""
    return Stopwatch([*(("tissue", "skin") if contents.organs else ()), *(system.name for system in contents.systems)])


def while_it_lives(method: Callable[[], None]) -> Callable[[], None]:
    """Calls it for as long as its object is there. A device outlives the world that it was made for: shapes of
    instruments are kept with it."""
    weak = weakref.WeakMethod(method)

    def call() -> None:
        found = weak()
        if found is not None:
            found()

    return call
