"""The scenarios of adaptive water: fine where somebody looks, through inputs alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import viscera
from viscera import water
from viscera.errors import InputError
from viscera.inputs import SetParameter
from viscera.scenarios._adaptive.pools import (
    BASE,
    POOLS,
    Pool,
    fill_pool,
    filled_level,
    find_pool,
    pool_params,
    spacing_of,
)
from viscera.water import adaptive
from viscera.world import World
from viscera.world.systems.adaptive_water import gaze_input

ASPECT = 16.0 / 9.0


def look(world: World, x: float, y: float, frames: int, *, valid: bool = True) -> None:
    for _ in range(frames):
        world.apply(gaze_input(_refined(world).camera, ASPECT, x, y, valid=valid))
        world.step(16)


def _refined(world: World) -> Any:
    return world.system("water").holds


def small_places(world: World) -> np.ndarray:
    fluid = _refined(world).fluid
    count = int(fluid.count.numpy()[0])
    return fluid.position.numpy()[:count][fluid.extra["level"].numpy()[:count] > 0]


@pytest.fixture
def pond() -> World:
    return viscera.make("waves", device="cpu", detail=0.1)


def test_water_is_fine_where_somebody_looks(pond: World) -> None:
    look(pond, 0.3, 0.55, 6)
    left = small_places(pond)
    assert len(left) > 50
    assert left[:, 0].mean() < 0.6
    look(pond, 0.7, 0.55, 30)
    right = small_places(pond)
    assert right[:, 0].mean() > 0.85
    assert adaptive.quanta(_refined(pond).fluid) == 2 * 1000


def test_a_lost_gaze_stays_and_then_the_surface_is_refined(pond: World) -> None:
    look(pond, 0.3, 0.55, 6)
    look(pond, 0.9, 0.9, 10, valid=False)  # 160 ms
    assert small_places(pond)[:, 0].mean() < 0.6
    look(pond, 0.9, 0.9, 60, valid=False)
    surface = small_places(pond)
    assert surface[:, 0].min() < 0.1
    assert surface[:, 0].max() > 1.1, "all along the surface"


def test_the_same_inputs_give_the_same_water_and_it_can_be_saved() -> None:
    states = []
    for _ in range(2):
        world = viscera.make("dambreak", device="cpu", detail=0.1)
        look(world, 0.35, 0.5, 5)
        states.append(world.save_state())
        if len(states) == 1:
            continue
        look(world, 0.5, 0.5, 5)
        later = world.save_state()
        world.load_state(states[1])
        look(world, 0.5, 0.5, 5)
        for name, values in world.save_state().items():
            np.testing.assert_array_equal(values, later[name], err_msg=name)
    for name, values in states[0].items():
        np.testing.assert_array_equal(values, states[1][name], err_msg=name)


def test_views_can_be_changed(pond: World) -> None:
    look(pond, 0.5, 0.55, 3)
    frame = pond.frame()
    assert frame.counts["water"] > 900
    assert frame.counts["sizes"] == 0
    assert frame.counts["gaze"] == 1
    for name in ("balls", "cut"):
        pond.apply(SetParameter(name, 1.0))
    pond.apply(SetParameter("disc", 0.0))
    look(pond, 0.5, 0.55, 2)
    cut = pond.frame()
    assert cut.counts["water"] == 0
    assert 0.3 * frame.counts["water"] < cut.counts["sizes"] < 0.8 * frame.counts["water"]
    assert cut.counts["gaze"] == 0
    shades = pond.system("water").shows[1].arrays["sizes"][: cut.counts["sizes"], 3]
    assert shades.min() == 0.0
    assert 0.0 < shades.max() < 1.0, "a ball takes its new size over some frames"


@pytest.mark.parametrize("pool", POOLS.values(), ids=list(POOLS))
def test_pools_have_the_documents_numbers(pool: Pool) -> None:
    """Tables 3.1 and 3.2; radii from eq. 3.8."""
    document = pool_params(pool, "document")
    assert document.mass == pytest.approx(0.02, rel=1e-6)
    assert document.radii == pytest.approx((0.0457, 0.0493), abs=5e-5)
    assert (document.dt, document.viscosity, document.rest_density) == (0.01, 3.5, 998.29)
    assert document.sound_speed**2 == pytest.approx(3.0)
    regular = pool_params(pool, "document", regular=True)
    assert regular.mass == pytest.approx(0.01, rel=1e-6)
    stiff = pool_params(pool, "stiff")
    assert stiff.dt == pool_params(pool, "stiff", regular=True).dt
    assert stiff.sound_speed**2 == pytest.approx(64.0)


def test_a_pool_has_ten_thousand_particles_of_twenty_grams(cpu: Any) -> None:
    filled = fill_pool(find_pool("dambreak"), cpu, "document")
    assert water.count(filled.fluid) == BASE
    assert adaptive.quanta(filled.fluid) * 0.01 == pytest.approx(200.0)
    assert spacing_of(0.02, 20.0, "muller")[1] == pytest.approx(0.0457, abs=5e-5)


def test_a_pool_can_be_soft_as_in_the_source_or_have_three_sizes() -> None:
    """The document's stiffness takes two steps in a frame; three sizes are graded in rings, and no mass is lost."""
    soft = viscera.make("waves", device="cpu", detail=0.1, options={"fluid": "document"})
    params = _refined(soft).fluid.params
    assert (params.sound_speed**2, params.kernels) == (pytest.approx(3.0), "muller")
    assert _refined(soft).steps * params.dt == pytest.approx(0.016)
    look(soft, 0.5, 0.55, 4)
    soft.close()
    graded = viscera.make("waves", device="cpu", detail=0.1, options={"sizes": 3})
    fluid = _refined(graded).fluid
    look(graded, 0.5, 0.55, 10)
    level = fluid.extra["level"].numpy()[: int(fluid.count.numpy()[0])]
    assert set(level) == {0, 1, 2}
    x = fluid.position.numpy()[: len(level), 0]
    away = [np.abs(x[level == k] - x[level == 2].mean()).mean() for k in range(3)]
    assert away[0] > away[1] > away[2], "the smallest in the middle, the largest outside"
    assert adaptive.quanta(fluid) == 4 * 1000
    graded.close()
    for options in ({"fluid": "soft"}, {"sizes": 5}):
        with pytest.raises(InputError):
            viscera.make("waves", device="cpu", detail=0.1, options=options)


