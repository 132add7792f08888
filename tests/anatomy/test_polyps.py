"""Polyps that a seed hides in a colon."""

from __future__ import annotations

import numpy as np
import pytest

from viscera.anatomy.colon import centreline_of, colon
from viscera.anatomy.polyps import HEIGHT, with_polyps
from viscera.geometry.inspect import require_closed


def test_polyps_are_domes_on_the_wall_of_a_closed_colon() -> None:
    """The lumen loses what domes have: π b² h/3 each on a flat wall. Feet stand on curved walls and in haustra."""
    plain = colon(4)
    line = centreline_of(plain, 4)
    mesh, polyps = with_polyps(plain, line, 4)
    require_closed(mesh)
    domes = np.pi * polyps.foot**2 * HEIGHT * polyps.foot / 3.0
    assert plain.volume - mesh.volume == pytest.approx(domes.sum(), rel=0.25)
    for middle, foot in zip(polyps.middle, polyps.foot, strict=True):
        away = np.linalg.norm(plain.vertices - middle, axis=1)
        assert away.min() < foot, "it stands on the wall"
        assert np.linalg.norm(line.points - middle, axis=1).min() < line.radii.max()
    apart = np.linalg.norm(polyps.middle[:, None] - polyps.middle[None], axis=2)
    assert apart[np.triu_indices(3, 1)].min() > 0.05


def test_each_seed_hides_them_elsewhere() -> None:
    plain = colon(1)
    line = centreline_of(plain, 1)
    first, again, other = (with_polyps(plain, line, seed)[1].middle for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert np.linalg.norm(first - other, axis=1).min() > 0.005
