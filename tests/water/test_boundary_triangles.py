"""One triangle, and three ways to search many of them, against float64 and brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera.anatomy.colon import colon
from viscera.device import Device, Stage
from viscera.errors import InputError, MeshError, StateError
from viscera.geometry import TriangleMesh, icosphere, torus
from viscera.geometry.primitives import box
from viscera.water.boundary.ask import nearest_walls
from viscera.water.boundary.known import Known, good_for, look, make_known
from viscera.water.boundary.shapes import Shape
from viscera.water.boundary.sweep import sweep
from viscera.water.boundary.triangles import NEVER, closest_on_triangle, segment_hits_triangle
from viscera.water.boundary.triangles_hashed import rebuild_hashed
from viscera.water.boundary.walls import (
    Structure,
    WallsView,
    aim_walls,
    check_walls,
    make_walls,
    move_walls,
    nearest_wall,
    refit_walls,
)

STRUCTURES: list[Structure] = ["hashed", "hierarchy", "field"]

# --- the slow, obviously right way -------------------------------------------------------------------------------


def closest_reference(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Nearest points of triangles, each from one point: the best of the plane's foot (if inside) and the three
    edges."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    best = np.full_like(points, np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        way = end - start
        along = np.clip(np.einsum("ij,ij->i", points - start, way) / np.einsum("ij,ij->i", way, way), 0.0, 1.0)
        foot = start + along[:, None] * way
        nearer = np.linalg.norm(points - foot, axis=1) < np.linalg.norm(points - best, axis=1)
        best[nearer] = foot[nearer]
    n = np.cross(b - a, c - a)
    foot = points - (np.einsum("ij,ij->i", points - a, n) / np.einsum("ij,ij->i", n, n))[:, None] * n
    inside = np.ones(len(points), dtype=bool)
    for start, end in ((a, b), (b, c), (c, a)):
        inside &= np.einsum("ij,ij->i", np.cross(end - start, foot - start), n) >= 0.0
    best[inside] = foot[inside]
    return best


def brute_force(mesh: TriangleMesh, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance from each point to the mesh, and the direction from it."""
    count = len(mesh.triangles)
    distance, normal = np.empty(len(points)), np.empty((len(points), 3))
    for i, point in enumerate(points):
        way = point - closest_reference(np.tile(point, (count, 1)), mesh.corners)
        length = np.linalg.norm(way, axis=1)
        distance[i] = length.min()
        normal[i] = way[length.argmin()] / length.min()
    return distance, normal


# As the kernels that use these tests: see sweep.py.
wp.set_module_options({"fuse_fp": False})


@wp.kernel
def ask_triangle(
    points: wp.array(dtype=wp.vec3), ends: wp.array(dtype=wp.vec3), corners: wp.array2d(dtype=wp.vec3),
    weights_out: wp.array(dtype=wp.vec3), hit_out: wp.array(dtype=float),
):  # fmt: skip
    i = wp.tid()
    weights_out[i] = closest_on_triangle(points[i], corners[i, 0], corners[i, 1], corners[i, 2])
    hit_out[i] = segment_hits_triangle(points[i], ends[i], corners[i, 0], corners[i, 1], corners[i, 2])


def one_triangle(device: Device, points: np.ndarray, ends: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, ...]:
    count = len(points)
    weights = wp.zeros(count, dtype=wp.vec3, device=device.warp)
    hit = wp.zeros(count, dtype=float, device=device.warp)
    arrays = [wp.array(v, dtype=wp.vec3, device=device.warp) for v in (points, ends, corners)]
    wp.launch(ask_triangle, dim=count, inputs=[*arrays, weights, hit], device=device.warp)
    return weights.numpy().astype(np.float64), hit.numpy().astype(np.float64)


# --- one triangle ------------------------------------------------------------------------------------------------


def test_closest_point_is_exact_for_random_triangles(device: Device) -> None:
    """Distances agree with float64 to 1e-5 of the size in all of 50 000 cases: corners, edges, face, near and far.

    Grahn's printed step 2 fails in 1.8 % of them, by a large part of an edge. Slivers are left out at a height below 1
    % of their length: there float32 cannot tell regions apart, and does not need to.
    """
    rng = np.random.default_rng(1)
    corners = rng.normal(size=(50_000, 3, 3)).astype(np.float32).astype(np.float64)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    corners = corners[area > 0.03]
    points = (rng.normal(size=(len(corners), 3)) * rng.choice([0.1, 1.0, 3.0], (len(corners), 1))).astype(np.float32)
    weights, _ = one_triangle(device, points, points, corners)
    assert weights.min() >= -1e-6
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-5)
    found = np.linalg.norm(points - np.einsum("ij,ijk->ik", weights, corners), axis=1)
    truth = np.linalg.norm(points - closest_reference(points.astype(np.float64), corners), axis=1)
    assert np.abs(found - truth).max() < 2e-5
    regions = np.bincount((weights > 1e-6).sum(axis=1), minlength=4)[1:]
    assert (regions > 1000).all(), "corners, edges and faces must all have been met"


