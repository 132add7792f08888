"""A sweep keeps every row as it comes, goes on where it stopped, keeps failures apart with their recordings, and loses
nothing to a process that dies."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from viscera.errors import InputError
from viscera.session.archive import read_recording
from viscera.sweeps import Plan, Run, running, sweep
from viscera.sweeps.local import run_here
from viscera.sweeps.one import Row, do_run

PLAN = Plan("palpation", 0.4, {"stiffness": (2.0, 4.0)}, (0, 1), ("pins",), detail=0.1)

BREAKS = """
from viscera.errors import StateError
from viscera.inputs import ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario
from viscera.view import Camera
from viscera.world import Contents
from viscera.world.system import System

def build(setting):
    def frame(now):
        if setting.seed == 1 and now.tick >= 32:
            raise StateError("it broke.", "Mend it.", stage="mine", tick=now.tick)
    return Contents(
        tools=kit.hand_out([kit.probe(0.01)], (0.0, 0.0, 0.1)), systems=[System(name="mine", frame=frame)],
        camera=Camera((0.0, -1.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0), bounds=((0, 0, 0), (1, 1, 1)),
        script=lambda world, tick: [ToolInput(0, (0.0, 0.0, 0.05))] if tick % 8 == 0 else [],
    )

SCENARIO = Scenario("breaks", build)
"""


def in_this_process(plan: Plan, runs: Sequence[Run], workers: int) -> Iterator[Row]:
    return (do_run(plan, run) for run in runs)


@pytest.mark.slow
def test_a_sweep_that_was_broken_off_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet

    done: list[int] = []

    def tired(plan: Plan, runs: Sequence[Run], workers: int) -> Iterator[Row]:
        for run in runs:
            if len(done) == 2:
                raise KeyboardInterrupt
            done.append(run.number)
            yield do_run(plan, run)

    monkeypatch.setattr(running, "run_here", tired)
    out = tmp_path / "results.parquet"
    with pytest.raises(KeyboardInterrupt):
        sweep(PLAN, out)
    journal = tmp_path / "results.runs.jsonl"
    with journal.open("a") as file:
        file.write('{"run": 3, "se')  # the power failed
    monkeypatch.setattr(running, "run_here", in_this_process)
    finished = sweep(PLAN, out, workers=1)
    assert (len(finished.rows), finished.resumed, finished.failed) == (4, 2, [])
    table = pyarrow.parquet.read_table(out).to_pydict()
    assert table["run"] == [0, 1, 2, 3]
    assert table["stiffness"] == [2.0, 2.0, 4.0, 4.0]
    assert table["seed"] == [0, 1, 0, 1]
    # A stiffer tissue pushes back harder; the same run gives the same world.
    assert min(table["peak_force"][2:]) > 1.2 * max(table["peak_force"][:2])
    assert do_run(PLAN, PLAN.runs()[3]).state_hash == table["state_hash"][3]
    assert finished.plot is not None
    assert finished.plot.stat().st_size > 5_000
    assert finished.summary[0] == ["stiffness", "runs", "pins", "peak_force"]
    assert sweep(PLAN, out).resumed == 4
    with pytest.raises(InputError, match="another sweep"):
        sweep(Plan("palpation", 0.4, {"stiffness": (2.0, 5.0)}, (0, 1), ("pins",), detail=0.1), out)


def test_a_run_that_fails_is_kept_apart_with_its_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks.py").write_text(BREAKS)
    monkeypatch.setattr(running, "run_here", in_this_process)
    plan = Plan(str(tmp_path / "breaks.py"), 0.1, {}, (0, 1, 2))
    finished = sweep(plan, tmp_path / "table.csv")
    assert [row.seed for row in finished.rows] == [0, 2]
    (failed,) = finished.failed
    assert "it broke" in failed.failure
    recording = read_recording(tmp_path / "table.failures" / failed.recording)
    assert recording.header.seed == 1
    assert len(recording.inputs) >= 4
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 3
    # Tried again the next time; the others are not.
    assert sweep(plan, tmp_path / "table.csv").resumed == 2


@pytest.mark.parametrize(
    ("plan", "out", "says"),
    [
        (Plan("palpation", 0.1, {"stiffness": (1.0, 99.0)}, detail=0.1), "a.csv", "Allowed are"),
        (Plan("palpation", 0.1, {"colour": (1.0,)}, detail=0.1), "a.csv", "There are"),
        (Plan("palpation", 0.1, measures=("joy",), detail=0.1), "a.csv", "There are"),
        (PLAN, "a.xlsx", ".parquet"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(tmp_path: Path, plan: Plan, out: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        sweep(plan, tmp_path / out)
    assert not list(tmp_path.iterdir())


def test_without_ray_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"viscera\[cluster\]"):
        sweep(PLAN, tmp_path / "a.csv", address="local")


def kill_a_worker(own: int, name: str, after: Any) -> None:
    """Once `after()` is true: the first process below this one whose command has `name` in it."""
    while not after():
        time.sleep(0.05)
    rows = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    found = [line.split(None, 2) for line in rows.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, *_ in found}

    def mine(pid: int) -> bool:
        return pid == own or (pid in parents and mine(parents[pid]))

    victim = next(int(row[0]) for row in found if name in row[2] and int(row[0]) != own and mine(int(row[0])))
    os.kill(victim, signal.SIGKILL)


@pytest.mark.slow
def test_a_process_that_is_killed_loses_nothing() -> None:
    plan = Plan("palpation", 0.4, {}, tuple(range(8)), detail=0.1)
    rows: list[Row] = []
    for row in run_here(plan, plan.runs(), 2):
        rows.append(row)
        if len(rows) == 2:  # while four more have been handed out, and two not yet
            kill_a_worker(os.getpid(), "spawn_main", lambda: True)
    assert sorted(row.run for row in rows) == list(range(8))
    assert not any(row.failed for row in rows)
    assert len({row.worker for row in rows}) >= 3, "nobody was killed"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_two_hundred_runs_on_a_small_cluster_with_a_worker_killed_in_the_middle(tmp_path: Path) -> None:
    """Every run is there once, and is the run that this process does by itself."""
    plan = Plan("palpation", 0.05, {"stiffness": (1.0, 2.0, 3.0, 4.0, 5.0)}, tuple(range(40)), detail=0.1)
    journal = tmp_path / "out.runs.jsonl"

    def half_way() -> bool:
        return journal.exists() and len(journal.read_text().splitlines()) > 100

    killer = threading.Thread(target=kill_a_worker, args=(os.getpid(), "ray::do_run", half_way))
    killer.start()
    finished = sweep(plan, tmp_path / "out.parquet", workers=2, address="local")
    killer.join()
    assert [row.run for row in finished.rows] == list(range(200))
    assert finished.failed == []
    assert len({row.worker for row in finished.rows}) >= 3, "nobody was killed"
    assert len([json.loads(line) for line in journal.read_text().splitlines()]) == 201
    for number in (0, 77, 199):
        assert do_run(plan, plan.runs()[number]).state_hash == finished.rows[number].state_hash
