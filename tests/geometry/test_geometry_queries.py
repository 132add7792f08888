"""Closest points, rays and distance fields against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp

from viscera.device import Device
from viscera.errors import InputError, MeshError
from viscera.geometry import (
    TriangleMesh,
    box,
    box_distance,
    build_query,
    capsule,
    capsule_distance,
    cast_rays,
    closest_points,
    distance_field,
    icosphere,
    sample,
    signed_distance,
    sphere_distance,
)

CENTRE = np.array((1.0, 2.0, 3.0))
"""Metres from the origin, where float32 alone would be off by 0.2 µm."""
RADIUS = 0.05
SPHERE = icosphere(RADIUS, 5, CENTRE)
SAG = (
    RADIUS
    - np.abs(
        np.einsum("ij,ij->i", SPHERE.corners[:, 0] - CENTRE, SPHERE.face_vectors)
        / np.linalg.norm(SPHERE.face_vectors, axis=1)
    ).min()
)
"""How far the facets' planes lie below the sphere, at most [m]."""


def around(count: int, spread: float = 0.05) -> np.ndarray:
    return CENTRE + spread * np.random.default_rng(7).normal(size=(count, 3))


def test_analytic_distances() -> None:
    assert sphere_distance([[0.0, 0.0, 3.0]], (0.0, 0.0, 0.0), 1.0) == pytest.approx(2.0)
    ends = ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0))
    points = [[2.0, 0.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [3.0, 0.0, 5.0]]
    assert capsule_distance(points, *ends, 0.5) == pytest.approx([1.5, 1.5, -0.5, 4.5])
    points = [[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.9, 0.0, 0.0], [4.0, 6.0, 0.0]]
    assert box_distance(points, (0.0, 0.0, 0.0), (2.0, 4.0, 4.0)) == pytest.approx([1.0, -1.0, -0.1, 5.0])
    assert capsule_distance([[3.0, 0.0, 0.0]], (0.0,) * 3, (0.0,) * 3, 1.0) == pytest.approx(2.0)


def test_signed_distance_of_a_sphere(device: Device) -> None:
    points = around(5000)
    found = closest_points(build_query(SPHERE, device), points)
    exact = sphere_distance(points, CENTRE, RADIUS)
    assert np.abs(found.distances - exact).max() < SAG + 1e-7
    assert np.linalg.norm(found.points - points, axis=1) == pytest.approx(np.abs(found.distances), abs=1e-7)
    assert np.linalg.norm(found.points - CENTRE, axis=1) == pytest.approx(RADIUS, abs=SAG + 1e-7)
    assert found.faces.min() >= 0


def test_closest_point_on_a_box_is_exact(device: Device) -> None:
    mesh = box((0.02, 0.04, 0.06), (2, 3, 4), CENTRE)
    points = around(5000, 0.03)
    exact = box_distance(points, CENTRE, (0.02, 0.04, 0.06))
    # float32 of coordinates up to 0.1 m about the box's centre.
    assert signed_distance(build_query(mesh, device), points) == pytest.approx(exact, abs=3e-8)


def test_rays_hit_the_sphere_where_they_should(device: Device) -> None:
    rng = np.random.default_rng(1)
    outward = rng.normal(size=(2000, 3))
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    query = build_query(SPHERE, device)
    hits = cast_rays(query, CENTRE + 0.2 * outward, -3.0 * outward)
    assert hits.distances == pytest.approx(0.2 - RADIUS, abs=SAG + 1e-7)
    assert np.einsum("ij,ij->i", hits.normals, outward).min() > 0.99
    assert np.linalg.norm(hits.points - CENTRE, axis=1) == pytest.approx(RADIUS, abs=SAG + 1e-7)
    missed = cast_rays(query, CENTRE + 0.2 * outward, outward)
    assert np.isinf(missed.distances).all()
    assert (missed.faces == -1).all()
    assert np.isnan(missed.points).all()
    assert np.isinf(cast_rays(query, CENTRE + 0.2 * outward, -outward, reach=0.1).distances).all()


def test_queries_check_what_they_are_given() -> None:
    query = build_query(SPHERE)
    assert len(closest_points(query, np.zeros((0, 3))).distances) == 0
    for bad in (np.zeros(3), np.full((1, 3), np.nan)):
        with pytest.raises(InputError, match="points"):
            closest_points(query, bad)
    with pytest.raises(InputError, match=r"directions\[1\]"):
        cast_rays(query, np.zeros((2, 3)), [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(InputError, match="one direction per start"):
        cast_rays(query, np.zeros((2, 3)), [[1.0, 0.0, 0.0]])


# --- distance fields ---------------------------------------------------------------------------------------------


def inside_the_grid(field, count: int = 20000) -> np.ndarray:
    span = field.spacing * (np.array(field.dims) - 1)
    return field.origin + span * np.random.default_rng(3).random((count, 3))


def test_field_of_a_sphere(device: Device) -> None:
    h = 0.004
    field = distance_field(SPHERE, h, margin=0.02, device=device)
    points = inside_the_grid(field)
    found, gradient = sample(field, points)
    exact = sphere_distance(points, CENTRE, RADIUS)
    away = np.linalg.norm(points - CENTRE, axis=1)
    # Trilinear error is at most h²/8 times the sum of the second derivatives, and a distance has 2/r; float32 at 3 m.
    error = np.abs(found - exact)
    smooth = away > 2.0 * h
    assert (error[smooth] <= (h**2 / 4.0 / (away[smooth] - math.sqrt(3.0) * h)) + SAG + 1e-6).all()
    assert error[smooth].max() < 0.5 * h
    assert error.max() < 0.87 * h
    near = np.abs(exact) < 0.02
    radial = (points - CENTRE) / away[:, None]
    # The slope within a cell is off by half a cell of curvature: h/(2r) per direction.
    assert np.linalg.norm(gradient - radial, axis=1)[near].max() < 1.5 * h / (RADIUS - 0.02)


def test_field_of_a_capsule() -> None:
    h, radius, length = 0.0015, 0.01, 0.05
    field = distance_field(capsule(radius, length, 128), h, margin=0.01)
    points = inside_the_grid(field)
    exact = capsule_distance(points, (0.0, 0.0, -length / 2), (0.0, 0.0, length / 2), radius)
    error = np.abs(sample(field, points)[0] - exact)
    off_axis = exact + radius > math.sqrt(2.0) * h
    assert error[off_axis].max() < 0.5 * h
    assert error.max() < 0.87 * h
    assert error[np.abs(exact) < h].max() < 0.1 * h


def test_gradient_is_the_slope_of_the_interpolation() -> None:
    """Inside a cell and outside the grid, by central differences that stay on one side of every cell's face."""
    h, eps = 0.004, 5e-5
    field = distance_field(icosphere(0.03, 4), h)
    rng = np.random.default_rng(5)
    cells = rng.integers(-4, np.array(field.dims) + 3, (4000, 3))
    points = field.origin + h * (cells + rng.uniform(0.3, 0.7, (4000, 3)))
    gradient = sample(field, points, "projected")[1]
    for axis in range(3):
        step = eps * np.eye(3)[axis]
        ahead, behind = (sample(field, points + way, "projected")[0] for way in (step, -step))
        slope = (ahead - behind) / (2.0 * eps)
        # float32 of 0.1 m over 0.1 mm, and the curvature of the way outside the grid: ε²/(6·way²) with 1.2 mm of way.
        assert np.abs(slope - gradient[:, axis]).max() < 2e-3


def test_outside_the_grid_the_way_there_is_added() -> None:
    h = 0.004
    field = distance_field(icosphere(0.03, 4), h)
    corner = field.origin - 0.1
    at_grid = sample(field, [field.origin])[0][0]
    assert sample(field, [corner], "projected")[0][0] == pytest.approx(at_grid + 0.1 * math.sqrt(3.0), abs=1e-6)
    points = 0.2 * np.random.default_rng(2).normal(size=(5000, 3))
    assert (sample(field, points, "projected")[0] >= sphere_distance(points, (0.0,) * 3, 0.03) - 0.1 * h).all()


def test_node_values_are_exact_and_continuous_across_the_border() -> None:
    mesh = box((0.02, 0.03, 0.04), (2, 2, 2))
    field = distance_field(mesh, 0.003)
    nodes = field.origin + field.spacing * np.indices(field.dims).reshape(3, -1).T
    exact = box_distance(nodes, (0.0,) * 3, (0.02, 0.03, 0.04))
    assert field.values.numpy().ravel() == pytest.approx(exact, abs=1e-8)
    assert sample(field, nodes)[0] == pytest.approx(exact, abs=1e-7)


def test_fields_refuse_what_they_cannot_do() -> None:
    mesh = icosphere(0.03, 2)
    for spacing in (0.0, -1.0, math.nan, 1e-6):
        with pytest.raises(InputError, match="spacing"):
            distance_field(mesh, spacing)
    with pytest.raises(InputError, match="margin"):
        distance_field(mesh, 0.005, margin=-1.0)
    with pytest.raises(MeshError, match="not a closed surface"):
        distance_field(TriangleMesh(mesh.vertices, mesh.triangles[20:]), 0.002)


@pytest.mark.cuda
def test_cuda_fields_equal_those_of_the_cpu(cpu: Device) -> None:
    from viscera.device import open_device

    gpu = distance_field(SPHERE, 0.004, device=open_device("cuda:0"))
    assert gpu.values.numpy() == pytest.approx(distance_field(SPHERE, 0.004, device=cpu).values.numpy(), abs=1e-7)
    assert isinstance(gpu.values, wp.array)
