"""Finer triangles in some places, and meshes cut along a line."""

from __future__ import annotations

import numpy as np
import pytest

from viscera.geometry.inspect import require_closed
from viscera.geometry.primitives import icosphere
from viscera.geometry.refine import part_below, refined


def test_refining_keeps_the_surface_and_shortens_edges_where_it_is_asked() -> None:
    ball = icosphere(0.05, 2)
    fine = refined(ball, lambda places: places[:, 2] > 0.02, 0.004)
    require_closed(fine)
    assert fine.area == pytest.approx(ball.area, rel=1e-12)
    assert fine.volume == pytest.approx(ball.volume, rel=1e-12)
    lengths = np.linalg.norm(np.roll(fine.corners, -1, axis=1) - fine.corners, axis=2)
    middle = 0.5 * (np.roll(fine.corners, -1, axis=1) + fine.corners)
    assert lengths[middle[..., 2] > 0.02].max() <= 0.004
    far = fine.corners[(fine.corners[..., 2] < -0.01).all(axis=1)]
    assert len(far) == (ball.corners[..., 2] < -0.01).all(axis=1).sum(), "elsewhere it stays"


@pytest.mark.parametrize("height", [0.0, 0.0123])
def test_a_mesh_is_cut_along_the_line_and_not_along_its_edges(height: float) -> None:
    """A ball cut at a height: every place of the rim lies at that height, and its area is that of a cap."""
    ball = icosphere(0.05, 4)
    part = part_below(ball, ball.vertices[:, 2] - height)
    edges = np.sort(np.stack([part.triangles, np.roll(part.triangles, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    ends, times = np.unique(edges, axis=0, return_counts=True)
    rim = part.vertices[ends[times == 1]]
    assert len(rim) > 20
    assert rim[..., 2] == pytest.approx(height, abs=1e-12)
    assert part.area == pytest.approx(2.0 * np.pi * 0.05 * (0.05 + height), rel=0.005)
    assert (np.einsum("ij,ij->i", part.face_vectors, part.corners.mean(axis=1)) >= 0.0).all(), "it faces as before"
