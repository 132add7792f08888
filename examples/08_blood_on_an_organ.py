"""Blood on an organ: it runs down a ball, stops at an incision, clots there, and saline washes it off.

No window. Ends in checks: nothing is lost, the film stays on the surface, most of it is stopped by the incision, clots
while it rests, and is fluid again after rinsing.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from viscera.blood.film.border import check_film, film_count, film_volume, spawn
from viscera.blood.film.film import make_film, set_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.film.surface import make_surface, set_edges
from viscera.blood.film.walk import BARRIER
from viscera.device import Stage, open_device
from viscera.geometry import uv_sphere

RADIUS = 0.03
"""[m]"""


def main() -> None:
    device = open_device()
    ball = uv_sphere(RADIUS)
    surface = make_surface(ball, device)
    # Edges along a parallel, 45° below the equator: the rim of a cut that the film cannot cross.
    edges = np.unique(np.sort(ball.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    heights = ball.vertices[edges][:, :, 2]
    level = np.unique(np.round(ball.vertices[:, 2], 9))
    rim = level[np.abs(level + 0.5 * RADIUS).argmin()]
    set_edges(surface, 0, edges[np.abs(heights - rim).max(axis=1) < 1e-8], int(BARRIER))

    params = FilmParams(clot_rate=3.0, dissolve_rate=20.0)
    film = make_film(surface, params, 2_000, device)

    def frame(stage: Stage) -> None:
        for _ in range(8):
            step_film(stage, film)

    program = device.record(frame, work=film.work)
    rng = np.random.default_rng(1)

    def pour(fluid: str, frames: int) -> None:
        for _ in range(frames):
            x, y = rng.normal(0.0, 0.002, (2, 12))
            spawn(film, np.stack([x, y, np.sqrt(RADIUS**2 - x * x - y * y)], axis=1), fluid)
            program.run()
        for _ in range(120):
            program.run()
        device.synchronize()
        assert check_film(film) == 0

    pour("blood", 50)
    n = film_count(film)
    place, clotted = film.state.position.numpy()[:n], float(film.state.clot.numpy()[:n].mean())
    stopped = np.abs(place[:, 2] - rim) < 0.004
    print(f"{n} particles, {1e9 * film_volume(film):.0f} µL; {100 * stopped.mean():.0f} % lie along the incision")
    print(f"clotted: {100 * clotted:.0f} %")
    assert n == 600
    assert round(film_volume(film) / 1e-15) == 600 * params.little_volume
    assert np.abs(np.linalg.norm(place, axis=1) - RADIUS).max() < 0.02 * RADIUS
    assert place[:, 2].min() > rim - 1e-6
    assert stopped.mean() > 0.4
    assert clotted > 0.5

    set_film(film, dataclasses.replace(params, clot_rate=0.0))
    pour("saline", 80)
    n = film_count(film)
    blood = film.state.fluid.numpy()[:n, 0] > 0.5
    left = film.state.clot.numpy()[:n][blood].mean()
    print(f"after rinsing with {n - 600} particles of saline: {100 * left:.0f} % of the blood is clotted")
    assert left < 0.6 * clotted


if __name__ == "__main__":
    main()
