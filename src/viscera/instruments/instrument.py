"""An instrument: how it looks, what it does, where it waits. Plain data, made by `kit.py` or by a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from viscera.errors import InputError
from viscera.inputs import Vector3
from viscera.instruments.effects import Effect

if TYPE_CHECKING:
    # Geometry needs Warp, which the server does not load.
    from viscera.geometry.parts import PartShape

OFF_THE_WIRE = "off_the_wire"
"""Metadata of a field that stays in this process: no browser sees it."""

Icon = Literal[
    "tool", "probe", "hook", "forceps", "suction", "water", "clip", "scissors", "pin", "scalpel", "needle", "knot"
]

AnyEffect = TypeVar("AnyEffect")


@dataclass(frozen=True)
class Part:
    """One rigid piece of an instrument: a round bar between two points of its frame [m]. A jaw turns about the frame's
    y axis through `start` by `swing` [rad] when the handle is open (grip 0), and not at all when it is closed."""

    start: Vector3
    end: Vector3
    radius: float
    swing: float = 0.0


@dataclass(frozen=True)
class Instrument:
    """A tool in a hand, its tip at the origin, its shaft along +z."""

    name: str
    effects: tuple[Effect, ...]
    """What it does."""
    home: Vector3 = (0.0, 0.0, 0.0)
    """Where it waits, outside the body [m]."""
    trocar: Vector3 | None = None
    """Where its shaft goes through the body wall [m]: it turns about this point. None: a free hand holds it."""
    length: float = 0.36
    """From the tip to the handle [m]; counts where there is a trocar. A laparoscopic instrument has about this."""
    acts_at: Vector3 = (0.0, 0.0, 0.0)
    """The middle of what acts, in its own frame [m]: where a pointer puts it on what it points at."""
    label: str = ""
    """For people; the name where there is none."""
    icon: Icon = "tool"
    """Its picture in the page."""
    action: str = ""
    """What pressing the handle or pedal does: `coagulate`, `rinse`. Empty when it does nothing but move."""
    parts: tuple[Part, ...] = ()
    """How its working end looks; a ball or rod as it pushes where there are none."""
    solid: Callable[[], tuple[PartShape, ...]] | None = field(default=None, metadata={OFF_THE_WIRE: True})
    """Its closed meshes, for what needs the exact distance to it."""

    def __post_init__(self) -> None:
        if self.icon not in get_args(Icon):
            raise InputError(
                f"instrument {self.name!r}: there is no icon {self.icon!r}.", f"There are: {', '.join(get_args(Icon))}."
            )

    def effect(self, kind: type[AnyEffect]) -> AnyEffect | None:
        """Its effect of this kind, if it has one."""
        return next((one for one in self.effects if isinstance(one, kind)), None)

    def through(self, trocar: Vector3) -> Instrument:
        """The same, through a trocar there [m]."""
        return replace(self, trocar=trocar)

    def at(self, home: Vector3) -> Instrument:
        """The same, waiting there [m]."""
        return replace(self, home=home)
