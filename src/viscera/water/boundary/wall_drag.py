"""Walls that drag: the water behind a wall counts as if it moved on past it, so that water at the wall sticks to it.

At a distance d from a flat wall that moves with u, velocity is continued behind the wall in a straight line: at a depth
n from the particle it is u − (v − u)(n − d)/d. Morris' viscosity (forces.py) over the part of the kernel behind the
wall is then

    a = −ν S(d) (v − u),      S(d) = ∫_{n>d} (−2W'/r)(n/d) dV = (4π/d) ∫_d^R W(r) r dr,

times one number that makes it exact on a lattice half a spacing from the wall, where a linear profile must feel nothing
(1.02 to 1.05, from the support). A wall that bends around the water has more of the kernel behind it: with the sum κ of
both its curvatures S grows by 1 + 0.33 κ R, which a tube's parabola needs within 1 % for d up to 0.7 spacings and tubes
of 6 spacings' radius and more. Drag is taken implicitly, so it bounds no step: a ← (a − νS(v − u))/(1 + dt νS).

Adami et al. 2012 (doi:10.1016/j.jcp.2012.05.005) do the same with wall particles. Distances are those of a sampled
field (field.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.errors import InputError
from viscera.geometry.distance import FieldGrid, sample_field
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.boundary.field import make_field
from viscera.water.boundary.volume_map import NODES, spline_slope
from viscera.water.boundary.walls import Walls
from viscera.water.params import FluidParams
from viscera.water.periodic import front
from viscera.water.smoothing import lattice_sum, spline
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

ENTRIES = 64
"""Of the table of d S(d), from 0 to R."""
NEAREST = wp.constant(0.1)
"""Distances count as at least this part of R."""
BENT = wp.constant(0.33)
MOST_BENT = wp.constant(0.4)
"""Of the change by curvature: edges and corners are not bent, but broken."""


def drag_table(params: FluidParams) -> NDArray[np.float32]:
    """d S(d) [1/m] at `ENTRIES` distances from 0 to R."""
    radius, s = params.radius, params.spacing
    r = np.linspace(0.0, radius, 32 * (ENTRIES - 1) + 1)
    inner = spline(r, radius, 3) * r
    total = np.concatenate([[0.0], np.cumsum(0.5 * (inner[1:] + inner[:-1]) * np.diff(r))])
    behind = 4.0 * np.pi * (total[-1] - total)
    half = float(np.interp(0.5 * s, r, behind)) / (0.5 * s)
    return (behind[::32] * lattice_drag(params) / half).astype(np.float32)


def lattice_drag(params: FluidParams) -> float:
    """S [1/m²] that a lattice half a spacing from a flat wall needs, so that a linear profile feels nothing there."""
    radius, s = params.radius, params.spacing
    reach = int(np.ceil(radius / s))
    axis = s * np.arange(-reach, reach + 1)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    r = np.sqrt(x**2 + y**2 + z**2)
    pair = -2.0 * spline_slope(r, radius) / np.maximum(r, 1e-9 * radius)
    above = z > 0.25 * s
    return float((pair * z)[above].sum()) / lattice_sum("spline", radius, s, 3) / (0.5 * s)


@wp.func
def curvature(field: FieldGrid, point: wp.vec3, step: float) -> float:
    """∇²φ of the distance: the sum of both curvatures of the wall [1/m], positive where the mesh bulges outwards."""
    total = -6.0 * sample_field(field, point)[3]
    for axis in range(3):
        way = wp.vec3(0.0, 0.0, 0.0)
        way[axis] = step
        total += sample_field(field, point + way)[3] + sample_field(field, point - way)[3]
    return total / (step * step)


@wp.kernel
def drag_at_walls(
    first: int,
    # params
    grid: GridView,
    field: wp.array(dtype=FieldGrid),
    side: float,
    radius: float,
    table: wp.array(dtype=float),
    velocity: wp.array(dtype=wp.vec3),
    live: wp.array(dtype=Live),
    # in
    position: wp.array(dtype=wp.vec3),
    held: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag[s] < 0:
        return
    distance = side * sample_field(field[0], position[s])[3]
    if distance >= radius:
        return
    d = wp.max(distance, NEAREST * radius)
    place = d / radius * float(table.shape[0] - 1)
    k = wp.min(wp.int32(place), table.shape[0] - 2)
    share = wp.lerp(table[k], table[k + 1], place - float(k))
    bend = wp.clamp(BENT * radius * side * curvature(field[0], position[s], 0.5 * radius), -MOST_BENT, MOST_BENT)
    strong = live[0].viscosity / live[0].rest_density * share / d * (1.0 - bend)
    a = (front(rate_out[s]) - strong * (front(held[s]) - velocity[0])) / (1.0 + live[0].dt * strong)
    rate_out[s] = wp.vec4(a[0], a[1], a[2], rate_out[s][3])


class WallDrag:
    """The drag of a closed mesh as one of a fluid's `boundaries`."""

    adds_density = False
    adds_force = True

    def __init__(self, fluid: Fluid, walls: Walls, velocity: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """`velocity` of the wall's surface [m/s]: a belt that runs along a wall that stands, as a wave seen by whoever
        goes with it."""
        p = fluid.params
        if walls.mesh is None or not walls.closed or walls.deforming or p.kernels != "spline" or p.dimension != 3:
            raise InputError(
                "these walls cannot drag.",
                'They must be of a closed mesh that keeps its shape, and the fluid in 3D with kernels="spline".',
            )
        device = fluid.device.warp
        found = make_field(walls.mesh, p.radius / NODES, 1.6 * p.radius, fluid.device)
        self._field = wp.array([found.grid], dtype=FieldGrid, device=device)
        self._keeps = found
        self._side = -1.0 if walls.fluid_inside else 1.0
        self._table = wp.array(drag_table(p), dtype=float, device=device)
        self._velocity = wp.array([wp.vec3(*velocity)], dtype=wp.vec3, device=device)

    def set_velocity(self, velocity: Sequence[float]) -> None:
        """Of the wall's surface from now on [m/s], also in recorded programs."""
        self._velocity.assign(np.asarray([velocity], dtype=np.float32))

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        f = fluid
        walls = [self._field, self._side, f.params.radius, self._table, self._velocity]
        stage.launch(
            drag_at_walls, f.capacity, [f.grid.view, *walls, f.live, f.grid.position, f.held, f.sorted_tag, f.rate]
        )

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        pass
