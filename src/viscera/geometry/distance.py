"""Signed distance fields: a grid of exact distances from a closed mesh, sampled in kernels; closed forms for tests.

Between nodes the field is trilinear, so it is continuous, and its error is of second order where the distance is
smooth: up to h²/(8R) for each curved direction of a surface of radius R. Where the nearest point jumps (in the middle
of a body) it is of first order: half a cell on a middle plane, 0.71 on a middle line, 0.87 on a middle point. The
middle of the box is a node, which brings that of a symmetric body down to 0.15 on a middle line, 0.26 on a point.

Outside the grid there are two far fields:

    projected   d(q) + |p − q|, with q the nearest point of the grid: the document's (Kvick §3.3.2). No less than the
                true distance d, and at most √2 d: the angle at q between p and any point c of the body is 90° or more,
                so d² ≥ d(q)² + |p − q|². docs/burns.md has what was measured.
    exact       |p − c|, with c the nearest point of the mesh, by its tree. The default.

Contact needs the sign alone, which both have right, so it takes the first, which is free; whoever needs a distance
takes the second. The exact one costs nothing where the grid's margin holds all distances that matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.geometry.inspect import require_closed
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.queries import MeshQuery, build_query, checked_points, closest_on_mesh
from viscera.geometry.voxels import inside_grid

wp.set_module_options({"enable_backward": False})

FarField = Literal["exact", "projected"]
"""How distances outside a grid are found."""

MAX_GRID = 512**3
"""Most nodes of a grid: half a gigabyte of float32."""


@wp.struct
class FieldGrid:
    """What a kernel needs to sample a field."""

    values: wp.array3d(dtype=float)
    """Signed distances at the nodes, negative inside [m]."""
    origin: wp.vec3
    """Position of node (0, 0, 0) [m]."""
    spacing: float
    """[m]"""
    mesh: wp.uint64
    """The mesh's tree, for the exact far field."""
    middle: wp.vec3
    """Where the tree's origin is [m]."""


@dataclass(frozen=True, eq=False)
class DistanceField:
    """Distances from a mesh at the nodes origin + spacing·(i, j, k), in the mesh's coordinates."""

    name: str
    origin: FloatArray
    """[m]"""
    spacing: float
    """[m]"""
    values: wp.array
    """Shape `dims`, float32, negative inside [m]."""
    device: Device
    query: MeshQuery
    """The mesh itself, for what lies outside the grid."""

    @property
    def margin(self) -> float:
        """Nothing nearer to the surface than this lies outside the grid [m]."""
        span = self.spacing * (np.array(self.dims) - 1)
        return float(0.5 * (span - self.query.mesh.size).min())

    @property
    def dims(self) -> tuple[int, int, int]:
        i, j, k = self.values.shape
        return i, j, k

    @property
    def grid(self) -> Any:
        """A `FieldGrid` for kernels; it holds the values, not a copy."""
        grid = FieldGrid()
        grid.values = self.values
        grid.origin = wp.vec3(*self.origin.tolist())
        grid.spacing = self.spacing
        grid.mesh = wp.uint64(self.query.id)
        grid.middle = wp.vec3(*self.query.origin.tolist())
        return grid


@wp.func
def nearest_of_grid(grid: FieldGrid, asked: wp.vec3):
    """The point of the grid nearest to `asked`, both counted in cells from its origin."""
    nodes = wp.vec3(float(grid.values.shape[0] - 1), float(grid.values.shape[1] - 1), float(grid.values.shape[2] - 1))
    return wp.min(wp.max(asked, wp.vec3(0.0, 0.0, 0.0)), nodes)


@wp.func
def in_grid(grid: FieldGrid, point: wp.vec3):
    asked = (point - grid.origin) / grid.spacing
    return asked == nearest_of_grid(grid, asked)


