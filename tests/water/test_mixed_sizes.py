"""Particles of several sizes in the loops of the solver: plain, in C, and by teams."""

from __future__ import annotations

from typing import Any

import mixed_reference as reference
import numpy as np
import pytest

from viscera import water
from viscera.device import Device
from viscera.errors import InputError
from viscera.water.params import FluidParams
from viscera.water.sizes import Sizes, support_of
from viscera.water.sph import find_density, find_forces, find_pressure, sort, step_fluid
from viscera.water.state import Fluid, load, make_fluid, use_team

SPACING = 0.01
LOOPS = ("plain", "native", "wide", "long")


def stirred(device: Device, loops: str, **more: Any) -> Fluid:
    """Particles of all sizes, anywhere in a small box, with some speed."""
    wanted: dict[str, Any] = {"dimension": 3, "viscosity": 1.0, "sizes": Sizes(3, 2)} | more
    d, sizes = wanted["dimension"], wanted["sizes"]
    rng = np.random.default_rng(3)
    side = 6 * SPACING if d == 3 else 14 * SPACING
    x = rng.random((450, d)) * side
    v = rng.normal(0.0, 0.2, x.shape)
    params = FluidParams(spacing=SPACING, lower=(0.0,) * d, upper=(side,) * d, dt=1e-5, sound_speed=5.0, **wanted)
    fluid = make_fluid(params, x, device, velocities=v, native=loops == "native")
    if loops in ("wide", "long"):
        use_team(fluid, (16 if loops == "wide" else 2) if device.is_cuda else 1, wide=loops == "wide")
    level = rng.integers(0, sizes.count, len(x))
    load(fluid, water.save(fluid) | {"level": level})
    return fluid


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize(
    "case",
    [
        {},
        {"kernels": "muller", "equation": "gas"},
        {"dimension": 2, "sizes": Sizes(2, 3)},
        {"kernels": "muller", "sizes": Sizes(2, 2, (support_of(20), support_of(50)))},
    ],
    ids=["spline", "Müller", "2D", "document"],
)
def test_density_and_forces_are_those_of_the_reference(device: Device, loops: str, case: dict[str, Any]) -> None:
    fluid = stirred(device, loops, **case)
    for part in (sort, find_density, find_pressure, find_forces):
        device.record(lambda stage, part=part: part(stage, fluid)).run()
    n, p = int(fluid.count.numpy()[0]), fluid.params
    x, v = fluid.grid.position.numpy()[:n].astype(float), fluid.held.numpy()[:n, :3].astype(float)
    level = fluid.extra["sorted_level"].numpy()[:n]
    rho = reference.density(p, x, level)
    # Sums of up to a hundred terms in float32.
    np.testing.assert_allclose(fluid.density.numpy()[:n], rho, rtol=2e-5)
    a = reference.acceleration(p, x, v, level, rho, fluid.pressure.numpy()[:n].astype(float))
    rate = fluid.rate.numpy()[:n, :3]
    assert np.abs(rate - a).max() < 1e-4 * np.abs(a).max()
    # Only the sums round: pairs push each other equally, whatever their sizes.
    pull = reference.masses(p, level)[:, None] * (rate - np.asarray(p.gravity))
    assert np.abs(pull.sum(axis=0)).max() < 1e-6 * np.abs(pull).sum()


def test_one_size_among_several_moves_as_a_fluid_of_that_size(cpu: Device) -> None:
    """All of size 1 are a fluid with that spacing: the same kernels, the same masses."""
    several = FluidParams(
        spacing=SPACING, lower=(0.0,) * 3, upper=(0.06,) * 3, dt=1e-5, sound_speed=5.0, sizes=Sizes(2, 2)
    )
    alone = FluidParams(spacing=several.spacings[1], lower=(0.0,) * 3, upper=(0.06,) * 3, dt=1e-5, sound_speed=5.0)
    assert several.mass / 2 == pytest.approx(alone.mass, rel=1e-12)
    x = water.block((0.01,) * 3, (0.05,) * 3, alone.spacing)
    found = []
    for params in (several, alone):
        fluid = make_fluid(params, x, cpu)
        if params.sizes is not None:
            load(fluid, water.save(fluid) | {"level": np.ones(len(x))})
        cpu.record(lambda stage, f=fluid: step_fluid(stage, f)).run(20)
        found.append(water.particles(fluid))
    np.testing.assert_allclose(found[0]["position"], found[1]["position"], atol=1e-7)
    np.testing.assert_allclose(found[0]["density"], found[1]["density"], rtol=1e-4)


def test_sizes_go_along_with_their_particles_and_are_saved(cpu: Device) -> None:
    fluid = stirred(cpu, "native")
    before = water.particles(fluid)["level"].copy()
    program = cpu.record(lambda stage: step_fluid(stage, fluid))
    program.run(7)
    np.testing.assert_array_equal(water.particles(fluid)["level"], before)
    saved = water.save(fluid)
    program.run(3)
    later = water.particles(fluid)
    water.load(fluid, saved)
    program.run(3)
    for name, values in water.particles(fluid).items():
        np.testing.assert_array_equal(values, later[name])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sizes": Sizes(2), "alpha": 0.1}, "Müller's viscosity"),
        ({"sizes": Sizes(2), "equation": "incompressible"}, "summed density"),
        ({"sizes": Sizes(2), "periodic": (True, False, False)}, "without periods"),
        ({"sizes": Sizes(2, 2, (2.0, 9.0))}, "support of 9.0"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        FluidParams(spacing=0.01, lower=(0.0,) * 3, upper=(0.1,) * 3, dt=1e-5, **more)


@pytest.mark.parametrize("wrong", [{"count": 1}, {"children": 1}, {"count": 2, "supports": (2.0,)}])
def test_sizes_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Sizes(**wrong)
