"""Meshes of every kind of badness: loaded and made into a body with a skin, or refused in words."""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from soak.attack import Attack, Broken, Case, changed
from viscera.errors import InputError
from viscera.geometry import box, capsule, icosphere, torus, uv_sphere
from viscera.geometry.atlas import AtlasSettings, baked_atlas, faults_of
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.simplify import simplify
from viscera.world.organ import fill, load_organ

SHAPES = {
    "ball": lambda fine: icosphere(0.04, 1 + fine),
    "globe": lambda fine: uv_sphere(0.03, 8 * 2**fine, 4 * 2**fine),
    "pill": lambda fine: capsule(0.01, 0.05, 8 * 2**fine),
    "ring": lambda fine: torus(0.04, 0.01, 16 * 2**fine, 8 * 2**fine),
    "brick": lambda fine: box((0.05, 0.03, 0.02), (2 * 2**fine, 2 * 2**fine, 2**fine)),
}
DEEDS = (
    "drop", "turn", "double", "noise", "flat", "scale", "squeeze", "far", "nan", "collapse", "again", "inside", "soup",
    "strange index", "one vertex",
)  # fmt: skip


def draw(chance: random.Random, small: bool) -> Case:
    steps = [
        {"do": chance.choice(DEEDS), "seed": chance.randrange(2**31), "share": chance.choice((0.001, 0.02, 0.3, 1.0))}
        for _ in range(chance.choice((0, 1, 1, 2, 4)))
    ]
    return {
        "shape": chance.choice(list(SHAPES)),
        "fine": chance.choice((1, 2) if small else (1, 2, 3, 4, 5)),
        "steps": steps,
        "kind": chance.choice(("stl", "obj", "ply", "glb", "stl_ascii")),
        "damage": chance.randrange(2**31) if chance.random() < 0.3 else None,
    }


def attempt(case: Case) -> None:
    vertices, triangles = _made(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"organ.{case['kind'].partition('_')[0]}"
        if not _write(path, vertices, triangles, case["kind"]):
            return
        if case["damage"] is not None:
            path.write_bytes(changed(random.Random(case["damage"]), path.read_bytes()))
        try:
            mesh = load_organ(path)
            body = fill(mesh, 500)
            small = simplify(mesh, 2000)
            atlas = baked_atlas(small, AtlasSettings(resolution=256), Path(folder), ())
        except InputError:
            return
        if not np.isfinite(body.positions).all():
            raise Broken("masses that are not finite")
        fault = faults_of(atlas)
        if fault and "closer than a texel" not in fault:
            raise Broken(f"the atlas {fault}")


def _made(case: Case) -> tuple[np.ndarray, np.ndarray]:
    mesh: TriangleMesh = SHAPES[case["shape"]](case["fine"])
    vertices, triangles = 1000.0 * mesh.vertices, mesh.triangles.astype(np.int64)
    for step in case["steps"]:
        vertices, triangles = _spoilt(step, vertices, triangles)
    return vertices, triangles


def _spoilt(step: dict[str, Any], vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(step["seed"])
    chosen = chance.random(len(triangles)) < step["share"]
    some = chance.random(len(vertices)) < step["share"]
    vertices, triangles = vertices.copy(), triangles.copy()
    match step["do"]:
        case "drop":
            triangles = triangles[~chosen] if not chosen.all() else triangles[:1]
        case "turn":
            triangles[chosen] = triangles[chosen][:, ::-1]
        case "double":
            triangles = np.concatenate([triangles, triangles[chosen]])
        case "noise":
            vertices[some] += chance.normal(0.0, chance.choice((1e-6, 0.1, 5.0)), (int(some.sum()), 3))
        case "flat":
            vertices[:, chance.integers(3)] = 0.0
        case "scale":
            vertices *= chance.choice((1e-30, 1e-3, 0.04, 1.0, 25.4, 1e3, 1e30))
        case "squeeze":
            vertices[:, chance.integers(3)] *= chance.choice((1e-9, 1e-3, 0.1, 10.0))
        case "far":
            vertices += chance.choice((1e2, 1e6, 1e12))
        case "nan":
            vertices[some] = chance.choice((math.nan, math.inf, -math.inf))
        case "collapse":
            triangles[chosen, 1] = triangles[chosen, 0]
        case "again" | "inside":
            size, move = (1.0, chance.normal(0.0, 60.0, 3)) if step["do"] == "again" else (0.3, np.zeros(3))
            triangles = np.concatenate([triangles, triangles + len(vertices)])
            vertices = np.concatenate([vertices, size * vertices + move])
        case "soup":
            triangles = chance.integers(0, len(vertices), triangles.shape)
        case "strange index":
            triangles[chosen, 0] = chance.choice((-1, 2**31 - 1, len(vertices)))
        case _:
            vertices[:] = vertices[0]
    return vertices, triangles


def _write(path: Path, vertices: np.ndarray, triangles: np.ndarray, kind: str) -> bool:
    """Whether that format can hold it."""
    import trimesh

    try:
        with np.errstate(all="ignore"):
            trimesh.Trimesh(vertices, triangles, process=False).export(path, file_type=kind)
    except Exception:
        return False
    return True


ATTACK = Attack("meshes", "shapes with faults, in every format, damaged", draw, attempt, patience=240.0)
