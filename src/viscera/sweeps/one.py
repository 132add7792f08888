"""One run of a sweep, in a process of its own choosing: everything that goes in and comes out is plain data."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viscera.errors import VisceraError
from viscera.sweeps.plan import Plan, Run


@dataclass(frozen=True)
class Row:
    """What came of one run."""

    run: int
    seed: int
    settings: dict[str, float]
    measures: dict[str, float] = field(default_factory=dict)
    peak_force: float = 0.0
    """[N]"""
    state_hash: str = ""
    wall: float = 0.0
    """How long it took, the making of its world included [s]."""
    worker: str = ""
    """Machine and process."""
    failure: str = ""
    """Why it has no measures; empty as a rule."""
    recording: str = ""
    """Of a run that failed: the name of its file, in the folder of the failures."""
    recorded: bytes = b""
    """That file, on its way to the machine that keeps it."""

    @property
    def failed(self) -> bool:
        return bool(self.failure)


def do_run(plan: Plan, run: Run) -> Row:
    """Never raises what a person could act on: a failure is a row too, with the recording of what led to it."""
    begun = time.monotonic()
    worker = f"{socket.gethostname()}:{os.getpid()}"
    folder = Path(tempfile.mkdtemp(prefix="viscera-sweep-"))
    try:
        measures, peak, state_hash = _measured(plan, run, folder)
        took = time.monotonic() - begun
        return Row(run.number, run.seed, run.settings, measures, peak, state_hash, took, worker)
    except Exception as error:
        told = str(error) if isinstance(error, VisceraError) else traceback.format_exc(limit=-4)
        left = next(iter(sorted(folder.rglob("*.h5")) + sorted(folder.rglob("*.log"))), None)
        return Row(
            run.number, run.seed, run.settings, wall=time.monotonic() - begun, worker=worker, failure=told,
            recording="" if left is None else f"run-{run.number:06d}{left.suffix}",
            recorded=b"" if left is None else left.read_bytes(),
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(plan: Plan, run: Run, folder: Path) -> tuple[dict[str, float], float, str]:
    from viscera.headless import record_headless
    from viscera.scenarios import make

    made: dict[str, Any] = {"parameters": run.settings}
    world = make(
        plan.scenario, device=plan.device, seed=run.seed, detail=plan.detail, parameters=run.settings, cores=plan.cores
    )
    try:
        result, _ = record_headless(world, plan.seconds, world.script, folder, made, None)
    finally:
        world.close()
    wanted = plan.measures or tuple(result.measures)
    return {name: result.measures[name] for name in wanted}, result.peak_force, result.state_hash
