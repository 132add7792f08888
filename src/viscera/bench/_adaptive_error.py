"""How right adaptive water is, for what it costs: the surface inside the gaze disc against the regular run's.

A dam stands until its water rests, then its wall is gone (or a wall makes waves), while somebody looks at one of three
places. The surface is the depth of water at points 5 cm apart, each particle being spread over one spacing of the small
ones. Its error is the root mean square difference to the regular run's, over all points that the disc shows and all
frames of the comparison, which ends before runs differ by chance more than by their particles. The cost is how many
pairs of particles a frame of 16 ms sums over, in all of its steps (_pair_counting.py): it is the same on every machine
and beside any other program, which time is not. To splitting and merging belong as many pairs as to steps that take
their time, in the same frames. Times of the processor stand beside it. Every run is made several times from other
places of the particles; `regular` against the mean of the other regular ones is how much of an error is chance.

Beside it uniform runs of fewer and larger particles, each in the longest steps that it can take: where a run that
adapts lies below their curve, it is worth its cost.

    python -m viscera.bench._adaptive_error FOLDER CASE [base particles] [seeds]      a chart and a table
"""

from __future__ import annotations

import csv
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from viscera import water
from viscera.bench._pair_counting import PairCounter
from viscera.device import Device
from viscera.scenarios._adaptive.pools import BASE, PACED, POOLS, WAVE_STROKE, Filled, Pool, fill_pool
from viscera.timing import FRAME
from viscera.water import adaptive

SETTLE, CALM = 1.6, 0.85
"""How long the water comes to rest [s], and what is left of speeds after each frame of it but the last ones."""
LEFT_ALONE = 6
"""Frames before it begins in which speeds are left alone."""


@dataclass(frozen=True)
class Case:
    """What happens in a pool, and who looks where."""

    pool: Pool
    gate: float
    """How far inside the upper end of x a wall stands until the water rests [m]."""
    begin: float
    end: float
    """Of the comparison, from when it begins to move [s]."""
    gazes: tuple[tuple[float, float], ...]
    """0 to 1 from the top left."""


CASES = {
    # Before the dam, at it, and on its water.
    "dambreak": Case(POOLS["dambreak"], 1.0, 0.2, 0.8, ((0.62, 0.62), (0.5, 0.6), (0.35, 0.5))),
    "waves": Case(POOLS["waves"], WAVE_STROKE, 0.5, 2.5, ((0.3, 0.42), (0.5, 0.42), (0.7, 0.42))),
}
ASPECT = 16.0 / 9.0
GRID = 0.05
SHALLOW = 0.01
"""Depth below which there is no surface [m]."""
COARSE = (0.25, 0.35, 0.5, 0.6, 0.7)
"""Particles of the uniform runs, over those of the regular one."""
SEEDS = (101, 102, 103)
"""Of the places where particles begin. What is tuned is tuned with seeds below 100."""
COUNTED = 4
"""Pairs are counted in every such frame."""
JITTER = 0.05
"""How far particles begin from their lattice, over its spacing: another way for each seed."""


@dataclass(frozen=True)
class Point:
    name: str
    particles: float
    pairs: float
    """Of a frame, the adaptive stage included: its cost."""
    ms: float
    """Of a frame likewise; of the processor on one core, of the clock on cuda."""
    error: float
    deviation: float
    """Of the surface inside the disc [m]: mean and standard deviation over seeds and gazes."""


@dataclass(frozen=True, eq=False)
class Run:
    pairs: float
    ms: float
    particles: float
    depth: np.ndarray
    """[m], (frames, points along x, along y)"""


def points(length: float) -> np.ndarray:
    return np.arange(0.5 * GRID, length, GRID)


