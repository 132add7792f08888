"""A lens warms as Newton says, fogs while it is colder than the dew point, clears when it is warmer, and is wiped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from viscera.view import Camera
from viscera.world.systems.scope import BATH, DEW, GAS, TABLE, WARMS, Scope, through_trocar


def test_a_lens_warms_by_the_closed_form() -> None:
    lens = Scope()
    for _ in range(1000):
        lens.advance(0.016)
    assert lens.state[0] == pytest.approx(GAS + (TABLE - GAS) * math.exp(-16.0 / WARMS), rel=1e-12)


def test_a_cold_lens_fogs_and_a_wiped_one_stays_clear() -> None:
    lens = Scope()
    for _ in range(1000):
        lens.advance(0.016)
    assert lens.state[0] < DEW
    fogged = float(lens.state[1])
    assert 0.2 < fogged < 1.0
    lens.wipe(0.0)  # not a change
    assert lens.state[1] == fogged
    lens.wipe(1.0)
    assert lens.state.tolist() == [BATH, 0.0, 1.0]
    for _ in range(4000):
        lens.advance(0.016)
    assert lens.state[1] == 0.0
    assert lens.state[0] > DEW


def test_fog_goes_from_a_lens_that_is_warm() -> None:
    lens = Scope()
    lens.state[:2] = GAS, 0.5
    # Constant temperature: f falls with the rate k (T − T_dew).
    before = lens.state[1]
    lens.advance(1.0)
    assert lens.state[1] == pytest.approx(before * (1.0 - 0.008 * (GAS - DEW)))


def test_a_scope_through_a_trocar_has_the_first_view_with_its_lens_30_degrees_aside() -> None:
    camera = Camera((0.02, -0.14, 0.16), (0.0, 0.01, 0.016), (0.0, 0.0, 1.0), 40.0)
    found = through_trocar(camera, 0.28)
    assert (found.position, found.target) == (camera.position, camera.target)
    eye, target, trocar = (np.array(one) for one in (camera.position, camera.target, found.trocar))
    shaft, view = eye - trocar, target - eye
    assert np.linalg.norm(trocar - target) == pytest.approx(0.28)
    cosine = shaft @ view / (np.linalg.norm(shaft) * np.linalg.norm(view))
    assert np.degrees(np.arccos(cosine)) == pytest.approx(30.0)
    assert trocar[2] > eye[2]
