"""The surface that a film runs over: one or several organs, their triangles joined by edges, following the tissue.

    surface = make_surface([liver_skin, gallbladder_skin], device)
    refresh_surface(stage, surface)                 # once per frame, after the tissue has moved

Several parts share one numbering: triangle f of part p is number `first_face[p] + f`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.blood.film.walk import BARRIER, DRAIN, OPEN, WalkView
from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh, weld
from viscera.geometry.topology import topology
from viscera.skin import Skin

wp.set_module_options({"enable_backward": False})

Array = Any

MASKED = 1.0e30
"""Obstacle that no film climbs."""


@dataclass(eq=False)
class FilmSurface:
    """Made by `make_surface`."""

    parts: tuple[Skin | TriangleMesh, ...]
    device: Device
    first_face: tuple[int, ...]
    """Number of each part's first triangle; one more entry than parts."""
    first_vertex: tuple[int, ...]
    """Number of each part's first vertex; one more entry than parts."""
    view: Any
    """`WalkView`; its arrays are the ones below."""
    vertices: Array
    """Where the tissue is, vec3, shape (vertices,) [m]. Skins are copied here by `refresh_surface`; for a bare mesh,
    write it yourself."""
    vertex_normal: Array
    """Unit vectors, vec3, shape (vertices,)."""
    edge: Array
    """What each edge does to the film, vec3i, shape (triangles,); see `set_edges`."""
    across: Array
    """Triangle behind each edge, vec3i, shape (triangles,); -1 at a rim."""
    obstacle: Array
    """Maps of all parts that have one, one after the other, float32, shape (texels,); see `set_obstacles`."""
    free: Array
    """Of each triangle, int32, shape (triangles,): 1 where its texels have no obstacle."""
    fan_start: Array
    """Where each vertex's triangles begin in `fan`, int32, shape (vertices + 1,)."""
    fan: Array
    """Triangles around each vertex, int32, shape (3 · triangles,)."""
    map: Array
    """Of each triangle, vec3i, shape (triangles,): where its part's map begins in `obstacle`, its width and height."""
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]
    """Box around the tissue at rest [m]."""

    @property
    def face_count(self) -> int:
        return self.first_face[-1]

    def mesh(self, part: int) -> TriangleMesh:
        return _mesh(self.parts[part])


@wp.func
def normal_around(
    triangles: wp.array(dtype=wp.vec3i),
    vertices: wp.array(dtype=wp.vec3),
    fan_start: wp.array(dtype=wp.int32),
    fan: wp.array(dtype=wp.int32),
    i: int,
) -> wp.vec3:
    """Mean normal of the triangles around vertex i, by area."""
    total = wp.vec3(0.0, 0.0, 0.0)
    for k in range(fan_start[i], fan_start[i + 1]):
        t = triangles[fan[k]]
        a = vertices[t[0]]
        total += wp.cross(vertices[t[1]] - a, vertices[t[2]] - a)
    return wp.normalize(total)


@wp.kernel
def vertex_normals(
    first: int,
    # in
    triangles: wp.array(dtype=wp.vec3i),
    vertices: wp.array(dtype=wp.vec3),
    fan_start: wp.array(dtype=wp.int32),
    fan: wp.array(dtype=wp.int32),
    # out
    normal_out: wp.array(dtype=wp.vec3),
):
    i = first + wp.tid()
    normal_out[i] = normal_around(triangles, vertices, fan_start, fan, i)


