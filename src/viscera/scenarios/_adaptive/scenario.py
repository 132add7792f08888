"""A scenario of a pool: its water, what stands in it, and a gaze."""

from __future__ import annotations

from typing import cast

import numpy as np

from viscera.geometry import TriangleMesh, box, capsule, icosphere
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._adaptive.pools import BASE, GAS, PACED, Pool, Stiffness, fill_pool, find_pool
from viscera.scenarios._setting import Option
from viscera.timing import FRAME
from viscera.view import Surface
from viscera.water import adaptive
from viscera.world import Contents
from viscera.world.systems.adaptive_water import Refined, adapting, seeded_looks

INSTRUCTIONS = """\
Move the pointer over the water: it stands for your eye, and water is fine where you look.
Choose under "Fine by" what decides it. When the pointer leaves the picture, the surface is refined after half a second.
Draw the sizes of the particles, and cut the water open to see inside.
With two viewers the gaze of the one who holds the instruments counts."""

FLOOR = 0.02
"""Thickness of the drawn floor [m]."""


MOST_SIZES = 4
"""Of particles, that a pool can be filled with: the smallest hold an eighth of the largest."""
OPTIONS = (
    Option("fluid", "word", "document: as soft as in the source; stiff: the default.", words=tuple(GAS)),
    Option("sizes", "number", "Sizes of particles: 2, or more in graded rings.", least=2, most=MOST_SIZES),
)


def pool_scenario(name: str, title: str, summary: str) -> Scenario:
    pool = find_pool(name)
    return Scenario(
        name, lambda setting: build(pool, setting), title, summary, INSTRUCTIONS, takes_mesh=False, no_tissue=True,
        options=OPTIONS,
    )  # fmt: skip


def build(pool: Pool, setting: Setting) -> Contents:
    stiffness, sizes = cast("Stiffness", setting.word("fluid", "stiff")), setting.number("sizes", 2)
    base = setting.count(BASE)
    filled = fill_pool(pool, setting.device, stiffness, base=base, sizes=sizes, in_frames=True)
    fine = adaptive.make(filled.fluid, PACED)
    steps = round(FRAME / filled.dt)
    refined = Refined(filled.fluid, fine, steps, pool.camera, 0.5 * pool.box[1], filled.move_wall)
    return Contents(
        systems=[adapting(refined, setting.seed)],
        camera=pool.camera,
        bounds=((0.0, 0.0, -FLOOR), pool.box),
        scenery=pool_scenery(pool),
        script=seeded_looks(setting.seed, pool.camera),
    )


def pool_scenery(pool: Pool) -> list[Surface]:
    """Floor and obstacles, as they are drawn."""
    return [_surface(f"part{number}", mesh) for number, mesh in enumerate(_scenery(pool))]


def _scenery(pool: Pool) -> list[TriangleMesh]:
    """The floor, and what stands on it."""
    x, y, z = pool.box
    meshes = [box((x, y, FLOOR), centre=(0.5 * x, 0.5 * y, -0.5 * FLOOR))]
    for one in pool.obstacles:
        if one.pillar:
            meshes.append(capsule(one.radius, z, centre=(one.centre[0], one.centre[1], 0.5 * z)))
        else:
            meshes.append(icosphere(one.radius, 3, one.centre))
    return meshes


def _surface(name: str, mesh: TriangleMesh) -> Surface:
    rest = mesh.vertices.astype(np.float32)
    return Surface(name, "steel", mesh.triangles, name, len(rest), rest=rest)
