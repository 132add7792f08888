"""Walls that move: the part of a kernel behind the triangles around a point, against the volume itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp

from viscera import water
from viscera.anatomy.colon import colon
from viscera.device import Device, Stage
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.primitives import box, icosphere
from viscera.water import FluidParams
from viscera.water.boundary.triangle_share import EdgeTable, along_rays, make_edge_table, of_triangle
from viscera.water.boundary.volume_map import BEHIND, calibration, flat_share, flat_slope
from viscera.water.boundary.walls import Structure, refit_walls
from viscera.water.smoothing import spline

FloatArray = np.ndarray


def shares(
    device: Device,
    mesh: TriangleMesh,
    places: FloatArray,
    *,
    structure: Structure = "hashed",
    inside: bool = True,
    listed: bool = False,
    velocity: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FluidParams]:
    """∇λ [1/m] and λ of particles there, sorted as they are given, and the velocity of the wall beside them. `listed`:
    through the lists that contacts keep."""
    params = FluidParams(0.01, (-0.5,) * 3, (0.5,) * 3, dt=1e-4, gravity=(0.0, 0.0, 0.0))
    pond = water.make(params, places, device=device)
    walls = water.make_walls(
        mesh, radius=0.002, device=device, reach=params.radius, structure=structure, fluid_inside=inside,
        deforming=structure == "hashed",
    )  # fmt: skip
    share = water.MovingWallVolume(pond, walls)
    pond.boundaries.append(share)
    if listed:
        water.add_vessel(pond, walls)
    if velocity is not None:
        walls.velocity.assign(velocity.astype(np.float32))
        walls.view.moved.fill_(1e-6)
    device.record(lambda stage: water.step(stage, pond)).run()
    original = pond.grid.original.numpy()[: len(places)]
    found, drift = share.share.numpy()[: len(places)], share.drift.numpy()[: len(places)]
    back = np.argsort(original)
    return found[back] / (params.rest_density * calibration(params)), drift[back, :3], params


def box_share(places: FloatArray, half: FloatArray, radius: float) -> FloatArray:
    """λ outside a box around the origin: brute force over a ball of points, in float64."""
    count = 48
    axis = (np.arange(-count, count) + 0.5) * radius / count
    ball = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = spline(np.linalg.norm(ball, axis=1), radius, 3)
    ball, weight = ball[weight > 0.0], weight[weight > 0.0] / weight.sum()
    cell = radius / count
    found = []
    for place in places:
        # A cell that a wall cuts counts in part, or the wall would be up to half a cell off.
        kept = np.clip((half - np.abs(ball + place)) / cell + 0.5, 0.0, 1.0).prod(axis=1)
        found.append(float((weight * (1.0 - kept)).sum()))
    return np.array(found)


def test_rays_to_a_flat_wall_make_its_share() -> None:
    for h in (0.05, 0.35, 0.6, 0.9):
        value, slope = along_rays(np.array(h), np.array(1.0))
        assert 2.0 * math.pi * float(value) == pytest.approx(flat_share(h, 1.0), abs=1e-6)
        assert 2.0 * math.pi * float(slope) == pytest.approx(-flat_slope(h, 1.0), rel=1e-5)


def behind(triangle: FloatArray) -> float:
    """λ of a triangle whose corners are given from x, over R: ∫ M(r) h/r³ dA over a fine grid of points, in float64."""
    a, b, c = triangle
    normal = np.cross(b - a, c - a)
    r = np.linspace(0.0, 1.0, 4001)
    weight = spline(r, 1.0, 3) * r**2
    tail = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(r) * (weight[1:] + weight[:-1]))])
    grid = (np.arange(120) + 0.5) / 120
    u, v = (one.ravel() for one in np.meshgrid(grid, grid))
    u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
    y = a + u[:, None] * (b - a) + v[:, None] * (c - a)
    far = np.linalg.norm(y, axis=1)
    beyond = tail[-1] - np.interp(far, r, tail)
    return float((beyond * (y @ normal) / far**3).mean() / 2.0)


@wp.kernel
def of_each(
    table: EdgeTable,
    corners: wp.array2d(dtype=wp.vec3),
    found_out: wp.array(dtype=wp.vec4),
):
    i = wp.tid()
    found_out[i] = of_triangle(table, corners[i, 0], corners[i, 1], corners[i, 2])


def test_one_triangle_has_its_share_from_wherever_it_is_seen(device: Device) -> None:
    """Also from its own plane, and there from the line of one of its edges, where solid angles are singular: a table
    alone was up to 0.03 off there, and λ jumped as the point went through the plane."""
    rng = np.random.default_rng(5)
    corners = rng.uniform(-0.9, 0.9, (300, 3, 3))
    height = np.repeat([0.0, 1e-4, -1e-3, 0.01, -0.03, 0.3], 50)
    for one, h, on_edge in zip(corners, height, np.tile([True, False], 150), strict=True):
        normal = np.cross(one[1] - one[0], one[2] - one[0])
        normal /= np.linalg.norm(normal)
        one -= (one[0] @ normal - h) * normal  # now its plane is at h
        if on_edge:
            edge = (one[1] - one[0]) / np.linalg.norm(one[1] - one[0])
            side = np.cross(normal, edge)
            one += (rng.uniform(-0.02, 0.02) - one[0] @ side) * side + (rng.uniform(0.3, 0.8) - one[0] @ edge) * edge
    seen = np.array([np.linalg.norm(_nearest(one)) > 0.2 for one in corners])  # walls are no nearer
    corners = corners[seen]
    assert len(corners) > 150
    found = wp.zeros(len(corners), dtype=wp.vec4, device=device.warp)
    given = wp.array(corners.astype(np.float32), dtype=wp.vec3, device=device.warp)
    wp.launch(of_each, len(corners), [make_edge_table(device), given, found], device=device.warp)
    assert found.numpy()[:, 3] == pytest.approx(np.array([behind(one) for one in corners]), abs=5e-4)


def _nearest(triangle: FloatArray) -> FloatArray:
    """About the nearest point of a triangle to the origin."""
    grid = np.linspace(0.0, 1.0, 40)
    u, v = (one.ravel() for one in np.meshgrid(grid, grid))
    inside = u + v <= 1.0
    y = triangle[0] + u[inside, None] * (triangle[1] - triangle[0]) + v[inside, None] * (triangle[2] - triangle[0])
    return y[np.linalg.norm(y, axis=1).argmin()]


PLACES = np.array(
    [[0.045, 0.0, 0.0], [0.045, 0.001, 0.045], [0.045, 0.045, -0.045], [0.035, -0.04, 0.047], [0.02, 0.0, 0.03]]
)
"""In a box of 0.1 m: at a face, in an edge, in a corner, near one, and in the middle, where kernels reach no wall."""


@pytest.mark.parametrize("structure", ["hashed", "hierarchy"])
@pytest.mark.parametrize("listed", [False, True])
def test_faces_edges_and_corners_of_a_box(device: Device, structure: Structure, listed: bool) -> None:
    """The large triangles of a box: within 0.3 % of the kernel, which is what the table and brute force leave."""
    found, _, params = shares(device, box((0.1,) * 3), PLACES, structure=structure, listed=listed)
    truth = box_share(PLACES, np.full(3, 0.05 + BEHIND * params.spacing), params.radius)
    np.testing.assert_allclose(found[:, 3], truth, atol=0.003)
    assert truth[2] > 2.5 * truth[0] > 0.2, "a corner has far more behind it than a face"
    assert found[4, 3] == 0.0
    step = params.radius / 48.0  # a cell of the brute force, so that its rounding is the same at both ends
    for axis in range(3):
        ends = [box_share(PLACES + k * step * np.eye(3)[axis], np.full(3, 0.052), params.radius) for k in (-1, 1)]
        slope = (ends[1] - ends[0]) / (2.0 * step)
        np.testing.assert_allclose(found[:, axis], slope, atol=0.005 / params.radius)


def test_how_a_face_is_cut_changes_nothing(cpu: Device) -> None:
    """A box of 12 triangles and one of 12 × 4³."""
    coarse, fine = box((0.1,) * 3), box((0.1,) * 3)
    for _ in range(3):
        fine = _halved(fine)
    assert len(fine.triangles) == 768
    one, two = (shares(cpu, mesh, PLACES)[0] for mesh in (coarse, fine))
    np.testing.assert_allclose(one[:, 3], two[:, 3], atol=0.002)
    np.testing.assert_allclose(one[:, :3], two[:, :3], atol=0.4)  # of slopes up to 40/m


def _halved(mesh: TriangleMesh) -> TriangleMesh:
    """Each triangle in four; vertices of two are there once."""
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    ab, bc, ca = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
    corners = np.concatenate([np.stack(one, axis=1) for one in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
    vertices, numbers = np.unique(corners.reshape(-1, 3).round(9), axis=0, return_inverse=True)
    return TriangleMesh(vertices, numbers.reshape(-1, 3).astype(np.int32), mesh.name)


@pytest.mark.parametrize("inside", [True, False])
def test_a_ball_has_what_caps_say(cpu: Device, inside: bool) -> None:
    """Water in a ball of 5 spacings and around it, against an integral over spheres around the point, each cut by the
    ball: within 0.4 % of the kernel."""
    rng = np.random.default_rng(1)
    away = rng.normal(size=(40, 3))
    away /= np.linalg.norm(away, axis=1)[:, None]
    far = rng.uniform(0.032, 0.046, 40) if inside else rng.uniform(0.054, 0.068, 40)
    found, _, params = shares(cpu, icosphere(0.05, 4), away * far[:, None], inside=inside)
    behind = BEHIND * params.spacing
    r = (np.arange(4_000) + 0.5) * params.radius / 4_000
    weight = 4.0 * math.pi * r**2 * spline(r, params.radius, 3) * params.radius / 4_000
    edge = 0.05 + behind if inside else 0.05 - behind
    cosine = np.clip((edge**2 - far[:, None] ** 2 - r**2) / (2.0 * far[:, None] * r), -1.0, 1.0)
    beyond = (0.5 * (1.0 - cosine)) @ weight
    truth = beyond if inside else 1.0 - beyond
    np.testing.assert_allclose(found[:, 3], truth, atol=0.004)
    normal = found[:, :3] / np.maximum(np.linalg.norm(found[:, :3], axis=1), 1e-12)[:, None]
    close = truth > 0.02
    assert close.sum() > 10
    assert (normal * (away if inside else -away)).sum(axis=1)[close].min() > 0.999


def test_lists_and_cells_give_the_same_bits(cpu: Device) -> None:
    """A colon by its hashed grid, by its tree of boxes, and by lists of contacts where they are long enough: whole
    numbers do not know in which order they were added."""
    mesh = colon(3, 8_040)
    mesh = mesh.moved(-mesh.centre)
    rng = np.random.default_rng(2)
    faces = rng.integers(len(mesh.triangles), size=400)
    a, b, c = (mesh.vertices[mesh.triangles[faces, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    places = (a + b + c) / 3.0 - 0.005 * normal
    kinds: list[tuple[Structure, bool]] = [("hashed", False), ("hashed", True), ("hierarchy", False)]
    found = [shares(cpu, mesh, places, structure=structure, listed=listed)[0] for structure, listed in kinds]
    assert (found[0][:, 3] > 0.05).mean() > 0.9
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_a_wall_that_comes_nearer_brings_its_share(cpu: Device) -> None:
    """Of a box whose one face moves in, ∇λ·u is how fast λ grows: a difference of two shapes."""
    mesh = box((0.1,) * 3)
    right = mesh.vertices[:, 0] > 0.0
    velocity = np.where(right[:, None], [-0.01, 0.0, 0.0], 0.0)
    places = np.array([[0.043, 0.0, 0.0], [0.043, 0.004, 0.001]])
    found, drift, _ = shares(cpu, mesh, places, velocity=velocity)
    time = 0.2  # 2 mm: over less of a way the steps of the table show
    moved = TriangleMesh(mesh.vertices + time * velocity, mesh.triangles, mesh.name)
    later = shares(cpu, moved, places)[0]
    grown = (later[:, 3] - found[:, 3]) / time
    mean = 0.5 * (found + later)
    np.testing.assert_allclose(-(mean[:, :3] * drift).sum(axis=1), grown, rtol=0.03)


def test_a_hierarchy_is_asked_where_it_was_fitted(cpu: Device) -> None:
    """The triangles behind follow a mesh that was put elsewhere between two runs."""
    params = FluidParams(0.01, (-0.5,) * 3, (0.5,) * 3, dt=1e-4, gravity=(0.0, 0.0, 0.0))
    mesh = box((0.1,) * 3)
    pond = water.make(params, [[0.04, 0.0, 0.0]], device=cpu)
    walls = water.make_walls(mesh, radius=0.002, device=cpu, reach=params.radius, structure="hierarchy")
    share = water.MovingWallVolume(pond, walls)
    pond.boundaries.append(share)

    def frame(stage: Stage) -> None:
        water.step(stage, pond)

    program = cpu.record(frame)
    program.run()
    before = float(share.share.numpy()[0, 3])
    refit_walls(walls, wp.array(mesh.vertices - [0.004, 0.0, 0.0], dtype=wp.vec3, device=cpu.warp), 0.016)
    program.run()
    assert float(share.share.numpy()[0, 3]) > 1.5 * before > 0.0
