"""Walls with density that move: the same as wall_density.py, from the distance of the nearest wall instead of a map.

A map takes seconds to make, so walls that change their shape have none. Over a kernel's radius they are taken as flat:

    λ(d) = ∫_d^R 2πr (r − d) W dr,      ∇λ = λ'(d) n,      λ'(d) = −∫_d^R 2πr W dr,

with the distance d of the nearest wall and the normal n from it. Of a wall that bends around the water more lies in the
kernel: `curvature`, the sum κ of both, makes λ larger by 1 + 0.25 κR and S (wall_drag.py) by 1 + 0.33 κR, which is what
tubes have at half a spacing. Water behind the wall moves with it, so density grows
by κ ρ₀ ∇λ·(v − u) where the wall moves with u.

In edges and corners only the nearest wall counts, so water there is up to a third of λ short; smooth walls bend little
over a kernel. Where walls stand, use maps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.boundary.volume_map import BEHIND, calibration, flat_share, flat_slope
from viscera.water.boundary.wall_density import WallShare
from viscera.water.boundary.wall_drag import NEAREST, drag_table
from viscera.water.boundary.walls import Walls, WallsView, nearest_wall
from viscera.water.periodic import front
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

ENTRIES = 64
"""Of the tables, from 0 to R."""
MORE_BEHIND = 0.25
BENT = 0.33
"""As in wall_drag.py."""


@wp.func
def looked_up(table: wp.array(dtype=float), share: float) -> float:
    """At a share of R, between two entries."""
    place = wp.clamp(share, 0.0, 1.0) * float(table.shape[0] - 1)
    k = wp.min(wp.int32(place), table.shape[0] - 2)
    return wp.lerp(table[k], table[k + 1], place - float(k))


@wp.kernel
def take_near_share(
    first: int,
    # params
    grid: GridView,
    walls: WallsView,
    radius: float,
    amount: float,
    value: wp.array(dtype=float),
    slope: wp.array(dtype=float),
    # in
    position: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    # out
    share_out: wp.array(dtype=wp.vec4),
    drift_out: wp.array(dtype=wp.vec4),
    density_out: wp.array(dtype=float),
):
    """κ ρ₀ ∇λ and κ ρ₀ λ of each particle; and velocity and distance of the wall that gives it."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    share = wp.vec4(0.0, 0.0, 0.0, 0.0)
    drift = wp.vec4(0.0, 0.0, 0.0, radius)
    if tag[s] >= 0:
        near = nearest_wall(walls, position[s])
        if near.distance < radius:
            part = near.distance / radius
            g = amount * looked_up(slope, part) * near.normal
            share = wp.vec4(g[0], g[1], g[2], amount * looked_up(value, part))
            u = near.velocity
            drift = wp.vec4(u[0], u[1], u[2], near.distance)
    share_out[s] = share
    drift_out[s] = drift
    density_out[s] = density_out[s] + share[3]


@wp.kernel
def drag_near_walls(
    first: int,
    # params
    grid: GridView,
    radius: float,
    table: wp.array(dtype=float),
    live: wp.array(dtype=Live),
    # in
    drift: wp.array(dtype=wp.vec4),
    held: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag[s] < 0 or drift[s][3] >= radius:
        return
    d = wp.max(drift[s][3], NEAREST * radius)
    strong = live[0].viscosity / live[0].rest_density * looked_up(table, d / radius) / d
    a = (front(rate_out[s]) - strong * (front(held[s]) - front(drift[s]))) / (1.0 + live[0].dt * strong)
    rate_out[s] = wp.vec4(a[0], a[1], a[2], rate_out[s][3])


class MovingWallVolume(WallShare):
    """Walls that move, of triangles or formulas, as one of a fluid's `boundaries`."""

    def __init__(self, fluid: Fluid, walls: Walls, *, drags: bool = False, curvature: float = 0.0) -> None:
        """`drags`: water sticks to them. `curvature` κ [1/m], about: 1/a in a tube of radius a."""
        super().__init__(fluid)
        p = fluid.params
        if walls.reach < p.radius:
            raise InputError(
                f"these walls are seen from {walls.reach:g} m, kernels reach {p.radius:g} m.",
                "Make them with reach=params.radius.",
            )
        device = fluid.device.warp
        distances = np.linspace(0.0, p.radius, ENTRIES)
        behind = BEHIND * p.spacing

        def table(values: Any) -> wp.array:
            return wp.array(np.asarray(values, dtype=np.float32), dtype=float, device=device)

        self._walls, self._drags = walls, drags
        bent = curvature * p.radius
        self._value = table([flat_share(d + behind, p.radius) for d in distances])
        self._slope = table([flat_slope(d + behind, p.radius) for d in distances])
        self._amount = p.rest_density * calibration(p) * (1.0 + MORE_BEHIND * bent)
        self._drag = table(drag_table(p) * (1.0 + BENT * bent))

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        f = fluid
        wall = [self._walls.view, f.params.radius, self._amount, self._value, self._slope]
        out = [self.share, self.drift, f.density]
        stage.launch(take_near_share, f.capacity, [f.grid.view, *wall, f.grid.position, f.sorted_tag, *out])

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        super().add_force(stage, fluid)
        if self._drags:
            f = fluid
            around = [f.grid.view, f.params.radius, self._drag, f.live]
            stage.launch(drag_near_walls, f.capacity, [*around, self.drift, f.held, f.sorted_tag, f.rate])
