"""What a liquid presses with on places of its wall."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from viscera import water
from viscera.device import Device
from viscera.water import FluidParams
from viscera.water.boundary.wall_pressure import step_pressure, wet_weight

GRAVITY = 9.81


def test_liquid_at_rest_presses_with_its_depth_and_dry_walls_feel_nothing(device: Device) -> None:
    """A tank of 8 × 10 × 8 particles whose pressures are those of rest: at the wall they are ρ g h to rounding, at its
    rim within what a layer weighs, and 0 where no water is. The same as sums over all particles in float64."""
    s = 0.01
    params = FluidParams(s, (0.0,) * 3, (0.08, 0.12, 0.08), dt=1e-4, gravity=(0.0, -GRAVITY, 0.0))
    pond = water.make(params, water.block((0.0,) * 3, (0.08, 0.1, 0.08), s), device=device)
    device.record(lambda stage: water.step(stage, pond)).run()
    device.synchronize()
    x = pond.grid.position.numpy()[: water.count(pond)].astype(np.float64)
    pressure = 1000.0 * GRAVITY * (0.1 - x[:, 1])
    whole = pond.pressure.numpy()
    whole[: len(x)] = pressure
    pond.pressure.assign(whole)
    depths = np.array([0.02, 0.05, 0.085, 0.3])
    places = np.stack([np.zeros(4), 0.1 - depths, np.full(4, 0.04)], axis=1)
    places[3] = (0.0, 0.119, 0.04)
    place = wp.array(places.astype(np.float32), dtype=wp.vec3, device=device.warp)
    found = wp.zeros(4, dtype=float, device=device.warp)
    device.record(lambda stage: step_pressure(stage, pond, place, found)).run()
    device.synchronize()
    truth = []
    for here in places:
        q2 = ((here - x) ** 2).sum(axis=1) / params.radius**2
        w = np.maximum(1.0 - q2, 0.0) ** 2
        own = np.maximum(pressure + 1000.0 * GRAVITY * (x - here)[:, 1], 0.0)
        truth.append(float((w * own).sum() / max(w.sum(), wet_weight(params.radius, s))))
    assert found.numpy() == pytest.approx(truth, abs=0.1)
    assert found.numpy()[:3] == pytest.approx(1000.0 * GRAVITY * depths[:3], rel=1e-3)
    assert found.numpy()[3] == 0.0
    half = wp.zeros(4, dtype=float, device=device.warp)
    device.record(lambda stage: step_pressure(stage, pond, place, half, keeps=0.75)).run()
    device.synchronize()
    assert half.numpy() == pytest.approx(0.25 * found.numpy(), rel=1e-5)
