"""Adaptive water: what a step costs, stage by stage, per scenario and criterion, beside Elmasdotter's Tables 5.1–5.5.

Four fluids and seven seeded gazes run side by side, step by step in turn: what disturbs the machine disturbs all.
`regular` is 20 000 small particles of one size in the solver's usual loops. The three stages are hers: density and
pressure (with the sort); forces, integration and collision; splitting and merging, which here does not come in every
step and is spread over them. Times are those that a fifth of the steps stay below, `ratio` is the total over regular's,
`document_ratio` hers (totals of her tables), `share` the adaptive stage's part of the step. `gaze` is the mean of the
participants, ± their deviation.

    viscera bench adaptive                       rows
    python -m viscera.bench.adaptive FOLDER [frames] [base particles] [document or stiff]
                                                 her figures too: particles and frames/s over time, PNG and CSV, and the
                                                 stages of all scenarios beside hers in stages.csv
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import warp as wp

from viscera import water
from viscera.bench import _adaptive_colon
from viscera.bench.registry import Row, benchmark, timed
from viscera.device import Device, Program
from viscera.gaze import ScanPath
from viscera.scenarios._adaptive.pools import BASE, CRITERIA, POOLS, Filled, Pool, Stiffness, fill_pool
from viscera.timing import FRAME
from viscera.water import adaptive
from viscera.water.sph import find_density, find_forces, find_pressure, move, sort, step_work

NAME = "adaptive"
ASPECT = 16.0 / 9.0
PARTICIPANTS = 7
EVERY = {"gaze": 4, "surface": 12, "gaze and surface": 12}
"""Steps of the document's fluid (10 ms) per adaptive stage. She has one per step."""
EVERY_FRAMES = {"gaze": 1, "surface": 2, "gaze and surface": 2}
"""Frames of the stiff fluid per adaptive stage."""
QUIET = 0.2
"""Share of the steps below the time that is given: on a machine with other programs the median is theirs too."""
LARGE = 1_000_000
"""Base particles on a large GPU."""

DOCUMENT = {
    "dambreak": {"regular": (10.42, 13.43, 0.0), "surface": (7.263, 9.499, 8.219), "gaze": (4.398, 5.544, 4.265)},
    "dambreak-obstacles": {
        "regular": (9.970, 13.63, 0.0), "surface": (6.616, 9.109, 7.844), "gaze": (4.289, 5.713, 4.472),
    },
    "large-box": {"regular": (10.02, 13.31, 0.0), "surface": (6.714, 9.206, 8.341), "gaze": (4.748, 6.060, 4.500)},
    "small-box": {"regular": (11.63, 15.27, 0.0), "surface": (6.372, 8.761, 7.541), "gaze": (7.136, 9.792, 6.525)},
    "waves": {"regular": (9.815, 12.75, 0.0), "surface": (6.991, 9.260, 8.261), "gaze": (4.838, 6.199, 4.694)},
}  # fmt: skip
"""Tables 5.1–5.5 [ms]: density and pressure; acceleration, integration and collision; adaptiveness."""


@dataclass(eq=False)
class Side:
    """One fluid of a comparison, with its own gaze."""

    criterion: str
    filled: Filled
    programs: tuple[Program, ...]
    every: int
    fine: adaptive.Adaptive | None = None
    path: ScanPath | None = None
    times: list[list[float]] = field(default_factory=lambda: [[], [], []])
    """Of each stage [ms]."""
    counts: list[int] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    """Of each frame [ms]."""

    @property
    def stages(self) -> tuple[float, float, float]:
        """What a fifth of the steps stay below, the adaptive stage per step [ms]."""
        first, second, third = (float(np.quantile(one, QUIET)) if one else 0.0 for one in self.times)
        return first, second, third / self.every


