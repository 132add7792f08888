"""Burnt tissue of many worlds is stiffer, as in one world, and a hook burns as its distance field says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera import batch, skin
from viscera.device import Device, Stage
from viscera.geometry.parts import make_tool
from viscera.heat.burn import make_burn
from viscera.heat.conduction import make_heat
from viscera.heat.electrode import ElectrodeParams, make_electrode, step_electrodes
from viscera.tissue.burning import make_burning, make_sampling, sample_burn, step_burning

pytestmark = pytest.mark.slow

WORLDS, TEXELS = 3, 256
WITHOUT = ("heat", "burns", "stiffening", "smoke", "drill")
OVER = np.array([-0.0006, -0.003, 0.02])
"""Height of each world's hook over the surface [m]; the last one does not touch."""


@pytest.fixture(scope="module")
def worlds(cpu: Device) -> Iterator[batch.Batch]:
    made = batch.make("cautery", worlds=WORLDS, device=cpu, seed=3, detail=0.15, tools=["hook"], without=WITHOUT)
    yield made
    made.close()


@pytest.fixture(scope="module")
def hot(worlds: batch.Batch) -> batch.Burns:
    return batch.burns(worlds, texels=TEXELS, ticks=16, electrode=ElectrodeParams(power=30.0), stiffens=True)


def hold(worlds: batch.Batch, along: float = 0.0, over: ArrayLike = OVER) -> None:
    organ = worlds.template.contents.organs[0]
    poses = np.zeros((WORLDS, 1, 3))
    poses[:, 0, 0] = along
    poses[:, 0, 2] = organ.height(0.0, 0.0) + np.asarray(over)
    worlds.set_tools(poses)


def burn(worlds: batch.Batch, hot: batch.Burns, actions: int) -> None:
    for action in range(actions):
        hold(worlds, 0.0001 * action)
        worlds.step(16)
        hot.step()


def scorch(hot: batch.Burns, number: int, level: NDArray[np.float64]) -> None:
    """A world's skin is burnt so far, cold again."""
    levels = hot.level.numpy().copy()
    levels[number] = level
    hot.level.assign(levels)


def test_current_goes_where_the_single_electrode_sends_it(worlds: batch.Batch, hot: batch.Burns, cpu: Device) -> None:
    """Power into every texel of the world whose hook is pressed in, against `viscera.heat.electrodes` on the same skin,
    deformed as it is there. A batch takes areas at rest: the sum differs by how far the skin is stretched."""
    worlds.reset(seed=3)
    hot.reset()
    hot.press([True] * WORLDS)
    hold(worlds)
    worlds.step(200)
    hot.step()
    number = 1
    heat = make_heat(hot.skin, hot.heat.params, dt=hot.heat.dt)
    alone = make_burn(heat, hot.burn.params)
    (instrument,) = (t.instrument for t in worlds.template.contents.tools if t.instrument.name == "hook")
    assert instrument.solid is not None
    metal = make_tool("hook", instrument.solid(), cpu)
    electrode = make_electrode(metal, alone, hot.electrode)
    electrode.press(True)
    pose = worlds.poses.numpy()[number, 0].astype(np.float64)
    metal.place(pose[:3], pose[3:], jump=True)
    at_rest = wp.clone(hot.skin.vertices)
    wp.copy(hot.skin.vertices, wp.array(hot.vertices.numpy()[number].copy(), dtype=wp.vec3, device="cpu"))

    def record(stage: Stage) -> None:
        skin.follow(stage, hot.skin)
        step_electrodes(stage, [electrode])

    program = cpu.record(record)
    program.run()
    mine, theirs = hot.power.numpy()[number], heat.power.numpy().copy()
    wp.copy(hot.skin.vertices, at_rest)
    program.run()
    assert (mine > 0.0).sum() > 5
    assert ((mine > 0.0) == (theirs > 0.0)).mean() > 0.9999
    assert mine.sum() == pytest.approx(theirs.sum(), rel=0.02)


