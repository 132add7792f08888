"""Atlases: made where there is none, refused where they overlap, made once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from viscera.anatomy import gallbladder
from viscera.anatomy.bake import shipped_atlases
from viscera.errors import InputError, MeshError
from viscera.geometry import TriangleMesh, atlas, icosphere, torus
from viscera.geometry.atlas import SHIPPED, AtlasSettings, cache_folder, faults_of, signed_areas, unique_atlas


def sheet(cells: int = 8) -> TriangleMesh:
    """A flat square with its own, unique coordinates."""
    line = np.linspace(0.0, 1.0, cells + 1)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    low = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    quads = np.stack([low, low + 1, low + cells + 2, low + cells + 1], axis=1)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    vertices = 0.1 * np.stack([x, y, np.zeros_like(x)], axis=1)
    return TriangleMesh(vertices, triangles, "sheet", (0.1 + 0.8 * np.stack([x, y], axis=1)).astype(np.float32))


def test_own_coordinates_are_kept(tmp_path: Path) -> None:
    made = unique_atlas(sheet(), AtlasSettings(64), tmp_path)
    assert made.charts == 1
    assert "of the mesh" in made.notes[0]
    assert not list(tmp_path.iterdir())


def test_a_mesh_without_coordinates_gets_an_atlas(tmp_path: Path) -> None:
    made = unique_atlas(icosphere(0.05, 2), AtlasSettings(128), tmp_path)
    assert "no texture coordinates" in made.notes[0]
    assert faults_of(made) == ""
    assert 0.0 <= made.uv.min() < made.uv.max() <= 1.0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda uv: np.abs(uv - 0.5), "folded"),
        (lambda uv: 3.0 * uv, "leave the unit square"),
        (lambda uv: uv * (1.0, 0.0), "no area"),
        (lambda uv: uv * np.nan, "not finite"),
    ],
)
def test_bad_coordinates_are_told_and_replaced(tmp_path: Path, change, told: str) -> None:
    flat = sheet(4)
    assert flat.uv is not None
    mesh = TriangleMesh(flat.vertices, flat.triangles, "bad", change(flat.uv))
    made = unique_atlas(mesh, AtlasSettings(64), tmp_path)
    assert told in made.notes[0]
    assert "second set" in made.notes[0]
    assert faults_of(made) == ""


def test_two_parts_on_one_place_are_told(tmp_path: Path) -> None:
    one = sheet(4)
    assert one.uv is not None
    both = TriangleMesh(
        np.concatenate([one.vertices, one.vertices + np.array([0.0, 0.0, 0.05])]),
        np.concatenate([one.triangles, one.triangles + len(one.vertices)]),
        "two",
        np.concatenate([one.uv, one.uv]),
    )
    made = unique_atlas(both, AtlasSettings(64), tmp_path)
    assert "overlap in" in made.notes[0]
    assert faults_of(made) == ""


def test_an_atlas_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ring = torus(0.06, 0.02, 24, 12)
    first = unique_atlas(ring, AtlasSettings(128))
    (kept,) = cache_folder().iterdir()
    assert kept.is_relative_to(tmp_path)
    bakes: list[str] = []
    bake = atlas.bake
    monkeypatch.setattr(atlas, "bake", lambda *given: bakes.append("baked") or bake(*given))
    again = unique_atlas(ring, AtlasSettings(128))
    assert not bakes
    assert (again.uv == first.uv).all()
    assert (again.chart == first.chart).all()
    unique_atlas(ring, AtlasSettings(256))
    unique_atlas(ring.scaled(1.1), AtlasSettings(128))
    assert len(bakes) == 2
    kept.write_bytes(kept.read_bytes()[:100])
    unique_atlas(ring, AtlasSettings(128))
    assert len(bakes) == 3


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert unique_atlas(icosphere(0.05, 1), AtlasSettings(64), blocked).charts > 0


@pytest.fixture
def without_xatlas(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that has NumPy and Warp alone."""
    monkeypatch.setitem(sys.modules, "xatlas", None)


@pytest.mark.usefixtures("without_xatlas")
def test_procedural_organs_bring_their_atlas(tmp_path: Path) -> None:
    """Wherever they stand, with another processor's rounding, and nothing else is in the folder; `python -m
    viscera.anatomy.bake` makes them again."""
    names = set()
    for name, mesh, settings in shipped_atlases():
        names.add(name)
        assert (SHIPPED / name).stat().st_size < 300_000
        there = mesh.moved([0.1, -0.2, 0.3]).scaled(1.2)
        shaken = mesh.vertices * (1.0 + 1e-14 * np.random.default_rng(0).normal(size=mesh.vertices.shape))
        for one in (mesh, there, TriangleMesh(shaken, mesh.triangles, "shaken")):
            made = unique_atlas(one, settings, tmp_path)
            assert (made.vertex[made.triangles] == one.triangles).all()
        assert faults_of(made) == ""
    assert {path.name for path in SHIPPED.glob("*.npz")} == names
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("without_xatlas")
def test_an_organ_of_another_shape_gets_no_shipped_atlas(tmp_path: Path) -> None:
    organ = gallbladder()
    bulged = TriangleMesh(organ.vertices * (1.0, 1.0, 1.0 + 1e-3), organ.triangles, "bulged")
    with pytest.raises(MeshError, match="xatlas"):
        unique_atlas(bulged, AtlasSettings(256), tmp_path)


@pytest.mark.parametrize("reserve", [0.25, 0.5])
def test_rows_are_kept_free_for_cuts(tmp_path: Path, reserve: float) -> None:
    ring = torus(0.06, 0.02, 48, 24)
    made = unique_atlas(ring, AtlasSettings(256, reserve=reserve), tmp_path)
    assert made.uv[:, 1].max() <= 1.0 - reserve
    assert faults_of(made) == ""
    # Both axes keep one scale, so a square packing shrinks by the free rows twice.
    whole = unique_atlas(ring, AtlasSettings(256), tmp_path)
    used, before = (np.abs(signed_areas(one.corners)).sum() for one in (made, whole))
    assert used > 0.85 * (1.0 - reserve) ** 2 * before


@pytest.mark.parametrize(
    "given", [{"resolution": 8}, {"padding": 0}, {"distortion": float("nan")}, {"reserve": 1.0}, {"reserve": -0.1}]
)
def test_settings_are_checked(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(given))):
        AtlasSettings(**given)
