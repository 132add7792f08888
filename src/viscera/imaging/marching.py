"""Marching cubes: the closed surface of a liquid, from a field that its particles make on a grid.

Two fields f, both negative inside (Grahn §6.1.1, 6.12):

    colour      f(x) = ½ − Σ V W(|x − x_j|, h)      V: volume of a particle, W: poly6 (3.21)
    distance    f(x) = |x − x̄| − r                  x̄ = Σ w x_j / Σ w,  w = (1 − |x − x_j|²/h²)³

The sum is ½ at the flat surface of a liquid of even density, so it keeps the volume, and bumps show little. The
distance field (Zhu and Bridson 2005, doi:10.1145/1073204.1073298) is the exact distance to one ball of radius r, so
single drops keep their size.

The field is gathered with the neighbour grid, node by node, and can be recorded. The mesh is made by Warp's
`warp.geometry.IsoSurfaceMarchingCubes`, which allocates as many vertices as it finds: `extract` reads counts back and
can NOT be recorded. The outermost nodes count as empty, so the mesh is closed also where particles leave the box.

Differs from the source: no lookup of 15 configurations of our own; normals are the field's gradient by differences over
one spacing of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.neighbors import grid as ng
from viscera.neighbors.cells import GridView, cell_of, row_range

wp.set_module_options({"enable_backward": False})

FieldKind = Literal["colour", "distance"]

MOST_NODES = 2**26
"""Of the grid; a slip in the spacing is refused before it fills the memory."""

SURFACE = wp.constant(0.5)
"""Of the colour field: halfway between none and a full neighbourhood."""


@dataclass(frozen=True)
class MarchingParams:
    spacing: float
    """Of the grid's nodes [m]; about half the spacing of the particles shows them all."""
    support: float
    """h: how far a particle reaches [m]; about two spacings of the particles."""
    particle_spacing: float
    """The particle's volume is its cube [m]."""
    field: FieldKind = "colour"
    radius: float | None = None
    """Of a particle in the distance field [m]; None: the ball that has the particle's volume."""

    def __post_init__(self) -> None:
        if self.field not in ("colour", "distance"):
            raise InputError(f"field = {self.field!r} is not known.", "Allowed are 'colour' and 'distance'.")
        for name in ("spacing", "support", "particle_spacing", "radius"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")

    @property
    def volume(self) -> float:
        """Of a particle [m³]."""
        return self.particle_spacing**3

    @property
    def drop_radius(self) -> float:
        return self.radius or (3.0 * self.volume / (4.0 * math.pi)) ** (1.0 / 3.0)


@dataclass(eq=False)
class Marching:
    """Made by `make_marching`."""

    params: MarchingParams
    device: Device
    lower: tuple[float, float, float]
    """Corner of the grid [m]."""
    shape: tuple[int, int, int]
    """Nodes along x, y and z."""
    neighbors: ng.GridParams
    sorted: ng.GridState
    field: Any
    """float32, shape `shape`."""

    @property
    def upper(self) -> tuple[float, float, float]:
        a, b, c = (low + (n - 1) * self.params.spacing for low, n in zip(self.lower, self.shape, strict=True))
        return a, b, c


@wp.func
def node_point(n: int, ny: int, nz: int, lower: wp.vec3, spacing: float):
    return lower + spacing * wp.vec3(float(n // (ny * nz)), float((n // nz) % ny), float(n % nz))


@wp.func
def at_rim(n: int, nx: int, ny: int, nz: int):
    x = n // (ny * nz)
    y = (n // nz) % ny
    z = n % nz
    return x == 0 or y == 0 or z == 0 or x == nx - 1 or y == ny - 1 or z == nz - 1


@wp.kernel
def fill_colour(
    first: int,
    # params
    lower: wp.vec3,
    spacing: float,
    support: float,
    weight: float,
    # in
    grid: GridView,
    position: wp.array(dtype=wp.vec3),
    # out
    field_out: wp.array3d(dtype=wp.float32),
):
    n = first + wp.tid()
    ny = field_out.shape[1]
    nz = field_out.shape[2]
    total = wp.float32(0.0)
    if not at_rim(n, field_out.shape[0], ny, nz):
        here = node_point(n, ny, nz, lower, spacing)
        cell = cell_of(grid, here)
        for row in range(grid.rows):
            begin, end = row_range(grid, cell, row)
            for t in range(begin, end):
                offset = position[t] - here
                inside = wp.max(1.0 - wp.dot(offset, offset) / (support * support), 0.0)
                total += inside * inside * inside
    field_out[n // (ny * nz), (n // nz) % ny, n % nz] = SURFACE - weight * total


@wp.kernel
def fill_distance(
    first: int,
    # params
    lower: wp.vec3,
    spacing: float,
    support: float,
    radius: float,
    # in
    grid: GridView,
    position: wp.array(dtype=wp.vec3),
    # out
    field_out: wp.array3d(dtype=wp.float32),
):
    n = first + wp.tid()
    ny = field_out.shape[1]
    nz = field_out.shape[2]
    here = node_point(n, ny, nz, lower, spacing)
    mean = wp.vec3(0.0, 0.0, 0.0)
    weight = wp.float32(0.0)
    if not at_rim(n, field_out.shape[0], ny, nz):
        cell = cell_of(grid, here)
        for row in range(grid.rows):
            begin, end = row_range(grid, cell, row)
            for t in range(begin, end):
                offset = position[t] - here
                inside = wp.max(1.0 - wp.dot(offset, offset) / (support * support), 0.0)
                share = inside * inside * inside
                mean += share * offset
                weight += share
    value = support - radius
    if weight > 0.0:
        # Divided first: at the end of the support the square of the sum is below what float32 can hold.
        value = wp.length(mean / weight) - radius
    field_out[n // (ny * nz), (n // nz) % ny, n % nz] = value


@wp.func
def sample(field: wp.array3d(dtype=wp.float32), p: wp.vec3):
    """The field at p, counted in nodes, linear between them."""
    i = wp.clamp(wp.int32(wp.floor(p[0])), 0, field.shape[0] - 2)
    j = wp.clamp(wp.int32(wp.floor(p[1])), 0, field.shape[1] - 2)
    k = wp.clamp(wp.int32(wp.floor(p[2])), 0, field.shape[2] - 2)
    u = wp.clamp(p[0] - float(i), 0.0, 1.0)
    v = wp.clamp(p[1] - float(j), 0.0, 1.0)
    w = wp.clamp(p[2] - float(k), 0.0, 1.0)
    a = wp.lerp(
        wp.lerp(field[i, j, k], field[i + 1, j, k], u), wp.lerp(field[i, j + 1, k], field[i + 1, j + 1, k], u), v
    )
    b = wp.lerp(
        wp.lerp(field[i, j, k + 1], field[i + 1, j, k + 1], u),
        wp.lerp(field[i, j + 1, k + 1], field[i + 1, j + 1, k + 1], u),
        v,
    )
    return wp.lerp(a, b, w)


@wp.kernel
def find_normals(
    first: int,
    # params
    lower: wp.vec3,
    spacing: float,
    # in
    field: wp.array3d(dtype=wp.float32),
    vertex: wp.array(dtype=wp.vec3),
    # out
    normal_out: wp.array(dtype=wp.vec3),
):
    """Up the slope of the field: outwards."""
    i = first + wp.tid()
    p = (vertex[i] - lower) / spacing
    half = 0.5
    dx = sample(field, p + wp.vec3(half, 0.0, 0.0)) - sample(field, p - wp.vec3(half, 0.0, 0.0))
    dy = sample(field, p + wp.vec3(0.0, half, 0.0)) - sample(field, p - wp.vec3(0.0, half, 0.0))
    dz = sample(field, p + wp.vec3(0.0, 0.0, half)) - sample(field, p - wp.vec3(0.0, 0.0, half))
    normal_out[i] = wp.normalize(wp.vec3(dx, dy, dz))


def make_marching(
    params: MarchingParams,
    lower: Sequence[float],
    upper: Sequence[float],
    capacity: int,
    device: Device,
    *,
    count: Any = None,
) -> Marching:
    """A grid over the box in which particles are drawn [m], widened so that a surface closes around them.

    `count` shares the caller's particle count (int32, shape (1,)).
    """
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if low.shape != (3,) or high.shape != (3,) or not np.all(np.isfinite(high - low)) or not np.all(high > low):
        raise InputError(f"the box from {lower} to {upper} is not possible.", "Each upper must be above its lower.")
    margin = params.support + 2.0 * params.spacing
    low, high = low - margin, high + margin
    nodes = np.ceil((high - low) / params.spacing).astype(int) + 1
    if int(np.prod(nodes.astype(float))) > MOST_NODES:
        raise InputError(
            f"spacing = {params.spacing} gives {' × '.join(map(str, nodes))} nodes.", f"Allowed are {MOST_NODES}."
        )
    neighbors, state = ng.make_grid(capacity, low.tolist(), high.tolist(), params.support, 3, device, count=count)
    nx, ny, nz = (int(n) for n in nodes)
    field = wp.zeros((nx, ny, nz), dtype=wp.float32, device=device.warp)
    corner = (float(low[0]), float(low[1]), float(low[2]))
    return Marching(params, device, corner, (nx, ny, nz), neighbors, state, field)


def fill_field(stage: Stage, marching: Marching, position: Any) -> None:
    """The field of the particles at `position` (vec3 [m])."""
    m, p = marching, marching.params
    ng.build(stage, m.neighbors, m.sorted, position)
    kernel, number = fill_colour, p.volume * poly6(p.support)
    if p.field == "distance":
        kernel, number = fill_distance, p.drop_radius
    args = [wp.vec3(*m.lower), p.spacing, p.support, number, m.sorted.view, m.sorted.position, m.field]
    stage.launch(kernel, math.prod(m.shape), args)


def extract(marching: Marching) -> tuple[Any, Any, Any]:
    """Vertices [m] (vec3), outward normals (vec3) and triangles (int32, three each, counter-clockwise from outside) of
    the last field, on the device. Allocates, and waits for the device: not for a recorded program."""
    m = marching
    # Imported here: it brings kernels of its own, which most worlds never need.
    from warp.geometry import IsoSurfaceMarchingCubes

    vertex, index = IsoSurfaceMarchingCubes.extract(m.field, 0.0, lower=m.lower, upper=m.upper)
    normal = wp.zeros(len(vertex), dtype=wp.vec3, device=m.device.warp)
    inputs = [0, wp.vec3(*m.lower), m.params.spacing, m.field, vertex]
    wp.launch(find_normals, dim=len(vertex), inputs=inputs, outputs=[normal], device=m.device.warp)
    return vertex, normal, index


def marching_arrays(marching: Marching) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """`extract` as NumPy: vertices and normals (n, 3), triangles (m, 3)."""
    vertex, normal, index = extract(marching)
    return vertex.numpy(), normal.numpy(), index.numpy().reshape(-1, 3)


def poly6(support: float) -> float:
    """The factor before (1 − r²/h²)³ that makes its integral over space one [1/m³]."""
    return 315.0 / (64.0 * math.pi * support**3)