def make_surface(
    parts: Sequence[Skin | TriangleMesh] | Skin | TriangleMesh, device: Device | None = None
) -> FilmSurface:
    """Organs are given as skins (they have a texture and follow the tissue) or as bare meshes."""
    if isinstance(parts, (Skin, TriangleMesh)):
        parts = [parts]
    if not parts:
        raise InputError("a film needs a surface, but there is no part.", "Give at least one skin or mesh.")
    for part in parts:
        if isinstance(part, Skin):
            device = device or part.device
            if part.device is not device:
                raise InputError(f"{part.mesh.name} lives on {part.device.name}.", f"Make its skin on {device.name}.")
    if device is None:
        raise InputError("a surface of bare meshes needs a device.", "Give device=open_device().")
    meshes = [_mesh(part) for part in parts]
    first_face = tuple(np.cumsum([0] + [len(m.triangles) for m in meshes]).tolist())
    first_vertex = tuple(np.cumsum([0] + [len(m.vertices) for m in meshes]).tolist())
    triangles = np.concatenate(
        [weld(m.vertices)[m.triangles] + v for m, v in zip(meshes, first_vertex, strict=False)]
    ).astype(np.int32)
    across = np.concatenate([_across(m, f) for m, f in zip(meshes, first_face, strict=False)])
    vertices = np.concatenate([m.vertices for m in meshes]).astype(np.float32)
    fan_start, fan = _fans(triangles, len(vertices))
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)

    def put(values: NDArray[Any], kind: Any) -> Array:
        return wp.array(values, dtype=kind, device=device.warp)

    view: Any = WalkView()
    view.triangles = put(triangles, wp.vec3i)
    view.vertices = put(vertices, wp.vec3)
    view.vertex_normal = wp.zeros(len(vertices), dtype=wp.vec3, device=device.warp)
    view.across = put(across, wp.vec3i)
    view.edge = wp.zeros(len(triangles), dtype=wp.vec3i, device=device.warp)
    view.corner_uv = put(np.concatenate([_corner_uv(p) for p in parts]).reshape(-1, 2), wp.vec2)
    maps, texels = _maps(parts)
    view.map = put(maps, wp.vec3i)
    view.free = put(np.ones(len(triangles), dtype=np.int32), wp.int32)
    surface = FilmSurface(
        parts=tuple(parts),
        device=device,
        first_face=first_face,
        first_vertex=first_vertex,
        view=view,
        vertices=view.vertices,
        vertex_normal=view.vertex_normal,
        edge=view.edge,
        across=view.across,
        obstacle=wp.zeros(texels, dtype=wp.float32, device=device.warp),
        free=view.free,
        fan_start=put(fan_start, wp.int32),
        fan=put(fan, wp.int32),
        map=view.map,
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
    )
    device.record(lambda stage: refresh_surface(stage, surface), work=len(vertices)).run()
    device.synchronize()
    return surface


def refresh_surface(stage: Stage, surface: FilmSurface) -> None:
    """Brings the surface up to the skins' vertices."""
    for part, first in zip(surface.parts, surface.first_vertex, strict=False):
        if isinstance(part, Skin):
            vertices = part.vertices
            # Of a skin that may be cut there are more, for what cuts add.
            count = len(part.mesh.vertices)
            stage.once(lambda v=vertices, at=first, n=count: wp.copy(surface.vertices, v, dest_offset=at, count=n))
    args = [surface.view.triangles, surface.vertices, surface.fan_start, surface.fan, surface.vertex_normal]
    stage.launch(vertex_normals, len(surface.vertices), args)


def set_triangles(surface: FilmSurface, part: int, triangles: NDArray[np.int32]) -> None:
    """Other corners for a part's triangles, as when it was cut open, shape (triangles, 3): vertices of the part, those
    at one place with one number. A triangle without three corners is nothing, and leads nowhere."""
    begin, end = surface.first_face[part : part + 2]
    if triangles.shape != (end - begin, 3):
        raise InputError(
            f"{len(triangles)} triangles for a part that has {end - begin}.", "Give corners for each, in their order."
        )
    everything, across = surface.view.triangles.numpy(), surface.across.numpy()
    before, now = everything[begin:end].copy(), triangles + surface.first_vertex[part]
    changed = np.flatnonzero((now != before).any(axis=1))
    if len(changed) == 0:
        return
    everything[begin:end] = now
    _turn_edges(across[begin:end], begin, now, near=np.concatenate([before[changed], now[changed]]))
    fan_start, fan = _fans(everything, len(surface.vertices))
    for target, values in (
        (surface.view.triangles, everything), (surface.across, across), (surface.fan_start, fan_start),
        (surface.fan, fan),
    ):  # fmt: skip
        target.assign(values)


