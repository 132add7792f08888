"""What is wrong with a mesh, and where; harmless faults repaired; a clear refusal of the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viscera.device import Device
from viscera.errors import MeshError
from viscera.geometry.intersections import self_intersections
from viscera.geometry.mesh import UNITS, FloatArray, TriangleMesh
from viscera.geometry.topology import (
    Ints,
    Orientation,
    Topology,
    bounds_a_volume,
    components,
    nested_count,
    orientation,
    part_count,
    topology,
)

FLAT_HEIGHT = 1e-7
"""A triangle lower than this part of the largest coordinate is flat: float32 files cannot tell it from a line."""

LISTED = 5
"""Places that a report names one by one."""


@dataclass(frozen=True, eq=False)
class Hole:
    """Open edges that hang together."""

    edges: int
    centre: FloatArray
    """Mean of its edges' middles [m]."""
    length: float
    """Sum of its edges' lengths [m]."""


@dataclass(frozen=True, eq=False)
class MeshReport:
    """Faults of a mesh as it is. Counts are of edges or triangles."""

    name: str
    vertex_count: int
    triangle_count: int
    unit: str
    size: FloatArray
    """Sides of the bounding box [m]."""
    volume: float
    """As oriented now [m³]; negative when inside out."""
    area: float
    """[m²]"""
    closed: bool
    """It bounds a volume, at least after `repair`."""
    components: int
    """Parts that do not hang together by edges."""
    open_edges: int
    holes: tuple[Hole, ...]
    """The largest first."""
    nonmanifold_edges: int
    """With more than two triangles."""
    nonmanifold_at: FloatArray
    """Middles of some of them, shape (n, 3) [m]."""
    flipped_faces: int
    """Triangles to be turned over so that all face outward."""
    inside_out: bool
    """All triangles agree, but face inward."""
    one_sided: bool
    """A part cannot be oriented at all, like a Möbius strip."""
    degenerate_faces: int
    """Without area: two corners at one place, or flat."""
    duplicate_faces: int
    intersecting_pairs: int | None
    """Pairs of triangles that pass through each other; None when not looked for."""
    intersecting_at: FloatArray
    """Middles of some of them, shape (n, 3) [m]."""
    notes: tuple[str, ...]

    @property
    def faults(self) -> list[str]:
        """One sentence per kind of fault; empty for a sound mesh."""
        found: list[str] = []
        if self.open_edges:
            where = "; ".join(f"{h.edges} edges around {_at(h.centre)}" for h in self.holes[:LISTED])
            more = f"; and {len(self.holes) - LISTED} more" if len(self.holes) > LISTED else ""
            found.append(
                f"{_count(len(self.holes), 'hole')} with {_count(self.open_edges, 'open edge')}: {where}{more}"
            )
        if self.nonmanifold_edges:
            found.append(
                f"{_count(self.nonmanifold_edges, 'edge')} with more than two triangles{_near(self.nonmanifold_at)}"
            )
        if self.one_sided:
            found.append("a part has no inside and outside (like a Möbius strip)")
        if self.flipped_faces:
            whole = " (the whole surface is inside out)" if self.inside_out else ""
            found.append(f"{_count(self.flipped_faces, 'flipped face')}{whole}")
        if self.degenerate_faces:
            found.append(f"{_count(self.degenerate_faces, 'degenerate face')} (no area)")
        if self.duplicate_faces:
            found.append(_count(self.duplicate_faces, "duplicate face"))
        if self.intersecting_pairs:
            pairs = _count(self.intersecting_pairs, "pair")
            found.append(f"{pairs} of triangles pass through each other{_near(self.intersecting_at)}")
        return found

    def __str__(self) -> str:
        x, y, z = 1000.0 * self.size
        lines = [
            f"{self.name}: {self.vertex_count} vertices, {self.triangle_count} triangles, "
            f"{_count(self.components, 'part')}, {'closed' if self.closed else 'NOT CLOSED'}",
            f"  size {x:.1f} × {y:.1f} × {z:.1f} mm (file in {self.unit}), "
            f"volume {1e6 * self.volume:.4g} mL, area {1e4 * self.area:.4g} cm²",
        ]
        lines += [f"  fault: {fault}" for fault in self.faults]
        if self.intersecting_pairs is None:
            lines.append("  self-intersections were not looked for")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _at(point: FloatArray) -> str:
    x, y, z = 1000.0 * point
    return f"({x:.1f}, {y:.1f}, {z:.1f}) mm"


def _near(points: FloatArray) -> str:
    return f", near {', '.join(_at(p) for p in points[:LISTED])}" if len(points) else ""


