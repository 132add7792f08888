"""A colon by rule: closed or open at its ends, without faults, as large as real ones, no two alike."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from viscera.anatomy.colon import COURSE, TIGHTEST, centreline, colon, natural_spline
from viscera.errors import InputError, MeshError
from viscera.geometry import TriangleMesh, inspect_mesh, load_mesh, require_closed

SEEDS: list[int | None] = [None, 0, 3, 11]


@cache
def made(seed: int | None) -> TriangleMesh:
    return colon(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_closed_without_any_fault(seed: int | None) -> None:
    report = inspect_mesh(made(seed))
    assert report.faults == []
    assert report.components == 1
    assert report.intersecting_pairs == 0
    assert len(made(seed).triangles) == 8040
    assert np.array_equal(require_closed(made(seed)).triangles, made(seed).triangles)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_has_the_size_of_a_colon(seed: int | None) -> None:
    """Gray: about 1.5 m long, 3 to 7 cm wide; air-filled ones hold one to three litres."""
    mesh = made(seed)
    assert 0.30 < mesh.extent < 0.60
    assert 0.8e-3 < mesh.volume < 3e-3
    assert 0.10 < mesh.area < 0.30


@pytest.mark.parametrize("triangles", [500 - 20, 8040, 40_000])
def test_it_has_exactly_as_many_triangles_as_asked(triangles: int) -> None:
    assert len(colon(2, triangles).triangles) == triangles
    assert len(colon(2, triangles, closed=False).triangles) == triangles


def test_finer_ones_are_the_same_organ() -> None:
    """Volume within 1 % and area within 3 % from 4 000 triangles (which blunt the folds) to 64 000."""
    coarse, middle, fine = (colon(4, n) for n in (4000, 16_000, 64_000))
    assert coarse.volume == pytest.approx(fine.volume, rel=0.01)
    assert coarse.area == pytest.approx(fine.area, rel=0.03)
    assert middle.volume == pytest.approx(fine.volume, rel=0.01)
    assert middle.area == pytest.approx(fine.area, rel=0.01)


def test_no_two_are_alike_and_each_is_always_the_same() -> None:
    shapes = [made(seed).vertices for seed in SEEDS]
    for i in range(len(shapes)):
        for j in range(i):
            assert np.linalg.norm(shapes[i] - shapes[j], axis=1).mean() > 0.005
    np.testing.assert_array_equal(colon(3).vertices, made(3).vertices)


def test_an_open_one_has_two_holes_and_says_where() -> None:
    mesh = colon(1, closed=False)
    report = inspect_mesh(mesh, intersections=False)
    assert len(report.holes) == 2
    ends = centreline(COURSE, 3).points[[0, -1]]
    for hole in report.holes:
        assert min(np.linalg.norm(hole.centre - end) for end in ends) < 0.06
    with pytest.raises(MeshError, match="2 holes"):
        require_closed(mesh)


def test_the_spline_goes_through_its_points_and_bends_smoothly() -> None:
    """Natural: through all values, first and second derivatives continuous at the knots, no second one at the ends."""
    rng = np.random.default_rng(3)
    knots = np.cumsum(rng.uniform(0.5, 1.5, 7))
    values = rng.normal(size=(7, 2))
    np.testing.assert_allclose(natural_spline(knots, values, knots), values, atol=1e-12)
    step = 1e-6
    for order in (1, 2):
        left, right = (natural_spline(knots, values, knots[1:-1] + side, order) for side in (-1e-9, 1e-9))
        np.testing.assert_allclose(left, right, atol=1e-6)
    np.testing.assert_allclose(natural_spline(knots, values, knots[[0, -1]], 2), 0.0, atol=1e-12)
    at = rng.uniform(knots[0], knots[-1], 50)
    slope = (natural_spline(knots, values, at + step) - natural_spline(knots, values, at - step)) / (2 * step)
    np.testing.assert_allclose(natural_spline(knots, values, at, 1), slope, atol=1e-6)


def test_frames_turn_with_the_curve_and_not_about_it() -> None:
    """On a circle the minimal frame keeps its angle to the plane; on a helix it turns by −∫ torsion against Frenet's.

    Helix of radius a and pitch 2πb: torsion is b/(a² + b²). Double reflection errs by the fourth power of the step.
    """
    a, b, turns = 0.05, 0.02, 2.0
    phi = np.linspace(0.0, 2 * np.pi * turns, 400)
    control = np.stack([a * np.cos(phi), a * np.sin(phi), b * phi, 0 * phi + 0.005], axis=1)
    line = centreline(control, 800)
    np.testing.assert_allclose(np.linalg.norm(line.across, axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(np.einsum("ij,ij->i", line.across, line.tangents), 0.0, atol=1e-9)
    inner = slice(40, -40)
    centre = np.stack([-np.cos(line.points[:, 2] / b), -np.sin(line.points[:, 2] / b), 0 * line.lengths], axis=1)
    other = np.cross(line.tangents, centre)
    angle = np.unwrap(np.arctan2(np.einsum("ij,ij->i", line.across, other), np.einsum("ij,ij->i", line.across, centre)))
    rate = np.gradient(angle, line.lengths)[inner]
    np.testing.assert_allclose(rate, -b / (a * a + b * b), rtol=0.01)


def test_no_bend_is_too_tight_for_its_radius() -> None:
    bend = [[0.0, 0.0], [0.05, 0.0], [0.06, 0.02], [0.02, 0.04], [-0.05, 0.06]]
    line = centreline([[x, y, 0.0, 0.02] for x, y in bend], 300)
    turned = np.linalg.norm(np.diff(line.tangents, axis=0), axis=1) / np.diff(line.lengths)
    assert (turned * line.radii[1:]).max() < 1.1 * TIGHTEST
    assert line.radii.min() < 0.015


def test_the_real_one_is_of_its_kind() -> None:
    """As in test_geometry_organs.py: `VISCERA_ANATOMY` names a folder with colon.stl. That one is nearly empty (0.5 L),
    ours is filled for a study (1.6 L)."""
    path = Path(os.environ.get("VISCERA_ANATOMY", "")) / "colon.stl"
    if not path.is_file():
        pytest.skip("VISCERA_ANATOMY is not set, or has no colon.stl")
    real, ours = load_mesh(path), made(None)
    assert 1.0 < ours.volume / real.volume < 5.0
    assert ours.extent == pytest.approx(real.extent, rel=0.8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"triangles": 8041}, "triangles = 8041"),
        ({"triangles": 20}, "triangles = 20"),
        ({"triangles": 2 * 104_729}, "triangles ="),
        ({"control": [[0, 0, 0, 1]]}, "control"),
        ({"control": [[0, 0, 0, 1], [1, 0, 0, 1], [2, 0, 0, -1], [3, 0, 0, 1]]}, "not possible"),
        ({"control": [[0, 0, 0, 1], [0, 0, 0, 1], [2, 0, 0, 1], [3, 0, 0, 1]]}, "one place"),
    ],
)
def test_impossible_colons_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        colon(**arguments)
