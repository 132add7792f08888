"""Meshes that broke something once: too fine, too many, in other letters, in other units, in several parts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viscera.errors import InputError, MeshError
from viscera.geometry import atlas, icosphere, load_mesh, require_closed, torus
from viscera.geometry.atlas import AtlasSettings, baked_atlas, faults_of
from viscera.geometry.inspect import with_oddities
from viscera.geometry.mesh import TriangleMesh, guess_unit, save_stl
from viscera.geometry.simplify import simplify
from viscera.world.organ import load_organ


def together(*meshes: TriangleMesh) -> TriangleMesh:
    starts = np.cumsum([0, *(len(m.vertices) for m in meshes)])
    triangles = np.concatenate([m.triangles + start for m, start in zip(meshes, starts, strict=False)])
    return TriangleMesh(np.concatenate([m.vertices for m in meshes]), triangles.astype(np.int32), "both")


@pytest.mark.slow
def test_a_fine_even_sphere_gets_an_atlas(tmp_path: Path) -> None:
    """81 920 triangles: xatlas ended the process."""
    mesh = icosphere(0.04, 6)
    made = baked_atlas(mesh, AtlasSettings(), tmp_path, ())
    assert (made.vertex[made.triangles] == mesh.triangles).all()
    assert faults_of(made) == ""


def test_a_mesh_that_xatlas_cannot_do_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "UNWRAP_S", 0.001)
    with pytest.raises(MeshError, match="no atlas") as caught:
        baked_atlas(icosphere(0.04, 3), AtlasSettings(), tmp_path, ())
    assert "--simplify" in caught.value.hint


def in_latin_1(mesh: TriangleMesh, kind: str) -> bytes:
    corners = 1000.0 * mesh.corners
    if kind == "stl":
        lines = ["solid größe µ"]
        for a, b, c in corners:
            rows = [f"vertex {x} {y} {z}" for x, y, z in (a, b, c)]
            lines += ["facet normal 0 0 0", "outer loop", *rows, "endloop", "endfacet"]
        return "\n".join([*lines, "endsolid"]).encode("latin-1")
    lines = ["# groß", "o Größe µ", "mtllib Müller.mtl"]
    lines += [f"v {x} {y} {z}" for x, y, z in 1000.0 * mesh.vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in mesh.triangles + 1]
    return "\n".join(lines).encode("latin-1")


@pytest.mark.parametrize("kind", ["obj", "stl"])
def test_names_in_another_encoding_do_not_matter(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)  # as where it is not installed
    mesh = icosphere(0.04, 2)
    path = tmp_path / f"organ.{kind}"
    path.write_bytes(in_latin_1(mesh, kind))
    assert load_mesh(path).volume == pytest.approx(mesh.volume, rel=1e-5)


def test_too_many_triangles_are_refused_before_anything_is_done_with_them(tmp_path: Path) -> None:
    soup = np.random.default_rng(0).normal(0.0, 0.05, (60_000 * 3, 3))
    save_stl(tmp_path / "soup.stl", TriangleMesh(soup, np.arange(180_000, dtype=np.int32).reshape(-1, 3)))
    with pytest.raises(MeshError, match="60000 triangles; at most 1000") as caught:
        load_mesh(tmp_path / "soup.stl", most=1000)
    assert "--simplify" in caught.value.hint


def test_pipes_and_devices_are_no_meshes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.stl")
    with pytest.raises(MeshError, match="no file"):
        load_mesh(tmp_path / "pipe.stl")
    (tmp_path / "zero.stl").symlink_to("/dev/zero")
    with pytest.raises(MeshError, match="no file"):
        load_mesh(tmp_path / "zero.stl")


def test_what_is_odd_about_a_mesh_is_noted(tmp_path: Path) -> None:
    sphere = icosphere(0.03, 3)
    inner = icosphere(0.01, 2)
    cases = {
        "two": (together(sphere, sphere.moved((0.1, 0.0, 0.0))), ["2 parts"], ["inside", "through"]),
        "nested": (together(sphere, inner), ["2 parts", "1 of them inside"], ["through"]),
        "crossing": (together(sphere, sphere.moved((0.02, 0.0, 0.0))), ["2 parts", "pass through"], []),
        "sound": (sphere, [], ["parts", "through"]),
    }
    for name, (mesh, there, absent) in cases.items():
        save_stl(tmp_path / f"{name}.stl", mesh)
        notes = " ".join(load_organ(tmp_path / f"{name}.stl").notes)
        assert all(words in notes for words in there), (name, notes)
        assert not any(words in notes for words in absent), (name, notes)
    assert with_oddities(sphere).notes == sphere.notes


def test_inches_are_thought_of() -> None:
    unit, note = guess_unit(3.3)
    assert unit == "cm"
    assert "in: 83.82 mm" in note
    assert "--unit" in note


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(100, 4000))
def test_a_simplified_surface_is_still_closed(seed: int, most: int) -> None:
    """Whatever its shape: a torus with bumps, and spheres in and beside each other."""
    random = np.random.default_rng(seed)
    ring = torus(0.04, 0.012, 64, 32)
    bumps = ring.vertices + 0.004 * random.normal(size=(4, 3))[random.integers(0, 4, len(ring.vertices))]
    mesh = together(TriangleMesh(bumps, ring.triangles), icosphere(0.02, 3).moved(random.normal(0.0, 0.03, 3)))
    small = simplify(mesh, most)
    assert len(small.triangles) <= most
    start, end = small.triangles, np.roll(small.triangles, -1, axis=1)
    key = np.minimum(start, end).astype(np.int64) * len(small.vertices) + np.maximum(start, end)
    _, which = np.unique(key, return_inverse=True)
    assert not np.bincount(which.ravel(), weights=np.where(start < end, 1.0, -1.0).ravel()).any()


def test_simplifying_keeps_volume_and_stays_usable() -> None:
    mesh = icosphere(0.04, 6)
    small = require_closed(simplify(mesh, 5_000))
    assert 4_000 < len(small.triangles) <= 5_000
    # Triangles between points of a sphere lie below it, and means of such points too: 20/n of the volume, as measured.
    assert small.volume == pytest.approx(mesh.volume, rel=0.01)
    assert simplify(small, 10_000) is small
    with pytest.raises(InputError, match="too few"):
        simplify(mesh, 3)
