"""What is kept of trainees and trials, and how it is asked for. A trainee is a name, which may be a pseudonym."""

from __future__ import annotations

import contextlib
import datetime
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from viscera.errors import InputError
from viscera.scores import Score
from viscera.session.logfile import TrialRecord
from viscera.training import codes

LONGEST_NAME = 120


@dataclass(frozen=True)
class Known:
    """A trainee who has shown their code."""

    name: str
    key: str
    """By which recordings know them."""
    new_code: str = ""
    """The code that was made for them just now; nobody can say it again."""


@dataclass(frozen=True)
class Counted:
    """Of one trainee."""

    trials: int
    passed: int
    last: datetime.datetime | None
    """When the newest one ended, UTC; None without a trial."""


@dataclass(frozen=True)
class Words:
    """What is said of a measure."""

    label: str
    unit: str
    digits: int
    better: str
    """`less`, `more`, or empty."""
    limit: float | None
    """What is good enough, where a goal or the literature says so."""


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
        self._measures = tables.tables["measures"]

    def close(self) -> None:
        self._engine.dispose()

    # --- trainees ---

    def names(self) -> list[str]:
        with self._engine.connect() as connection:
            return list(connection.scalars(self._sql.select(self._trainees.c.name).order_by(self._trainees.c.name)))

    def counts(self) -> dict[str, Counted]:
        """How many trials each trainee has, by name."""
        sql, trainees, trials = self._sql, self._trainees, self._trials
        passed = sql.func.count(sql.case((trials.c.passed, trials.c.id)))
        numbers = (sql.func.count(trials.c.id), passed, sql.func.max(trials.c.ended))
        query = sql.select(trainees.c.name, *numbers).outerjoin(trials).group_by(trainees.c.name)
        with self._engine.connect() as connection:
            return {name: Counted(*row) for name, *row in connection.execute(query.order_by(trainees.c.name))}

    def add(self, name: str, code: str = "") -> str:
        """A new trainee; returns the code with which they see their own trials (a new one where none is given). Only
        its hash is kept."""
        name, code = check_name(name), codes.check_code(code) if code else codes.new_code()
        row = {"name": name, "created": _now(), "code_hash": codes.hashed(code), "key": uuid.uuid4().hex}
        try:
            with self._engine.begin() as connection:
                connection.execute(self._sql.insert(self._trainees).values(**row))
        except self._sql.exc.IntegrityError:
            raise InputError(f"trainee {name!r} is there already.", "Choose another name.") from None
        return code

    def new_code(self, name: str) -> str:
        """Another code instead of the one that a trainee has lost."""
        code = codes.new_code()
        with self._engine.begin() as connection:
            found = self._trainees.c.id == self._id(connection, name)
            connection.execute(self._sql.update(self._trainees).where(found).values(code_hash=codes.hashed(code)))
        return code

    def enter(self, name: str, code: str) -> Known | None:
        """Whoever shows a trainee's code; a name that nobody has is theirs from now on. None: this is not the code."""
        name = check_name(name)
        made = ""
        if name not in self.names():
            code = codes.check_code(code) if code else ""
            with contextlib.suppress(InputError):  # unless another is quicker
                made = self.add(name, code)
        if not made and not self.knows(name, code):
            return None
        query = self._sql.select(self._trainees.c.key).where(self._trainees.c.name == name)
        with self._engine.connect() as connection:
            key = str(connection.scalar(query))
        return Known(name, key, "" if code else made)

    def knows(self, name: str, code: str) -> bool:
        """Whether this is the trainee's code."""
        query = self._sql.select(self._trainees.c.code_hash).where(self._trainees.c.name == name)
        with self._engine.connect() as connection:
            kept = connection.scalar(query)
        return bool(code) and kept is not None and codes.same(code, str(kept))

    def name_of(self, key: str) -> str:
        """Of the trainee whom recordings know by this key; empty where there is none any more."""
        query = self._sql.select(self._trainees.c.name).where(self._trainees.c.key == key)
        with self._engine.connect() as connection:
            return str(connection.scalar(query) or "")

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

    def keep(
        self,
        name: str,
        score: Score,
        recording: str = "",
        tick: int = 0,
        trial: str = "",
        ended: datetime.datetime | None = None,
    ) -> str:
        """A trial, whole or not at all; a trainee who is not known is made. Returns its id: `trial`, or a new one. One
        that is there already stays as it is."""
        name, trial = check_name(name), trial or str(uuid.uuid4())
        if name not in self.names():
            with contextlib.suppress(InputError):  # another server may be quicker
                self.add(name)
        row = {
            "id": trial, "scenario": score.scenario, "level": score.level, "seed": score.seed,
            "outcome": score.outcome, "passed": score.passed, "time": score.time, "advice": score.advice,
            "ended": ended or _now(), "recording": recording, "tick": tick,
        }  # fmt: skip
        self._insert(name, row, score.values())
        self._keep_words(score)
        return trial

    def keep_recorded(self, scenario: str, record: TrialRecord, recording: str) -> bool:
        """A trial that a recording has, unless it is there already, or its trainee is nobody's or gone; whether it was
        missing."""
        name = self.name_of(record.trainee) if record.trainee and record.id else ""
        if not name or self.has(record.id):
            return False
        ended = datetime.datetime.fromisoformat(record.ended) if record.ended else _now()
        row = {
            "id": record.id, "scenario": scenario, "level": record.level, "seed": record.seed,
            "outcome": record.outcome, "passed": record.passed, "time": record.time, "advice": record.advice,
            "ended": ended, "recording": recording, "tick": record.tick,
        }  # fmt: skip
        return self._insert(name, row, record.values)

    def has(self, trial: str) -> bool:
        with self._engine.connect() as connection:
            return connection.scalar(self._sql.select(self._trials.c.id).where(self._trials.c.id == trial)) is not None

    def _insert(self, name: str, row: dict[str, Any], values: dict[str, float]) -> bool:
        """One transaction; False where a trial of this id is there already."""
        numbers = [{"trial": row["id"], "name": key, "value": value} for key, value in values.items()]
        try:
            with self._engine.begin() as connection:
                row = row | {"trainee": self._id(connection, name)}
                connection.execute(self._sql.insert(self._trials).values(**row))
                if numbers:
                    connection.execute(self._sql.insert(self._values), numbers)
        except self._sql.exc.IntegrityError:
            if self.has(row["id"]):
                return False
            raise
        return True

    def _keep_words(self, score: Score) -> None:
        """What the numbers of a score are called; those of the newest score count."""
        table, where = self._measures, {"scenario": score.scenario, "level": score.level}
        known = self.words(score.scenario, score.level)
        for row in score.rows:
            told = Words(row.label, row.unit, row.digits, row.better, row.limit)
            if known.get(row.name) == told:
                continue
            values = {"label": told.label, "unit": told.unit, "digits": told.digits, "better": told.better}
            values["limit"] = told.limit
            mine = (table.c.scenario == score.scenario) & (table.c.level == score.level) & (table.c.name == row.name)
            with contextlib.suppress(self._sql.exc.IntegrityError), self._engine.begin() as connection:
                if row.name in known:
                    connection.execute(self._sql.update(table).where(mine).values(**values))
                else:
                    connection.execute(self._sql.insert(table).values(name=row.name, **where, **values))

    def words(self, scenario: str, level: str) -> dict[str, Words]:
        """What measures of a drill are called, by name, in no order."""
        table = self._measures
        query = self._sql.select(table).where((table.c.scenario == scenario) & (table.c.level == level))
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
        return {
            row["name"]: Words(row["label"], row["unit"], row["digits"], row["better"], row["limit"]) for row in rows
        }

    def every_word(self) -> dict[tuple[str, str], dict[str, Words]]:
        """The same of all drills, by scenario and level."""
        table = self._measures
        with self._engine.connect() as connection:
            drills = connection.execute(self._sql.select(table.c.scenario, table.c.level).distinct()).all()
        return {(scenario, level): self.words(scenario, level) for scenario, level in drills}

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
