"""Embedding: affine motions are reproduced exactly, everywhere, by kernels and by hand."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry import (
    Embedding,
    TriangleMesh,
    Voxels,
    box_nodes,
    embed,
    embed_surface,
    icosphere,
    rounded_slab,
    spacing_for_count,
    torus,
    voxelise,
)


def follow(embedding: Embedding, displacement: np.ndarray) -> np.ndarray:
    return np.einsum("vn,vna->va", embedding.weights.astype(np.float64), displacement[embedding.indices])


def affine_error(vertices: np.ndarray, voxels: Voxels, embedding: Embedding, seed: int = 0) -> float:
    """Largest error over the largest displacement, for a random affine field about the body's middle."""
    rng = np.random.default_rng(seed)
    matrix, shift, centre = rng.normal(size=(3, 3)), 0.1 * rng.normal(size=3), vertices.mean(axis=0)
    expected = (vertices - centre) @ matrix.T + shift
    found = follow(embedding, (voxels.positions - centre) @ matrix.T + shift)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


BODIES = [icosphere(0.05, 4), torus(0.04, 0.015), rounded_slab()]


@pytest.mark.parametrize("mesh", BODIES, ids=lambda m: m.name)
@pytest.mark.parametrize("count", [300, 3000, 30_000])
def test_affine_motion_is_reproduced(mesh: TriangleMesh, count: int) -> None:
    voxels = voxelise(mesh, spacing_for_count(mesh, count))
    embedding = embed(mesh.vertices, voxels.nodes, voxels.origin, voxels.spacing)
    assert embedding.indices.shape == embedding.weights.shape == (len(mesh.vertices), 8)
    assert embedding.indices.dtype == np.int32
    assert embedding.weights.dtype == np.float32
    assert embedding.inside + embedding.extrapolated + embedding.fitted == len(mesh.vertices)
    # Eight float32 weights of size up to three.
    assert affine_error(mesh.vertices, voxels, embedding) < 1e-6
    assert np.abs(embedding.weights.sum(axis=1) - 1.0).max() < 1e-6


def test_the_block_lies_wholly_within_its_lattice() -> None:
    mesh = rounded_slab()
    voxels = box_nodes(mesh.size, 0.004)
    embedding = embed(mesh.vertices, voxels.nodes, voxels.origin, voxels.spacing)
    assert embedding.fitted == 0
    assert embedding.weights.min() > -1e-6
    assert affine_error(mesh.vertices, voxels, embedding) < 1e-6


def test_inside_a_cell_the_weights_are_trilinear() -> None:
    voxels = box_nodes((0.03, 0.03, 0.03), 0.01)
    points = np.random.default_rng(1).uniform(-0.015, 0.015, (500, 3))
    embedding = embed(points, voxels.nodes, voxels.origin, voxels.spacing)
    # x·y·z is trilinear in every cell, and no affine fit would give it.
    values = voxels.positions.prod(axis=1)
    found = (embedding.weights * values[embedding.indices]).sum(axis=1)
    low = np.floor((points - voxels.origin) / 0.01).astype(int)
    f = (points - voxels.origin) / 0.01 - low
    corner = voxels.origin + 0.01 * low
    assert found == pytest.approx((corner + 0.01 * f).prod(axis=1), abs=1e-12)
    assert embedding.inside == 500


def test_weights_do_not_jump_at_the_lattices_border() -> None:
    voxels = box_nodes((0.03, 0.03, 0.03), 0.01)
    inside, outside = (
        embed([[0.015 + step, 0.004, -0.002]], voxels.nodes, voxels.origin, voxels.spacing) for step in (-1e-9, 1e-9)
    )
    bump = np.sin(300.0 * voxels.positions)
    assert follow(inside, bump) == pytest.approx(follow(outside, bump), abs=1e-6)


def test_far_vertices_follow_rigidly() -> None:
    """Ten cells off, as on a part that the lattice missed: still exact, so the piece moves along."""
    voxels = box_nodes((0.03, 0.03, 0.03), 0.01)
    points = np.array([[0.2, 0.0, 0.0], [-0.1, 0.1, 0.3]])
    embedding = embed(points, voxels.nodes, voxels.origin, voxels.spacing)
    assert affine_error(points, voxels, embedding) < 1e-5


