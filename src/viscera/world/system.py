"""A system: one phenomenon of a world, as one value. It takes its turn once a frame, beside the tissue.

A system is made by a function in `world/systems/` (or by a scenario's own), from phenomena that know nothing of each
other. It reads the world as it was at the end of a frame, while the next ticks already run in another thread; what it
does to tissue is put in force at the end of a later frame, the next one unless it is too slow (`lands`).

Systems meet in two ways, both seen where the scenario composes them. What is a number per texel is a named array of the
organ's skin (`Field`): heat writes the temperature, burns read it and write the burn level, wounds and stiffening read
that. A field counts its changes, so that whoever reads it sleeps while nothing changes. What is more than that is
handed over as an argument with a type of its own: drops are made on a `Film`, `oozing` opens wounds of the `Vessels`
that `bleeding(...)` holds. No system looks another one up while the world runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, cast

from numpy.typing import NDArray

from viscera.errors import InputError, need_number
from viscera.explaining import explained
from viscera.instruments import Tool
from viscera.states import copy_in, copy_out
from viscera.view import Measure, Parameter, Shown, Table, ToolState

Rows = tuple[tuple[float, ...], ...]
Saved = dict[str, NDArray[Any]]
AnyEffect = TypeVar("AnyEffect")
Held = TypeVar("Held")


def ignore(_: Any) -> None:
    """Nothing is done."""


def always() -> bool:
    """Yes."""
    return True


@explained
@dataclass(frozen=True)
class Moment:
    """What a system sees of the world as a frame ends."""

    tick: int
    """Ticks of 1 ms so far."""
    tools: Sequence[Tool]
    """The tools in their hands, as the last tick left them; copies, as the hands move on."""
    measures: Callable[[], Mapping[str, float]]
    """What people watch, by name."""
    frame: int = 0
    """Turns of the systems since the last reset: frames, less those for which they were too slow."""
    felt: Sequence[ToolState] = ()
    """What each tool felt in the last tick, in the order of `tools`: `force` [N] and `torque` [N·m] at the tip,
    `handle_force` and `handle_torque` at the handle, `position` [m]."""

    def using(self, effect: type[AnyEffect]) -> list[tuple[Tool, AnyEffect]]:
        """The tools with this effect that are in the body with their handle pressed."""
        return [(tool, one) for tool, one in having(self.tools, effect) if tool.pressed]


def having(tools: Sequence[Tool], effect: type[AnyEffect]) -> list[tuple[Tool, AnyEffect]]:
    """The tools with this effect, and the effect."""
    found = [(tool, tool.instrument.effect(effect)) for tool in tools]
    return [(tool, one) for tool, one in found if one is not None]


@dataclass
class Field:
    """A named array on an organ's skin in which systems meet."""

    array: Any
    """One number per texel, `wp.array` of float32."""
    changes: int = 0
    """Grows whenever it was written."""


class Watch:
    """Whether a field has changed since it was last asked about; without a field it never has."""

    def __init__(self, watched: Field | None) -> None:
        self._field = watched
        self._seen = 0 if watched is None else watched.changes

    def changed(self) -> bool:
        if self._field is None or self._field.changes == self._seen:
            return False
        self._seen = self._field.changes
        return True


@dataclass
class Show:
    """One thing to be seen, and the arrays that hold it as of the last frame, by the names that `what.arrays()` gives
    them (`wp.array` or NumPy)."""

    what: Shown
    arrays: Mapping[str, Any]
    counts: Callable[[], Mapping[str, int]] = dict
    """Of arrays that are not full: how many rows are there."""
    version: Callable[[], int] | None = None
    """Of a surface whose triangles change."""

    def without(self, names: Collection[str]) -> Show:
        """The same, less these arrays."""
        left = {name: array for name, array in self.arrays.items() if name not in names}
        return Show(self.what, left, self.counts, self.version)


@explained
@dataclass
class LiveParameter:
    """A parameter and what changing it does."""

    parameter: Parameter
    """Its name, unit, limits and default."""
    change: Callable[[float], None] = ignore
    """What it does to systems; when they take their next turn."""
    tissue: Callable[[float], None] = ignore
    """What it does to all that ticks depend on (tissue, a motion); with the next tick."""


@dataclass
class LiveTable:
    """A table and what changing it does."""

    table: Table
    change: Callable[[Rows], None] = ignore
    check: Callable[[Rows], None] = ignore
    """Raises `InputError` for rows that fit the columns and still cannot be."""


class Hidden(Protocol):
    """Something that a drill asks to find."""

    def declare(self) -> float | None:
        """Judges the last place that was marked: how far it is from what is hidden [m]. None where none was marked."""

    def reveal(self) -> None:
        """Shows where it is."""


NOTHING = cast("Any", None)


