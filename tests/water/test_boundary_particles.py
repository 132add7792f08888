"""Boundary particles: their rule, their forces against closed forms, friction, and a fluid that they hold up."""

from __future__ import annotations

import math
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.geometry import TriangleMesh, icosphere
from viscera.water.boundary.boundary_particles import RADON, BoundaryParams, BoundaryParticles, sample_triangles
from viscera.water.boundary.contacts import ContactParams
from viscera.water.boundary.shapes import Shape
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import make_walls
from viscera.water.emitter import add_emitter
from viscera.water.params import FluidParams
from viscera.water.sph import step_fluid
from viscera.water.state import Fluid, make_fluid, particles

R0 = 0.01


def sheet(side: float = 0.2, cells: int = 8) -> TriangleMesh:
    """A flat square at z = 0."""
    line = np.linspace(-0.5 * side, 0.5 * side, cells + 1)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    low = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    quads = np.stack([low, low + 1, low + cells + 2, low + cells + 1], axis=1)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int32)
    return TriangleMesh(np.stack([x, y, 0 * x], axis=1), triangles, "sheet")


def lone_particles(device: Device, positions: np.ndarray, velocities: np.ndarray | None = None) -> Fluid:
    """Particles too far apart to feel each other, without gravity."""
    params = FluidParams(
        spacing=0.001, lower=(-0.1, -0.1, -0.1), upper=(0.1, 0.1, 0.1), dt=1e-5, gravity=(0.0, 0.0, 0.0), viscosity=0.0
    )
    return make_fluid(params, positions, device, velocities=velocities)


def accelerations(fluid: Fluid) -> np.ndarray:
    stage = Stage(fluid.device, 0, 1, None)
    step_fluid(stage, fluid)
    count = int(fluid.count.numpy()[0])
    order = np.argsort(fluid.tag.numpy()[:count])
    return fluid.rate.numpy()[:count][order, :3].astype(np.float64)


def test_seven_points_integrate_to_the_fifth_degree() -> None:
    """∫ λ₀ᵃ λ₁ᵇ λ₂ᶜ over a triangle is 2A a! b! c!/(a+b+c+2)!; exact up to degree 5, and not at 6."""
    f = math.factorial
    worst = {}
    for degree in range(7):
        errors = []
        for a in range(degree + 1):
            for b in range(degree + 1 - a):
                c = degree - a - b
                truth = 2 * f(a) * f(b) * f(c) / f(degree + 2)
                found = RADON[:, 3] @ (RADON[:, 0] ** a * RADON[:, 1] ** b * RADON[:, 2] ** c)
                errors.append(abs(found - truth))
        worst[degree] = max(errors)
    assert max(worst[d] for d in range(6)) < 1e-15
    assert worst[6] > 1e-5


@pytest.mark.parametrize("rule", ["gauss", "lennard-jones"])
def test_points_share_the_area_and_lie_as_close_as_asked(rule: Any) -> None:
    mesh = icosphere(0.03, 0)
    face, weights = sample_triangles(mesh, rule, 0.012)
    area = np.linalg.norm(mesh.face_vectors, axis=1)
    np.testing.assert_allclose(weights[:, :3].sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.bincount(face, weights=weights[:, 3]), 1.0, rtol=1e-12)
    assert area[face] @ weights[:, 3] == pytest.approx(mesh.area, rel=1e-12)
    points = np.einsum("ij,ijk->ik", weights[:, :3], mesh.corners[face])
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=2) + np.eye(len(points))
    assert apart.min(axis=1).max() < 0.012


def test_lennard_jones_is_the_formula_and_ends_at_its_rest_distance(device: Device) -> None:
    """Summed over the wall's points in float64; nothing from r₀ on, although 3.7 as printed attracts there."""
    at = np.array([[0.011 * k, 0.003 * k, z] for k, z in enumerate((0.004, 0.006, 0.008, 0.0099, 0.0101, 0.015))])
    fluid = lone_particles(device, at)
    wall = BoundaryParticles(fluid, sheet(), BoundaryParams("lennard-jones", R0, strength=0.4))
    fluid.boundaries.append(wall)
    found = accelerations(fluid)
    points = wall.points.numpy().astype(np.float64)
    for i, place in enumerate(at.astype(np.float32).astype(np.float64)):
        away = place - points
        r = np.linalg.norm(away, axis=1)
        near = r < R0
        size = 0.4 * ((R0 / r) ** 4 - (R0 / r) ** 2) / r**2 * near
        truth = (size[:, None] * away).sum(axis=0)
        np.testing.assert_allclose(found[i], truth, atol=1e-6 * np.abs(size * r).sum() + 1e-4)
    assert (found[:4, 2] > 0).all()
    np.testing.assert_array_equal(found[4:], 0.0)


