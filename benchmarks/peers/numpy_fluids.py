"""A step of a flow on a grid beside a plain NumPy and SciPy solver with an exact projection, and beside PhiFlow.

The plain solver is what one writes in an afternoon: staggered velocities, semi-Lagrangian transport by
`scipy.ndimage.map_coordinates`, and pressure by a cosine transform, exact because there are no obstacles (which it
could not have). Ours carries semi-Lagrangian too and presses with five cycles. Both start from the same velocities and
must agree after a step. They run in turns, so that whatever else the machine does falls on both; besides wall time
the table has the processor's own.

None of it is a dependency of viscera. In an environment of its own:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install scipy phiflow==3.4.0 phiml==1.16.1 warp-lang numpy
    PYTHONPATH=src /tmp/peers/bin/python benchmarks/peers/numpy_fluids.py [--cores 2]

It prints a table and writes numpy_fluids.json beside itself (elsewhere with --out); with --table it only writes the
table of docs/grid.md from that file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from viscera import grid
from viscera.device import Device, open_device, processor_name
from viscera.grid import GridParams

SIZES = ((64, 64, 1), (128, 128, 1), (256, 256, 1), (64, 64, 64))
GOAL = 2.0
"""How many times less time per step we want to need than NumPy and SciPy."""
ALIKE = 1e-3
"""Largest difference of velocities after a step, over the largest."""
Speeds = list[np.ndarray]
PAGE = Path(__file__).parents[2] / "docs" / "grid.md"
BEGIN, END = "<!-- written by benchmarks/peers/numpy_fluids.py --table -->", "<!-- /written -->"


class Plain:
    """Arrays of shape (z, y, x), one more along their axis."""

    def __init__(self, cells: tuple[int, int, int], speeds: Speeds, rate: float) -> None:
        from scipy.fft import dctn, idctn
        from scipy.ndimage import map_coordinates

        self.transform, self.back, self.sample = dctn, idctn, map_coordinates
        self.speeds, self.rate = [one.astype(np.float64) for one in speeds], rate
        waves = [2.0 * np.cos(np.pi * np.arange(n) / n) - 2.0 for n in reversed(cells)]
        self.laplace = waves[0][:, None, None] + waves[1][:, None] + waves[2]
        self.laplace[0, 0, 0] = 1.0
        self.places = [np.stack(np.meshgrid(*(np.arange(n) for n in u.shape), indexing="ij")) for u in self.speeds]
        self.flat = cells[2] == 1

    def step(self) -> None:
        fresh = []
        for axis, place in enumerate(self.places):
            if self.flat and axis == 2:
                fresh.append(self.speeds[2])
                continue
            way = np.stack([self._at(axis, other) for other in (2, 1, 0)])
            fresh.append(self.sample(self.speeds[axis], place - self.rate * way, order=1, mode="nearest"))
        self.speeds = fresh
        self._project()

    def _at(self, axis: int, other: int) -> np.ndarray:
        u = self.speeds[other]
        if axis == other:
            return u
        pad = [(0, 0)] * 3
        pad[2 - axis] = (1, 1)
        wide = np.pad(u, pad)
        cut = lambda a, ax, f, t: np.take(a, range(f, a.shape[2 - ax] + t), axis=2 - ax)  # noqa: E731
        near = cut(wide, axis, 0, -1) + cut(wide, axis, 1, 0)
        return 0.25 * (cut(near, other, 0, -1) + cut(near, other, 1, 0))

    def _project(self) -> None:
        for axis, u in enumerate(self.speeds):
            ends: list[Any] = [slice(None)] * 3
            ends[2 - axis] = [0, -1]
            u[tuple(ends)] = 0.0
        divergence = sum(np.diff(u, axis=2 - axis) for axis, u in enumerate(self.speeds))
        p = self.back(self.transform(divergence, type=2) / self.laplace, type=2)
        for axis, u in enumerate(self.speeds):
            inner: list[Any] = [slice(None)] * 3
            inner[2 - axis] = slice(1, -1)
            u[tuple(inner)] -= np.diff(p, axis=2 - axis)


def start(cells: tuple[int, int, int]) -> Speeds:
    """Whirls of several sizes."""
    x, y, z = cells
    rng = np.random.default_rng(0)
    speeds = []
    for axis, shape in enumerate([(z, y, x + 1), (z, y + 1, x), (z + 1, y, x)]):
        k, j, i = np.meshgrid(*(np.arange(n) / max(cells) for n in shape), indexing="ij")
        one = np.zeros(shape)
        for _ in range(6):
            a, b, c = rng.integers(1, 6, 3)
            one += rng.normal() * np.sin(2 * np.pi * (a * i + b * j + c * k) + rng.uniform(0, 6))
        speeds.append(one if z > 1 or axis < 2 else np.zeros(shape))
    return speeds


def ours(cells: tuple[int, int, int], speeds: Speeds, rate: float, device: Device) -> tuple[Any, Callable[[], None]]:
    flow = grid.make(GridParams(cells, 1.0, dt=rate, transport="semi_lagrangian"), device=device)
    grid.set_velocity(flow, *speeds)
    device.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow)).run()
    program = device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    return flow, program.run


def widen_indices() -> None:
    """PhiML 1.16 numbers the entries of a sparse matrix with int32, row times columns + column, which overflows from
    46 341 cells on (256², 64³). Its own function with wider indices; it is called while the matrix is made, which is
    once, and not in the steps that are timed."""
    backend = importlib.import_module("phiml.backend._numpy_backend").NumPyBackend
    narrow = backend.ravel_multi_index

    def wide(self: Any, multi_index: Any, shape: Any, mode: Any = "undefined") -> Any:
        return narrow(self, np.asarray(multi_index).astype(np.int64), shape, mode)

    backend.ravel_multi_index = wide


def phi(cells: tuple[int, int, int]) -> Callable[[], None] | None:
    """PhiFlow's step, if it is there."""
    try:
        from phi import flow as p  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    names = dict(zip("xyz", [n for n in cells if n > 1], strict=False))
    state = [p.StaggeredGrid(p.Noise(), 0, **names, bounds=p.Box(**{k: float(v) for k, v in names.items()}))]

    solve = p.Solve("CG", 1e-4, 0.0, max_iterations=2000, suppress=(p.NotConverged, p.Diverged))

    def step() -> None:
        moved = p.advect.semi_lagrangian(state[0], state[0], 0.3)
        state[0], _ = p.fluid.make_incompressible(moved, (), solve)

    return step


