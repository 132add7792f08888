"""The lattice's benchmarks measure what they say: storages step alike, shapes have their size, frames are real."""

from __future__ import annotations

import numpy as np
import pytest

from viscera.bench import _viewer, tissue, tissue_storage
from viscera.bench._shapes import SHAPES
from viscera.bench._viewer import View
from viscera.device import open_device
from viscera.server.encode import quantise


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_have_about_as_many_masses_as_asked_for(shape: str) -> None:
    for masses in (3_000, 30_000):
        nodes = SHAPES[shape](masses)
        assert len(np.unique(nodes, axis=0)) == len(nodes)
        assert len(nodes) == pytest.approx(masses, rel=0.1)  # voxels of a curved surface
    filled = len(nodes) / np.prod(np.ptp(nodes, axis=0) + 1.0)
    assert {"box": filled > 0.9, "liver": 0.3 < filled < 0.5, "tube": filled < 0.03}[shape]


@pytest.mark.slow
def test_every_storage_steps_the_same_springs() -> None:
    """A ragged lattice; float32 sums in another order differ by some 1e-6 of the largest displacement."""
    device = open_device("cpu", cores=1)
    nodes = SHAPES["liver"](2_000)
    springs = tissue_storage.make_springs(nodes[np.random.default_rng(1).random(len(nodes)) < 0.9])
    results = {}
    for name, stored in tissue_storage.storages(device, springs, quick=False):
        device.record(stored.launch, arguments=[6]).run()
        results[name] = stored.result()
    moved = np.abs(results["plain table"] - springs.start).max()
    assert moved > 0.1 * np.abs(springs.start).max()
    for name, found in results.items():
        assert np.abs(found - results["plain table"]).max() < 1e-4 * moved, name


def test_a_cut_takes_springs_and_nothing_else() -> None:
    device = open_device("cpu", cores=1)
    nodes = SHAPES["box"](8_000)
    whole, cut = (tissue.lattice(device, nodes, mixed=mixed) for mixed in (False, True))
    gone = tissue.directed_springs(whole) - tissue.directed_springs(cut)
    # Nine springs per mass and direction cross the plane; twenty masses wide, the upper ten layers.
    assert gone == pytest.approx(2 * 9 * 20 * 10, rel=0.1)
    cut.step()


def test_the_viewers_frame_is_the_servers() -> None:
    rng = np.random.default_rng(2)
    place = rng.permutation(64)[:40].astype(np.int32)
    rest = rng.random((40, 3)).astype(np.float32)
    position = rng.normal(0.0, 1e-3, (3, 64)).astype(np.float32)
    view = View(_viewer.LOCK_FREE, 64, place, rest)
    assert _viewer.encode(position.ravel(), view) == quantise(rest + position[:, place].T)[1]
