"""Trials for other programs: CSV, Parquet, and statements of the Experience API (xAPI 1.0.3, the convention of learning
record stores)."""

from __future__ import annotations

import csv
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from viscera.errors import InputError
from viscera.training.store import KeptTrial

HOME = "https://viscera.invalid"
"""Names of xAPI are addresses; this one leads nowhere on purpose."""
VERBS = {
    "met": ("http://adlnet.gov/expapi/verbs/passed", "passed"),
    "found": ("http://adlnet.gov/expapi/verbs/passed", "passed"),
    "failed": ("http://adlnet.gov/expapi/verbs/failed", "failed"),
    "missed": ("http://adlnet.gov/expapi/verbs/failed", "failed"),
    "given_up": ("http://adlnet.gov/expapi/verbs/terminated", "terminated"),
}
FIXED = ("id", "trainee", "scenario", "level", "seed", "outcome", "passed", "time", "ended", "advice", "recording")


def rows(trials: Sequence[KeptTrial]) -> list[dict[str, Any]]:
    """One per trial, all with the same columns: what it was, then every number that any of them has."""
    names = sorted({name for trial in trials for name in trial.values} - {"time"})
    return [_row(trial) | {name: trial.values.get(name) for name in names} for trial in trials]


def _row(trial: KeptTrial) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in FIXED} | {"ended": trial.ended.isoformat(timespec="seconds")}


def statement(trial: KeptTrial) -> dict[str, Any]:
    """A trial as an xAPI statement; the same trial has the same id each time."""
    verb, word = VERBS.get(trial.outcome, VERBS["given_up"])
    extensions = {f"{HOME}/measures/{name}": value for name, value in sorted(trial.values.items())}
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{HOME}/trials/{trial.id}")),
        "actor": {"objectType": "Agent", "account": {"homePage": HOME, "name": trial.trainee}},
        "verb": {"id": verb, "display": {"en": word}},
        "object": {
            "objectType": "Activity",
            "id": f"{HOME}/scenarios/{trial.scenario}",
            "definition": {
                "type": "http://adlnet.gov/expapi/activities/simulation",
                "name": {"en": f"{trial.scenario}, {trial.level}"},
            },
        },
        "result": {
            "success": trial.passed,
            "completion": trial.outcome != "given_up",
            "duration": f"PT{trial.time:.2f}S",
            "extensions": extensions,
        },
        "timestamp": trial.ended.isoformat(timespec="milliseconds"),
    }


def write(trials: Sequence[KeptTrial], path: Path) -> None:
    """To a file; what is in it, its ending says: .csv, .parquet or .json (xAPI)."""
    makers = {".csv": _write_csv, ".parquet": _write_parquet, ".json": _write_xapi}
    if path.suffix not in makers:
        raise InputError(f"cannot export to {path.name!r}.", f"Give a file that ends in {', '.join(makers)}.")
    try:
        makers[path.suffix](trials, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.", "Choose another file.") from error


def _write_csv(trials: Sequence[KeptTrial], path: Path) -> None:
    table = rows(trials)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]) if table else FIXED)
        writer.writeheader()
        writer.writerows(table)


def _write_parquet(trials: Sequence[KeptTrial], path: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow.", "Install it: pip install 'viscera[training]'.") from None
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows(trials)), path)


def _write_xapi(trials: Sequence[KeptTrial], path: Path) -> None:
    path.write_text(json.dumps([statement(trial) for trial in trials], indent=1) + "\n", encoding="utf-8")
