"""Pillars and balls with density: what boundary/wall_density.py does for any mesh, in closed form.

A particle at a wall lacks the part of its kernel that lies behind it. Where nothing stands in for that, water at walls
is too dense, the more so the wider the kernels. Flat walls are mirrors (mirrors.py); a pillar or a ball counts as the
plane that touches it, a little too much. With a = 1 − q, b = (½ − q)₊ and q = d/R at a distance d, the spline's share
behind a plane is

    λ(q) = 32 [a⁵/20 − a⁶/30 − 4 (b⁵/40 − b⁶/30)],      λ'(q) = −32 [a⁴/4 − a⁵/5 − 4 (b⁴/8 − b⁵/5)]
    ρ_i ← ρ_i + ρ₀ Λ,      a_i ← a_i − 2 ρ₀ p_i/ρ_i² ∇Λ + Λ/(1 − Λ) (a − g)_t,      1 − Λ = Π (1 − κλ)

over all obstacles, with κ such that a lattice of each size half a spacing from a wall sums to ρ₀. The product leaves
out what lies behind two at once, which a sum would count twice: 3 % of ρ₀ where two planes meet, 8 % where three do.
The last term is along the surface: of what pushes and drags a particle there, it lacks the part Λ of its neighbours.
Without it the layers at walls hang on the rest.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.adaptive.matching import in_groups
from viscera.water.basin import NEAREST, PILLAR, Basin
from viscera.water.boundary.volume_map import BEHIND, calibration_of
from viscera.water.boundary.wall_density import MIRROR
from viscera.water.periodic import front
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

MOST = wp.constant(0.5)
"""Share of its neighbours that a particle can lack at a wall and still be dragged along by the rest."""


@wp.struct
class Curved:
    """Obstacles of a basin, as kernels read them; `behind`, `radii` and `calibrations` have a number for each size."""

    obstacles: wp.array(dtype=wp.vec4)
    kinds: wp.array(dtype=wp.int32)
    behind: wp.array(dtype=float)
    """How far behind the surface what counts as wall begins [m]."""
    radii: wp.array(dtype=float)
    """Of the kernels [m]."""
    calibrations: wp.array(dtype=float)
    """κ"""
    rest_density: float
    """ρ₀ [kg/m³]"""


@wp.func
def with_plane(others: wp.vec4, calibration: float, distance: float, radius: float, inward: wp.vec3) -> wp.vec4:
    """∇Λ [1/m] and Λ of the other walls and one more at this distance."""
    q = wp.max(distance, 0.0) / radius
    share = others
    if q < 1.0:
        a = 1.0 - q
        b = wp.max(0.5 - q, 0.0)
        a4 = a * a * a * a
        b4 = b * b * b * b
        part = (32.0 * calibration) * (a4 * a * (0.05 - a / 30.0) - 4.0 * b4 * b * (0.025 - b / 30.0))
        steep = (-32.0 * calibration / radius) * (a4 * (0.25 - 0.2 * a) - 4.0 * b4 * (0.125 - 0.2 * b))
        left = 1.0 - others[3]
        slope = (1.0 - part) * front(others) + (left * steep) * inward
        share = wp.vec4(slope[0], slope[1], slope[2], 1.0 - left * (1.0 - part))
    return share


@wp.func
def share_of(walls: Curved, x: wp.vec3, mine: int) -> wp.vec4:
    """ρ₀ ∇Λ and ρ₀ Λ of all obstacles."""
    h = walls.radii[mine]
    k = walls.calibrations[mine]
    off = walls.behind[mine]
    share = wp.vec4(0.0, 0.0, 0.0, 0.0)
    for number in range(walls.obstacles.shape[0]):
        one = walls.obstacles[number]
        away = x - wp.vec3(one[0], one[1], one[2])
        if walls.kinds[number] == PILLAR:
            away = wp.vec3(away[0], away[1], 0.0)
        far = wp.length(away)
        if far > NEAREST:
            share = with_plane(share, k, far - one[3] + off, h, away / far)
    return walls.rest_density * share


@wp.func
def size_of(level: wp.array(dtype=wp.int32), s: int) -> int:
    mine = wp.int32(0)
    if level.shape[0] > 0:
        mine = level[s]
    return mine


@wp.kernel
def add_share(
    first: int,
    # params
    group: int,
    grid: GridView,
    walls: Curved,
    # in
    position: wp.array(dtype=wp.vec3),
    level: wp.array(dtype=wp.int32),
    # out
    share_out: wp.array(dtype=wp.vec4),
    density_out: wp.array(dtype=float),
):
    start = (first + wp.tid()) * group
    for s in range(start, wp.min(start + group, sorted_count(grid))):
        share = share_of(walls, position[s], size_of(level, s))
        share_out[s] = share
        density_out[s] = density_out[s] + share[3]


@wp.kernel
def push_off(
    first: int,
    # params
    group: int,
    grid: GridView,
    live: wp.array(dtype=Live),
    # in
    share: wp.array(dtype=wp.vec4),
    density: wp.array(dtype=float),
    pressure: wp.array(dtype=float),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    start = (first + wp.tid()) * group
    for s in range(start, wp.min(start + group, sorted_count(grid))):
        if share[s][3] > 0.0:
            k = pressure[s] / (density[s] * density[s])
            n = wp.normalize(front(share[s]))
            own = front(rate_out[s]) - live[0].gravity
            along = own - wp.dot(own, n) * n
            part = wp.min(share[s][3] / live[0].rest_density, MOST)
            a = (part / (1.0 - part)) * along - (MIRROR * k) * front(share[s])
            rate_out[s] = rate_out[s] + wp.vec4(a[0], a[1], a[2], 0.0)


class CurvedShare:
    """One of a fluid's `boundaries`, beside the basin whose obstacles they are."""

    adds_density = True
    adds_force = True

    def __init__(self, fluid: Fluid, basin: Basin) -> None:
        p, device = fluid.params, fluid.device.warp
        if p.kernels != "spline" or not p.compressible or p.density != "summation":
            raise InputError(
                "obstacles with density in closed form are for the spline, an equation of state and summed density.",
                "Choose kernels='spline', equation='gas' or 'tait' and density='summation', or leave them out.",
            )

        def numbers(values: list[float]) -> wp.array:
            return wp.array(np.asarray(values, dtype=np.float32), dtype=float, device=device)

        self._walls = Curved()
        self._walls.obstacles, self._walls.kinds = basin.obstacles, basin.kinds
        pairs = list(zip(p.spacings, p.radii, strict=True))
        self._walls.behind = numbers([BEHIND * spacing for spacing, _ in pairs])
        self._walls.radii = numbers([radius for _, radius in pairs])
        self._walls.calibrations = numbers([calibration_of(*one) for one in pairs])
        self._walls.rest_density = p.rest_density
        self._share = wp.zeros(fluid.capacity, dtype=wp.vec4, device=device)
        self._level = fluid.extra.get("sorted_level", wp.zeros(0, dtype=wp.int32, device=device))

    def before_step(self, stage: Stage, fluid: Fluid) -> None: ...

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        f = fluid
        known = [f.grid.position, self._level]
        in_groups(stage, add_share, f.capacity, [f.grid.view, self._walls, *known, self._share, f.density])

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        f = fluid
        known = [self._share, f.density, f.pressure]
        in_groups(stage, push_off, f.capacity, [f.grid.view, f.live, *known, f.rate])

    def contact(self, stage: Stage, fluid: Fluid) -> None: ...