def test_full_pools_of_both_stiffnesses_fill_whole_frames() -> None:
    for pool in POOLS.values():
        for stiffness in ("document", "stiff"):
            dt = pool_params(pool, stiffness, in_frames=True).dt
            assert 0.016 / dt == pytest.approx(round(0.016 / dt))
            assert dt <= pool_params(pool, stiffness).dt


def test_pools_are_filled_level() -> None:
    """A last layer that is not full lies evenly: its middle is that of the layer within half a spacing, and so is its
    spread. Filled from one end, the middle would be 4.5 spacings off."""
    places = water.block((0.0, 0.0, 0.0), (0.2, 0.1, 0.1), 0.01)
    full = int((places[:, 2] == places[:, 2].min()).sum())
    found = filled_level(places, 2 * full + full // 2)
    assert len(np.unique(found, axis=0)) == len(found) == 2 * full + full // 2
    below, top = found[: 2 * full], found[2 * full :]
    assert below[:, 2].max() < top[:, 2].min() == top[:, 2].max()
    np.testing.assert_allclose(top.mean(axis=0)[:2], below.mean(axis=0)[:2], atol=0.005)
    np.testing.assert_allclose(top.std(axis=0)[:2], below.std(axis=0)[:2], atol=0.005)
    np.testing.assert_array_equal(filled_level(places, full), places[places[:, 2] == places[:, 2].min()])
