"""What stands in the beam: closed meshes, particles and volumes, each of a material."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device
from viscera.errors import InputError
from viscera.xray.materials import BONE, SOFT_TISSUE, Material
from viscera.xray.volume import Scan


@dataclass(frozen=True, eq=False)
class Solid:
    """A closed mesh that is full of a material; a shell is two, the inner one of what fills it."""

    vertices: Any
    """[m], shape (n, 3); a `wp.array` of vec3 that somebody moves, or NumPy."""
    triangles: NDArray[np.integer]
    """Shape (m, 3), counter-clockwise seen from outside."""
    material: Material
    displaces: Material | None = None
    """What would be there without it: the material of the mesh around it. None: nothing."""
    moving: bool = False
    """Whether its vertices change, or it stays and is projected again only when the C-arm turns."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Particles of a fluid, or patches of a film."""

    position: Any
    """[m], `wp.array` of vec3."""
    count: Any
    """How many there are, `wp.array` of one int32."""
    volume: Any
    """Of each [m³]: one number, or a `wp.array` of float."""
    radius: float
    """h of the kernel that each is spread with [m]; about two spacings."""
    material: Material
    displaces: Material | None = None
    moving: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0.0):
            raise InputError(f"radius = {self.radius} is not possible.", "It must be a finite number above 0 [m].")


@dataclass(frozen=True)
class Scene:
    solids: Sequence[Solid] = ()
    clouds: Sequence[Cloud] = ()
    scans: Sequence[Scan] = ()

    def materials(self) -> list[Material]:
        """Each once, in order of appearance."""
        named = [one for part in (*self.solids, *self.clouds) for one in (part.material, part.displaces)]
        named += [SOFT_TISSUE, BONE] if self.scans else []
        found = list(dict.fromkeys(one for one in named if one is not None))
        if not found:
            raise InputError("there is nothing in the beam.", "Give solids, clouds or scans.")
        return found


@dataclass(eq=False)
class Placed:
    """A part of the scene with what its kernels need."""

    part: Solid | Cloud | Scan
    material: int
    displaced: int
    arrays: dict[str, Any] = field(default_factory=dict)


def place(scene: Scene, materials: Sequence[Material], device: Device) -> list[Placed]:
    """All parts of a scene on a device."""
    number = {one: k for k, one in enumerate(materials)}
    placed: list[Placed] = []
    for part in (*scene.solids, *scene.clouds):
        displaced = -1 if part.displaces is None else number[part.displaces]
        arrays = _solid(part, device) if isinstance(part, Solid) else _cloud(part, device)
        placed.append(Placed(part, number[part.material], displaced, arrays))
    for scan in scene.scans:
        voxel = wp.array(scan.voxels, dtype=wp.vec2h, device=device.warp)
        placed.append(Placed(scan, number[SOFT_TISSUE], number[BONE], {"voxel": voxel, "view": scan.view()}))
    return placed


def _solid(solid: Solid, device: Device) -> dict[str, Any]:
    triangles = np.asarray(solid.triangles)
    vertices = solid.vertices
    if not isinstance(vertices, wp.array):
        points = np.asarray(vertices, dtype=np.float32)
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise InputError(f"{solid.material.name}: vertices are not possible.", "Give finite x, y, z [m] per row.")
        vertices = wp.array(points, dtype=wp.vec3, device=device.warp)
    fits = triangles.ndim == 2 and triangles.shape[1] == 3
    if not fits or triangles.min(initial=0) < 0 or triangles.max(initial=-1) >= len(vertices):
        raise InputError(f"{solid.material.name}: triangles do not fit.", "Give three numbers of vertices per row.")
    _require_closed(triangles, solid.material.name)
    return {
        "vertex": vertices,
        "corner": wp.zeros(len(vertices), dtype=wp.vec3i, device=device.warp),
        "index": wp.array(triangles.astype(np.int32).ravel(), dtype=wp.int32, device=device.warp),
        "triangles": len(triangles),
    }


def _require_closed(triangles: NDArray[np.integer], name: str) -> None:
    """Every edge must be run through once each way: else some rays enter and never leave."""
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]).astype(np.int64)
    size = int(triangles.max(initial=0)) + 1
    there, back = np.sort(edges[:, 0] * size + edges[:, 1]), np.sort(edges[:, 1] * size + edges[:, 0])
    if not np.array_equal(there, back):
        raise InputError(
            f"{name}: the mesh is not closed.", "Close its holes and weld its vertices (`viscera.geometry.inspect`)."
        )


def _cloud(cloud: Cloud, device: Device) -> dict[str, Any]:
    volume = cloud.volume
    if not isinstance(volume, wp.array):
        if not (math.isfinite(volume) and volume > 0.0):
            raise InputError(f"volume = {volume} is not possible.", "It must be a finite number above 0 [m³].")
        volume = wp.full(len(cloud.position), float(volume), dtype=float, device=device.warp)
    return {"position": cloud.position, "count": cloud.count, "volume": volume}
