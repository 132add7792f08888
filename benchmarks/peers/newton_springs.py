"""Springs in Newton and in viscera: the same masses, springs and step, on cpu, in one run.

Newton (https://github.com/newton-physics/newton, PyPI `newton`) integrates the springs semi-implicitly, one kernel over
springs with atomic adds and one over particles; viscera gathers them per mass (src/viscera/tissue/kernels.py). Both get
a box of 22 × 22 × 22 masses with the same springs, stiffness, mass, step and start; the script first checks that both
move alike, then times them alternately, so that whatever else the machine does falls on both. A spring counts once,
however often it is computed. Two sets of springs: all of the lattice, and those without the body diagonals, where our
kernel computes the missing third all the same.

Newton is no dependency of viscera. In an environment of its own:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install newton numpy
    PYTHONPATH=src /tmp/peers/bin/python benchmarks/peers/newton_springs.py

It prints a table and writes newton_springs.json beside itself (elsewhere with --out).
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import newton  # pyright: ignore[reportMissingImports]
import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage, available_cores, open_device, processor_name
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import DIRECTIONS, NodeIndex, axis_stiffness
from viscera.tissue.stepping import record_step
from viscera.tissue.tissue import Tissue

SIDE = 22
SPACING = 0.004
"""[m]"""
MATERIAL = Material("test", 3_000.0, 1_060.0)
STEPS = 20
"""Per timed run of either; even, so that both end in the buffer they began with."""
GOAL = 4.0
"""How many times less time per spring we want to need."""
AGREE = 1e-3
"""Largest difference after 20 steps, relative to the largest displacement. Newton keeps positions, viscera
displacements: in float32 a position of 8 cm has 7 nm, and displacements here are some 10 µm."""


SETS = {"all springs": 3, "no body diagonals": 2}
"""How many axes a spring may run along at most."""


def make_ours(device: Device, nodes: NDArray[np.int32], start: NDArray[np.float64], axes: int) -> Tissue:
    params = LatticeParams(
        nodes=nodes,
        spacing=SPACING,
        origin=(0.0, 0.0, 0.0),
        anchored=np.zeros(len(nodes), dtype=bool),
        material=MATERIAL,
        stiffest=MATERIAL.young,
        poisson=0.25,
        viscous_time=0.0,
    )
    tissue = make_lattice(device, params)
    table = tissue.constants.stiffness.numpy().reshape(len(DIRECTIONS), -1).copy()
    table[[sum(map(abs, direction)) > axes for direction in DIRECTIONS]] = 0.0
    tissue.constants.stiffness.assign(table.ravel())
    tissue.set_motion(start, np.zeros_like(start))
    return tissue


def springs_of(tissue: Tissue) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every spring once: its two masses, shape (springs, 2), and stiffness [N/m], as our kernel has them."""
    nodes = tissue.params.nodes
    index = NodeIndex(nodes)
    table = tissue.constants.stiffness.numpy().astype(np.float64).reshape(len(DIRECTIONS), -1)
    pairs, stiffness = [], []
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(nodes + np.array(direction, dtype=np.int32))
        here = np.nonzero((other >= 0) & (table[row, tissue.layout.slot_of_node] > 0.0))[0]
        pairs.append(np.stack([here, other[here]], axis=1))
        stiffness.append(table[row, tissue.layout.slot_of_node[here]])
    scale = float(axis_stiffness(tissue.young, SPACING))
    return np.concatenate(pairs), np.concatenate(stiffness) * scale


def make_theirs(tissue: Tissue, start: NDArray[np.float64]) -> tuple[Any, Any, list[Any]]:
    """The same lattice as a Newton model on cpu. Rest lengths are taken at rest, before the start is put in."""
    rest = tissue.rest_positions()
    pairs, stiffness = springs_of(tissue)
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_particles(
        pos=[wp.vec3(*p) for p in rest.tolist()],
        vel=[wp.vec3(0.0, 0.0, 0.0)] * len(rest),
        mass=tissue.mass.tolist(),
    )
    for (i, j), k in zip(pairs.tolist(), stiffness.tolist(), strict=True):
        builder.add_spring(i, j, k, 0.0, 0.0)
    model = builder.finalize(device="cpu")
    # Contact between particles is not part of the comparison.
    model.particle_grid = None
    model.particle_max_velocity = 1e6
    states = [model.state(), model.state()]
    states[0].particle_q.assign((rest + start).astype(np.float32))
    return model, newton.solvers.SolverSemiImplicit(model), states