def test_segments_hit_as_in_float64(device: Device) -> None:
    """0 ≤ d ≤ 1 from either side; cases within 1e-5 of an edge or an end are neither right nor wrong in float32."""
    rng = np.random.default_rng(2)
    corners = rng.normal(size=(40_000, 3, 3)).astype(np.float32).astype(np.float64)
    start, end = (rng.normal(size=(2, 40_000, 3)).astype(np.float32)).astype(np.float64)
    _, found = one_triangle(device, start, end, corners)
    n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    down = np.einsum("ij,ij->i", end - start, n)
    d = np.einsum("ij,ij->i", corners[:, 0] - start, n) / down
    at = start + d[:, None] * (end - start)
    room = np.minimum(d, 1.0 - d)
    for i in range(3):
        a, b = corners[:, i], corners[:, (i + 1) % 3]
        room = np.minimum(room, np.einsum("ij,ij->i", np.cross(b - a, at - a), n) / np.einsum("ij,ij->i", n, n))
    clear = (np.abs(room) > 1e-4) & (np.abs(down) > 1e-3)
    assert clear.sum() > 38_000
    assert (room > 0).sum() > 2000
    assert np.array_equal(found[clear] <= 1.0, room[clear] > 0.0)
    hit = clear & (room > 0.0)
    assert np.abs(found[hit] - d[hit]).max() < 1e-3
    assert (found[clear & (room < 0)] == float(NEVER)).all()


def test_no_segment_slips_between_two_triangles(device: Device) -> None:
    """Aimed at the very edge that two triangles share, every one of 20 000 segments meets at least one of them."""
    rng = np.random.default_rng(3)
    a, b, c, d = rng.normal(size=(4, 20_000, 3)).astype(np.float32)
    start = rng.normal(size=(20_000, 3)).astype(np.float32) * 2
    along = rng.uniform(0.05, 0.95, (20_000, 1)).astype(np.float32)
    edge = a + along * (b - a)
    end = (start + 2.0 * (edge - start)).astype(np.float32)
    # Only where the edge is no fold as seen from the start: a segment may pass beside the rim of two faces that
    # overlap.
    n1, n2 = np.cross(b - a, c - a), np.cross(a - b, d - b)
    see = np.einsum("ij,ij->i", n1, start - a) * np.einsum("ij,ij->i", n2, start - a) > 0
    _, first = one_triangle(device, start, end, np.stack([a, b, c], axis=1))
    _, second = one_triangle(device, start, end, np.stack([b, a, d], axis=1))
    assert see.sum() > 5000
    missed = see & (first > 1.0) & (second > 1.0)
    assert missed.sum() == 0


# --- three structures --------------------------------------------------------------------------------------------


def meshes() -> list[TriangleMesh]:
    return [icosphere(0.05, 2), torus(0.05, 0.02), box((0.08, 0.06, 0.04)), colon(seed=1, triangles=2000)]


@pytest.mark.parametrize("mesh", meshes(), ids=lambda m: m.name)
@pytest.mark.parametrize("structure", ["hashed", "hierarchy"])
def test_triangles_are_found_exactly(device: Device, mesh: TriangleMesh, structure: Structure) -> None:
    """Distance and direction as by brute force in float64; 1e-7 m is float32 at 0.2 m from the origin, ten times."""
    radius = 0.04 * mesh.extent
    walls = make_walls(mesh, radius=radius, device=device, structure=structure)
    points = near_points(mesh, 300, 6.0 * radius)
    distance, normal = brute_force(mesh, points)
    found = nearest_walls(walls, points)
    near = distance < walls.reach * (1 - 1e-5)
    far = distance > walls.reach * (1 + 1e-5)
    assert near.sum() > 80
    assert far.sum() > 30
    np.testing.assert_allclose(found["distance"][near], distance[near], atol=3e-7)
    assert (found["distance"][far] == np.float32(walls.reach)).all()
    assert (found["face"][far] == -1).all()
    # Beside a ridge of a cavity two directions are equally near; elsewhere they agree to rounding over distance.
    agree = np.einsum("ij,ij->i", found["normal"][near], normal[near])
    assert (agree < 1 - 1e-4).mean() < 0.02
    at = np.einsum("ij,ijk->ik", found["weights"][near], mesh.corners[found["face"][near]])
    np.testing.assert_allclose(np.linalg.norm(points[near] - at, axis=1), distance[near], atol=3e-7)


