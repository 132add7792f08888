"""A whole sweep: what is left to do is done, each row is kept as it comes, and then there is a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from viscera.errors import InputError
from viscera.sweeps import table
from viscera.sweeps.cluster import ray_module, run_on_cluster
from viscera.sweeps.journal import Journal
from viscera.sweeps.local import run_here
from viscera.sweeps.one import Row
from viscera.sweeps.plan import Plan

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Finished:
    rows: list[Row]
    """Of the runs that went well, in the order of their numbers."""
    failed: list[Row]
    resumed: int
    """Runs that had been done before."""
    out: Path
    plot: Path | None
    summary: list[list[str]]


def sweep(
    plan: Plan, out: Path, *, workers: int = 2, address: str | None = None, progress: Progress | None = None
) -> Finished:
    """Runs all of a plan: in processes here, or on the Ray cluster at `address` (`local` starts one here). What the
    journal beside `out` has already is not run again."""
    if workers < 1:
        raise InputError(f"workers = {workers} is not possible.", "Give 1 or more.")
    table.check_kind(out)
    if address is not None:
        ray_module()  # refuses where it is not installed
    plan.check()
    journal = Journal(plan, out)
    resumed = len(journal.rows)
    left = [run for run in plan.runs() if run.number not in journal.rows]
    journal.open()
    try:
        rows = run_here(plan, left, workers) if address is None else run_on_cluster(plan, left, address, workers)
        for row in rows if left else ():
            journal.add(row)
            if progress is not None:
                bad = sum(one.failed for one in journal.rows.values())
                told = f"{len(journal.rows)} of {plan.count} runs" + (f", {bad} failed" if bad else "")
                progress(told, len(journal.rows) / plan.count)
    finally:
        journal.close()
    good = [row for _, row in sorted(journal.rows.items()) if not row.failed]
    bad = [row for _, row in sorted(journal.rows.items()) if row.failed]
    found = table.columns(plan, good)
    table.write(out, found)
    return Finished(good, bad, resumed, out, table.plot(out, plan, found), table.summary(plan, found))
