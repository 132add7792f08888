"""What scenarios with one organ share: a surface, the masses that fill it, and what a user may change about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.geometry.embedding import embed
from viscera.geometry.mesh import TriangleMesh
from viscera.skin import Skin
from viscera.tissue.lattice import Tissue
from viscera.units import KILOPASCAL, MILLI, STANDARD_GRAVITY
from viscera.view import ADVANCED, Camera, Parameter
from viscera.world import LiveParameter, Organ, World

FEWEST_MASSES = 100
"""With fewer the organ is too thin to feel like one."""

Point = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Body:
    """A surface and the lattice positions inside it."""

    mesh: TriangleMesh
    nodes: NDArray[np.int32]
    """Integer positions of the masses, shape (masses, 3)."""
    origin: Point
    """World position of node (0, 0, 0) [m]."""
    spacing: float
    """[m]"""

    @property
    def positions(self) -> NDArray[np.float64]:
        """World positions of the masses, shape (masses, 3) [m]."""
        return np.asarray(self.origin) + self.nodes.astype(np.float64) * self.spacing


def point(values: NDArray[np.float64]) -> Point:
    return (float(values[0]), float(values[1]), float(values[2]))


def load_organ(path: Path) -> TriangleMesh:
    """The closed mesh of a file; refuses any other."""
    from viscera.geometry.inspect import require_closed
    from viscera.geometry.mesh import load_mesh

    return require_closed(load_mesh(path))


def on_the_table(mesh: TriangleMesh) -> TriangleMesh:
    """The mesh with its box centred over the origin and its lowest point at z = 0."""
    low, high = mesh.bounds
    return mesh.moved([-0.5 * (low[0] + high[0]), -0.5 * (low[1] + high[1]), -low[2]])


def fill(mesh: TriangleMesh, masses: int) -> Body:
    """The body inside a closed mesh, with about so many masses."""
    from viscera.geometry.voxels import lattice_for_count

    voxels = lattice_for_count(mesh, masses)
    if len(voxels.nodes) < FEWEST_MASSES:
        raise InputError(f"{mesh.name} gives only {len(voxels.nodes)} masses.", "Use a larger or less thin organ.")
    return Body(mesh, voxels.nodes, point(np.asarray(voxels.origin)), float(voxels.spacing))


def make_organ(name: str, look: str, body: Body, tissue: Tissue, skin: Skin | None = None) -> Organ:
    """The organ as a world has it: its surface hangs on its lattice, and its skin, made of the body's mesh, on that."""
    held = embed(body.mesh.vertices, body.nodes, body.origin, body.spacing)
    device = tissue.device.warp
    vertices = wp.zeros(len(body.mesh.vertices), dtype=wp.vec3, device=device) if skin is None else skin.vertices
    return Organ(
        name=name,
        look=look,
        tissue=tissue,
        triangles=np.asarray(body.mesh.triangles, dtype=np.int32),
        rest=wp.array(body.mesh.vertices.astype(np.float32), dtype=wp.vec3, device=device),
        places=wp.array(tissue.layout.slot_of_node[held.indices], dtype=wp.int32, device=device),
        weights=wp.array(held.weights.astype(np.float32), dtype=wp.float32, device=device),
        vertices=vertices,
        skin=skin,
        notes=(*body.mesh.notes, *(() if skin is None else skin.atlas.notes)),
    )


TISSUE = "Tissue"
"""Heading of the settings of what the organ is made of."""

DRAG = Parameter(
    "drag",
    "Damping",
    "1/s",
    0.0,
    60.0,
    15.0,
    "Drag against the surroundings: how soon swinging dies away.",
    group=ADVANCED,
)
GRAVITY = Parameter(
    "gravity",
    "Gravity",
    "g",
    0.0,
    2.0,
    0.0,
    "In units of 9.81 m/s². The tissue was shaped without it, so it sags when you raise it.",
    group=ADVANCED,
)


def tissue_parameters(stiffness: Parameter, viscosity: Parameter) -> list[LiveParameter]:
    """What a user may change about the tissue of the world's only organ: stiffness [kPa], viscosity [ms], damping
    and gravity."""
    return [
        LiveParameter(stiffness, lambda world, value: tissue_of(world).set_young(value * KILOPASCAL)),
        LiveParameter(viscosity, lambda world, value: tissue_of(world).set_viscous_time(value * MILLI)),
        LiveParameter(DRAG, lambda world, value: tissue_of(world).set_drag(value)),
        LiveParameter(
            GRAVITY, lambda world, value: tissue_of(world).set_gravity((0.0, 0.0, -value * STANDARD_GRAVITY))
        ),
    ]


def tissue_of(world: World) -> Tissue:
    return world.organs[0].tissue


def looking_down(body: Body, direction: Point) -> tuple[Camera, tuple[Point, Point]]:
    """A camera that sees the whole organ from this direction (its length is the distance over the organ's diagonal),
    and the box around all there is to see."""
    low, high = body.positions.min(axis=0), body.positions.max(axis=0)
    middle, size = 0.5 * (low + high), float(np.linalg.norm(high - low))
    camera = Camera(point(middle + size * np.asarray(direction)), point(middle), (0.0, 0.0, 1.0), 40.0)
    return camera, (point(low - 0.5 * size), point(high + 0.5 * size))
