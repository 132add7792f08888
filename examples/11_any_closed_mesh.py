"""Any closed surface holds a fluid: shake it, and nothing leaks.

Takes your own mesh (STL, OBJ, PLY, GLB), or a gall bladder by rule; fills half of it, and turns gravity about it so
that the fluid falls from wall to wall. Checked against what must be: not one particle is outside or nearer to the wall
than contacts allow, and a mesh with a hole is refused before it can leak.

    python examples/11_any_closed_mesh.py [--mesh organ.stl] [--particles 600] [--steps 4000]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from viscera import open_device, water
from viscera.anatomy import gallbladder
from viscera.bench.vessels import lower_half
from viscera.errors import InputError, VisceraError
from viscera.geometry import TriangleMesh, build_query, load_mesh, require_closed, signed_distance

TURNS = 8
"""Directions that gravity takes, one after the other."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mesh", type=Path, help="a closed surface; without it a gall bladder is made")
    parser.add_argument("--particles", type=int, default=600)
    parser.add_argument("--steps", type=int, default=4000)
    chosen = parser.parse_args()

    device = open_device("cpu")
    mesh = require_closed(load_mesh(chosen.mesh) if chosen.mesh else gallbladder())
    spacing = (0.5 * mesh.volume / chosen.particles) ** (1 / 3)
    low, high = (tuple(corner.tolist()) for corner in mesh.bounds)
    extent = float(np.max(np.subtract(high, low)))
    sound = 5.0 * math.sqrt(2.0 * 9.81 * extent)  # five times the speed of a fall through the whole
    params = water.FluidParams(
        spacing=spacing, lower=low, upper=high, dt=0.3 * spacing / sound, kernels="spline", viscosity=0.05,
        sound_speed=sound,
    )  # fmt: skip
    fluid = water.make(params, lower_half(mesh, chosen.particles, spacing), device=device)
    walls = water.make_walls(mesh, radius=0.5 * spacing, device=device)
    water.add_vessel(fluid, walls, water.ContactParams(friction=0.05))
    program = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))

    query, nearest, moved = build_query(mesh), math.inf, 0.0
    start = water.particles(fluid)["position"].mean(axis=0)
    for turn in range(TURNS):
        angle = 2.0 * math.pi * turn / TURNS
        water.set(fluid, replace(params, gravity=(9.81 * math.sin(angle), -9.81 * math.cos(angle), 0.0)))
        for _ in range(chosen.steps // TURNS):
            program.run()
        found = water.particles(fluid)["position"]
        depth = -signed_distance(query, found)
        assert len(found) == chosen.particles, "particles vanished"
        assert (depth > 0.0).all(), f"{(depth <= 0.0).sum()} particles are outside"
        nearest = min(nearest, float(depth.min()) / walls.radius)
        moved = max(moved, float(np.linalg.norm(found.mean(axis=0) - start)))
    name = mesh.name or "mesh"
    print(f"{name}: {1e6 * mesh.volume:.1f} mL in {len(mesh.triangles)} triangles, half full: {chosen.particles} balls")
    print(f"nobody outside; nearest to the wall {nearest:.3f} radii; the fluid moved by {1000 * moved:.1f} mm")
    assert nearest > 0.2, "a particle is nearer to the wall than contacts allow"
    assert moved > spacing, "gravity turned and nothing moved"

    torn = TriangleMesh(mesh.vertices, mesh.triangles[1:], "torn")
    try:
        water.make_walls(torn, radius=0.5 * spacing, device=device)
    except InputError as refusal:
        print(f"refused: {refusal.message}")
    else:
        raise AssertionError("a mesh with a hole must be refused")
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except VisceraError as error:
        raise SystemExit(str(error)) from None
