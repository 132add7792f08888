"""Clips and staples: they hold two edges up to their stated force, and slip beyond it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sewing_strip import TOP, Strip, make_strip

from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.tissue.clamping import CLAMPS, add_clamp, clamped, let_clamp, need_clamps

HOLD = 0.3
"""[N]"""


@pytest.fixture(scope="module")
def one_core() -> Iterator[Device]:
    device = open_device("cpu", 1)
    yield device
    device.close()


def stapled(device: Device, hold: float) -> Strip:
    """A strip in two halves, with a staple from 4 mm left of the slit to 4 mm right of it."""
    strip = make_strip(device)
    let_clamp(strip.tissue)
    rest = strip.tissue.need_touching().samples.rest.numpy() + np.asarray(strip.tissue.params.origin)
    legs = [int(np.linalg.norm(rest - (x, 0.0, TOP), axis=1).argmin()) for x in (-0.00275, 0.00525)]
    assert add_clamp(strip.tissue, (legs[0], legs[1]), closed=0.008, hold=hold)
    return strip


def force(strip: Strip) -> float:
    return float(need_clamps(strip.tissue).threads.tension.numpy()[0])


def test_a_staple_holds_to_its_stated_force_and_slips_beyond_it(one_core: Device) -> None:
    strip = stapled(one_core, HOLD)
    felt, tick = [0.0], 0
    for tick in range(600):
        strip.tissue.set_drive(6e-6 * tick, 6e-6 * (tick + 1))
        strip.tissue.step()
        if not clamped(strip.tissue)[0]:
            break
        felt.append(force(strip))
        # Held, the edges stay together: what gives way is tissue between leg and edge.
        assert strip.gap() < 0.001
    assert not clamped(strip.tissue).any()
    # It was drawn on slowly, and slips within the tick that passes its force.
    assert max(felt) == pytest.approx(HOLD, rel=0.03)
    apart = 6e-6 * (tick + 1)
    strip.tissue.set_drive(apart, apart)
    for _ in range(100):
        strip.tissue.step()
    # Nothing joins the halves any more: the gap is as wide as the ends are apart.
    assert strip.gap() == pytest.approx(apart, rel=0.1)


@pytest.mark.slow
def test_below_its_force_a_staple_stays(one_core: Device) -> None:
    strip = stapled(one_core, 5.0)
    for tick in range(300):
        strip.tissue.set_drive(6e-6 * tick, 6e-6 * (tick + 1))
        strip.tissue.step()
    strip.tissue.set_drive(0.0018, 0.0018)
    for _ in range(200):
        strip.tissue.step()
    before = force(strip)
    assert before > 0.15
    for _ in range(100):
        strip.tissue.step()
    assert clamped(strip.tissue)[0]
    assert force(strip) == pytest.approx(before, rel=0.01)
    assert np.abs(strip.tissue.velocities()).max() < 1e-3


def test_more_clips_than_there_is_room_for_are_refused(one_core: Device) -> None:
    strip = stapled(one_core, HOLD)
    for _ in range(CLAMPS - 1):
        assert add_clamp(strip.tissue, (0, 1), closed=0.01, hold=1.0)
    assert not add_clamp(strip.tissue, (0, 1), closed=0.01, hold=1.0)
    assert clamped(strip.tissue).sum() == CLAMPS


def test_a_clip_without_two_ends_is_refused(one_core: Device) -> None:
    with pytest.raises(InputError, match="Give two points"):
        add_clamp(stapled(one_core, HOLD).tissue, (3, 3), closed=0.01, hold=1.0)
