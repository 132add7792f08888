"""The fluid against the slow reference, and what it must keep."""

from __future__ import annotations

import numpy as np
import pytest
import sph_reference as reference

from viscera.device import Device
from viscera.errors import InputError
from viscera.water.params import FluidParams, largest_step
from viscera.water.sph import step_fluid
from viscera.water.state import Fluid, arrays, load, make_fluid, particles, set_params
from viscera.water.walls import block

SPACING = 0.01


def box_params(**more) -> FluidParams:
    options = {"spacing": SPACING, "lower": (0.0, 0.0, 0.0), "upper": (0.1, 0.1, 0.1), "dt": 1.5e-4} | more
    return FluidParams(**options)


def stirred(dimension: int, seed: int = 1, side: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """A block of fluid with disorder, and velocities of some dm/s."""
    random = np.random.default_rng(seed)
    x = block((0.02,) * dimension, (0.02 + side * SPACING,) * dimension, SPACING)
    return x + 0.1 * SPACING * random.normal(size=x.shape), 0.3 * random.normal(size=x.shape)


def run(fluid: Fluid, steps: int) -> None:
    program = fluid.device.record(lambda stage: step_fluid(stage, fluid), work=fluid.capacity * 100)
    for _ in range(steps):
        program.run()
    fluid.device.synchronize()


CASES = {
    "gas": {"equation": "gas"},
    "tait": {"equation": "tait", "kernels": "spline", "viscosity": 2.0},
    "monaghan": {"equation": "tait", "kernels": "spline", "alpha": 0.3, "beta": 0.5, "suction": True},
}


@pytest.mark.parametrize("native", [False, True], ids=["plain", "native"])
@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_a_few_steps_follow_the_reference(device: Device, case: str, dimension: int, native: bool) -> None:
    """Five steps in float64 by brute force. Float32 positions of 0.1 m have 7 nm; stiff pressure makes it some µm/s."""
    if native and device.is_cuda:
        pytest.skip("native loops are for cpu")
    params = box_params(dimension=dimension, lower=(0.0,) * dimension, upper=(0.1,) * dimension, **CASES[case])
    x, v = stirred(dimension)
    fluid = make_fluid(params, x, device, velocities=v, native=native)
    run(fluid, 5)
    flat = ((0, 0), (0, 3 - dimension))
    x, v = np.pad(x, flat), np.pad(v, flat)
    for _ in range(5):
        x, v = reference.step(params, x, v)
    found = particles(fluid)
    assert np.abs(found["position"] - x).max() < 1e-3 * SPACING
    assert np.abs(found["velocity"] - v).max() < 2e-3
    assert np.abs(found["velocity"] - v).max() < 2e-3 * np.abs(v).max()
