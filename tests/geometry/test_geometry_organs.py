"""Real organs, where there are any: `VISCERA_ANATOMY` names a folder with liver, gallbladder and colon .stl in mm.

The same assertions hold for shapes made by rule, so nothing goes untested without the files.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from viscera.geometry import (
    TriangleMesh,
    build_query,
    distance_field,
    embed,
    icosphere,
    inspect_mesh,
    load_mesh,
    require_closed,
    sample,
    signed_distance,
    spacing_for_count,
    torus,
    voxelise,
)

MILLILITRES = {"liver": (900.0, 2500.0), "gallbladder": (5.0, 80.0), "colon": (200.0, 2000.0)}
"""What an adult's organ can hold; a wrong unit is off by a factor of a thousand."""


def organ(name: str) -> TriangleMesh:
    folder = os.environ.get("VISCERA_ANATOMY")
    if not folder:
        pytest.skip("VISCERA_ANATOMY is not set: name a folder with liver.stl, gallbladder.stl and colon.stl")
    path = Path(folder) / f"{name}.stl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return load_mesh(path)


SHAPES = {"sphere": lambda: icosphere(0.06, 5), "ring": lambda: torus(0.06, 0.02, 200, 80)}


@pytest.fixture(scope="module", params=[*MILLILITRES, *SHAPES])
def body(request: pytest.FixtureRequest) -> TriangleMesh:
    return SHAPES[request.param]() if request.param in SHAPES else organ(request.param)


@pytest.mark.parametrize("name", MILLILITRES)
def test_millimetres_are_guessed(name: str) -> None:
    mesh = organ(name)
    low, high = MILLILITRES[name]
    assert mesh.unit == "mm"
    assert low < 1e6 * mesh.volume < high


def test_it_is_closed_and_stays_as_it_is(body: TriangleMesh) -> None:
    report = inspect_mesh(body)
    assert report.closed
    assert report.components == 1
    assert report.flipped_faces == report.open_edges == report.nonmanifold_edges == 0
    assert np.array_equal(require_closed(body).triangles, body.triangles)


def test_a_hole_cut_into_it_is_found(body: TriangleMesh) -> None:
    report = inspect_mesh(TriangleMesh(body.vertices, np.delete(body.triangles, 100, axis=0)), intersections=False)
    assert not report.closed
    assert report.holes[0].edges == 3
    assert report.holes[0].centre == pytest.approx(body.corners[100].mean(axis=0))


@pytest.mark.parametrize("count", [1000, 10_000, 100_000])
def test_voxels_have_its_volume_and_lie_inside(body: TriangleMesh, count: int) -> None:
    voxels = voxelise(body, spacing_for_count(body, count))
    assert len(voxels) == pytest.approx(count, rel=0.03)
    assert voxels.volume == pytest.approx(body.volume, rel=0.05 if count == 1000 else 0.02)
    assert voxels.dropped <= 0.01 * count
    some = voxels.positions[:: max(1, len(voxels) // 2000)]
    assert signed_distance(build_query(body), some).max() < 1e-7


def test_its_surface_follows_its_lattice(body: TriangleMesh) -> None:
    voxels = voxelise(body, spacing_for_count(body, 20_000))
    embedding = embed(body.vertices, voxels.nodes, voxels.origin, voxels.spacing)
    angle, centre = 0.4, body.centre
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]) - np.eye(3)
    moved = np.einsum("vn,vna->va", embedding.weights, ((voxels.positions - centre) @ turn.T)[embedding.indices])
    error = np.linalg.norm(moved - (body.vertices - centre) @ turn.T, axis=1)
    # Exact but for the few vertices on parts that are a single node thin.
    assert np.mean(error > 1e-6) < 0.01
    assert error.max() < voxels.spacing


def test_its_distance_field_is_good_to_half_a_cell(body: TriangleMesh) -> None:
    h = body.extent / 40
    field = distance_field(body, h)
    near = body.vertices[::50] + 0.5 * h * np.random.default_rng(0).normal(size=body.vertices[::50].shape)
    exact = signed_distance(build_query(body), near)
    error = np.abs(sample(field, near)[0] - exact)
    assert error.max() < 0.5 * h
    assert error.mean() < 0.1 * h
