"""The loops in C over groups of particles: also where more lie around a cell than one list of blocks holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from viscera.device import Device
from viscera.water.native import GROUP
from viscera.water.params import FluidParams
from viscera.water.sph import find_density, find_forces, find_pressure, sort
from viscera.water.state import make_fluid

SPACING = 0.01


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("viscosity", [{"viscosity": 1.0}, {"alpha": 0.1, "beta": 0.1}], ids=["laminar", "monaghan"])
def test_a_crowd_is_summed_to_the_last(cpu: Device, dimension: int, viscosity: dict[str, Any]) -> None:
    """1 500 in one cell are 94 blocks of 16, the list holds 64; beside them a few, alone or in groups that end amid."""
    rng = np.random.default_rng(4)
    crowd = 0.02 + 0.012 * rng.random((1500, 3))
    few = 0.1 * rng.random((7 * GROUP + 5, 3))
    x = np.concatenate([few, crowd]).astype(np.float32)
    if dimension == 2:
        x[:, 2] = 0.0
    v = rng.normal(size=x.shape).astype(np.float32) * (1.0 if dimension == 3 else np.array([1.0, 1.0, 0.0], np.float32))
    lower, upper = (0.0,) * dimension, (0.1,) * dimension
    found = []
    for native in (False, True):
        params = FluidParams(
            spacing=SPACING, lower=lower, upper=upper, dt=1e-5, dimension=dimension, sound_speed=5.0, **viscosity
        )
        fluid = make_fluid(params, x[:, :dimension], cpu, velocities=v[:, :dimension], native=native)
        for step in (sort, find_density, find_pressure, find_forces):
            cpu.record(lambda stage, f=fluid, s=step: s(stage, f)).run()
        found.append((fluid.density.numpy()[: len(x)].copy(), fluid.rate.numpy()[: len(x)].copy()))
    (density, rate), (density_c, rate_c) = found
    assert density.max() > 50 * density.min()
    np.testing.assert_allclose(density_c, density, rtol=2e-5)
    assert np.abs(rate_c - rate).max() < 1e-4 * np.abs(rate).max()
