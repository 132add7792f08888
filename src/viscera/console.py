"""How the command line speaks: results on standard output, progress and complaints on standard error."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from viscera.errors import VisceraError, users_own

BUG_EXIT = 70
"""Exit code for a mistake of ours; what sysexits.h calls an internal software error."""

DEBUG_VARIABLE = "VISCERA_DEBUG"

LOG_EVERY_S = 10.0
"""Between two lines about progress where there is no terminal [s]."""


def out() -> Console:
    return Console(highlight=False)


def err() -> Console:
    return Console(stderr=True, highlight=False)


def print_json(value: object) -> None:
    """One line, so that a reader can take it with one readline. NaN is not JSON and would be our mistake."""
    print(json.dumps(value, allow_nan=False, ensure_ascii=False))


def print_pairs(pairs: list[tuple[str, str]]) -> None:
    """Names and values in two columns. Nothing is cut: a hash that is too long for the line goes on in the next."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(f"[bold]{escape(name)}", escape(value))
    out().print(table)


def print_rows(rows: list[list[str]]) -> None:
    """A table; its first row has the names of its columns."""
    table = Table(*(escape(name) for name in rows[0]), box=None, pad_edge=False)
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    out().print(table)


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error while something long is done. Call it with what is being done and which fraction is done.

    Without a terminal (a log file, a pipe) there is a line every `LOG_EVERY_S` instead, so that short commands are
    silent and long ones show that they live.
    """
    console = err()
    if not console.is_terminal:
        yield LoggedProgress(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, fraction: bar.update(task, description=escape(text), completed=fraction)


class LoggedProgress:
    """Progress as lines in a log, seldom enough not to fill it."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._said = clock()

    def __call__(self, text: str, fraction: float) -> None:
        if self._clock() - self._said >= LOG_EVERY_S:
            self._said = self._clock()
            self._console.print(f"{100 * fraction:3.0f} %  {escape(text)}", soft_wrap=True)


def complain(error: Exception) -> int:
    """Say what went wrong and what to do about it; returns the exit code."""
    console = err()
    told = error if isinstance(error, VisceraError) else users_own(error)
    if told is not None:
        console.print(f"[bold red]{escape(told.message)}", soft_wrap=True)
        if told.hint:
            console.print(escape(told.hint), soft_wrap=True)
        return told.exit_code
    console.print(f"[bold red]viscera stumbled: {escape(f'{type(error).__name__}: {error}')}", soft_wrap=True)
    advice = f"This is a mistake of ours. {DEBUG_VARIABLE}=1 shows where it happened; please report it."
    console.print(advice, soft_wrap=True)
    return BUG_EXIT
