"""How triangles hang together: edges, shells, orientation. Plain NumPy, no loops over triangles.

Vertices at exactly one position count as one here, so a texture seam is no hole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.mesh import FloatArray, TriangleMesh, weld

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NESTING_LIMIT = 50
"""Shells, the largest first, for which it is found out whether they lie inside others; the rest are specks."""


@dataclass(frozen=True, eq=False)
class Topology:
    triangles: Ints
    """Welded vertex numbers, shape (t, 3); without collapsed triangles (two corners at one place) and repeated ones."""
    faces: Ints
    """Which triangles of the mesh these are, shape (t,)."""
    collapsed: Ints
    duplicate: Ints
    """Triangles of the mesh that were left out."""
    edges: Ints
    """Welded vertex numbers, the lower first, shape (e, 2)."""
    face_edges: Ints
    """Edges of each triangle, shape (t, 3)."""
    runs_up: Flags
    """Whether the triangle runs along its edge from the lower to the higher vertex, shape (t, 3)."""
    uses: Ints
    """Triangles at each edge, shape (e,); 2 on a closed surface."""


def topology(mesh: TriangleMesh) -> Topology:
    welded = weld(mesh.vertices)[mesh.triangles]
    a, b, c = welded.T
    sound = (a != b) & (b != c) & (c != a)
    # The lowest corner first: equal rows are one face with one orientation. A face and its reverse are two, as where
    # two bodies share a wall.
    lowest_first = np.take_along_axis(welded, (welded.argmin(axis=1)[:, None] + np.arange(3)) % 3, axis=1)
    _, first = np.unique(lowest_first, axis=0, return_index=True)
    original = np.zeros(len(welded), dtype=bool)
    original[first] = True
    faces = np.flatnonzero(sound & original)
    kept = welded[faces]
    start, end = kept, np.roll(kept, -1, axis=1)
    key = np.minimum(start, end) * np.int64(len(mesh.vertices)) + np.maximum(start, end)
    unique, which, uses = np.unique(key, return_inverse=True, return_counts=True)
    return Topology(
        triangles=kept,
        faces=faces,
        collapsed=np.flatnonzero(~sound),
        duplicate=np.flatnonzero(sound & ~original),
        edges=np.stack(np.divmod(unique, len(mesh.vertices)), axis=1),
        face_edges=which.reshape(kept.shape),
        runs_up=start < end,
        uses=uses,
    )


def components(count: int, a: Ints, b: Ints) -> Ints:
    """For each of `count` nodes the lowest node that the links a–b connect it with.

    Roots are hung under lower roots of linked nodes until no link joins two of them; each round at least halves the
    number of roots that still have links.
    """
    root = np.arange(count)
    while True:
        low, high = root[a], root[b]
        open_links = low != high
        if not open_links.any():
            return root
        a, b, low, high = a[open_links], b[open_links], low[open_links], high[open_links]
        np.minimum.at(root, np.maximum(low, high), np.minimum(low, high))
        while True:
            above = root[root]
            if np.array_equal(above, root):
                break
            root = above


@dataclass(frozen=True, eq=False)
class Orientation:
    """Per triangle of a `Topology`."""

    shell: Ints
    """Number of the part it belongs to, 0 …; parts hang together over edges that exactly two triangles share."""
    against: Flags
    """It runs against the greater part of its shell (by area)."""
    inside_out: Flags
    """Its shell is closed and faces inward, though it is the outermost one, or lies in one that is to be turned."""
    one_sided: Flags
    """Its shell cannot be oriented at all, like a Möbius strip."""


def orientation(mesh: TriangleMesh, topo: Topology) -> Orientation:
    count = len(topo.faces)
    f, g, agree = _neighbours(topo)
    # Each triangle is two nodes, as it is and turned over. Neighbours that agree are linked as they are, others
    # crosswise; turning over those that are linked to their shell's lowest one turned makes the shell consistent.
    first = components(2 * count, np.concatenate([f, f + count]), np.where(np.tile(agree, 2), *_cover(g, count)))
    as_is, turned = first[:count], first[count:]
    root, shell = np.unique(np.minimum(as_is, turned), return_inverse=True)
    one_sided = as_is == turned
    against = as_is > turned
    face_volume = mesh.face_volumes[topo.faces]
    area = np.linalg.norm(mesh.face_vectors[topo.faces], axis=1)
    lean = np.bincount(shell, weights=np.where(against, area, -area), minlength=len(root))
    against = against ^ (lean > 0.0)[shell]
    against &= ~one_sided
    volume = np.bincount(shell, weights=np.where(against, -face_volume, face_volume), minlength=len(root))
    closed = np.ones(len(root), dtype=bool)
    closed[shell[(topo.uses[topo.face_edges] != 2).any(axis=1) | one_sided]] = False
    outermost = _outermost(mesh, topo, shell, np.where(closed, volume, 0.0))
    inside_out = (volume[outermost] < 0.0) & closed[outermost]
    return Orientation(shell, against, inside_out[shell], one_sided)


def part_count(topo: Topology) -> int:
    """Parts that do not hang together by any edge."""
    faces, edges = len(topo.faces), len(topo.edges)
    links = np.repeat(np.arange(faces), 3), faces + topo.face_edges.ravel()
    return len(np.unique(components(faces + edges, *links)))


def nested_count(mesh: TriangleMesh, topo: Topology, turn: Orientation) -> int:
    """Closed parts that lie inside another one: cavities, or bodies in bodies."""
    count = int(turn.shell.max()) + 1
    if count < 2:
        return 0
    face_volume = mesh.face_volumes[topo.faces]
    signed = np.where(turn.against, -face_volume, face_volume)
    volume: FloatArray = np.bincount(turn.shell, weights=signed, minlength=count).astype(np.float64)
    return int((_outermost(mesh, topo, turn.shell, volume) != np.arange(count)).sum())


def bounds_a_volume(topo: Topology, turn: Orientation) -> bool:
    """Whether, once turned outward, as many triangles run one way along every edge as the other."""
    runs_up = topo.runs_up ^ (turn.against ^ turn.inside_out)[:, None]
    balance = np.bincount(topo.face_edges.ravel(), weights=np.where(runs_up, 1.0, -1.0).ravel())
    return not np.any(balance)


def _cover(g: Ints, count: int) -> tuple[Ints, Ints]:
    return np.concatenate([g, g + count]), np.concatenate([g + count, g])


def _neighbours(topo: Topology) -> tuple[Ints, Ints, Flags]:
    """Pairs of triangles over the edges that exactly two share, and whether the two run opposite ways along it."""
    order = np.argsort(topo.face_edges.ravel(), kind="stable")
    order = order[topo.uses[topo.face_edges.ravel()[order]] == 2].reshape(-1, 2)
    face = order // 3
    up = topo.runs_up.ravel()[order]
    return face[:, 0], face[:, 1], up[:, 0] != up[:, 1]


def _outermost(mesh: TriangleMesh, topo: Topology, shell: Ints, volume: FloatArray) -> Ints:
    """For each shell the largest closed shell that holds it, or itself."""
    result = np.arange(len(volume))
    size = np.abs(volume)
    ranked = np.argsort(-size, kind="stable")[:NESTING_LIMIT]
    if len(ranked) < 2:
        return result
    corners = mesh.corners[topo.faces]
    for number in ranked[1:]:
        point = corners[np.argmax(shell == number), 0]
        winding = np.bincount(shell, weights=_solid_angles(corners, point), minlength=len(volume)) / (4.0 * np.pi)
        holds = (np.abs(winding) > 0.5) & (size > size[number])
        if holds.any():
            result[number] = np.argmax(np.where(holds, size, 0.0))
    return result


def _solid_angles(corners: FloatArray, point: FloatArray) -> FloatArray:
    """Signed solid angle of each triangle seen from `point` (van Oosterom and Strackee 1983, eq. 8)."""
    a, b, c = (corners[:, i] - point for i in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    triple = np.einsum("ij,ij->i", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a)))
    return 2.0 * np.arctan2(triple, la * lb * lc + ab * lc + bc * la + ca * lb)