def run(case: Case, device: Device, base: int, kind: str, seed: int, gaze: tuple[float, float] = (0.5, 0.5)) -> Run:
    """`kind`: regular, large, or a criterion. `base` counts large particles, or half of the regular ones."""
    filled = fill_pool(case.pool, device, "stiff", regular=kind == "regular", base=base)
    fluid, steps = filled.fluid, round(FRAME / filled.dt)
    count, places = water.count(fluid), fluid.position.numpy()
    shift = np.random.default_rng([15, seed]).uniform(-JITTER, JITTER, (count, 3)) * fluid.params.spacing
    places[:count] += shift.astype(np.float32)
    fluid.position.assign(places)
    move = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    change = None
    if kind not in ("regular", "large"):
        fine, criterion = adaptive.make(fluid, PACED), cast(adaptive.Criterion, kind)
        adaptive.look(fine, case.pool.camera, ASPECT, gaze)
        change = device.record(lambda stage: adaptive.step(stage, fine, criterion), work=water.work(fluid))
    clock = time.perf_counter if device.is_cuda else time.process_time
    filled.basin.move_wall(case.gate, 0.0)
    counter, pairs = PairCounter(fluid, filled.basin), list[int]()
    frames = round(SETTLE / FRAME)
    times: list[tuple[float, float]] = []
    depth: list[np.ndarray] = []
    counts: list[int] = []
    for frame in range(frames + round(case.end / FRAME)):
        if frame == frames:
            filled.basin.move_wall(0.0, 0.0)
        if frame >= frames:
            filled.move_wall((frame - frames) * FRAME)
        start = clock()
        move.run(steps)
        device.synchronize()
        between = clock()
        if change is not None and 2 * frame > frames:
            change.run()
            device.synchronize()
        end = clock()
        if frame >= frames:
            times.append((1e3 * (between - start), 1e3 * (end - between)))
            depth.append(depths(filled))
            counts.append(water.count(fluid))
            if (frame - frames) % COUNTED == 0:
                pairs.append(steps * counter.count())
        elif frame < frames - LEFT_ALONE:
            fluid.velocity.assign(CALM * fluid.velocity.numpy())
    moving, changing = (statistics.median(one) for one in zip(*times, strict=True))
    cost = statistics.mean(pairs) * (1.0 + changing / moving)
    return Run(cost, moving + changing, statistics.mean(counts), np.array(depth))


def depths(filled: Filled) -> np.ndarray:
    """Of water at each point [m]; walls mirror what lies before them."""
    found, p = water.particles(filled.fluid), filled.fluid.params
    mass = p.mass * 0.5 ** found["level"] if "level" in found else np.full(len(found["tag"]), p.mass)
    width = (0.01 * BASE / _REFERENCE[0] / p.rest_density) ** (1.0 / 3.0)
    shares = [_spread(points(side), found["position"][:, k], side, width) for k, side in enumerate(filled.pool.box[:2])]
    return (shares[0] * (mass / p.rest_density)) @ shares[1].T


_REFERENCE = [BASE]
"""Base particles of the regular run that all are compared with: its spacing is the width of the comparison."""


def _spread(at: np.ndarray, x: np.ndarray, length: float, width: float) -> np.ndarray:
    """[1/m], (points, particles)"""
    places = (x, -x, 2.0 * length - x)
    share = sum(np.exp(-0.5 * ((at[:, None] - one[None]) / width) ** 2) for one in places)
    return np.asarray(share) / (width * np.sqrt(2.0 * np.pi))


def error_of(case: Case, depth: np.ndarray, reference: np.ndarray, gaze: tuple[float, float]) -> float:
    """[m]"""
    first = round(case.begin / FRAME)
    squares = [(a - b)[shown(case.pool, b, gaze)] ** 2 for a, b in zip(depth[first:], reference[first:], strict=True)]
    return float(np.sqrt(np.concatenate(squares).mean()))


def shown(pool: Pool, depth: np.ndarray, gaze: tuple[float, float]) -> np.ndarray:
    """Points whose surface the disc shows."""
    right, up, ahead = adaptive.axes_of(pool.camera)
    x, y = np.meshgrid(*(points(side) for side in pool.box[:2]), indexing="ij")
    away = np.stack([x, y, depth], axis=-1) - np.asarray(pool.camera.position)
    height = 2.0 * np.tan(np.radians(0.5 * pool.camera.field_of_view)) * (away @ ahead)
    across, down = away @ right / height - ASPECT * (gaze[0] - 0.5), -(away @ up) / height - (gaze[1] - 0.5)
    return (np.hypot(across, down) < adaptive.disc_radius(ASPECT)) & (depth > SHALLOW)


