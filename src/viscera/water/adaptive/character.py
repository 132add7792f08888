"""How much a place in the fluid deserves small particles: the character field (He et al. 2010, Elmasdotter §3.6.3).

    c_i = [α d_i/d_max + β (1 − p_i/p_max) + γ N_i/N_max] / (α + β + γ)                                  eq. 3.45

d is the distance to the nearest particle at a surface or wall, p the pressure (never below 0), N the number of
neighbours. At a surface are those with

    |n_i| h_i ≥ ν,   n = Σ_j (m_j/ρ_j) ∇W(r, √(h_i h_j))                                                 eq. 3.44

or with fewer than `LONELY` neighbours. W is poly6. Distances are found up to `reach` cells; deeper counts as that.

Differs from the source in that the threshold for the normal does not depend on the unit of length: its l = √(ρ₀/x) is
ν = 0.32 at its own size of particles, which in stirred water finds two of three at a surface; 1.0 finds one of five,
and of the topmost particles of a broken dam 5 % stay large. Lonely particles are surface, where the source would find
no surface near them and merge them; and d ends at the reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from viscera.device import BLOCK, Stage
from viscera.native import fill
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.neighbors.grid import LANES
from viscera.water import native
from viscera.water.adaptive.matching import count_before, in_groups
from viscera.water.mixed import half_power
from viscera.water.native import GROUP, SQUARE, loop
from viscera.water.periodic import front, read4
from viscera.water.smoothing import Smoothing
from viscera.water.state import Fluid

wp.set_module_options({"enable_backward": False})

LONELY = wp.constant(6)
"""Neighbours, itself among them, below which a particle is at a surface whatever its normal."""
_BLOCK = wp.constant(BLOCK)
_GROUP = wp.constant(GROUP)


@wp.kernel
def find_normals(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    steep_from: float,
    # in
    place: wp.array(dtype=wp.vec4),
    density: wp.array(dtype=float),
    load: wp.array(dtype=wp.vec2),
    # out
    at_surface_out: wp.array(dtype=wp.int32),
    neighbours_out: wp.array(dtype=wp.int32),
):
    s = first + wp.tid()
    if s >= at_surface_out.shape[0]:
        return
    if s >= sorted_count(grid):
        at_surface_out[s] = 0
        return
    here = front(read4(place, s))
    own = place[s][3]
    normal = wp.vec3(0.0, 0.0, 0.0)
    near = wp.int32(0)
    cell = cell_of(grid, here)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            other = read4(place, t)
            offset = here - front(other)
            q2 = wp.dot(offset, offset) * (own * other[3])
            if q2 < 1.0:
                near += 1
                normal += (other[3] * load[t][1] / density[t] * (1.0 - q2) * (1.0 - q2)) * offset
    # |n| h: one of the 1/h that the slope has falls out.
    steep = 6.0 * unit.curve * half_power(own, grid.layer) * wp.length(normal)
    neighbours_out[s] = near
    at_surface_out[s] = wp.where(steep >= steep_from or near < LONELY, 1, 0)


_START = """
    const float own = inverse_radius.data[s];
    V nx = 0.0f, ny = 0.0f, nz = 0.0f;
    I near = 0;
"""

_BODY = """
            const V a = 1.0f - r2;
            const V w = inside ? a * a * LOAD(volume.data + t) : (V)0.0f;
            nx += w * dx;
            ny += w * dy;
            nz += w * dz;
            near -= inside;
"""

_END = fill(
    """
    const float sx = SUM_IN_ORDER(nx), sy = SUM_IN_ORDER(ny), sz = SUM_IN_ORDER(nz);
    const float half_power = grid.layer > 0 ? own * ROOT1(own) : own;
    const float steep = 6.0f * smoothing.curve * half_power * ROOT1(sx * sx + sy * sy + sz * sz);
    const int found = (int)SUM_IN_ORDER(REAL(near));
    neighbours.data[s] = found;
    at_surface.data[s] = steep >= steep_from || found < $lonely ? 1 : 0;
