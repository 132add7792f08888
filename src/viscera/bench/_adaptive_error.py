"""How right adaptive water is, for what it costs: the depth of water inside the gaze disc against a regular run's.

A dam breaks while somebody looks where its front will be. Up to `SECONDS` the mean depth of water is taken in columns,
those that the disc shows: the volume of the particles in each over its area. The error is its root mean square
difference to the regular run's, the cost the median time of a step. Beside it uniform runs of fewer and larger
particles: where a run that adapts lies below their curve, it is worth its cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from viscera import water
from viscera.device import Device
from viscera.scenarios._adaptive.pools import CRITERIA, POOLS, Filled, fill_pool
from viscera.timing import FRAME
from viscera.water import adaptive

SECONDS = 0.5
COLUMN = 0.1
"""[m] Each holds a hundred particles and more; in narrower ones their number trembles by a fifth."""
FRAMES = 10
"""Over which the depth is averaged, the last of the run."""
GAZE = (0.62, 0.62)
"""Where the front comes to, 0 to 1 from the top left."""
ASPECT = 16.0 / 9.0
COARSE = (2_500, 3_500, 5_000, 7_000)
"""Half the particles of the uniform runs."""


@dataclass(frozen=True)
class Point:
    name: str
    particles: int
    ms: float
    """Of a step, the adaptive stage included."""
    error: float
    """Of the depth inside the disc [m]."""


def curve(device: Device, seconds: float = SECONDS) -> Iterator[Point]:
    pool = POOLS["dambreak"]
    runs = {"regular": fill_pool(pool, device, "stiff", regular=True)}
    runs |= {f"uniform {2 * n}": fill_pool(pool, device, "stiff", regular=True, base=n) for n in COARSE}
    runs |= {name: fill_pool(pool, device, "stiff") for name in ("gaze", "gaze and surface", "large only")}
    found = {name: _run(filled, name, seconds) for name, filled in runs.items()}
    reference = found["regular"][1]
    inside = in_disc(reference)
    for name, (ms, depth) in found.items():
        error = float(np.sqrt(np.mean((depth - reference)[inside] ** 2)))
        yield Point(name, water.count(runs[name].fluid), ms, error)


def _run(filled: Filled, name: str, seconds: float) -> tuple[float, np.ndarray]:
    """Median time of a step [ms], and the mean depth of the last frames [m]."""
    fluid, device = filled.fluid, filled.fluid.device
    times: list[float] = []
    last: list[np.ndarray] = []
    move = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    change, fine = None, None
    if name in ("gaze", "gaze and surface"):
        fine = adaptive.make(fluid, CRITERIA)
        adaptive.look(fine, filled.pool.camera, ASPECT, GAZE)
        change = device.record(lambda stage: adaptive.step(stage, fine, name), work=water.work(fluid))
    steps = round(FRAME / filled.dt)
    for _ in range(round(seconds / FRAME)):
        start = time.perf_counter()
        move.run(steps)
        if change is not None:
            change.run()
        device.synchronize()
        times.append(1e3 * (time.perf_counter() - start) / steps)
        last = [*last[-FRAMES + 1 :], depths(filled)]
    return statistics.median(times), np.mean(last, axis=0)


def depths(filled: Filled) -> np.ndarray:
    """Of water in each column [m], (columns along x, along y)."""
    found, p = water.particles(filled.fluid), filled.fluid.params
    mass = p.mass * 0.5 ** found["level"] if "level" in found else np.full(len(found["tag"]), p.mass)
    x, y = filled.pool.box[0], filled.pool.box[1]
    edges = [np.arange(0.0, side + 0.5 * COLUMN, COLUMN) for side in (x, y)]
    sums, _, _ = np.histogram2d(found["position"][:, 0], found["position"][:, 1], bins=edges, weights=mass)
    return sums / (p.rest_density * COLUMN**2)


def in_disc(depth: np.ndarray) -> np.ndarray:
    """Columns whose surface the disc shows."""
    camera = POOLS["dambreak"].camera
    right, up, ahead = adaptive.axes_of(camera)
    i, j = np.meshgrid(*(np.arange(n) for n in depth.shape), indexing="ij")
    top = np.stack([(i + 0.5) * COLUMN, (j + 0.5) * COLUMN, depth], axis=-1) - np.asarray(camera.position)
    height = 2.0 * np.tan(np.radians(0.5 * camera.field_of_view)) * (top @ ahead)
    across, down = top @ right / height - ASPECT * (GAZE[0] - 0.5), -(top @ up) / height - (GAZE[1] - 0.5)
    return (np.hypot(across, down) < adaptive.disc_radius(ASPECT)) & (depth > 0.0)
