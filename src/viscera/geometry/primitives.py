"""Closed meshes made by rule, for scenarios, tests and benchmarks. All face outward; lengths are metres."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

Cells = tuple[int, int, int]


def _made(vertices: FloatArray, triangles: NDArray[np.int64], name: str, centre: ArrayLike) -> TriangleMesh:
    return TriangleMesh(vertices + np.asarray(centre, dtype=np.float64), triangles.astype(np.int32), name)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0.0):
            raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")


def _at_least(least: int, **values: int) -> None:
    for name, value in values.items():
        if value < least:
            raise InputError(f"{name} = {value} is not possible.", f"It must be {least} or more.")


def icosphere(radius: float, subdivisions: int = 3, centre: ArrayLike = (0.0, 0.0, 0.0)) -> TriangleMesh:
    """A sphere of 20·4ˢ nearly equal triangles, its vertices on the true sphere."""
    _positive(radius=radius)
    _at_least(0, subdivisions=subdivisions)
    golden = 0.5 * (1.0 + math.sqrt(5.0))
    base = np.array([(0.0, s, t * golden) for s, t in itertools.product((-1.0, 1.0), repeat=2)])
    vertices = np.concatenate([np.roll(base, shift, axis=1) for shift in range(3)])
    triangles = _hull_of_icosahedron(vertices)
    for _ in range(subdivisions):
        vertices, triangles = _split_in_four(vertices, triangles)
        vertices = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
    vertices = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
    return _made(radius * vertices, triangles, "sphere", centre)


def _hull_of_icosahedron(vertices: FloatArray) -> NDArray[np.int64]:
    """The 20 triples of vertices that are pairwise one edge apart, turned outward."""
    triples = np.array(list(itertools.combinations(range(12), 3)))
    a, b, c = (vertices[triples[:, i]] for i in range(3))
    sides = np.stack([np.linalg.norm(d, axis=1) for d in (b - a, c - b, a - c)])
    keep = np.isclose(sides, 2.0).all(axis=0)
    inward = np.einsum("ij,ij->i", a, np.cross(b - a, c - a)) < 0.0
    triples[inward] = triples[inward][:, ::-1]
    return triples[keep]


def _split_in_four(vertices: FloatArray, triangles: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.int64]]:
    """Each triangle becomes four, with new vertices in the middles of the edges."""
    a, b, c = triangles.T
    edges = np.sort(np.stack([np.stack(e, axis=1) for e in ((a, b), (b, c), (c, a))]).reshape(-1, 2), axis=1)
    unique, which = np.unique(edges, axis=0, return_inverse=True)
    ab, bc, ca = len(vertices) + which.reshape(3, -1)
    middles = 0.5 * (vertices[unique[:, 0]] + vertices[unique[:, 1]])
    corners = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([vertices, middles]), np.concatenate([np.stack(t, axis=1) for t in corners])


def uv_sphere(radius: float, segments: int = 32, rings: int = 16, centre: ArrayLike = (0.0, 0.0, 0.0)) -> TriangleMesh:
    """A sphere of meridians and parallels, poles on z."""
    _positive(radius=radius)
    _at_least(3, segments=segments)
    _at_least(2, rings=rings)
    polar = math.pi * np.arange(1, rings) / rings
    profile = np.stack([radius * np.sin(polar), radius * np.cos(polar)], axis=1)
    return _made(*_turned(profile, radius, -radius, segments), "sphere", centre)


def capsule(radius: float, length: float, segments: int = 32, centre: ArrayLike = (0.0, 0.0, 0.0)) -> TriangleMesh:
    """A cylinder along z whose axis is `length` long, with half spheres at its ends."""
    _positive(radius=radius, length=length)
    _at_least(3, segments=segments)
    cap = max(2, segments // 4)
    polar = 0.5 * math.pi * np.arange(1, cap + 1) / cap
    top = np.stack([radius * np.sin(polar), radius * np.cos(polar) + 0.5 * length], axis=1)
    # As many rings along the shaft as make its quads about square.
    shaft_cells = max(1, round(length / (2.0 * math.pi * radius / segments)))
    heights = 0.5 * length - length * np.arange(1, shaft_cells) / shaft_cells
    shaft = np.stack([np.full_like(heights, radius), heights], axis=1)
    bottom = top[::-1] * (1.0, -1.0)
    end = radius + 0.5 * length
    return _made(*_turned(np.concatenate([top, shaft, bottom]), end, -end, segments), "capsule", centre)


def _turned(profile: FloatArray, top: float, bottom: float, segments: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Turns a profile of (radius, z), from top to bottom without the poles, about the z axis and closes both ends."""
    angle = 2.0 * math.pi * np.arange(segments) / segments
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rows = len(profile)
    xy = profile[:, None, :1] * circle
    z = np.broadcast_to(profile[:, None, 1:], (rows, segments, 1))
    vertices = np.concatenate([[[0.0, 0.0, top]], np.concatenate([xy, z], axis=2).reshape(-1, 3), [[0.0, 0.0, bottom]]])
    here = np.arange(segments)
    there = (here + 1) % segments
    row = 1 + segments * np.arange(rows - 1)[:, None]
    a, b, c, d = (np.ravel(row + k) for k in (here, segments + here, segments + there, there))
    last = 1 + segments * (rows - 1)
    pole = np.full(segments, len(vertices) - 1)
    parts = [
        (np.zeros(segments, dtype=np.int64), 1 + here, 1 + there),
        (a, b, c),
        (a, c, d),
        (last + here, pole, last + there),
    ]
    return vertices, np.concatenate([np.stack(p, axis=1) for p in parts])


