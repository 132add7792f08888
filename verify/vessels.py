"""Vessels at full size: nobody leaves, nobody tunnels, nobody jitters; three structures side by side.

The balls of `_tumble` do not meet each other, so they all lie at the wall, which is the hardest for contacts; a fluid
(`fluid_stays`) presses on it instead.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cache

import numpy as np

from verify.framework import Measured, figure
from viscera.anatomy import gallbladder
from viscera.anatomy.colon import colon
from viscera.bench._tumble import Tumble, inside_points, make_tumble, outside
from viscera.bench.vessels import filled
from viscera.device import Device, open_device
from viscera.geometry import TriangleMesh, build_query, signed_distance, torus
from viscera.water.boundary.ask import nearest_walls
from viscera.water.boundary.contacts import ContactParams
from viscera.water.boundary.walls import Structure, make_walls
from viscera.water.sph import step_fluid, step_work
from viscera.water.state import set_params

AREA = "vessels"
STRUCTURES: tuple[Structure, ...] = ("hashed", "hierarchy", "field")
CHECKS = 20
"""How often a long run is looked at."""
MANY_STEPS = 100
"""Of 50 000 balls: nine cases of 5 million ball steps, a few minutes on two cores."""


@cache
def _device() -> Device:
    return open_device()


@cache
def _colon(triangles: int) -> TriangleMesh:
    return colon(triangles=triangles)


def _tumbled(
    mesh: TriangleMesh, structure: Structure, radius: float, count: int, steps: int
) -> tuple[Tumble, int, float]:
    """After `steps` steps: the balls, how many were ever seen outside, and the least distance from the wall over r."""
    walls = make_walls(mesh, radius=radius, device=_device(), structure=structure)
    tumble = make_tumble(walls, inside_points(mesh, count, radius, device=_device()), turn=2 * math.pi / 2500)
    lost, least = 0, math.inf
    query = build_query(mesh, _device())
    for _ in range(CHECKS):
        tumble.run(steps // CHECKS)
        distance = -signed_distance(query, tumble.position.numpy())
        lost = max(lost, int((distance <= 0.0).sum()))
        least = min(least, float(distance.min()) / radius)
    return tumble, lost, least


def _long(structure: Structure) -> Measured:
    mesh, start = _colon(8040), time.perf_counter()
    _, lost, least = _tumbled(mesh, structure, 0.003, 4096, 10_000)
    took = time.perf_counter() - start
    detail = f"colon, 8 040 triangles, r = 3 mm, dt = 1 ms; nearest to a wall {least:.4f} r; {took:.0f} s"
    return Measured(lost, "outside", lost == 0, detail)


@figure(
    area=AREA, claim="4 096 balls in a closed colon while gravity turns, 10 000 steps, hashed grid: outside", bound="0"
)
def nobody_leaves_hashed() -> Measured:
    return _long("hashed")


@figure(area=AREA, claim="… with the hierarchy", bound="0")
def nobody_leaves_hierarchy() -> Measured:
    return _long("hierarchy")


@figure(area=AREA, claim="… with the distance field", bound="0")
def nobody_leaves_field() -> Measured:
    return _long("field")


@figure(
    area=AREA,
    claim="50 000 balls in a colon of 40 000 triangles, a gall bladder and a ring, three structures: outside",
    bound="0",
)
def fifty_thousand() -> Measured:
    meshes = {
        "colon": (_colon(40_000), 0.003),
        "gall bladder": (gallbladder(), 0.001),
        "ring": (torus(0.05, 0.02), 0.001),
    }
    total, parts = 0, []
    for name, (mesh, radius) in meshes.items():
        for structure in STRUCTURES:
            _, lost, least = _tumbled(mesh, structure, radius, 50_000, MANY_STEPS)
            total += lost
            parts.append(f"{name} {structure} {least:.3f} r")
    return Measured(total, "outside", total == 0, f"{MANY_STEPS} steps each; nearest to a wall: {', '.join(parts)}")


@figure(area=AREA, claim="4 096 balls at 100 m/s in a closed colon, 50 steps, three structures: outside", bound="0")
def no_tunnelling() -> Measured:
    mesh, radius, count = _colon(8040), 0.003, 4096
    rng = np.random.default_rng(2)
    way = rng.normal(size=(count, 3))
    total = 0
    for structure in STRUCTURES:
        walls = make_walls(mesh, radius=radius, device=_device(), structure=structure)
        start = inside_points(mesh, count, radius, device=_device())
        tumble = make_tumble(walls, start, params=ContactParams(restitution=1.0))
        tumble.velocity.assign((100.0 * way / np.linalg.norm(way, axis=1, keepdims=True)).astype(np.float32))
        tumble.run(50)
        total += outside(mesh, tumble.position.numpy())
    return Measured(total, "outside", total == 0, "0.1 m per step, 33 radii; elastic")


@figure(
    area=AREA,
    claim="4 096 particles of a fluid in a closed colon while gravity turns, 10 000 steps, hashed grid: outside",
    bound="0",
)
def fluid_stays() -> Measured:
    """Pressure, viscosity and contacts together; counted every 100 steps. Gravity turns once in 2 500 steps."""
    mesh, start = _colon(8040), time.perf_counter()
    both = filled(mesh, 4096, "hashed", _device())
    fluid, radius = both.fluid, both.vessel.walls.radius
    program = _device().record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    query = build_query(mesh, _device())
    lost, least, touching = 0, math.inf, []
    for number in range(10_000):
        if number % 100 == 0:
            angle = 2 * math.pi * number / 2500
            down = (9.81 * math.sin(angle), -9.81 * math.cos(angle), 0.0)
            set_params(fluid, replace(fluid.params, gravity=down))
        program.run()
        if number % 100 == 99:
            _device().synchronize()
            distance = -signed_distance(query, fluid.position.numpy())
            lost = max(lost, int((~(distance > 0.0)).sum()))
            least = min(least, float(distance.min()) / radius)
            touching.append(float((np.abs(both.vessel.contacts.kick.numpy()).max(axis=1) > 0.0).mean()))
    took, speed = time.perf_counter() - start, float(np.linalg.norm(fluid.velocity.numpy(), axis=1).max())
    detail = (
        f"r = {1000 * radius:.1f} mm, dt = {1e3 * fluid.params.dt:.3f} ms; {100 * np.mean(touching):.0f} % touch the "
        f"wall; nearest {least:.4f} r; at most {speed:.1f} m/s at the end; {took:.0f} s"
    )
    return Measured(lost, "outside", lost == 0, detail)


@figure(
    area=AREA,
    claim="4 096 balls held by friction of 0.6 under steady gravity: largest line of their speed's spectrum, over g dt",
    bound="≤ 1 %",
)
def at_rest() -> Measured:
    """After 4 s. Friction holds them, which would hide a tremor along the wall: `at_rest_smooth` has none."""
    return _spectrum(0.6, 1.0)


@figure(area=AREA, claim="… without friction, in the lowest places of a colon", bound="≤ 5 %")
def at_rest_smooth() -> Measured:
    """After 4 s, in which they have slid down. Nothing holds them, so what is left is a tremor of 0.1 to 0.4 µm per
    step, from float32's error in normals and places."""
    return _spectrum(0.0, 5.0)


