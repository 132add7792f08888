"""Faults of meshes that were broken on purpose are found, counted and placed; what is harmless is repaired."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from viscera.device import Device
from viscera.errors import MeshError
from viscera.geometry import box, icosphere, inspect_mesh, repair, require_closed, self_intersections, torus
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.topology import components

SPHERE = icosphere(0.05, 3)


def with_triangles(mesh: TriangleMesh, triangles: np.ndarray) -> TriangleMesh:
    return TriangleMesh(mesh.vertices, triangles.astype(np.int32), mesh.name)


def turned(mesh: TriangleMesh, faces: slice | np.ndarray = slice(None)) -> TriangleMesh:
    triangles = mesh.triangles.copy()
    triangles[faces] = triangles[faces][:, ::-1]
    return with_triangles(mesh, triangles)


def together(*meshes: TriangleMesh) -> TriangleMesh:
    starts = np.cumsum([0, *(len(m.vertices) for m in meshes)])
    triangles = np.concatenate([m.triangles + start for m, start in zip(meshes, starts, strict=False)])
    return TriangleMesh(np.concatenate([m.vertices for m in meshes]), triangles.astype(np.int32), "both")


def moebius(count: int = 64) -> TriangleMesh:
    angle = 2.0 * np.pi * np.arange(count) / count
    rims = []
    for width in (-0.02, 0.02):
        reach = 0.1 + width * np.cos(angle / 2)
        rims.append(np.stack([reach * np.cos(angle), reach * np.sin(angle), width * np.sin(angle / 2)], axis=1))
    triangles = []
    for i in range(count):
        here, there = (2 * i, 2 * i + 1), ((2 * i + 2, 2 * i + 3) if i + 1 < count else (1, 0))
        triangles += [(here[0], there[0], here[1]), (here[1], there[0], there[1])]
    return TriangleMesh(np.stack(rims, axis=1).reshape(-1, 3), np.array(triangles, dtype=np.int32), "strip")


def test_a_sound_mesh_has_no_faults() -> None:
    report = inspect_mesh(SPHERE)
    assert report.closed
    assert report.faults == []
    assert report.components == 1
    assert report.intersecting_pairs == 0
    assert "closed" in str(report)
    assert require_closed(SPHERE).notes == ()


def test_holes_are_counted_and_placed() -> None:
    top = np.argmax(SPHERE.vertices[:, 2])
    side = np.argmax(SPHERE.vertices[:, 0])
    gone = (top == SPHERE.triangles).any(axis=1)
    sides = np.flatnonzero((side == SPHERE.triangles).any(axis=1))[:1]
    gone[sides] = True
    report = inspect_mesh(with_triangles(SPHERE, SPHERE.triangles[~gone]))
    assert not report.closed
    assert len(report.holes) == 2
    around = int((top == SPHERE.triangles).any(axis=1).sum())
    assert [h.edges for h in report.holes] == [around, 3]
    assert report.open_edges == around + 3
    assert np.linalg.norm(report.holes[0].centre - SPHERE.vertices[top]) < 0.005


def test_a_mesh_with_holes_is_refused_with_number_place_and_remedy() -> None:
    broken = with_triangles(SPHERE, SPHERE.triangles[1:])
    with pytest.raises(MeshError) as caught:
        require_closed(broken)
    centre = 1000.0 * SPHERE.corners[0].mean(axis=0)
    assert "1 hole with 3 open edges" in caught.value.message
    assert f"({centre[0]:.1f}, {centre[1]:.1f}, {centre[2]:.1f}) mm" in caught.value.message
    assert "Fill Holes" in caught.value.hint


def test_inside_out_is_repaired_and_said() -> None:
    wrong = turned(SPHERE)
    report = inspect_mesh(wrong)
    assert report.inside_out
    assert report.flipped_faces == len(SPHERE.triangles)
    mended = require_closed(wrong)
    assert mended.volume == pytest.approx(SPHERE.volume)
    assert any("inside out" in note for note in mended.notes)


@pytest.mark.parametrize("count", [1, 7, 900])
def test_flipped_faces_are_counted_and_turned_back(count: int) -> None:
    """Also when they are the greater part: outward is outward, whatever most faces say."""
    wrong = turned(SPHERE, np.random.default_rng(count).permutation(len(SPHERE.triangles))[:count])
    report = inspect_mesh(wrong)
    assert report.flipped_faces == count
    assert not report.inside_out
    assert require_closed(wrong).volume == pytest.approx(SPHERE.volume)


def test_a_cavity_stays_a_cavity_and_a_second_body_is_turned_outward() -> None:
    cavity = turned(icosphere(0.02, 2))
    hollow = together(SPHERE, cavity)
    assert inspect_mesh(hollow).flipped_faces == 0
    assert inspect_mesh(hollow).components == 2
    assert require_closed(turned(hollow)).volume == pytest.approx(hollow.volume)
    beside = together(SPHERE, cavity.moved((0.2, 0.0, 0.0)))
    assert inspect_mesh(beside).flipped_faces == len(cavity.triangles)
    assert require_closed(beside).volume == pytest.approx(SPHERE.volume - cavity.volume)


def test_empty_and_repeated_faces_are_counted_and_dropped() -> None:
    extra = np.array([[0, 0, 1], SPHERE.triangles[3], SPHERE.triangles[5][[1, 2, 0]]])
    wrong = with_triangles(SPHERE, np.concatenate([SPHERE.triangles, extra]))
    report = inspect_mesh(wrong)
    assert (report.degenerate_faces, report.duplicate_faces) == (1, 2)
    mended = repair(wrong)
    assert len(mended.triangles) == len(SPHERE.triangles)
    assert require_closed(wrong).volume == pytest.approx(SPHERE.volume)


def test_a_flat_triangle_is_degenerate() -> None:
    mesh = box((0.1, 0.1, 0.1))
    vertices = np.concatenate([mesh.vertices, mesh.vertices[mesh.triangles[0, :2]].mean(axis=0, keepdims=True)])
    sliver = [*mesh.triangles[0, :2], len(mesh.vertices)]
    report = inspect_mesh(TriangleMesh(vertices, np.concatenate([mesh.triangles, [sliver]]).astype(np.int32)))
    assert report.degenerate_faces == 1


def test_an_edge_with_four_faces_is_named_but_bounds_a_volume() -> None:
    mesh = together(box((0.1, 0.1, 0.1)), box((0.1, 0.1, 0.1), centre=(0.1, 0.1, 0.0)))
    report = inspect_mesh(mesh)
    assert report.nonmanifold_edges == 1
    assert report.nonmanifold_at[0] == pytest.approx((0.05, 0.05, 0.0))
    assert report.closed
    assert require_closed(mesh).volume == pytest.approx(0.002)


def test_bodies_that_share_a_wall_are_accepted() -> None:
    """The wall's triangles appear twice, once for each side: not duplicates, and the volume is that of both."""
    halves = together(box((0.1, 0.1, 0.1)), box((0.1, 0.1, 0.1), centre=(0.1, 0.0, 0.0)))
    report = inspect_mesh(halves, intersections=False)
    assert report.duplicate_faces == 0
    assert report.closed
    assert report.components == 1
    assert require_closed(halves).volume == pytest.approx(0.002)