def test_gauss_points_push_like_a_whole_plane(device: Device) -> None:
    """f = 2πz ∫_z^h τ dr above a wall of infinitely many points; seven per triangle of h/2 are within 1 % of the
    largest force. Repulsion near the wall, adhesion farther off, nothing beyond h, and never sideways."""
    z = np.array([0.003, 0.006, 0.009, 0.012, 0.016, 0.0205])
    at = np.stack([0.011 * np.arange(6) - 0.03, 0.007 * np.arange(6) - 0.02, z], axis=1)
    fluid = lone_particles(device, at)
    params = BoundaryParams("gauss", R0, stiffness=100.0)
    fluid.boundaries.append(BoundaryParticles(fluid, sheet(), params))
    found = accelerations(fluid) * fluid.params.mass
    h = params.radius
    truth = []
    for height in z:
        r = np.linspace(min(height, h), h, 20_001)
        tau = 100.0 * ((h - r) ** 4 - (h - R0) ** 2 * (h - r) ** 2) / (h**2 * R0 * (2 * h - R0))
        truth.append(2 * math.pi * height * np.trapezoid(tau, r))
    largest = np.abs(truth).max()
    np.testing.assert_allclose(found[:, 2], truth, atol=0.01 * largest)
    np.testing.assert_allclose(found[:, :2], 0.0, atol=0.01 * largest)
    assert truth[0] > 0 > truth[3]
    assert found[5, 2] == 0.0


@pytest.mark.parametrize("rule", ["gauss", "lennard-jones"])
def test_friction_slows_stops_and_never_reverses(device: Device, rule: Any) -> None:
    """However strong it is: v stays between 0 and what it was, and follows the wall when that moves."""
    for viscosity in (1e-3, 1.0, 1e7):
        fluid = lone_particles(device, np.array([[0.0, 0.0, 0.9 * R0]]), np.array([[0.1, 0.0, 0.0]]))
        params = BoundaryParams(rule, R0, strength=1e-9, stiffness=1e-9, viscosity=viscosity)
        fluid.boundaries.append(BoundaryParticles(fluid, sheet(), params))
        accelerations(fluid)
        speed = float(particles(fluid)["velocity"][0, 0])
        assert 0.0 <= speed < 0.1 or (viscosity == 1e-3 and speed <= 0.1)
        if viscosity == 1e7:
            assert speed < 1e-3


def test_friction_is_as_large_as_a_whole_plane_makes_it(device: Device) -> None:
    """κ = (µ/ρ) s ∫ ∇²W dA, with ∇²W = 45/(πh⁶) (h − r) over a plane at distance z and a layer of s = h/2:

        κ = (µ/ρ) (45/h⁵) (h³/6 − h z²/2 + z³/3),    v after a step = v / (1 + κ dt)

    Seven points per triangle of h/2 are within 1 % of the integral, as for the force. ρ is the particle's own, as
    the step had it. Four viscosities from hardly felt to nearly stopped (κ dt from 0.03 to 30)."""
    params = BoundaryParams("gauss", R0, stiffness=1e-9, viscosity=1.0)
    h, z = params.radius, 0.6 * R0
    lone = lone_particles(device, np.array([[0.003, -0.004, z]]), np.array([[0.1, 0.0, 0.0]]))
    accelerations(lone)
    density, dt = float(lone.density.numpy()[0]), lone.params.dt
    shape = 45.0 / h**5 * (h**3 / 6 - h * z**2 / 2 + z**3 / 3)
    for rate in (0.03, 0.3, 3.0, 30.0):
        viscosity = rate / dt * density / shape
        fluid = lone_particles(device, np.array([[0.003, -0.004, z]]), np.array([[0.1, 0.0, 0.0]]))
        wanted = replace(params, viscosity=viscosity)
        fluid.boundaries.append(BoundaryParticles(fluid, sheet(), wanted))
        accelerations(fluid)
        found = 0.1 / float(particles(fluid)["velocity"][0, 0]) - 1.0
        assert found == pytest.approx(rate, rel=0.01)


def test_points_follow_walls_that_move(device: Device) -> None:
    from viscera.water.boundary.walls import aim_walls, move_walls

    mesh = icosphere(0.03, 2)
    fluid = lone_particles(device, np.array([[0.0, 0.0, 0.0]]))
    walls = make_walls(mesh, radius=0.002, device=device, deforming=True)
    wall = BoundaryParticles(fluid, mesh, BoundaryParams("gauss", R0, stiffness=1.0), walls=walls)
    stage = Stage(device, 0, 1, None)
    aim_walls(stage, walls, wp.array(mesh.vertices * 0.99, dtype=wp.vec3, device=device.warp))
    move_walls(stage, walls, wp.full(1, 1e-3, dtype=float, device=device.warp))
    before = wall.points.numpy().copy()
    wall.before_step(stage, fluid)
    np.testing.assert_allclose(wall.points.numpy(), 0.99 * before, atol=1e-8)
    np.testing.assert_allclose(wall.state.numpy()[:, :3], -0.01 * before / 1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["contacts", "gauss", "lennard-jones"])