def test_springs_are_those_of_one_burnt_lattice(worlds: batch.Batch, hot: batch.Burns, cpu: Device) -> None:
    """Given the same burn level, stiffness of every spring and cell has the bits of tissue/burning.py; and the world
    that is not burnt goes on with the springs that all share."""
    worlds.reset(seed=3)
    hot.reset()
    scorch(hot, 0, np.random.default_rng(1).uniform(0.0, 2.0, hot.level.shape[1]))
    hot.step()
    tissue = worlds.tissue
    fresh, fresh_bulk = tissue.constants.stiffness.numpy().copy(), tissue.bulk.numpy().copy()
    burning, sampling = make_burning(tissue), make_sampling(tissue, hot.skin)
    level = wp.array(hot.level.numpy()[0].copy(), dtype=wp.float32, device="cpu")

    def record(stage: Stage) -> None:
        sample_burn(stage, burning, sampling, level)
        step_burning(stage, burning)

    cpu.record(record).run()
    rows = worlds.rows.springs.numpy()
    assert rows[0] >= len(worlds.seeds) > rows[1]
    assert rows[2] == rows[1]
    springs, cells = tissue.constants.stiffness.numpy(), tissue.bulk.numpy()
    assert (springs > 1.5 * fresh).sum() > 10, "nothing became stiffer"
    np.testing.assert_array_equal(worlds.rows.stiffness.numpy()[rows[0]], springs)
    np.testing.assert_array_equal(worlds.rows.bulk.numpy()[rows[0]], cells)
    tissue.constants.stiffness.assign(fresh)
    tissue.bulk.assign(fresh_bulk)


def test_burnt_tissue_pushes_back_harder_until_it_is_reset(worlds: batch.Batch, hot: batch.Burns) -> None:
    worlds.reset(seed=3)
    hot.reset()
    scorch(hot, 0, np.full(hot.level.shape[1], 1.0))
    hot.step()
    worlds.set_materials(stiffness=[1.0] * WORLDS)  # leaves burnt springs as they are
    hold(worlds, over=-0.002)
    worlds.step(300)
    felt = worlds.forces.last.numpy()[:, 0, 2]
    assert felt[0] > 1.1 * felt[1] > 0.0
    worlds.reset([True, False, False])
    hot.reset([True, False, False])
    assert worlds.rows.springs.numpy()[0] < len(worlds.seeds)
    assert hot.stiffening is not None
    assert not hot.stiffening.burn.numpy()[0].any()
    worlds.reset(seed=3)
    hold(worlds, over=-0.002)
    worlds.step(300)
    felt = worlds.forces.last.numpy()[:, 0, 2]
    assert felt[0] == felt[1]


def test_areas_count_what_is_burnt_and_marked(worlds: batch.Batch, hot: batch.Burns) -> None:
    worlds.reset(seed=3)
    hot.reset()
    hot.let_mark()
    for number in range(WORLDS):
        hot.mark(number, np.where(np.arange(hot.skin.width * hot.skin.height) % 2 == number % 2, 1, 2))
    hot.press([True] * WORLDS)
    burn(worlds, hot, 40)
    found = hot.areas()
    texels, level = hot.skin.texels.numpy(), hot.level.numpy()
    area = hot.skin.rest_area.numpy().astype(np.float64)
    for number in range(WORLDS):
        # Level is coagulation plus charring, each from 0 to 1.
        burnt = hot.damage.numpy()[number, texels] >= np.log(2.0) - 1e-6
        chosen = texels[burnt]
        assert found[number, 0] == pytest.approx(area[chosen].sum(), rel=1e-3, abs=1e-9)
        first = chosen[chosen % 2 == number % 2]
        assert found[number, 2] == pytest.approx(area[first].sum(), rel=1e-3, abs=1e-9)
        assert found[number, 2] + found[number, 3] == pytest.approx(found[number, 0])
    assert found[0, 0] > 0.0
    assert not found[2].any()
    assert level[0].max() > 0.9
