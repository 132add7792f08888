"""One run of a sweep, in a process of its own choosing: everything that goes in and comes out is plain data."""

from __future__ import annotations

import os
import socket
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from viscera.errors import StateError, VisceraError
from viscera.inputs import Input
from viscera.sweeps.plan import Plan, Run

if TYPE_CHECKING:
    from viscera.world import World

LOG = ".log"
"""Ending of the file."""


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
    """Never raises what a run can raise: a failure is a row too, with the recording of what led to it."""
    from viscera.headless import run_headless
    from viscera.scenarios import make

    begun = time.monotonic()
    worker = f"{socket.gethostname()}:{os.getpid()}"
    inputs: list[tuple[int, Input]] = []
    world: World | None = None
    try:
        world = make(
            plan.scenario, device=plan.device, seed=run.seed, detail=plan.detail, parameters=run.settings,
            cores=plan.cores,
        )  # fmt: skip
        if plan.cores == 1:
            world.take_turns_inline()
        result = run_headless(world, plan.seconds, world.script, lambda tick, one: inputs.append((tick, one)))
    except Exception as error:
        told = str(error) if isinstance(error, VisceraError) else traceback.format_exc(limit=-4)
        recorded = b"" if world is None else _recording(world, run, inputs, error)
        return Row(
            run.number, run.seed, run.settings, wall=time.monotonic() - begun, worker=worker, failure=told,
            recording=f"run-{run.number:06d}{LOG}" if recorded else "", recorded=recorded,
        )  # fmt: skip
    finally:
        if world is not None:
            world.close()
    wanted = plan.measures or tuple(result.measures)
    measures = {name: result.measures[name] for name in wanted}
    took = time.monotonic() - begun
    return Row(run.number, run.seed, run.settings, measures, result.peak_force, result.state_hash, took, worker)


def _recording(world: World, run: Run, inputs: list[tuple[int, Input]], error: Exception) -> bytes:
    """The log of a session that died, as `viscera replay` takes it."""
    from viscera.session.logfile import Failure
    from viscera.session.recorder import Recorder, make_header

    header = make_header(
        world.source, run.seed, world.device.name, world.device.description, None, run.settings, world.detail
    )
    with tempfile.TemporaryDirectory(prefix="viscera-sweep-") as folder:
        recorder = Recorder.create(Path(folder), header)
        for tick, one in inputs:
            recorder.input(tick, one)
        stage = error.stage if isinstance(error, StateError) else type(error).__name__
        recorder.fail(Failure(world.tick, stage, str(error)))
        return recorder.path.read_bytes()
