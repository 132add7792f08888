"""What a hand can do to a world: the only ways in, and so exactly what a recording has to keep.

An input takes effect at the start of the next tick after `World.apply`. Everything here is plain data. These are the
types that browsers send, sessions hand on and recordings keep; there are no others on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
"""x, y, z, w; unit length."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Where a tool is and how it is held. One that is not `active` is out of the body and touches nothing."""

    tool: int
    """Its number, from 0."""
    position: Vector3
    """World position of the tip [m]."""
    orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    grip: float = 0.0
    """How far the handle or pedal is pressed, 0 to 1."""
    active: bool = True


@dataclass(frozen=True, slots=True)
class ToolInput(Hold):
    """The hand moves."""

    direct: bool = False
    """The hand tells every tick where it is, as a haptic device does: the tool is where the hand is, without lag."""


@dataclass(frozen=True, slots=True)
class SetParameter:
    """A live parameter gets a new value, in the unit its `Parameter` states."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class SetTable:
    """A table gets new rows, as many as it has."""

    name: str
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """Back to the first state, with this seed; tick numbers go on."""

    seed: int


@dataclass(frozen=True, slots=True)
class StartDrill:
    """The drill begins: its clock runs from here."""

    level: int = 0
    seed: int | None = None
    """With a seed the world is made anew first, as by `Reset`; without, the drill begins in the world as it is."""


@dataclass(frozen=True, slots=True)
class EndDrill:
    """A hand ends the drill: it gives up, or says "here it is" of the last place that it marked."""

    how: Literal["given_up", "found"]
    certainty: float = 1.0
    """How sure it is, 0 to 1; counts for `found`."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The systems of a live world were still busy when their next turn was due: it does not begin after this tick. Not
    a hand's doing, but just as much of what a replay has to repeat."""


Input = ToolInput | SetParameter | SetTable | Reset | StartDrill | EndDrill | Behind
