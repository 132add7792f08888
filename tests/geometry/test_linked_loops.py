"""Loops over a lattice's links say what slow ones say."""

from __future__ import annotations

import numpy as np
import pytest

from viscera.geometry.linked_loops import HANGS_ON, nearest_eight, roots_of
from viscera.geometry.topology import components
from viscera.geometry.vectors import cross


@pytest.mark.parametrize("seed", range(4))
def test_roots_are_the_lowest_nodes_that_hang_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 400
    other = rng.integers(0, count, (3, count), dtype=np.int32)
    links = rng.random((3, count)) < 0.12 * (seed + 1)
    row, low = np.nonzero(links)
    found = roots_of(links, other)
    assert np.array_equal(found, components(count, low, other[row, low].astype(np.int64)))
    assert len(np.unique(found)) > 1


def test_without_links_each_node_is_its_own() -> None:
    assert np.array_equal(roots_of(np.zeros((2, 5), dtype=np.bool_), np.full((2, 5), -1)), np.arange(5))


def test_numbers_of_any_width_and_order_are_taken() -> None:
    other = np.asfortranarray(np.array([[4, -1, 1, -1, -1], [-1, -1, -1, 2, -1]], dtype=np.int64))
    assert roots_of(other >= 0, other).tolist() == [0, 1, 1, 1, 0]


def nearest_by_sorting(every: np.ndarray, positions: np.ndarray, point: np.ndarray, first: int) -> list[list[int]]:
    found = []
    for nodes, x in zip(every.tolist(), point, strict=True):
        key: dict[int, tuple[float, int]] = {}
        for column, node in enumerate(nodes):
            if node >= 0:
                far = float(((positions[node] - x) ** 2).sum()) + (100.0 if column >= first else 0.0)
                key[node] = min(key.get(node, (far, node)), (far, node))
        best = sorted(key, key=key.__getitem__)[:HANGS_ON]
        found.append(best + [-1] * (HANGS_ON - len(best)))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_eight_nearest_are_those_that_sorting_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positions = np.stack(np.meshgrid(*[np.arange(4)] * 3), axis=-1).reshape(-1, 3).astype(np.int64)
    every = rng.integers(-1, len(positions), (40, 90), dtype=np.int32)
    every[:5, 6:] = -1
    point = rng.uniform(0.0, 3.0, (40, 3))
    point[20:] = np.round(point[20:]) + 0.5  # as far from several
    for first in (1, 8):
        found = nearest_eight(every, positions, point, first)
        assert found.tolist() == nearest_by_sorting(every, positions, point, first)
    assert (nearest_eight(every, positions, point, 8)[0] == -1).any()


def test_cross_products_are_numpys_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    rows, one = rng.normal(size=(50, 3)), rng.normal(size=3)
    for a, b in ((rows, rows[::-1]), (one, rows), (one, rows[0]), (rows.astype(np.float32), rows.astype(np.float32))):
        assert cross(a, b).tobytes() == np.cross(a, b).tobytes()