def _spectrum(friction: float, bound: float) -> Measured:
    """Lines of the speed's spectrum over 256 steps; the mean, a slow slide, is not among them."""
    walls = make_walls(_colon(8040), radius=0.003, device=_device())
    start = inside_points(_colon(8040), 4096, 0.003, device=_device())
    tumble = make_tumble(walls, start, turn=0.0, params=ContactParams(friction=friction))
    tumble.run(4000)
    track = []
    for _ in range(257):
        tumble.run(1)
        track.append(tumble.position.numpy().astype(np.float64))
    places = np.array(track)
    speed = (places[1:] - places[:-1]) / 1e-3
    spectrum = np.abs(np.fft.rfft(speed, axis=0))[1:] / len(speed)
    line = 100 * spectrum.max(axis=(0, 2)) / (9.81 * 1e-3)
    fast = 100 * np.abs(spectrum[16:]).max(axis=(0, 2)) / (9.81 * 1e-3)
    still = 100 * float((np.ptp(places, axis=0).max(axis=1) == 0.0).mean())
    worst = float(line.max())
    detail = (
        f"{still:.1f} % do not move by a bit; half below {np.median(line):.2g} %, 99 of 100 below "
        f"{np.percentile(line, 99):.2g} %; above 62 Hz the worst is {fast.max():.2g} %"
    )
    return Measured(worst, "%", worst <= bound, detail)


@figure(
    area=AREA, claim="hashed grid and hierarchy find the distances that float64 finds by brute force", bound="≤ 0.3 µm"
)
def distances_agree() -> Measured:
    """Every triangle's nearest point: the best of its three edges, and of its plane's foot where that is inside."""
    mesh = _colon(40_000)
    rng = np.random.default_rng(5)
    face = rng.integers(len(mesh.triangles), size=200)
    points = mesh.corners[face].mean(axis=1) + 0.004 * rng.uniform(-1.0, 1.0, (200, 3))
    points = points.astype(np.float32).astype(np.float64)
    truth = np.array([_brute_force(mesh, point) for point in points])
    worst: dict[str, float] = {}
    for structure in ("hashed", "hierarchy"):
        walls = make_walls(mesh, radius=0.003, device=_device(), structure=structure)
        near = truth < 0.999 * walls.reach
        found = nearest_walls(walls, points)["distance"]
        worst[structure] = 1e6 * float(np.abs(found - truth)[near].max())
    most = max(worst.values())
    detail = ", ".join(f"{k} {v:.3f} µm" for k, v in worst.items())
    return Measured(most, "µm", most <= 0.3, f"200 points, 40 000 triangles: {detail}")


def _brute_force(mesh: TriangleMesh, point: np.ndarray) -> float:
    corners = mesh.corners
    a, n = corners[:, 0], 2.0 * mesh.face_vectors
    height = np.einsum("ij,ij->i", point - a, n) / np.linalg.norm(n, axis=1)
    foot = point - (height / np.linalg.norm(n, axis=1))[:, None] * n
    inside, best = np.ones(len(a), dtype=bool), np.full(len(a), np.inf)
    for i in range(3):
        start, way = corners[:, i], corners[:, (i + 1) % 3] - corners[:, i]
        along = np.clip(np.einsum("ij,ij->i", point - start, way) / np.einsum("ij,ij->i", way, way), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(point - start - along[:, None] * way, axis=1))
        inside &= np.einsum("ij,ij->i", np.cross(way, foot - start), n) >= 0.0
    return float(np.where(inside, np.abs(height), best).min())
