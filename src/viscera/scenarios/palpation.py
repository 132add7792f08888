"""Palpation: find the hard nodule under a soft surface by pushing with a ball-tipped probe.

A block of liver-like tissue (96 × 96 × 32 mm, or the user's own closed mesh) rests on its underside. Somewhere below
the surface, where the seed puts it, lies a nodule several times as stiff. Pushing over it takes more force for the
same depth.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.geometry.embedding import embed
from viscera.geometry.mesh import TriangleMesh
from viscera.inputs import Input, ToolInput
from viscera.instruments import Tool
from viscera.scenarios import Scenario, Setting
from viscera.tissue.lattice import LatticeParams, make_lattice
from viscera.tissue.materials import SOFT_TISSUE
from viscera.units import KILOPASCAL, MILLI, STANDARD_GRAVITY
from viscera.view import Camera, Instrument, Parameter
from viscera.world import Contents, LiveParameter, Organ, World

SPACING = 0.004
"""[m]"""
CELLS = (24, 24, 8)
"""Of the block: 25 × 25 × 9 = 5 625 masses."""
MESH_MASSES = 5_000
"""About as many for a user's mesh."""

NODULE_STIFFNESS = 3.0
"""Times the tissue's: palpable tumours are several times stiffer than liver."""
POISSON = 0.4
"""Soft tissue is all but incompressible; 0.4 takes three substeps per tick, 0.45 four."""
NODULE_RADIUS = 0.01
"""[m]"""

PROBE_RADIUS = 0.008
"""Two cells of the lattice: a smaller ball slips between the masses and turns springs inside out [m]."""
WET_FRICTION = 0.1
"""Steel on wet tissue, about 0.02 to 0.2."""

STIFFNESS = Parameter(
    "stiffness",
    "Stiffness",
    "kPa",
    1.0,
    6.0,
    SOFT_TISSUE.young / KILOPASCAL,
    "Young's modulus of the tissue; the nodule is three times as stiff.",
)
VISCOSITY = Parameter(
    "viscosity",
    "Viscosity",
    "ms",
    0.0,
    0.3,
    0.2,
    "Stress that follows the rate of strain, over stiffness: damps fast ripples.",
)
DRAG = Parameter(
    "drag", "Damping", "1/s", 0.0, 60.0, 15.0, "Drag against the surroundings: how soon swinging dies away."
)
GRAVITY = Parameter(
    "gravity",
    "Gravity",
    "g",
    0.0,
    2.0,
    0.0,
    "In units of 9.81 m/s². The block was shaped without it, so it sags when you raise it.",
)

INSTRUCTIONS = """\
Move the pointer over the tissue: the probe follows its surface.
Hold the left button (or the space bar) to press; the wheel sets how deep.
Watch the force: over the hidden nodule the same depth takes more of it.
Find the nodule. Every seed hides it elsewhere."""


def modules() -> list[types.ModuleType]:
    from viscera.tissue import native, surface, volume

    return [native, surface, volume]


def build(setting: Setting) -> Contents:
    mesh, nodes, origin, spacing = _block() if setting.mesh is None else _from_mesh(setting.mesh)
    positions = np.asarray(origin) + nodes.astype(np.float64) * spacing
    low, high = positions.min(axis=0), positions.max(axis=0)
    tissue = make_lattice(
        setting.device,
        LatticeParams(
            nodes=nodes,
            spacing=spacing,
            origin=origin,
            anchored=positions[:, 2] <= low[2] + 0.6 * spacing
            if setting.mesh is None
            else positions[:, 2] <= low[2] + 0.2 * (high[2] - low[2]),
            material=SOFT_TISSUE,
            stiffest=STIFFNESS.maximum * KILOPASCAL,
            longest_viscous_time=VISCOSITY.maximum * MILLI,
            poisson=POISSON,
            relative_young=_nodule(setting.seed, positions),
        ),
    )
    held = embed(mesh.vertices, nodes, origin, spacing)
    device = setting.device.warp
    organ = Organ(
        name="tissue",
        look="tissue",
        tissue=tissue,
        triangles=np.asarray(mesh.triangles, dtype=np.int32),
        rest=wp.array(mesh.vertices.astype(np.float32), dtype=wp.vec3, device=device),
        places=wp.array(tissue.layout.slot_of_node[held.indices], dtype=wp.int32, device=device),
        weights=wp.array(held.weights.astype(np.float32), dtype=wp.float32, device=device),
        vertices=wp.zeros(len(mesh.vertices), dtype=wp.vec3, device=device),
    )
    middle, size = 0.5 * (low + high), float(np.linalg.norm(high - low))
    home = (float(middle[0]), float(middle[1]), float(high[2] + 0.04))
    probe = Tool(0, Instrument("probe", "sphere", PROBE_RADIUS, 0.0, home), friction=WET_FRICTION)
    eye = middle + size * np.array([0.15, -0.95, 0.85])
    margin = 0.5 * size
    return Contents(
        organs=[organ],
        tools=[probe],
        parameters=[
            LiveParameter(STIFFNESS, lambda world, value: _tissue(world).set_young(value * KILOPASCAL)),
            LiveParameter(VISCOSITY, lambda world, value: _tissue(world).set_viscous_time(value * MILLI)),
            LiveParameter(DRAG, lambda world, value: _tissue(world).set_drag(value)),
            LiveParameter(
                GRAVITY, lambda world, value: _tissue(world).set_gravity((0.0, 0.0, -value * STANDARD_GRAVITY))
            ),
        ],
        camera=Camera(_point(eye), _point(middle), (0.0, 0.0, 1.0), 40.0),
        bounds=(_point(low - margin), _point(high + margin)),
    )