def timed(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, float]]:
    """Median wall and processor time of a step [ms], in turns."""
    wall: dict[str, list[float]] = {name: [] for name in steps}
    own: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            a, b = time.perf_counter(), time.process_time()
            step()
            if turn:
                wall[name].append(1e3 * (time.perf_counter() - a))
                own[name].append(1e3 * (time.process_time() - b))
    return {name: (statistics.median(wall[name]), statistics.median(own[name])) for name in steps}


def table(rows: list[dict[str, Any]]) -> str:
    """Processor time of a step as Markdown."""
    names = ("viscera", "NumPy and SciPy", "PhiFlow")
    lines = ["| cells | " + " | ".join(f"{name}, ms" for name in names) + " |", "| --- | ---: | ---: | ---: |"]
    for cells in SIZES:
        found = {row["solver"]: row["processor_ms"] for row in rows if tuple(row["cells"]) == cells}
        size = f"{cells[0]}{'²' if cells[2] == 1 else '³'}"
        numbers = [f"{found[name]:.3g}" if name in found else "not measured" for name in names]
        lines.append(f"| {size} | {' | '.join(numbers)} |")
    return "\n".join(lines) + "\n"


def write_table(page: Path, rows: list[dict[str, Any]]) -> None:
    """Between the marks in a page."""
    head, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{table(rows)}{END}{rest.partition(END)[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--table", action="store_true", help="only write the table of docs/grid.md from the last run")
    chosen = parser.parse_args()
    if chosen.table:
        write_table(PAGE, json.loads(chosen.out.read_text())["rows"])
        return 0
    device = open_device("cpu", chosen.cores)
    if importlib.util.find_spec("phiml") is not None:
        widen_indices()
    rows, late = [], 0
    for cells in SIZES:
        speeds, rate = start(cells), 0.3
        plain = Plain(cells, speeds, rate)
        plain._project()
        flow, step = ours(cells, plain.speeds, rate, device)
        plain.step()
        step()
        largest = max(np.abs(u).max() for u in plain.speeds)
        apart = max(np.abs(a - b).max() for a, b in zip(grid.velocity(flow), plain.speeds, strict=True)) / largest
        assert apart < ALIKE, f"{cells}: velocities differ by {apart:.2g}"
        steps: dict[str, Callable[[], None]] = {"viscera": step, "NumPy and SciPy": plain.step}
        other = phi(cells)
        if other is not None:
            other()
            steps["PhiFlow"] = other
        found = timed(steps, chosen.rounds)
        faster = found["NumPy and SciPy"][1] / found["viscera"][1]
        late += faster < GOAL
        for name, (wall, own) in found.items():
            rows.append({"cells": cells, "solver": name, "wall_ms": wall, "processor_ms": own, "apart": apart})
            print(f"{cells!s:16} {name:16} {wall:9.3f} ms wall {own:9.3f} ms processor")
        print(f"{cells!s:16} {faster:.1f} times as fast as NumPy and SciPy, by processor time")
    told = {"machine": processor_name(), "cores": chosen.cores, "load": os.getloadavg()[0],
            "when": datetime.now(UTC).isoformat(timespec="seconds"), "rows": rows}  # fmt: skip
    chosen.out.write_text(json.dumps(told, indent=1) + "\n")
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
