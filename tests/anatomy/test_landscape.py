"""The landscape: a closed solid, a bed that leads downhill, banks that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from viscera.anatomy.landscape import BANK, HALF_WIDTH, Landscape, landscape
from viscera.errors import InputError
from viscera.geometry.inspect import inspect_mesh


@pytest.fixture(scope="module", params=[0, 1, 7])
def place(request: pytest.FixtureRequest) -> Landscape:
    return landscape(seed=request.param)


def test_the_mesh_is_a_closed_solid(place: Landscape):
    """Every edge is shared by two triangles, one each way; the volume is that of the ground over its base."""
    mesh = place.mesh
    edges = np.concatenate([mesh.triangles[:, [0, 1]], mesh.triangles[:, [1, 2]], mesh.triangles[:, [2, 0]]])
    there, counts = np.unique(edges, axis=0, return_counts=True)
    assert (counts == 1).all()
    assert np.array_equal(there, np.unique(edges[:, ::-1], axis=0))
    assert inspect_mesh(mesh).closed
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    volume = float((np.cross(a, b) * c).sum()) / 6.0
    x, y = np.meshgrid(np.linspace(0, place.length, 400), np.linspace(-0.5, 0.5, 300) * place.width, indexing="ij")
    mean = float(place.height(x, y).mean()) - float(mesh.vertices[:, 2].min())
    # Facets over hollows and hills even out; the grid of triangles is fine against both.
    assert volume == pytest.approx(mean * place.length * place.width, rel=0.01)


def test_vertices_lie_on_the_ground(place: Landscape):
    vertices = place.mesh.vertices
    base = vertices[:, 2].min()
    on_top = vertices[vertices[:, 2] > base + 1e-9]
    assert np.allclose(on_top[:, 2], place.height(on_top[:, 0], on_top[:, 1]))


def test_the_bed_leads_down_and_its_banks_hold(place: Landscape):
    """Along the middle the ground falls all the way; across, it rises all the way to three half widths."""
    x = np.linspace(0.0, place.length, 600)
    bed = place.height(x, place.middle(x))
    assert (np.diff(bed) < 0.0).all()
    away = np.linspace(0.0, 3.0 * place.bed_half_width, 60)
    for side in (-1.0, 1.0):
        across = place.height(x[:, None] + 0.0 * away, place.middle(x)[:, None] + side * away)
        assert (np.diff(across[:, away <= 1.2 * place.bed_half_width], axis=1) > 0.0).all()
        assert (across[:, -1] - bed > 0.9 * BANK * place.length).all()
    assert (np.abs(place.middle(x)) < 0.5 * place.width - place.bed_half_width).all()


def test_spring_and_end(place: Landscape):
    x, y, z = place.spring
    ground = float(place.height(np.array(x), np.array(y)))
    assert 0.0 < z - ground < 2.0 * place.bed_half_width
    assert y == pytest.approx(float(place.middle(np.array(x))))
    assert np.linalg.norm(place.spring_direction) == pytest.approx(1.0)
    assert place.spring_direction[0] > 0.5
    low, high = place.end
    last = np.array([place.length, float(place.middle(np.array(place.length)))])
    mouth = np.array([last[0], last[1], float(place.height(last[0], last[1]))])
    assert ((np.asarray(low) <= mouth) & (mouth <= np.asarray(high))).all()
    assert low[0] > 0.9 * place.length


def test_same_seed_same_place_other_seed_other_place():
    assert np.array_equal(landscape(seed=3).mesh.vertices, landscape(seed=3).mesh.vertices)
    assert not np.array_equal(landscape(seed=3).mesh.vertices, landscape(seed=4).mesh.vertices)


@pytest.mark.parametrize(
    ("size", "edge", "field"),
    [
        ((0.0, 1.0), 0.01, "length"),
        ((1.0, math.nan), 0.01, "width"),
        ((1.0, 1.0), 0.0, "edge"),
        ((1.0, 1.0), 2.0 * HALF_WIDTH, "edge"),
        ((1.0, 1.0), 1e-4, "edge"),
    ],
)
def test_sizes_are_checked(size: tuple[float, float], edge: float, field: str):
    with pytest.raises(InputError, match=field):
        landscape(size, edge)
