"""Voxels: exact counts where rays meet edges and corners, volumes that converge, one connected part."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viscera.errors import InputError, MeshError
from viscera.geometry import (
    TriangleMesh,
    Voxels,
    box,
    box_nodes,
    build_query,
    icosphere,
    rounded_slab,
    signed_distance,
    spacing_for_count,
    torus,
    voxelise,
)
from viscera.geometry.voxels import inside_grid

OCTAHEDRON = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=np.float64)
FACES = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]])


def octahedron(radius: float) -> TriangleMesh:
    return TriangleMesh(radius * OCTAHEDRON, FACES.astype(np.int32), "octahedron")


def parts(voxels: Voxels) -> int:
    """Connected parts by 26 neighbours, by flooding: slow and plain."""
    left = {tuple(n) for n in voxels.nodes.tolist()}
    count = 0
    while left:
        count += 1
        front = [left.pop()]
        while front:
            i, j, k = front.pop()
            near = {(i + a, j + b, k + c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)} & left
            left -= near
            front += near
    return count


def test_a_box_of_whole_cells_is_filled_exactly() -> None:
    voxels = voxelise(box((0.096, 0.096, 0.032), (7, 5, 3), (1.0, 2.0, 3.0)), 0.004)
    assert voxels.dims == (24, 24, 8)
    assert len(voxels) == 24 * 24 * 8
    assert voxels.volume == pytest.approx(0.096 * 0.096 * 0.032)
    assert voxels.positions.mean(axis=0) == pytest.approx((1.0, 2.0, 3.0))
    assert voxels.dropped == 0
    assert voxels.nodes.dtype == np.int32


def test_nodes_are_ordered_by_k_then_j_then_i() -> None:
    nodes = voxelise(icosphere(0.05, 3), 0.006).nodes.astype(np.int64)
    key = (nodes[:, 2] * 100 + nodes[:, 1]) * 100 + nodes[:, 0]
    assert (np.diff(key) > 0).all()
    assert nodes.min() == 0


@pytest.mark.parametrize("cells", [1, 2, 3, 8])
def test_rays_through_corners_and_along_edges_do_not_leak(cells: int) -> None:
    """Lattice rows run exactly through the octahedron's corners and edges, and nodes lie on its faces."""
    radius = 0.001 * cells
    side = 2 * cells + 5
    dims = (side, side, side)
    origin = np.full(3, -0.001 * (cells + 2))
    inside = inside_grid(octahedron(radius), origin, 0.001, dims)
    grid = np.abs(np.indices(dims) - (cells + 2)).sum(axis=0)
    assert inside[grid < cells].all()
    assert not inside[grid > cells].any()


def test_nodes_on_a_face_belong_to_one_side_only() -> None:
    """Two boxes that share a face through a plane of nodes: every node inside exactly one of them."""
    dims, origin, h = (9, 5, 5), np.array([0.0, 0.0, 0.0]), 0.001
    left = inside_grid(box((0.004, 0.01, 0.01), (1, 3, 3), (0.002, 0.002, 0.002)), origin, h, dims)
    right = inside_grid(box((0.004, 0.01, 0.01), (2, 1, 2), (0.006, 0.002, 0.002)), origin, h, dims)
    assert not (left & right).any()
    assert (left | right)[:8].all()


@given(
    seed=st.integers(0, 2**31 - 1),
    snap=st.sampled_from([0.0, 0.0005, 0.001]),
    along=st.permutations([0, 1, 2]),
)
@settings(max_examples=40, deadline=None)
def test_rows_agree_with_winding_numbers(seed: int, snap: float, along: list[int]) -> None:
    """Dented spheres, with corners snapped onto the lattice so that rays meet them: same as the solid angle's sum."""
    rng = np.random.default_rng(seed)
    mesh = icosphere(0.005, 1)
    vertices = (mesh.vertices * (1.0 + 0.3 * rng.normal(size=(len(mesh.vertices), 1))))[:, along]
    if snap:
        vertices = np.rint(vertices / snap) * snap
    triangles = mesh.triangles if along in ([0, 1, 2], [1, 2, 0], [2, 0, 1]) else mesh.triangles[:, ::-1]
    dims, origin = (15, 15, 15), np.full(3, -0.007)
    inside = inside_grid(TriangleMesh(vertices, triangles), origin, 0.001, dims)
    nodes = origin + 0.001 * np.indices(dims).reshape(3, -1).T
    winding = winding_numbers(vertices[triangles], nodes)
    # On the surface itself either answer is right.
    sure = np.abs(signed_distance(build_query(TriangleMesh(vertices, triangles)), nodes)) > 1e-7
    assert sure.mean() > 0.7
    assert np.array_equal(inside.ravel()[sure], (np.rint(winding) > 0)[sure])