@pytest.mark.parametrize("mesh", meshes(), ids=lambda m: m.name)
def test_a_field_agrees_within_its_bound(device: Device, mesh: TriangleMesh) -> None:
    """|φ − d| ≤ (√3/2) h everywhere (what is free is never more than the distance), and far less on average."""
    radius = 0.04 * mesh.extent
    walls = make_walls(mesh, radius=radius, device=device, structure="field")
    assert walls.field is not None
    points = near_points(mesh, 300, 1.9 * radius)
    distance, normal = brute_force(mesh, points)
    inside = ask_inside(mesh, points)
    found = nearest_walls(walls, points)
    signed = np.where(inside, distance, -distance)
    error = np.abs(np.minimum(signed, walls.reach) - np.minimum(found["distance"], walls.reach))
    assert error.max() <= 0.8661 * walls.field.spacing
    assert np.median(error) < 0.05 * walls.field.spacing
    assert (found["free"] <= distance + 1e-7).all()
    smooth = inside & (distance < walls.reach) & (error < 0.02 * walls.field.spacing)
    agree = np.einsum("ij,ij->i", found["normal"][smooth], normal[smooth])
    assert smooth.sum() > 15
    assert np.median(agree) > 0.995


def test_the_lists_do_not_depend_on_the_order_of_entering(device: Device) -> None:
    """The same answers, to the bit, after a rebuild; cells and buckets are shared by many triangles here."""
    mesh = colon(seed=2, triangles=2000)
    walls = make_walls(mesh, radius=0.006, device=device)
    points = near_points(mesh, 500, 0.01)
    before = nearest_walls(walls, points)
    assert walls.hashed is not None
    rebuild_hashed(Stage(device, 0, 1, None), walls.hashed, walls.vertices)
    assert before.tobytes() == nearest_walls(walls, points).tobytes()


# --- paths -------------------------------------------------------------------------------------------------------


