"""The lattice as a picture: where its masses are, which springs are cut, and nothing while nobody wants it."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import SetParameter, ToolInput, World


@pytest.fixture(scope="module")
def world() -> World:
    """The incision's skin, cut by one stroke."""
    world = viscera.make("incision", device="cpu", cores=1, detail=0.5)
    world.apply(ToolInput(0, (-0.02, 0.001, 0.02), grip=1.0, direct=True))
    world.step(160)  # until it has come from its home
    for tick in range(128):
        world.apply(ToolInput(0, (-0.02 + 0.0003 * tick, 0.001, 0.004), grip=1.0, direct=True))
        world.advance()
    world.apply(ToolInput(0, (0.0, 0.0, 0.05), active=False))
    world.step(16)
    return world


def shown(world: World, view: int, colour: int) -> tuple[np.ndarray, np.ndarray]:
    world.apply(SetParameter("skin_view", float(view)))
    world.apply(SetParameter("skin_colour", float(colour)))
    world.step(32)
    shot = world.snapshot()
    masses, cut = "skin.lattice", "skin.lattice/cut"
    return shot.arrays[masses][: shot.counts[masses]], shot.arrays[cut][: shot.counts[cut]]


def test_it_is_not_there_until_somebody_wants_it(world: World) -> None:
    masses, cut = shown(world, 0, 0)
    assert len(masses) == len(cut) == 0


def test_masses_are_where_they_are_and_cut_springs_are_those_of_the_tissue(world: World) -> None:
    masses, cut = shown(world, 1, 0)
    tissue = world.organs[0].tissue
    assert np.allclose(masses[:, :3], tissue.rest_positions() + tissue.displacement(), atol=2e-4)
    springs = next(one for one in world.scene().lattices).springs
    assert springs.max() < len(masses)
    # A spring along an axis is a cell long; of those that were cut there are some, each once.
    rest = tissue.rest_positions()
    assert np.allclose(np.linalg.norm(np.diff(rest[springs], axis=1)[:, 0], axis=1), tissue.params.spacing)
    assert len(cut) == len(np.unique(cut)) > 0
    links = world.organs[0].shadow.cuts
    assert links is not None
    assert len(cut) == np.count_nonzero(links.springs()[[0, 2, 8]])


def test_beside_the_skin_it_stands_aside(world: World) -> None:
    instead, _ = shown(world, 1, 0)
    beside, _ = shown(world, 2, 0)
    way = beside[:, :3] - instead[:, :3]
    assert way[:, 0].min() > world.organs[0].tissue.rest_positions()[:, 0].max()
    assert np.abs(way[:, 1:]).max() < 1e-3


def test_colours_are_strain_and_damage(world: World) -> None:
    strain, cut = shown(world, 1, 1)
    # The skin is stretched by 6 %, drawn red from 30 % on; the cut relaxes some of it, and concentrates it at its ends.
    assert np.median(strain[:, 3]) == pytest.approx(0.2, abs=0.03)
    damage, _ = shown(world, 1, 2)
    springs = next(one for one in world.scene().lattices).springs
    hurt = np.unique(springs[cut[:, 0].astype(np.int64)])
    assert (damage[hurt, 3] > 0.0).all()
    far = np.abs(world.organs[0].tissue.rest_positions()[:, 1]) > 0.01
    assert (damage[far, 3] == 0.0).all()