def winding_numbers(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    a, b, c = (corners[None, :, i] - points[:, None] for i in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    triple = np.einsum("pti,pti->pt", a, np.cross(b, c))
    rest = la * lb * lc + (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
    return 2.0 * np.arctan2(triple, rest).sum(axis=1) / (4.0 * np.pi)


@pytest.mark.parametrize(
    "mesh", [icosphere(0.05, 5), torus(0.04, 0.015, 128, 64), rounded_slab()], ids=lambda m: m.name
)
def test_volume_converges_to_that_of_the_mesh(mesh: TriangleMesh) -> None:
    h = 0.00075
    error = abs(voxelise(mesh, h).volume / mesh.volume - 1.0)
    # At worst a layer of half a cell is missing or too much all over: area·h/2. On curved surfaces signs cancel to a
    # small part of it; a flat face keeps its own error, at most a quarter of a cell here.
    layer = mesh.area * h / 2.0 / mesh.volume
    assert error < (0.5 if mesh.name == "slab" else 0.05) * layer


@pytest.mark.parametrize("count", [1000, 10_000, 100_000])
@pytest.mark.parametrize("mesh", [icosphere(0.05, 4), torus(0.04, 0.01)], ids=lambda m: m.name)
def test_spacing_for_count(mesh: TriangleMesh, count: int) -> None:
    assert len(voxelise(mesh, spacing_for_count(mesh, count))) == pytest.approx(count, rel=0.03)


def test_millions_of_nodes_can_be_asked_for() -> None:
    mesh = icosphere(0.05, 4)
    assert len(voxelise(mesh, spacing_for_count(mesh, 2_000_000))) == pytest.approx(2_000_000, rel=0.02)


def test_cavities_are_empty_and_overlaps_are_full() -> None:
    outer, inner = icosphere(0.05, 3), icosphere(0.03, 3)
    vertices = np.concatenate([outer.vertices, inner.vertices])
    shift = len(outer.vertices)
    hollow = TriangleMesh(
        vertices, np.concatenate([outer.triangles, inner.triangles[:, ::-1] + shift]).astype(np.int32)
    )
    solid = TriangleMesh(vertices, np.concatenate([outer.triangles, inner.triangles + shift]).astype(np.int32))
    nodes = voxelise(hollow, 0.003).positions
    assert np.linalg.norm(nodes, axis=1).min() > 0.0295
    assert len(voxelise(solid, 0.003)) == len(voxelise(outer, 0.003))


def test_only_the_largest_part_is_kept_and_the_rest_counted() -> None:
    big, small = icosphere(0.05, 3), icosphere(0.01, 2, (0.1, 0.0, 0.0))
    both = TriangleMesh(
        np.concatenate([big.vertices, small.vertices]),
        np.concatenate([big.triangles, small.triangles + len(big.vertices)]).astype(np.int32),
    )
    voxels = voxelise(both, 0.004)
    assert voxels.dropped_parts == 1
    assert voxels.dropped == pytest.approx(small.volume / 0.004**3, rel=0.4)
    assert parts(voxels) == 1
    assert np.abs(voxels.positions).max() < 0.05
    assert voxels.nodes.min() == 0


@given(seed=st.integers(0, 2**31 - 1))
@settings(max_examples=25, deadline=None)
def test_parts_agree_with_flooding(seed: int) -> None:
    """Crumbs at random: what is kept is one part and the largest, what is dropped is the rest."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.01, 0.01, (14, 3))
    crumbs = [box(rng.uniform(0.001, 0.005, 3), centre=c) for c in centres]
    starts = np.cumsum([0, *(len(c.vertices) for c in crumbs)])
    triangles = np.concatenate([c.triangles + s for c, s in zip(crumbs, starts, strict=False)]).astype(np.int32)
    mesh = TriangleMesh(np.concatenate([c.vertices for c in crumbs]), triangles)
    voxels = voxelise(mesh, 0.001)
    assert parts(voxels) == 1
    everything = inside_grid(mesh, voxels.origin - 0.03, 0.001, (80, 80, 80))
    every = Voxels(np.argwhere(everything).astype(np.int32), voxels.origin, 0.001)
    assert len(every) == len(voxels) + voxels.dropped
    assert parts(every) == 1 + voxels.dropped_parts


def test_box_nodes_reach_the_faces() -> None:
    nodes = box_nodes((0.096, 0.096, 0.032), 0.004, (0.0, 0.0, 0.016))
    assert nodes.dims == (25, 25, 9)
    assert len(nodes) == 25 * 25 * 9
    assert nodes.positions.min(axis=0) == pytest.approx((-0.048, -0.048, 0.0))
    assert nodes.positions.max(axis=0) == pytest.approx((0.048, 0.048, 0.032))


def test_voxels_refuse_what_they_cannot_do() -> None:
    mesh = icosphere(0.05, 2)
    for spacing in (0.0, -0.1, math.nan, math.inf, 1e-7):
        with pytest.raises(InputError, match="spacing"):
            voxelise(mesh, spacing)
    for count in (0, -5, 10**12):
        with pytest.raises(InputError, match="count"):
            spacing_for_count(mesh, count)
    with pytest.raises(InputError, match="spacing"):
        box_nodes((0.1, 0.1, 0.1), 0.0)
    with pytest.raises(InputError, match="size"):
        box_nodes((0.1, 0.1, -0.1), 0.01)
    with pytest.raises(InputError, match="coarser"):
        box_nodes((0.1, 0.1, 0.1), 1e-5)


def test_an_open_mesh_is_refused_and_not_filled() -> None:
    mesh = icosphere(0.05, 2)
    with pytest.raises(MeshError, match="not a closed surface"):
        voxelise(TriangleMesh(mesh.vertices, mesh.triangles[40:]), 0.004)


def test_a_lattice_that_misses_the_body_is_refused() -> None:
    ring = torus(0.05, 0.001)
    with pytest.raises(MeshError, match="finer"):
        voxelise(ring, 0.1)


def test_a_body_as_thin_as_paper_gives_one_layer_and_a_thinner_one_is_refused_at_once() -> None:
    ball = icosphere(0.05, 2)
    paper, foil = (TriangleMesh(ball.vertices * (thin, 1.0, 1.0), ball.triangles, "foil") for thin in (1e-3, 1e-9))
    assert math.pi * (0.05 / spacing_for_count(paper, 500)) ** 2 == pytest.approx(500, rel=0.05)
    with pytest.raises(MeshError, match="foil is too thin for a lattice of 500 nodes"):
        spacing_for_count(foil, 500)
