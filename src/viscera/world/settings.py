"""What a user may change while a world runs: parameters and tables, their present values, and what changing them
does."""

from __future__ import annotations

from collections.abc import Callable

from viscera.errors import InputError
from viscera.inputs import SetParameter, SetTable
from viscera.view import Parameter, Table
from viscera.world.contents import Contents
from viscera.world.names import closest_names
from viscera.world.system import Rows, check_parameter, check_rows


class Settings:
    """Of one world: the scenario's own first, then its systems'."""

    def __init__(self, scenario: str, contents: Contents) -> None:
        self._scenario = scenario
        self._parameters = {live.parameter.name: live for live in contents.all_parameters()}
        self._tables = {live.table.name: live for live in contents.all_tables()}
        self.values = {name: live.parameter.default for name, live in self._parameters.items()}
        self.rows: dict[str, Rows] = {name: live.table.rows for name, live in self._tables.items()}
        self._due: list[Callable[[], None]] = []
        """Changes that the systems take with their next turn."""
        for name, value in self.values.items():
            self._parameters[name].tissue(value)
            self._parameters[name].change(value)
        for name, rows in self.rows.items():
            self._tables[name].change(rows)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(live.parameter for live in self._parameters.values())

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(live.table for live in self._tables.values())

    def check(self, one: SetParameter | SetTable) -> None:
        """Refuses what cannot be, with what could."""
        known = self._parameters if isinstance(one, SetParameter) else self._tables
        kind = "parameter" if isinstance(one, SetParameter) else "table"
        if not isinstance(one.name, str) or one.name not in known:
            near = closest_names(str(one.name), known)
            raise InputError(f"{kind} {one.name!r} is not known in {self._scenario!r}.", near)
        if isinstance(one, SetParameter):
            check_parameter(self._parameters[one.name], one.value)
        else:
            check_rows(self._tables[one.name], one.rows)

    def set(self, name: str, value: float) -> None:
        """What ticks depend on changes at once, all else with the systems' next turn."""
        live = self._parameters[name]
        self.values[name] = value
        live.tissue(value)
        self._due.append(lambda: live.change(value))

    def set_rows(self, name: str, rows: Rows) -> None:
        self.rows[name] = rows
        self._due.append(lambda: self._tables[name].change(rows))

    def take_over(self, old: Settings) -> None:
        """The values of another world of the same scenario. A table whose rows come from the seed, as the course of a
        bowel, begins as this world has it."""
        for name, value in old.values.items():
            self.set(name, value)
        begun = {table.name: table.rows for table in old.tables}
        for table in self.tables:
            if table.rows == begun.get(table.name):
                self.set_rows(table.name, old.rows[table.name])

    def with_next_turn(self, change: Callable[[], None]) -> None:
        """Something else that systems take with their next turn."""
        self._due.append(change)

    def take_due(self) -> list[Callable[[], None]]:
        """The changes that are due, which is then nobody's but the caller's."""
        due, self._due = self._due, []
        return due

    def settle(self) -> None:
        """Whatever is due happens now, while no system is at work."""
        for change in self.take_due():
            change()
