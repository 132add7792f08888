"""Marks in the documents: which figures behind a page the code has outrun.

A page that quotes figures has two comments, and what stands between them is written here:

    <!-- figures: lattice bench:tissue -->
    <!-- /figures -->

`lattice` is an area of the ledger, `bench:tissue` the saved tables of a benchmark. `python -m verify --mark` writes the
marks; with `--check` it only says whether they are right, which `make lint` asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from verify.ledger import Row, table
from viscera.bench.report import TableState
from viscera.bench.sources import State

TABLE_BEGIN = "<!-- results: written by make verify -->"
BLOCK = re.compile(r"(<!-- figures: (?P<names>[^>]*?) -->\n)(?P<text>.*?)(<!-- /figures -->)", re.DOTALL)
NAMED = 5
"""How many figures are named; the rest are counted."""
KINDS = {
    "stale": "older than the code they measure",
    "unknown": "measured before digests were kept",
    "gone": "measured by nothing any more",
}


@dataclass(frozen=True)
class Ledger:
    """All that is known: rows of the figures and saved tables of benchmarks, each with its state."""

    rows: list[Row]
    states: list[State]
    tables: list[TableState]

    def figures(self, names: list[str]) -> Iterator[tuple[str, State]]:
        """Name and state of what was measured in these areas and benchmarks."""
        for row, state in zip(self.rows, self.states, strict=True):
            if row["area"] in names and row["status"] != "skipped":
                where = "" if row["device"] == "cpu" else f" ({row['device'].partition(',')[0]})"
                yield f"`{row['key']}`{where}", state
        for one in self.tables:
            if f"bench:{one.name}" in names or "bench" in names:
                yield f"table `{one.name}` ({one.folder})", one.state


def written(docs: Path, ledger: Ledger) -> dict[Path, str]:
    """Every document that has marks, with the text it should have."""
    page = docs / "verify.md"
    before = page.read_text() if page.is_file() else f"# Verification\n\n{TABLE_BEGIN}\n"
    head = before.partition(TABLE_BEGIN)[0]
    texts = {page: f"{head}{TABLE_BEGIN}\n\n{table(ledger.rows, ledger.states)}"}
    for path in sorted(docs.glob("*.md")):
        text = texts.get(path) or path.read_text()
        if BLOCK.search(text):
            texts[path] = BLOCK.sub(lambda found: _block(found, ledger), text)
    return texts


def _block(found: re.Match[str], ledger: Ledger) -> str:
    figures = list(ledger.figures(found["names"].split()))
    return f"{found[1]}{summary(figures)}\n{found[4]}"


def summary(figures: list[tuple[str, State]]) -> str:
    """One paragraph: how many are up to date, and which are not."""
    if not figures:
        return "> No figure behind this page has been measured yet."
    current = sum(state.is_current for _, state in figures)
    if current == len(figures):
        return f"> All {current} figures behind this page were measured with the code as it is ([verify](verify.md))."
    text = f"> {current} of {len(figures)} figures behind this page were measured with the code as it is"
    for kind, words in KINDS.items():
        names = sorted({name for name, state in figures if state.kind == kind})
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            text += f"; **{words}**: {', '.join(names[:NAMED])}{more}"
    return f"{text} ([verify](verify.md))."
