"""What a user may change while a world runs, as it is shown: parameters and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from viscera.errors import InputError
from viscera.explaining import explained

ADVANCED = "Advanced"
"""The `Parameter.group` that the page shows last and folded."""


@explained
@dataclass(frozen=True)
class Parameter:
    """A number that a user may change while the world runs."""

    name: str
    """What `--set` and Python call it; one of a kind in a world."""
    label: str
    """What the page calls it."""
    unit: str
    """As people say it: kPa, mm, Hz. The scenario converts to SI at the border."""
    minimum: float
    """In that unit, as `maximum` and `default`; less is refused."""
    maximum: float
    """More is refused."""
    default: float
    """As the world begins."""
    help: str
    """One sentence: what it does."""
    choices: tuple[str, ...] = ()
    """What 0, 1, 2, … are called, where the number stands for one of a few things; empty where it is a quantity."""
    group: str = ""
    """Under which heading the page shows it; headings come in the order of their first parameter, `ADVANCED` last."""

    def __post_init__(self) -> None:
        if not self.choices:
            return
        last = len(self.choices) - 1
        if last < 1 or len(set(self.choices)) <= last or (self.minimum, self.maximum) != (0.0, float(last)):
            raise InputError(
                f"parameter {self.name!r}: {self.minimum:g} to {self.maximum:g} does not fit choices {self.choices}.",
                "Give at least two different choices, minimum 0 and maximum the number of choices less 1.",
            )
        if self.default not in range(last + 1):
            raise InputError(
                f"parameter {self.name!r}: default {self.default:g} is none of its choices.",
                f"Allowed are the whole numbers 0 to {last}.",
            )


@dataclass(frozen=True)
class Column:
    """Of a `Table`. A colour is the number 65536 · red + 256 · green + blue, each 0 to 255 (sRGB)."""

    name: str
    label: str
    unit: str
    kind: Literal["number", "colour"]
    minimum: float
    maximum: float
    help: str = ""


@dataclass(frozen=True)
class Table:
    """Numbers in rows that a user may edit while the world runs: the stages of a burn. The number of rows stays."""

    name: str
    label: str
    help: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[float, ...], ...]
    """As the world begins; the present ones are in `Snapshot.tables`."""
    row_names: tuple[str, ...] = ()
    """What people call the rows, one each; empty where they have no names."""
    fixed: tuple[tuple[int, int], ...] = ()
    """Row and column of the cells that the page does not let a user edit, because another value is refused."""
    source: Literal["user", "gaze", "picture"] = "user"
    """Who fills it: a user in a panel, or the page with where the viewer looks (world/systems/adaptive_water.py) or
    where somebody clicked in a picture (`Picture.marks`)."""