@explained
@dataclass(kw_only=True)
class System(Generic[Held]):
    """Everything is made when the world is; `frame` allocates nothing. A `System[Film]` is about a `Film`, which it
    `holds`."""

    name: str
    """Of its part in the timings and of its arrays in a saved state. Where a world has several of a kind, each about
    its own organ, the world gives them `KIND of ORGAN` (`about`)."""
    frame: Callable[[Moment], None] = ignore
    """Advances by `every` frames, from organs and tools as they were at that moment. It runs beside the ticks: of a
    lattice it may see and change the shadow only (`Organ.shadow`)."""
    lands: Callable[[], None] | None = None
    """Puts what it did to tissue in force, between two ticks. Short: ticks wait for it."""
    every: int = 1
    """It takes its turn in every frame, every second one, …"""
    phase: int = 0
    """… of those the first, or the second, …: heavy ones take different frames, so that none has too much to do."""
    reads: tuple[str, ...] = ()
    """Fields that it reads, as `organ.field`."""
    writes: tuple[str, ...] = ()
    """Fields that it writes."""
    uses: tuple[type, ...] = ()
    """Effects of instruments that it acts on."""
    organ: str = ""
    """The organ that it is about, where it knows that by name: a world without it is refused."""
    skins: Sequence[object] = ()
    """Where it does not: the skins that it lies on, as those of a film; the world knows whose they are."""
    after: tuple[str, ...] = ()
    """Kinds of systems that come before it where a world has them for the same organ; another order is refused."""
    save: Callable[[], Saved] = dict
    """All that changes and cannot be made again from the rest, as copies by name."""
    load: Callable[[Saved], None] = ignore
    """Back to what `save` gave."""
    rewinds: Callable[[], bool] = always
    """Whether `load` of its first state takes it back there in the world that ran, and not only in a new one."""
    shows: Sequence[Show] = ()
    """What is seen of it."""
    measures: Callable[[], Sequence[tuple[Measure, float]]] = tuple
    """What people watch, in the unit that the measure states."""
    warns: Callable[[], str] = str
    """What people should know though the world goes on, as that it has no room left; empty as a rule. Asked at any
    time, so it must be a short look."""
    parameters: Sequence[LiveParameter] = ()
    """What a user may change about it."""
    tables: Sequence[LiveTable] = ()
    """The same, in rows."""
    hides: Hidden | None = None
    """What it hides, where there is a drill to find it."""
    holds: Held = NOTHING
    """What it is about (a `Film`, a `Heat`), for those who make other systems of it, and who look at it from Python."""
    kind: str = ""
    """Which phenomenon it is: its name, before the world gave it its organ's too."""

    def __post_init__(self) -> None:
        self.kind = self.kind or self.name

    def name_after(self, organ: str) -> None:
        """One of several of its kind: its name, and the names of all that it measures and lets change, say of which
        organ."""
        if self.name != self.kind:
            return
        self.name = f"{self.kind} of {organ}"
        measures = self.measures
        self.measures = lambda: [(_of(measure, organ), value) for measure, value in measures()]
        self.parameters = [replace(live, parameter=_of(live.parameter, organ)) for live in self.parameters]
        self.tables = [replace(live, table=_of(live.table, organ)) for live in self.tables]


Told = TypeVar("Told", Measure, Parameter, Table)


def _of(one: Told, organ: str) -> Told:
    """The same, of this organ."""
    return replace(one, name=f"{one.name}_of_{organ}", label=f"{one.label} ({organ})")


def that_holds(kind: type[Held], system: System[Any]) -> System[Held]:
    """The system, which is about something of this type; refused where it is not."""
    if not isinstance(system.holds, kind):
        raise InputError(
            f"system {system.name!r} holds a {type(system.holds).__name__}, not a {kind.__name__}.",
            f"Ask for a {type(system.holds).__name__}.",
        )
    return system


class Kept:
    """`save` and `load` of a system whose state is plain arrays, `wp.array`, `Port` or NumPy; `then` runs after
    loading. A phenomenon's own `save` and `load` go beside it (`own`)."""

    def __init__(
        self,
        arrays: Mapping[str, Any],
        then: Callable[[], None] = lambda: None,
        own: tuple[Callable[[], Saved], Callable[[Saved], None]] | None = None,
    ) -> None:
        self._arrays, self._then, self._own = dict(arrays), then, own

    def save(self) -> Saved:
        return copy_out(self._arrays) | ({} if self._own is None else self._own[0]())

    def load(self, saved: Saved) -> None:
        copy_in("the saved state", self._arrays, saved)
        if self._own is not None:
            self._own[1](saved)
        self._then()


def check_parameter(live: LiveParameter, value: float) -> None:
    """Refuses a value that the parameter does not allow."""
    p = live.parameter
    value = need_number(p.name, value)
    # A comparison with NaN is false, so this refuses it too.
    if not p.minimum <= value <= p.maximum:
        raise InputError(
            f"{p.name} = {value:g} {p.unit} is not allowed.", f"Allowed are {p.minimum:g} to {p.maximum:g} {p.unit}."
        )
    if p.choices and not float(value).is_integer():
        named = ", ".join(f"{number} ({choice})" for number, choice in enumerate(p.choices))
        raise InputError(f"{p.name} = {value:g} is none of its choices.", f"Allowed are {named}.")


def check_rows(live: LiveTable, rows: Rows) -> None:
    """Refuses rows that do not fit the table."""
    table = live.table
    if not all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
        raise InputError(f"{table.name} = {rows!r} is not possible.", "It is rows of numbers.")
    if len(rows) != len(table.rows):
        raise InputError(f"{table.name} with {len(rows)} rows is not allowed.", f"It has {len(table.rows)} rows.")
    for number, row in enumerate(rows):
        if len(row) != len(table.columns):
            raise InputError(
                f"row {number} of {table.name} has {len(row)} numbers.", f"It needs {len(table.columns)} of them."
            )
        for column, value in zip(table.columns, row, strict=True):
            need_number(f"{column.name} in row {number} of {table.name}", value)
            # A comparison with NaN is false, so this refuses it too.
            if not column.minimum <= value <= column.maximum:
                raise InputError(
                    f"{column.name} = {value:g} {column.unit} in row {number} of {table.name} is not allowed.",
                    f"Allowed are {column.minimum:g} to {column.maximum:g} {column.unit}.",
                )
    live.check(rows)
