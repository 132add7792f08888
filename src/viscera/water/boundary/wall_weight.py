"""What a wall carries of a particle's weight: the part that its neighbours cannot.

Of a pressure that rises by ρ g, a particle's neighbours carry the part Σ_j V (x_ij·t)² (−W'/r) / t² of its weight t
along a wall, t = g − (g·n) n. One with others all around it lacks nothing; at a wall it lacks what would lie behind:

    a_i ← a_i − μ t,      μ = 1 − Σ_j V (x_ij·t)² (−W'/r) / t²

Of water that fills its half space evenly μ is the wall's share λ of the kernel (wall_density.py), but particles at a
wall stand in a sheet: there μ is 15 % more (in a real colon), and with λ for it the pressure rose by 1.7 % too much in
a part seven spacings wide. On a lattice neighbours carry 2 % more than their part, which λ fits better: water with an
equation of state, which keeps near its lattice, has λ. So has barium while it runs (scenarios/barium): thin streams
lack neighbours at their free surface too, which no wall carries; with μ they were 1.12 % too dense in the mean, with λ
0.99 %.
"""

from __future__ import annotations

import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water.native import GROUP, launch, loop
from viscera.water.native_solver import STEEP
from viscera.water.periodic import front, image, image_count, reaches
from viscera.water.smoothing import Smoothing, slope
from viscera.water.state import Fluid, Images, Live

wp.set_module_options({"enable_backward": False})

_GROUP = wp.constant(GROUP)
UPRIGHT = wp.constant(1.0e-4)
"""Square of t over that of g below which a wall lies flat."""
MOST = wp.constant(0.5)
"""Largest μ: at a wall that stands upright it is 0.15 to 0.3."""


@wp.func
def carried(live: Live, spacing: float, weight: wp.vec4, k: float) -> wp.vec3:
    """What the wall carries of the `weight` along it, t and μ. Only as far as there is pressure, so that drops slide
    down a dry wall as they should."""
    deep = k * live.rest_density / (wp.length(live.gravity) * spacing + 1.0e-12)
    return -(wp.min(deep, 1.0) * weight[3]) * front(weight)


@wp.kernel
def find_along(
    first: int,
    # params
    grid: GridView,
    standing: wp.vec3,
    live: wp.array(dtype=Live),
    # in
    share: wp.array(dtype=wp.vec4),
    # out
    weight_out: wp.array(dtype=wp.vec4),
):
    """t and λ; 0 where no wall stands. `standing` is 0 along axes with a period, where no pressure can rise for good,
    and 1 along others."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    weight_out[s] = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if share[s][3] > 0.0:
        n = wp.normalize(front(share[s]))
        whole = wp.cw_mul(standing, live[0].gravity)
        along = whole - wp.dot(whole, n) * n
        if wp.length_sq(along) > UPRIGHT * wp.length_sq(whole):
            weight_out[s] = wp.vec4(along[0], along[1], along[2], share[s][3] / live[0].rest_density)


@wp.kernel
def weigh(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    live: wp.array(dtype=Live),
    # in
    position: wp.array(dtype=wp.vec3),
    # out
    weight_out: wp.array(dtype=wp.vec4),
):
    """μ of particles at walls."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or weight_out[s][3] == 0.0:
        return
    here = position[s]
    along = front(weight_out[s])
    total = float(0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                start, end = row_range(grid, cell, row)
                for t in range(start, end):
                    offset = there - position[t]
                    r2 = wp.dot(offset, offset)
                    if r2 < smoothing.radius2:
                        to = wp.dot(offset, along)
                        total -= slope(smoothing, wp.sqrt(r2)) * to * to
    carries = live[0].mass / live[0].rest_density * total / wp.dot(along, along)
    weight_out[s] = wp.vec4(along[0], along[1], along[2], wp.clamp(1.0 - carries, 0.0, MOST))


_SKIP = "if (weight.data[s][3] == 0.0f) continue;"

_START = """
    const float ax = weight.data[s][0], ay = weight.data[s][1], az = weight.data[s][2];
    V total = 0.0f;
"""

_BODY = (
    "V steep;"
    + STEEP
    + """
            const V to = dx * ax + dy * ay + dz * az;
            total -= steep * to * to;
"""
)

_END = """
    const float square = ax * ax + ay * ay + az * az;
    const float lack = 1.0f - live.mass / live.rest_density * SUM_IN_ORDER(total) / square;
    weight.data[s][3] = lack < 0.0f ? 0.0f : lack > most ? most : lack;
"""


@wp.func_native(loop(_START, _BODY, _END, _SKIP))
def weights(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    first: int,
    most: float,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    weight: wp.array(dtype=wp.vec4),
): ...


@wp.kernel
def weigh_natively(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # in
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    weight_out: wp.array(dtype=wp.vec4),
):
    """The same in C for cpu, 16 neighbours at once."""
    weights(grid, smoothing, live[0], (first + wp.tid()) * _GROUP, MOST, x, y, z, hits, weight_out)


def find_weight(
    stage: Stage, fluid: Fluid, standing: wp.vec3, share: wp.array, weight: wp.array, *, from_neighbours: bool
) -> None:
    """t and μ of each particle, 0 where no wall is; λ for μ where neighbours are not asked."""
    f = fluid
    stage.launch(find_along, f.capacity, [f.grid.view, standing, f.live, share, weight])
    if not from_neighbours:
        return
    if f.native:
        args = [f.grid.view, f.smoothing, f.live, *f.axes[:3], f.extra["hits"], weight]
        launch(stage, weigh_natively, f.capacity, args)
    else:
        args = [f.grid.view, f.smoothing, f.images, f.live, f.grid.position, weight]
        stage.launch(weigh, f.capacity, args)