def make_side(
    pool: Pool, criterion: str, device: Device, stiffness: Stiffness, *, base: int = BASE, seed: int = 0
) -> Side:
    filled = fill_pool(pool, device, stiffness, regular=criterion == "regular", base=base)
    fluid, work = filled.fluid, step_work(filled.fluid)

    def densities(stage: Any) -> None:
        for boundary in fluid.boundaries:
            boundary.before_step(stage, fluid)
        sort(stage, fluid)
        find_density(stage, fluid)
        find_pressure(stage, fluid)

    def motions(stage: Any) -> None:
        find_forces(stage, fluid)
        move(stage, fluid)
        for boundary in fluid.boundaries:
            boundary.contact(stage, fluid)

    programs = [device.record(densities, work=work), device.record(motions, work=work)]
    if criterion == "regular":
        return Side(criterion, filled, tuple(programs), 1)
    fine = adaptive.make(fluid, CRITERIA)
    chosen = cast(adaptive.Criterion, criterion)
    programs.append(device.record(lambda stage: adaptive.step(stage, fine, chosen), work=work))
    every = EVERY[criterion] if stiffness == "document" else EVERY_FRAMES[criterion] * round(FRAME / filled.dt)
    path = ScanPath(seed, ASPECT, lambda rng: on_the_water(filled, rng))
    return Side(criterion, filled, tuple(programs), every, fine, path)


def on_the_water(filled: Filled, rng: np.random.Generator) -> tuple[float, float]:
    """Where a particle is seen, any of them: participants were to look at the water."""
    count = int(filled.fluid.count.numpy()[0])
    place = filled.fluid.position.numpy()[int(rng.integers(count))].astype(float)
    right, up, ahead = adaptive.axes_of(filled.pool.camera)
    away = place - np.asarray(filled.pool.camera.position)
    height = 2.0 * np.tan(np.radians(0.5 * filled.pool.camera.field_of_view)) * float(away @ ahead)
    return float(0.5 + away @ right / (height * ASPECT)), float(0.5 - away @ up / height)


def step_side(side: Side, number: int) -> None:
    """One step, its stages timed."""
    now, device = number * side.filled.dt, side.filled.fluid.device
    side.filled.move_wall(now)
    adapts = side.fine is not None and number % side.every == 0
    if adapts and side.path is not None and side.fine is not None:
        seen = side.path.sample(now)
        adaptive.look(side.fine, side.filled.pool.camera, ASPECT, (seen.x, seen.y))
    wp.synchronize_device(device.warp)
    spent = 0.0
    for stage, program in enumerate(side.programs[: 3 if adapts else 2]):
        start = time.perf_counter()
        program.run()
        wp.synchronize_device(device.warp)
        took = 1e3 * (time.perf_counter() - start)
        side.times[stage].append(took)
        spent += took
    side.totals.append(spent)


def run_pool(
    pool: Pool, device: Device, stiffness: Stiffness, steps: int, *, base: int = BASE, participants: int = PARTICIPANTS
) -> list[Side]:
    """All sides, in turn, step by step."""
    sides = [make_side(pool, name, device, stiffness, base=base) for name in ("regular", "surface", "gaze and surface")]
    sides += [make_side(pool, "gaze", device, stiffness, base=base, seed=seed) for seed in range(participants)]
    for number in range(steps):
        for side in sides:
            step_side(side, number)
            side.counts.append(int(side.filled.fluid.count.numpy()[0]))
    for side in sides:
        water.check(side.filled.fluid)
    return sides


def rows_of(pool: Pool, sides: Sequence[Side], stiffness: Stiffness, base: int) -> Iterator[Row]:
    device = sides[0].filled.fluid.device
    regular = sum(sides[0].stages)
    for criterion in ("regular", "surface", "gaze", "gaze and surface"):
        mine = [side for side in sides if side.criterion == criterion]
        stages = np.array([side.stages for side in mine])
        total = stages.sum(axis=1)
        hers = DOCUMENT[pool.name].get(criterion)
        extra: dict[str, Any] = {
            "density_ms": float(stages[:, 0].mean()),
            "motion_ms": float(stages[:, 1].mean()),
            "adaptive_ms": float(stages[:, 2].mean()),
            "ratio": float(total.mean() / regular),
            "ratio_deviation": float(total.std() / regular),
            "document_ratio": None if hers is None else sum(hers) / sum(DOCUMENT[pool.name]["regular"]),
            "share": float((stages[:, 2] / total).mean()),
            "particles": float(np.mean([np.mean(side.counts) for side in mine])),
            "participants": len(mine) if criterion == "gaze" else 0,
        }
        document = None if hers is None else 1e3 / sum(hers)
        case = f"{pool.name}, {stiffness}, {criterion}"
        yield timed(NAME, case, 2 * base, device, float(total.mean()), document=document, extra=extra)


