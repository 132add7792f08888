"""Attack in turn until the time is over, keep what was found, and print a table.

    python -m soak [--minutes 60] [--seed N] [--only NAME]… [--list]

Ends with 1 when something was found.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from soak.attack import FOUND, Attack, Finding
from soak.registry import ATTACKS
from soak.worker import Worker, smaller

TURN_S = 20.0
"""An attack goes on for this long, then the next one has its turn [s]."""


@dataclass
class Row:
    """Of the table."""

    worker: Worker
    cases: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    found: int = 0


def soak(attacks: list[Attack], seconds: float, seed: int, folder: Path, turn: float = TURN_S, small: bool = False):
    """Rows of the table and what was found."""
    rows = {attack.name: Row(Worker(attack)) for attack in attacks}
    findings: list[Finding] = []
    chance = random.Random(seed)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            for attack in attacks:
                row = rows[attack.name]
                until = min(time.monotonic() + turn, end)
                while time.monotonic() < until:
                    finding = attempt(row, attack, chance, small)
                    if finding is not None:
                        findings.append(finding)
                        print(f"found: {finding.save(folder)}\n{finding.problem}", file=sys.stderr, flush=True)
                row.worker.close()
    finally:
        for row in rows.values():
            row.worker.close()
    return rows, findings


def attempt(row: Row, attack: Attack, chance: random.Random, small: bool) -> Finding | None:
    case = attack.draw(chance, small)
    start = time.monotonic()
    problem = row.worker.attempt(case)
    taken = time.monotonic() - start
    row.cases += 1
    row.seconds += taken
    row.slowest = max(row.slowest, taken)
    if not problem:
        return None
    row.found += 1
    return smaller(row.worker, case, problem)


def table(rows: dict[str, Row], seconds: float, seed: int) -> str:
    lines = [
        f"{seconds / 60:.1f} minutes, seed {seed}",
        "",
        "| attack | what | cases | per minute | slowest [s] | memory [MiB] | descriptors | found |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in rows.items():
        last = row.worker.last or {"memory": 0, "descriptors": 0}
        rate = 60.0 * row.cases / row.seconds if row.seconds else 0.0
        figures = f"{row.cases} | {rate:.0f} | {row.slowest:.1f} | {last['memory']} | {last['descriptors']}"
        lines.append(f"| {name} | {row.worker.attack.what} | {figures} | {row.found} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description="Try to break viscera from outside.")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="draws the same cases again; a new one unless given")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", choices=list(ATTACKS))
    parser.add_argument("--list", action="store_true", help="only say which attacks there are")
    parser.add_argument("--found", type=Path, default=FOUND, metavar="DIR", help="where findings are kept")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print("\n".join(f"{attack.name:12} {attack.what}" for attack in ATTACKS.values()))
        return 0
    seed = secrets.randbits(32) if chosen.seed is None else chosen.seed
    start = time.monotonic()
    attacks = [attack for attack in ATTACKS.values() if not chosen.only or attack.name in chosen.only]
    rows, findings = soak(attacks, 60.0 * chosen.minutes, seed, chosen.found)
    print(table(rows, time.monotonic() - start, seed))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
