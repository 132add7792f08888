"""Walls with density that move: the same as wall_density.py, from the triangles around each particle instead of a map.

A map takes seconds to make, so walls that change their shape have none. For a closed mesh λ and ∇λ are summed over the
triangles in a kernel's reach, exactly (triangle_share.py). What counts as wall begins `BEHIND` the mesh: its vertices
are moved outwards, so that each face around them is (normals weighted by angle). The wall's water moves with it, so
density grows by κ ρ₀ (∇λ·v − Σ ∇λ_T·u_T), where triangles move with u_T.

Formulas, open meshes and walls of which `nearest` is enough are taken as flat over a kernel's radius:

    λ(d) = ∫_d^R 2πr (r − d) W dr,      ∇λ = λ'(d) n,      λ'(d) = −∫_d^R 2πr W dr,

with the distance d of the nearest wall and the normal n from it. Of a wall that bends around the water more lies in the
kernel: `curvature`, the sum κ of both, makes λ larger by 1 + 0.25 κR and S (wall_drag.py) by 1 + 0.33 κR, which is what
tubes have at half a spacing. In edges and corners only the nearest wall counts there, so water is up to a third of λ
short: in a box of triangles pressure was 11 % off at the wall (rms), and the water shook at 63 mm/s. In exchange it
takes a tenth of the time or less: 0.6 ms a step of one core for 1 000 particles in a colon of 8 040 triangles, 8 ms
summed.

Beyond `SEEN` radii nothing is left of λ. A mesh in a vessel is not asked by every particle in every step: the lists of
triangles that its contacts keep (known.py) answer where they are long enough, to the same bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.boundary.behind import Behind
from viscera.water.boundary.known import Known, good_for, learn, nearest_known
from viscera.water.boundary.nearest import Nearest
from viscera.water.boundary.triangle_share import (
    UNIT,
    Around,
    ShareSum,
    make_edge_table,
    of_sum,
    share_around,
    share_of_known,
)
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.volume_map import BEHIND, calibration, flat_share, flat_slope
from viscera.water.boundary.wall_density import WallShare
from viscera.water.boundary.wall_drag import NEAREST, drag_table
from viscera.water.boundary.walls import Walls, WallsView, nearest_wall
from viscera.water.periodic import front
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

ENTRIES = 64
"""Of the tables, from 0 to R."""
SEEN = wp.constant(0.8)
"""Walls farther than this share of R count as none: λ is below 2·10⁻⁵ there, as what counts as wall begins behind."""
SEEN_FROM = 0.85
"""Reach that walls must have, over R."""
MORE_BEHIND = 0.25
BENT = 0.33
"""As in wall_drag.py."""
_LITTLE = wp.constant(1.0e-8)
"""Square of R ∇λ below which a wall is too far to bring anything."""


@wp.func
def looked_up(table: wp.array(dtype=float), share: float) -> float:
    """At a share of R, between two entries."""
    place = wp.clamp(share, 0.0, 1.0) * float(table.shape[0] - 1)
    k = wp.min(wp.int32(place), table.shape[0] - 2)
    return wp.lerp(table[k], table[k + 1], place - float(k))


@wp.struct
class NearShare:
    """What the share follows from, by distance."""

    radius: float
    """R [m]."""
    amount: float
    """κ ρ₀ of a wall that is bent as told [kg/m³]."""
    exact: float
    """κ ρ₀ [kg/m³]."""
    value: wp.array(dtype=float)
    slope: wp.array(dtype=float)


@wp.func
def put_share(
    one: NearShare,
    near: Nearest,
    s: int,
    share_out: wp.array(dtype=wp.vec4),
    drift_out: wp.array(dtype=wp.vec4),
    density_out: wp.array(dtype=float),
):
    """κ ρ₀ ∇λ and κ ρ₀ λ of a particle; and velocity and distance of the wall that gives it."""
    part = near.distance / one.radius
    g = one.amount * looked_up(one.slope, part) * near.normal
    share_out[s] = wp.vec4(g[0], g[1], g[2], one.amount * looked_up(one.value, part))
    u = near.velocity
    drift_out[s] = wp.vec4(u[0], u[1], u[2], near.distance)
    density_out[s] = density_out[s] + share_out[s][3]


@wp.func
def put_sum(
    one: NearShare,
    near: Nearest,
    sum: ShareSum,
    s: int,
    share_out: wp.array(dtype=wp.vec4),
    drift_out: wp.array(dtype=wp.vec4),
    density_out: wp.array(dtype=float),
):
    """The same from the sum over the triangles around it. The velocity is that of the nearest wall, and along ∇λ such
    that all triangles together bring as much as they do."""
    found = of_sum(sum)
    g = front(found)
    u = near.velocity
    square = wp.dot(g, g)
    if square > _LITTLE:
        u += ((float(sum.growth) * UNIT - wp.dot(g, u)) / square) * g
    scale = one.exact / one.radius
    share_out[s] = wp.vec4(scale * g[0], scale * g[1], scale * g[2], one.exact * found[3])
    drift_out[s] = wp.vec4(u[0], u[1], u[2], near.distance)
    density_out[s] = density_out[s] + share_out[s][3]


@wp.kernel
def take_near_share(
    first: int,
    # params
    grid: GridView,
    walls: WallsView,
    one: NearShare,
    around: Around,
    # in
    position: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    # out
    share_out: wp.array(dtype=wp.vec4),
    drift_out: wp.array(dtype=wp.vec4),
    density_out: wp.array(dtype=float),
):
    """Of each particle, which asks the walls."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    share_out[s] = wp.vec4(0.0, 0.0, 0.0, 0.0)
    drift_out[s] = wp.vec4(0.0, 0.0, 0.0, one.radius)
    if tag[s] >= 0:
        near = nearest_wall(walls, position[s])
        if near.distance < SEEN * one.radius:
            if around.seen > 0.0:
                sum = share_around(around, walls, position[s])
                put_sum(one, near, sum, s, share_out, drift_out, density_out)
            else:
                put_share(one, near, s, share_out, drift_out, density_out)


