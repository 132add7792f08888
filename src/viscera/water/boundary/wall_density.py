"""Walls with density: the part of each kernel that lies behind a wall counts as water at rest.

    λ(x) = ∫_wall W(x − y) dy,      ρ_i = Σ_j m W_ij + κ ρ₀ λ(x_i),      a_i = − … − 2 κ ρ₀ k_i ∇λ(x_i),   k = p/ρ²

(density maps: Koschier and Bender 2017, doi:10.1145/3099564.3099565; volume maps: Bender, Kugelstadt, Weiler and
Koschier 2019, doi:10.1145/3359566.3360077). λ and ∇λ are computed once per mesh on a grid (volume_map.py), so that
corners and curved walls are right up to the grid. Between nodes x_n with weights w_n

    λ(x) = Σ_n w_n (λ_n + ½ ∇λ_n·(x − x_n)),      ∇λ(x) = Σ_n w_n ∇λ_n,

where the ½ takes away the error of second order. κ makes a lattice half a spacing from a flat wall sum to ρ₀; what
counts as wall begins `BEHIND` the mesh, so that slopes are right as well.

The wall mirrors the particle's pressure. That pressure rises with depth behind the wall too, which carries what the
neighbours cannot of a particle's weight along the wall (wall_weight.py). Without it the layers at walls hang on the
rest, and pressure in a column ten spacings wide is 5 % too high.

In the incompressible solver the wall is a neighbour that does not give way: it adds κ ρ₀ ∇λ·v to the growth of density,
and to D. Contacts stay: they keep every particle inside.

Differs from the sources in the interpolation (there, cubic elements) and in κ. A map stays where it is; for walls that
move, see moving_density.py.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.geometry.inspect import require_closed
from viscera.geometry.mesh import TriangleMesh
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.boundary.volume_map import calibration, volume_map
from viscera.water.boundary.wall_weight import carried, find_weight
from viscera.water.params import FluidParams
from viscera.water.periodic import front
from viscera.water.smoothing import Smoothing
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

MIRROR = wp.constant(2.0)
"""The wall has the particle's own pressure, which counts twice. With 1, incompressible water stands 2.5 % too low."""
_NOTHING = wp.constant(1.0e-4)
"""Share of a kernel below which no wall is near."""
ALONE = wp.constant(1.0e-12)
"""As in pressure_solver.py."""


@wp.struct
class MapView:
    """A map as kernels read it."""

    origin: wp.vec3
    """Of node (0, 0, 0) [m]."""
    spacing: float
    """[m]"""
    value: wp.array3d(dtype=wp.vec4)
    """R ∇λ and λ at nodes."""
    per_radius: float
    """[1/m]"""
    amount: float
    """κ ρ₀ [kg/m³]."""


@wp.func
def sample_map(view: MapView, point: wp.vec3) -> wp.vec4:
    """∇λ [1/m] and λ; nothing outside the grid."""
    p = (point - view.origin) / view.spacing
    i = wp.int32(wp.floor(p[0]))
    j = wp.int32(wp.floor(p[1]))
    k = wp.int32(wp.floor(p[2]))
    total = wp.vec4(0.0, 0.0, 0.0, 0.0)
    shape = view.value.shape
    if i < 0 or j < 0 or k < 0 or i >= shape[0] - 1 or j >= shape[1] - 1 or k >= shape[2] - 1:
        return total
    f = p - wp.vec3(float(i), float(j), float(k))
    half = 0.5 * view.spacing * view.per_radius
    for a in range(2):
        for b in range(2):
            for c in range(2):
                corner = wp.vec3(float(a), float(b), float(c))
                to = f - corner
                weight = (1.0 - wp.abs(to[0])) * (1.0 - wp.abs(to[1])) * (1.0 - wp.abs(to[2]))
                node = view.value[i + a, j + b, k + c]
                rise = node[0] * to[0] + node[1] * to[1] + node[2] * to[2]
                total += weight * wp.vec4(node[0], node[1], node[2], node[3] + half * rise)
    return wp.vec4(
        total[0] * view.per_radius, total[1] * view.per_radius, total[2] * view.per_radius, wp.max(total[3], 0.0)
    )


