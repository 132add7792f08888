"""What happens once a frame beside the tissue: heat, a film of blood, a fluid in a vessel.

A system couples phenomena to the organs and to the hands. It reads the world as it is at the end of tick 16 f and its
effect is there before tick 16 f + 1; all that it changes and that matters for what comes is in `arrays`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.view import Measure, Particles, Table, Texture

if TYPE_CHECKING:
    from viscera.world.world import World

Rows = tuple[tuple[float, ...], ...]


class System(Protocol):
    """One coupling. Everything is made when the world is; `frame` allocates nothing."""

    name: str
    """Of its stage in the timings."""

    def frame(self, world: World) -> None:
        """Advances by one frame, from the organs and tools as they are now."""

    def arrays(self) -> dict[str, Any]:
        """All that changes and cannot be made again from the rest: `wp.array` or NumPy, by name."""
        ...

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Back to what `arrays` held."""

    def textures(self) -> list[tuple[Texture, Any]]:
        """What it paints: the picture and its array, uint8, shape (height, width, 4)."""
        ...

    def particles(self) -> list[tuple[Particles, Any, int]]:
        """What floats: its description, its array of vec4, and how many there are now."""
        ...

    def measures(self) -> list[tuple[Measure, float]]:
        """What people watch, in the unit that the measure states."""
        ...


@dataclass
class LiveTable:
    """A table and what changing it does to the world."""

    table: Table
    change: Callable[[World, Rows], None]
    check: Callable[[Rows], None] = lambda rows: None
    """Raises `InputError` for rows that fit the columns and still cannot be."""


def check_rows(table: Table, rows: Rows) -> None:
    """Refuses rows that do not fit the table."""
    if len(rows) != len(table.rows):
        raise InputError(f"{table.name} with {len(rows)} rows is not allowed.", f"It has {len(table.rows)} rows.")
    for number, row in enumerate(rows):
        if len(row) != len(table.columns):
            raise InputError(
                f"row {number} of {table.name} has {len(row)} numbers.", f"It needs {len(table.columns)} of them."
            )
        for column, value in zip(table.columns, row, strict=True):
            # A comparison with NaN is false, so this refuses it too.
            if not column.minimum <= value <= column.maximum:
                raise InputError(
                    f"{column.name} = {value:g} {column.unit} in row {number} of {table.name} is not allowed.",
                    f"Allowed are {column.minimum:g} to {column.maximum:g} {column.unit}.",
                )
