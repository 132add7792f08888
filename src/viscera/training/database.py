"""The database of trainees and trials: an SQLite file unless an address says otherwise.

Tables are made and changed by Alembic (`migrations/`), when the database is opened; two that open it at once wait for
each other. SQLite writes ahead (WAL) and waits for the disk, so a process that is killed leaves whole trials only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from viscera.errors import InputError

BUSY_S = 20.0
"""So long one process waits for another that writes [s]."""
LOCK = 1_986_491_251
"""Number of the lock that migrations take in PostgreSQL; any would do, if nobody else uses it."""
MIGRATIONS = Path(__file__).parent / "migrations"


def default_address() -> str:
    """An SQLite file in the XDG data folder of the user."""
    base = os.environ.get("XDG_DATA_HOME", "")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "share"
    return f"sqlite:///{root / 'viscera' / 'training.sqlite'}"


def open_database(address: str | None = None, revision: str = "head") -> Any:
    """A SQLAlchemy engine with its tables up to date. `address` is a URL of SQLAlchemy (`sqlite:///FILE`,
    `postgresql+psycopg://NAME@HOST/DATABASE`); passwords belong into PostgreSQL's own password file."""
    try:
        import alembic  # noqa: F401
        import sqlalchemy as sql
        from sqlalchemy import event, exc
    except ImportError as error:
        raise InputError(
            f"trainees need a package that is not there: {error.name}.", "Install it: pip install 'viscera[training]'."
        ) from None
    address = address or default_address()
    try:
        url = sql.make_url(address)
    except exc.ArgumentError:
        told = without_passwords(address)
        raise InputError(f"database {told!r} is no address.", "For example: sqlite:///trials.sqlite") from None
    try:
        if url.get_backend_name() == "sqlite" and url.database:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        engine = sql.create_engine(url, connect_args=_arguments(url), hide_parameters=True)
        if url.get_backend_name() == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
        with _alone(engine, url):
            _upgrade(engine, revision)
    except (exc.SQLAlchemyError, OSError, ImportError) as error:
        why = without_passwords(_first_line(error), url.password)
        # Not `from error`: a traceback would print what the driver says, and that may have the password in it.
        raise InputError(
            f"the database {url.render_as_string(hide_password=True)} cannot be used: {why}.",
            "Check its address, and whether you may write there.",
        ) from None
    return engine


def _arguments(url: Any) -> dict[str, Any]:
    return {"timeout": BUSY_S} if url.get_backend_name() == "sqlite" else {}


def _prepare_sqlite(connection: Any, record: Any) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


@contextlib.contextmanager
def _alone(engine: Any, url: Any) -> Iterator[None]:
    """Nobody else changes the tables meanwhile."""
    import sqlalchemy as sql

    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            yield
            return
        with open(f"{url.database}.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    elif url.get_backend_name() == "postgresql":
        with engine.connect() as connection:
            connection.execute(sql.text(f"SELECT pg_advisory_lock({LOCK})"))
            connection.commit()
            try:
                yield
            finally:
                connection.execute(sql.text(f"SELECT pg_advisory_unlock({LOCK})"))
                connection.commit()
    else:
        raise InputError(f"databases of {url.get_backend_name()} are not known here.", "Use SQLite or PostgreSQL.")


def _upgrade(engine: Any, revision: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def without_passwords(text: str, password: object = None) -> str:
    """A text for people and logs: what stands where addresses have passwords, and the password itself, are gone."""
    known = str(password) if password else ""
    for one in {known, quote(known, safe=""), quote_plus(known)} - {""}:
        text = text.replace(one, "***")
    text = re.sub(r":\S*@", ":***@", text)
    return re.sub(r"(?i)(password\s*=\s*)('[^']*'|\S+)", r"\1***", text)


def _first_line(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0].rstrip(".")
