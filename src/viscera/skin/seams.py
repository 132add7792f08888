"""Seams: where one edge of the surface lies at two places of the atlas.

Across a seam, a point at uv_a on side a is, unfolded about the common edge, at

    uv_b = p_b + M (uv_a − p_a),    M = J_b⁻¹ J_a,

where p is the edge's first end and J takes a texture vector to lengths along the edge and square to it in the face's
own plane. M⁻¹ = J_a⁻¹ J_b is made the same way, so both directions are equally exact. The document names a lookup
texture of neighbours (Kvick §6.1.2); here neighbours are `Links`: the texels on both sides of each stretch of a seam,
with the part of the edge that they share. A link is one thing seen from both sides: what leaves one texel enters the
other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.atlas import Atlas
from viscera.geometry.mesh import FloatArray, IntArray, TriangleMesh, weld

INWARD = 1.0e-7
"""Step from an edge into its face, in texels, when the edge runs along a texel's side."""

THINNEST = 1.0e-6
"""Height over longest side below which a triangle is a line."""


@dataclass(frozen=True, eq=False)
class Seams:
    """Pairs of half-edges. Side a runs along its triangle, side b against its own."""

    face: IntArray
    """Faces on sides a and b, shape (seams, 2)."""
    corner: IntArray
    """Which edge of each face: from this corner to the next, shape (seams, 2)."""
    vertex: IntArray
    """The edge's ends, as vertices of the mesh, shape (seams, 2)."""
    ends: FloatArray
    """uv of the edge's two ends on both sides, shape (seams, side, end, 2)."""
    across: FloatArray
    """M from a to b and from b to a, shape (seams, 2, 2, 2)."""
    barriers: int
    """Edges with more than two triangles, or beside one without area; nothing crosses them."""

    def __len__(self) -> int:
        return len(self.face)


@dataclass(frozen=True, eq=False)
class Links:
    """Stretches of seams, each between one texel on side a and one on side b."""

    texel: IntArray
    """Shape (links, 2)."""
    seam: IntArray
    """Shape (links,)."""
    part: FloatArray
    """Length of the stretch as a fraction of the edge's, shape (links,)."""
    middle: FloatArray
    """Where along the edge its middle lies, 0 to 1, shape (links,)."""


