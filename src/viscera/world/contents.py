"""What a scenario puts into a world."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.inputs import Input, Vector3
from viscera.instruments import Pushes, Tool
from viscera.view import Camera, Goal, Surface
from viscera.world.organ import Organ
from viscera.world.system import LiveParameter, LiveTable, System

if TYPE_CHECKING:
    from viscera.world.world import World


class Motion(Protocol):
    """What moves by itself as time passes: a heart. `state` is all of it that changes."""

    state: NDArray[np.float64]

    def advance(self, dt: float) -> None:
        """Gets ready for the next tick of dt [s]."""


Script = Callable[["World", int], Iterable[Input]]
"""A scenario's own hand for runs without a window: what it does before the given tick."""


def no_hand(world: World, tick: int) -> Iterable[Input]:
    return ()


@dataclass(kw_only=True)
class Contents:
    """A world before it runs. Settings of the systems come after the scenario's own."""

    organs: Sequence[Organ] = ()
    tools: Sequence[Tool] = ()
    camera: Camera
    bounds: tuple[Vector3, Vector3]
    """A box that holds all there is to see [m]."""
    motions: Sequence[Motion] = ()
    systems: Sequence[System] = ()
    """What advances once a frame, in this order."""
    parameters: Sequence[LiveParameter] = ()
    tables: Sequence[LiveTable] = ()
    scenery: Sequence[Surface] = ()
    """Surfaces that are seen and never move, with their `rest` given."""
    goals: Sequence[Goal] = ()
    """What a drill asks of measures; with it comes a clock."""
    script: Script = field(default=no_hand)
    heaviest: Callable[[], None] = lambda: None
    """Puts more of what makes it slow into the world, up to as much as it may have to carry (blood on an organ). Called
    once a frame while it is found out how fast the world is on a machine, never else."""

    def check(self) -> None:
        """Refuses what cannot work together, with what to do."""
        names = [organ.name for organ in self.organs] + [system.name for system in self.systems]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InputError(f"two parts of the world are called {twice.pop()!r}.", "Give each its own name.")
        written: set[str] = set()
        for system in self.systems:
            missing = [name for name in system.reads if name not in written]
            if missing:
                raise InputError(
                    f"system {system.name!r} reads {missing[0]!r}, which nothing before it writes.",
                    f"List a system that writes it first. Written so far: {', '.join(sorted(written)) or 'nothing'}.",
                )
            written.update(system.writes)
        used = {effect for system in self.systems for effect in system.uses} | {Pushes}
        for tool in self.tools:
            idle = [type(effect).__name__ for effect in tool.instrument.effects if type(effect) not in used]
            if idle:
                warnings.warn(
                    f"{tool.instrument.name}: no system of this world acts on {', '.join(idle)}, so it does nothing "
                    "when pressed. List one that does (docs/scenarios.md).",
                    stacklevel=2,
                )
        measured = {measure.name for system in self.systems for measure, _ in system.measures()}
        for goal in self.goals:
            if goal.measure not in measured:
                raise InputError(
                    f"a goal asks for the measure {goal.measure!r}, which no system has.",
                    f"There are: {', '.join(sorted(measured)) or 'none'}.",
                )


def looking_down(organs: Sequence[Organ], direction: Vector3) -> tuple[Camera, tuple[Vector3, Vector3]]:
    """A camera that sees all organs from this direction (its length is the distance over their diagonal), and the box
    around all there is to see."""
    from viscera.world.organ import point

    positions = np.concatenate([organ.body.positions for organ in organs])
    low, high = positions.min(axis=0), positions.max(axis=0)
    middle, size = 0.5 * (low + high), float(np.linalg.norm(high - low))
    camera = Camera(point(middle + size * np.asarray(direction)), point(middle), (0.0, 0.0, 1.0), 40.0)
    return camera, (point(low - 0.5 * size), point(high + 0.5 * size))