def test_a_wall_inside_is_refused() -> None:
    """A third face at the rim of a wall: neither open nor closed."""
    mesh = box((0.1, 0.1, 0.1))
    wall = [0, 3, 5] if len({*mesh.triangles[0]} & {0, 3, 5}) < 3 else [0, 3, 6]
    with pytest.raises(MeshError, match="not a closed surface"):
        require_closed(with_triangles(mesh, np.concatenate([mesh.triangles, [wall]])))


def test_a_moebius_strip_is_refused() -> None:
    assert inspect_mesh(moebius()).one_sided
    with pytest.raises(MeshError, match="Möbius"):
        require_closed(moebius())


def test_a_flat_double_sheet_holds_no_volume() -> None:
    vertices = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.1, 0.1, 0.0]])
    sheet = TriangleMesh(vertices, np.array([[0, 1, 2], [1, 3, 2], [2, 1, 0], [2, 3, 1]], dtype=np.int32))
    with pytest.raises(MeshError, match="no volume"):
        require_closed(sheet)


def test_meshes_of_nothing_are_reported_and_refused() -> None:
    point = TriangleMesh(np.zeros((3, 3)), np.array([[0, 1, 2]], dtype=np.int32), "point")
    assert inspect_mesh(point).degenerate_faces == 1
    with pytest.raises(MeshError, match="two corners at one place"):
        require_closed(point)
    needle = TriangleMesh(np.array([[0.0, 0, 0], [0.1, 0, 0], [0.2, 0, 0]]), point.triangles, "needle")
    assert inspect_mesh(needle).degenerate_faces == 1
    with pytest.raises(MeshError, match="1 hole with 3 open edges"):
        require_closed(needle)