def torus(
    ring_radius: float,
    tube_radius: float,
    segments: int = 64,
    sides: int = 24,
    centre: ArrayLike = (0.0, 0.0, 0.0),
) -> TriangleMesh:
    """A ring about z; `ring_radius` is that of the tube's middle line."""
    _positive(ring_radius=ring_radius, tube_radius=tube_radius)
    _at_least(3, segments=segments, sides=sides)
    if tube_radius >= ring_radius:
        raise InputError(
            f"tube_radius = {tube_radius} is not possible.", f"It must be below ring_radius = {ring_radius}."
        )
    i, j = (g.ravel() for g in np.meshgrid(np.arange(segments), np.arange(sides), indexing="ij"))
    around, across = 2.0 * math.pi * i / segments, 2.0 * math.pi * j / sides
    reach = ring_radius + tube_radius * np.cos(across)
    vertices = np.stack([reach * np.cos(around), reach * np.sin(around), tube_radius * np.sin(across)], axis=1)

    def at(di: int, dj: int) -> NDArray[np.int64]:
        return ((i + di) % segments) * sides + (j + dj) % sides

    triangles = np.concatenate(
        [np.stack([at(0, 0), at(1, 0), at(1, 1)], axis=1), np.stack([at(0, 0), at(1, 1), at(0, 1)], axis=1)]
    )
    return _made(vertices, triangles, "torus", centre)


def box(size: ArrayLike, cells: Cells = (1, 1, 1), centre: ArrayLike = (0.0, 0.0, 0.0)) -> TriangleMesh:
    """A box of `cells` equal quads along x, y and z, each of two triangles."""
    sides = np.asarray(size, dtype=np.float64)
    _check_box(sides, cells)
    grid, triangles = _box_topology(cells)
    vertices = (grid / np.asarray(cells) - 0.5) * sides
    return _made(vertices, triangles, "box", centre)


def rounded_slab(
    size: ArrayLike = (0.096, 0.096, 0.032),
    edge_radius: float = 0.004,
    cells: Cells = (48, 48, 16),
    centre: ArrayLike = (0.0, 0.0, 0.0),
) -> TriangleMesh:
    """A block of tissue with z up: flat faces of equal quads, all edges and corners rounded with `edge_radius`.

    `cells` counts quads along x, y and z, the roundings included. Each of two faces that meet takes 45° of the rounding
    between them, in rows of equal angle; corners are eighths of a sphere.
    """
    sides = np.asarray(size, dtype=np.float64)
    _check_box(sides, cells)
    _positive(edge_radius=edge_radius)
    if 2.0 * edge_radius >= sides.min():
        raise InputError(
            f"edge_radius = {edge_radius} is not possible.",
            f"It must be below half the thinnest side, {sides.min() / 2}.",
        )
    grid, triangles = _box_topology(cells)
    core = np.empty((len(grid), 3))
    lean = np.empty((len(grid), 3))
    for axis in range(3):
        core[:, axis], lean[:, axis] = _slab_line(grid[:, axis], cells[axis], sides[axis], edge_radius)
    # On a face its own coordinate leans fully out (±1); the two others lean out only within the roundings.
    direction = lean / np.linalg.norm(lean, axis=1, keepdims=True)
    return _made(core + edge_radius * direction, triangles, "slab", centre)