def _turn_edges(
    across: NDArray[np.int32], first_face: int, triangles: NDArray[np.int32], near: NDArray[np.int32]
) -> None:
    """Writes the triangle behind each edge between two of the vertices `near`, of triangles whose corners are welded;
    −1 where not two meet. Whoever shares such an edge has both its ends, so all other edges are as they were."""
    some = np.zeros(int(max(triangles.max(), near.max())) + 1, dtype=np.bool_)
    some[near] = True
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    edges = np.flatnonzero(some[start] & some[end])
    sound = np.repeat(_sound(triangles), 3)[edges]
    flat = across.reshape(-1)
    flat[edges] = -1
    edges = edges[sound]
    low, high = np.minimum(start[edges], end[edges]), np.maximum(start[edges], end[edges])
    _, edge, uses = np.unique(low.astype(np.int64) * len(some) + high, return_inverse=True, return_counts=True)
    order = np.argsort(edge.reshape(-1), kind="stable")
    pairs = edges[order[(uses == 2)[edge.reshape(-1)[order]]].reshape(-1, 2)]
    flat[pairs[:, 0]] = pairs[:, 1] // 3 + first_face
    flat[pairs[:, 1]] = pairs[:, 0] // 3 + first_face


def _sound(triangles: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which have three corners."""
    a, b, c = triangles.T
    return np.asarray((a != b) & (b != c) & (c != a))


def set_edges(surface: FilmSurface, part: int, edges: ArrayLike, kind: int = int(BARRIER)) -> None:
    """Makes edges of a part, rows of two vertices of its mesh, `OPEN`, a `BARRIER` or a `DRAIN` (both sides)."""
    if kind not in (int(OPEN), int(BARRIER), int(DRAIN)):
        raise InputError(f"kind = {kind} is not known.", "Allowed are OPEN, BARRIER and DRAIN.")
    mesh = surface.mesh(part)
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if len(pairs) and not (pairs.min() >= 0 and pairs.max() < len(mesh.vertices)):
        raise InputError("an edge names a vertex that is not there.", f"{mesh.name} has {len(mesh.vertices)}.")
    welded = weld(mesh.vertices)
    own = np.sort(welded[mesh.triangles][:, [[0, 1], [1, 2], [2, 0]]], axis=2)
    size = np.int64(len(mesh.vertices))
    wanted = np.sort(welded[pairs], axis=1) @ np.array([size, 1])
    found = np.isin(own @ np.array([size, 1]), wanted)
    missing = ~np.isin(wanted, own @ np.array([size, 1]))
    if missing.any():
        raise InputError(f"{int(missing.sum())} pairs of vertices are no edge.", "Give ends of edges of the mesh.")
    flags = surface.edge.numpy()
    begin = surface.first_face[part]
    flags[begin : begin + len(found)][found] = kind
    surface.edge.assign(flags)


def set_obstacles(surface: FilmSurface, part: int, values: ArrayLike) -> None:
    """What stands in the film's way, per texel of the part's skin, shape (height, width): 0 is free, a positive number
    the blood value (density over settled density) that flows over it, `MASKED` or infinity nothing does, a negative
    number is a drain."""
    skin = surface.parts[part]
    if not isinstance(skin, Skin):
        raise InputError(f"{skin.name} has no texture.", "Make a skin of it (make_skin), and the surface of that.")
    surface_map = check_obstacles(values, skin.height, skin.width)
    start = int(surface.map.numpy()[surface.first_face[part]][0])
    everything = surface.obstacle.numpy()
    everything[start : start + surface_map.size] = surface_map
    surface.obstacle.assign(everything)
    begin, end = surface.first_face[part : part + 2]
    free = surface.free.numpy()
    free[begin:end] = _free(skin.atlas.corners, surface_map.reshape(skin.height, skin.width))
    surface.free.assign(free)


def _free(corners: NDArray[Any], obstacle: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Whether the box around each triangle in the texture, a texel wider for rounding, holds no obstacle. Sums over
    boxes are differences of sums up to their corners. `corners` has shape (triangles, 3, 2), 0 to 1."""
    upto = np.zeros(np.add(obstacle.shape, 1), dtype=np.int64)
    upto[1:, 1:] = (obstacle != 0.0).cumsum(axis=0).cumsum(axis=1)
    most = np.array(obstacle.shape[::-1])
    low = np.clip(np.floor(corners.min(axis=1) * most).astype(int) - 1, 0, most)
    high = np.clip(np.floor(corners.max(axis=1) * most).astype(int) + 2, 0, most)
    (left, bottom), (right, top) = low.T, high.T
    return upto[top, right] - upto[top, left] - upto[bottom, right] + upto[bottom, left] == 0


def check_obstacles(values: ArrayLike, height: int, width: int) -> NDArray[np.float32]:
    found = np.asarray(values, dtype=np.float32)
    if found.shape != (height, width) or np.isnan(found).any():
        raise InputError(
            f"obstacles: shape {found.shape}{' with NaN' if np.isnan(found).any() else ''}.",
            f"Give one number per texel: ({height}, {width}).",
        )
    return np.clip(found, -1.0, MASKED).ravel()


def _maps(parts: Sequence[Skin | TriangleMesh]) -> tuple[NDArray[np.int32], int]:
    """Per triangle where its obstacle map is, and the length of all maps together."""
    rows: list[NDArray[np.int32]] = []
    texels = 0
    for part in parts:
        shape = (texels, part.width, part.height) if isinstance(part, Skin) else (0, 0, 0)
        rows.append(np.tile(np.array(shape, dtype=np.int32), (len(_mesh(part).triangles), 1)))
        texels += shape[1] * shape[2]
    return np.concatenate(rows), max(texels, 1)


def _mesh(part: Skin | TriangleMesh) -> TriangleMesh:
    return part.mesh if isinstance(part, Skin) else part


def _across(mesh: TriangleMesh, first_face: int) -> NDArray[np.int32]:
    """Triangle behind each edge; −1 at rims, and where more than two triangles meet or a triangle has collapsed."""
    topo = topology(mesh)
    across = np.full((len(mesh.triangles), 3), -1, dtype=np.int32)
    flat = topo.face_edges.ravel()
    order = np.argsort(flat, kind="stable")
    pair = order[topo.uses[flat[order]] == 2].reshape(-1, 2)
    face, corner = topo.faces[pair // 3], pair % 3
    across[face[:, 0], corner[:, 0]] = face[:, 1] + first_face
    across[face[:, 1], corner[:, 1]] = face[:, 0] + first_face
    return across


def _corner_uv(part: Skin | TriangleMesh) -> NDArray[np.float32]:
    if isinstance(part, Skin):
        return part.atlas.corners.astype(np.float32)
    if part.uv is not None:
        return part.uv[part.triangles]
    return np.zeros((len(part.triangles), 3, 2), dtype=np.float32)


def _fans(triangles: NDArray[np.int32], vertices: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Of each vertex where its triangles begin, and these. What has no three corners stands last, and is nobody's."""
    corner = np.where(np.repeat(_sound(triangles), 3), triangles.ravel(), vertices)
    # NumPy sorts numbers of 16 bits by their digits, ten times as fast.
    order = np.argsort(corner.astype(np.uint16) if vertices < 1 << 16 else corner, kind="stable")
    start = np.zeros(vertices + 1, dtype=np.int64)
    np.cumsum(np.bincount(corner, minlength=vertices + 1)[:vertices], out=start[1:])
    return start.astype(np.int32), (order // 3).astype(np.int32)