def inspect_mesh(mesh: TriangleMesh, device: Device | None = None, intersections: bool = True) -> MeshReport:
    """Looks for every kind of fault. `intersections` is the only search that takes longer than sorting the edges."""
    topo = topology(mesh)
    turn = orientation(mesh, topo)
    middles = 0.5 * (mesh.vertices[topo.edges[:, 0]] + mesh.vertices[topo.edges[:, 1]])
    crowded = np.flatnonzero(topo.uses > 2)
    flipped = turn.against ^ turn.inside_out
    crossing = self_intersections(mesh, topo, device) if intersections else None
    return MeshReport(
        name=mesh.name,
        vertex_count=len(mesh.vertices),
        triangle_count=len(mesh.triangles),
        unit=mesh.unit,
        size=mesh.size,
        volume=mesh.volume,
        area=mesh.area,
        closed=bounds_a_volume(topo, turn),
        components=part_count(topo),
        open_edges=int((topo.uses == 1).sum()),
        holes=_holes(mesh, topo),
        nonmanifold_edges=len(crowded),
        nonmanifold_at=middles[crowded[:LISTED]],
        flipped_faces=int(flipped.sum()),
        inside_out=bool(turn.inside_out.all() and not turn.against.any()),
        one_sided=bool(turn.one_sided.any()),
        degenerate_faces=len(topo.collapsed) + int(_flat(mesh, topo).sum()),
        duplicate_faces=len(topo.duplicate),
        intersecting_pairs=None if crossing is None else crossing.pairs,
        intersecting_at=np.zeros((0, 3)) if crossing is None else mesh.corners[crossing.faces[:LISTED]].mean(axis=1),
        notes=mesh.notes,
    )


def _flat(mesh: TriangleMesh, topo: Topology) -> np.ndarray:
    corners = mesh.corners[topo.faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    area = np.linalg.norm(mesh.face_vectors[topo.faces], axis=1)
    return 2.0 * area <= FLAT_HEIGHT * np.abs(mesh.vertices).max() * longest


def _holes(mesh: TriangleMesh, topo: Topology) -> tuple[Hole, ...]:
    rim = topo.edges[topo.uses == 1]
    if len(rim) == 0:
        return ()
    root: Ints = components(len(mesh.vertices), rim[:, 0], rim[:, 1])
    _, group, edges = np.unique(root[rim[:, 0]], return_inverse=True, return_counts=True)
    a, b = mesh.vertices[rim[:, 0]], mesh.vertices[rim[:, 1]]
    length = np.bincount(group, weights=np.linalg.norm(b - a, axis=1))
    centre = np.stack([np.bincount(group, weights=0.5 * (a + b)[:, i]) / edges for i in range(3)], axis=1)
    order = np.argsort(-length, kind="stable")
    return tuple(Hole(int(edges[i]), centre[i], float(length[i])) for i in order)


def repair(mesh: TriangleMesh) -> TriangleMesh:
    """Drops collapsed and repeated triangles and turns all others outward; `notes` says what was done.

    A shell inside another keeps its orientation relative to it, so a cavity stays a cavity.
    """
    topo = topology(mesh)
    return _repaired(mesh, topo, orientation(mesh, topo))


def _repaired(mesh: TriangleMesh, topo: Topology, turn: Orientation) -> TriangleMesh:
    if len(topo.faces) == 0:
        raise MeshError(f"{mesh.name}: every triangle has two corners at one place.", "Export the mesh again.")
    dropped = len(topo.collapsed) + len(topo.duplicate)
    if dropped:
        mesh = mesh.with_triangles(mesh.triangles[topo.faces], f"{_count(dropped, 'empty or repeated face')} dropped")
    flipped = turn.against ^ turn.inside_out
    if flipped.any():
        triangles = mesh.triangles.copy()
        triangles[flipped] = triangles[flipped][:, ::-1]
        whole = flipped.all()
        note = (
            "the surface was inside out: all faces turned outward"
            if whole
            else (f"{_count(int(flipped.sum()), 'flipped face')} turned outward")
        )
        mesh = mesh.with_triangles(triangles, note)
    return mesh


def require_closed(mesh: TriangleMesh) -> TriangleMesh:
    """The mesh, repaired where that is harmless; a `MeshError` that says how many holes, where and what to do if not.

    Accepted is what bounds a volume: over every edge, as many triangles run one way as the other.
    """
    topo = topology(mesh)
    turn = orientation(mesh, topo)
    mesh = _repaired(mesh, topo, turn)
    if not bounds_a_volume(topo, turn):
        report = inspect_mesh(mesh, intersections=False)
        raise MeshError(
            f"{mesh.name} is not a closed surface: {'; '.join(report.faults) or 'its faces do not agree'}.",
            "Close it in a mesh editor (Blender: Mesh > Clean Up > Fill Holes, then Normals > Recalculate Outside; "
            "MeshLab: Filters > Close Holes) and export it again.",
        )
    if mesh.volume <= 0.0:
        raise MeshError(
            f"{mesh.name} holds no volume ({1e6 * mesh.volume:.3g} mL).",
            f"Export a surface with an inside, and check its unit ({', '.join(UNITS)}).",
        )
    return mesh


def with_oddities(mesh: TriangleMesh, device: Device | None = None) -> TriangleMesh:
    """The same closed mesh, with what is odd about it in its notes, for a user to say whether it was meant."""
    topo = topology(mesh)
    notes = []
    parts = part_count(topo)
    if parts > 1:
        inside = nested_count(mesh, topo, orientation(mesh, topo))
        nested = f", {inside} of them inside another one" if inside else ""
        notes.append(f"it has {parts} parts that do not hang together{nested}")
    crossing = self_intersections(mesh, topo, device)
    if crossing.pairs:
        at = _near(mesh.corners[crossing.faces[:1]].mean(axis=1))
        notes.append(f"{_count(crossing.pairs, 'pair')} of its triangles pass through each other{at}")
    return replace(mesh, notes=(*mesh.notes, *notes))
