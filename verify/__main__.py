"""Measure the figures and write docs/verify.json and docs/verify.md.

python -m verify [--only PATTERN]… [--list]
python -m verify --stale [--list]  figures whose sources changed since they were measured: name and measure them again
python -m verify --mark [--check]  only write the marks of stale figures into the documents, or see that they are right
python -m verify --add FILE        take over the results of another machine
python -m verify --drop-gone       only drop rows that nothing measures any more
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from verify import framework, ledger, marks
from viscera import machine
from viscera.bench import report
from viscera.bench.sources import SourceTree, current_commit, our_sources
from viscera.device import open_device
from viscera.doctor import find_browser

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TABLE_BEGIN = marks.TABLE_BEGIN


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verify", description="Measure every figure we claim.")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="figures whose name or claim matches"
    )
    parser.add_argument("--list", action="store_true", help="only say which figures there are, or which are stale")
    parser.add_argument("--stale", action="store_true", help="figures whose sources changed since they were measured")
    parser.add_argument("--mark", action="store_true", help="only write the marks of stale figures into the documents")
    parser.add_argument("--check", action="store_true", help="with --mark: write nothing, fail if a mark is wrong")
    parser.add_argument("--docs", type=Path, default=DOCS, metavar="DIR", help="where verify.json and verify.md are")
    parser.add_argument("--add", type=Path, metavar="FILE", help="only take over the verify.json of another machine")
    parser.add_argument("--drop-gone", action="store_true", help="only drop rows that nothing measures any more")
    chosen = parser.parse_args(arguments)
    tree = our_sources()
    everything = framework.discover()
    if chosen.add:
        _save(chosen.docs, _with_commit(ledger.load(chosen.add), everything, tree))
        return _mark(chosen.docs, everything, tree)
    if chosen.drop_gone:
        _drop_gone(chosen.docs, everything, tree)
        return 0
    if chosen.mark:
        return _mark(chosen.docs, everything, tree, only_check=chosen.check)
    figures = framework.select(everything, chosen.only)
    if not figures:
        print(f"No figure matches {', '.join(chosen.only)}. --list shows all.", file=sys.stderr)
        return 2
    if chosen.stale:
        figures = _stale(figures, chosen.docs, tree)
    elif chosen.list:
        for one in figures:
            print(f"{one.key}: {one.claim} ({one.bound})")
    return 0 if chosen.list or not figures else _measure(figures, everything, chosen.docs, tree)


def _stale(figures: list[framework.Figure], docs: Path, tree: SourceTree) -> list[framework.Figure]:
    """Says what is stale, and returns what can be measured again on this machine."""
    names = {one.key for one in figures}
    rows = [row for row in ledger.load(docs / "verify.json") if row["key"] in names]
    found = ledger.states(rows, figures, tree)
    for row, state in zip(rows, found, strict=True):
        if not state.is_current:
            print(f"{row['key']} ({row['device']}, {row['date'][:10]}): {state.kind}, {state.why}")
    measured = {row["key"] for row in rows if row["status"] != "skipped"}
    for one in figures:
        if one.key not in measured:
            print(f"{one.key}: never measured")
    for line in report.stale_lines(tree):
        print(line)
    where, device, _ = _here()
    again = ledger.to_measure(figures, rows, found, where, device)
    print(f"{len(again)} of {len(figures)} figures are to be measured here", flush=True)
    return again


def _here() -> tuple[str, str, set[framework.Needs]]:
    """Names of machine and device as rows have them, and what figures may need."""
    device, about = open_device(), machine.describe()
    have: set[framework.Needs] = set()
    if device.is_cuda:
        have.add("cuda")
    if find_browser():
        have.add("browser")
    return f"{about['cpu']}, {about['cores']} cores", device.description if device.is_cuda else "cpu", have


def _measure(figures: list[framework.Figure], everything: list[framework.Figure], docs: Path, tree: SourceTree) -> int:
    _, device, have = _here()
    results: list[framework.Result] = []
    start = time.monotonic()
    for result in framework.run(_announced(figures), have, machine.describe(), device, tree):
        results.append(result)
        _save(docs, [result.as_json()])  # at once: a long run that is stopped keeps what it has
        mark = {"passed": "✓", "failed": "✗", "skipped": "-"}[result.status]
        value = f"{framework.number(result.value)} {result.unit}".strip()
        print(
            f"{mark} {result.key}: {value} (bound {result.bound}) {result.detail} [{result.seconds:.1f} s]", flush=True
        )
    _mark(docs, everything, tree)
    failed = [result for result in results if result.status == "failed"]
    skipped = sum(result.status == "skipped" for result in results)
    passed = len(results) - len(failed) - skipped
    print(f"{passed} passed, {len(failed)} failed, {skipped} not measured here, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


def _announced(figures: list[framework.Figure]) -> Iterator[framework.Figure]:
    """Says on standard error which figure is measured now: some take minutes."""
    for number, one in enumerate(figures, 1):
        print(f"  {number} of {len(figures)}: {one.key}", file=sys.stderr, flush=True)
        yield one


def _save(docs: Path, results: list[ledger.Row]) -> None:
    docs.mkdir(parents=True, exist_ok=True)
    ledger.save(docs / "verify.json", ledger.merge(ledger.load(docs / "verify.json"), results))


def _mark(docs: Path, everything: list[framework.Figure], tree: SourceTree, only_check: bool = False) -> int:
    rows = ledger.load(docs / "verify.json")
    known = marks.Ledger(
        rows, ledger.states(rows, everything, tree), report.table_states(tree.root / report.SAVED, tree)
    )
    wrong = {path: text for path, text in marks.written(docs, known).items() if not _says(path, text)}
    if only_check and wrong:
        names = ", ".join(path.name for path in wrong)
        print(f"Figures that are stale are not marked so in {names}; run `python -m verify --mark`.", file=sys.stderr)
        return 1
    for path, text in wrong.items():
        path.write_text(text)
    return 0


def _drop_gone(docs: Path, everything: list[framework.Figure], tree: SourceTree) -> None:
    """Only where every file of this folder can be imported: a figure that is not found counts as gone."""
    known = {one.key for one in everything}
    rows = ledger.load(docs / "verify.json")
    for key in sorted({row["key"] for row in rows} - known):
        print(f"{key}: dropped")
    ledger.save(docs / "verify.json", [row for row in rows if row["key"] in known])
    _mark(docs, everything, tree)


def _says(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


def _with_commit(rows: list[ledger.Row], everything: list[framework.Figure], tree: SourceTree) -> list[ledger.Row]:
    """A machine without git does not know the commit. Where it measured what is here, it is the commit here."""
    commit = current_commit(tree)
    for row, state in zip(rows, ledger.states(rows, everything, tree), strict=True):
        if row.get("sources") is not None and row.get("commit") is None and state.is_current:
            row["commit"] = commit
    return rows


if __name__ == "__main__":
    sys.exit(main())
