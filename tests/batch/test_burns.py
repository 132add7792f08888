"""Heat and burns of many worlds: each world's maps are those of one skin by itself, and where current goes is what
geometry says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray

from viscera import batch
from viscera.device import Device
from viscera.errors import InputError
from viscera.heat.burn import boiled_heat, make_burn, step_burn
from viscera.heat.conduction import make_heat, step_heat, total_heat
from viscera.heat.electrode import ElectrodeParams

pytestmark = pytest.mark.slow

WORLDS, RADIUS = 3, 0.008
DEPTHS = np.array([0.002, 0.004, -0.02])
"""To which each world's ball presses [m]; the last one does not touch."""


@pytest.fixture(scope="module")
def worlds(cpu: Device) -> Iterator[batch.Batch]:
    made = batch.make("palpation", worlds=WORLDS, device=cpu, seed=3, detail=0.15)
    yield made
    made.close()


@pytest.fixture(scope="module")
def hot(worlds: batch.Batch) -> batch.Burns:
    return batch.burns(worlds, texels=64, electrode=ElectrodeParams(power=40.0))


def press(worlds: batch.Batch, beside: float = 0.0) -> None:
    rest = worlds.tissue.rest_positions()
    low, high = rest.min(axis=0), rest.max(axis=0)
    poses = np.zeros((WORLDS, 1, 3))
    poses[:, 0] = 0.5 * (low + high)
    poses[:, 0, 0] += beside
    poses[:, 0, 2] = high[2] + RADIUS - DEPTHS
    worlds.set_tools(poses)


def nodes_of(worlds: batch.Batch, hot: batch.Burns, number: int) -> NDArray[np.float64]:
    """Where the texels of a world are [m], from its displacements."""
    organ = worlds.template.contents.organs[0]
    slots = worlds.tissue.layout.slots
    u = np.zeros((slots, 3))
    u[worlds.tissue.layout.slot_of_node] = worlds.displacements()[number]
    vertices = organ.rest.numpy() + (organ.weights.numpy()[..., None] * u[organ.places.numpy()]).sum(axis=1)
    texels, skin = hot.skin.texels.numpy(), hot.skin
    corners = vertices[skin.triangles.numpy()[skin.face.numpy()[texels]]]
    second, third = skin.barycentric.numpy()[texels].T
    share = np.stack([1.0 - second - third, second, third], axis=1)
    return (share[..., None] * corners).sum(axis=1)


def test_each_world_burns_as_one_skin_by_itself(worlds: batch.Batch, hot: batch.Burns, cpu: Device) -> None:
    """Given the same power, every temperature, damage, share of water and level has the bits of `viscera.heat`, for
    0.6 s in which tissue boils and coagulates; and no heat is lost."""
    worlds.reset(seed=3)
    hot.reset()
    hot.press([True] * WORLDS)
    number = 1
    heat = make_heat(hot.skin, hot.heat.params, dt=hot.heat.dt)
    burn = make_burn(heat, hot.burn.params)

    def record(stage: Any) -> None:
        step_heat(stage, heat)
        step_burn(stage, burn)

    alone, given = cpu.record(record), 0.0
    for action in range(60):
        press(worlds, 0.0001 * action)
        worlds.step(10)
        hot.step()
        wp.copy(heat.power, wp.array(hot.power.numpy()[number].copy(), dtype=wp.float32, device="cpu"))
        alone.run()
        given += float(hot.delivered.numpy()[number, 0]) * hot.heat.dt
    maps = ((hot.temperature, heat.temperature), (hot.damage, burn.damage), (hot.water, burn.water))
    for mine, theirs in (*maps, (hot.level, burn.burn_level)):
        np.testing.assert_array_equal(mine.numpy()[number], theirs.numpy())
    level, water = hot.level.numpy(), hot.water.numpy()
    assert level[number].max() > 0.9, "nothing coagulated"
    assert water[number].min() < 0.95, "nothing boiled"
    assert given > 1.0
    assert total_heat(heat) + boiled_heat(burn) == pytest.approx(given, rel=1e-4)
    # The world whose ball is in the air stays as it was.
    assert not level[2].any()
    assert not hot.temperature.numpy()[2].any()


def test_current_goes_where_the_ball_touches(worlds: batch.Batch, hot: batch.Burns) -> None:
    """Against float64 in NumPy: texels within reach of the ball or its shaft share the power by area, as far as the
    generator's voltage allows."""
    worlds.reset(seed=3)
    hot.reset()
    press(worlds)
    worlds.step(300)
    hot.press([True] * WORLDS)
    hot.step()
    texels, power = hot.skin.texels.numpy(), hot.power.numpy()
    area = hot.skin.rest_area.numpy()[texels].astype(np.float64)
    params = hot.electrode
    for number in (0, 1, 2):
        x = nodes_of(worlds, hot, number)
        ends = worlds.hand_rows.ends.numpy()[number, 0]
        away = np.full(len(x), np.inf)
        for bar in range(int(worlds.kit.bars.numpy()[0])):
            a, axis = ends[2 * bar], ends[2 * bar + 1] - ends[2 * bar]
            along = np.clip((x - a) @ axis / max(float(axis @ axis), 1e-20), 0.0, 1.0)
            distance = np.linalg.norm(x - (a + along[:, None] * axis), axis=1)
            away = np.minimum(away, distance - worlds.kit.radius.numpy()[0, bar])
        near = away < params.reach
        unsure = np.abs(away - params.reach) < 1e-6
        through = float(area[near].sum())
        scale = min(params.power / through, params.most_flux) if through else params.most_flux
        found = power[number, texels]
        np.testing.assert_allclose(found[~unsure], np.where(near, scale * area, 0.0)[~unsure], rtol=0.02, atol=1e-9)
        assert hot.delivered.numpy()[number, 0] == pytest.approx(scale * through, rel=0.02, abs=1e-9)
    assert hot.delivered.numpy()[1, 1] > hot.delivered.numpy()[0, 1] > 0.0, "deeper touches more"
    assert hot.delivered.numpy()[2].tolist() == [0.0, 0.0]


def test_a_mask_heals_its_worlds_and_no_other(worlds: batch.Batch, hot: batch.Burns) -> None:
    worlds.reset(seed=3)
    hot.reset()
    hot.press([True, True, False])
    press(worlds)
    worlds.step(200)
    for _ in range(5):
        hot.step()
    before = hot.temperature.numpy().copy()
    assert before[:2].max(axis=1).min() > 1.0
    hot.reset([True, False, False])
    after = hot.temperature.numpy()
    assert not after[0].any()
    assert np.array_equal(after[1:], before[1:])
    assert hot.pedals.numpy().tolist() == [0, 1, 0]
    hot.step()
    assert not hot.power.numpy()[0].any()
    assert hot.power.numpy()[1].any()


def test_what_cannot_be_is_refused(worlds: batch.Batch, hot: batch.Burns) -> None:
    refused: list[tuple[Any, str]] = [
        (lambda: hot.press([True]), "pedals"),
        (lambda: hot.reset([True]), "mask"),
        (lambda: batch.burns(worlds, ticks=0), "ticks"),
        (lambda: batch.burns(worlds, tool=5), "tool"),
        (lambda: batch.burns(worlds, electrode=ElectrodeParams(bipolar=True)), "bipolar"),
        (lambda: batch.burns(worlds, electrode=ElectrodeParams(constant="flux")), "constant power"),
        (lambda: batch.burns(worlds, stiffens=True), "burnt tissue"),
    ]
    for call, word in refused:
        with pytest.raises(InputError, match=word):
            call()