def find_seams(mesh: TriangleMesh, atlas: Atlas) -> Seams:
    welded = weld(mesh.vertices)[mesh.triangles]
    start, end = welded.ravel(), np.roll(welded, -1, axis=1).ravel()
    low, high = np.minimum(start, end), np.maximum(start, end)
    sound = start != end
    _, edge, uses = np.unique(low * np.int64(len(mesh.vertices)) + high, return_inverse=True, return_counts=True)
    order = np.argsort(edge.reshape(-1), kind="stable")
    first = np.concatenate([[0], np.cumsum(uses)])[:-1]
    pair = first[uses == 2]
    a, b = order[pair], order[pair + 1]
    a, b = a[sound[a]], b[sound[a]]
    # Side b lists its own edge backwards; flipped neighbours run the same way.
    against = start[a] == end[b]
    tri = atlas.triangles.ravel()
    following = np.roll(atlas.triangles, -1, axis=1).ravel()
    b0, b1 = np.where(against, following[b], tri[b]), np.where(against, tri[b], following[b])
    ends = np.stack(
        [np.stack([atlas.uv[tri[a]], atlas.uv[following[a]]], axis=1), np.stack([atlas.uv[b0], atlas.uv[b1]], axis=1)],
        axis=1,
    )
    apart = (ends[:, 0] != ends[:, 1]).any(axis=(1, 2))
    # A triangle that is a line, in space or in the atlas, has no inside to lead to.
    flat = _is_line(mesh.corners) | _is_line(atlas.corners)
    closed = apart & (flat[a // 3] | flat[b // 3])
    apart &= ~closed
    a, b, ends = a[apart], b[apart], ends[apart]
    face = np.stack([a // 3, b // 3], axis=1).astype(np.int32)
    corner = np.stack([a % 3, b % 3], axis=1).astype(np.int32)
    vertex = np.stack([mesh.triangles.ravel()[a], np.roll(mesh.triangles, -1, axis=1).ravel()[a]], axis=1)
    across = _unfolded(mesh, atlas, face, corner, vertex, ends)
    return Seams(face, corner, vertex.astype(np.int32), ends, across, int((uses > 2).sum() + closed.sum()))


def _unfolded(
    mesh: TriangleMesh, atlas: Atlas, face: IntArray, corner: IntArray, vertex: IntArray, ends: FloatArray
) -> FloatArray:
    """M and its inverse for every seam."""
    origin = mesh.vertices[vertex[:, 0]]
    along = mesh.vertices[vertex[:, 1]] - origin
    length = np.linalg.norm(along, axis=1)
    unit = along / length[:, None]
    to_uv = np.empty((len(face), 2, 2, 2))
    to_plane = np.empty_like(to_uv)
    for side in (0, 1):
        tip = (corner[:, side] + 2) % 3
        arm = mesh.vertices[mesh.triangles[face[:, side], tip]] - origin
        s = np.einsum("ij,ij->i", arm, unit)
        n = np.linalg.norm(arm - s[:, None] * unit, axis=1)
        # Unfolded, side a lies above the edge and side b below it.
        plane = np.zeros((len(face), 2, 2))
        plane[:, 0, 0], plane[:, 0, 1], plane[:, 1, 1] = length, s, n if side == 0 else -n
        first = ends[:, side, 0]
        texture = np.stack([ends[:, side, 1] - first, atlas.uv[atlas.triangles[face[:, side], tip]] - first], axis=2)
        to_plane[:, side] = plane @ _inverse(texture)
        to_uv[:, side] = texture @ _inverse(plane)
    return np.stack([to_uv[:, 1] @ to_plane[:, 0], to_uv[:, 0] @ to_plane[:, 1]], axis=1)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Of 2 × 2 matrices."""
    (a, b), (c, d) = matrix[:, 0].T, matrix[:, 1].T
    adjugate = np.stack([np.stack([d, -b], axis=1), np.stack([-c, a], axis=1)], axis=1)
    return adjugate / (a * d - b * c)[:, None, None]


def _is_line(corners: FloatArray) -> NDArray[np.bool_]:
    """Whether a triangle's height is below `THINNEST` of its longest side; shape (triangles, 3, 2 or 3)."""
    sides = corners - np.roll(corners, 1, axis=1)
    square = np.einsum("nkd,nkd->nk", sides, sides)
    dot = np.einsum("nd,nd->n", sides[:, 0], sides[:, 1])
    doubled = np.sqrt(np.maximum(square[:, 0] * square[:, 1] - dot**2, 0.0))
    return doubled <= THINNEST * square.max(axis=1)


def cross_seam(seams: Seams, seam: NDArray[np.integer], side: int, uv: FloatArray) -> FloatArray:
    """Where points at `uv`, seen from `side` (0 or 1) of their seams, are on the other side."""
    offset = uv - seams.ends[seam, side, 0]
    return seams.ends[seam, 1 - side, 0] + np.einsum("nij,nj->ni", seams.across[seam, side], offset)


def link_texels(atlas: Atlas, seams: Seams, width: int, height: int) -> Links:
    """Cuts every seam where it crosses a texel's side, in either chart."""
    scale = np.array([width, height], dtype=np.float64)
    ends = seams.ends * scale
    count = len(seams)
    edge = [np.arange(count), np.arange(count)]
    at = [np.zeros(count), np.ones(count)]
    for side in (0, 1):
        for axis in (0, 1):
            which, t = _grid_crossings(ends[:, side, 0, axis], ends[:, side, 1, axis])
            edge.append(which)
            at.append(t)
    edges, times = np.concatenate(edge), np.concatenate(at)
    order = np.lexsort((times, edges))
    edges, times = edges[order], times[order]
    part = np.diff(times)
    kept = (edges[1:] == edges[:-1]) & (part > 1e-9)
    seam, part, middle = edges[1:][kept], part[kept], (0.5 * (times[1:] + times[:-1]))[kept]
    texel = np.empty((len(seam), 2), dtype=np.int32)
    for side in (0, 1):
        start, end = ends[seam, side, 0], ends[seam, side, 1]
        point = start + middle[:, None] * (end - start)
        tip = atlas.uv[atlas.triangles[seams.face[seam, side], (seams.corner[seam, side] + 2) % 3]] * scale
        normal = np.stack([start[:, 1] - end[:, 1], end[:, 0] - start[:, 0]], axis=1)
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
        normal *= np.sign(np.einsum("ij,ij->i", tip - start, normal))[:, None]
        cell = np.floor(point + INWARD * normal).astype(np.int64)
        cell = np.clip(cell, 0, [width - 1, height - 1])
        texel[:, side] = cell[:, 1] * width + cell[:, 0]
    return Links(texel, seam.astype(np.int32), part, middle)


def _grid_crossings(start: FloatArray, end: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """For each interval the whole numbers strictly inside it, as the interval's number and the fraction of the way."""
    low, high = np.floor(np.minimum(start, end)) + 1, np.ceil(np.maximum(start, end)) - 1
    counts = np.maximum(high - low + 1, 0).astype(np.int64)
    which = np.repeat(np.arange(len(start)), counts)
    first = np.cumsum(counts) - counts
    value = low[which] + (np.arange(len(which)) - first[which])
    return which, (value - start[which]) / (end[which] - start[which])
