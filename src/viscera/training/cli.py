"""`viscera trainees` and `viscera report`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from viscera.errors import InputError

if TYPE_CHECKING:
    from viscera.training.store import Store

app = typer.Typer(help="Trainees and their trials.", no_args_is_help=True)

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="VISCERA_DATABASE",
        metavar="URL",
        help="sqlite:///FILE or postgresql+psycopg://…; a file in your data folder when not given.",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A name, or a pseudonym.")]


@app.command("list")
def list_trainees(database: Database = None) -> None:
    """Who there is, and how many trials of each."""
    from viscera import console

    with _store(database) as store:
        trials = store.trials()
        counts = {name: sum(trial.trainee == name for trial in trials) for name in store.names()}
    console.print_pairs([(name, f"{count} trials") for name, count in counts.items()])


@app.command()
def add(name: Name, database: Database = None) -> None:
    """A new trainee; prints the code with which they see their own trials. It is kept nowhere else."""
    with _store(database) as store:
        print(store.add(name))


@app.command()
def code(name: Name, database: Database = None) -> None:
    """Another code for a trainee who has lost theirs; the old one works no more."""
    with _store(database) as store:
        print(store.new_code(name))


@app.command()
def delete(
    name: Name,
    database: Database = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Everything that is kept of a trainee. Recordings are files of their own; they are named, not removed."""
    with _store(database) as store:
        files = sorted({trial.recording for trial in store.trials(name) if trial.recording})
        if not yes:
            typer.confirm(f"Delete all trials of {name}?", abort=True)
        print(f"{store.delete(name)} trials are deleted.")
    for file in files:
        print(f"recording: {file}")


@app.command()
def export(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Ends in .csv, .parquet or .json (xAPI).")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One trainee; all when not given.")] = None,
    database: Database = None,
) -> None:
    """Trials with all their numbers, for other programs."""
    from viscera.training.export import write

    with _store(database) as store:
        if name is not None and name not in store.names():
            raise InputError(f"trainee {name!r} is not known.", "`viscera trainees list` names them.")
        trials = store.trials(name)
    write(trials, out)
    print(f"{len(trials)} trials are in {out}.")


def report(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Ends in .html or .pdf.")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A trainee; the cohort when not given.")] = None,
    database: Database = None,
) -> None:
    """Learning curves of a trainee or of the cohort, as HTML or PDF."""
    from viscera.scenarios import catalogue
    from viscera.training.report import write

    titles = {one.name: one.title for one in catalogue().values()}
    with _store(database) as store:
        if name is not None and name not in store.names():
            raise InputError(f"trainee {name!r} is not known.", "`viscera trainees list` names them.")
        write(store.trials(), name, out, store.every_word(), titles)
    print(f"The report is {out}.")


@contextlib.contextmanager
def _store(database: str | None) -> Iterator[Store]:
    """An open store, closed at the end."""
    from viscera.training.database import open_database
    from viscera.training.store import Store

    store = Store(open_database(database))
    try:
        yield store
    finally:
        store.close()
