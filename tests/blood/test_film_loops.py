"""The film's neighbour loops in space, in C and in plain Warp, against the equations in NumPy float64, pair by pair.

On a ball; on a lens that is thinner than the radius, where the filter for particles back to back decides; and in the
gap between a ball and a shell around it, where films face each other and `pooling` weakens the pair. The reference
takes what the loops take (sorted positions, velocities, normals, constants) and knows neither cells nor rows.

Tolerances: positions are near 0.01 m, where float32 steps by 1e-9 m, 4e-7 of the radius; of a pair's 1 − q that is as
much again, and sums run over some fifteen neighbours. Near pressure, 40 times (1 − q)³, is the most sensitive.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from viscera.blood.film.border import check_film, film_count, spawn
from viscera.blood.film.film import Film, make_film, set_film, step_film
from viscera.blood.film.params import BILE, BLOOD, MOST_VISCOUS, FilmParams
from viscera.device import Device
from viscera.geometry import TriangleMesh, icosphere

COUNT = 600
BALL = 0.008
"""Radius [m]: 600 particles cover most of it, with about fifteen neighbours each."""
THIN = 0.05
"""The lens is so much of the ball's thickness: 0.8 mm at most from side to side, a third of the radius."""

GAP = 0.8e-3
"""Between the ball and the shell around it [m]."""

PARAMS = FilmParams(
    fluids=(dataclasses.replace(BLOOD, quadratic_viscosity=30.0, clots=False), BILE),
    gravity=(0.0, 0.0, 0.0),
    pooling=0.4,
)


def body(shape: str) -> TriangleMesh:
    ball = icosphere(BALL, 3)
    if shape == "ball":
        return ball
    if shape == "gap":
        shell = icosphere(BALL + GAP, 3)
        both = np.concatenate([ball.triangles, shell.triangles[:, ::-1] + len(ball.vertices)])
        return TriangleMesh(np.concatenate([ball.vertices, shell.vertices]), both, "gap")
    return TriangleMesh(ball.vertices * np.array([1.3, 1.3, THIN]), ball.triangles, "lens")


def start(shape: str, device: Device, native: bool, one_sided: bool = False) -> Film:
    mesh, rng = body(shape), np.random.default_rng(3)
    film = make_film(
        mesh, dataclasses.replace(PARAMS, one_sided=one_sided), COUNT + 50, device, queue=COUNT, native=native
    )
    assert film.native is native
    face = rng.choice(len(mesh.triangles), COUNT, p=_areas(mesh))
    weights = rng.dirichlet(np.ones(3), COUNT)
    places = np.einsum("nk,nkd->nd", weights, mesh.vertices[mesh.triangles[face]])
    fluid = np.eye(4)[rng.integers(0, 2, COUNT)]
    spawn(film, places, fluid, velocity=0.05 * rng.normal(size=(COUNT, 3)))
    return film


def _areas(mesh: TriangleMesh) -> np.ndarray:
    sizes = np.linalg.norm(mesh.face_vectors, axis=1)
    return sizes / sizes.sum()


def run(film: Film, steps: int) -> None:
    program = film.device.record(lambda stage: step_film(stage, film), work=film.work)
    for _ in range(steps):
        program.run()
    film.device.synchronize()
    check_film(film)


def columns(film: Film, *names: str) -> np.ndarray:
    """Sorted arrays as float64, one column each."""
    count = film_count(film)
    return np.stack([getattr(film.sorted, name).numpy()[:count] for name in names], axis=1).astype(np.float64)


