"""Organs without a scanner: a liver and a gall bladder made by rule, no two alike.

Makes one of each, reports on their meshes, fills them with masses, and saves them as files that any scenario takes with
`--mesh`. Checked against what they must be: closed, free of self-intersections, of the volume asked for, and with
triangles that are far from degenerate.

    python examples/04_organs_by_rule.py [--seed 5] [--out FOLDER] [--picture organs.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from viscera.anatomy import gallbladder, in_fossa, liver
from viscera.errors import VisceraError
from viscera.geometry import TriangleMesh, inspect_mesh, spacing_for_count, voxelise

LIVER_COLOUR = (0.50, 0.16, 0.12)
BILE_COLOUR = (0.42, 0.50, 0.22)


def smallest_angle(mesh: TriangleMesh) -> float:
    """Of all triangles [degrees]."""
    cosines = []
    for i in range(3):
        a = mesh.corners[:, (i + 1) % 3] - mesh.corners[:, i]
        b = mesh.corners[:, (i + 2) % 3] - mesh.corners[:, i]
        cosines.append(np.einsum("ij,ij->i", a, b) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)))
    return float(np.degrees(np.arccos(np.max(cosines))))


def save(mesh: TriangleMesh, path: Path) -> None:
    """As STL in millimetres and patient coordinates: x to the left, y to the back, z to the head."""
    import trimesh

    x, y, z = 1e3 * mesh.vertices.T
    trimesh.Trimesh(np.stack([x, -z, y], axis=1), mesh.triangles, process=False).export(path)
    print(f"saved {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A liver and a gall bladder made by rule.")
    parser.add_argument("--seed", type=int, help="another individual; without it, the standard one")
    parser.add_argument("--out", type=Path, help="save STL files in this folder")
    parser.add_argument("--picture", type=Path, help="save a picture here")
    options = parser.parse_args()

    organs = [liver(seed=options.seed), gallbladder(seed=options.seed)]
    for organ, volume in zip(organs, (1.5e-3, 4e-5), strict=True):
        report = inspect_mesh(organ)
        voxels = voxelise(organ, spacing_for_count(organ, 5_000))
        angle = smallest_angle(organ)
        print(report)
        print(f"  {len(voxels)} masses, {1e3 * voxels.spacing:.2f} mm apart; smallest angle {angle:.0f}°")
        assert report.closed, "the surface is open"
        assert not report.faults, "the surface has faults"
        assert abs(organ.volume / volume - 1.0) < 1e-9, "the volume is not the one asked for"
        assert abs(voxels.volume / volume - 1.0) < 0.02, "the masses do not fill it"
        assert angle > 10.0, "a triangle is nearly degenerate"
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        for organ, name in zip(organs, ("liver.stl", "gallbladder.stl"), strict=True):
            save(organ, options.out / name)
    if options.picture:
        draw(options.picture)
    print("ok")


def draw(path: Path) -> None:
    """The standard organs from the front and from below, and two further individuals."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    both = [(liver(), LIVER_COLOUR), (in_fossa(gallbladder()), BILE_COLOUR)]
    scenes = [
        ("from the front", both, (89.0, -90.0)),
        ("from below and behind", both, (-50.0, -90.0)),
        ("gall bladder", [(gallbladder(), BILE_COLOUR)], (60.0, -90.0)),
        ("another individual", [(liver(seed=3), LIVER_COLOUR)], (89.0, -90.0)),
        ("and another", [(liver(seed=11), LIVER_COLOUR)], (89.0, -90.0)),
        ("its bladder", [(gallbladder(seed=11), BILE_COLOUR)], (60.0, -90.0)),
    ]
    figure = plt.figure(figsize=(12, 7), facecolor="#101418")
    for place, (title, parts, view) in enumerate(scenes):
        axes = figure.add_subplot(2, 3, place + 1, projection="3d", facecolor="#101418")
        axes.set_title(title, color="0.85", y=0.04)
        _shade(axes, parts, view)
    figure.subplots_adjust(0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    figure.savefig(path, dpi=75)
    print(f"saved {path}")


def _shade(axes, parts: list[tuple[TriangleMesh, tuple[float, float, float]]], view: tuple[float, float]) -> None:
    """Draws meshes lit from over the viewer's shoulder, with a wet highlight."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    up, around = np.radians(view)
    eye = np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
    right = np.array([-np.sin(around), np.cos(around), 0.0])
    light = eye - 0.35 * right + 0.5 * np.cross(eye, right)
    light /= np.linalg.norm(light)
    half = (light + eye) / np.linalg.norm(light + eye)
    corners, colours = [], []
    for mesh, colour in parts:
        normals = mesh.face_vectors / np.linalg.norm(mesh.face_vectors, axis=1, keepdims=True)
        lit = 0.18 + 0.9 * np.clip(normals @ light, 0.0, 1.0)
        wet = 0.45 * np.clip(normals @ half, 0.0, 1.0) ** 60
        corners.append(mesh.corners - parts[0][0].centre)
        colours.append(np.clip(lit[:, None] * np.asarray(colour) + wet[:, None], 0.0, 1.0))
    skin = np.concatenate(colours)
    axes.add_collection3d(Poly3DCollection(np.concatenate(corners), facecolors=skin, edgecolors=skin, linewidths=0.4))
    reach = 0.54 * parts[0][0].extent
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
    axes.view_init(*view)
    axes.set_box_aspect((1, 1, 1), zoom=1.5)
    axes.set_axis_off()


if __name__ == "__main__":
    try:
        main()
    except VisceraError as error:
        raise SystemExit(str(error)) from None
