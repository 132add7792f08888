"""What a hand gets back of its work, against forces that give more than they took."""

from __future__ import annotations

import numpy as np
import pytest

from viscera.instruments import Tool
from viscera.instruments.kit import probe
from viscera.world.passive import LAST, Passive

STEP = 1.0e-5
"""Of the hand in a tick [m]."""


def _stroke(press: float, lift: float, *, holds: bool = False) -> tuple[float, float, list[float]]:
    """A spring of `press` N/m that is pressed 4 mm and pushes back with `lift` N/m: work put in, given
    back [J], and the shares that were felt while it was lifted."""
    tool, passive = Tool(0, probe(4.0e-3)), Passive()
    put = back = 0.0
    shares, depth = [], 0.0
    for tick in range(800):
        down = tick < 400
        before, depth = depth, depth + (STEP if down else -STEP)
        tool.tips[:, 2] = -before, -depth
        force = (0.0, 0.0, (press if down else lift) * max(depth, 0.0))
        share = passive.share(tool, force, (0.0, 0.0, 0.0), holds=holds)
        work = share * force[2] * (depth - before)
        put, back = put + max(work, 0.0), back + max(-work, 0.0)
        if not down:
            shares.append(share)
    return put, back, shares


def test_a_spring_that_gives_less_is_felt_as_it_is() -> None:
    put, back, shares = _stroke(100.0, 100.0 * (1.0 - 1.1 * LAST))
    assert set(shares) == {1.0}
    assert back == pytest.approx((1.0 - 1.1 * LAST) * put, rel=0.01)


@pytest.mark.parametrize("lift", [100.0, 120.0, 300.0])
def test_no_more_is_given_back_than_was_put_in_and_without_a_step(lift: float) -> None:
    put, back, shares = _stroke(100.0, lift)
    assert (1.0 - LAST) * put < back <= put
    assert np.abs(np.diff(shares[:-1])).max() < 0.10  # in the last tick nothing is felt
    assert shares[0] == 1.0


def test_jaws_that_hold_are_drawn_by_what_they_hold() -> None:
    put, back, shares = _stroke(100.0, 300.0, holds=True)
    assert set(shares) == {1.0}
    assert back > 2.9 * put


def test_turning_is_work_too() -> None:
    tool, passive = Tool(0, probe(4.0e-3)), Passive()
    felt, turned = 0.0, 0.0
    for tick in range(1, 201):
        turned += 1.0e-3 if tick <= 100 else -1.0e-3
        tool.orientation[:] = 0.0, 0.0, np.sin(turned / 2.0), np.cos(turned / 2.0)
        torque = (0.0, 0.0, -(1.0 if tick <= 100 else 3.0) * turned)
        felt += passive.share(tool, (0.0, 0.0, 0.0), torque, holds=False) * torque[2] * (1e-3 if tick <= 100 else -1e-3)
    assert -1.0e-3 < felt <= 1.0e-9  # put in less given back, as the hand sees it


def test_a_contact_that_ended_is_forgotten() -> None:
    tool, passive = Tool(0, probe(4.0e-3)), Passive()
    tool.tips[:, 2] = 0.0, -STEP
    passive.share(tool, (0.0, 0.0, 0.5), (0.0, 0.0, 0.0), holds=False)
    assert passive.state[0] > 0.0
    passive.share(tool, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), holds=False)
    assert not passive.state[:2].any()
