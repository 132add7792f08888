"""Walls as a sampled signed distance: one look-up, whatever the number of triangles.

Nodes hold exact distances φ (Grahn §4.1.3, and his chapter 9: the way to a 40 000-triangle colon); between them φ is
trilinear and the contact normal is its gradient. A distance changes by at most the way walked, so the interpolation at
x is wrong by at most Σ wᵢ |x − xᵢ| ≤ (√3/2) h for nodes xᵢ of spacing h: what is free for certain is φ − (√3/2) h. The
walls are the level sets of the interpolation, which cuts corners; hence contacts differ from the triangles' by up to
that, and by h²/(8R) on smooth walls.

Beyond the reach the exact distance is of no use, so nodes hold at most the reach there: a colon's field is filled
through the hashed grid in a second and not in a minute, and the bound above holds for the capped distance too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.geometry.distance import MAX_GRID, FieldGrid, sample_field
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.voxels import inside_grid
from viscera.water.boundary.nearest import Nearest, nothing_near
from viscera.water.boundary.triangles_hashed import HashedTriangles, make_hashed, nearest_hashed, rebuild_hashed

wp.set_module_options({"enable_backward": False})

HALF_DIAGONAL = wp.constant(0.8660254)
"""Of a cell, over its side."""


@wp.func
def nearest_in_field(grid: FieldGrid, side: float, reach: float, point: wp.vec3) -> Nearest:
    """`side` is -1 for a vessel (the fluid is inside) and 1 for an obstacle (it is outside)."""
    found = nothing_near(reach)
    sampled = sample_field(grid, point)
    distance = side * sampled[3]
    slope = side * wp.vec3(sampled[0], sampled[1], sampled[2])
    steep = wp.length(slope)
    if distance < reach and steep > 1.0e-6:
        found.distance = distance
        found.normal = slope / steep
    found.free = wp.min(distance, reach) - HALF_DIAGONAL * grid.spacing
    return found


@wp.kernel
def fill_field(
    first: int,
    # params
    origin: wp.vec3,
    spacing: float,
    # in
    table: HashedTriangles,
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
    distance = nearest_hashed(table, point).distance
    values_out[i, j, k] = wp.where(inside[i, j, k], -distance, distance)


@dataclass(frozen=True, eq=False)
class WallField:
    """Made by `make_field`."""

    grid: FieldGrid
    spacing: float
    """[m]"""
    dims: tuple[int, int, int]
    """Nodes along each axis."""


def make_field(mesh: TriangleMesh, spacing: float, reach: float, device: Device) -> WallField:
    """Signed distances of a closed mesh up to `reach`, at nodes `spacing` apart [m]."""
    # The band must be wider than what is asked for by the error of the interpolation.
    band = reach + 2.0 * spacing
    cells = np.ceil((mesh.size + 2.0 * band) / spacing)
    if np.prod(cells + 1.0) > MAX_GRID:
        raise InputError(
            f"a spacing of {spacing:g} m gives {np.prod(cells + 1.0):.3g} nodes for {mesh.name}.",
            f'Allowed are {MAX_GRID}: take larger particles, or structure="hashed".',
        )
    nx, ny, nz = (int(c) + 1 for c in cells)
    origin = mesh.centre - 0.5 * spacing * cells
    inside = wp.array(inside_grid(mesh, origin, spacing, (nx, ny, nz)), dtype=wp.bool, device=device.warp)
    hashed = make_hashed(mesh.vertices, mesh.triangles, band, device)
    vertices = wp.array(mesh.vertices, dtype=wp.vec3, device=device.warp)
    rebuild_hashed(Stage(device, 0, 1, None), hashed, vertices)
    values = wp.empty((nx, ny, nz), dtype=wp.float32, device=device.warp)
    place = [wp.vec3(*origin.tolist()), float(spacing)]
    wp.launch(fill_field, dim=values.size, inputs=[0, *place, hashed.table, inside, values], device=device.warp)
    grid = FieldGrid()
    grid.values, grid.origin, grid.spacing = values, place[0], float(spacing)
    return WallField(grid, float(spacing), (nx, ny, nz))
