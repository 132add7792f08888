"""Vessels at full size: nobody leaves, nobody tunnels, nobody jitters; three structures side by side.

The balls of `_tumble` do not meet each other, so they all lie at the wall, which is the hardest for contacts; a fluid
(`fluid_stays`) presses on it instead.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from verify import water_cases as cases
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
from viscera.water.state import particles, set_params

AREA = "vessels"
STRUCTURES: tuple[Structure, ...] = ("hashed", "hierarchy", "field")
ONE_WALL = math.cos(math.radians(2.0))
"""Normals nearer to each other than this count as one wall: facets of a smooth one."""
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
    claim="4 096 balls under friction of µ = 0.6 and steady gravity lie still, up to the slope that Coulomb allows",
    bound="tan of the steepest slope 0.9 to 1.01 µ; largest line of their speed's spectrum ≤ 1 % of g dt",
)
def at_rest() -> Measured:
    """After 4 s. Friction holds them, so that they are still shows little; where it holds them shows that it is
    Coulomb's: none on a steeper wall, some nearly there. Balls between two walls are held by both and left out."""
    mesh, radius, friction = _colon(8040), 0.003, 0.6
    moving = _spectrum(friction)
    slopes = _slopes(mesh, moving.places, radius)
    steepest, held = float(slopes.max()), float((slopes > 0.1 * friction).mean())
    passed = moving.worst <= 1.0 and 0.9 * friction <= steepest <= 1.01 * friction and len(slopes) >= 500
    detail = f"{len(slopes)} of 4096 lie on one wall, {100 * held:.0f} % of them on a slope; {moving.detail}"
    return Measured(steepest, f"tan of the steepest slope; line {moving.worst:.2g} %", passed, detail)


def _slopes(mesh: TriangleMesh, places: np.ndarray, radius: float) -> np.ndarray:
    """Tangent of the slope under each ball that touches walls of one direction only; gravity is along −y."""
    corners = mesh.corners
    middle, size = corners.mean(axis=1), np.linalg.norm(corners - corners.mean(axis=1, keepdims=True), axis=2).max()
    found: list[float] = []
    for place in places:
        near = np.linalg.norm(middle - place, axis=1) < 1.05 * radius + size
        away = place - _closest_points(corners[near], place)
        distance = np.linalg.norm(away, axis=1)
        normals = (away / distance[:, None])[distance < 1.01 * radius]
        if len(normals) and (normals @ normals[0]).min() > ONE_WALL:
            up = float(normals.mean(axis=0)[1] / np.linalg.norm(normals.mean(axis=0)))
            found.append(math.sqrt(max(0.0, 1.0 - up * up)) / max(up, 1e-9))
    return np.array(found)


@figure(area=AREA, claim="… without friction, in the lowest places of a colon", bound="≤ 5 %")
def at_rest_smooth() -> Measured:
    """After 4 s, in which they have slid down. Nothing holds them, so what is left is a tremor of 0.1 to 0.4 µm per
    step, from float32's error in normals and places."""
    found = _spectrum(0.0)
    return Measured(found.worst, "%", found.worst <= 5.0, found.detail)


@dataclass(frozen=True)
class Still:
    worst: float
    """Largest line of any ball's speed [% of g dt]."""
    places: np.ndarray
    """Where the balls are at the end [m]."""
    detail: str


def _spectrum(friction: float) -> Still:
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
    return Still(worst, places[-1], detail)


@figure(
    area=AREA,
    claim="2 048 particles of a fluid at rest in a gall bladder: largest fast line of any one's speed, over g dt",
    bound="≤ 50 % above 1/4dt; all lines of 99 of 100 particles ≤ 5 mm/s",
)
def fluid_at_rest() -> Measured:
    """Settled under strong viscosity for 0.35 s, then 0.12 s with its own, 0.05 Pa·s; the spectrum of 256 steps. Slow
    lines are the last of the sloshing; a tremor of contacts would be fast."""
    both = filled(gallbladder(), 2048, "hashed", _device())
    fluid, own = both.fluid, both.fluid.params
    program = _device().record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    thick = cases.VISCOUS_SHARE * own.rest_density * own.spacing**2 / own.dt
    for viscosity, steps in ((thick, 9000), (own.viscosity, 3000)):
        set_params(fluid, replace(own, viscosity=viscosity))
        for _ in range(steps):
            program.run()
    track = []
    for _ in range(256):
        program.run()
        _device().synchronize()
        track.append(particles(fluid)["velocity"].astype(np.float64))
    spectrum = np.abs(np.fft.rfft(np.array(track), axis=0))[1:] / len(track)
    line, fast = spectrum.max(axis=(0, 2)), spectrum[64:].max(axis=(0, 2)) / (9.81 * own.dt)
    slow, worst = 1000 * float(np.percentile(line, 99)), 100 * float(fast.max())
    touching = float((np.abs(both.vessel.contacts.kick.numpy()).max(axis=1) > 0.0).mean())
    detail = (
        f"99 of 100 below {100 * np.percentile(fast, 99):.1f} %; all lines: half below {1000 * np.median(line):.2f}, "
        f"99 of 100 below {slow:.1f}, worst {1000 * line.max():.1f} mm/s; {100 * touching:.0f} % touch the wall; dt = "
        f"{1e6 * own.dt:.0f} µs"
    )
    return Measured(round(worst, 1), "%", worst <= 50.0 and slow <= 5.0, detail)


