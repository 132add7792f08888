"""The blood film at full size: conservation, neighbour searches, and where it runs on surfaces. See docs/film.md."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np

from verify.framework import Measured, figure
from viscera.bench.film import mean_neighbours, organ_film, sheet_film
from viscera.blood.film.border import check_film, film_count, film_volume, spawn
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.params import BLOOD, FilmParams, Sheet, document_params
from viscera.device import Device, open_device
from viscera.geometry import TriangleMesh, icosphere

AREA = "film"
QUIET = document_params(one_sided=False, gravity=(0.0, 0.0, 0.0))
FREE = dataclasses.replace(QUIET.fluids[0], traction=0.0)
"""Without traction, which takes momentum as a surface does."""


@cache
def _device() -> Device:
    return open_device()


def _run(film: Film, steps: int) -> None:
    program = film.device.record(lambda stage: step_film(stage, film), work=film.work)
    for _ in range(steps):
        program.run()
    film.device.synchronize()
    check_film(film)


@figure(
    area=AREA, claim="symmetric pair forces keep total momentum, 65 536 particles, 300 steps", bound="≤ 1e-6 of Σ|v|"
)
def momentum() -> Measured:
    film = sheet_film(65_536, 256, _device(), dataclasses.replace(QUIET, fluids=(FREE,), max_speed=40.0))
    _run(film, 1)
    v = film.state.velocity.numpy()
    v[:, :2] += np.random.default_rng(1).normal(0.0, 1.0, (len(v), 2))
    film.state.velocity.assign(v)
    before, size = v.sum(axis=0, dtype=float), np.abs(v).sum(dtype=float)
    _run(film, 300)
    off = float(np.abs(film.state.velocity.numpy().sum(axis=0, dtype=float) - before).max() / size)
    return Measured(off, "", off <= 1e-6, f"{mean_neighbours(film):.1f} neighbours")


@figure(area=AREA, claim="the document's one-sided variant loses momentum", bound="> 1e-4 of Σ|v|")
def one_sided() -> Measured:
    params = dataclasses.replace(QUIET, fluids=(FREE,), max_speed=40.0, one_sided=True)
    film = sheet_film(10_000, 128, _device(), params)
    _run(film, 1)
    before = film.state.velocity.numpy().sum(axis=0, dtype=float)
    _run(film, 300)
    v = film.state.velocity.numpy()
    off = float(np.abs(v.sum(axis=0, dtype=float) - before).max() / np.abs(v).sum(dtype=float))
    return Measured(off, "", off > 1e-4)


@figure(area=AREA, claim="number and volume stay over 10 000 steps on an organ", bound="exact")
def number_and_volume() -> Measured:
    film = organ_film(2_500, _device())
    _run(film, 1)
    volume = film_volume(film)
    _run(film, 10_000)
    same = film_count(film) == 2_500 and film_volume(film) == volume
    return Measured(abs(film_volume(film) - volume), "m³", same, f"{film_count(film)} particles of 2 500")


@figure(area=AREA, claim="sorted grid, linked lists and bins give the same densities, 65 536 particles", bound="≤ 1e-6")
def searches() -> Measured:
    densities = []
    for search in ("grid", "linked", "binned"):
        film = sheet_film(65_536, 256, _device(), dataclasses.replace(QUIET, search=search))
        _run(film, 1)
        x = film.state.position.numpy()[:, :2]
        densities.append(film.state.density.numpy()[np.lexsort((x[:, 1], x[:, 0]))])
    off = max(float(np.abs(d - densities[0]).max()) for d in densities[1:])
    return Measured(
        off, "", off <= 1e-6 * max(1.0, float(densities[0].max())), f"densities up to {densities[0].max():.2f}"
    )


@figure(
    area=AREA, claim="from the top of a sphere to its bottom along the great circle", bound="off by < 1 % of the radius"
)
def great_circle() -> Measured:
    radius = 0.03
    slow = FilmParams(fluids=(dataclasses.replace(BLOOD, traction=300.0),))
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    worst, lowest = 0.0, -1.0
    for subdivisions in (4, 5):
        ball = icosphere(radius, subdivisions)
        ball = TriangleMesh(ball.vertices @ turn.T, ball.triangles, "ball")
        for east in (0.3, 1.0, 2.2, 4.0):
            path = _descend(ball, slow, east)
            aside = np.cross(path[0], (0.0, 0.0, 1.0)) / np.linalg.norm(path[0][:2])
            worst = max(worst, float(np.abs(path @ aside).max()) / radius)
            lowest = max(lowest, float(path[-1][2]) / radius)
    good = worst < 0.01 and lowest < -0.99
    return Measured(100.0 * worst, "%", good, "eight descents; spheres of 5 120 and 20 480 triangles, turned at random")


def _descend(ball: TriangleMesh, params: FilmParams, east: float) -> np.ndarray:
    """Mean position of a round drop of seven particles while it runs down, shape (steps, 3) [m]."""
    radius = float(np.linalg.norm(ball.vertices[0]))
    top = np.array([math.sin(0.15) * math.cos(east), math.sin(0.15) * math.sin(east), math.cos(0.15)])
    side = np.array([-math.sin(east), math.cos(east), 0.0])
    around = np.arange(6)[:, None] * math.pi / 3.0
    ring = np.cos(around) * side + np.sin(around) * np.cross(side, top)
    film = make_film(ball, params, 8, _device())
    spawn(film, np.concatenate([[radius * top], radius * top + 0.9e-3 * ring]))
    program = film.device.record(lambda stage: step_film(stage, film))
    path = []
    for _ in range(2_000):
        program.run()
        film.device.synchronize()
        path.append(film.state.position.numpy()[:7].mean(axis=0, dtype=float))
    return np.array(path)


@figure(area=AREA, claim="on a wall a drop runs with g dt/(1 − I)", bound="≤ 1 %")
def wall_speed() -> Measured:
    params = FilmParams(fluids=(BLOOD,), gravity=(0.0, -9.81, 0.0))
    flat = TriangleMesh(
        np.array([(-0.1, -0.3, 0.0), (0.1, -0.3, 0.0), (0.1, 0.1, 0.0), (-0.1, 0.1, 0.0)]),
        np.array([(0, 1, 2), (0, 2, 3)]),
        "wall",
    )
    film = make_film(flat, params, 32, _device())
    spawn(film, np.random.default_rng(2).uniform(-1e-3, 1e-3, (20, 3)) * (1.0, 1.0, 0.0))
    _run(film, 100)
    before = film.state.position.numpy()[:20].mean(axis=0, dtype=float)
    _run(film, 500)
    moved = before - film.state.position.numpy()[:20].mean(axis=0, dtype=float)
    speed = moved[1] / (500 * params.dt)
    off = abs(speed / params.wall_speed("blood") - 1.0)
    return Measured(100.0 * off, "%", off <= 0.01, f"{1000 * speed:.1f} mm/s")


@figure(area=AREA, claim="a resting puddle is calm", bound="moves < 1e-3 radii per step")
def calm() -> Measured:
    film = sheet_film(2_500, 128, _device())
    _run(film, 4_000)
    v = np.linalg.norm(film.state.velocity.numpy(), axis=1)
    moved = float(np.sqrt((v**2).mean())) * film.params.dt / film.params.radius
    return Measured(moved, "radii", moved < 1e-3, f"density {film.state.density.numpy().mean():.2f}")


@figure(area=AREA, claim="a wrapping sheet has no rim", bound="densities as in the middle, ≤ 1e-5")
def wrapping() -> Measured:
    """A regular grid of particles: every one has the same density, those at the sheet's sides too."""
    film = make_film(Sheet(32, 32, wrap=True), QUIET, 4_096, _device(), queue=4_096)
    row, column = np.divmod(np.arange(4_096), 64)
    spawn(film, 0.5 * np.stack([column, row], axis=1) + 0.1)
    _run(film, 1)
    spread = float(np.ptp(film.state.density.numpy()))
    return Measured(spread, "", spread <= 1e-5)


@figure(area=AREA, claim="cpu and cuda give the same film, 20 steps on an organ", bound="≤ 1e-3 radii", needs=("cuda",))
def cpu_and_cuda() -> Measured:
    ends = []
    for name in ("cpu", "cuda:0"):
        film = organ_film(2_500, open_device(name))
        _run(film, 20)
        ends.append(film.state.position.numpy().astype(float))
    near = [float(np.linalg.norm(ends[1] - point, axis=1).min()) for point in ends[0]]
    off = max(near) / FilmParams().radius
    return Measured(off, "radii", off <= 1e-3)