def headline(device: Device) -> Row:
    sides = run_pool(POOLS["dambreak"], device, "document", 40, participants=1)
    return next(row for row in rows_of(POOLS["dambreak"], sides, "document", BASE) if row.case.endswith(" gaze"))


@benchmark(NAME, title="Adaptive water: gaze, surface and regular", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _adaptive_colon.rows(device)
    for pool in list(POOLS.values())[: 1 if quick else None]:
        sides = run_pool(
            pool, device, "document", 60 if quick else pool.frames, participants=2 if quick else PARTICIPANTS
        )
        yield from rows_of(pool, sides, "document", BASE)
        steps = 40 if quick else 400
        sides = run_pool(pool, device, "stiff", steps, participants=1 if quick else 3)
        yield from rows_of(pool, sides, "stiff", BASE)
        if device.is_cuda and not quick:
            sides = run_pool(pool, device, "document", 240, base=LARGE, participants=2)
            yield from rows_of(pool, sides, "document", LARGE)


# --- her figures --------------------------------------------------------------------------------------------------


def write_series(folder: Path, pool: Pool, sides: Sequence[Side]) -> None:
    """Particles and frames per second over time, one column per side."""
    names = [f"{side.criterion} {k}" if side.criterion == "gaze" else side.criterion for k, side in enumerate(sides)]
    for kind, values in (
        ("particles", [side.counts for side in sides]),
        ("frames_per_s", [[1e3 / one for one in side.totals] for side in sides]),
    ):
        with (folder / f"{pool.name}-{kind}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["step", *names])
            out.writerows([k, *row] for k, row in enumerate(zip(*values, strict=True)))


def draw_series(folder: Path, pool: Pool, sides: Sequence[Side]) -> None:
    """As Figures 5.1–5.11: participants dotted, their mean black."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4))
    FigureCanvasAgg(figure)
    series = {
        "particles": [np.asarray(side.counts, dtype=float) for side in sides],
        "frames/s": [_smooth(1e3 / np.asarray(side.totals)) for side in sides],
    }
    for place, (label, values) in enumerate(series.items()):
        axes = figure.add_subplot(1, 2, place + 1)
        for side, curve in zip(sides, values, strict=True):
            if side.criterion == "gaze":
                axes.plot(curve, "k:", linewidth=0.6)
            else:
                axes.plot(curve, label=side.criterion)
        gazes = [curve for side, curve in zip(sides, values, strict=True) if side.criterion == "gaze"]
        axes.plot(np.mean(gazes, axis=0), "k", label="gaze, mean")
        axes.set(xlabel="frame", ylabel=label, title=pool.name)
        axes.set_ylim(bottom=0.0)
        axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(folder / f"{pool.name}.png", dpi=110)


def _smooth(curve: np.ndarray, width: int = 25) -> np.ndarray:
    padded = np.pad(curve, width // 2, mode="edge")
    return np.array([np.median(padded[k : k + width]) for k in range(len(curve))])


def write_stages(path: Path, rows: Sequence[Row]) -> None:
    """Tables 5.1–5.5: ours [ms per step], and hers."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["case", "regular particles", *rows[0].extra, *(f"hers_{k}_ms" for k in range(1, 4))])
        for row in rows:
            scenario, _, criterion = row.case.split(", ")
            hers = DOCUMENT[scenario].get(criterion, ("", "", ""))
            out.writerow([row.case, row.size, *row.extra.values(), *hers])


def main(arguments: Sequence[str]) -> None:
    from viscera.device import open_device

    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    frames, base = (int(arguments[k]) if len(arguments) > k else 0 for k in (1, 2))
    stiffness = cast(Stiffness, arguments[3]) if len(arguments) > 3 else "document"
    device = open_device(None)
    rows: list[Row] = []
    for pool in POOLS.values():
        sides = run_pool(pool, device, stiffness, frames or pool.frames, base=base or BASE)
        write_series(folder, pool, sides)
        draw_series(folder, pool, sides)
        for row in rows_of(pool, sides, stiffness, base or BASE):
            print(row.case, round(row.ms, 3), row.extra, flush=True)
            rows.append(row)
    write_stages(folder / "stages.csv", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