def paths(mesh: TriangleMesh, count: int, length: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    start = near_points(mesh, count, 0.3 * mesh.extent)
    way = rng.normal(size=(count, 3))
    return start, start + length * way / np.linalg.norm(way, axis=1, keepdims=True)


def test_points_meet_the_same_triangle_in_all_structures(device: Device) -> None:
    """The first crossing, against every triangle in float64. Hashed and hierarchy to 1e-4 of the way; a field stops a
    thousandth of the reach before its own surface, which is at most 0.87 nodes off."""
    mesh = torus(0.05, 0.02)
    start, end = paths(mesh, 300, 0.08)
    a, n = mesh.corners[:, 0], mesh.face_vectors
    truth = np.full(300, np.inf)
    for i, (l0, l1) in enumerate(zip(start, end, strict=True)):
        d = ((a - l0) * n).sum(axis=1) / ((l1 - l0) * n).sum(axis=1)
        at = l0 + d[:, None] * (l1 - l0)
        inside = (d >= 0) & (d <= 1)
        for k in range(3):
            p, q = mesh.corners[:, k], mesh.corners[:, (k + 1) % 3]
            inside &= (np.cross(q - p, at - p) * n).sum(axis=1) >= 0
        truth[i] = d[inside].min(initial=np.inf)
    hit = np.isfinite(truth)
    assert 100 < hit.sum() < 250
    for structure in ("hashed", "hierarchy"):
        found = sweep(make_walls(mesh, radius=0.002, device=device, structure=structure), start, end)
        assert (np.isfinite(found) == hit).mean() > 0.995
        both = hit & np.isfinite(found)
        assert np.percentile(np.abs(found[both] - truth[both]), 99) < 1e-4
    inner = ask_inside(mesh, start)
    walls = make_walls(mesh, radius=0.002, device=device, structure="field")
    found = sweep(walls, start[inner], end[inner])
    both = hit[inner] & np.isfinite(found)
    error = np.abs(found[both] - truth[inner][both]) * 0.08
    assert len(error) > 40
    assert np.median(error) < 0.2 * 0.001


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_moving_ball_touches_where_its_distance_is_its_radius(device: Device, structure: Structure) -> None:
    """At the touch the true distance is r (to a thousandth, or a field's 0.87 nodes), before it nowhere less."""
    mesh, radius = icosphere(0.05, 2), 0.004
    walls = make_walls(mesh, radius=radius, device=device, structure=structure)
    start, end = paths(mesh, 200, 0.06)
    free = ask_inside(mesh, start) & (brute_force(mesh, start)[0] > 1.2 * radius)
    start, end = start[free], end[free]
    found = sweep(walls, start, end, radius)
    hit = np.isfinite(found)
    assert hit.sum() > 20
    room = 2e-3 * radius if structure != "field" else 0.5 * radius
    at = start[hit] + found[hit][:, None] * (end - start)[hit]
    np.testing.assert_allclose(brute_force(mesh, at)[0], radius, atol=room)
    for part in (0.25, 0.5, 0.75, 0.95):
        reached = np.minimum(found, 1.0) * part
        assert brute_force(mesh, start + reached[:, None] * (end - start))[0].min() > radius - room


# --- walls that move ---------------------------------------------------------------------------------------------


def test_walls_follow_a_skin_in_parts_inside_a_recorded_program(device: Device) -> None:
    """Three parts to the new shape, then still. Distances are those of the shape at that time, velocities way/time."""
    mesh = icosphere(0.05, 2)
    walls = make_walls(mesh, radius=0.004, device=device, deforming=True, room=0.01)
    grown = wp.array(mesh.vertices * 1.051, dtype=wp.vec3, device=device.warp)
    dt = wp.full(1, 2e-3, dtype=float, device=device.warp)
    aim = device.record(lambda stage: aim_walls(stage, walls, grown), work=1)
    move = device.record(lambda stage: move_walls(stage, walls, dt, 3), work=1)
    point = np.array([[0.0, 0.0475, 0.0]])
    aim.run()
    for part, factor in enumerate((1.017, 1.034, 1.051, 1.051), start=1):
        move.run()
        device.synchronize()
        moved = TriangleMesh(mesh.vertices * factor, mesh.triangles)
        distance, _ = brute_force(moved, point)
        found = nearest_walls(walls, point)[0]
        assert found["distance"] == pytest.approx(distance[0], abs=2e-7)
        speed = 0.05 * 0.051 / 6e-3 if part <= 3 else 0.0
        np.testing.assert_allclose(found["velocity"], [0.0, speed, 0.0], atol=0.05 * speed + 1e-9)
        assert (walls.view.moved.numpy()[0] > 0.0) == (part <= 3)
    check_walls(walls, parts=3)


def test_a_hierarchy_is_fitted_between_programs(device: Device) -> None:
    mesh = icosphere(0.05, 2)
    walls = make_walls(mesh, radius=0.004, device=device, structure="hierarchy")
    refit_walls(walls, mesh.vertices * 1.04, 0.016)
    found = nearest_walls(walls, np.array([[0.0, 0.0463, 0.0]]))[0]
    truth, _ = brute_force(TriangleMesh(mesh.vertices * 1.04, mesh.triangles), np.array([[0.0, 0.0463, 0.0]]))
    assert found["distance"] == pytest.approx(truth[0], abs=2e-7)
    assert found["velocity"][1] == pytest.approx(0.05 * 0.04 / 0.016, rel=0.02)
    with pytest.raises(InputError, match="cannot follow"):
        aim_walls(Stage(device, 0, 1, None), walls, walls.vertices)
    with pytest.raises(InputError, match="keep their shape"):
        aim_walls(Stage(device, 0, 1, None), make_walls(mesh, radius=0.004, device=device), walls.vertices)


def test_a_mesh_that_outgrows_its_table_or_outruns_particles_says_so(cpu: Device) -> None:
    mesh = icosphere(0.05, 2)
    walls = make_walls(mesh, radius=0.004, device=cpu, deforming=True)
    stage = Stage(cpu, 0, 1, None)
    aim_walls(stage, walls, wp.array(mesh.vertices * 1.03, dtype=wp.vec3, device="cpu"))
    with pytest.raises(StateError, match="mm in one step"):
        check_walls(walls)
    torn = np.random.default_rng(1).permutation(mesh.vertices)  # triangles right across the ball
    aim_walls(stage, walls, wp.array(torn, dtype=wp.vec3, device="cpu"))
    with pytest.raises(StateError, match="no room"):
        check_walls(walls)


# --- what particles remember -------------------------------------------------------------------------------------


@wp.kernel
def walk(
    walls: WallsView, need: float, known: wp.array(dtype=Known), way: wp.array(dtype=wp.vec3),
    place_out: wp.array(dtype=wp.vec3), seen_out: wp.array(dtype=float), truth_out: wp.array(dtype=float),
    asked_out: wp.array(dtype=wp.int32),
):  # fmt: skip
    i = wp.tid()
    point = place_out[i] + way[i]
    if good_for(known, i, point) < need:
        asked_out[i] = asked_out[i] + 1
    seen_out[i] = look(walls, known, i, point, need).distance
    truth_out[i] = nearest_wall(walls, point).distance
    place_out[i] = point


@pytest.mark.parametrize("structure", ["hashed", "hierarchy"])
@pytest.mark.parametrize("radius", [0.002, 0.006])
def test_remembered_triangles_answer_as_the_mesh_does(device: Device, structure: Structure, radius: float) -> None:
    """400 points walk at random near a ring and a ball beside it, 60 steps of up to 4 % of a radius: what they remember
    gives the same distances as asking, wherever that is less than they need, and never more than is true beyond. At
    6 mm more triangles are in reach (dozens) than they can remember, and they ask often."""
    mesh = torus(0.05, 0.02)
    walls = make_walls(
        mesh, [Shape("sphere", (0.05, 0.0, 0.012), (0.006,))], radius=radius, device=device, structure=structure
    )
    rng = np.random.default_rng(3)
    face = rng.integers(len(mesh.triangles), size=400)
    start = mesh.corners[face].mean(axis=1) + radius * rng.uniform(-1.2, 1.2, (400, 3))
    place = wp.array(start, dtype=wp.vec3, device=device.warp)
    known = make_known(400, device)
    way, asked = wp.zeros_like(place), wp.zeros(400, dtype=wp.int32, device=device.warp)
    seen, truth = (wp.zeros(400, dtype=float, device=device.warp) for _ in range(2))
    need = 1.001 * radius
    for _ in range(60):
        way.assign((0.04 * radius * rng.uniform(-1.0, 1.0, (400, 3))).astype(np.float32))
        wp.launch(walk, dim=400, inputs=[walls.view, need, known, way, place, seen, truth, asked], device=device.warp)
        found, true = seen.numpy(), truth.numpy()
        near = true < need
        assert 50 < near.sum() < 400
        np.testing.assert_allclose(found[near], true[near], atol=1e-7)
        assert (found[~near] <= true[~near] + 1e-7).all()
        assert (found[~near] >= need - 1e-7).all()
    if radius < 0.004:
        assert asked.numpy().mean() < 6, "most answers must come from memory"


# --- what is refused ---------------------------------------------------------------------------------------------


def test_an_open_vessel_says_where_it_is_open(cpu: Device) -> None:
    mesh = colon(seed=1, triangles=2000, closed=False)
    with pytest.raises(MeshError, match=r"2 holes with \d+ open edges: \d+ edges around \(.*\) mm"):
        make_walls(mesh, radius=0.003, device=cpu)
    assert make_walls(mesh, radius=0.003, device=cpu, closed=False).mesh is mesh
    with pytest.raises(InputError, match="closed mesh"):
        make_walls(mesh, radius=0.003, device=cpu, closed=False, structure="field")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 0.0}, "radius = 0.0"),
        ({"radius": float("nan")}, "radius = nan"),
        ({"radius": 0.003, "reach": 0.003}, "reach = 0.003"),
        ({"radius": 0.003, "structure": "octree"}, "structure = 'octree'"),
        ({"radius": 0.003, "structure": "field", "field_spacing": 0.003}, "too coarse"),
        ({"radius": 1e-5}, "cells of"),
    ],
)
def test_impossible_walls_are_refused(cpu: Device, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_walls(icosphere(0.05, 1), device=cpu, **arguments)
    walls = make_walls(icosphere(0.05, 1), radius=0.003, device=cpu)
    with pytest.raises(InputError, match="radius = 1"):
        sweep(walls, [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.01]], 1.0)
    with pytest.raises(InputError, match="1 starts for 2"):
        sweep(walls, [[0.0, 0.0, 0.0]], np.zeros((2, 3)))
    with pytest.raises(InputError, match="no walls"):
        make_walls(radius=0.003, device=cpu)


# --- shared ------------------------------------------------------------------------------------------------------


def near_points(mesh: TriangleMesh, count: int, spread: float) -> np.ndarray:
    """Points around the surface, up to `spread` away, on both sides."""
    rng = np.random.default_rng(5)
    face = rng.integers(len(mesh.triangles), size=count)
    weights = rng.dirichlet(np.ones(3), count)
    at = np.einsum("ij,ijk->ik", weights, mesh.corners[face])
    away = rng.normal(size=(count, 3))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    return (at + rng.uniform(0.0, spread, (count, 1)) * away).astype(np.float32).astype(np.float64)


def ask_inside(mesh: TriangleMesh, points: np.ndarray) -> np.ndarray:
    from viscera.geometry import build_query, signed_distance

    return signed_distance(build_query(mesh), points) < 0.0
