"""Near a cut, what tools touch and what is gauged beneath it hang on one side alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from viscera.device import Device
from viscera.geometry.topology import components
from viscera.tissue.cut_touching import CutTouching
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import LIVER
from viscera.tissue.params import LatticeParams
from viscera.tissue.pieces import Pieces
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.tissue.touching import NOTHING_NEAR, touch_surface
from viscera.world.organ import Body, block

HIGH = 0.012


@pytest.fixture(scope="module")
def made(cpu: Device) -> tuple[Body, Tissue]:
    body = block((8, 6, 4), 0.003)
    params = LatticeParams(
        body.nodes, body.spacing, body.origin, body.positions[:, 2] < 0.001, LIVER,
        stiffest=LIVER.young, poisson=0.25, viscous_time=2e-4,
    )  # fmt: skip
    tissue = make_lattice(cpu, params)
    touch_surface(tissue, body.mesh)
    return body, tissue


def test_what_is_gauged_beneath_a_point_is_on_its_own_side(made: tuple[Body, Tissue]) -> None:
    """Cut across x: each place beneath a bundle hangs on masses of one side, and follows that side exactly."""
    body, tissue = made
    index = NodeIndex(body.nodes)
    other = np.stack([index.find(body.nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
    right = body.positions[:, 0] > 0.0
    whole = other >= 0
    samples = tissue.need_touching().samples
    first = [array.numpy().copy() for array in (samples.places, samples.under_places, samples.under_weights)]
    touching = CutTouching(tissue, whole)
    left = whole & (right[None] == right[np.maximum(other, 0)])
    touching.hang(left)
    touching.land()
    direction, low = np.nonzero(left)
    side = components(len(right), low, other[direction, low].astype(np.int64))
    node_of = np.zeros(tissue.layout.slots, dtype=np.int64)
    node_of[tissue.layout.slot_of_node] = np.arange(len(right))

    def sides(places: Any, weights: Any) -> list[set[int]]:
        hung = zip(node_of[places.numpy().reshape(-1, 8)], weights.numpy().reshape(-1, 8), strict=True)
        return [set(side[nodes[weight != 0.0]].tolist()) for nodes, weight in hung]

    points, beneath = sides(samples.places, samples.weights), sides(samples.under_places, samples.under_weights)
    assert all(len(one) == 1 for one in points)
    assert beneath == [points[middle] for middle in samples.middle.numpy()]
    assert samples.under_weights.numpy().reshape(-1, 8).sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert 0 < samples.parted.numpy().sum() < len(beneath)
    touching.hang(whole)
    touching.land()
    assert samples.parted.numpy().sum() == 0
    again = [array.numpy() for array in (samples.places, samples.under_places, samples.under_weights)]
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


def test_points_hung_cut_by_cut_hang_as_if_all_was_cut_at_once(made: tuple[Body, Tissue]) -> None:
    """To the bit: only points near a change are fitted anew, one or many of them, and ties may come back."""
    body, tissue = made
    index = NodeIndex(body.nodes)
    whole = np.stack([index.find(body.nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS]) >= 0
    rng, left = np.random.default_rng(3), whole.copy()
    samples = tissue.need_touching().samples
    arrays = (samples.places, samples.weights, samples.under_places, samples.under_weights, samples.parted)
    before = [array.numpy().copy() for array in arrays]
    one, known = CutTouching(tissue, whole), []
    for gone in (1, 1, 3, 40, 200, -120):
        of = np.flatnonzero((left if gone > 0 else whole & ~left).ravel())
        left.ravel()[rng.choice(of, abs(gone), replace=False)] = gone < 0
        one.hang(left)
        one.land()
        known.append((left.copy(), [array.numpy().copy() for array in arrays]))
    for array, first in zip(arrays, before, strict=True):
        array.assign(first)
    for springs, found in known:
        fresh = CutTouching(tissue, whole)
        fresh.hang(springs)
        fresh.land()
        assert all(np.array_equal(array.numpy(), other) for array, other in zip(arrays, found, strict=True))
        for array, first in zip(arrays, before, strict=True):
            array.assign(first)


def test_a_gauge_tells_of_tissue_that_is_stretched_far(made: tuple[Body, Tissue]) -> None:
    """Three times as high as at rest: more than its integer has room for, no sign of tissue that is pressed flat."""
    body, tissue = made
    arrays = {name: np.array(array.numpy()) for name, array in tissue.arrays().items()}
    moved = {name: array.copy() for name, array in arrays.items()}
    slots, slot = tissue.layout.slots, tissue.layout.slot_of_node
    moved["position"].reshape(3, slots)[2, slot] = 2.0 * body.positions[:, 2]
    tissue.load(moved, 0)
    tip = np.array([0.0, 0.0, 2.5 * HIGH])  # where its top comes by in that tick
    bar = np.stack([tip, tip + np.array([0.0, 0.0, 0.01])])[None]
    tissue.set_bars(0, bar, bar, np.array([0.0005]), 0.1, np.stack([tip, tip]))
    tissue.step()
    _, stretch = tissue.tool_gauge(0)
    tissue.remove_tool(0)
    tissue.load(arrays, 0)
    assert 1.0 < stretch < NOTHING_NEAR


def test_what_meets_is_the_same_cut_bit_by_bit_and_at_once(made: tuple[Body, Tissue]) -> None:
    body, tissue = made
    index = NodeIndex(body.nodes)
    other = np.stack([index.find(body.nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
    rng, whole = np.random.default_rng(5), other >= 0
    slowly, at_once = (Pieces(tissue, np.zeros(3)) for _ in range(2))
    for _ in range(4):
        whole = whole & (rng.random(whole.shape) > 0.2)
        slowly.hang(whole)
        slowly.land()
    at_once.hang(whole)
    at_once.land()
    assert slowly.landing.pieces > 1
    assert len(slowly.edge.mass) > len(Pieces(tissue, np.zeros(3)).edge.mass)
    for name, column in slowly.landing.columns.items():
        assert np.array_equal(column, at_once.landing.columns[name]), name