def curve(case: Case, device: Device, base: int = BASE, seeds: Sequence[int] = SEEDS) -> Iterator[Point]:
    _REFERENCE[0] = base
    regular = [run(case, device, base, "regular", seed) for seed in seeds]
    mean = np.mean([one.depth for one in regular], axis=0)
    others = [np.mean([b.depth for b in regular if b is not a], axis=0) if len(seeds) > 1 else mean for a in regular]
    pairs = list(zip(regular, others, strict=True))
    yield point("regular", regular, [error_of(case, a.depth, b, gaze) for a, b in pairs for gaze in case.gazes])
    alike = [(f"uniform {2 * round(share * base)}", round(share * base), "regular") for share in COARSE]
    for name, count, kind in [*alike, ("large only", base, "large")]:
        found = [run(case, device, count, kind, seed) for seed in seeds]
        yield point(name, found, [error_of(case, one.depth, mean, gaze) for one in found for gaze in case.gazes])
    for name in ("gaze", "gaze and surface"):
        runs = [(run(case, device, base, name, seed, gaze), gaze) for seed in seeds for gaze in case.gazes]
        yield point(name, [one for one, _ in runs], [error_of(case, one.depth, mean, gaze) for one, gaze in runs])


def point(name: str, runs: Sequence[Run], errors: Sequence[float]) -> Point:
    pairs, ms, particles = (
        statistics.median(getattr(one, key) for one in runs) for key in ("pairs", "ms", "particles")
    )
    return Point(name, particles, pairs, ms, statistics.mean(errors), statistics.pstdev(errors))


def uniform_error(found: Sequence[Point], pairs: float) -> float:
    """Of a uniform run at this cost [m], between those that were made."""
    uniform = sorted((one.pairs, one.error) for one in found if one.name.startswith("uniform"))
    cost, error = (np.log([pair[k] for pair in uniform]) for k in range(2))
    return float(np.exp(np.interp(np.log(pairs), cost, error)))


def draw(found: Sequence[Point], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(1, 1, 1)
    uniform = sorted((one for one in found if one.name.startswith("uniform")), key=lambda one: one.pairs)
    rows = [(uniform, "uniform, fewer particles", "o-")]
    rows += [([one], one.name, "s") for one in found if one not in uniform]
    for some, label, style in rows:
        axes.errorbar(
            [1e-6 * one.pairs for one in some], [1e3 * one.error for one in some],
            yerr=[1e3 * one.deviation for one in some], fmt=style, capsize=3, label=label,
        )  # fmt: skip
    axes.set(
        xlabel="pairs in a frame of 16 ms [million]", ylabel="error of the surface inside the disc [mm]", xscale="log"
    )
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main(arguments: Sequence[str]) -> None:
    from viscera.device import open_device

    folder, case = Path(arguments[0]), arguments[1]
    folder.mkdir(parents=True, exist_ok=True)
    base, seeds = (int(arguments[k]) if len(arguments) > k else one for k, one in ((2, BASE), (3, len(SEEDS))))
    found: list[Point] = []
    for one in curve(CASES[case], open_device(None, cores=1), base, range(SEEDS[0], SEEDS[0] + seeds)):
        found.append(one)
        error = f"{1e3 * one.error:6.2f} ± {1e3 * one.deviation:.2f} mm"
        cost = f"{1e-6 * one.pairs:8.3f} million pairs {one.ms:8.2f} ms"
        print(f"{one.name:20s} {one.particles:9.0f} {cost} {error}", flush=True)
    for one in found:
        if one.name.startswith("gaze"):
            other = uniform_error(found, one.pairs)
            print(f"{one.name}: {1e3 * one.error:.2f} mm; uniform at its cost {1e3 * other:.2f} mm")
    with (folder / f"error-{case}.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["run", "particles", "pairs per frame", "ms per frame", "error [m]", "deviation [m]"])
        out.writerows([one.name, one.particles, one.pairs, one.ms, one.error, one.deviation] for one in found)
    draw(found, folder / f"error-{case}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
