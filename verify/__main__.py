"""Measure the figures and write docs/verify.json and docs/verify.md.

python -m verify [--only PATTERN]… [--list]
python -m verify --add FILE        take over the results of another machine
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verify import framework
from viscera import machine
from viscera.device import open_device
from viscera.doctor import find_browser

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLE_BEGIN = "<!-- results: written by make verify -->"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verify", description="Measure every figure we claim.")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="figures whose name or claim matches"
    )
    parser.add_argument("--list", action="store_true", help="only say which figures there are")
    parser.add_argument("--docs", type=Path, default=DOCS, metavar="DIR", help="where verify.json and verify.md are")
    parser.add_argument("--add", type=Path, metavar="FILE", help="only take over the verify.json of another machine")
    chosen = parser.parse_args(arguments)
    if chosen.add:
        _keep(chosen.docs, framework.load(chosen.add))
        return 0
    figures = framework.select(framework.discover(), chosen.only)
    if chosen.list:
        for one in figures:
            print(f"{one.key}: {one.claim} ({one.bound})")
        return 0
    if not figures:
        print(f"No figure matches {', '.join(chosen.only)}. --list shows all.", file=sys.stderr)
        return 2
    return _measure(figures, chosen.docs)


def _measure(figures: list[framework.Figure], docs: Path) -> int:
    device = open_device()
    have: set[framework.Needs] = set()
    if device.is_cuda:
        have.add("cuda")
    if find_browser():
        have.add("browser")
    results: list[framework.Result] = []
    start = time.monotonic()
    for result in framework.run(
        _announced(figures), have, machine.describe(), device.description if device.is_cuda else "cpu"
    ):
        results.append(result)
        mark = {"passed": "✓", "failed": "✗", "skipped": "-"}[result.status]
        value = f"{framework.number(result.value)} {result.unit}".strip()
        print(
            f"{mark} {result.key}: {value} (bound {result.bound}) {result.detail} [{result.seconds:.1f} s]", flush=True
        )
    _keep(docs, [result.as_json() for result in results])
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


def _keep(docs: Path, results: list[dict[str, Any]]) -> None:
    merged = framework.merge(framework.load(docs / "verify.json"), results)
    framework.save(docs / "verify.json", merged)
    _write_table(docs / "verify.md", framework.table(merged))


def _write_table(path: Path, table: str) -> None:
    """Everything after the mark is ours; what people wrote before it stays."""
    text = path.read_text() if path.is_file() else f"# Verification\n\n{TABLE_BEGIN}\n"
    head = text.partition(TABLE_BEGIN)[0]
    path.write_text(f"{head}{TABLE_BEGIN}\n\n{table}")


if __name__ == "__main__":
    sys.exit(main())
