"""Smooth closed surfaces from an implicit function: blended bodies, and a mesh of well-shaped triangles around them.

A body is where f(x) < 0. Ellipsoids with half axes r give

    f(x) = |q|·(|q| − 1)/|q/r|,   q = Rᵀ(x − c)/r,

which vanishes on the ellipsoid and has unit slope there. Two bodies are joined, and one is carved out of another, by a
minimum whose corner is rounded over a width k,

    join(f, g) = min(f, g) − h²/(4k),   h = max(k − |f − g|, 0),      carve(f, g) = −join(−f, g).

The mesh has one vertex in each cell of a grid that the surface crosses and one quad around each edge that it crosses
(naive surface nets: Gibson, "Constrained elastic surface nets", MICCAI 1998, doi 10.1007/BFb0056277). Vertices then
move to the mean of their neighbours and back onto f = 0, in turns, which evens out the triangles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

Field = Callable[[FloatArray], FloatArray]
"""Values [m] at points of shape (n, 3) [m]; negative inside."""

MOST_CELLS = 8_000_000
"""About as many may the grid have: a slip in the edge length is refused before it fills the memory."""

ROUNDS = 12
"""Of smoothing; more changes the angles of the triangles little."""

GRID_SHIFTS = ((0.0, 0.0, 0.0), (0.31, 0.17, 0.43), (0.13, 0.47, 0.29), (0.41, 0.37, 0.11))
"""Places of the grid that are tried [cells]: where the surface touches itself within a cell, another place helps."""


@dataclass(frozen=True)
class Ellipsoid:
    centre: tuple[float, float, float]
    """[m]"""
    radii: tuple[float, float, float]
    """Half axes [m]."""
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """About x, then y, then z [degrees]."""
    blend: float = 0.01
    """Width over which its joint to the rest is rounded [m]."""

    def value(self, points: FloatArray) -> FloatArray:
        """f at points, shape (n, 3) [m]."""
        radii = np.asarray(self.radii)
        q = (points - np.asarray(self.centre)) @ (rotation(self.turn) / radii)
        reach = np.sqrt(np.einsum("ij,ij->i", q, q))
        slope = np.sqrt(np.einsum("ij,ij,j->i", q, q, radii**-2.0))
        # At the very centre both vanish; there the value is minus the shortest half axis.
        return np.divide(reach * (reach - 1.0), slope, out=np.full(len(q), -radii.min()), where=slope > 0.0)

    @property
    def reach(self) -> FloatArray:
        """Half sides of the box around it [m]."""
        return np.sqrt((rotation(self.turn) ** 2) @ (np.asarray(self.radii) ** 2))


@dataclass(frozen=True)
class Body:
    """Ellipsoids that are joined, in order, then others that are carved out."""

    joined: tuple[Ellipsoid, ...]
    carved: tuple[Ellipsoid, ...] = ()

    def value(self, points: FloatArray) -> FloatArray:
        """f at points, shape (n, 3) [m]."""
        f = self.joined[0].value(points)
        for one in self.joined[1:]:
            f = join(f, one.value(points), one.blend)
        for one in self.carved:
            f = carve(f, one.value(points), one.blend)
        return f

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """A box that holds it, rounded seams included [m]."""
        low = np.min([np.asarray(one.centre) - one.reach - one.blend for one in self.joined], axis=0)
        high = np.max([np.asarray(one.centre) + one.reach + one.blend for one in self.joined], axis=0)
        return low, high

    def varied(self, rng: np.random.Generator, shift: float, stretch: float) -> Body:
        """Another individual: centres moved by about `shift` [m], half axes stretched by about the share `stretch`."""

        def vary(one: Ellipsoid) -> Ellipsoid:
            # At most two standard deviations, so that no individual falls apart.
            way, growth = np.clip(rng.standard_normal((2, 3)), -2.0, 2.0)
            x, y, z = (np.asarray(one.centre) + shift * way).tolist()
            a, b, c = (np.asarray(one.radii) * (1.0 + stretch * growth)).tolist()
            return replace(one, centre=(x, y, z), radii=(a, b, c))

        return Body(tuple(map(vary, self.joined)), tuple(map(vary, self.carved)))


def rotation(turn: tuple[float, float, float]) -> FloatArray:
    """Matrix that turns about x, then y, then z by these angles [degrees]."""
    matrix = np.eye(3)
    for axis, angle in enumerate(np.radians(turn)):
        c, s = np.cos(angle), np.sin(angle)
        u, v = (axis + 1) % 3, (axis + 2) % 3
        one = np.eye(3)
        one[u, u] = one[v, v] = c
        one[u, v], one[v, u] = -s, s
        matrix = one @ matrix
    return matrix


def join(first: FloatArray, second: FloatArray, blend: float) -> FloatArray:
    """The union of two bodies, its seam rounded over `blend` [m]."""
    overlap = np.maximum(blend - np.abs(first - second), 0.0)
    return np.minimum(first, second) - overlap**2 / (4.0 * blend)


def carve(body: FloatArray, hollow: FloatArray, blend: float) -> FloatArray:
    """What is left of `body` without `hollow`, the rim rounded over `blend` [m]."""
    return -join(-body, hollow, blend)


def polygonise(field: Field, low: FloatArray, high: FloatArray, edge: float, name: str) -> TriangleMesh:
    """A closed mesh of f = 0 inside the box from `low` to `high`, its edges about `edge` long [m]."""
    finest = float(np.prod(high - low) / MOST_CELLS) ** (1.0 / 3.0)
    if not (np.isfinite(edge) and edge > finest):
        raise InputError(
            f"{name}: edges of {edge * 1e3:g} mm are not possible.", f"Choose above {finest * 1e3:.2g} mm."
        )
    cells = np.ceil((high - low) / edge).astype(np.int64) + 2
    for shift in GRID_SHIFTS:
        origin = low - edge * (0.5 + np.asarray(shift))
        vertices, quads = _surface_nets(field, origin, edge, cells + 1)
        if _each_edge_twice(quads):
            break
    else:
        raise InputError(
            f"{name}: edges of {edge * 1e3:g} mm are too coarse for its thin parts.", "Choose shorter edges."
        )
    vertices = _relaxed(field, vertices, quads, edge)
    return TriangleMesh(vertices, _split(vertices, quads), name)


def of_volume(mesh: TriangleMesh, volume: float) -> TriangleMesh:
    """The mesh, made as large about the origin as holds `volume` [m³]."""
    return mesh.scaled((volume / mesh.volume) ** (1.0 / 3.0))


def waves(points: FloatArray, rng: np.random.Generator, height: float, lengths: tuple[float, float]) -> FloatArray:
    """A gentle undulation: eight plane waves of these lengths in all directions, `height` [m] the root mean square."""
    count = 8
    way = rng.standard_normal((count, 3))
    way *= (2.0 * np.pi / (rng.uniform(*lengths, count) * np.linalg.norm(way, axis=1)))[:, None]
    phase = rng.uniform(0.0, 2.0 * np.pi, count)
    return height * np.sqrt(2.0 / count) * np.sin(points @ way.T + phase).sum(axis=1)


def _surface_nets(
    field: Field, origin: FloatArray, edge: float, nodes: NDArray[np.int64]
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Vertices and the quads between them, outward; `nodes` counts the grid's along x, y and z."""
    axes = [origin[a] + edge * np.arange(nodes[a]) for a in range(3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    value = field(grid.reshape(-1, 3)).reshape(tuple(nodes))
    inside = value < 0.0
    cells = tuple(nodes - 1)
    total, hits = np.zeros((*cells, 3)), np.zeros(cells)
    crossings: list[tuple[NDArray[np.int64], NDArray[np.bool_], int]] = []
    for axis in range(3):
        first, second = _ends(value, axis)
        crosses = _ends(inside, axis)[0] != _ends(inside, axis)[1]
        at = np.argwhere(crosses)
        share = first[crosses] / (first[crosses] - second[crosses])
        point = at.astype(np.float64)
        point[:, axis] += share
        # A crossing counts for the four cells around its edge.
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for du, dv in itertools.product((0, 1), repeat=2):
            cell = at.copy()
            cell[:, u] -= du
            cell[:, v] -= dv
            np.add.at(total, tuple(cell.T), point)
            np.add.at(hits, tuple(cell.T), 1.0)
        crossings.append((at, _ends(inside, axis)[0][crosses], axis))
    used = hits > 0.0
    number = np.full(cells, -1, dtype=np.int64)
    number[used] = np.arange(int(used.sum()))
    quads = [_quads_around(at, starts_inside, axis, number) for at, starts_inside, axis in crossings]
    return origin + edge * total[used] / hits[used][:, None], np.concatenate(quads)


def _ends(array: NDArray, axis: int) -> tuple[NDArray, NDArray]:
    """The array at both ends of the grid's edges along an axis."""
    count = array.shape[axis]
    return array.take(range(count - 1), axis), array.take(range(1, count), axis)


def _quads_around(
    at: NDArray[np.int64], starts_inside: NDArray[np.bool_], axis: int, number: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Around each crossed edge the four cells it borders, counter-clockwise seen from outside."""
    u, v = (axis + 1) % 3, (axis + 2) % 3
    corners = []
    for du, dv in ((1, 1), (0, 1), (0, 0), (1, 0)):
        cell = at.copy()
        cell[:, u] -= du
        cell[:, v] -= dv
        corners.append(number[tuple(cell.T)])
    quads = np.stack(corners, axis=1)
    quads[~starts_inside] = quads[~starts_inside][:, ::-1]
    return quads


def _each_edge_twice(quads: NDArray[np.int64]) -> bool:
    edges = np.concatenate([quads[:, [i, (i + 1) % 4]] for i in range(4)])
    _, uses = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    return bool((uses == 2).all())


def _relaxed(field: Field, vertices: FloatArray, quads: NDArray[np.int64], edge: float) -> FloatArray:
    """Vertices evened out along the surface and put onto it."""
    pairs = np.concatenate([quads[:, [i, (i + 1) % 4]] for i in range(4)])
    degree = np.bincount(pairs[:, 0], minlength=len(vertices))[:, None]
    for _ in range(ROUNDS):
        mean = np.stack(
            [np.bincount(pairs[:, 0], vertices[pairs[:, 1], a], minlength=len(vertices)) for a in range(3)], axis=1
        )
        vertices = onto(field, 0.5 * (vertices + mean / degree), edge)
    return onto(field, vertices, edge, steps=3)


def onto(field: Field, points: FloatArray, reach: float, steps: int = 1) -> FloatArray:
    """Points moved onto f = 0 by Newton's method, each step no longer than `reach` [m]."""
    for _ in range(steps):
        value = field(points)
        slope = _gradient(field, points, value, 1e-3 * reach)
        length = np.maximum(np.linalg.norm(slope, axis=1), 1e-6)
        way = np.clip(value / length, -reach, reach)
        points = points - (way / length)[:, None] * slope
    return points


def _gradient(field: Field, points: FloatArray, value: FloatArray, step: float) -> FloatArray:
    """∇f by one-sided differences, shape (n, 3); `value` is f at the points."""
    return np.stack([(field(points + step * axis) - value) / step for axis in np.eye(3)], axis=1)


def _split(vertices: FloatArray, quads: NDArray[np.int64]) -> NDArray[np.int32]:
    """Two triangles for each quad, along its shorter diagonal."""
    a, b, c, d = (vertices[quads[:, i]] for i in range(4))
    other = np.linalg.norm(b - d, axis=1) < np.linalg.norm(a - c, axis=1)
    quads = np.where(other[:, None], np.roll(quads, -1, axis=1), quads)
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int32)