@wp.kernel
def take_share(
    first: int,
    # params
    grid: GridView,
    view: MapView,
    # in
    position: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    # out
    share_out: wp.array(dtype=wp.vec4),
    density_out: wp.array(dtype=float),
):
    """What walls add to each particle's density, and its gradient: κ ρ₀ ∇λ and κ ρ₀ λ."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    share = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if tag[s] >= 0:
        found = sample_map(view, position[s])
        if found[3] > _NOTHING:
            share = view.amount * found
    share_out[s] = share
    density_out[s] = density_out[s] + share[3]


@wp.kernel
def carry(
    first: int,
    # params
    grid: GridView,
    spacing: float,
    live: wp.array(dtype=Live),
    # in
    original: wp.array(dtype=wp.int32),
    share: wp.array(dtype=wp.vec4),
    weight: wp.array(dtype=wp.vec4),
    warm: wp.array(dtype=float),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    """The same before the incompressible solver, by the pressures of the last step."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or share[s][3] == 0.0:
        return
    a = carried(live[0], spacing, weight[s], warm[original[s]])
    rate_out[s] = rate_out[s] + wp.vec4(a[0], a[1], a[2], 0.0)


@wp.kernel
def push_away(
    first: int,
    # params
    grid: GridView,
    spacing: float,
    live: wp.array(dtype=Live),
    # in
    share: wp.array(dtype=wp.vec4),
    weight: wp.array(dtype=wp.vec4),
    drift: wp.array(dtype=wp.vec4),
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    """Where pressure comes from an equation of state; and density by continuity."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or share[s][3] == 0.0:
        return
    g = front(share[s])
    a = -MIRROR * place[s][3] * g + carried(live[0], spacing, weight[s], place[s][3])
    rate_out[s] = rate_out[s] + wp.vec4(a[0], a[1], a[2], wp.dot(g, front(motion[s]) - front(drift[s])))


@wp.kernel
def begin_at_walls(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # in
    held: wp.array(dtype=wp.vec4),
    rate: wp.array(dtype=wp.vec4),
    share: wp.array(dtype=wp.vec4),
    drift: wp.array(dtype=wp.vec4),
    own: wp.array(dtype=wp.vec4),
    # out
    system_out: wp.array(dtype=wp.vec2),
):
    """The equation of a particle at a wall: ρ^adv with the wall's growth, and D with its gradient."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or share[s][3] == 0.0:
        return
    dt = live[0].dt
    g = front(share[s])
    without = front(own[s])
    diagonal = own[s][3] + wp.dot(without + g, without + MIRROR * g)
    scale = live[0].rest_density * smoothing.per_radius
    per = float(0.0)
    if diagonal > ALONE * scale * scale and dt > 0.0:
        per = 1.0 / (dt * dt * diagonal)
    v = front(held[s]) + dt * front(rate[s]) - front(drift[s])
    system_out[s] = wp.vec2(system_out[s][0] + dt * wp.dot(v, g), per)


@wp.kernel
def iterate_at_walls(
    first: int,
    # params
    grid: GridView,
    relaxation: float,
    live: wp.array(dtype=Live),
    # in
    share: wp.array(dtype=wp.vec4),
    system: wp.array(dtype=wp.vec2),
    # out
    place_out: wp.array(dtype=wp.vec4),
    push_out: wp.array(dtype=wp.vec4),
):
    """Between `push` and `relax`: the wall's push, and what it changes in the density that `relax` expects, put into k
    beforehand (`relax` adds to the own k alone). With a relaxation of 0 only the push."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or share[s][3] == 0.0:
        return
    g = front(share[s])
    here = place_out[s]
    pushed = front(push_out[s]) - MIRROR * here[3] * g
    push_out[s] = wp.vec4(pushed[0], pushed[1], pushed[2], 0.0)
    dt = live[0].dt
    change = relaxation * dt * dt * wp.dot(g, pushed) * system[s][1]
    place_out[s] = wp.vec4(here[0], here[1], here[2], here[3] + change)


@wp.kernel
def iterate_at_walls_natively(
    first: int,
    # params
    grid: GridView,
    relaxation: float,
    live: wp.array(dtype=Live),
    # in
    share: wp.array(dtype=wp.vec4),
    system: wp.array(dtype=wp.vec2),
    # out
    k_out: wp.array(dtype=float),
    px_out: wp.array(dtype=float),
    py_out: wp.array(dtype=float),
    pz_out: wp.array(dtype=float),
):
    """The same for the loops in C, whose arrays are one per axis."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or share[s][3] == 0.0:
        return
    g = front(share[s])
    k = k_out[s]
    pushed = wp.vec3(px_out[s], py_out[s], pz_out[s]) - MIRROR * k * g
    px_out[s] = pushed[0]
    py_out[s] = pushed[1]
    pz_out[s] = pushed[2]
    dt = live[0].dt
    k_out[s] = k + relaxation * dt * dt * wp.dot(g, pushed) * system[s][1]


class WallShare:
    """What walls do with their share in the density, wherever it comes from."""

    adds_density = True
    adds_force = True

    def __init__(self, fluid: Fluid, *, weighs: bool = False) -> None:
        """`weighs`: what walls carry of a particle's weight is summed over its neighbours, else it is λ."""
        p = fluid.params
        if p.kernels != "spline" or p.dimension != 3:
            raise InputError(
                "walls with density need the spline in 3D.",
                'Choose kernels="spline" and dimension=3, or leave the walls to contacts alone.',
            )
        device = fluid.device.warp
        self._weighs = weighs and not p.compressible
        self._standing = wp.vec3(*(0.0 if period else 1.0 for period in p.periodic))
        self.share = wp.zeros(fluid.capacity, dtype=wp.vec4, device=device)
        """κ ρ₀ ∇λ and κ ρ₀ λ of each particle, sorted."""
        self.weight = wp.zeros(fluid.capacity, dtype=wp.vec4, device=device)
        """Gravity along the wall [m/s²], and the part of it that the wall carries, μ."""
        self.drift = wp.zeros(fluid.capacity, dtype=wp.vec4, device=device)
        """Velocity of the wall beside each [m/s], and its distance [m] where walls move."""

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        f, n = fluid, fluid.capacity
        find_weight(stage, f, self._standing, self.share, self.weight, from_neighbours=self._weighs)
        live, shares = [f.grid.view, f.params.spacing, f.live], [self.share, self.weight]
        if f.params.compressible:
            stage.launch(push_away, n, [*live, *shares, self.drift, f.place, f.motion, f.rate])
        else:
            stage.launch(carry, n, [*live, f.grid.original, *shares, f.extra["warm"], f.rate])

    def begin_solving(self, stage: Stage, fluid: Fluid) -> None:
        f, x = fluid, fluid.extra
        args = [f.grid.view, f.smoothing, f.live, f.held, f.rate, self.share, self.drift, x["own"], x["system"]]
        stage.launch(begin_at_walls, f.capacity, args)

    def iterate(self, stage: Stage, fluid: Fluid, relaxation: float) -> None:
        f, x = fluid, fluid.extra
        around = [f.grid.view, relaxation, f.live, self.share, x["system"]]
        if f.native:
            stage.launch(iterate_at_walls_natively, f.capacity, [*around, *f.axes[3:7]])
        else:
            stage.launch(iterate_at_walls, f.capacity, [*around, f.place, x["push"]])

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        pass


class WallVolume(WallShare):
    """The volume behind a closed mesh that stands as one of a fluid's `boundaries`."""

    def __init__(self, fluid: Fluid, mesh: TriangleMesh, *, fluid_inside: bool = True, weighs: bool = False) -> None:
        super().__init__(fluid, weighs=weighs)
        p = fluid.params
        _check_periods(p, mesh)
        origin, spacing, values = volume_map(require_closed(mesh), p, fluid.device, fluid_inside=fluid_inside)
        view: Any = MapView()
        view.origin, view.spacing = wp.vec3(*origin.tolist()), spacing
        view.value = wp.array(values, dtype=wp.vec4, device=fluid.device.warp)
        view.per_radius = 1.0 / p.radius
        view.amount = p.rest_density * calibration(p)
        self.view = view

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        f = fluid
        args = [f.grid.view, self.view, f.grid.position, f.sorted_tag, self.share, f.density]
        stage.launch(take_share, f.capacity, args)


def _check_periods(params: FluidParams, mesh: TriangleMesh) -> None:
    """A mesh goes on through the ends of a box with a period: what is there repeats."""
    low, high = mesh.bounds
    for axis in range(3):
        inside = low[axis] > params.lower[axis] - params.radius or high[axis] < params.upper[axis] + params.radius
        if params.periodic[axis] and inside:
            raise InputError(
                f"{mesh.name} ends inside the period along {'xyz'[axis]}.",
                f"Let it go on for at least {params.radius:g} m beyond the box, at both ends, as it repeats.",
            )
