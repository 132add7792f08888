"""The ledger of claims: docs/verify.json for machines, docs/verify.md for people, and what the code has outrun.

A row is one figure on one machine. It carries the commit and the sources that it was measured with, so it can be told
from a row whose code has changed since: that one is stale. Rows that were measured before digests were kept say so.

In the file the sources of all rows are one list, and a row says which of them are its own (`"0-12 15"`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from verify.framework import Figure, number
from viscera.bench.sources import SourceTree, State, state_of

Row = dict[str, Any]
GONE = State("gone", "nothing measures it any more")
NOT_MEASURED = State("current")
"""Of a row without a measurement: nothing there can be out of date."""


def load(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    ledger = json.loads(path.read_text())
    known = [part.rsplit(":", 1) for part in ledger.get("sources", [])]
    for row in ledger["results"]:
        if row.get("sources") is not None:
            row["sources"] = dict(known[i] for i in _indices(row["sources"]))
    return ledger["results"]


def save(path: Path, rows: list[Row]) -> None:
    parts = sorted({f"{name}:{own}" for row in rows for name, own in (row.get("sources") or {}).items()})
    place = {part: i for i, part in enumerate(parts)}
    written = [dict(row) for row in rows]
    for row in written:
        if row.get("sources") is not None:
            row["sources"] = _ranges(sorted(place[f"{name}:{own}"] for name, own in row["sources"].items()))
    ledger = {"sources": parts, "results": written}
    path.write_text(json.dumps(ledger, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def merge(old: list[Row], new: Iterable[Row]) -> list[Row]:
    """New results replace old ones of the same figure, machine and device. A skip replaces nothing but a skip."""
    kept = {(row["key"], row["machine"], row["device"]): row for row in old}
    for row in new:
        place = (row["key"], row["machine"], row["device"])
        if row["status"] != "skipped" or kept.get(place, {}).get("status", "skipped") == "skipped":
            kept[place] = row
    return sorted(kept.values(), key=lambda row: (row["area"], row["key"], row["device"], row["machine"]))


def states(rows: Iterable[Row], figures: Iterable[Figure], tree: SourceTree) -> list[State]:
    """Of each row: is it about the code as it is?"""
    known = {one.key: one for one in figures}
    prints = {key: one.fingerprint(tree) for key, one in known.items()}
    found: list[State] = []
    for row in rows:
        if row["key"] not in known:
            found.append(GONE)
        elif row["status"] == "skipped":
            found.append(NOT_MEASURED)
        else:
            found.append(state_of(row.get("sources"), prints[row["key"]]))
    return found


def to_measure(
    figures: Iterable[Figure], rows: list[Row], found: list[State], machine: str, device: str
) -> list[Figure]:
    """Figures that are stale somewhere, or were never measured, and are not up to date here."""
    pairs = list(zip(rows, found, strict=True))
    measured = [(row, state) for row, state in pairs if row["status"] != "skipped"]
    here = {r["key"] for r, state in measured if (r["machine"], r["device"]) == (machine, device) and state.is_current}
    fine = {row["key"] for row, _ in measured} - {row["key"] for row, state in measured if not state.is_current}
    return [one for one in figures if one.key not in here | fine]


def table(rows: list[Row], found: list[State]) -> str:
    """The results for people: one table per area."""
    text = ""
    for area in dict.fromkeys(row["area"] for row in rows):
        text += f"### {area}\n\n| figure | bound | measured | on | |\n| --- | --- | ---: | --- | --- |\n"
        for row, state in zip(rows, found, strict=True):
            if row["area"] == area:
                detail = f"<br><small>{_cell(row['detail'])}</small>" if row["detail"] else ""
                measured = f"{number(row['value'])} {row['unit']}".strip()
                where = f"{row['device']}, {_cell(row['machine'])}, {row['date'][:10]}"
                commit = f", {row['commit']}" if row.get("commit") else ""
                text += (
                    f"| {_cell(row['claim'])}{detail} | {_cell(row['bound'])} | {_cell(measured)} | "
                    f"{where}{commit} | {mark(row, state)} |\n"
                )
        text += "\n"
    return text


def mark(row: Row, state: State) -> str:
    """How it ended, and whether that is still about the code as it is."""
    ended = {"passed": "✓", "failed": "✗ failed", "skipped": "not measured"}[row["status"]]
    doubt = {"current": "", "stale": ", **stale**", "unknown": ", **code unknown**", "gone": ", **gone**"}[state.kind]
    return ended + doubt


def _indices(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _ranges(numbers: list[int]) -> str:
    """`[0, 1, 2, 5]` as `0-2 5`."""
    runs: list[list[int]] = []
    for one in numbers:
        if runs and one == runs[-1][1] + 1:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    return " ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