def _slab_line(index: NDArray[np.int64], cells: int, side: float, radius: float) -> tuple[FloatArray, FloatArray]:
    """Along one axis: the nearest point of the slab's core, and the tangent of its rounding's angle (±1 on a face)."""
    flat = side - 2.0 * radius
    arc = 0.25 * math.pi * radius
    # Rows of the rounding get about the height of the flat part's rows, so that triangles stay well shaped.
    rows = min(max(1, round(cells * arc / (flat + 2.0 * arc))), (cells - 1) // 2)
    if rows < 1:
        raise InputError(f"cells = {cells} along one side is too few.", "A rounded side needs at least 3.")
    inner = np.clip(index - rows, 0, cells - 2 * rows)
    core = flat * (inner / (cells - 2 * rows) - 0.5)
    lean = np.tan(0.25 * math.pi * (index - rows - inner) / rows)
    return core, lean


def unrolled_ring(segments: int = 200, sides: int = 50) -> TriangleMesh:
    """A ring of 0.06 m and 0.02 m radius whose texture is one rectangle, 90 % of the unit square."""
    i, j = (g.ravel() for g in np.meshgrid(np.arange(segments + 1), np.arange(sides + 1), indexing="ij"))
    # Whole turns are taken off, so that both sides of a seam are at exactly one place.
    around, across = 2.0 * math.pi * (i % segments) / segments, 2.0 * math.pi * (j % sides) / sides
    reach = 0.06 + 0.02 * np.cos(across)
    vertices = np.stack([reach * np.cos(around), reach * np.sin(around), 0.02 * np.sin(across)], axis=1)
    uv = 0.05 + 0.9 * np.stack([i / segments, j / sides], axis=1)
    low = (np.arange(segments)[:, None] * (sides + 1) + np.arange(sides)).ravel()
    a, b, c, d = low, low + sides + 1, low + sides + 2, low + 1
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return TriangleMesh(vertices, triangles, "ring", uv.astype(np.float32))


def _check_box(sides: FloatArray, cells: Cells) -> None:
    if sides.shape != (3,):
        raise InputError(f"size has shape {sides.shape}.", "Give three sides: x, y, z.")
    _positive(size_x=sides[0], size_y=sides[1], size_z=sides[2])
    _at_least(1, cells_x=cells[0], cells_y=cells[1], cells_z=cells[2])


def _box_topology(cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Vertices of a box's surface as grid indices, shape (v, 3), and its triangles.

    Diagonals alternate from quad to quad: all in one direction would show as a grain in the shading.
    """
    points: list[NDArray[np.int64]] = []
    quads: list[NDArray[np.int64]] = []
    odd: list[NDArray[np.bool_]] = []
    count = 0
    for axis, end in itertools.product(range(3), (0, 1)):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        i, j = np.meshgrid(np.arange(cells[u] + 1), np.arange(cells[v] + 1), indexing="ij")
        face = np.zeros((*i.shape, 3), dtype=np.int64)
        face[..., u], face[..., v], face[..., axis] = i, j, end * cells[axis]
        number = count + np.arange(i.size).reshape(i.shape)
        corners = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
        quads.append(np.stack(corners if end else corners[::-1], axis=-1).reshape(-1, 4))
        odd.append(((i + j)[:-1, :-1] % 2 == 1).ravel())
        points.append(face.reshape(-1, 3))
        count += i.size
    grid, merged = np.unique(np.concatenate(points), axis=0, return_inverse=True)
    quad = merged.reshape(-1)[np.concatenate(quads)]
    flip = np.concatenate(odd)
    quad[flip] = np.roll(quad[flip], 1, axis=1)
    return grid, np.concatenate([quad[:, [0, 1, 2]], quad[:, [0, 2, 3]]])
