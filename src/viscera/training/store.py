"""What is kept of trainees and trials, and how it is asked for. A trainee is a name, which may be a pseudonym."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from viscera.errors import InputError
from viscera.scores import Score

LONGEST_NAME = 120
BETTER_LESS = "time"
"""The measure that reports begin with."""


@dataclass(frozen=True)
class KeptTrial:
    """A trial as the database has it."""

    id: str
    trainee: str
    scenario: str
    level: str
    seed: int
    outcome: str
    passed: bool
    time: float
    """[s]"""
    advice: str
    ended: datetime.datetime
    """UTC."""
    recording: str = ""
    """The file that has it; empty where none was recorded."""
    tick: int = 0
    """Where in that file it was scored."""
    values: dict[str, float] = field(default_factory=dict)
    """Of the score."""


def check_name(name: str) -> str:
    """A name as it is kept; refuses what is none."""
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"trainee {name!r} is no name.", f"Give 1 to {LONGEST_NAME} characters; a pseudonym will do.")
    return name


class Store:
    """Of an open database (`open_database`)."""

    def __init__(self, engine: Any) -> None:
        import sqlalchemy as sql

        self._sql, self._engine = sql, engine
        tables = sql.MetaData()
        tables.reflect(engine)
        self._trainees = tables.tables["trainees"]
        self._trials = tables.tables["trials"]
        self._values = tables.tables["trial_values"]

    def close(self) -> None:
        self._engine.dispose()

    # --- trainees ---

    def names(self) -> list[str]:
        with self._engine.connect() as connection:
            return list(connection.scalars(self._sql.select(self._trainees.c.name).order_by(self._trainees.c.name)))

    def add(self, name: str) -> str:
        """A new trainee; returns the code with which they see their own trials. Only its hash is kept."""
        name, code = check_name(name), secrets.token_urlsafe(16)
        row = {"name": name, "created": _now(), "code_hash": _hash(code)}
        try:
            with self._engine.begin() as connection:
                connection.execute(self._sql.insert(self._trainees).values(**row))
        except self._sql.exc.IntegrityError:
            raise InputError(f"trainee {name!r} is there already.", "Choose another name.") from None
        return code

    def knows(self, name: str, code: str) -> bool:
        """Whether this is the trainee's code."""
        query = self._sql.select(self._trainees.c.code_hash).where(self._trainees.c.name == name)
        with self._engine.connect() as connection:
            kept = connection.scalar(query)
        return bool(kept) and hmac.compare_digest(str(kept), _hash(code))

    def delete(self, name: str) -> int:
        """All that is kept of a trainee; returns how many trials that were."""
        with self._engine.begin() as connection:
            trainee = self._id(connection, name)
            mine = self._sql.select(self._trials.c.id).where(self._trials.c.trainee == trainee)
            connection.execute(self._sql.delete(self._values).where(self._values.c.trial.in_(mine)))
            gone = connection.execute(self._sql.delete(self._trials).where(self._trials.c.trainee == trainee)).rowcount
            connection.execute(self._sql.delete(self._trainees).where(self._trainees.c.id == trainee))
        return int(gone)

    def _id(self, connection: Any, name: str) -> int:
        found = connection.scalar(self._sql.select(self._trainees.c.id).where(self._trainees.c.name == name))
        if found is None:
            raise InputError(f"trainee {name!r} is not known.", "`viscera trainees list` names them.")
        return int(found)

    # --- trials ---

    def keep(self, name: str, score: Score, recording: str = "", tick: int = 0) -> str:
        """A trial, whole or not at all; a trainee who is not known is made. Returns its id."""
        name, trial = check_name(name), str(uuid.uuid4())
        if name not in self.names():
            with contextlib.suppress(InputError):  # another server may be quicker
                self.add(name)
        with self._engine.begin() as connection:
            row = {
                "id": trial, "trainee": self._id(connection, name), "scenario": score.scenario, "level": score.level,
                "seed": score.seed, "outcome": score.outcome, "passed": score.passed, "time": score.time,
                "advice": score.advice, "ended": _now(), "recording": recording, "tick": tick,
            }  # fmt: skip
            connection.execute(self._sql.insert(self._trials).values(**row))
            values = [{"trial": trial, "name": key, "value": value} for key, value in score.values().items()]
            connection.execute(self._sql.insert(self._values), values)
        return trial

    def trials(self, name: str | None = None, scenario: str | None = None) -> list[KeptTrial]:
        """Of one trainee or all, of one scenario or all, in the order in which they ended."""
        sql, trials, trainees = self._sql, self._trials, self._trainees
        query = sql.select(trials, trainees.c.name.label("who")).join(trainees).order_by(trials.c.ended, trials.c.id)
        if name is not None:
            query = query.where(trainees.c.name == name)
        if scenario is not None:
            query = query.where(trials.c.scenario == scenario)
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
            numbers = self._numbers(connection, [row["id"] for row in rows])
        return [_kept(row, numbers.get(row["id"], {})) for row in rows]

    def recorders(self, name: str | None = None) -> dict[str, list[str]]:
        """By recording (its file's name without the ending), whose trials are in it; of one trainee or all."""
        trials, trainees = self._trials, self._trainees
        query = self._sql.select(trials.c.recording, trainees.c.name).join(trainees).where(trials.c.recording != "")
        if name is not None:
            query = query.where(trainees.c.name == name)
        found: dict[str, set[str]] = {}
        with self._engine.connect() as connection:
            for recording, who in connection.execute(query):
                found.setdefault(PurePath(recording).stem, set()).add(who)
        return {recording: sorted(names) for recording, names in found.items()}

    def _numbers(self, connection: Any, ids: Sequence[str]) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for begin in range(0, len(ids), 500):  # databases limit how many a question may name
            query = self._sql.select(self._values).where(self._values.c.trial.in_(ids[begin : begin + 500]))
            for trial, key, value in connection.execute(query):
                found.setdefault(trial, {})[key] = value
        return found


def _kept(row: Any, values: dict[str, float]) -> KeptTrial:
    ended = row["ended"]
    if ended.tzinfo is None:  # SQLite keeps none
        ended = ended.replace(tzinfo=datetime.UTC)
    return KeptTrial(
        id=row["id"], trainee=row["who"], scenario=row["scenario"], level=row["level"], seed=row["seed"],
        outcome=row["outcome"], passed=bool(row["passed"]), time=row["time"], advice=row["advice"], ended=ended,
        recording=row["recording"], tick=row["tick"], values=values,
    )  # fmt: skip


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _hash(code: str) -> str:
    """Of a code of 128 random bits, which nobody can try out: one round is enough."""
    return hashlib.sha256(code.encode()).hexdigest()
