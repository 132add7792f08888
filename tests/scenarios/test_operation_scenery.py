"""What lies around the operation's field."""

from __future__ import annotations

import numpy as np

from viscera.scenarios.cholecystectomy.patient import HALF_WIDTH, LIVER_TOP
from viscera.scenarios.cholecystectomy.scenery import _lobe

SLOPE = 4.0
"""[degrees]: what differs by more shows as a line in the light of a lamp beside the lens."""


def test_the_lobe_goes_under_the_field_so_level_that_no_line_is_seen() -> None:
    rings = _lobe()
    inside = (np.abs(rings[..., 0]) < 0.045) & (np.abs(rings[..., 1]) < HALF_WIDTH)
    low, high = np.minimum(rings[:-1, :, 2], rings[1:, :, 2]), np.maximum(rings[:-1, :, 2], rings[1:, :, 2])
    goes_under = (low < LIVER_TOP) & (high >= LIVER_TOP) & inside[:-1] & inside[1:]
    assert goes_under.any(axis=0).all()
    way = np.linalg.norm(np.diff(rings[..., :2], axis=0), axis=-1)
    assert np.degrees(np.arctan2(high - low, way))[goes_under].max() < SLOPE