def line(count: int, axes: int) -> np.ndarray:
    grid = np.indices((count,) * axes).reshape(axes, -1).T
    return np.pad(grid, ((0, 0), (0, 3 - axes))).astype(np.int32)


@pytest.mark.parametrize("axes", [0, 1, 2])
def test_thin_lattices_keep_translations_and_motion_along_them(axes: int) -> None:
    nodes = line(6, axes) if axes else np.zeros((1, 3), dtype=np.int32)
    voxels = Voxels(nodes, np.array((0.5, 0.0, 0.0)), 0.01)
    points = voxels.positions.mean(axis=0) + 0.01 * np.random.default_rng(0).uniform(-2.5, 2.5, (200, 3))
    embedding = embed(points, voxels.nodes, voxels.origin, voxels.spacing)
    assert embedding.fitted == 200
    assert np.abs(embedding.weights.sum(axis=1) - 1.0).max() < 1e-6
    for axis in range(axes):
        found = (embedding.weights * voxels.positions[embedding.indices, axis]).sum(axis=1)
        assert found == pytest.approx(points[:, axis], abs=1e-6)


def test_a_sheet_with_a_knob_takes_the_affine_fit() -> None:
    """Nodes that span space without a complete cell among them."""
    nodes = np.concatenate([line(4, 2), [[1, 1, 1], [2, 2, 1]]]).astype(np.int32)
    voxels = Voxels(nodes, np.zeros(3), 0.01)
    points = 0.01 * np.array([[1.5, 1.4, 0.4], [1.2, 1.6, -0.3]])
    embedding = embed(points, voxels.nodes, voxels.origin, voxels.spacing)
    assert embedding.fitted == 2
    assert affine_error(points, voxels, embedding) < 1e-6


def test_order_of_nodes_does_not_matter() -> None:
    mesh = icosphere(0.05, 2)
    voxels = voxelise(mesh, 0.01)
    shuffle = np.random.default_rng(0).permutation(len(voxels))
    plain = embed(mesh.vertices, voxels.nodes, voxels.origin, voxels.spacing)
    mixed = embed(mesh.vertices, voxels.nodes[shuffle], voxels.origin, voxels.spacing)
    assert np.array_equal(shuffle[mixed.indices], plain.indices)
    assert np.array_equal(mixed.weights, plain.weights)


def test_the_kernel_gives_what_the_sum_gives(device: Device) -> None:
    mesh = icosphere(0.05, 4)
    voxels = voxelise(mesh, 0.005)
    embedding = embed(mesh.vertices, voxels.nodes, voxels.origin, voxels.spacing)
    displacement = 0.01 * np.sin(40.0 * voxels.positions).astype(np.float32)
    rest = wp.array(mesh.vertices, dtype=wp.vec3, device=device.warp)
    indices = wp.array(embedding.indices, dtype=wp.int32, device=device.warp)
    weights = wp.array(embedding.weights, dtype=wp.float32, device=device.warp)
    parts = [wp.array(displacement[:, a].copy(), dtype=wp.float32, device=device.warp) for a in range(3)]
    out = wp.zeros(len(mesh.vertices), dtype=wp.vec3, device=device.warp)
    program = device.record(lambda stage: stage.launch(embed_surface, len(out), [rest, indices, weights, *parts, out]))
    program.run()
    expected = mesh.vertices + follow(embedding, displacement)
    assert np.abs(out.numpy() - expected).max() < 2e-8
    for part in parts:
        part.zero_()
    program.run()
    assert np.array_equal(out.numpy(), rest.numpy())


def test_the_example_ends_in_its_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "02_organ_to_lattice.py"
    monkeypatch.setattr("sys.argv", [str(path), "--masses", "1000"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.endswith("ok\n")


def test_bad_input_is_refused() -> None:
    nodes = line(3, 3)
    with pytest.raises(InputError, match="vertices"):
        embed(np.full((1, 3), np.nan), nodes, (0.0,) * 3, 0.01)
    with pytest.raises(InputError, match="at least one"):
        embed(np.zeros((1, 3)), np.zeros((0, 3)), (0.0,) * 3, 0.01)
    with pytest.raises(InputError, match="spacing"):
        embed(np.zeros((1, 3)), nodes, (0.0,) * 3, 0.0)
    with pytest.raises(InputError, match="twice"):
        embed(np.zeros((1, 3)), np.concatenate([nodes, nodes[:1]]), (0.0,) * 3, 0.01)
