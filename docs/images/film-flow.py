"""Draws docs/images/film-flow.png: python docs/images/film-flow.py

Four films. Blood that was put onto the top of a ball runs down it, over all edges of its triangles. A thin and a thick
stream meet the same low obstacle: one runs around it, the other over it. Blood and bile that were stirred together
separate. Blood at rest clots (dark) while blood that moves stays fluid. Ends in checks of what it shows.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from viscera.blood.film.border import check_film, film_count, set_sheet_obstacles, spawn
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.params import BLOOD, FilmFluid, FilmParams, Sheet, document_fluid, document_params
from viscera.device import open_device
from viscera.geometry import icosphere

RED, DARK, GREEN, GREY = "#b01020", "#300408", "#5f7d1a", "#d8c8c0"
device = open_device("cpu")
rng = np.random.default_rng(4)


def run(film: Film, steps: int) -> np.ndarray:
    program = device.record(lambda stage: step_film(stage, film), work=film.work)
    for _ in range(steps):
        program.run()
    check_film(film)
    return film.state.position.numpy()[: film_count(film)]


def ball(axes: plt.Axes) -> None:
    """Poured onto the top bit by bit, seen from the side."""
    radius = 0.03
    film = make_film(icosphere(radius, 4), FilmParams(fluids=(BLOOD,)), 3_000, device)
    for _ in range(40):
        angle, out = rng.uniform(0, 2 * np.pi, 30), np.sqrt(rng.random(30)) * 0.004
        x, y = out * np.cos(angle), out * np.sin(angle)
        spawn(film, np.stack([x, y, np.sqrt(radius**2 - x * x - y * y)], axis=1))
        run(film, 25)
    found = run(film, 250)
    axes.add_patch(plt.Circle((0, 0), radius, color=GREY))
    seen = found[found[:, 1] < 0]
    axes.scatter(seen[:, 0], seen[:, 2], s=5, c=RED, alpha=0.8, linewidths=0)
    axes.set_xlim(-0.036, 0.036)
    axes.set_ylim(-0.036, 0.036)
    axes.set_title("down a ball")
    assert np.abs(np.linalg.norm(found, axis=1) - radius).max() < 0.01 * radius
    assert found[:, 2].min() < -0.9 * radius


def obstacle(axes: plt.Axes) -> None:
    crossed = []
    for shift, count in ((0.0, 40), (24.0, 700)):
        params = document_params(one_sided=False, gravity=(0.0, -20.0, 0.0))
        film = make_film(Sheet(24, 48), params, count, device)
        hill = np.hypot(*np.meshgrid(np.arange(24) + 0.5 - 12, np.arange(48) + 0.5 - 22)) < 4
        set_sheet_obstacles(film, np.where(hill, 0.6, 0.0))
        x, y = 12 + rng.uniform(-4.0, 4.0, count), 28 + rng.random(count) * 16
        if count < 100:
            # Drops too far apart to touch.
            x, y = 8 + 2.7 * (np.arange(count) % 4), 28 + 1.6 * (np.arange(count) // 4)
        spawn(film, np.stack([x, y], axis=1))
        over, found = 0, run(film, 1)
        for _ in range(30):
            found = run(film, 10)
            over += int((np.hypot(found[:, 0] - 12, found[:, 1] - 22) < 3).sum())
        crossed.append(over / count)
        axes.add_patch(plt.Circle((12 + shift, 22), 4, color=GREY))
        axes.scatter(found[:, 0] + shift, found[:, 1], s=4, c=RED, linewidths=0)
    axes.set_xlim(0, 48)
    axes.set_ylim(0, 46)
    axes.set_title("around, or over")
    assert crossed[1] > 3 * crossed[0]


def two_fluids(axes: plt.Axes) -> None:
    bile = FilmFluid("bile", 1010.0, 4.0, 120.0, 480.0, viscosity=10.0, traction=5.0, phase=1.0)
    params = document_params(fluids=(document_fluid(), bile), one_sided=False, gravity=(0.0, 0.0, 0.0))
    film = make_film(Sheet(24, 24, wrap=True), params, 2_200, device)
    spawn(film, rng.random((2_200, 2)) * 24, np.eye(4)[rng.integers(0, 2, 2_200)])
    found = run(film, 400)
    kind = film.state.fluid.numpy()[:, 0] > 0.5
    axes.scatter(found[:, 0], found[:, 1], s=7, c=np.where(kind, RED, GREEN), linewidths=0)
    axes.set_title("blood and bile")
    near = np.linalg.norm(found[:, None] - found[None], axis=2) < 1.0
    np.fill_diagonal(near, False)
    assert (near & (kind[:, None] == kind[None])).sum() > 0.8 * near.sum()


def clot(axes: plt.Axes) -> None:
    blood = dataclasses.replace(document_fluid(), clots=True)
    params = document_params(
        fluids=(blood,), one_sided=False, gravity=(0.0, -20.0, 0.0), clot_rate=1.5, clot_speed=0.3, clot_hold=1000.0
    )
    film = make_film(Sheet(24, 48), params, 1_000, device)
    ledge = np.zeros((48, 24))
    ledge[30:32, 2:11] = np.inf
    set_sheet_obstacles(film, ledge)
    for _ in range(25):
        spawn(film, np.stack([rng.uniform(4, 9, 10), rng.uniform(33, 35, 10)], axis=1))
        spawn(film, np.stack([rng.uniform(15, 19, 10), rng.uniform(43, 45, 10)], axis=1))
        run(film, 30)
    found = run(film, 1)
    clotted = film.state.clot.numpy()[: len(found)]
    axes.imshow(np.isinf(ledge), origin="lower", extent=(0, 24, 0, 48), cmap="Greys", vmax=3)
    axes.scatter(
        found[:, 0],
        found[:, 1],
        s=6,
        c=clotted,
        cmap=matplotlib.colors.LinearSegmentedColormap.from_list("clot", [RED, DARK]),
        vmin=0,
        vmax=1,
        linewidths=0,
    )
    axes.set_xlim(0, 24)
    axes.set_ylim(14, 48)
    axes.set_title("clots where it rests")
    resting = (found[:, 0] < 11) & (found[:, 1] > 31.5)
    assert clotted[resting].mean() > 3 * clotted[found[:, 0] > 13].mean()


figure, axes = plt.subplots(1, 4, figsize=(13, 3.6))
for draw, ax in zip((ball, obstacle, two_fluids, clot), axes, strict=True):
    draw(ax)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
figure.tight_layout()
figure.savefig(Path(__file__).with_suffix(".png"), dpi=100)
