"""Sixteen particles at once: who stays on its triangle moves as the equations say, in NumPy float64, and who is left to
the plain way is nobody else's concern."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from viscera.blood.film.border import film_count, spawn
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.kernels import INNER
from viscera.blood.film.params import BILE, BLOOD, SALINE, SETTLING, FilmParams
from viscera.blood.film.state import EXPIRED
from viscera.blood.film.surface import MASKED, make_surface, set_obstacles
from viscera.device import Device
from viscera.geometry import icosphere
from viscera.skin import make_skin

RADIUS, COUNT = 0.01, 300
PARAMS = FilmParams(
    fluids=(BLOOD, BILE, SALINE), dilution=2.0, clot_rate=300.0, clot_speed=0.05, dissolve_rate=0.4, hysteresis=0.02
)
"""Clots within steps, so that the drag of a clot is seen; a contact line that slows and does not stop."""


def start(device: Device, params: FilmParams = PARAMS, native: bool = True) -> Film:
    film = make_film(icosphere(RADIUS, 3), params, COUNT + 40, device, queue=COUNT + 40, native=native)
    add(film, COUNT, 5)
    return film


def add(film: Film, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = rng.normal(size=(count, 3))
    at *= RADIUS / np.linalg.norm(at, axis=1, keepdims=True)
    fluid = np.eye(4)[rng.choice(3, count, p=(0.6, 0.2, 0.2))]
    spawn(film, at, fluid, velocity=0.1 * rng.normal(size=(count, 3)))


def run(film: Film, steps: int) -> None:
    program = film.device.record(lambda stage: step_film(stage, film), work=film.work)
    for _ in range(steps):
        program.run()
    film.device.synchronize()


def test_who_stays_on_its_triangle_moves_as_the_equations_say(cpu: Device) -> None:
    """v = Δx e^(−drag − held)/(part dt), Δx = part · d in the triangle's plane less what the contact line holds, K by
    its exact integral."""
    film = start(cpu)
    run(film, 4)
    p, n = film.params, film_count(film)
    assert film.surface is not None
    assert film.sixteens
    kept = {name: getattr(film.cargo, name).numpy()[:n].astype(np.float64) for name in ("fluid", "mixed", "solvent")}
    clot, weights = (getattr(film.cargo, name).numpy()[:n].astype(np.float64) for name in ("clot", "barycentric"))
    d = np.stack([getattr(film.sorted, axis).numpy()[:n] for axis in ("dx", "dy", "dz")], axis=1).astype(np.float64)
    drag = p.dt * kept["fluid"][:, :3] @ np.array([fluid.traction for fluid in p.fluids])
    held = drag * p.clot_hold * clot**3
    part = -np.expm1(-held) / np.maximum(held, 1e-12)
    part[held < 1e-9] = 1.0
    stiff = film.sorted.stiff.numpy()[:n].astype(np.float64)
    settled = stiff[:, 2] * stiff[:, 0] / (stiff[:, 0] + SETTLING * stiff[:, 1])
    few = np.maximum(1.0 - film.sorted.density.numpy()[:n] / settled / INNER, 0.0)
    assert few.min() == 0.0
    assert few.max() > 0.3
    corners = film.surface.vertices.numpy()[film.surface.view.triangles.numpy()[film.cargo.face.numpy()[:n]]]
    a, e, f = corners[:, 0].astype(np.float64), corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(e, f).astype(np.float64)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    moved = d * part[:, None]
    way = np.linalg.norm(moved, axis=1)
    moved *= (np.maximum(way - p.line_hold * few * p.dt**2, 0.0) / way)[:, None]
    moved -= normal * (moved * normal).sum(axis=1, keepdims=True)
    at = a + weights[:, :1] * e + weights[:, 1:] * f + moved
    inside = np.array(
        [np.linalg.lstsq(np.stack([u, v], 1), x, rcond=None)[0] for u, v, x in zip(e, f, at - a, strict=True)]
    )
    stays = (inside > 0.01).all(axis=1) & (inside.sum(axis=1) < 0.99)
    assert 0.6 * n < stays.sum() < n
    v = moved * (np.exp(-drag - held) / (part * p.dt))[:, None]
    v *= np.minimum(1.0, p.max_speed / np.maximum(np.linalg.norm(v, axis=1), 1e-30))[:, None]
    able, speed = kept["mixed"][:, 0], np.linalg.norm(v, axis=1)
    grown = able - (able - clot) * np.exp(-p.dt * p.clot_rate / (1.0 + (speed / p.clot_speed) ** 2))
    grown *= np.exp(-p.dt * p.dissolve_rate * kept["solvent"])
    assert (held[stays] > 1.0).any()
    # Places are near 0.01 m, where float32 steps by 1e-9 m; speeds are up to 0.15 m/s, clots up to 1.
    assert np.abs(film.state.position.numpy()[:n] - at)[stays].max() < 5e-9
    assert np.abs(film.state.velocity.numpy()[:n] - v)[stays].max() < 1e-6
    assert np.abs(film.state.clot.numpy()[:n] - grown)[stays].max() < 1e-6


@pytest.mark.parametrize("native", [True, False], ids=["sixteens", "plain"])
def test_who_is_too_old_goes(cpu: Device, native: bool) -> None:
    """Three batches, a step apart; the first two have gone after 8 ms of a life of 6."""
    film = start(cpu, dataclasses.replace(PARAMS, lifetime=5.9e-3), native)
    run(film, 1)
    add(film, 20, 6)
    run(film, 1)
    add(film, 17, 7)
    run(film, 3)
    assert film_count(film) == 17
    assert film.state.gone_count.numpy()[int(EXPIRED)] == COUNT + 20


def test_triangles_are_free_only_where_their_texels_are(cpu: Device) -> None:
    """A place of a triangle that is called free never reads an obstacle; most triangles far from it are free."""
    skin = make_skin(icosphere(RADIUS, 3), width=128, device=cpu)
    surface = make_surface(skin)
    assert surface.free.numpy().all()
    island = np.linalg.norm(skin.image(skin.position) - (0.0, 0.0, RADIUS), axis=2) < 0.4 * RADIUS
    obstacle = np.where(island, MASKED, 0.0)
    set_obstacles(surface, 0, obstacle)
    free = surface.free.numpy().astype(bool)
    w = np.random.default_rng(2).dirichlet(np.ones(3), (len(free), 200))
    uv = np.einsum("tsk,tkd->tsd", w, skin.atlas.corners)
    column, row = np.clip((uv * 128).astype(int), 0, 127).transpose(2, 0, 1)
    assert not (obstacle[row, column] > 0.0)[free].any()
    assert 0.5 < free.mean() < 0.98
    set_obstacles(surface, 0, np.zeros((128, 128)))
    assert surface.free.numpy().all()
