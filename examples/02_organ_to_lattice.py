"""From a surface to a body of masses and back.

Takes a mesh file (or makes a bean-shaped organ), reports what is wrong with it, fills it with lattice nodes, ties the
surface to them, and moves the lattice. Checked against what is known exactly: the nodes' volume is that of the mesh,
and a surface tied to a lattice that turns as a whole turns with it.

    python examples/02_organ_to_lattice.py [MESH] [--masses 5000] [--picture organ.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from viscera.errors import VisceraError
from viscera.geometry import (
    Embedding,
    TriangleMesh,
    Voxels,
    embed,
    icosphere,
    inspect_mesh,
    load_mesh,
    require_closed,
    spacing_for_count,
    voxelise,
)


def bean() -> TriangleMesh:
    """A sphere made longer and bent around y, about as large as a kidney."""
    ball = icosphere(1.0, 5)
    x, y, z = (ball.vertices * (0.055, 0.028, 0.022)).T
    bend = 14.0 * x
    reach = 1.0 / 14.0 - z
    vertices = np.stack([reach * np.sin(bend), y, 1.0 / 14.0 - reach * np.cos(bend)], axis=1)
    return TriangleMesh(vertices, ball.triangles, "bean")


def moved(mesh: TriangleMesh, tied: Embedding, displacement: np.ndarray) -> np.ndarray:
    """What the kernel `embed_surface` computes on the device."""
    return mesh.vertices + np.einsum("vn,vna->va", tied.weights, displacement[tied.indices])


def quarter_turn(points: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Displacements of a turn by 90° about z."""
    offset = points - centre
    return offset @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]) - offset


def twist(points: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Displacements of a twist about x: what no rigid motion can do."""
    offset = points - centre
    angle = 1.6 * offset[:, 0] / np.abs(offset[:, 0]).max()
    c, s = np.cos(angle), np.sin(angle)
    turned = np.stack([offset[:, 0], c * offset[:, 1] - s * offset[:, 2], s * offset[:, 1] + c * offset[:, 2]], axis=1)
    return turned - offset


def main() -> None:
    parser = argparse.ArgumentParser(description="From a surface to a body of masses and back.")
    parser.add_argument("mesh", nargs="?", type=Path, help="STL, OBJ, PLY or GLB; without it, one is made")
    parser.add_argument("--masses", type=int, default=5000)
    parser.add_argument("--picture", type=Path, help="save a picture here")
    options = parser.parse_args()

    mesh = load_mesh(options.mesh) if options.mesh else bean()
    print(inspect_mesh(mesh))
    mesh = require_closed(mesh)
    voxels = voxelise(mesh, spacing_for_count(mesh, options.masses))
    print(f"{len(voxels)} masses, {1000 * voxels.spacing:.2f} mm apart, {voxels.dropped} dropped as specks")
    tied = embed(mesh.vertices, voxels.nodes, voxels.origin, voxels.spacing)
    print(f"surface: {tied.inside} vertices inside cells, {tied.extrapolated} beside them, {tied.fitted} on thin parts")

    follows = moved(mesh, tied, quarter_turn(voxels.positions, mesh.centre))
    error = np.linalg.norm(follows - mesh.vertices - quarter_turn(mesh.vertices, mesh.centre), axis=1)
    volume_error = voxels.volume / mesh.volume - 1.0
    print(f"volume {100 * volume_error:+.2f} %, turned surface off by {1e6 * np.median(error):.3f} µm (median)")
    if options.picture:
        draw(options.picture, mesh, voxels, tied)

    # A body of n nodes has of the order of n^(2/3) on its surface, each a fraction of a cell off.
    assert abs(volume_error) < 2.0 * len(voxels) ** (-1 / 3), "the nodes do not fill the mesh"
    # float32 weights; only parts that are one node thin may lag, by less than a cell.
    assert np.median(error) < 1e-6, "the surface does not follow its lattice"
    assert error.max() < voxels.spacing, "a vertex is left behind"
    print("ok")


def draw(path: Path, mesh: TriangleMesh, voxels: Voxels, tied: Embedding) -> None:
    """The surface, its lattice, and the surface on the twisted lattice."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    bent = TriangleMesh(moved(mesh, tied, twist(voxels.positions, mesh.centre)), mesh.triangles)
    figure = plt.figure(figsize=(12, 3.2))
    reach = 520.0 * mesh.extent
    for place, title in enumerate(("surface", f"{len(voxels)} masses", "surface on the twisted lattice")):
        axes = figure.add_subplot(1, 3, place + 1, projection="3d")
        axes.set_title(title, y=0.9)
        if place == 1:
            at = 1000.0 * (voxels.positions - mesh.centre)
            axes.scatter(*at.T, s=6, c=at[:, 2], cmap="Reds_r", depthshade=False)
        else:
            shown = mesh if place == 0 else bent
            normals = shown.face_vectors / np.linalg.norm(shown.face_vectors, axis=1, keepdims=True)
            light = 0.25 + 0.75 * np.clip(normals @ (0.3, -0.7, 0.65), 0.0, 1.0)
            skin = light[:, None] * (0.85, 0.42, 0.36)
            corners = 1000.0 * (shown.corners - mesh.centre)
            axes.add_collection3d(Poly3DCollection(corners, facecolors=skin, edgecolors=skin, linewidths=0.3))
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
        axes.view_init(25, -70)
        axes.set_box_aspect((1, 1, 1), zoom=1.7)  # pyright: ignore[reportArgumentType]
        axes.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=70)
    print(f"saved {path}")


if __name__ == "__main__":
    try:
        main()
    except VisceraError as error:
        raise SystemExit(str(error)) from None