def test_a_fluid_comes_to_rest_on_its_walls(device: Device, kind: str) -> None:
    """A column of 343 particles falls into a box of any kind of wall: nobody is lost, and its middle comes to lie
    where the same volume stands in the box, within half a spacing: contacts alone let it draw together at the walls, by
    0.44. After 0.48 s the mean speed is 14 mm/s (12 with points), and halves in 0.2 s: it rests at last."""
    s, side = 0.01, 0.08
    line = (np.arange(7) - 3) * s
    start = np.stack([g.ravel() for g in np.meshgrid(line, line, line)], axis=1)
    params = FluidParams(
        spacing=s,
        lower=(-0.05, -0.05, -0.05),
        upper=(0.05, 0.05, 0.05),
        dt=4e-4,
        gravity=(0.0, -9.81, 0.0),
        sound_speed=8.0,
        viscosity=0.5,
        kernels="spline",
    )
    fluid = make_fluid(params, start, device)
    vessel = Shape("box", size=(side, side, side), fluid_inside=True)
    walls = make_walls(shapes=[vessel], radius=0.5 * s, device=device)
    fluid.boundaries.append(Vessel(fluid, walls, ContactParams()))
    inner = side
    if kind != "contacts":
        from viscera.geometry.primitives import box

        # Contacts only catch what the points let through: Gauss points are outside of them, where they hold on as well
        # as push; Lennard-Jones points push within one spacing alone, so they are nearer.
        outer = side + (s if kind == "gauss" else 0.5 * s)
        shell, inner = box((outer, outer, outer)), outer - s
        pressed = BoundaryParams(
            "gauss" if kind == "gauss" else "lennard-jones", s, strength=2.0, stiffness=4e3, viscosity=0.2
        )
        fluid.boundaries.append(BoundaryParticles(fluid, shell, pressed, spacing=1.5 * s if kind == "gauss" else None))
    program = device.record(lambda stage: step_fluid(stage, fluid), work=343)
    for _ in range(1200):
        program.run()
    found = particles(fluid)
    assert np.isfinite(found["position"]).all()
    assert np.abs(found["position"]).max() <= 0.5 * side - 0.499 * s + (0.0 if kind == "contacts" else 1e-3)
    assert np.linalg.norm(found["velocity"], axis=1).mean() < 0.02
    depth = 343 * s**3 / inner**2
    assert found["position"][:, 1].mean() == pytest.approx(-0.5 * inner + 0.5 * depth, abs=0.6 * s)


@pytest.mark.parametrize("order", ["vessel first", "emitter first"])
def test_an_emitter_outside_its_vessel_is_refused(cpu: Device, order: str) -> None:
    """A nozzle 5 mm in radius, once inside a ball of 30 mm, once beside it, once across its wall, whoever is made
    first; the message says where. It lets in what the first order and the second let in, inside."""
    mesh = icosphere(0.03, 2)
    params = FluidParams(spacing=0.002, lower=(-0.1,) * 3, upper=(0.1,) * 3, dt=1e-5)
    walls = make_walls(mesh, radius=0.001, device=cpu)

    def make(centre: tuple[float, float, float]) -> Fluid:
        fluid = make_fluid(params, np.zeros((0, 3)), cpu, capacity=200)
        if order == "vessel first":
            fluid.boundaries.append(Vessel(fluid, walls))
        add_emitter(fluid, centre, (1.0, 0.0, 0.0), 0.005)
        if order == "emitter first":
            fluid.boundaries.append(Vessel(fluid, walls))
        return fluid

    with pytest.raises(InputError, match=r"(\d+) of \1 particles of .* layer start on the wrong side .* \(50.0, "):
        make((0.05, 0.0, 0.0))
    with pytest.raises(InputError, match="layer start on the wrong side"):
        make((0.0, 0.03, 0.0))
    fluid = make((0.0, 0.0, 0.0))
    cpu.record(lambda stage: step_fluid(stage, fluid), work=1).run()
    assert np.abs(particles(fluid)["position"]).max() < 0.006


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "spline", "rest": 0.01}, "rule"),
        ({"rule": "gauss", "rest": 0.0, "stiffness": 1.0}, "rest"),
        ({"rule": "gauss", "rest": 0.01}, "stiffness"),
        ({"rule": "lennard-jones", "rest": 0.01}, "strength"),
        ({"rule": "gauss", "rest": 0.01, "stiffness": 1.0, "reach": 0.005}, "reach"),
        ({"rule": "gauss", "rest": 0.01, "stiffness": 1.0, "viscosity": -1.0}, "viscosity"),
    ],
)
def test_impossible_boundary_particles_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BoundaryParams(**arguments)
    with pytest.raises(InputError, match="spacing"):
        sample_triangles(sheet(), "lennard-jones")
    with pytest.raises(InputError, match="Allowed are"):
        sample_triangles(sheet(), "gauss", 1e-5)


def test_the_example_ends_in_its_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "13_fluid_in_a_colon.py"
    monkeypatch.setattr("sys.argv", [str(path), "--particles", "300", "--steps", "400"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.endswith("ok\n")
