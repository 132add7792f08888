"""Still water in organs of any shape: one pool of a closed mesh, from its lowest place up to a level.

A colon's loops hold pools of several levels, so pressure is compared with depth in one of them: all places of the lumen
below a level that can be reached from the lowest without rising above it. Its truths are those of any vessel:

    level    V⁻¹(n s³), where V(y) is the room of the pool below y [m³] and n s³ what was filled in
    pressure ρ g (y_s − y) below the surface y_s that is measured

in the middle (places farther from the wall than kernels reach) and in the two layers at it. Pressures of single
particles scatter, so an error belongs to a place: the mean of `off` around it, weighted by the kernel, among all
particles or among those of its layer. An rms over places keeps what a mean over all of them would cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import warp as wp
from numpy.typing import NDArray

from verify.water_cases import GRAVITY, VISCOUS_SHARE, WATER, at_largest_step
from viscera import water
from viscera.device import Device, Stage
from viscera.geometry import TriangleMesh, build_query, signed_distance
from viscera.geometry.primitives import box
from viscera.geometry.topology import components
from viscera.water import FluidParams
from viscera.water.boundary.field import make_field
from viscera.water.boundary.moving_density import SEEN_FROM
from viscera.water.smoothing import spline
from viscera.water.walls import box_walls

FloatArray = NDArray[np.float64]
Solver = Literal["tait", "incompressible"]

FINE = 2
"""Steps of the grid that measures a pool's room, in a spacing."""
TOP = 0.4
"""Share of the uppermost layer that the level is taken from: the highest particles."""


@dataclass(frozen=True)
class Pool:
    """A part of a lumen, below a level."""

    places: FloatArray
    """Of particles on a lattice, (n, 3) [m]; none nearer to the wall than half a spacing."""
    heights: FloatArray
    """Of the pool's room in small equal parts, ascending, also above the level [m]."""
    part: float
    """Room of each [m³]."""

    def level(self, volume: float) -> float:
        """[m] of so much water [m³]."""
        return float(self.heights[min(round(volume / self.part), len(self.heights) - 1)])

    def area(self, level: float, spacing: float) -> float:
        """Of the surface at a level [m²]."""
        return float((np.abs(self.heights - level) < 0.5 * spacing).sum()) * self.part / spacing


def _reached(nodes: NDArray[np.int64], free: FloatArray, step: float, start: int) -> NDArray[np.bool_]:
    """Which of the nodes of a grid, (n, 3), belong to the pool of one of them. `free` is how far each is from the wall
    [m]: where two neighbours' balls without walls meet, nothing stands between them. So loops that touch are not one
    pool. Nodes at the wall, whose balls are small, belong to that of a neighbour."""
    low = nodes.min(axis=0)
    table = np.full(nodes.max(axis=0) - low + 2, -1, dtype=np.int64)
    table[tuple((nodes - low).T)] = np.arange(len(nodes))
    links = []
    for axis in range(3):
        beside = table[tuple((nodes - low + np.eye(3, dtype=np.int64)[axis]).T)]
        links.append(np.stack([np.arange(len(nodes)), beside], axis=1)[beside >= 0])
    a, b = np.concatenate(links).T
    clear = free[a] + free[b] > step
    parts = components(len(nodes), a[clear], b[clear])
    pool = parts == parts[start]
    found = pool.copy()
    found[a[pool[b]]] = found[b[pool[a]]] = True
    return found


def find_pool(mesh: TriangleMesh, spacing: float, depth: float, device: Device) -> Pool:
    """From the lowest place (along y) with room for a particle up to `depth` [m] above it."""
    fine = spacing / FINE
    grid = make_field(mesh, fine, spacing, device).grid
    distance = grid.values.numpy()
    nodes = np.argwhere(distance < 0.0)
    points = np.asarray(grid.origin) + fine * nodes
    wide = distance[tuple(nodes.T)] < -0.5 * spacing
    bottom = float(points[wide, 1].min()) - 0.5 * spacing
    # What lies above the level belongs to the room, for water that stands too high; but not other loops.
    kept = points[:, 1] < bottom + 1.15 * depth
    nodes, points, wide = nodes[kept], points[kept], wide[kept]
    lowest = int(np.where(wide, points[:, 1], np.inf).argmin())
    pool = _reached(nodes, -distance[tuple(nodes.T)].astype(np.float64), fine, lowest)
    nodes, points, wide = nodes[pool], points[pool], wide[pool]
    lattice = (nodes % FINE == 0).all(axis=1) & wide & (points[:, 1] < bottom + depth)
    return Pool(points[lattice].astype(np.float64), np.sort(points[:, 1].astype(np.float64)), fine**3)


