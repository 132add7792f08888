"""Flows on a grid against what is known of real ones, at full size."""

from __future__ import annotations

import pytest

from verify.grid_cases import STROUHAL, laminar_plume, vortex_street
from viscera.device import Device


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_vortices_leave_a_cylinder_at_their_beat(device: Device) -> None:
    """Re 100, 16 cells across, a blockage of 5 %: the Strouhal number within 10 %, and the beat is steady."""
    street = vortex_street(device)
    assert street.strouhal == pytest.approx(STROUHAL, rel=0.1)
    assert abs(street.beats[-400:]).max() > 0.1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_plume_rises_as_its_closed_form_says(device: Device) -> None:
    """At Pr 1 the speed on the axis is √(B/2πν) at any height, and half of it at 2.23 √(νz/w): within 20 %, as the form
    is that of a thin boundary layer."""
    plume = laminar_plume(device)
    assert plume.axis == pytest.approx(1.0, rel=0.2)
    assert plume.width == pytest.approx(1.0, rel=0.2)
