"""A drop of water as a surface, three ways, each checked against the drop itself.

A ball of water (radius 1 cm, about 4 200 particles) is turned into a closed mesh by marching cubes, into a mesh on the
screen, and into depth and thickness per pixel. The mesh must hold the particles' volume within 2 %, the screen mesh
must have the ball's outline within one particle, and thickness must add up to the volume within 3 %.
"""

from __future__ import annotations

import math

import numpy as np
import warp as wp

from viscera.device import Stage, open_device
from viscera.imaging.lens import Lens
from viscera.imaging.marching import MarchingParams, fill_field, make_marching, marching_arrays
from viscera.imaging.screen_mesh import ScreenMeshParams, build_screen_mesh, make_screen_mesh, mesh_arrays
from viscera.imaging.splats import SplatParams, draw_splats, make_splats, read_splats
from viscera.view import Camera

RADIUS, SPACING = 0.01, 0.001
"""Of the drop, and of its particles [m]."""


def main() -> None:
    device = open_device()
    stage = Stage(device, 0, 1, None)
    side = np.arange(-RADIUS, RADIUS + SPACING, SPACING) + 0.3 * SPACING
    points = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points[np.linalg.norm(points, axis=1) < RADIUS].astype(np.float32)
    volume = len(points) * SPACING**3
    position = wp.array(points, dtype=wp.vec3, device=device.warp)
    count = wp.array([len(points)], dtype=wp.int32, device=device.warp)
    lens = Lens(Camera((0.0, 0.0, 0.3), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 6.0), 480, 480)

    params = MarchingParams(0.5 * SPACING, 2.0 * SPACING, SPACING)
    marching = make_marching(params, points.min(axis=0), points.max(axis=0), len(points), device)
    fill_field(stage, marching, position)
    vertices, _, triangles = marching_arrays(marching)
    a, b, c = (vertices[triangles[:, k]].astype(np.float64) for k in range(3))
    meshed = float((np.cross(a, b) * c).sum()) / 6.0
    print(f"marching cubes: {len(triangles)} triangles hold {meshed / volume:.3f} of the volume")

    screen = make_screen_mesh(ScreenMeshParams(0.75 * SPACING, 4.0), lens, len(points), device)
    build_screen_mesh(stage, screen, position, count)
    front, _, faces = mesh_arrays(screen)
    outline = float(np.hypot(front[:, 0], front[:, 1]).max())
    print(f"screen mesh: {len(faces)} triangles, outline at {1000 * outline:.2f} mm of {1000 * RADIUS:.0f}")

    splats = make_splats(SplatParams(0.75 * SPACING, SPACING**3), lens, len(points), device)
    draw_splats(stage, splats, position, count)
    picture = read_splats(splats)
    # The area of a pixel where the drop is, and the slant of its ray.
    area = (0.3 / lens.focal) ** 2 / np.linalg.norm(lens.directions(), axis=-1)
    seen = float((picture.thickness * area).sum())
    print(f"splats: thickness up to {1000 * picture.thickness.max():.1f} mm, in all {seen / volume:.3f} of the volume")

    assert abs(meshed / volume - 1.0) < 0.02
    assert abs(outline - RADIUS) < SPACING
    assert abs(seen / volume - 1.0) < 0.03
    assert math.isclose(float(picture.depth.min()), 0.3 - RADIUS, abs_tol=SPACING)


if __name__ == "__main__":
    main()
