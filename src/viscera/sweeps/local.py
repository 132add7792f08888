"""Runs on this machine, in processes of their own. A process that dies takes no run with it: what it was at is done
again by another, up to `ATTEMPTS` times."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from viscera.sweeps.one import Row, do_run
from viscera.sweeps.plan import Plan, Run

ATTEMPTS = 3
"""At a run whose process died."""
AHEAD = 2
"""Runs that wait for each process."""


def run_here(plan: Plan, runs: Sequence[Run], workers: int) -> Iterator[Row]:
    """Rows as they come."""
    left = list(runs)
    tried: Counter[int] = Counter()
    while left:
        done: set[int] = set()
        for row in _until_broken(plan, left, workers, tried):
            done.add(row.run)
            yield row
        left = [run for run in left if run.number not in done]
        lost = [run for run in left if tried[run.number] >= ATTEMPTS]
        for run in lost:
            yield Row(run.number, run.seed, run.settings, failure=f"its process died {ATTEMPTS} times")
        left = [run for run in left if tried[run.number] < ATTEMPTS]


def _until_broken(plan: Plan, runs: Sequence[Run], workers: int, tried: Counter[int]) -> Iterator[Row]:
    """Ends when all are done, or when a process has died: `tried` then counts what may have been at work."""
    waiting = iter(runs)
    # Forking a process that has Warp and threads in it does not go well.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        at_work: dict[Future[Row], Run] = {}

        def fill() -> None:
            while len(at_work) < AHEAD * workers:
                run = next(waiting, None)
                if run is None:
                    return
                at_work[pool.submit(do_run, plan, run)] = run

        try:
            fill()
            while at_work:
                done, _ = wait(at_work, return_when=FIRST_COMPLETED)
                for one in done:
                    yield one.result()
                    del at_work[one]
                fill()
        except BrokenProcessPool:
            finished = [one for one in at_work if one.done() and one.exception() is None]
            for one in finished:
                yield one.result()
                del at_work[one]
            tried.update(run.number for run in at_work.values())