@wp.func
def age(known_out: wp.array(dtype=Known), i: int, moved: float):
    """What particle i knows, after the mesh has moved. Contacts do it again in the same step, which is too careful."""
    ball = known_out[i].ball
    known_out[i].ball = wp.vec4(ball[0], ball[1], ball[2], ball[3] - moved)
    known_out[i].clear = known_out[i].clear - moved
    for k in range(known_out[i].count):
        known_out[i].away[k] = known_out[i].away[k] - moved


@wp.kernel
def take_known_share(
    first: int,
    # params
    grid: GridView,
    walls: WallsView,
    one: NearShare,
    around: Around,
    # in
    original: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    # out
    known_out: wp.array(dtype=Known),
    share_out: wp.array(dtype=wp.vec4),
    drift_out: wp.array(dtype=wp.vec4),
    density_out: wp.array(dtype=float),
):
    """The same from what each particle knows of the mesh since its last contacts, before which the mesh has moved on;
    one that knows too little asks again."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    share_out[s] = wp.vec4(0.0, 0.0, 0.0, 0.0)
    drift_out[s] = wp.vec4(0.0, 0.0, 0.0, one.radius)
    if tag[s] >= 0:
        i = original[s]
        age(known_out, i, walls.moved[1])
        near = nearest_known(walls, known_out, i, position[s])
        good = good_for(known_out, i, position[s])
        if good < SEEN * one.radius and near.distance >= good:
            learn(walls, position[s], i, known_out)
            near = nearest_known(walls, known_out, i, position[s])
            known_out[i].clear = near.free
        if near.face >= 0 and near.distance < SEEN * one.radius:
            if around.seen > 0.0:
                sum = share_of_known(around, walls, known_out, i, position[s])
                put_sum(one, near, sum, s, share_out, drift_out, density_out)
            else:
                put_share(one, near, s, share_out, drift_out, density_out)


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


def _listed(walls: Walls) -> bool:
    """Whether all of them are triangles that can be asked for."""
    return walls.structure in ("hashed", "hierarchy") and not walls.shapes


def _summed(walls: Walls) -> bool:
    return _listed(walls) and walls.closed


class MovingWallVolume(WallShare):
    """Walls that move, of triangles or formulas, as one of a fluid's `boundaries`."""

    def __init__(
        self,
        fluid: Fluid,
        walls: Walls,
        *,
        drags: bool = False,
        curvature: float = 0.0,
        nearest: bool = False,
        weighs: bool = False,
    ) -> None:
        """`drags`: water sticks to them. `curvature` κ [1/m], about: 1/a in a tube of radius a. `nearest`: only the
        nearest triangle counts, which is quick. `weighs`: see `WallShare`."""
        super().__init__(fluid, weighs=weighs)
        p = fluid.params
        if walls.reach < SEEN_FROM * p.radius:
            raise InputError(
                f"these walls are seen from {walls.reach:g} m, kernels reach {p.radius:g} m.",
                f"Make them with reach=params.radius; {SEEN_FROM:g} of it is enough.",
            )
        device = fluid.device.warp
        distances = np.linspace(0.0, p.radius, ENTRIES)
        behind = BEHIND * p.spacing

        def table(values: Any) -> wp.array:
            return wp.array(np.asarray(values, dtype=np.float32), dtype=float, device=device)

        self._walls, self._drags = walls, drags
        bent = curvature * p.radius
        one: Any = NearShare()
        one.radius, one.exact = p.radius, p.rest_density * calibration(p)
        one.amount = one.exact * (1.0 + MORE_BEHIND * bent)
        one.value = table([flat_share(d + behind, p.radius) for d in distances])
        one.slope = table([flat_slope(d + behind, p.radius) for d in distances])
        self._near = one
        self._drag = table(drag_table(p) * (1.0 + BENT * bent))
        self._behind = (
            Behind(walls, behind if walls.fluid_inside else -behind) if _summed(walls) and not nearest else None
        )
        self._around = self._triangles(fluid)

    def _triangles(self, fluid: Fluid) -> Any:
        """Of a closed mesh; of other walls none, so that the nearest one counts."""
        around: Any = Around()
        if self._behind is not None:
            around.table, around.behind = make_edge_table(fluid.device), self._behind.corners
            around.radius, around.seen = fluid.params.radius, SEEN * fluid.params.radius
            around.inside = self._walls.fluid_inside
        return around

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        f = fluid
        around = [f.grid.view, self._walls.view, self._near, self._around]
        out = [self.share, self.drift, f.density]
        if self._behind is not None:
            self._behind.step(stage)
        vessel = self._vessel(f)
        if vessel is None:
            stage.launch(take_near_share, f.capacity, [*around, f.grid.position, f.sorted_tag, *out])
        else:
            known = [f.grid.original, f.grid.position, f.sorted_tag, vessel.contacts.last_known]
            stage.launch(take_known_share, f.capacity, [*around, *known, *out])

    def _vessel(self, fluid: Fluid) -> Vessel | None:
        """The one of these walls, if it keeps lists of all of them: of triangles alone."""
        found = [one for one in fluid.boundaries if isinstance(one, Vessel) and one.walls is self._walls]
        return found[0] if found and _listed(self._walls) else None

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        super().add_force(stage, fluid)
        if self._drags:
            f = fluid
            around = [f.grid.view, f.params.radius, self._drag, f.live]
            stage.launch(drag_near_walls, f.capacity, [*around, self.drift, f.held, f.sorted_tag, f.rate])
