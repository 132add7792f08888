"""Blood on an organ: it runs down a ball, stops at an incision, clots there, and saline washes it off.

No window. Ends in checks: nothing is lost, the film stays on the surface, most of it is stopped by the incision, clots
while it rests, and is fluid again after rinsing.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from viscera import film, open_device
from viscera.device import Stage
from viscera.geometry import uv_sphere

RADIUS = 0.03
"""[m]"""


def main() -> None:
    device = open_device()
    ball = uv_sphere(RADIUS)
    params = film.FilmParams(clot_rate=3.0, dissolve_rate=20.0)
    blood = film.make(ball, params, capacity=2_000, device=device)
    # Edges along a parallel, 45° below the equator: the rim of a cut that the film cannot cross.
    edges = np.unique(np.sort(ball.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    heights = ball.vertices[edges][:, :, 2]
    level = np.unique(np.round(ball.vertices[:, 2], 9))
    rim = level[np.abs(level + 0.5 * RADIUS).argmin()]
    film.set_edges(blood, edges[np.abs(heights - rim).max(axis=1) < 1e-8], film.BARRIER)

    def frame(stage: Stage) -> None:
        for _ in range(8):
            film.step(stage, blood)

    program = device.record(frame, work=blood.work)
    rng = np.random.default_rng(1)

    def pour(fluid: str, frames: int) -> None:
        for _ in range(frames):
            x, y = rng.normal(0.0, 0.002, (2, 12))
            film.add(blood, np.stack([x, y, np.sqrt(RADIUS**2 - x * x - y * y)], axis=1), fluid)
            program.run()
        program.run(120)
        film.check(blood)
        assert film.waiting(blood) == 0

    pour("blood", 50)
    n = film.count(blood)
    place, clotted = blood.state.position.numpy()[:n], float(blood.state.clot.numpy()[:n].mean())
    stopped = np.abs(place[:, 2] - rim) < 0.004
    print(f"{n} particles, {1e9 * film.volume(blood):.0f} µL; {100 * stopped.mean():.0f} % lie along the incision")
    print(f"clotted: {100 * clotted:.0f} %")
    assert n == 600
    assert round(film.volume(blood) / 1e-15) == 600 * params.little_volume
    assert np.abs(np.linalg.norm(place, axis=1) - RADIUS).max() < 0.02 * RADIUS
    assert place[:, 2].min() > rim - 1e-6
    assert stopped.mean() > 0.4
    assert clotted > 0.5

    film.set(blood, dataclasses.replace(params, clot_rate=0.0))
    pour("saline", 80)
    n = film.count(blood)
    red = blood.state.fluid.numpy()[:n, 0] > 0.5
    left = blood.state.clot.numpy()[:n][red].mean()
    print(f"after rinsing with {n - 600} particles of saline: {100 * left:.0f} % of the blood is clotted")
    assert left < 0.6 * clotted


if __name__ == "__main__":
    main()