@wp.func
def sample_field(grid: FieldGrid, point: wp.vec3):
    """Gradient (x, y, z) and signed distance (w) [m] at `point` [m]; the gradient is that of the interpolation.

    Outside the grid it is the projected far field."""
    asked = (point - grid.origin) / grid.spacing
    on_grid = nearest_of_grid(grid, asked)
    i = wp.min(int(on_grid[0]), grid.values.shape[0] - 2)
    j = wp.min(int(on_grid[1]), grid.values.shape[1] - 2)
    k = wp.min(int(on_grid[2]), grid.values.shape[2] - 2)
    x = on_grid[0] - float(i)
    y = on_grid[1] - float(j)
    z = on_grid[2] - float(k)
    # Along x first: values and slopes on the four edges of the cell, then along y, then along z.
    e00 = wp.lerp(grid.values[i, j, k], grid.values[i + 1, j, k], x)
    e10 = wp.lerp(grid.values[i, j + 1, k], grid.values[i + 1, j + 1, k], x)
    e01 = wp.lerp(grid.values[i, j, k + 1], grid.values[i + 1, j, k + 1], x)
    e11 = wp.lerp(grid.values[i, j + 1, k + 1], grid.values[i + 1, j + 1, k + 1], x)
    d00 = grid.values[i + 1, j, k] - grid.values[i, j, k]
    d10 = grid.values[i + 1, j + 1, k] - grid.values[i, j + 1, k]
    d01 = grid.values[i + 1, j, k + 1] - grid.values[i, j, k + 1]
    d11 = grid.values[i + 1, j + 1, k + 1] - grid.values[i, j + 1, k + 1]
    low = wp.lerp(e00, e10, y)
    high = wp.lerp(e01, e11, y)
    distance = wp.lerp(low, high, z)
    slope = wp.vec3(
        wp.lerp(wp.lerp(d00, d10, y), wp.lerp(d01, d11, y), z), wp.lerp(e10 - e00, e11 - e01, z), high - low
    )
    slope = slope / grid.spacing
    # The way from the grid to a point outside: along the axes it goes, it alone decides the slope.
    way = (asked - on_grid) * grid.spacing
    far = wp.length(way)
    if far > 0.0:
        distance += far
        slope = wp.vec3(
            wp.where(way[0] != 0.0, way[0] / far, slope[0]),
            wp.where(way[1] != 0.0, way[1] / far, slope[1]),
            wp.where(way[2] != 0.0, way[2] / far, slope[2]),
        )
    return wp.vec4(slope[0], slope[1], slope[2], distance)


@wp.func
def sample_exact(grid: FieldGrid, point: wp.vec3):
    """As `sample_field`, with the exact far field."""
    if in_grid(grid, point):
        return sample_field(grid, point)
    away = point - grid.middle - closest_on_mesh(grid.mesh, point - grid.middle)
    distance = wp.length(away)
    slope = away / distance
    return wp.vec4(slope[0], slope[1], slope[2], distance)


@wp.func
def sample_distance(grid: FieldGrid, point: wp.vec3):
    """Signed distance at `point` [m], exact outside the grid."""
    return sample_exact(grid, point)[3]