""",
    lonely=int(LONELY),
)


@wp.func_native(loop(_START, _BODY, _END, square=f"({SQUARE}) * (own * LOAD(inverse_radius.data + t))"))
def normals(
    grid: GridView,
    smoothing: Smoothing,
    steep_from: float,
    first: int,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    volume: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    at_surface: wp.array(dtype=wp.int32),
    neighbours: wp.array(dtype=wp.int32),
): ...


@wp.kernel
def find_volumes(
    first: int,
    # params
    group: int,
    # in
    grid: GridView,
    density: wp.array(dtype=float),
    pull: wp.array(dtype=float),
    # out
    volume_out: wp.array(dtype=float),
):
    """What a neighbour's place weighs in a normal."""
    start = (first + wp.tid()) * group
    for s in range(start, wp.min(start + group, sorted_count(grid))):
        volume_out[s] = pull[s] / density[s]


@wp.kernel
def find_normals_natively(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    steep_from: float,
    # in
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    volume: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    at_surface_out: wp.array(dtype=wp.int32),
    neighbours_out: wp.array(dtype=wp.int32),
):
    s = (first + wp.tid()) * _GROUP
    for k in range(wp.max(s, sorted_count(grid)), wp.min(s + _GROUP, at_surface_out.shape[0])):
        at_surface_out[k] = 0
    normals(
        grid, unit, steep_from, s, x, y, z, inverse_radius, volume, hits, at_surface_out, neighbours_out
    )  # fmt: skip


@wp.kernel
def list_surface(
    first: int,
    # params
    group: int,
    # in
    grid: GridView,
    place: wp.array(dtype=wp.vec4),
    at_surface: wp.array(dtype=wp.int32),
    ordinal: wp.array(dtype=wp.int32),
    # out
    listed_out: wp.array(dtype=wp.vec3),
):
    """Places of those at the surface, in sorted order; `ordinal` counts them up to and with each."""
    start = (first + wp.tid()) * group
    for s in range(start, wp.min(start + group, sorted_count(grid))):
        if at_surface[s] != 0:
            listed_out[ordinal[s] - 1] = front(place[s])


@wp.func
def nearest_in_cells(
    grid: GridView, here: wp.vec3, y: int, z: int, left: int, right: int, best2: float,
    ordinal: wp.array(dtype=wp.int32), listed: wp.array(dtype=wp.vec3),
) -> float:  # fmt: skip
    """Square of the distance to the nearest listed one in cells left … right of a row, if below `best2`."""
    a = wp.max(left, 0)
    b = wp.min(right, grid.cells_x - 1)
    if a <= b and y >= 0 and y < grid.cells_y and z >= 0 and z < grid.cells_z:
        base = (z * grid.cells_y + y) * grid.cells_x
        begin = count_before(ordinal, grid.cell_start[base + a])
        end = count_before(ordinal, grid.cell_start[base + b + 1])
        for k in range(begin, end):
            away = listed[k] - here
            best2 = wp.min(best2, wp.dot(away, away))
    return best2


