"""A mesh on the screen from particles: what the eye sees of a liquid, as triangles in the world.

M. Müller, S. Schirm, S. Duthaler, "Screen space meshes", SCA 2007, as in Grahn §6.1.2. In this order:

    depth map       z_ij = min(z_ij, z_p − r_z h_ij),  h_ij = √(1 − |(ih, jh) − (x_p, y_p)|²/r_p²)     (6.6, 6.7)
    silhouettes     edges of the grid whose ends differ by more than z_max in depth, or of which one end is empty
    cuts            where circles (x_p, y_p, r_p) cut such an edge: of those with z_p below the mean depth of its
                    ends, the one farthest from the front end
    depth filter    binomial, along x then along y, never across a silhouette
    triangles       marching squares with the cuts: `screen_cells`
    silhouettes     each vertex to the mean of its neighbours, some rounds
    world           (6.8, 6.9), then normals

`lens` has the projection, with what 6.5, 6.6 and 6.8 lack. The mesh turns its face to the eye: it has no back, and
another eye needs another mesh.

Differs from the source: z_max is at least the diameter of a particle. Then the particle that set the front depth of a
silhouette edge is nearer than the mean of its ends, so every silhouette edge has a cut. The filter stops at silhouettes
(there it takes all values that are not empty). Least depths and cuts are found with integers, so the result is the same
each run, on any number of cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.imaging import screen_cells as cells
from viscera.imaging import screen_kernels as kernels
from viscera.imaging.lens import Lens, launch_on_rows, make_lens_array, project_particles, write_lens

MOST_NODES = 2**22
"""Of the grid; a slip in the spacing is refused before it fills the memory."""

MOST_ROUNDS = 100


@dataclass(frozen=True)
class ScreenMeshParams:
    radius: float
    """Of a particle as drawn [m]."""
    spacing: float = 4.0
    """h: between nodes of the grid [pixel]; smaller is finer."""
    connection: float | None = None
    """z_max: a larger step in depth is a silhouette [m]; at least two radii, which is what None means."""
    depth_half: int = 3
    """Half width of the depth filter [nodes]; 0 leaves depth as it is."""
    silhouette_rounds: int = 2
    """Rounds of averaging over the vertices; 0 leaves them where they are."""

    def __post_init__(self) -> None:
        for name in ("radius", "spacing"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")
        if self.connection is not None and not (
            math.isfinite(self.connection) and self.connection >= 2.0 * self.radius
        ):
            raise InputError(
                f"connection = {self.connection} is not possible.",
                f"It must be finite and at least the diameter of a particle, {2.0 * self.radius}.",
            )
        for name in ("depth_half", "silhouette_rounds"):
            if not 0 <= getattr(self, name) <= MOST_ROUNDS:
                raise InputError(f"{name} = {getattr(self, name)} is not possible.", f"It must be 0 to {MOST_ROUNDS}.")


@dataclass(eq=False)
class ScreenMesh:
    """Made by `make_screen_mesh`."""

    params: ScreenMeshParams
    lens: Lens
    device: Device
    capacity: int
    grid: Any
    """`ScreenGrid`."""
    nodes: int
    edges: int
    eye: Any
    """One `LensView`."""
    weight: Any
    """Of the depth filter: middle, then outwards."""
    projected: Any
    """x_p, y_p, z_p, r_p per particle, vec4 [pixel]."""
    depth: Any
    """Least depth per node, as an ordered integer; `lens.FAR` where there is nothing."""
    kind: Any
    cut: Any
    """Per edge: is it a silhouette, and where is it cut."""
    smooth: tuple[Any, Any]
    screen: tuple[Any, Any]
    """Vertices on the screen, per place."""
    used: Any
    world: Any
    triangle: Any
    """Triangles of each cell, by place."""
    count: Any
    index: Any
    start: Any
    position: Any
    """Result: vertices [m], vec3; as many as `size` says."""
    normal: Any
    corner: Any
    """Result: triangles, three vertex numbers each, counter-clockwise seen from the eye."""
    size: Any
    """A port with the number of vertices and of triangles."""


def make_screen_mesh(params: ScreenMeshParams, lens: Lens, capacity: int, device: Device) -> ScreenMesh:
    """Room for up to `capacity` particles seen through `lens`."""
    if capacity < 1:
        raise InputError(f"capacity = {capacity} is not possible.", "There must be room for a particle.")
    nx, ny = (math.floor(side / params.spacing) + 1 for side in (lens.width, lens.height))
    if nx < 2 or ny < 2 or nx * ny > MOST_NODES:
        raise InputError(
            f"spacing = {params.spacing} gives {nx} × {ny} nodes.", f"Allowed are 2 × 2 to {MOST_NODES} in all."
        )
    grid: Any = kernels.ScreenGrid()
    grid.nx, grid.ny, grid.spacing = nx, ny, params.spacing
    grid.horizontal = (nx - 1) * ny
    grid.connection = 2.0 * params.radius if params.connection is None else params.connection
    nodes, edges, squares = nx * ny, (nx - 1) * ny + nx * (ny - 1), (nx - 1) * (ny - 1)
    places, most = nodes + 2 * edges, int(cells.CELL_TRIANGLES) * squares

    def zeros(count: int, dtype: Any) -> Any:
        return wp.zeros(count, dtype=dtype, device=device.warp)

    return ScreenMesh(
        params=params,
        lens=lens,
        device=device,
        capacity=capacity,
        grid=grid,
        nodes=nodes,
        edges=edges,
        eye=make_lens_array(lens, device),
        weight=wp.array(binomial(params.depth_half), dtype=wp.float32, device=device.warp),
        projected=zeros(capacity, wp.vec4),
        depth=zeros(nodes, wp.int32),
        kind=zeros(edges, wp.int32),
        cut=zeros(edges, wp.int64),
        smooth=(zeros(nodes, wp.float32), zeros(nodes, wp.float32)),
        screen=(zeros(places, wp.vec3), zeros(places, wp.vec3)),
        used=zeros(places, wp.int32),
        world=zeros(places, wp.vec3),
        triangle=zeros(3 * most, wp.int32),
        count=zeros(squares, wp.int32),
        index=zeros(places, wp.int32),
        start=zeros(squares, wp.int32),
        position=zeros(places, wp.vec3),
        normal=zeros(places, wp.vec3),
        corner=zeros(3 * most, wp.int32),
        size=device.port(2, wp.int32),
    )


def set_lens(mesh: ScreenMesh, lens: Lens) -> None:
    """The eye moves while programs run; its picture keeps its size."""
    if (lens.width, lens.height) != (mesh.lens.width, mesh.lens.height):
        raise InputError(
            f"the lens is {lens.width} × {lens.height} pixels.",
            f"This mesh was made for {mesh.lens.width} × {mesh.lens.height}; make another.",
        )
    mesh.lens = lens
    write_lens(lens, mesh.eye)


def build_screen_mesh(stage: Stage, mesh: ScreenMesh, position: Any, count: Any) -> None:
    """The mesh of the first `count[0]` particles at `position` (vec3 [m]); `count` is an int32 array of one."""
    m, grid, eye = mesh, mesh.grid, mesh.eye
    squares = (grid.nx - 1) * (grid.ny - 1)
    stage.launch(project_particles, m.capacity, [m.params.radius, eye, count, position, m.projected])
    stage.launch(kernels.clear_nodes, m.nodes, [m.depth])
    splat = [grid, m.params.radius, eye, m.projected, m.depth]
    launch_on_rows(stage, kernels.splat_depth, m.capacity, grid.ny, splat)
    stage.launch(kernels.find_silhouettes, m.edges, [grid, eye, m.depth, m.kind, m.cut])
    launch_on_rows(stage, kernels.splat_cuts, m.capacity, grid.ny, [grid, m.projected, m.depth, m.kind, m.cut])
    _smooth_depth(stage, m)
    stage.launch(kernels.place_nodes, m.nodes, [grid, m.depth, m.smooth[0], m.screen[0], m.used])
    place = [grid, m.nodes, eye, m.depth, m.smooth[0], m.kind, m.cut, m.screen[0], m.used]
    stage.launch(kernels.place_cuts, m.edges, place)
    triangles = [grid, m.nodes, m.depth, m.kind, m.used, m.triangle, m.count]
    stage.launch(cells.make_triangles, squares, triangles)
    screen = _smooth_vertices(stage, m)
    stage.launch(cells.place_in_world, len(m.used), [eye, m.used, screen, m.world])
    _pack(stage, m, squares)


def _smooth_depth(stage: Stage, m: ScreenMesh) -> None:
    stage.launch(kernels.open_depth, m.nodes, [m.depth, m.smooth[0]])
    if m.params.depth_half > 0:
        source, target = m.smooth
        for upright in (0, 1):
            args = [m.grid, upright, m.params.depth_half, m.weight, m.depth, m.kind, source, target]
            stage.launch(kernels.smooth_depth, m.nodes, args)
            source, target = target, source


def _smooth_vertices(stage: Stage, m: ScreenMesh) -> Any:
    source, target = m.screen
    for _ in range(m.params.silhouette_rounds):
        args = [m.grid, m.nodes, m.used, m.triangle, m.count, source, target]
        stage.launch(cells.smooth_vertices, len(m.used), args)
        source, target = target, source
    return source


def _pack(stage: Stage, m: ScreenMesh, squares: int) -> None:
    stage.once(lambda: wp.utils.array_scan(m.used, m.index, inclusive=False))
    stage.once(lambda: wp.utils.array_scan(m.count, m.start, inclusive=False))
    pack = [m.grid, m.nodes, m.used, m.index, m.triangle, m.count, m.world, m.position, m.normal]
    stage.launch(cells.pack_vertices, len(m.used), pack)
    stage.launch(cells.pack_triangles, squares, [m.index, m.triangle, m.count, m.start, m.corner])
    stage.launch(cells.write_sizes, 1, [m.used, m.index, m.count, m.start, m.size.array])
    stage.download(m.size)


def mesh_arrays(
    mesh: ScreenMesh,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """Vertices [m] and normals (n, 3) and triangles (m, 3) of the last build. Waits for the device."""
    mesh.device.synchronize()
    vertices, triangles = (int(value) for value in mesh.size.host)
    corner = mesh.corner.numpy()[: 3 * triangles].reshape(-1, 3)
    return mesh.position.numpy()[:vertices], mesh.normal.numpy()[:vertices], corner


def binomial(half: int) -> NDArray[np.float64]:
    """Weights of the filter with 2 · half + 1 taps, from the middle outwards."""
    return np.array([math.comb(2 * half, half + k) for k in range(half + 1)], dtype=np.float64) / 4.0**half
