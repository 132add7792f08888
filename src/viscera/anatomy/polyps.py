"""Polyps by rule: domes that stand into the lumen of a colon, where a seed hides them.

A polyp of height h on a foot of radius b moves the wall at distance d from its middle inwards, along the wall's normal
there, by

    h (1 − (d/b)²)²,

a smooth sessile dome; triangles there are split until it has its shape. Polyps of 10 mm and more are those that a
barium study must not miss (Levine, Rubesin and Laufer, Double Contrast Gastrointestinal Radiology).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viscera.anatomy.colon import Centreline
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.refine import refined

FOOT = (0.009, 0.012)
"""Least and most radius of a foot [m]."""
HEIGHT = 0.95
"""Over the radius of the foot."""
MOST_ROOM = 0.6
"""A polyp is no higher than this part of the lumen's radius."""
EDGE = 0.0025
"""Longest edge of a polyp's triangles [m]."""
ALONG = (0.12, 0.94)
"""Part of the colon, from the anus on, that has polyps."""


@dataclass(frozen=True, eq=False)
class Polyps:
    """Where they are."""

    middle: FloatArray
    """Halfway up each [m], (n, 3)."""
    foot: FloatArray
    """Radius [m], (n,)."""


def with_polyps(mesh: TriangleMesh, line: Centreline, seed: int, count: int = 3) -> tuple[TriangleMesh, Polyps]:
    """The wall of a colon along `line` with `count` polyps, one in each of as many equal parts of its length."""
    rng = np.random.default_rng([seed, 11])
    length = line.lengths[-1]
    middles, feet = [], []
    for k in range(count):
        share = ALONG[0] + (ALONG[1] - ALONG[0]) * (k + rng.uniform(0.15, 0.85)) / count
        at = int(np.searchsorted(line.lengths, share * length))
        angle, foot = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(*FOOT)
        other = np.cross(line.tangents[at], line.across[at])
        out = np.cos(angle) * line.across[at] + np.sin(angle) * other
        wall = line.points[at] + line.radii[at] * out
        height = min(HEIGHT * foot, MOST_ROOM * float(line.radii[at]))
        mesh, top = _with_dome(mesh, wall, foot, height)
        middles.append(top)
        feet.append(foot)
    return mesh, Polyps(np.array(middles).reshape(-1, 3), np.array(feet))


def _with_dome(mesh: TriangleMesh, wall: FloatArray, foot: float, height: float) -> tuple[TriangleMesh, FloatArray]:
    """A dome on the wall nearest to a place, and its middle halfway up."""
    nearest = int(np.linalg.norm(mesh.vertices - wall, axis=1).argmin())
    middle, outward = mesh.vertices[nearest], mesh.vertex_normals[nearest]
    fine = refined(mesh, lambda places: np.linalg.norm(places - middle, axis=1) < 1.2 * foot, EDGE)
    away = np.linalg.norm(fine.vertices - middle, axis=1) / foot
    # Walls of a neighbouring loop may be as near, but face the other way.
    same = fine.vertex_normals @ outward > 0.0
    dome = np.where(same & (away < 1.0), (1.0 - np.minimum(away, 1.0) ** 2) ** 2, 0.0)
    vertices = fine.vertices - height * dome[:, None] * outward
    return TriangleMesh(vertices, fine.triangles, fine.name), middle - 0.5 * height * outward