CREEP = 0.2
"""Time over which water at rest is watched for creeping [s]."""
FRAME = 0.016
"""How often a mesh that is carried is aimed, at least [s]."""


def still_in(
    device: Device,
    mesh: TriangleMesh,
    spacing: float,
    depth: float,
    seconds: float,
    *,
    solver: Solver = "incompressible",
    deforming: bool = False,
    carried: float = 0.0,
    places: FloatArray | None = None,
) -> dict[str, float]:
    """Water in a pool of the mesh, settled under strong viscosity; see the top of this file. The wall's share comes
    from a map, or, where it may be `deforming`, from the triangles around each particle. A mesh that is `carried` along
    x [m/s] takes its water along: what is measured is seen from it. `places` are where the particles begin, else on a
    lattice in the pool."""
    deforming = deforming or carried != 0.0
    pool = find_pool(mesh, spacing, depth, device)
    pool = pool if places is None else replace(pool, places=places)
    low, high = (corner.copy() for corner in mesh.bounds)
    high[0] += carried * (seconds + FRAME)
    params = _settling(FluidParams(spacing, tuple(low.tolist()), tuple(high.tolist()), dt=0.0), depth, solver)
    fluid = water.make(params, pool.places, device=device)
    seen: dict[str, Any] = {"deforming": True, "reach": SEEN_FROM * params.radius} if deforming else {}
    walls = water.make_walls(mesh, radius=0.5 * spacing, device=device, room=carried * (seconds + FRAME), **seen)
    water.add_wall_density(fluid, walls)
    parts = math.ceil(FRAME / params.dt)
    water.add_vessel(fluid, walls, moving=carried != 0.0, parts=parts)
    wanted = wp.array(mesh.vertices, dtype=wp.vec3, device=device.warp)

    def frame(stage: Stage) -> None:
        if carried:
            water.aim_walls(stage, walls, wanted)
        for _ in range(parts):
            water.step(stage, fluid)

    program = device.record(frame, work=parts * water.work(fluid))
    time = parts * params.dt
    frames, watched = math.ceil(seconds / time), math.ceil(CREEP / time)
    before = np.zeros(0)
    for k in range(1, frames + 1):
        if carried:
            wanted.assign((mesh.vertices + np.array([carried * k * time, 0.0, 0.0])).astype(np.float32))
        program.run()
        if k == frames - watched:
            before = _by_tag(fluid)
    water.check(fluid)
    moved = np.array([carried, 0.0, 0.0])
    crept = np.linalg.norm(_by_tag(fluid) - before - moved * watched * time, axis=1) / (watched * time)
    found = measured(fluid, pool, mesh, device, moved, frames * time)
    return found | {"creep": float(np.sqrt(np.mean(crept**2)))}


def _settling(params: FluidParams, depth: float, solver: Solver) -> FluidParams:
    """Water that settles with either solver, of one viscosity: what the incompressible one's steps, which are longer,
    allow. As much as Tait's short ones allow is twelve times thicker in a ball of 12 cm, and such water is not at rest
    after 3 s: its second layer at the wall is 17 % off after 0.5 s, 5.1 % then, and 3.5 % after 8."""
    down = replace(params, gravity=(0.0, -GRAVITY, 0.0))
    solved = at_largest_step(replace(down, equation="incompressible", fastest=1.0))
    thick = VISCOUS_SHARE * params.rest_density * params.spacing**2 / solved.dt
    if solver == "incompressible":
        return replace(solved, viscosity=thick)
    return at_largest_step(replace(down, sound_speed=10.0 * math.sqrt(2.0 * GRAVITY * depth), viscosity=thick))


def _by_tag(fluid: water.Fluid) -> FloatArray:
    """Places of particles in an order that sorting does not change [m], (n, 3)."""
    found = water.particles(fluid)
    return found["position"][np.argsort(found["tag"])].astype(np.float64)


