"""Bleeding at full size: volume over a long run on a breathing liver, and a million flights at tissue that moves. Needs
NumPy and Warp alone."""

from __future__ import annotations

import math

import numpy as np
import warp as wp

from verify.framework import Measured, figure
from viscera.anatomy import liver
from viscera.blood.balance import make_ledger, read_balance, step_ledger
from viscera.blood.drops.drops import make_drops, set_tools, step_drops
from viscera.blood.drops.landing import LandingView, fit_landing, make_landing, meet_surface
from viscera.blood.film.film import make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.film.surface import refresh_surface
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.blood.wounds.wounds import WoundParams, add_wound, make_wounds, step_wounds
from viscera.device import open_device

AREA = "bleeding"

FRAMES = 800
FRAME = 0.016
"""[s]"""

FLIGHTS = 1_000_000


@wp.kernel
def fly_at(
    tree: LandingView,
    start: wp.array(dtype=wp.vec3),
    end: wp.array(dtype=wp.vec3),
    met_out: wp.array(dtype=wp.int32),
):
    i = wp.tid()
    met_out[i] = meet_surface(tree, start[i], end[i]).face


@figure(area=AREA, claim="volume over vessels, film and drops stays the same", bound="≤ 1e-6 of what has bled")
def volume() -> Measured:
    """A vein that wells up, an artery that spurts, saline and suction, lifetime and mixing, tissue that breathes."""
    device = open_device()
    mesh = liver()
    params = FilmParams(gravity=(0.0, -9.81, 0.0), lifetime=5.0, dilution=1.0)
    film = make_film(mesh, params, 8_000, device)
    surface = film.surface
    assert surface is not None
    drops = make_drops(surface, params, film.state, dt=FRAME)
    wounds = make_wounds(surface, params, film.state, WoundParams(clot_time=0.0), FRAME, drops.state)
    front = mesh.vertices[np.argmax(mesh.vertices[:, 2])]
    add_wound(wounds, front, vessel_mmhg(2.0, 1.5, 4.0), 0.3e-3)
    add_wound(wounds, mesh.vertices[np.argmax(mesh.vertices[:, 1])], vessel_mmhg(120.0, 80.0, 2.0, 60.0), 0.1e-3)
    ledger = make_ledger(film.state, wounds, drops)

    def frame(stage) -> None:
        refresh_surface(stage, surface)
        step_wounds(stage, wounds)
        for _ in range(8):
            step_film(stage, film)
        step_drops(stage, drops)
        step_ledger(stage, ledger)

    program = device.record(frame, work=film.work)
    rest = surface.vertices.numpy().copy()
    worst = 0
    for number in range(FRAMES):
        wounds.drive.host[:] = 0.5 - 0.5 * math.cos(2.0 * math.pi * number * FRAME), 0.0
        surface.vertices.assign(rest * (1.0 + 0.01 * math.sin(number * FRAME * 2.0)))
        away = front + np.array([0.0, -0.006, 0.0])
        if number % 200 == 100:
            set_tools(
                drops, nozzle=front + np.array([0.0, 0.02, 0.02]), nozzle_velocity=(0.0, -0.5, -0.5), nozzle_rate=1e-6
            )
        elif number % 200 == 150:
            set_tools(drops, suction=away, reach=8e-3)
        program.run()
        if number % 20 == 19:
            worst = max(worst, abs(read_balance(ledger).missing))
    balance = read_balance(ledger)
    part = worst * 1e-15 / balance.given
    parts = ", ".join(f"{n} {1e6 * getattr(balance, n):.2f}" for n in ("given", "film", "lost", "sucked", "expired"))
    device.close()
    return Measured(part, "", passed=part <= 1e-6 and balance.given > 0.0, detail=f"{worst} pL; {parts} mL")


@figure(area=AREA, claim="no drop passes through tissue that moves", bound="0 of a million flights")
def landing() -> Measured:
    """From outside the liver to inside, by flight, motion, or both: it swells by 5 %, turns by 3° and waves by 1 mm."""
    device = open_device()
    mesh = liver()
    vertices = wp.array(mesh.vertices, dtype=wp.vec3, device=device.warp)
    tree = make_landing(vertices, wp.array(mesh.triangles, dtype=wp.vec3i, device=device.warp), device)
    turn = math.radians(3.0)
    spin = np.array([[math.cos(turn), -math.sin(turn), 0.0], [math.sin(turn), math.cos(turn), 0.0], [0.0, 0.0, 1.0]])
    after = 1.05 * mesh.vertices @ spin.T + 0.001 * np.sin(60.0 * mesh.vertices)
    vertices.assign(after.astype(np.float32))
    device.record(lambda stage: fit_landing(stage, tree), work=1).run()
    rng = np.random.default_rng(0)
    face = rng.integers(len(mesh.triangles), size=FLIGHTS)
    weight = rng.dirichlet(np.ones(3), FLIGHTS)
    normal = mesh.face_vectors[face] / np.linalg.norm(mesh.face_vectors[face], axis=1, keepdims=True)
    old = np.einsum("nk,nkd->nd", weight, mesh.vertices[mesh.triangles[face]]) + 2e-5 * normal
    corners = after[mesh.triangles[face]]
    now = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    now /= np.linalg.norm(now, axis=1, keepdims=True)
    end = np.einsum("nk,nkd->nd", weight, corners) - rng.uniform(2e-5, 1e-3, (FLIGHTS, 1)) * now
    start, stop = (wp.array(x, dtype=wp.vec3, device=device.warp) for x in (old, end))
    met = wp.zeros(FLIGHTS, dtype=wp.int32, device=device.warp)
    wp.launch(fly_at, dim=FLIGHTS, inputs=[tree.view, start, stop, met], device=device.warp)
    passed_through = int((met.numpy() < 0).sum())
    device.close()
    return Measured(passed_through, "flights", passed=passed_through == 0)