def _tissue(world: World):
    return world.organs[0].tissue


def _point(values: NDArray[np.float64]) -> tuple[float, float, float]:
    return (float(values[0]), float(values[1]), float(values[2]))


def _block() -> tuple[TriangleMesh, NDArray[np.int32], tuple[float, float, float], float]:
    """The block's surface, its masses, the place of mass (0, 0, 0), and the spacing. Its underside is at z = 0."""
    from viscera.geometry.primitives import rounded_slab

    size = np.array(CELLS) * SPACING
    axes = [np.arange(cells + 1, dtype=np.int32) for cells in CELLS]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    origin = (-0.5 * float(size[0]), -0.5 * float(size[1]), 0.0)
    mesh = rounded_slab(size, centre=(0.0, 0.0, 0.5 * float(size[2])))
    return mesh, nodes, origin, SPACING


def _from_mesh(path: Path) -> tuple[TriangleMesh, NDArray[np.int32], tuple[float, float, float], float]:
    """The same from a file; the organ is brought to the middle of the theatre."""
    from viscera.geometry.inspect import require_closed
    from viscera.geometry.mesh import load_mesh
    from viscera.geometry.voxels import spacing_for_count, voxelise

    loaded = require_closed(load_mesh(path))
    low, high = loaded.vertices.min(axis=0), loaded.vertices.max(axis=0)
    shift = np.array([0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), low[2]])
    mesh = TriangleMesh(loaded.vertices - shift, loaded.triangles, loaded.name)
    voxels = voxelise(mesh, spacing_for_count(mesh, MESH_MASSES))
    if len(voxels.nodes) < 100:
        raise InputError(f"{path} gives only {len(voxels.nodes)} masses.", "Use a larger or less thin organ.")
    return mesh, voxels.nodes, _point(np.asarray(voxels.origin)), float(voxels.spacing)


def _nodule(seed: int, positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Relative stiffness of each mass, with a nodule where the seed puts it: off the rim, below the surface."""
    rng = np.random.default_rng(seed)
    low, high = positions.min(axis=0), positions.max(axis=0)
    share = rng.uniform([0.2, 0.2, 0.5], [0.8, 0.8, 0.65])
    wanted = low + share * (high - low)
    centre = positions[np.argmin(np.linalg.norm(positions - wanted, axis=1))]
    distance = np.linalg.norm(positions - centre, axis=1)
    rim = np.clip((NODULE_RADIUS - distance) / (0.3 * NODULE_RADIUS), 0.0, 1.0)
    return 1.0 + (NODULE_STIFFNESS - 1.0) * rim


def script(world: World, tick: int) -> Iterable[Input]:
    """A hand that pushes 8 mm deep, slides a little, and lets go, once every two seconds, every 10 ms."""
    if tick % 10:
        return []
    phase = 2.0 * math.pi * (tick % 2000) / 2000.0
    x, y, z = world.scene().instruments[0].home
    surface = z - 0.04
    depth = 0.008 * max(0.0, math.sin(phase))
    return [ToolInput(0, (x + 0.01 * math.cos(phase), y, surface + PROBE_RADIUS - depth))]


SCENARIO = Scenario(
    name="palpation",
    title="Palpation",
    summary="Push a probe into soft tissue, feel the force, and find the hidden hard nodule.",
    instructions=INSTRUCTIONS,
    modules=modules,
    build=build,
    script=script,
)