@wp.kernel
def find_depths(
    first: int,
    # params
    grid: GridView,
    reach: int,
    # in
    place: wp.array(dtype=wp.vec4),
    at_surface: wp.array(dtype=wp.int32),
    ordinal: wp.array(dtype=wp.int32),
    listed: wp.array(dtype=wp.vec3),
    # out
    depth_out: wp.array(dtype=float),
):
    """Ring by ring of cells: all within k sides are known after ring k."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    if at_surface[s] != 0:
        depth_out[s] = 0.0
        return
    here = front(read4(place, s))
    cell = cell_of(grid, here)
    side = 1.0 / grid.cells_per_length
    farthest = float(reach) * side
    best2 = farthest * farthest
    ring = wp.int32(0)
    while ring <= reach:
        known = float(ring - 1) * side
        if ring > 0 and best2 <= known * known:
            break
        layers = ring * wp.min(grid.layer, 1)
        for dz in range(-layers, layers + 1):
            for dy in range(-ring, ring + 1):
                y = cell[1] + dy
                z = cell[2] + dz
                if wp.abs(dy) == ring or wp.abs(dz) == ring:
                    best2 = nearest_in_cells(
                        grid, here, y, z, cell[0] - ring, cell[0] + ring, best2, ordinal, listed
                    )  # fmt: skip
                else:
                    west = cell[0] - ring
                    east = cell[0] + ring
                    best2 = nearest_in_cells(grid, here, y, z, west, west, best2, ordinal, listed)
                    best2 = nearest_in_cells(grid, here, y, z, east, east, best2, ordinal, listed)
        ring += 1
    depth_out[s] = wp.sqrt(best2)


@wp.kernel
def find_maxima(
    first: int,
    # in
    grid: GridView,
    depth: wp.array(dtype=float),
    pressure: wp.array(dtype=float),
    neighbours: wp.array(dtype=wp.int32),
    # out
    maxima_out: wp.array(dtype=wp.vec3),
):
    b = first + wp.tid()
    most = wp.vec3(0.0, 0.0, 0.0)
    for s in range(b * _BLOCK, wp.min((b + 1) * _BLOCK, sorted_count(grid))):
        most = wp.max(most, wp.vec3(depth[s], pressure[s], float(neighbours[s])))
    maxima_out[b] = most


@wp.kernel
def find_character(
    first: int,
    # params
    group: int,
    weights: wp.vec3,
    # in
    grid: GridView,
    depth: wp.array(dtype=float),
    pressure: wp.array(dtype=float),
    neighbours: wp.array(dtype=wp.int32),
    maxima: wp.array(dtype=wp.vec3),
    # out
    character_out: wp.array(dtype=float),
):
    start = (first + wp.tid()) * group
    most = wp.vec3(1.0e-20, 1.0e-20, 1.0)
    for b in range(maxima.shape[0]):
        most = wp.max(most, maxima[b])
    for s in range(start, wp.min(start + group, sorted_count(grid))):
        total = weights[0] * depth[s] / most[0]
        total += weights[1] * (1.0 - wp.max(pressure[s], 0.0) / most[1])
        total += weights[2] * float(neighbours[s]) / most[2]
        character_out[s] = total / (weights[0] + weights[1] + weights[2])


@dataclass(eq=False)
class Character:
    """Arrays of the character field, in the order of the last sort."""

    at_surface: wp.array
    """int32 (n,): 1 at a surface or wall."""
    neighbours: wp.array
    """int32 (n,)"""
    ordinal: wp.array
    listed: wp.array
    depth: wp.array
    """d [m], float (n,)."""
    maxima: wp.array
    field: wp.array
    """c, float (n,)."""
    volume: wp.array


def make_character(fluid: Fluid) -> Character:
    n, device = fluid.capacity, fluid.device.warp

    def make(dtype: Any, size: int = n) -> wp.array:
        return wp.zeros(size, dtype=dtype, device=device)

    blocks = -(-n // BLOCK)
    return Character(
        make(wp.int32), make(wp.int32), make(wp.int32), make(wp.vec3), make(float), make(wp.vec3, blocks), make(float),
        make(float, n + LANES),
    )  # fmt: skip


def find_surface(stage: Stage, fluid: Fluid, c: Character, steep_from: float) -> None:
    """Who is at a surface, and how many neighbours each has."""
    f, n, e = fluid, fluid.capacity, fluid.extra
    around = [f.grid.view, e["unit"], steep_from]
    if f.native:
        inverse_radius, _, pull = e["size_axes"]
        in_groups(stage, find_volumes, n, [f.grid.view, f.density, pull, c.volume])
        known = [*f.axes[:3], inverse_radius, c.volume, e["hits"]]
        native.launch(stage, find_normals_natively, n, [*around, *known, c.at_surface, c.neighbours])
    else:
        stage.launch(find_normals, n, [*around, f.place, f.density, e["load"], c.at_surface, c.neighbours])


def find_field(
    stage: Stage, fluid: Fluid, c: Character, steep_from: float, reach: int, weights: tuple[float, float, float]
) -> None:
    """After a step: from where particles were in its sort."""
    f, n = fluid, fluid.capacity
    find_surface(stage, f, c, steep_from)
    stage.once(lambda: wp.utils.array_scan(c.at_surface, c.ordinal, inclusive=True))
    in_groups(stage, list_surface, n, [f.grid.view, f.place, c.at_surface, c.ordinal, c.listed])
    stage.launch(find_depths, n, [f.grid.view, reach, f.place, c.at_surface, c.ordinal, c.listed, c.depth])
    found = [f.grid.view, c.depth, f.pressure, c.neighbours]
    stage.launch(find_maxima, len(c.maxima), [*found, c.maxima], block=1)
    in_groups(stage, find_character, n, [wp.vec3(*weights), *found, c.maxima, c.field])