@wp.kernel
def fill_distances(
    first: int,
    # params
    origin: wp.vec3,
    spacing: float,
    # in
    mesh: wp.uint64,
    inside: wp.array3d(dtype=wp.bool),
    # out
    values_out: wp.array3d(dtype=float),
):
    n = first + wp.tid()
    nz = values_out.shape[2]
    ny = values_out.shape[1]
    k = n % nz
    j = (n // nz) % ny
    i = n // (nz * ny)
    point = origin + spacing * wp.vec3(float(i), float(j), float(k))
    distance = wp.length(point - closest_on_mesh(mesh, point))
    values_out[i, j, k] = wp.where(inside[i, j, k], -distance, distance)


@wp.kernel
def sample_points(
    first: int,
    # params
    exact: int,
    # in
    grid: FieldGrid,
    points: wp.array(dtype=wp.vec3),
    # out
    sample_out: wp.array(dtype=wp.vec4),
):
    i = first + wp.tid()
    if exact != 0:
        sample_out[i] = sample_exact(grid, points[i])
    else:
        sample_out[i] = sample_field(grid, points[i])


def distance_field(
    mesh: TriangleMesh, spacing: float, margin: float | None = None, device: Device | None = None
) -> DistanceField:
    """The field of a closed mesh, over its box and `margin` around it (two cells unless told) [m].

    Values at the nodes are exact: distances by closest point, signs by the rays of `voxels`. A mesh that is open is
    refused, with the places where it is.
    """
    device = device or open_device("cpu")
    mesh = require_closed(mesh)
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise InputError(f"spacing = {spacing} is not possible.", "It must be a finite length above 0, in metres.")
    margin = 2.0 * spacing if margin is None else margin
    if not (np.isfinite(margin) and margin >= 0.0):
        raise InputError(f"margin = {margin} is not possible.", "It must be a finite length, 0 or more, in metres.")
    # Even, so that the box's middle is a node.
    cells = 2.0 * np.maximum(1.0, np.ceil((0.5 * mesh.size + margin) / spacing))
    if np.prod(cells + 1.0) > MAX_GRID:
        raise InputError(
            f"spacing = {spacing} gives {np.prod(cells + 1.0):.3g} grid nodes for {mesh.name}.",
            f"Allowed are {MAX_GRID}: choose a coarser spacing.",
        )
    nx, ny, nz = (cells + 1.0).astype(int).tolist()
    origin = mesh.centre - 0.5 * spacing * cells
    inside = wp.array(inside_grid(mesh, origin, spacing, (nx, ny, nz)), dtype=wp.bool, device=device.warp)
    values = wp.empty((nx, ny, nz), dtype=wp.float32, device=device.warp)
    query = build_query(mesh, device)
    local = wp.vec3(*(origin - query.origin).tolist())
    wp.launch(
        fill_distances, dim=values.size, inputs=[0, local, float(spacing), query.id, inside, values], device=device.warp
    )
    return DistanceField(mesh.name, origin, float(spacing), values, device, query)


def sample(field: DistanceField, points: ArrayLike, far: FarField = "exact") -> tuple[FloatArray, FloatArray]:
    """Signed distances, shape (n,) [m], and gradients, shape (n, 3), at `points`, shape (n, 3) [m]."""
    if far not in get_args(FarField):
        raise InputError(f"far = {far!r} is not known.", f"Allowed are {', '.join(get_args(FarField))}.")
    asked = checked_points("points", points)
    device = field.device.warp
    there = wp.array(asked, dtype=wp.vec3, device=device)
    result = wp.empty(len(asked), dtype=wp.vec4, device=device)
    wp.launch(sample_points, dim=len(asked), inputs=[0, int(far == "exact"), field.grid, there, result], device=device)
    found = result.numpy().astype(np.float64)
    return found[:, 3], found[:, :3]


def sphere_distance(points: ArrayLike, centre: ArrayLike, radius: float) -> FloatArray:
    """Exact, negative inside [m]."""
    return np.linalg.norm(np.asarray(points, dtype=np.float64) - np.asarray(centre), axis=-1) - radius


def capsule_distance(points: ArrayLike, start: ArrayLike, end: ArrayLike, radius: float) -> FloatArray:
    """Exact, negative inside; `start` and `end` are those of the axis [m]."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    offset = np.asarray(points, dtype=np.float64) - a
    along = np.clip(offset @ (b - a) / max(float((b - a) @ (b - a)), np.finfo(np.float64).tiny), 0.0, 1.0)
    return np.linalg.norm(offset - along[..., None] * (b - a), axis=-1) - radius


def box_distance(points: ArrayLike, centre: ArrayLike, size: ArrayLike) -> FloatArray:
    """Exact, negative inside; `size` are the whole sides [m]."""
    beyond = np.abs(np.asarray(points, dtype=np.float64) - np.asarray(centre)) - 0.5 * np.asarray(size)
    outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)
    return outside + np.minimum(beyond.max(axis=-1), 0.0)
