"""Runs on a Ray cluster, or on a small one that Ray starts here. What a dead worker was at, another does again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from viscera.errors import InputError
from viscera.sweeps.one import Row, do_run
from viscera.sweeps.plan import Plan, Run

LOCAL = "local"
"""The address of a cluster that is started here, and ends with the sweep."""
RETRIES = 5
"""Of a run whose worker died."""
AHEAD = 4
"""Runs given to Ray for each of its cores."""


def ray_module() -> Any:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError("Ray is not installed.", "Install it with: pip install 'viscera[cluster]'") from error
    return ray


def run_on_cluster(plan: Plan, runs: Sequence[Run], address: str, workers: int) -> Iterator[Row]:
    """Rows as they come. `workers` counts for a cluster that is started here."""
    ray = ray_module()
    cores = plan.cores or 1
    if address == LOCAL:
        ray.init(num_cpus=workers * cores, include_dashboard=False, log_to_driver=False)
    else:
        try:
            ray.init(address=address, log_to_driver=False)
        except Exception as error:
            raise InputError(f"no Ray cluster answers at {address}: {error}", "Start it with `ray start`.") from error
    try:
        yield from _rows(ray, plan, runs, cores)
    finally:
        ray.shutdown()


def _rows(ray: Any, plan: Plan, runs: Sequence[Run], cores: int) -> Iterator[Row]:
    on_gpu = plan.device is not None and plan.device.startswith("cuda")
    task = ray.remote(num_cpus=cores, num_gpus=1 if on_gpu else 0, max_retries=RETRIES)(do_run)
    most = max(1, int(AHEAD * ray.cluster_resources().get("CPU", 1.0)))
    waiting = iter(runs)
    at_work: dict[Any, Run] = {}
    plan_there = ray.put(plan)
    while True:
        while len(at_work) < most:
            run = next(waiting, None)
            if run is None:
                break
            at_work[task.remote(plan_there, run)] = run
        if not at_work:
            return
        done, _ = ray.wait(list(at_work), num_returns=1)
        for one in done:
            run = at_work.pop(one)
            try:
                yield ray.get(one)
            except ray.exceptions.RayError as error:
                yield Row(run.number, run.seed, run.settings, failure=f"its worker died: {error}")