@figure(
    area=AREA,
    claim="water at rest in a box of triangles: p on the middle line is what the weight above says",
    bound="≤ 10 % of ρ g H at 25 heights; the layer at the wall, the level: stated",
)
def still_water() -> Measured:
    """Walls of triangles are contacts and no part of the density: particles beside them lack neighbours, so they crowd
    there until they have them, and the level falls. 20 layers in a box half as wide, Tait, 1 s under strong viscosity;
    with wall particles instead, `sph.hydrostatic_3d` has 1.1 %."""
    found = cases.still_in_triangles(_device(), 20, 1.0)
    return Measured(
        round(100 * found["worst"], 1), "%", found["worst"] <= 0.10,
        f"rms {100 * found['rms']:.1f} %; the layer at the wall has {100 * found['wall_density']:.0f} % of ρ₀, its p "
        f"is off by {100 * found['wall_pressure']:.0f} % of ρ g H in the mean, the next layer's by "
        f"{100 * found['next_pressure']:.0f} %; the level is at {100 * found['level']:.1f} % of H, the middle at "
        f"{100 * found['middle']:.1f} % of H/2; particles move {1000 * found['speed']:.0f} mm/s",
    )  # fmt: skip


@figure(
    area=AREA,
    claim="hashed grid and hierarchy find the distances that float64 finds by brute force; a field is near them",
    bound="≤ 0.3 µm; the field's median ≤ 2.5 % of r, its worst ≤ 0.87 nodes",
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
    walls = make_walls(mesh, radius=0.003, device=_device(), structure="field")
    assert walls.field is not None
    signed = -signed_distance(build_query(mesh, _device()), points)
    off = np.abs(nearest_walls(walls, points)["distance"] - signed)[np.abs(signed) < 0.999 * walls.reach]
    median, farthest = float(np.median(off)) / 0.003, float(off.max()) / walls.field.spacing
    passed = most <= 0.3 and median <= 0.025 and farthest <= 0.8661
    detail += f"; the field {100 * median:.2f} % of r in the median, at worst {farthest:.2f} nodes ({len(off)} points)"
    return Measured(most, "µm", passed, f"200 points, 40 000 triangles: {detail}")


@figure(
    area=AREA,
    claim="the same 2 000 balls in a ring for 60 steps, by three structures: how far apart they end",
    bound="hierarchy ≤ 1 % of r for 99 of 100; field ≤ 2.5 % of r for 80 of 100, ≤ r/2 for 99",
)
def motion_agrees() -> Measured:
    mesh, radius = torus(0.05, 0.02), 0.002
    start = inside_points(mesh, 2000, 1.5 * radius, device=_device())
    end: dict[str, np.ndarray] = {}
    for structure in STRUCTURES:
        tumble = make_tumble(make_walls(mesh, radius=radius, device=_device(), structure=structure), start, turn=0.01)
        tumble.run(60)
        end[structure] = tumble.position.numpy()
    apart = {s: 100 * np.linalg.norm(end[s] - end["hashed"], axis=1) / radius for s in STRUCTURES}
    tree, coarse = apart["hierarchy"], apart["field"]
    most, far = float(np.percentile(coarse, 80)), float(np.percentile(coarse, 99))
    passed = float(np.percentile(tree, 99)) <= 1.0 and most <= 2.5 and far <= 50.0
    detail = (
        f"the field's balls from the hashed grid's: half below {np.median(coarse):.2g} %, 99 of 100 below {far:.0f} %, "
        f"worst {coarse.max():.0f} %; the hierarchy's at worst {tree.max():.2g} %"
    )
    return Measured(most, "% of r, 80 of 100 (field)", passed, detail)


def _closest_points(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """On each triangle, in float64: the best point of its three edges, or of its plane where that is inside."""
    a, n = corners[:, 0], np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    foot = point - (np.einsum("ij,ij->i", point - a, n) / np.einsum("ij,ij->i", n, n))[:, None] * n
    inside, best = np.ones(len(a), dtype=bool), np.full(len(a), np.inf)
    closest = np.array(a)
    for i in range(3):
        start, way = corners[:, i], corners[:, (i + 1) % 3] - corners[:, i]
        along = np.clip(np.einsum("ij,ij->i", point - start, way) / np.einsum("ij,ij->i", way, way), 0.0, 1.0)
        there = start + along[:, None] * way
        nearer = np.linalg.norm(point - there, axis=1) < best
        closest[nearer] = there[nearer]
        best = np.minimum(best, np.linalg.norm(point - there, axis=1))
        inside &= np.einsum("ij,ij->i", np.cross(way, foot - start), n) >= 0.0
    return np.where(inside[:, None], foot, closest)


def _brute_force(mesh: TriangleMesh, point: np.ndarray) -> float:
    return float(np.linalg.norm(point - _closest_points(mesh.corners, point), axis=1).min())
