"""A weakly compressible step of viscera beside pySPlisHSPlasH's WCSPH, in one process and in turns.

A block of water of the same particles, the same radius over spacing, Tait's pressure, viscosity, gravity, no walls; it
falls, so only the step is timed. Particles start a little off their lattice, in both at the same places: on it six
neighbours lie exactly at the radius, and rounding would decide who counts them. Both counts are taken, with those at
the block's faces, which have fewer, and must agree.
Their step runs in `runSimulation()`; its time-step callback runs ours, so both see the same load of the machine.

pySPlisHSPlasH is not a dependency of viscera. In an environment of its own:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install pysplishsplash warp-lang numpy
    OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive LD_PRELOAD=libGL.so.1 PYTHONPATH=src \
        /tmp/peers/bin/python benchmarks/peers/splishsplash_water.py

(libGL is Debian's libgl1. Passive waiting keeps their sleeping threads from spinning while ours work.) It prints a
table and writes splishsplash_water.json beside itself (elsewhere with --out).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from viscera.device import available_cores, open_device, processor_name
from viscera.water.params import FluidParams
from viscera.water.sph import step_fluid
from viscera.water.state import make_fluid, particles

SIDES = (27, 46)
"""19 683 and 97 336 particles."""
SPACING = 0.01
"""[m]"""
DT = 2e-4
"""[s]"""
SUPPORT = 2.0
"""Radius over spacing: theirs is fixed at four particle radii."""
GOAL = 5.0
"""How many times less time per step we want to need."""
SHAKEN = 0.02
"""Of a spacing: how far particles start from their lattice at most, along each axis."""
ALIKE = 0.3
"""Largest difference of the mean numbers of neighbours; ours is of a sample, with an error of 0.1."""
WARM_UP = 3
SAMPLE = 4000
"""Particles whose neighbours we count."""


def scene(side: int) -> dict[str, Any]:
    """Their block ends one particle before `end`."""
    end = SPACING * (side + 1) + 0.01 * SPACING
    configuration = {
        "particleRadius": 0.5 * SPACING,
        "numberOfStepsPerRenderUpdate": 1,
        "density0": 1000.0,
        "simulationMethod": 0,
        "gravitation": [0.0, -9.81, 0.0],
        "timeStepSize": DT,
        "cflMethod": 0,
        "stiffness": 1000.0 * 20.0**2 / 7.0,
        "exponent": 7.0,
    }
    return {
        "Configuration": configuration,
        "Materials": [{"id": "Fluid", "viscosityMethod": 1, "viscosity": 0.001, "surfaceTensionMethod": 0}],
        "FluidBlocks": [{
            "id": "Fluid", "denseMode": 0, "start": [0.0, 0.0, 0.0], "end": [end] * 3,
            "translation": [0.0, 0.0, 0.0], "scale": [1.0, 1.0, 1.0], "initialVelocity": [0.0, 0.0, 0.0],
        }],
    }  # fmt: skip


def neighbours(points: np.ndarray) -> float:
    """Mean number of others within the radius, of a sample in the middle and at the rim alike."""
    sample = np.random.default_rng(2).choice(len(points), min(SAMPLE, len(points)), replace=False)
    near = [(((points - p) ** 2).sum(axis=1) < (SUPPORT * SPACING) ** 2).sum() - 1 for p in points[sample]]
    return float(np.mean(near))


def shake(model: Any) -> np.ndarray:
    """Moves their particles off the lattice; returns where they are, in single precision as both keep them."""
    places = np.array([np.asarray(model.getPosition(i)) for i in range(model.numActiveParticles())])
    places += SHAKEN * SPACING * np.random.default_rng(1).uniform(-1.0, 1.0, places.shape)
    places = places.astype(np.float32)
    for i, place in enumerate(places):
        model.setPosition0(i, place)
        model.setPosition(i, place)
    return places.astype(np.float64)


def compare(side: int, repeats: int) -> dict[str, Any]:
    import pysplishsplash as sph  # pyright: ignore[reportMissingImports]

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "scene.json"
    path.write_text(json.dumps(scene(side)))
    base = sph.Exec.SimulatorBase()
    base.init(sceneFile=str(path), useCache=False, useGui=False, initialPause=False, outputDir=folder.name,
              stopAt=DT * (repeats + WARM_UP + 0.5))  # fmt: skip
    base.initSimulation()
    points = shake(sph.Simulation.getCurrent().getFluidModel(0))
    device = open_device("cpu")
    low, high = points.min(axis=0) - 2.0 * SPACING, points.max(axis=0) + 2.0 * SPACING
    low[1] -= 8.0 * SPACING  # it falls
    params = FluidParams(
        spacing=SPACING, lower=tuple(low.tolist()), upper=tuple(high.tolist()), dt=DT, support=SUPPORT,
        kernels="spline", equation="tait", sound_speed=20.0, viscosity=1.0,
    )  # fmt: skip
    fluid = make_fluid(params, points, device)
    program = device.record(lambda stage: step_fluid(stage, fluid), work=100 * fluid.capacity)
    program.run()
    device.synchronize()
    times: dict[str, list[float]] = {"theirs": [], "ours": []}
    last = [0.0]
    seen: dict[str, float] = {}

    def between() -> None:
        now = time.perf_counter()
        if last[0]:
            times["theirs"].append(1e3 * (now - last[0]))
        else:
            model = sph.Simulation.getCurrent().getFluidModel(0)
            seen["particles"] = model.numActiveParticles()
            # All of them: their own sort may have changed the order. It is the step's first search, before they moved.
            near = [sph.Simulation.getCurrent().numberOfNeighbors(0, 0, i) for i in range(len(points))]
            seen["neighbours"] = float(np.mean(near))
        start = time.perf_counter()
        program.run()
        device.synchronize()
        times["ours"].append(1e3 * (time.perf_counter() - start))
        last[0] = time.perf_counter()

    base.setTimeStepCB(between)
    base.runSimulation()
    folder.cleanup()
    fallen = points[:, 1].mean() - particles(fluid)["position"][:, 1].mean()
    steps = len(times["ours"]) + 1
    expected = 0.5 * 9.81 * DT**2 * steps * (steps + 1)
    ours, theirs = (np.array(times[name][WARM_UP:]) for name in ("ours", "theirs"))
    result = {
        "particles": len(points),
        "their_particles": int(seen["particles"]),
        "neighbours": neighbours(points),
        "their_neighbours": seen["neighbours"],
        "fall_error": float(abs(fallen / expected - 1.0)),
        "ours_ms": float(np.median(ours)),
        "theirs_ms": float(np.median(theirs)),
        "ours_least_ms": float(ours.min()),
        "theirs_least_ms": float(theirs.min()),
        "times_faster": float(np.median(theirs) / np.median(ours)),
        "times_faster_least": float(theirs.min() / ours.min()),
        "repeats": len(ours),
    }
    device.close()
    alike = abs(result["neighbours"] - seen["neighbours"]) <= ALIKE
    if len(points) != side**3 or result["their_particles"] != len(points) or not alike or result["fall_error"] > 0.01:
        raise SystemExit(f"the two blocks differ: {result}")
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--side", type=int, help="only this block; prints its result as JSON")
    chosen = parser.parse_args()
    if chosen.side:
        print("RESULT " + json.dumps(compare(chosen.side, chosen.repeats)))
        return 0
    results = []
    for side in SIDES:
        # Their simulator is one per process.
        command = [sys.executable, __file__, "--side", str(side), "--repeats", str(chosen.repeats)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results.append(json.loads(out.split("RESULT ", 1)[1].splitlines()[0]))
    report = {
        "machine": f"{processor_name()}, {available_cores()} cores, {platform.system()} {platform.release()}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "versions": {name: version(name) for name in ("pysplishsplash", "warp-lang", "numpy")},
        "goal_times_faster": GOAL,
        "results": results,
    }
    chosen.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{report['machine']}\n")
    print(
        "| particles | neighbours, ours, theirs | viscera, ms | pySPlisHSPlasH, ms | times faster | least over least |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in results:
        counts = f"{row['neighbours']:.1f}, {row['their_neighbours']:.1f}"
        print(
            f"| {row['particles']} | {counts} | {row['ours_ms']:.1f} | {row['theirs_ms']:.1f} "
            f"| {row['times_faster']:.1f} | {row['times_faster_least']:.1f} |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