def _around(places: FloatArray, x: FloatArray, off: FloatArray, reach: float) -> FloatArray:
    """The mean of `off` at each place among particles at x, weighted by the kernel."""
    found = []
    for place in places:
        w = spline(np.linalg.norm(x - place, axis=1), reach, 3)
        found.append(float((w * off).sum() / w.sum()))
    return np.array(found)


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def measured(
    fluid: water.Fluid, pool: Pool, mesh: TriangleMesh, device: Device, carried: FloatArray, time: float
) -> dict[str, float]:
    """Shares of the depth H, of ρ g H, and the speed [m/s], seen from a mesh that was carried with that velocity."""
    found, s, reach = water.particles(fluid), fluid.params.spacing, fluid.params.radius
    x = found["position"].astype(np.float64) - carried * time
    velocity = found["velocity"] - carried
    y = x[:, 1]
    query = build_query(mesh, device)
    deep = -signed_distance(query, x.astype(np.float32)).astype(np.float64)
    truth = pool.level(len(x) * s**3)
    top = max(4, round(TOP * pool.area(truth, s) / s**2))
    level = float(np.sort(y)[-top:].mean()) + 0.5 * s
    bottom = float(pool.heights[0])
    most = WATER * GRAVITY * (level - bottom)
    off = (found["pressure"] - WATER * GRAVITY * (level - y)) / most
    below = level - y > reach
    middle = _around(x[below & (deep > reach)], x, off, reach)
    wall, following = below & (deep < 0.75 * s), below & (deep >= 0.75 * s) & (deep < 1.5 * s)
    layers = [_around(x[one], x[one], off[one], reach) for one in (wall, following)]
    return {
        "count": len(x), "depth": level - bottom, "level": (level - truth) / (truth - bottom),
        "middle": float(middle.mean()), "middle_rms": _rms(middle), "probes": len(middle),
        "wall": float(off[wall].mean()), "next": float(off[following].mean()), "wall_rms": _rms(layers[0]),
        "next_rms": _rms(layers[1]), "single_rms": _rms(off[wall | following]),
        "denser": float(found["density"].mean() / WATER - 1.0),
        "speed": float(np.sqrt((velocity**2).sum(axis=1).mean())),
        "fastest": float(np.linalg.norm(velocity, axis=1).max()), "outside": int((deep < 0.0).sum()),
    }  # fmt: skip


def dam_in_a_mesh(device: Device, across: int, until: float = 2.6) -> dict[str, float]:
    """A column of water, `across` particles wide, twice as high, half as deep, in a long box: of wall particles, and of
    triangles with density. How far their fronts are apart, over where they are, until T = `until` √(W/2g)."""
    fronts = [_fronts(device, across, until, mesh=mesh) for mesh in (False, True)]
    times = np.linspace(0.3, 1.0, 29) * until
    by_particles, by_mesh = (np.interp(times, *one[:2]) for one in fronts)
    apart = np.abs(by_mesh / by_particles - 1.0)
    return {
        "apart": float(apart.mean()), "worst": float(apart.max()), "until": until, "front": float(by_mesh[-1]),
        "count": fronts[1][2],
    }  # fmt: skip


def _fronts(device: Device, across: int, until: float, *, mesh: bool) -> tuple[FloatArray, FloatArray, int]:
    """Times over √(W/2g), and where the front is by then, over W."""
    column = 0.1
    s = column / across
    size = (4.5 * column, 2.5 * column, s * (across // 2))
    params = at_largest_step(FluidParams(
        s, (0.0,) * 3, size, dt=0.0, equation="incompressible", fastest=2.0 * math.sqrt(2.0 * GRAVITY * column),
        gravity=(0.0, -GRAVITY, 0.0),
    ))  # fmt: skip
    places = water.block((0.0,) * 3, (column, 2.0 * column, size[2]), s)
    solid = None if mesh else box_walls((0.0,) * 3, size, s, params.radius, open_sides=("+y",))
    fluid = water.make(params, places, walls=solid, device=device)
    if mesh:
        around = box(size).moved(0.5 * np.asarray(size))
        walls = water.make_walls(around, radius=0.5 * s, device=device)
        water.add_wall_density(fluid, walls)
        water.add_vessel(fluid, walls)
    program = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    unit = math.sqrt(column / (2.0 * GRAVITY))
    steps = math.ceil(until * unit / params.dt)
    times, fronts = [0.0], [1.0]
    for step in range(1, steps + 1):
        program.run()
        if step % max(1, steps // 40) == 0 or step == steps:
            x = water.particles(fluid)["position"].astype(np.float64)
            low = np.sort(x[x[:, 1] < 2.0 * s, 0])
            # A layer's width of particles is the front, not one that splashed ahead.
            times.append(step * params.dt / unit)
            fronts.append((float(low[-across // 2 :].mean()) + 0.5 * s) / column)
    water.check(fluid)
    return np.array(times), np.array(fronts), len(places)
