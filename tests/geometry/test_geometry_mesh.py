"""Meshes: closed forms of the shapes made by rule, files in every format, and each way a file can be bad."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from viscera.errors import InputError, MeshError
from viscera.geometry import box, capsule, icosphere, load_mesh, rounded_slab, torus, uv_sphere
from viscera.geometry.mesh import TriangleMesh, guess_unit
from viscera.geometry.topology import orientation, part_count, topology

SHAPES = {
    "icosphere": (icosphere(0.05, 5), 4 / 3 * math.pi * 0.05**3, 4 * math.pi * 0.05**2),
    "uv_sphere": (uv_sphere(0.05, 128, 64), 4 / 3 * math.pi * 0.05**3, 4 * math.pi * 0.05**2),
    "capsule": (
        capsule(0.01, 0.05, 128),
        math.pi * 0.01**2 * 0.05 + 4 / 3 * math.pi * 0.01**3,
        2 * math.pi * 0.01 * 0.05 + 4 * math.pi * 0.01**2,
    ),
    "torus": (torus(0.04, 0.01, 256, 128), 2 * math.pi**2 * 0.04 * 0.01**2, 4 * math.pi**2 * 0.04 * 0.01),
    "box": (box((0.1, 0.2, 0.3), (3, 4, 5)), 0.006, 0.22),
}


@pytest.mark.parametrize("name", SHAPES)
def test_volume_and_area_match_the_closed_form(name: str) -> None:
    mesh, volume, area = SHAPES[name]
    # A facet of angle a ≤ 2π/128 lies below its arc by up to a²/8 = 0.03 % of the radius, in each of the two directions
    # in which a sphere is curved, and a volume takes it three times.
    assert mesh.volume == pytest.approx(volume, rel=2e-3)
    assert mesh.area == pytest.approx(area, rel=2e-3)


@pytest.mark.parametrize("mesh", [*(s[0] for s in SHAPES.values()), rounded_slab()], ids=lambda m: m.name)
def test_shapes_are_closed_and_face_outward(mesh: TriangleMesh) -> None:
    topo = topology(mesh)
    turn = orientation(mesh, topo)
    assert (topo.uses == 2).all()
    assert part_count(topo) == 1
    assert not turn.against.any()
    assert not turn.inside_out.any()
    assert len(topo.collapsed) == len(topo.duplicate) == 0


def test_volume_does_not_depend_on_where_the_mesh_is() -> None:
    mesh = icosphere(0.05, 3)
    assert mesh.moved((100.0, -50.0, 20.0)).volume == pytest.approx(mesh.volume, rel=1e-9)


def test_sphere_normals_point_away_from_its_centre() -> None:
    mesh = icosphere(0.05, 4, (0.1, 0.2, 0.3))
    radial = (mesh.vertices - (0.1, 0.2, 0.3)) / 0.05
    assert np.einsum("ij,ij->i", mesh.vertex_normals, radial).min() > 0.9999


def test_rounded_slab_is_what_palpation_needs() -> None:
    size, radius = np.array((0.096, 0.096, 0.032)), 0.004
    mesh = rounded_slab(size, radius)
    assert 5000 <= len(mesh.vertices) <= 8000
    assert mesh.size == pytest.approx(size, abs=1e-12)
    # Every vertex lies on the rounded box: one radius off the core that is a radius smaller all round.
    core = np.clip(mesh.vertices, -(size / 2 - radius), size / 2 - radius)
    assert np.linalg.norm(mesh.vertices - core, axis=1) == pytest.approx(radius, abs=1e-12)
    # Quads on the flat part of the top are equal squares.
    top = mesh.vertices[mesh.vertices[:, 2] > size[2] / 2 - 1e-9]
    assert np.ptp(np.diff(np.unique(top[:, 0].round(9)))) < 1e-8
    # 4√3·area / Σ edge² is 1 for an equilateral triangle and 0.87 for half a square.
    edges = np.linalg.norm(mesh.corners - np.roll(mesh.corners, 1, axis=1), axis=2)
    quality = 4 * math.sqrt(3) * np.linalg.norm(mesh.face_vectors, axis=1) / (edges**2).sum(axis=1)
    assert quality.min() > 0.6


@pytest.mark.parametrize(
    "make",
    [
        lambda: icosphere(0.0),
        lambda: icosphere(math.nan),
        lambda: capsule(0.01, -1.0),
        lambda: torus(0.01, 0.02),
        lambda: box((0.1, 0.1, 0.0)),
        lambda: box((0.1, 0.1, 0.1), (0, 1, 1)),
        lambda: rounded_slab((0.1, 0.1, 0.01), 0.005),
        lambda: rounded_slab((0.1, 0.1, 0.1), 0.01, (2, 2, 2)),
    ],
)
def test_impossible_shapes_are_refused(make) -> None:
    with pytest.raises(InputError):
        make()


# --- files -------------------------------------------------------------------------------------------------------


def save_stl(path: Path, mesh: TriangleMesh, scale: float = 1000.0) -> Path:
    """Binary STL in units of 1/scale metres, as scanners write it: every triangle with its own corners."""
    body = np.zeros(len(mesh.triangles), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("pad", "<u2")])
    body["corners"] = scale * mesh.corners
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(body)) + body.tobytes())
    return path


@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "glb"])
def test_formats_give_the_same_mesh(kind: str, tmp_path: Path) -> None:
    import trimesh

    mesh = icosphere(0.05, 3)
    path = tmp_path / f"organ.{kind}"
    scale = 1.0 if kind == "glb" else 1000.0
    trimesh.Trimesh(scale * mesh.vertices, mesh.triangles, process=False).export(path)
    loaded = load_mesh(path)
    assert loaded.name == "organ"
    assert loaded.unit == ("m" if kind == "glb" else "mm")
    assert len(loaded.vertices) == len(mesh.vertices)
    assert loaded.triangles.dtype == np.int32
    # Files hold float32 or eight decimals.
    assert loaded.volume == pytest.approx(mesh.volume, rel=1e-5)
    assert (topology(loaded).uses == 2).all()


def test_texture_seams_are_kept_and_are_no_holes(tmp_path: Path) -> None:
    path = tmp_path / "tetra.obj"
    path.write_text(
        "v 0 0 0\nv 100 0 0\nv 0 100 0\nv 0 0 100\nvt 0 0\nvt 1 0\nvt 0 1\nvt 1 1\n"
        "f 1/1 3/3 2/2\nf 1/2 2/3 4/4\nf 2/1 3/2 4/4\nf 3/1 1/2 4/3\n"
    )
    mesh = load_mesh(path)
    assert mesh.uv is not None
    assert len(mesh.vertices) > 4
    assert (topology(mesh).uses == 2).all()
    assert mesh.volume == pytest.approx(0.1**3 / 6)


@pytest.mark.parametrize(
    ("extent", "unit"), [(199.0, "mm"), (46.0, "mm"), (5.0, "mm"), (0.2, "m"), (0.005, "m"), (2.0, "cm")]
)
def test_unit_is_guessed_from_the_extent(extent: float, unit: str) -> None:
    assert guess_unit(extent)[0] == unit


def test_an_ambiguous_guess_says_so() -> None:
    unit, note = guess_unit(46.0)
    assert unit == "mm"
    assert "could also be cm" in note


@pytest.mark.parametrize("extent", [0.001, 900.0, 0.0])
def test_no_organ_has_this_extent(extent: float) -> None:
    with pytest.raises(MeshError, match="unit"):
        guess_unit(extent)


def test_unit_can_be_forced(tmp_path: Path) -> None:
    path = save_stl(tmp_path / "a.stl", icosphere(0.05, 2))
    assert load_mesh(path).extent == pytest.approx(0.1, rel=1e-3)
    assert load_mesh(path, unit="cm").extent == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(InputError, match="inch"):
        load_mesh(path, unit="inch")


def _bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    good = save_stl(folder / "good.stl", icosphere(0.05, 1)).read_bytes()
    nan = bytearray(good)
    nan[84 + 12 : 84 + 16] = struct.pack("<f", math.nan)
    contents: dict[str, tuple[str, bytes, str]] = {
        "empty": ("empty.stl", b"", "empty"),
        "truncated": ("cut.stl", good[: len(good) // 2], "damaged"),
        "noise": ("noise.glb", bytes(range(256)) * 4, "damaged"),
        "no triangles": ("points.obj", b"v 0 0 0\nv 1 0 0\n", "no triangles"),
        "header only": ("header.stl", b"\0" * 80 + struct.pack("<I", 0), "no triangles"),
        "nan": ("nan.stl", bytes(nan), "not finite"),
        "index": ("index.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "damaged"),
        "unknown": ("organ.xyz", b"hello", "cannot be read"),
        "no ending": ("organ", b"hello", "cannot be read"),
    }
    made = {}
    for case, (name, data, message) in contents.items():
        (folder / name).write_bytes(data)
        made[case] = (folder / name, message)
    (folder / "folder.stl").mkdir()
    made["folder"] = (folder / "folder.stl", "folder")
    made["missing"] = (folder / "missing.stl", "no such file")
    return made


@pytest.mark.parametrize(
    "case",
    [
        *("empty", "truncated", "noise", "no triangles", "header only", "nan", "index"),
        *("unknown", "no ending", "folder", "missing"),
    ],
)
def test_bad_files_are_refused_with_name_reason_and_hint(case: str, tmp_path: Path) -> None:
    path, message = _bad_files(tmp_path)[case]
    with pytest.raises(MeshError, match=message) as caught:
        load_mesh(path)
    assert path.name in caught.value.message
    assert caught.value.hint


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_stl(tmp_path / "a.stl", icosphere(0.05, 1))
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything: let the system call refuse instead

        def refuse(self: Path) -> bytes:
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(MeshError, match="permission"):
        load_mesh(path)


def test_the_container_checks_its_arrays() -> None:
    corners = np.eye(3)
    with pytest.raises(MeshError, match="vertices has shape"):
        TriangleMesh(np.zeros((3, 2)), np.array([[0, 1, 2]], dtype=np.int32))
    with pytest.raises(MeshError, match="at least one row"):
        TriangleMesh(corners, np.zeros((0, 3), dtype=np.int32))
    with pytest.raises(MeshError, match="names vertex 3"):
        TriangleMesh(corners, np.array([[0, 1, 3]], dtype=np.int32))
    with pytest.raises(MeshError, match="uv"):
        TriangleMesh(corners, np.array([[0, 1, 2]], dtype=np.int32), uv=np.zeros((2, 2), dtype=np.float32))
    mesh = TriangleMesh(corners, np.array([[0, 1, 2]], dtype=np.int32))
    with pytest.raises(ValueError, match="read-only"):
        mesh.vertices[0, 0] = 1.0