def record_ours(device: Device, tissue: Tissue) -> Callable[[], None]:
    def build(stage: Stage) -> None:
        stage.upload(tissue.state.live)
        here, there = tissue.state.position
        for _ in range(STEPS):
            record_step(stage, tissue, 0, here, there)
            here, there = there, here

    return device.record(build, work=STEPS * len(tissue.params.nodes)).run


def record_theirs(model: Any, solver: Any, states: list[Any], dt: float) -> Callable[[], None]:
    """As one captured graph, like ours: launching each kernel from Python would cost Newton more."""
    control = model.control()

    def steps() -> None:
        for step in range(STEPS):
            here, there = states[step % 2], states[1 - step % 2]
            here.clear_forces()
            solver.step(here, there, control, None, dt)

    steps()  # compiles
    with wp.ScopedCapture(device="cpu") as capture:
        steps()
    graph: Any = capture.graph
    return lambda: wp.capture_launch(graph)


def check(device: Device, nodes: NDArray[np.int32], start: NDArray[np.float64], axes: int) -> float:
    """Largest difference between the two after STEPS steps, relative to the largest displacement."""
    tissue = make_ours(device, nodes, start, axes)
    model, solver, states = make_theirs(tissue, start)
    record_ours(device, tissue)()
    control = model.control()
    for step in range(STEPS):
        here, there = states[step % 2], states[1 - step % 2]
        here.clear_forces()
        solver.step(here, there, control, None, float(tissue.constants.dt))
    ours = tissue.displacement()
    theirs = states[0].particle_q.numpy() - tissue.rest_positions()
    return float(np.abs(ours - theirs).max() / np.abs(ours).max())


def measure(runs: dict[str, Callable[[], None]], repeats: int) -> dict[str, NDArray[np.float64]]:
    """Times of one step [ms], by the wall clock and by this thread's own, the contestants taking turns."""
    times = {name: np.empty((repeats, 2)) for name in runs}
    for repeat in range(repeats):
        for name, run in runs.items():
            start, own = time.perf_counter(), time.thread_time()
            run()
            taken = time.perf_counter() - start, time.thread_time() - own
            times[name][repeat] = 1e3 * np.array(taken) / STEPS
    return times


def compare(name: str, axes: int, repeats: int) -> dict[str, Any]:
    """One set of springs: checked, then timed."""
    one, many = open_device("cpu", cores=1), open_device("cpu")
    axis = np.arange(SIDE, dtype=np.int32)
    nodes = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    start = np.random.default_rng(0).normal(0.0, 2e-5, nodes.shape)
    error = check(one, nodes, start, axes)
    if not error < AGREE:
        raise SystemExit(f"{name}: the two do not compute the same, positions differ by {error:.1e}")
    bodies = {device.cores: (device, make_ours(device, nodes, start, axes)) for device in (one, many)}
    reference = bodies[1][1]
    springs = len(springs_of(reference)[0])
    runs = {"newton, 1 core": record_theirs(*make_theirs(reference, start), float(reference.constants.dt))}
    runs |= {f"viscera, {n} core{'s' * (n > 1)}": record_ours(*body) for n, body in bodies.items()}
    times = measure(runs, repeats)
    many.close()
    wall, own = (float(value) for value in np.median(times["newton, 1 core"], axis=0))
    rows = []
    for case, both in times.items():
        ms, own_ms = (float(value) for value in np.median(both, axis=0))
        row = {"case": case, "ms": ms, "least_ms": float(both[:, 0].min()), "ns_per_spring": 1e6 * ms / springs,
               "times_faster": wall / ms}  # fmt: skip
        # With several cores the other threads' time is not in it.
        row |= {"processor_ms": own_ms, "times_less_processor_time": own / own_ms} if "1 core" in case else {}
        rows.append(row)
    return {"set": name, "masses": len(nodes), "undirected_springs": springs, "largest_difference": error, "rows": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    chosen = parser.parse_args()
    results = [compare(name, axes, chosen.repeats) for name, axes in SETS.items()]
    report = {
        "machine": f"{processor_name()}, {available_cores()} cores, {platform.system()} {platform.release()}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in ("newton", "warp-lang", "numpy")},
        "goal_times_faster": GOAL,
        "results": results,
    }
    chosen.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{report['machine']}\n")
    print("| springs | | ms per step | ns per spring | times faster | by processor time |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for result in results:
        for row in result["rows"]:
            figures = f"{row['ms']:.3f} | {row['ns_per_spring']:.2f} | {row['times_faster']:.1f}"
            figures += f" | {row['times_less_processor_time']:.1f}" if "processor_ms" in row else " | "
            print(f"| {result['undirected_springs']}, {result['set']} | {row['case']} | {figures} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
