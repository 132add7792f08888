"""Fewer triangles: vertices that are close together become one (Rossignac and Borrel 1993).

Space is cut into cubes of one size; all vertices in a cube move to their mean. Triangles that lose a corner vanish, and
two that lie on each other the opposite way round cancel. That is a map of triangles to triangles that keeps boundaries,
so a closed surface stays closed, whatever it looks like: over every edge as many triangles run one way as the other.
Walls thinner than a cube vanish. The side of the cubes is found by halving.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, IntArray, TriangleMesh

FEWEST = 100
"""Triangles that may be asked for."""

HALVINGS = 14
"""Of the interval in which the side of the cubes is looked for."""


def simplify(mesh: TriangleMesh, most: int) -> TriangleMesh:
    """The same shape with at most `most` triangles and without texture coordinates."""
    if most < FEWEST:
        raise InputError(f"{most} triangles are too few.", f"Allowed are {FEWEST} and more.")
    if len(mesh.triangles) <= most:
        return mesh
    # A surface of area A has about 2A/h² triangles when its vertices are h apart.
    fine, coarse = 0.0, 4.0 * float(np.sqrt(2.0 * mesh.area / most))
    found = clustered(mesh, coarse)
    while len(found[1]) > most:
        coarse *= 2.0
        found = clustered(mesh, coarse)
    for _ in range(HALVINGS):
        side = 0.5 * (fine + coarse)
        tried = clustered(mesh, side)
        if len(tried[1]) <= most:
            coarse, found = side, tried
        else:
            fine = side
    vertices, triangles = found
    if len(triangles) == 0:
        raise InputError(
            f"nothing of {mesh.name} is left with {most} triangles: its walls are thinner than their sides.",
            "Ask for more triangles.",
        )
    note = f"simplified from {len(mesh.triangles)} to {len(triangles)} triangles, {1000 * coarse:.2g} mm apart"
    return replace(mesh, vertices=vertices, triangles=triangles, uv=None, notes=(*mesh.notes, note))


def clustered(mesh: TriangleMesh, side: float) -> tuple[FloatArray, IntArray]:
    """Vertices and triangles when all vertices in a cube of this side [m] are one."""
    cube = np.floor((mesh.vertices - mesh.bounds[0]) / side).astype(np.int64)
    span = cube.max(axis=0) + 1
    number = (cube[:, 0] * span[1] + cube[:, 1]) * span[2] + cube[:, 2]
    _, group, size = np.unique(number, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    means = [np.bincount(group, weights=mesh.vertices[:, axis]) / size for axis in range(3)]
    corners = group[mesh.triangles]
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (c != a)]
    triangles = _without_opposites(corners)
    used, renumbered = np.unique(triangles, return_inverse=True)
    return np.stack(means, axis=1)[used], renumbered.reshape(-1, 3).astype(np.int32)


def _without_opposites(corners: np.ndarray) -> np.ndarray:
    """Of the triangles on the same three corners, as many as are left when opposite ones cancel."""
    if len(corners) == 0:
        return corners
    order = np.argsort(corners, axis=1)
    same = np.take_along_axis(corners, order, axis=1)
    # An even permutation of the sorted corners runs one way round, an odd one the other.
    even = (order[:, 1] - order[:, 0]) % 3 == 1
    unique, which = np.unique(same, axis=0, return_inverse=True)
    balance = np.bincount(which.reshape(-1), weights=np.where(even, 1.0, -1.0)).astype(np.int64)
    turned = np.where((balance < 0)[:, None], unique[:, ::-1], unique)
    return np.repeat(turned, np.abs(balance), axis=0)