def reference(film: Film, filtered: bool = True) -> dict[str, np.ndarray]:
    """What the three loops make of the step's beginning. Without `filtered`, back to back counts as near."""
    p, h, dt = film.params, film.params.radius, film.params.dt
    x, v, n = columns(film, "x", "y", "z"), columns(film, "vx", "vy", "vz"), columns(film, "nx", "ny", "nz")
    linear, quadratic, phase = columns(film, "linear", "quadratic", "phase").T
    k, k_near, rest = film.sorted.stiff.numpy()[: len(x)].astype(np.float64).T
    half, own, other = (1.0, 1.0, 0.0) if p.one_sided else (0.5, 0.5, 0.5)

    def pairs(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors from i to j, and 1 − q, 0 for who do not meet."""
        offset = at[None] - at[:, None]
        r = np.linalg.norm(offset, axis=2)
        ahead = (offset * (n[:, None] - n[None])).sum(axis=2) > 0.0
        behind = (n @ n.T < -0.2) & ~ahead
        meet = (r < h) & ~np.eye(len(at), dtype=bool) & ~(behind & filtered)
        w = np.where((n @ n.T < -0.7) & ahead, p.pooling, 1.0) * (1.0 - r / h)
        return offset / np.maximum(r, 1e-300)[..., None], np.where(meet, w, 0.0)

    along, w = pairs(x)
    u = np.maximum(((v[:, None] - v[None]) * along).sum(axis=2), 0.0)
    a, b = 0.5 * (linear[:, None] + linear[None]), 0.5 * (quadratic[:, None] + quadratic[None])
    taken = np.minimum(dt * half * (a + b * u), MOST_VISCOUS)
    v = v - ((w * u * taken)[..., None] * along).sum(axis=1)
    v = v - n * (n * v).sum(axis=1)[:, None]
    d = dt * v
    d *= np.minimum(1.0, p.reach / np.maximum(np.linalg.norm(d, axis=1), 1e-300))[:, None]
    along, w = pairs(x + d)
    density, near = (w**2).sum(axis=1), (w**3).sum(axis=1)
    pressure, near_pressure = k * (density - rest), k_near * near
    push = own * pressure[:, None] + other * pressure[None] + p.separation * np.abs(phase[:, None] - phase[None])
    nearer = own * near_pressure[:, None] + other * near_pressure[None]
    d = d - dt**2 * ((push * w + nearer * w**2)[..., None] * along).sum(axis=1)
    return {"density": density, "displacement": d, "advanced": x + dt * v}


@pytest.mark.parametrize("one_sided", [False, True], ids=["symmetric", "one-sided"])
@pytest.mark.parametrize("shape", ["ball", "lens", "gap"])
@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
def test_loops_in_space_are_the_reference(device: Device, native: bool, shape: str, one_sided: bool) -> None:
    film = start(shape, device, native, one_sided)
    for _ in range(3):
        run(film, 1)
        truth = reference(film)
        density, displacement = columns(film, "density")[:, 0], columns(film, "dx", "dy", "dz")
        assert 1.0 < truth["density"].mean() < 8.0
        assert np.abs(density - truth["density"]).max() < 5e-5
        assert np.abs(displacement - truth["displacement"]).max() < 1e-4 * np.abs(truth["displacement"]).max()


def test_the_lens_needs_its_filter(cpu: Device) -> None:
    """Without it the two sides of the lens would feel each other: the reference itself says how much."""
    film = start("lens", cpu, native=True)
    run(film, 1)
    assert reference(film, filtered=False)["density"].mean() > 1.5 * reference(film)["density"].mean()


@pytest.mark.parametrize("shape", ["ball", "lens", "gap"])
def test_plain_and_native_loops_agree_in_space(device: Device, shape: str) -> None:
    """One whole step from the same beginning; afterwards the order of sums lets them drift apart."""
    ends: list[dict[str, Any]] = []
    for native in (True, False):
        film = start(shape, device, native)
        run(film, 1)
        ends.append({name: getattr(film.state, name).numpy()[:COUNT] for name in ("position", "velocity", "density")})
    assert np.abs(ends[0]["position"] - ends[1]["position"]).max() < 1e-4 * PARAMS.radius
    assert np.abs(ends[0]["velocity"] - ends[1]["velocity"]).max() < 1e-3 * PARAMS.max_speed
    assert np.abs(ends[0]["density"] - ends[1]["density"]).max() < 5e-5


@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
def test_on_one_ball_pooling_changes_nothing(device: Device, native: bool) -> None:
    """A convex surface: the same bits with and without. In the gap it matters, and densities grow with it."""
    ends: dict[str, list[np.ndarray]] = {"ball": [], "gap": []}
    for shape, found in ends.items():
        for pooling in (0.0, 0.5, 1.0):
            film = start(shape, device, native)
            set_film(film, dataclasses.replace(film.params, pooling=pooling))
            run(film, 3 if shape == "ball" else 1)
            found.append(np.concatenate([film.state.position.numpy(), film.state.density.numpy()[:, None]], axis=1))
    assert all(np.array_equal(other, ends["ball"][0]) for other in ends["ball"][1:])
    off, half, full = (found[:COUNT, 3].mean() for found in ends["gap"])
    assert 1.05 * off < half < full / 1.05