# --- self-intersections ------------------------------------------------------------------------------------------


def separated(s: np.ndarray, t: np.ndarray) -> bool:
    """Separating axes in 3D (two normals, nine edge products): another way to the answer, for general positions."""
    es, et = s - np.roll(s, 1, axis=0), t - np.roll(t, 1, axis=0)
    axes = [np.cross(es[0], es[1]), np.cross(et[0], et[1]), *(np.cross(a, b) for a in es for b in et)]
    return any((s @ a).max() < (t @ a).min() or (t @ a).max() < (s @ a).min() for a in axes)


def test_intersections_agree_with_separating_axes(device: Device) -> None:
    rng = np.random.default_rng(4)
    corners = rng.random((150, 1, 3)) + 0.25 * rng.normal(size=(150, 3, 3))
    soup = TriangleMesh(corners.reshape(-1, 3), np.arange(450, dtype=np.int32).reshape(-1, 3))
    expected = [(i, j) for i, j in itertools.combinations(range(150), 2) if not separated(corners[i], corners[j])]
    assert len(expected) > 400
    found = self_intersections(soup, device=device)
    assert found.pairs == len(expected)
    assert set(found.faces) == {i for i, _ in expected}
    lowest = {i: min(b for a, b in expected if a == i) for i, _ in expected}
    assert {int(f): int(p) for f, p in zip(found.faces, found.partners, strict=True)} == lowest


def test_two_bodies_in_each_other_are_found_where_they_cross() -> None:
    both = together(SPHERE, SPHERE.moved((0.06, 0.0, 0.0)))
    report = inspect_mesh(both)
    assert report.intersecting_pairs is not None
    assert report.intersecting_pairs > 50
    # The two spheres cross in the plane between their centres.
    assert np.abs(report.intersecting_at[:, 0] - 0.03).max() < 0.01
    assert "pass through each other" in str(report)


def test_a_pinched_surface_intersects_itself() -> None:
    """One vertex of the sphere pulled through the far side: neighbours of a vertex are tested, too."""
    vertices = SPHERE.vertices.copy()
    top = np.argmax(vertices[:, 2])
    vertices[top] = (0.001, 0.002, -0.08)
    assert self_intersections(TriangleMesh(vertices, SPHERE.triangles)).pairs > 0


def test_faces_folded_onto_each_other_are_found_and_flat_neighbours_are_not() -> None:
    square = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.1, 0.1, 0.0], [0.0, 0.1, 0.0]])
    flat = TriangleMesh(square, np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int32))
    assert self_intersections(flat).pairs == 0
    square[3] = (0.09, 0.01, 0.0)
    assert self_intersections(TriangleMesh(square, flat.triangles)).pairs == 1


@pytest.mark.parametrize("mesh", [SPHERE, torus(0.04, 0.015), box((0.1, 0.1, 0.1), (9, 9, 9))], ids=lambda m: m.name)
def test_sound_surfaces_do_not_intersect_themselves(mesh: TriangleMesh) -> None:
    assert self_intersections(mesh).pairs == 0


def test_components_agree_with_a_walk_over_the_links() -> None:
    rng = np.random.default_rng(0)
    for links in (0, 50, 90, 300):
        a, b = rng.integers(0, 100, (2, links))
        expected = np.arange(100)
        for _ in range(100):
            for p, q in zip(a, b, strict=True):
                expected[p] = expected[q] = min(expected[p], expected[q])
        assert np.array_equal(components(100, a, b), expected)
