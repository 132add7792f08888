"""From an action to a tool: the trocar's angles, the workspace, the activation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from viscera.errors import InputError
from viscera.instruments.trocar import turned
from viscera.learning.arm import Arm, Control, Limits, Space

TROCAR = (0.01, -0.02, 0.3)
SPACE = Space((-0.1, -0.1, 0.0), (0.1, 0.1, 0.2))


def arm(control: Control = "trocar", activates: bool = True) -> Arm:
    made = Arm(0, control, Limits(), SPACE, TROCAR, 0.36, activates)
    made.place(np.array([0.01, -0.02, 0.1]))
    return made


def test_pan_tilt_and_depth_are_those_of_the_tip() -> None:
    """The tip is at trocar + depth · (sin pan cos tilt, sin tilt, −cos pan cos tilt), whatever was done before."""
    rng = np.random.default_rng(0)
    one = arm()
    for _ in range(50):
        one.move(rng.uniform(-1.0, 1.0, 5), 0.016)
        pan, tilt, _, depth = one.pose
        way = np.array([math.sin(pan) * math.cos(tilt), math.sin(tilt), -math.cos(pan) * math.cos(tilt)])
        np.testing.assert_allclose(one.tip, np.asarray(TROCAR) + depth * way, atol=1e-12)


def test_an_action_of_one_moves_by_the_stated_limits() -> None:
    one = arm()
    before = one.pose
    one.move(np.array([1.0, 0.0, 1.0, 0.0, 0.0]), 0.01)
    pan, tilt, spin, depth = one.pose
    assert pan - before[0] == pytest.approx(0.01 * Limits().pan, rel=1e-9)
    assert spin == pytest.approx(0.01 * Limits().spin)
    assert (tilt, depth) == pytest.approx((before[1], before[3]))
    one.move(np.array([0.0, 0.0, 0.0, 1.0, 0.0]), 0.01)
    assert one.pose[3] - depth == pytest.approx(0.01 * Limits().depth, rel=1e-9)
    free = arm("cartesian")
    free.move(np.array([1.0, -1.0, 0.5, 0.0, 0.0]), 0.01)
    np.testing.assert_allclose(free.tip - (0.01, -0.02, 0.1), 0.01 * Limits().speed * np.array([1.0, -1.0, 0.5]))


def test_the_shaft_runs_from_the_tip_to_the_trocar() -> None:
    one = arm()
    one.move(np.array([1.0, -1.0, 1.0, -1.0, 0.0]), 0.1)
    given = one.input()
    shaft = turned(np.asarray(given.orientation), (0.0, 0.0, 1.0))
    np.testing.assert_allclose(np.cross(shaft, np.asarray(TROCAR) - given.position), 0.0, atol=1e-12)


def test_the_tip_stays_in_the_workspace_and_longer_actions_are_clipped() -> None:
    one = arm("cartesian")
    for _ in range(200):
        one.move(np.array([9.0, -9.0, 9.0, 0.0, 0.0]), 0.016)
    np.testing.assert_allclose(one.tip, [0.1, -0.1, 0.2])
    np.testing.assert_allclose(one.state()[4:7], [1.0, -1.0, 1.0])


def test_within_the_dead_zone_the_handle_stays_as_it_is() -> None:
    one, zone = arm(), Limits().dead_zone
    told = [0.9, 0.9 * zone, -0.9 * zone, -1.1 * zone, 0.0, 1.1 * zone]
    found = []
    for value in told:
        one.move(np.array([0.0, 0.0, 0.0, 0.0, value]), 0.01)
        found.append(one.input().grip)
    assert found == [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]


def test_an_unknown_control_is_refused() -> None:
    with pytest.raises(InputError, match="trocar, cartesian"):
        arm("polar")  # pyright: ignore[reportArgumentType]
